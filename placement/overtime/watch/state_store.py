"""The state file: SQLite, one transaction per interval, so that a kill loses nothing.

State, recommendation and what the interval came from are committed together (write-ahead log,
synchronous FULL: on the disk before the recommendation is shown). The table `recommendation` is the
log and the source of record: every printed line is read from it, and printed once. After a kill the
last printed line may be printed again.

    meta             format, version, fingerprint and settings of the watch
    state            one row: decayed counts, configuration, streak, checksum, what was shown
    recommendation   sequence, interval, where it stands in time, source, digest, document (JSON),
                     checksum
    report           what was late, twice, malformed or otherwise left out, and why
    file             files of a folder that are done with

Every transaction holds the state to the one that this process knows, so that a second watch on the
file is refused before it reads or writes. A state file is a database that other programs may open:
a checksum beside each row of state and recommendation shows changes that no watch made, and a row
that passes is as it was written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placement.errors import InputError, PlacementError, refused, require
from placement.io.formats.files import check_file
from placement.model.configuration import Configuration
from placement.overtime.decayed_counts import DecayedCounts
from placement.overtime.watch.arrivals import Arrival, FileMark, IntervalKey, Rejection
from placement.overtime.watch.recommend import (
    Recommendation,
    WatchSettings,
    WatchState,
    initial_state,
)

VERSION = 2
_APPLICATION = 0x706C6177  # "plaw" in the header of the file

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE state (
    id INTEGER PRIMARY KEY CHECK (id = 1), sequence INTEGER NOT NULL, demand TEXT NOT NULL,
    current TEXT, streak INTEGER NOT NULL, checksum TEXT NOT NULL, shown INTEGER NOT NULL
);
CREATE TABLE recommendation (
    sequence INTEGER PRIMARY KEY, interval TEXT NOT NULL, kind TEXT NOT NULL,
    place INTEGER NOT NULL, source TEXT NOT NULL, digest TEXT NOT NULL, document TEXT NOT NULL,
    checksum TEXT NOT NULL, UNIQUE (kind, place)
);
CREATE TABLE report (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, source TEXT NOT NULL, interval TEXT NOT NULL,
    message TEXT NOT NULL, digest TEXT NOT NULL, UNIQUE (kind, source, interval, message, digest)
);
CREATE TABLE file (
    name TEXT PRIMARY KEY, size INTEGER NOT NULL, changed_ns INTEGER NOT NULL, digest TEXT NOT NULL
) WITHOUT ROWID;
"""

_COLUMNS = "sequence, interval, kind, place, source, digest, document"
"""Columns of `recommendation` under its checksum."""


_Path = str | os.PathLike[str]


@dataclass
class Store:
    """An open state file. Make one with :meth:`open`."""

    path: Path  #: the file
    sequence: int  #: intervals used so far
    last: IntervalKey | None  #: where the last of them stands in time; None before the first
    state: WatchState  #: after the last of them
    _checksum: str
    _link: sqlite3.Connection

    @classmethod
    def open(cls, path: _Path, settings: WatchSettings) -> Store:
        """Open a state file, or begin a new one.

        InputError when something else stands there, or the state is that of another instance or of
        other settings; PlacementError when another watch keeps the file busy.
        """
        link = _connect(Path(path))
        try:
            with _sane(path):
                if not _empty(link):
                    _check_kind(link, path)  # before anything is changed
                link.execute("PRAGMA journal_mode = WAL")
                link.execute("PRAGMA synchronous = FULL")
            with _one_transaction(link, path):
                if _empty(link):
                    _begin(link, settings)
                _check_kind(link, path)
                _check_settings(link, path, settings)
                return cls(Path(path), *_load(link, path), link)
        except BaseException:
            link.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._link.close()

    def known(self, key: IntervalKey) -> tuple[str, str] | None:
        """Return source and digest of the interval that was used for a place in time, or None."""
        with self._transaction():
            rows = _recommendations(self._link, self.path, "WHERE kind = ? AND place = ?", *key)
        return rows[0][4:6] if rows else None

    def commit_interval(self, arrival: Arrival, state: WatchState, advice: Recommendation) -> None:
        """Commit an interval: its advice, the state after it, and that all before is shown."""
        reading = arrival.reading
        used = self.sequence + 1
        document = json.dumps(advice.document, allow_nan=False)
        row = (used, reading.label, *reading.key, arrival.source, reading.digest, document)
        with self._transaction():
            checksum = _put_state(self._link, used, state, shown=self.sequence)
            self._link.execute(
                "INSERT INTO recommendation VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, _checksum(row))
            )
        self.sequence, self._checksum = used, checksum
        self.last = reading.key
        self.state = state

    def record_deployed(self, current: Configuration, source: str, names: Sequence[str]) -> None:
        """Record that another configuration runs than the one last advised: `source` says so."""
        words = f"leader {names[current.leader]}, "
        words += ", ".join(
            f"{title} {', '.join(names[site] for site in chosen)}"
            for title, chosen in (("voters", current.voters), ("replicas", current.replicas))
        )
        state = WatchState(self.state.demand, current, 0)
        with self._transaction():
            checksum = _put_state(self._link, self.sequence, state)
            after = f"after {self.sequence} intervals"
            after = after if self.sequence else "before the first interval"
            _put_report(self._link, Rejection("adopted", source, "", f"{after}: {words}"))
        self.state, self._checksum = state, checksum

    def report(self, report: Rejection) -> bool:
        """Keep a report; whether it is new."""
        with self._transaction():
            return _put_report(self._link, report)

    def files(self) -> dict[str, FileMark]:
        """Return the files that are done with, by name."""
        with self._transaction():
            rows = self._link.execute("SELECT name, size, changed_ns, digest FROM file").fetchall()
        # a mark that was changed fits no file: the file is read again
        return {row[0]: FileMark(*row) for row in rows}

    def finish(self, marks: tuple[FileMark, ...]) -> None:
        """Remember files as done with."""
        if marks:
            with self._transaction():
                self._link.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?)", marks)

    def not_shown(self) -> list[Mapping[str, object]]:
        """Return the recommendations that are not known to have been shown."""
        which = "WHERE sequence > (SELECT shown FROM state) ORDER BY sequence"
        with self._transaction():
            return [json.loads(row[6]) for row in _recommendations(self._link, self.path, which)]

    def shown(self) -> None:
        """Remember that every recommendation was shown."""
        with self._transaction():
            self._link.execute("UPDATE state SET shown = sequence")

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        """Begin a transaction on the state that this process knows, or refuse another one."""
        with _one_transaction(self._link, self.path):
            if self._link.execute("SELECT checksum FROM state").fetchone() != (self._checksum,):
                raise _another_watch(self.path)
            yield


def read_log(path: _Path) -> tuple[list[Mapping[str, object]], list[Rejection]]:
    """Return all recommendations and reports of a state file, without changing it."""
    if not Path(path).is_file():
        raise InputError("no such state file", source=os.fspath(path))
    link = _connect(Path(path))
    try:
        with _sane(path):
            _check_kind(link, path)
            rows = _recommendations(link, path, "ORDER BY sequence")
            reports = link.execute(
                "SELECT kind, source, interval, message FROM report ORDER BY id"
            ).fetchall()
    finally:
        link.close()
    return [json.loads(row[6]) for row in rows], [Rejection(*map(str, row)) for row in reports]


def _connect(path: Path) -> sqlite3.Connection:
    good, expected = not path.is_dir() and path.absolute().parent.is_dir(), "a file in a folder"
    words, expected = "no place for a state file", f"{expected} that exists"
    require(good, "", words, expected=expected, source=os.fspath(path))
    check_file(path, force=True, regular=True)
    short = path.exists() and path.stat().st_size == 1  # SQLite takes that for an empty file
    require(not short, "", "no state file", expected="a state file", source=os.fspath(path))
    with _sane(path):
        return sqlite3.connect(path, isolation_level=None, timeout=10.0)


@contextlib.contextmanager
def _sane(path: _Path) -> Iterator[None]:
    """Turn the errors of SQLite into ours, naming the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # none where a text is not UTF-8
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise _another_watch(path) from None
        full = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
        expected = "room on the disk, and leave to write" if full else "a state file of a watch"
        raise InputError(
            f"cannot be used ({error})", source=os.fspath(path), expected=expected
        ) from None


@contextlib.contextmanager
def _one_transaction(link: sqlite3.Connection, path: _Path) -> Iterator[None]:
    with _sane(path):
        link.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            link.execute("ROLLBACK")
            raise
        link.execute("COMMIT")


def _another_watch(path: _Path) -> PlacementError:
    return PlacementError(f"{os.fspath(path)}: another watch writes to this state file")


def _empty(link: sqlite3.Connection) -> bool:
    return not link.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _check_kind(link: sqlite3.Connection, path: _Path) -> None:
    application = link.execute("PRAGMA application_id").fetchone()[0]
    version = link.execute("PRAGMA user_version").fetchone()[0]
    words = "a database of another kind"
    expected = "a state file of a watch, or a new path"
    require(application == _APPLICATION, "", words, expected=expected, source=os.fspath(path))
    words = "a version this release cannot read"
    require(version == VERSION, "version", words, version, str(VERSION), source=os.fspath(path))


def _begin(link: sqlite3.Connection, settings: WatchSettings) -> None:
    """Create the tables in an empty file."""
    for statement in _TABLES.split(";"):
        link.execute(statement)
    _put_state(link, 0, initial_state(settings), shown=0)
    for key, value in (
        ("fingerprint", settings.fingerprint),
        ("settings", json.dumps(settings.document(), sort_keys=True)),
    ):
        link.execute("INSERT INTO meta VALUES (?, ?)", (key, value))
    link.execute(f"PRAGMA application_id = {_APPLICATION}")
    link.execute(f"PRAGMA user_version = {VERSION}")


def _put_state(
    link: sqlite3.Connection, sequence: int, state: WatchState, shown: int | None = None
) -> str:
    """Write the row of `state`, and return its checksum; `shown` stays as it is unless given."""
    demand = json.dumps(state.demand.to_json())
    now, current = state.current, None
    if now is not None:
        current = json.dumps([now.leader, list(now.voters), list(now.replicas)])
    row = (sequence, demand, current, state.streak)
    checksum = _checksum(row)
    link.execute(
        "INSERT OR REPLACE INTO state VALUES "
        "(1, ?, ?, ?, ?, ?, coalesce(?, (SELECT shown FROM state)))",
        (*row, checksum, shown),
    )
    return checksum


def _put_report(link: sqlite3.Connection, report: Rejection) -> bool:
    """Keep a report; whether it is new."""
    # half of a surrogate pair, which JSON can carry, is no text that a database takes
    texts = [text.encode("utf-8", "backslashreplace").decode() for text in report]
    fields = "kind, source, interval, message, digest"
    added = link.execute(f"INSERT OR IGNORE INTO report ({fields}) VALUES (?, ?, ?, ?, ?)", texts)
    return added.rowcount == 1


def _checksum(row: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(list(row), default=repr).encode()).hexdigest()


def _hold_to_checksum(path: _Path, field: str, row: Sequence[object]) -> None:
    """Refuse a row whose last column is not the checksum of the columns before it."""
    if row[-1] != _checksum(row[:-1]):
        raise _refused(path, field, "a changed row", "the row that a watch wrote")


def _recommendations(
    link: sqlite3.Connection, path: _Path, which: str, *values: object
) -> list[tuple[Any, ...]]:
    """Return some rows of `recommendation`, each held to its checksum."""
    rows: list[tuple[Any, ...]] = link.execute(
        f"SELECT {_COLUMNS}, checksum FROM recommendation {which}", values
    ).fetchall()
    for row in rows:
        _hold_to_checksum(path, f"recommendation {row[0]}", row)
    return rows


def _check_settings(link: sqlite3.Connection, path: _Path, settings: WatchSettings) -> None:
    stored = dict(link.execute("SELECT key, value FROM meta").fetchall())
    if stored.get("fingerprint") == settings.fingerprint:
        return
    now = settings.document()
    try:
        before = dict(json.loads(stored["settings"]))
    except (KeyError, TypeError, ValueError):
        raise _refused(path, "meta.settings", stored, "the settings of a watch") from None
    other = next((key for key in now if before.get(key) != now[key]), "settings")
    words = "the state file has other settings"
    expected = f"{before.get(other)!r}, as at its start; or a new state file"
    raise refused(os.fspath(path), other, words, now.get(other), expected)


def _load(link: sqlite3.Connection, path: _Path) -> tuple[int, IntervalKey | None, WatchState, str]:
    """Return the intervals used, the time of the last, the state after, and its checksum."""
    row = link.execute(
        "SELECT sequence, demand, current, streak, checksum, shown FROM state"
    ).fetchone()
    if row is None:
        raise _refused(path, "state", None, "one row")
    _hold_to_checksum(path, "state", row[:5])
    sequence, demand, current, streak, checksum, shown = row
    count, first, final = link.execute(
        "SELECT count(*), min(sequence), max(sequence) FROM recommendation"
    ).fetchone()
    if count != sequence or (count and (first, final) != (1, sequence)):
        raise _refused(path, "state.sequence", sequence, f"{count}, as many as recommendations")
    if shown not in range(sequence + 1):
        raise _refused(path, "state.shown", shown, f"a whole number from 0 to {sequence}")
    running = None if current is None else Configuration.of(*json.loads(current))
    state = WatchState(DecayedCounts.from_json(json.loads(demand)), running, streak)
    last = _recommendations(link, path, "WHERE sequence = ?", sequence)
    return sequence, IntervalKey(last[0][2], last[0][3]) if last else None, state, checksum


def _refused(path: _Path, field: str, value: object, expected: str) -> InputError:
    """Return the error for a value that no watch wrote."""
    expected += "; restore the file, or begin a new state file"
    return refused(os.fspath(path), field, "not a state file of a watch", value, expected)

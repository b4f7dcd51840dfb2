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
file is refused before it reads or writes. A checksum beside each row of state and recommendation
shows changes that no watch made.

Values of a state file as they were written, or an error that names table and column.

A state file is a database that other programs may open and change. Every value that is read from it
is checked here before it is used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placement.errors import InputError, PlacementError
from placement.io.formats.document import parse_json
from placement.io.formats.files import check_file
from placement.model.configuration import Configuration
from placement.overtime.decayed_counts import DecayedCounts
from placement.overtime.watch.arrivals import Arrival, FileMark
from placement.overtime.watch.interval_reader import IntervalKey
from placement.overtime.watch.recommend import Recommendation, WatchState, initial_state
from placement.overtime.watch.watch_settings import WatchSettings

__all__ = [
    "VERSION",
    "Rejection",
    "Store",
    "UsedInterval",
    "read_log",
    "refused",
    "stored_configuration",
    "stored_demand",
    "stored_json",
    "stored_recommendation",
    "stored_text",
    "stored_whole",
]

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


class Rejection(NamedTuple):
    """Something that was not used, and why.

    Attributes
    ----------
    kind
        "late", "duplicate", "conflict", "malformed", "incomplete", "ignored" or "unreadable"; or
        "adopted", for a configuration that runs instead of the one recommended.
    source, interval
        Where it stood; the interval is empty for a whole file.
    message
        In a sentence.
    """

    kind: str
    source: str
    interval: str
    message: str


class UsedInterval(NamedTuple):
    """An interval that was used: its number, and what it came from."""

    sequence: int
    source: str
    digest: str


@dataclass
class Store:
    """An open state file. Make one with :meth:`open`.

    Attributes
    ----------
    path
        The file.
    sequence
        Intervals used so far.
    last
        Where the last of them stands in time; None before the first.
    state
        After the last of them.
    """

    path: Path
    sequence: int
    last: IntervalKey | None
    state: WatchState
    _checksum: str
    _link: sqlite3.Connection

    @classmethod
    def open(cls, path: str | os.PathLike[str], settings: WatchSettings) -> Store:
        """Open a state file, or begin a new one.

        Raises
        ------
        InputError
            When something else stands there, or the state is that of another instance or of other
            settings.
        PlacementError
            When another watch keeps the file busy.
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
                return cls(Path(path), *_load(link, path, settings), link)
        except BaseException:
            link.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._link.close()

    def known(self, key: IntervalKey) -> UsedInterval | None:
        """Return the interval that was used for a place in time, or None."""
        with self._transaction():
            row = self._link.execute(
                f"SELECT {_COLUMNS}, checksum FROM recommendation WHERE kind = ? AND place = ?",
                tuple(key),
            ).fetchone()
        if row is None:
            return None
        used = UsedInterval(
            stored_whole(row[0], self.path, "recommendation.sequence", least=1, most=self.sequence),
            stored_text(row[4], self.path, "recommendation.source"),
            stored_text(row[5], self.path, "recommendation.digest"),
        )
        _hold_to_checksum(self.path, f"recommendation {row[0]}", row)
        return used

    def commit_interval(self, arrival: Arrival, state: WatchState, advice: Recommendation) -> None:
        """Commit an interval: its recommendation, the state after it, and that all before is shown.

        Raises
        ------
        PlacementError
            When another process has written to the state meanwhile.
        """
        reading = arrival.reading
        used = self.sequence + 1
        document = json.dumps(advice.document, allow_nan=False)
        row = (used, reading.label, *reading.key, arrival.source, reading.digest, document)
        with self._transaction():
            checksum = _put_state(self._link, used, state, shown=self.sequence)
            self._link.execute(
                "INSERT INTO recommendation VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*row, _checksum(row)),
            )
        self.sequence, self._checksum = used, checksum
        self.last = reading.key
        self.state = state

    def record_deployed(self, current: Configuration, source: str, names: Sequence[str]) -> None:
        """Record that the running configuration is not the last recommended one.

        Parameters
        ----------
        current
            What runs.
        source
            Who says so, for the reports.
        names
            Of the sites.
        """
        words = f"leader {names[current.leader]}, "
        words += ", ".join(
            f"{title} {', '.join(names[site] for site in chosen)}"
            for title, chosen in (("voters", current.voters), ("replicas", current.replicas))
        )
        state = WatchState(self.state.demand, current, 0)
        with self._transaction():
            checksum = _put_state(self._link, self.sequence, state)
            after = (
                "before the first interval"
                if not self.sequence
                else f"after {self.sequence} intervals"
            )
            self._link.execute(
                "INSERT OR IGNORE INTO report (kind, source, interval, message, digest) "
                "VALUES ('adopted', ?, ?, ?, '')",
                (source, "", f"{after}: {words}"),
            )
        self.state, self._checksum = state, checksum

    def report(self, report: Rejection, digest: str) -> bool:
        """Keep a report; whether it is new."""
        # half of a surrogate pair, which JSON can carry, is no text that a database takes
        texts = [text.encode("utf-8", "backslashreplace").decode() for text in report]
        with self._transaction():
            cursor = self._link.execute(
                "INSERT OR IGNORE INTO report (kind, source, interval, message, digest) "
                "VALUES (?, ?, ?, ?, ?)",
                (*texts, digest),
            )
            return cursor.rowcount == 1

    def files(self) -> dict[str, FileMark]:
        """Return the files that are done with, by name."""
        with self._transaction():
            rows = self._link.execute("SELECT name, size, changed_ns, digest FROM file").fetchall()
        marks = [
            FileMark(
                stored_text(name, self.path, "file.name"),
                stored_whole(size, self.path, "file.size"),
                stored_whole(changed, self.path, "file.changed_ns", least=-(2**63)),
                stored_text(digest, self.path, "file.digest"),
            )
            for name, size, changed, digest in rows
        ]
        return {mark.name: mark for mark in marks}

    def finish(self, marks: tuple[FileMark, ...]) -> None:
        """Remember files as done with."""
        if marks:
            with self._transaction():
                self._link.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?)", marks)

    def not_shown(self) -> list[Mapping[str, object]]:
        """Return the recommendations that are not known to have been shown."""
        with self._transaction():
            rows = self._link.execute(
                f"SELECT {_COLUMNS}, checksum FROM recommendation "
                "WHERE sequence > (SELECT shown FROM state) ORDER BY sequence"
            ).fetchall()
        return [_recommendation(row, self.path) for row in rows]

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


def read_log(path: str | os.PathLike[str]) -> tuple[list[Mapping[str, object]], list[Rejection]]:
    """Return all recommendations and reports of a state file, without changing it.

    Raises
    ------
    InputError
        When there is no state file.
    """
    if not Path(path).is_file():
        raise InputError("no such state file", source=os.fspath(path))
    link = _connect(Path(path))
    try:
        with _sane(path):
            _check_kind(link, path)
            rows = link.execute(
                f"SELECT {_COLUMNS}, checksum FROM recommendation ORDER BY sequence"
            ).fetchall()
            reports = link.execute(
                "SELECT kind, source, interval, message FROM report ORDER BY id"
            ).fetchall()
    finally:
        link.close()
    documents = [_recommendation(row, path) for row in rows]
    names = ("report.kind", "report.source", "report.interval", "report.message")
    return documents, [
        Rejection(*(stored_text(cell, path, name) for cell, name in zip(row, names, strict=True)))
        for row in reports
    ]


def _connect(path: Path) -> sqlite3.Connection:
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(
            "no place for a state file",
            source=os.fspath(path),
            expected="a file in a folder that exists",
        )
    check_file(path, force=True, regular=True)
    with _sane(path):
        return sqlite3.connect(path, isolation_level=None, timeout=10.0)


@contextlib.contextmanager
def _sane(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn the errors of SQLite into ours, naming the file."""
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.OperationalError) and _is_busy(error):
            raise _another_watch(path) from None
        raise InputError(
            f"cannot be used ({error})", source=os.fspath(path), expected="a state file of a watch"
        ) from None


@contextlib.contextmanager
def _one_transaction(link: sqlite3.Connection, path: str | os.PathLike[str]) -> Iterator[None]:
    with _sane(path):
        link.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            link.execute("ROLLBACK")
            raise
        link.execute("COMMIT")


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _another_watch(path: str | os.PathLike[str]) -> PlacementError:
    return PlacementError(f"{os.fspath(path)}: another watch writes to this state file")


def _empty(link: sqlite3.Connection) -> bool:
    return not link.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _check_kind(link: sqlite3.Connection, path: str | os.PathLike[str]) -> None:
    application = link.execute("PRAGMA application_id").fetchone()[0]
    version = link.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION:
        raise InputError(
            "a database of another kind",
            source=os.fspath(path),
            expected="a state file of a watch, or a new path",
        )
    if version != VERSION:
        raise InputError(
            "a version this release cannot read",
            source=os.fspath(path),
            field="version",
            value=version,
            expected=str(VERSION),
        )


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
    row = (sequence, demand, _configuration_text(state.current), state.streak)
    checksum = _checksum(row)
    link.execute(
        "INSERT OR REPLACE INTO state VALUES "
        "(1, ?, ?, ?, ?, ?, coalesce(?, (SELECT shown FROM state)))",
        (*row, checksum, shown),
    )
    return checksum


def _checksum(row: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(list(row), default=repr).encode()).hexdigest()


def _hold_to_checksum(path: str | os.PathLike[str], field: str, row: Sequence[object]) -> None:
    """Refuse a row whose last column is not the checksum of the columns before it."""
    if row[-1] != _checksum(row[:-1]):
        raise refused(path, field, "a changed row", "the row that a watch wrote")


def _recommendation(row: Sequence[object], path: str | os.PathLike[str]) -> Mapping[str, object]:
    number = stored_whole(row[0], path, "recommendation.sequence")
    document = stored_recommendation(row[6], path, number)
    _hold_to_checksum(path, f"recommendation {number}", row)
    return document


def _check_settings(
    link: sqlite3.Connection, path: str | os.PathLike[str], settings: WatchSettings
) -> None:
    stored = dict(link.execute("SELECT key, value FROM meta").fetchall())
    if stored.get("fingerprint") == settings.fingerprint:
        return
    before, now = stored_json(stored.get("settings"), path, "meta.settings"), settings.document()
    if not isinstance(before, dict):
        raise refused(path, "meta.settings", before, "the settings of a watch")
    other = next((key for key in now if before.get(key) != now[key]), "settings")
    raise InputError(
        "the state file has other settings",
        source=os.fspath(path),
        field=other,
        value=now.get(other),
        expected=f"{before.get(other)!r}, as at its start; or a new state file",
    )


def _load(
    link: sqlite3.Connection, path: str | os.PathLike[str], settings: WatchSettings
) -> tuple[int, IntervalKey | None, WatchState, str]:
    """Return the intervals used, the time of the last, the state after, and its checksum."""
    row = link.execute(
        "SELECT sequence, demand, current, streak, checksum, shown FROM state"
    ).fetchone()
    if row is None:
        raise refused(path, "state", None, "one row")
    empty = initial_state(settings)
    sequence = stored_whole(row[0], path, "state.sequence")
    count, first, final = link.execute(
        "SELECT count(*), min(sequence), max(sequence) FROM recommendation"
    ).fetchone()
    if count != sequence or (count and (first, final) != (1, sequence)):
        raise refused(path, "state.sequence", sequence, f"{count}, as many as recommendations")
    demand = stored_demand(row[1], path, empty.demand, sequence)
    current = stored_configuration(row[2], path, len(settings.instance.sites))
    streak = stored_whole(row[3], path, "state.streak", most=sequence)
    stored_whole(row[5], path, "state.shown", most=sequence)
    _hold_to_checksum(path, "state", row[:5])
    last = link.execute(
        "SELECT kind, place FROM recommendation WHERE sequence = ?", [sequence]
    ).fetchone()
    if last is None:
        return sequence, None, WatchState(demand, current, streak), row[4]
    kind = stored_text(last[0], path, "recommendation.kind")
    if kind not in ("number", "time"):
        raise refused(path, "recommendation.kind", kind, "'number' or 'time'")
    place = stored_whole(last[1], path, "recommendation.place", least=-(2**63))
    return sequence, IntervalKey(kind, place), WatchState(demand, current, streak), row[4]


def _configuration_text(configuration: Configuration | None) -> str | None:
    if configuration is None:
        return None
    return json.dumps(
        [configuration.leader, list(configuration.voters), list(configuration.replicas)]
    )


_Path = str | os.PathLike[str]

_TEXTS = ("interval", "action")
_NUMBERS = ("now_ms", "then_ms")


def refused(path: _Path, field: str, value: object, expected: str) -> InputError:
    """Return the error for a value that no watch wrote."""
    return InputError(
        "not a state file of a watch",
        source=os.fspath(path),
        field=field,
        value=value,
        expected=f"{expected}; restore the file, or begin a new state file",
    )


def stored_whole(
    value: object, path: _Path, field: str, *, least: int = 0, most: int = 2**63 - 1
) -> int:
    """Return a whole number from `least` to `most`, or raise InputError."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise refused(path, field, value, f"a whole number from {least} to {most}")
    return value


def stored_text(value: object, path: _Path, field: str) -> str:
    """Return a text, or raise InputError."""
    if not isinstance(value, str):
        raise refused(path, field, value, "a text")
    return value


def stored_json(value: object, path: _Path, field: str) -> object:
    """Return the value of a JSON text, or raise InputError."""
    text = stored_text(value, path, field)
    try:
        return parse_json(text, field)
    except InputError as error:  # broken, a number out of range, a key twice, nested too deeply
        raise refused(path, field, text[:60], f"JSON ({error})") from None


def stored_configuration(value: object, path: _Path, sites: int) -> Configuration | None:
    """Return the present configuration: [leader, [voters], [replicas]], or None for no value.

    Raises
    ------
    InputError
        For anything but site indices below `sites`, each once, with the leader among the voters and
        these among the replicas.
    """
    field = "state.current"
    if value is None:
        return None
    found = stored_json(value, path, field)

    def bad() -> InputError:
        expected = (
            f"[leader, [voters], [replicas]] of the {sites} sites, leader ∈ voters ⊆ replicas"
        )
        return refused(path, field, value, expected)

    if not isinstance(found, list) or len(found) != 3:
        raise bad()
    leader, voters, replicas = found
    if not isinstance(voters, list) or not isinstance(replicas, list):
        raise bad()
    for site in (leader, *voters, *replicas):
        if isinstance(site, bool) or not isinstance(site, int) or not 0 <= site < sites:
            raise bad()
    if not {leader} <= set(voters) <= set(replicas):
        raise bad()
    if len(set(voters)) < len(voters) or len(set(replicas)) < len(replicas):
        raise bad()
    return Configuration.of(leader, voters, replicas)


def stored_demand(
    value: object, path: _Path, empty: DecayedCounts, intervals: int
) -> DecayedCounts:
    """Return the decayed counts after some intervals.

    Parameters
    ----------
    value
        JSON text of :meth:`DecayedCounts.to_json`.
    path
        The state file, for messages.
    empty
        The state before the first interval, which gives decay and shape.
    intervals
        How many intervals were used.

    Raises
    ------
    InputError
        For another decay, shape, number of intervals or weight, and counts that are no finite
        numbers >= 0.
    """
    field = "state.demand"
    found = stored_json(value, path, field)
    if not isinstance(found, Mapping):
        raise refused(path, field, found, "decayed counts")
    try:
        demand = DecayedCounts.from_json(found)
    except (InputError, OverflowError) as error:
        raise refused(path, field, found, f"decayed counts ({error})") from None
    weight = 0.0
    for _ in range(intervals):
        weight = weight / empty.decay.factor + 1.0
    for name, there, due in (
        ("decay", demand.decay.factor, empty.decay.factor),
        ("shape", demand.counts.shape, empty.counts.shape),
        ("intervals", demand.intervals, intervals),
    ):
        if there != due:
            raise refused(path, f"{field}.{name}", there, str(due))
    if not np.isclose(demand.weight, weight, rtol=1e-6):
        raise refused(
            path, f"{field}.weight", demand.weight, f"{weight:g} of {intervals} intervals"
        )
    return demand


def stored_recommendation(value: object, path: _Path, sequence: object) -> Mapping[str, object]:
    """Return the document of a recommendation as far as it is shown.

    Raises
    ------
    InputError
        For JSON of another form.
    """
    field = f"recommendation {sequence}"
    found = stored_json(value, path, field)
    if not isinstance(found, dict):
        raise refused(path, field, found, "a document of a recommendation")

    def check(name: str, kind: Callable[[object], bool], expected: str) -> None:
        if name not in found or not kind(found[name]):
            raise refused(path, f"{field}: {name}", found.get(name), expected)

    for name in _TEXTS:
        check(name, lambda x: isinstance(x, str), "a text")
    check("leader", lambda x: x is None or isinstance(x, str), "the name of a site, or null")
    for name in _NUMBERS:
        check(name, lambda x: x is None or _is_number(x), "a number, or null")
    check("reasons", lambda x: _all(x, lambda y: isinstance(y, str)), "a list of sentences")
    check(
        "steps",
        lambda x: _all(x, lambda y: isinstance(y, dict) and isinstance(y.get("text"), str)),
        "a list of steps",
    )
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _all(values: object, kind: Callable[[object], bool]) -> bool:
    return isinstance(values, list) and all(map(kind, values))

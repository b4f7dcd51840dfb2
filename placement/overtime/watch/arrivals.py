"""Arrivals of demand: intervals of whole files in a folder, or of one table that grows.

A table has a column ``interval`` and either ``client``, ``operation``, ``count`` (long) or
``client`` and one column per operation (wide); CSV, TSV, Parquet, or JSON with one such row per
line. Clients and operations that are not listed issued nothing. Labels of intervals are whole
numbers or ISO 8601 times (without an offset: UTC), because something must say which came first.
An interval is read whole, or refused whole with the reason.

*A folder.* A file counts when it is whole: write it under a name that begins with a dot or ends in
``.tmp`` or ``.part``, and rename it. For writers that cannot, a file must have stood unchanged for
`settle` seconds, before and after it is read, and a text must end with a line feed. Within one look
all intervals are taken in order of time, whatever the files are called.

*A table that grows.* Rows are appended, oldest interval first; an interval is finished when a row
of another one follows. The order of the rows is the order of arrival, so that what is late does not
depend on when a reader looked.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from placement.errors import InputError, MissingDependencyError, refused, require
from placement.io.demand_tables import demand_of
from placement.io.formats.column_reader import ColumnTable
from placement.io.formats.document import parse_json
from placement.io.formats.files import check_input, read_input
from placement.io.formats.tables import Cell, Table, name_cell, parse_csv, read_table
from placement.support.checks import FloatArray

SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson")
"""Endings of the files that are read."""

_LONG = ("client", "operation", "count")
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


class IntervalKey(NamedTuple):
    """Position of an interval in time."""

    kind: str  #: "number" or "time"; the two can't be compared, and one series has one kind
    value: int  #: the number, or microseconds since 1970 UTC


def interval_key(label: str) -> IntervalKey:
    """Return where a label stands in time: a whole number or an ISO 8601 time, else InputError.

    >>> interval_key("7"), interval_key("1970-01-01T01:00+01:00")
    (IntervalKey(kind='number', value=7), IntervalKey(kind='time', value=0))
    """
    text = label.strip()
    if _WHOLE.fullmatch(text):
        return IntervalKey("number", int(text))
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        expected = "a whole number or an ISO 8601 time"
        raise refused("", "interval", "not a place in time", label, expected) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return IntervalKey("time", (moment - _EPOCH) // _MICROSECOND)


@dataclass(frozen=True, slots=True)
class CountColumns:
    """Columns of a table of counts: the names its rows refer to."""

    #: `clients`, `operations`: names, in the order of the instance
    clients: tuple[str, ...]
    operations: tuple[str, ...]
    #: rows of this database only, where a table has a column `database`; None: a table with that
    #: column is refused
    database: str | None = None


@dataclass(frozen=True, eq=False)
class IntervalReading:
    """Counts of one interval, as read from a file."""

    label: str  #: as written
    key: IntervalKey  #: where it stands in time
    counts: FloatArray | None  #: shape (clients, operations), read-only; None when it is malformed
    problem: str  #: why it is malformed; empty when it is not
    row: int  #: first row of it in the file
    digest: str  #: SHA-256 of the counts; of the problem when there are none


def read_rows(path: str | os.PathLike[str], content: bytes) -> Table:
    """Read a table from what a file holds, as far as it counts; JSON lines included.

    The suffix of `path` says what it is. Parquet is read from the file itself.
    """
    source, suffix = os.fspath(path), Path(path).suffix.lower()
    try:
        if suffix in (".parquet", ".pq"):
            return read_table(path)
        if suffix in (".jsonl", ".ndjson"):
            return _json_lines(source, content)
        return parse_csv(_decoded(source, content), source, "\t" if suffix == ".tsv" else ",")
    except InputError:
        raise
    except (ValueError, ArithmeticError, MemoryError) as error:
        # of a parser: a time that Python cannot hold, a file that memory cannot hold
        words = str(error) or type(error).__name__
        raise InputError(f"cannot be read ({words})", source=source, expected="a table") from None


def readings(table: Table, columns: CountColumns) -> tuple[IntervalReading, ...]:
    """Return the intervals of a whole file in order of time; rows of one may stand anywhere.

    Columns that are missing or unknown, a row without a usable interval, and labels of two kinds
    are refused.
    """
    grouped: dict[IntervalKey, list[int]] = {}
    for row, found in _keys(table, columns):
        if isinstance(found, InputError):
            raise found
        grouped.setdefault(found, []).append(row)
    if not grouped:
        raise InputError("no rows", source=table.source, expected="a row per client at least")
    return tuple(_reading(table, columns, grouped[key], key, "") for key in sorted(grouped))


def runs(table: Table, columns: CountColumns) -> tuple[IntervalReading, ...]:
    """Return the intervals of a table that grows: consecutive rows of one label, as they stand.

    An interval that comes back later in the table is another reading of the same key. A row that
    has no usable interval may belong to the interval before it or to the one after it: both are
    malformed then.
    """
    found: list[tuple[IntervalKey, list[int], list[str]]] = []
    stain: list[str] = []
    for row, key in _keys(table, columns):
        if isinstance(key, InputError):
            stain.append(_said_of(Path(table.source), key))
            if found:
                found[-1][2].append(stain[-1])
            continue
        if not found or found[-1][0] != key:
            found.append((key, [], stain))
        found[-1][1].append(row)
        stain = []
    return tuple(
        _reading(table, columns, members, key, problems[0] if problems else "")
        for key, members, problems in found
    )


def _keys(table: Table, columns: CountColumns) -> Iterator[tuple[int, IntervalKey | InputError]]:
    """Yield the rows that count, with the place in time of each, or why it has none."""
    interval, database, kind = table.column("interval"), None, ""
    if "database" in table.columns:
        if columns.database is None:
            expected = "a table of one, or the name of the one that is meant (--database)"
            words, source = "several databases in one table", table.source
            raise InputError(words, source=source, field="database", expected=expected)
        database = table.column("database")
    for row, cells in enumerate(table.rows):
        try:
            if database is not None:
                name = name_cell(cells[database], table.at(row), "database")
                if name != columns.database:
                    continue
            label = name_cell(cells[interval], table.at(row), "interval")
            try:
                key = interval_key(label)
            except InputError as error:
                raise error.at(table.at(row)) from None
            words, same, at = "intervals of two kinds", kind in ("", key.kind), table.at(row)
            require(same, "interval", words, label, f"a {kind}, as before", source=at)
        except InputError as error:
            yield row, error
            continue
        kind = key.kind
        yield row, key


def _reading(
    table: Table, columns: CountColumns, rows: Sequence[int], key: IntervalKey, problem: str
) -> IntervalReading:
    first = rows[0]
    label = name_cell(table.rows[first][table.column("interval")], table.at(first), "interval")
    number = table.numbers[first]
    numbers = tuple(table.numbers[row] for row in rows)
    part = Table(table.source, table.columns, tuple(table.rows[row] for row in rows), numbers)
    counts = np.zeros((len(columns.clients), len(columns.operations)))
    try:
        found = demand_of(
            ColumnTable.of(part),
            clients=columns.clients,
            operations=columns.operations,
            complete=False,
        )
        counts += found.counts.sum(axis=(0, 1))  # no negative zeros: equal counts, equal bytes
    except InputError as error:
        problem = problem or _said_of(Path(table.source), error)
    if problem:
        digest = hashlib.sha256(problem.encode(errors="replace")).hexdigest()
        return IntervalReading(label, key, None, problem, number, digest)
    counts.flags.writeable = False
    digest = hashlib.sha256(counts.astype("<f8").tobytes()).hexdigest()
    return IntervalReading(label, key, counts, "", number, digest)


def _decoded(source: str, text: bytes) -> str:
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not text: byte {error.start} is not UTF-8", source=source, expected="UTF-8"
        ) from None


def _json_lines(source: str, text: bytes) -> Table:
    columns: dict[str, None] = {}
    found: list[tuple[int, dict[str, Cell]]] = []
    for number, line in enumerate(_decoded(source, text).split("\n"), start=1):
        if not line.strip():
            continue
        at = f"{source}, row {number}"
        value = parse_json(line, at)
        if not isinstance(value, dict):
            raise InputError("not an object", source=at, expected='{"interval": …, "client": …}')
        columns.update(dict.fromkeys(value))
        found.append((number, value))
    if not found:
        raise InputError("empty", source=source, expected="a JSON object per line")
    # An operation that a line does not name was not issued there; anything else it must name.
    rest = {"interval", "database", *_LONG}
    rows = tuple(
        tuple(value.get(name, None if name in rest else 0.0) for name in columns)
        for _, value in found
    )
    return Table(source, tuple(columns), rows, tuple(number for number, _ in found))


# Arrivals of demand: whole files in a folder, or the finished intervals of one table that grows

_UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", "~")
_BINARY = (".parquet", ".pq")


class FileMark(NamedTuple):
    """Properties by which a known file is recognised."""

    name: str
    size: int
    changed_ns: int
    digest: str


class Arrival(NamedTuple):
    """An interval, and its file."""

    source: str
    reading: IntervalReading


class Rejection(NamedTuple):
    """Something that was not used, and why."""

    #: "late", "duplicate", "conflict", "malformed", "incomplete", "ignored" or "unreadable"; or
    #: "adopted", for a configuration that runs instead of the one recommended
    kind: str
    #: `source`, `interval`: where it stood; the interval is empty for a whole file
    source: str
    interval: str
    message: str  #: in a sentence
    digest: str = ""  #: of what was not used, where it could be read


class ArrivalScan(NamedTuple):
    """Result of one scan of the source."""

    arrivals: tuple[Arrival, ...] = ()  #: intervals of the files that are not marked as done
    refused: tuple[Rejection, ...] = ()  #: files that cannot be used as they are
    #: marks of the files, to be kept once all that came in them is dealt with
    done: tuple[FileMark, ...] = ()
    waiting: tuple[str, ...] = ()  #: files that may still be growing


def _unusable(name: str, text: str, kind: str = "unreadable", digest: str = "") -> ArrivalScan:
    """Return a scan that found a file of which nothing can be taken."""
    return ArrivalScan(refused=(Rejection(kind, name, "", text, digest),))


class Source(Protocol):
    """Source of intervals: a folder of files, or one growing table."""

    @property
    def in_order(self) -> bool:
        """True when arrivals stand in the order in which they arrived; otherwise time decides."""
        ...

    def scan(self, known: Mapping[str, FileMark]) -> ArrivalScan:
        """Scan the source once; files in `known` that have not changed are skipped."""
        ...


def source_of(
    path: str | os.PathLike[str],
    columns: CountColumns,
    *,
    settle: float = 1.0,
    final: bool = False,
    follow: bool = False,
) -> Source:
    """Return the source at a path: a folder of files that exists, or a table.

    A table need not exist yet if the source will be scanned again (`follow`); `final`: its last
    interval is finished too. A file of a folder must have stood unchanged for `settle` seconds.
    """
    place = Path(path)
    if place.is_dir():
        words = "only a table has a last interval that may be unfinished"
        require(not final, "final", words, str(path), "a table")
        return FolderSource(place, columns, settle)
    words = "neither a folder nor a table"
    expected = "a folder, or a file ending in " + ", ".join(SUFFIXES)
    require(place.suffix.lower() in SUFFIXES, "", words, expected=expected, source=str(path))
    if not place.exists() and not follow:
        raise InputError("no such folder or table", source=str(path))
    return TableSource(place, columns, final)


@dataclass
class FolderSource:
    """A folder into which files with intervals are dropped."""

    folder: Path  #: folder to scan, without subfolders
    columns: CountColumns  #: columns of a row
    settle: float = 1.0  #: seconds for which a file must have stood unchanged
    clock: Callable[[], float] = time.time  #: seconds since 1970, as the file system counts them
    _read: dict[FileMark, ArrivalScan] = field(default_factory=dict, repr=False)

    @property
    def in_order(self) -> bool:
        """Return False: names of files say nothing about time."""
        return False

    def scan(self, known: Mapping[str, FileMark]) -> ArrivalScan:
        """Scan the folder once, in the order of the file names."""
        kept: dict[FileMark, ArrivalScan] = {}
        parts = [
            self._look(name, known, kept)
            for name in sorted(os.listdir(self.folder))
            if not (name.startswith(".") or name.lower().endswith(_UNFINISHED))
        ]
        self._read = kept
        return ArrivalScan(*(tuple(chain(*each)) for each in zip(*parts, strict=True)))

    def _look(
        self, entry: str, known: Mapping[str, FileMark], kept: dict[FileMark, ArrivalScan]
    ) -> ArrivalScan:
        path = self.folder / entry
        name = os.fsencode(entry).decode("utf-8", "backslashreplace")  # of any bytes, a text
        mark = known.get(name)
        try:
            before = path.stat()
            if path.is_dir():
                return ArrivalScan()
            if path.suffix.lower() not in SUFFIXES:
                return _unusable(name, "the name ends in none of " + ", ".join(SUFFIXES), "ignored")
            if mark is not None and (before.st_size, before.st_mtime_ns) == mark[1:3]:
                return ArrivalScan()
            check_input(path)
            if 0 <= self.clock() - before.st_mtime < self.settle:
                return ArrivalScan(waiting=(name,))
            content = read_input(path)
            digest = hashlib.sha256(content).hexdigest()
            fresh = FileMark(name, before.st_size, before.st_mtime_ns, digest)
            if mark is not None and mark.digest == digest:
                return ArrivalScan(done=(fresh,))  # touched, not changed
            if fresh not in self._read:
                self._read[fresh] = self._parsed(path, content, fresh)
            after = path.stat()
        except FileNotFoundError:  # taken away while we looked
            return ArrivalScan()
        except OSError as error:
            return _unusable(name, f"cannot be read ({error.strerror})")
        except InputError as error:
            if not path.exists():  # taken away, as above
                return ArrivalScan()
            return _unusable(name, str(error))
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            return ArrivalScan(waiting=(name,))
        kept[fresh] = self._read[fresh]
        return kept[fresh]

    def _parsed(self, path: Path, content: bytes, mark: FileMark) -> ArrivalScan:
        if path.suffix.lower() not in _BINARY and not content.endswith(b"\n"):
            message = "not whole: the last line does not end with a line feed"
            scan = _unusable(mark.name, message, "incomplete", mark.digest)
            return scan._replace(waiting=(mark.name,))
        try:
            found = readings(read_rows(path, content), self.columns)
        except InputError as error:
            scan = _unusable(mark.name, _said_of(path, error), "malformed", mark.digest)
            return scan._replace(done=(mark,))
        except MissingDependencyError as error:  # not done: a package is missing
            return _unusable(mark.name, str(error), digest=mark.digest)
        return ArrivalScan(tuple(Arrival(mark.name, reading) for reading in found), done=(mark,))


@dataclass
class TableSource:
    """Source that reads one table, which grows at its end."""

    path: Path  #: the file; it may appear later
    columns: CountColumns  #: what rows are about
    final: bool = False  #: whether the last interval is finished although nothing follows it
    _seen: tuple[int, int] | None = field(default=None, repr=False)

    @property
    def in_order(self) -> bool:
        """Return True: rows stand in the order in which they were appended."""
        return True

    def scan(self, known: Mapping[str, FileMark]) -> ArrivalScan:
        """Scan the table once; empty when the file is as it was at the last scan."""
        del known  # the table is never done
        name = self.path.name
        try:
            stat = self.path.stat()
            check_input(self.path)
            if (stat.st_size, stat.st_mtime_ns) == self._seen:
                return ArrivalScan()
            content = read_input(self.path)
        except FileNotFoundError:
            return ArrivalScan()
        except InputError as error:
            return _unusable(name, str(error))
        except OSError as error:
            return _unusable(name, f"cannot be read ({error.strerror})")
        self._seen = (stat.st_size, stat.st_mtime_ns)
        binary = self.path.suffix.lower() in _BINARY
        whole = content if binary else content[: content.rfind(b"\n") + 1]
        if not whole.strip():
            return ArrivalScan()
        try:
            found = runs(read_rows(self.path, whole), self.columns)
        except InputError as error:
            digest = hashlib.sha256(str(error).encode(errors="replace")).hexdigest()
            return _unusable(name, _said_of(self.path, error), "malformed", digest)
        finished = found if self.final else found[:-1]
        return ArrivalScan(tuple(Arrival(name, reading) for reading in finished))


def _said_of(path: Path, error: InputError) -> str:
    """Return a message without the name of the file, which stands before it already."""
    text = str(error)
    for name in (str(path), path.name):
        text = text.removeprefix(f"{name}: ").removeprefix(f"{name}, ")
    return text

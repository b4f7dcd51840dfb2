"""Arrivals of demand: whole files in a folder, or the finished intervals of one table that grows.

A folder. A file counts when it is whole: write it under a name that begins with a dot or ends in
``.tmp`` or ``.part``, and rename it. For writers that cannot, a file must have stood unchanged for
`settle` seconds, before and after it is read, and a text must end with a line feed. Within one look
all intervals are taken in order of time, whatever the files are called.

A table. Rows are appended, oldest interval first; an interval is finished when a row of another one
follows. The order of the rows is the order of arrival, so that what is late does not depend on when
a reader looked.
"""

from __future__ import annotations

import csv
import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from placement.errors import InputError, MissingDependencyError
from placement.io.formats.files import check_input, read_input
from placement.io.formats.tables import Table
from placement.overtime.watch.interval_reader import (
    SUFFIXES,
    CountColumns,
    IntervalReading,
    read_rows,
    readings,
    runs,
)

__all__ = [
    "Arrival",
    "ArrivalScan",
    "FileMark",
    "FolderSource",
    "RejectedFile",
    "Source",
    "TableSource",
    "source_of",
]

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


class RejectedFile(NamedTuple):
    """A file of which nothing was taken, and why."""

    source: str
    digest: str
    kind: str
    message: str


@dataclass(frozen=True)
class ArrivalScan:
    """Result of one scan of the source.

    Attributes
    ----------
    arrivals
        Intervals of the files that are not marked as done.
    refused
        Files that cannot be used as they are.
    done
        Marks of the files, to be kept once all that came in them is dealt with.
    waiting
        Files that may still be growing.
    """

    arrivals: tuple[Arrival, ...] = ()
    refused: tuple[RejectedFile, ...] = ()
    done: tuple[FileMark, ...] = ()
    waiting: tuple[str, ...] = ()


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
    """Return the source at a path: a folder of files, or a table.

    Parameters
    ----------
    path
        A folder that exists; or a table, which need not exist yet when it is followed.
    columns
        Columns of a row.
    settle
        Seconds for which a file of a folder must have stood unchanged.
    final
        Of a table: its last interval is finished too.
    follow
        Whether the source will be scanned again.

    Raises
    ------
    InputError
        When there is nothing there, or a table of an unknown kind.
    """
    place = Path(path)
    if place.is_dir():
        if final:
            raise InputError(
                "only a table has a last interval that may be unfinished",
                field="final",
                value=str(path),
                expected="a table",
            )
        return FolderSource(place, columns, settle)
    if place.suffix.lower() not in SUFFIXES:
        raise InputError(
            "neither a folder nor a table",
            source=str(path),
            expected="a folder, or a file ending in " + ", ".join(SUFFIXES),
        )
    if not place.exists() and not follow:
        raise InputError("no such folder or table", source=str(path))
    return TableSource(place, columns, final)


@dataclass
class FolderSource:
    """A folder into which files with intervals are dropped.

    Parameters
    ----------
    folder
        Folder to scan, without subfolders.
    columns
        Columns of a row.
    settle
        Seconds for which a file must have stood unchanged.
    clock
        Seconds since 1970, as the file system counts them.
    """

    folder: Path
    columns: CountColumns
    settle: float = 1.0
    clock: Callable[[], float] = time.time
    _read: dict[FileMark, ArrivalScan] = field(default_factory=dict, repr=False)

    @property
    def in_order(self) -> bool:
        """Return False: names of files say nothing about time."""
        return False

    def scan(self, known: Mapping[str, FileMark]) -> ArrivalScan:
        """Scan the folder once, in the order of the file names."""
        arrivals: list[Arrival] = []
        refused: list[RejectedFile] = []
        done: list[FileMark] = []
        waiting: list[str] = []
        kept: dict[FileMark, ArrivalScan] = {}
        for name in sorted(os.listdir(self.folder)):
            if name.startswith(".") or name.lower().endswith(_UNFINISHED):
                continue
            part = self._look(name, known, kept)
            arrivals.extend(part.arrivals)
            refused.extend(part.refused)
            done.extend(part.done)
            waiting.extend(part.waiting)
        self._read = kept
        return ArrivalScan(tuple(arrivals), tuple(refused), tuple(done), tuple(waiting))

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
                text = "the name ends in none of " + ", ".join(SUFFIXES)
                return ArrivalScan(refused=(RejectedFile(name, "", "ignored", text),))
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
            text = f"cannot be read ({error.strerror})"
            return ArrivalScan(refused=(RejectedFile(name, "", "unreadable", text),))
        except InputError as error:
            if not path.exists():  # taken away, as above
                return ArrivalScan()
            return ArrivalScan(refused=(RejectedFile(name, "", "unreadable", str(error)),))
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            return ArrivalScan(waiting=(name,))
        kept[fresh] = self._read[fresh]
        return kept[fresh]

    def _parsed(self, path: Path, content: bytes, mark: FileMark) -> ArrivalScan:
        text = path.suffix.lower() not in _BINARY
        if text and not content.endswith(b"\n"):
            message = "not whole: the last line does not end with a line feed"
            unfinished = RejectedFile(mark.name, mark.digest, "incomplete", message)
            return ArrivalScan(refused=(unfinished,), waiting=(mark.name,))
        try:
            found = readings(read_rows(path, content), self.columns)
        except InputError as error:
            broken = RejectedFile(mark.name, mark.digest, "malformed", _said_of(path, error))
            return ArrivalScan(refused=(broken,), done=(mark,))
        except MissingDependencyError as error:  # not done: a package is missing
            return ArrivalScan(
                refused=(RejectedFile(mark.name, mark.digest, "unreadable", str(error)),)
            )
        return ArrivalScan(tuple(Arrival(mark.name, reading) for reading in found), done=(mark,))


@dataclass
class TableSource:
    """Source that reads one table, which grows at its end.

    Parameters
    ----------
    path
        The file; it may appear later.
    columns
        What rows are about.
    final
        Whether the last interval is finished although nothing follows it.
    """

    path: Path
    columns: CountColumns
    final: bool = False
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
            return ArrivalScan(refused=(RejectedFile(name, "", "unreadable", str(error)),))
        except OSError as error:
            text = f"cannot be read ({error.strerror})"
            return ArrivalScan(refused=(RejectedFile(name, "", "unreadable", text),))
        self._seen = (stat.st_size, stat.st_mtime_ns)
        binary = self.path.suffix.lower() in _BINARY
        whole = content if binary else content[: content.rfind(b"\n") + 1]
        if not whole.strip():
            return ArrivalScan()
        try:
            table, broken = _growing(self.path, whole)
            found = runs(table, self.columns, broken) if table.rows else ()
        except InputError as error:
            digest = hashlib.sha256(str(error).encode(errors="replace")).hexdigest()
            text = _said_of(self.path, error)
            return ArrivalScan(refused=(RejectedFile(name, digest, "malformed", text),))
        finished = found if self.final else found[:-1]
        return ArrivalScan(tuple(Arrival(name, reading) for reading in finished))


def _said_of(path: Path, error: InputError) -> str:
    """Return a message without the name of the file, which stands before it already."""
    text = str(error)
    for name in (str(path), path.name):
        text = text.removeprefix(f"{name}: ").removeprefix(f"{name}, ")
    return text


def _growing(path: Path, content: bytes) -> tuple[Table, dict[int, str]]:
    """Read a table of which single lines may be broken: position of the next row -> what is wrong.

    Cells with line feeds inside are not for tables that grow: each line is a separate row once
    one of them is broken.
    """
    try:
        return read_rows(path, content), {}
    except InputError:
        suffix = path.suffix.lower()
        if suffix in _BINARY:
            raise
    lines = content.split(b"\n")
    if suffix in (".jsonl", ".ndjson"):
        return _each_line(path, b"", lines, 0)
    first = next(i for i, line in enumerate(lines) if line.strip())
    read_rows(path, lines[first] + b"\n")  # a bad header is beyond repair
    return _each_line(path, lines[first] + b"\n", lines, first + 1)


def _each_line(
    path: Path, header: bytes, lines: list[bytes], first: int
) -> tuple[Table, dict[int, str]]:
    good: list[bytes] = []
    numbers: list[int] = []
    broken: dict[int, str] = {}
    for i, line in enumerate(lines[first:], start=first):
        if not line.strip():
            continue
        try:
            rows = read_rows(path, header + line + b"\n").rows
        except (InputError, csv.Error) as error:
            words = error.message if isinstance(error, InputError) else str(error)
            broken.setdefault(len(good), f"{path}, row {i + 1}: {words}")
            continue
        if rows:
            good.append(line)
            numbers.append(i + 1)
    if not good:
        return Table(str(path), ("interval", "client"), (), ()), broken
    table = read_rows(path, header + b"\n".join(good) + b"\n")
    return Table(table.source, table.columns, table.rows, tuple(numbers)), broken

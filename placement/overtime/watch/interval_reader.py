"""Intervals of demand as they stand in a file: read whole, or refused whole with the reason.

A table has a column ``interval`` and either ``client``, ``operation``, ``count`` (long) or
``client`` and one column per operation (wide); CSV, TSV, Parquet, or JSON with one such row per
line. Clients and operations that are not listed issued nothing. Labels of intervals are whole
numbers or ISO 8601 times (without an offset: UTC), because something must say which came first.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from placement.errors import InputError
from placement.io.formats.document import parse_json
from placement.io.formats.tables import Cell, Table, name_cell, parse_csv, quantity_cell, read_table
from placement.support.checks import FloatArray

__all__ = [
    "SUFFIXES",
    "CountColumns",
    "IntervalKey",
    "IntervalReading",
    "interval_key",
    "read_rows",
    "readings",
    "runs",
]

SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".jsonl", ".ndjson")
"""Endings of the files that are read."""

_COUNT = "a finite number >= 0"
_LONG = ("client", "operation", "count")
_Fill = Callable[[FloatArray, int, set[tuple[int, int]]], None]  # counts, row, cells already filled
_WHOLE = re.compile(r"[+-]?\d{1,18}")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)


class IntervalKey(NamedTuple):
    """Position of an interval in time.

    Attributes
    ----------
    kind
        "number" or "time"; the two can't be compared, and one series has one kind.
    value
        The number, or microseconds since 1970 UTC.
    """

    kind: str
    value: int


def interval_key(label: str) -> IntervalKey:
    """Return where a label stands in time.

    Raises
    ------
    InputError
        For a label that is neither a whole number nor an ISO 8601 time.

    Examples
    --------
    >>> interval_key("7"), interval_key("1970-01-01T01:00+01:00")
    (IntervalKey(kind='number', value=7), IntervalKey(kind='time', value=0))
    """
    text = label.strip()
    if _WHOLE.fullmatch(text):
        return IntervalKey("number", int(text))
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            "not a place in time",
            field="interval",
            value=label,
            expected="a whole number or an ISO 8601 time",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return IntervalKey("time", (moment - _EPOCH) // _MICROSECOND)


@dataclass(frozen=True, slots=True)
class CountColumns:
    """Columns of a table of counts: the names its rows refer to.

    Attributes
    ----------
    clients, operations
        Names, in the order of the instance.
    database
        Rows of this database only, where a table has a column ``database``; None: a table with
        that column is refused.
    """

    clients: tuple[str, ...]
    operations: tuple[str, ...]
    database: str | None = None


@dataclass(frozen=True, eq=False)
class IntervalReading:
    """Counts of one interval, as read from a file.

    Attributes
    ----------
    label
        As written.
    key
        Where it stands in time.
    counts
        Shape (clients, operations), read-only; None when it is malformed.
    problem
        Why it is malformed; empty when it is not.
    row
        First row of it in the file.
    digest
        SHA-256 of the counts; of the problem when there are none.
    """

    label: str
    key: IntervalKey
    counts: FloatArray | None
    problem: str
    row: int
    digest: str


def read_rows(path: str | os.PathLike[str], content: bytes) -> Table:
    """Read a table, JSON lines included.

    Parameters
    ----------
    path
        The file; its suffix says what it is.
    content
        What it holds, as far as it counts; Parquet is read from the file itself.

    Raises
    ------
    InputError
        For a file that is no table.
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

    Raises
    ------
    InputError
        When it cannot be told which intervals are meant: columns that are missing or unknown, a
        row without a usable interval, labels of two kinds.
    """
    fill = _filler(table, columns)
    grouped: dict[IntervalKey, list[int]] = {}
    for row, found in _keys(table, columns):
        if isinstance(found, InputError):
            raise found
        grouped.setdefault(found, []).append(row)
    if not grouped:
        raise InputError("no rows", source=table.source, expected="a row per client at least")
    return tuple(_reading(table, columns, fill, grouped[key], key, "") for key in sorted(grouped))


def runs(
    table: Table, columns: CountColumns, broken: Mapping[int, str] = MappingProxyType({})
) -> tuple[IntervalReading, ...]:
    """Return the intervals of a table that grows: consecutive rows of one label, as they stand.

    An interval that comes back later in the table is another reading of the same key. A row that
    cannot be read, or has no usable interval, may belong to the interval before it or to the one
    after it: both are malformed then.

    Parameters
    ----------
    table, columns
        As for :func:`readings`.
    broken
        Lines that are no rows: position of the next row -> the error.

    Raises
    ------
    InputError
        For columns that are missing or unknown.
    """
    fill = _filler(table, columns)
    found: list[tuple[IntervalKey, list[int], list[str]]] = []
    stain: list[str] = []
    tail = ((len(table.rows), None),)
    for row, key in (*_keys(table, columns), *tail):
        problems = [text for place, text in broken.items() if place == row]
        if isinstance(key, InputError):
            problems.append(str(key))
        stain.extend(problems)
        if found:
            found[-1][2].extend(problems)
        if key is None or isinstance(key, InputError):
            continue
        if not found or found[-1][0] != key:
            found.append((key, [], stain))
        found[-1][1].append(row)
        stain = []
    return tuple(
        _reading(table, columns, fill, members, key, problems[0] if problems else "")
        for key, members, problems in found
    )


def _keys(table: Table, columns: CountColumns) -> Iterator[tuple[int, IntervalKey | InputError]]:
    """Yield the rows that count, with the place in time of each, or why it has none."""
    interval = table.column("interval")
    database = _database(table, columns)
    kind = ""
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
            if kind and key.kind != kind:
                raise InputError(
                    "intervals of two kinds",
                    source=table.at(row),
                    field="interval",
                    value=label,
                    expected=f"a {kind}, as before",
                )
        except InputError as error:
            yield row, error
            continue
        kind = key.kind
        yield row, key


def _reading(
    table: Table,
    columns: CountColumns,
    fill: _Fill,
    rows: Sequence[int],
    key: IntervalKey,
    problem: str,
) -> IntervalReading:
    first = rows[0]
    label = name_cell(table.rows[first][table.column("interval")], table.at(first), "interval")
    counts = np.zeros((len(columns.clients), len(columns.operations)))
    seen: set[tuple[int, int]] = set()
    number = table.numbers[first]
    try:
        for row in rows:
            fill(counts, row, seen)
    except InputError as error:
        problem = problem or str(error)
    if problem:
        digest = hashlib.sha256(problem.encode(errors="replace")).hexdigest()
        return IntervalReading(label, key, None, problem, number, digest)
    counts += 0.0  # no negative zeros, so that equal counts have equal bytes
    counts.flags.writeable = False
    digest = hashlib.sha256(counts.astype("<f8").tobytes()).hexdigest()
    return IntervalReading(label, key, counts, "", number, digest)


def _database(table: Table, columns: CountColumns) -> int | None:
    """Position of the column of databases, if the table has one and it matters."""
    if "database" not in table.columns:
        return None
    if columns.database is None:
        raise InputError(
            "several databases in one table",
            source=table.source,
            field="database",
            expected="a table of one, or the name of the one that is meant (--database)",
        )
    return table.column("database")


def _filler(table: Table, columns: CountColumns) -> _Fill:
    """Return the function that writes a row of the table into counts, long or wide."""
    clients = {name: i for i, name in enumerate(columns.clients)}
    operations = {name: i for i, name in enumerate(columns.operations)}
    client = table.column("client")

    def place(cell: Cell, names: dict[str, int], row: int, field: str) -> int:
        name = name_cell(cell, table.at(row), field)
        if name not in names:
            raise InputError(
                f"unknown {field}",
                source=table.at(row),
                field=field,
                value=name,
                expected=f"one of the {len(names)} {field}s of the instance",
            )
        return names[name]

    def once(seen: set[tuple[int, int]], cell: tuple[int, int], row: int) -> None:
        if cell in seen:
            raise InputError(
                "counted twice",
                source=table.at(row),
                field="client" if cell[1] < 0 else "operation",
                value=columns.clients[cell[0]] if cell[1] < 0 else columns.operations[cell[1]],
                expected="once per interval",
            )
        seen.add(cell)

    if set(_LONG) <= set(table.columns):
        operation, count = table.column("operation"), table.column("count")
        _no_more(table, {"interval", "database", *_LONG})

        def long(counts: FloatArray, row: int, seen: set[tuple[int, int]]) -> None:
            cells = table.rows[row]
            who = place(cells[client], clients, row, "client")
            what = place(cells[operation], operations, row, "operation")
            once(seen, (who, what), row)
            counts[who, what] = quantity_cell(cells[count], table.at(row), "count", _COUNT)

        return long

    _no_more(table, {"interval", "database", "client", *operations})
    given = [
        (name, table.column(name), i) for name, i in operations.items() if name in table.columns
    ]

    def wide(counts: FloatArray, row: int, seen: set[tuple[int, int]]) -> None:
        cells = table.rows[row]
        who = place(cells[client], clients, row, "client")
        once(seen, (who, -1), row)
        for name, position, what in given:
            counts[who, what] = quantity_cell(cells[position], table.at(row), name, _COUNT)

    return wide


def _no_more(table: Table, known: set[str]) -> None:
    for name in table.columns:
        if name not in known:
            raise InputError(
                "unknown column",
                source=table.source,
                field=name,
                expected="interval, client, operation, count; or interval, client and one column "
                "per operation of the instance",
            )


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

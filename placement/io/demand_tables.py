"""Demand from tables: operations issued per database, interval, client and kind of operation.

Tables of demand may have millions of rows. They are read by column, and checked row by row only
after an error, to find its row.

Exports of databases and dashboards (SQL results, psql's tables, Grafana's CSV) are read too:

* rows with the columns client, operation and count under any usual names, or a column per
  operation;
* Grafana, wide: a column of times and one column per series;
* Grafana, long: series, time, value.

Their rows of the same interval, client and operation are added up.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np

from placement.errors import InputError, for_each, refused
from placement.io.feeds.blocks import labels_of
from placement.io.feeds.headers import DEMAND_ROLES, check_given, the_column
from placement.io.feeds.quantity_text import Decimal, clean_counts, is_missing
from placement.io.feeds.registry import Content
from placement.io.formats.column_reader import ColumnTable, read_frame, read_frames
from placement.io.formats.tables import PARQUET, Cell, Table, name_cell, quantity_cell
from placement.model.operations import NAMED_OPERATIONS
from placement.support.checks import FloatArray, IntArray

COUNT = "a finite number of operations >= 0"

_KEYS = ("database", "interval", "client")


@dataclass(frozen=True, eq=False)
class DemandTable:
    """Counts by name."""

    source: str  #: the file, for messages
    databases: tuple[str, ...]  #: in the order of first rows; empty without a column `database`
    intervals: tuple[str, ...]  #: labels, oldest first; empty without a column `interval`
    clients: tuple[str, ...]
    operations: tuple[str, ...]
    #: n[db, i, c, o], finite and >= 0, shape (databases or 1, intervals or 1, clients, operations)
    counts: FloatArray
    #: whether a client that is not listed issued nothing, as in long tables and those of databases
    sparse: bool
    #: sentences that say what the reader did, for the user, such as "sorted 48 intervals by time"
    notes: tuple[str, ...] = ()


def read_demand(
    path: str | os.PathLike[str],
    *,
    clients: Sequence[str] | None = None,
    operations: Sequence[str] | None = None,
    intervals: Sequence[str] | None = None,
) -> DemandTable:
    """Read a table of demand, CSV, TSV or Parquet, as :func:`demand_of` does for its columns."""
    return demand_of(read_frame(path), clients=clients, operations=operations, intervals=intervals)


def read_database_demand(
    path: str | os.PathLike[str], *, clients: Sequence[str], operations: Sequence[str]
) -> dict[str, FloatArray]:
    """Read what each database issues, added up over all rows; a large table part by part.

    The table is as for :func:`read_demand`, with a column ``database``, or a folder of Parquet
    files; `clients` and `operations` are as there. The counts by database, in the order of first
    rows, have the shape (clients, operations). O(rows); memory for the counts and for one part
    of a Parquet file. Errors name file, row and column.
    """
    counts: dict[str, FloatArray] = {}
    for frame in read_frames(path):
        if "database" not in frame.columns:
            words = "no such column"
            expected = "a column that names the database of each row"
            raise InputError(words, source=frame.source, field="database", expected=expected)
        databases, of_database = frame.found("database")
        long = "operation" in frame.columns or "count" in frame.columns
        key = _client_column(frame, operations, long=long)
        of_client = frame.names(key, clients, "client of the instance")[:, np.newaxis]
        if long:
            of_operation = frame.names("operation", operations, "operation of the instance")
            which = of_operation[:, np.newaxis]
            values = frame.quantities("count", COUNT)[:, np.newaxis]
        else:
            given = [n for n in _operation_columns(frame, key, operations) if n in frame.columns]
            columns = np.array([operations.index(name) for name in given], dtype=np.intp)
            which = np.broadcast_to(columns, (frame.rows, len(given)))
            values = frame.matrix(given, COUNT)
        order = np.argsort(of_database, kind="stable")
        ends = np.searchsorted(of_database[order], np.arange(1, len(databases)))
        for name, rows in zip(databases, np.split(order, ends), strict=True):
            if name not in counts:
                counts[name] = np.zeros((len(clients), len(operations)))
            np.add.at(counts[name], (of_client[rows], which[rows]), values[rows])
    return counts


def demand_of(
    frame: ColumnTable,
    *,
    clients: Sequence[str] | None = None,
    operations: Sequence[str] | None = None,
    intervals: Sequence[str] | None = None,
    complete: bool = True,
) -> DemandTable:
    """Return the demand in the columns of a table, long or wide, as docs/files.md describes.

    `clients`, `operations` and `intervals` are the names in the order wanted, and others are
    refused; None: those of the table, intervals in the order of time with silent ones of a grid.
    Without `complete`, a client without a row in a wide table issued nothing. O(rows + databases ·
    intervals · clients · operations).
    """
    long = "operation" in frame.columns or (
        "count" in frame.columns and "count" not in (operations or ())
    )
    key = _client_column(frame, operations or (), long=long)
    databases, of_database = _optional(frame, "database")
    client_names, of_client = _names(frame, key, clients, "client")
    labels, of_label = _optional(frame, "interval")
    notes: tuple[str, ...] = ()
    periods = labels
    of_interval = of_label
    if labels and intervals is not None:
        of_interval = frame.names("interval", intervals, "such interval")
        periods = tuple(intervals)
    elif labels:
        order = order_intervals(
            labels, frame.source, lambda i: frame.at(int(np.argmax(of_label == i)))
        )
        periods, of_interval, notes = order.labels, order.place[of_label], order.notes
    keys: list[tuple[str, IntArray, int]] = [
        ("database", of_database, len(databases) or 1),
        ("interval", of_interval, len(periods) or 1),
        (key, of_client, len(client_names)),
    ]
    if long:
        kinds, of_operation = _names(frame, "operation", operations, "operation")
        values = frame.quantities("count", COUNT)
        keys.append(("operation", of_operation, len(kinds)))
        _once(frame, keys)
        counts = np.zeros([size for _, _, size in keys])
        counts[of_database, of_interval, of_client, of_operation] = values
    else:
        kinds = _operation_columns(frame, key, operations)
        _once(frame, keys)
        if complete and not databases:
            _complete(frame, keys, labels, of_label, client_names)
        counts = np.zeros([*(size for _, _, size in keys), len(kinds)])
        given = [name for name in kinds if name in frame.columns]
        columns = for_each(lambda name: frame.quantities(name, COUNT), given)
        for name, column in zip(given, columns, strict=True):
            counts[of_database, of_interval, of_client, kinds.index(name)] = column
    return DemandTable(
        frame.source,
        databases,
        periods,
        client_names,
        kinds,
        counts,
        long or bool(databases),
        notes,
    )


def _client_column(frame: ColumnTable, operations: Collection[str], *, long: bool) -> str:
    """Return the column of clients: ``client``, or the first key of a wide table."""
    if "client" not in frame.columns:
        first = next((name for name in frame.columns if name not in _KEYS), None)
        if first is not None and not long and first not in operations:
            return first
        frame.table.column("client")  # refuses, with the columns there are
    return "client"


def _optional(frame: ColumnTable, column: str) -> tuple[tuple[str, ...], IntArray]:
    if column not in frame.columns:
        return (), np.zeros(frame.rows, dtype=np.intp)
    return frame.found(column)


def _names(
    frame: ColumnTable, column: str, known: Sequence[str] | None, word: str
) -> tuple[tuple[str, ...], IntArray]:
    if known is None:
        return frame.found(column)
    return tuple(known), frame.names(column, known, f"{word} of the instance")


def _operation_columns(
    frame: ColumnTable, key: str, operations: Sequence[str] | None
) -> tuple[str, ...]:
    given = [name for name in frame.columns if name not in (*_KEYS, key)]
    stray = [] if operations is None else [name for name in given if name not in operations]
    if not given or stray:
        known = "" if operations is None else ", or some of " + ", ".join(operations)
        words = "no column of counts" if not given else "a column that is no operation"
        expected = "columns operation and count" + (known or ", or a column per operation")
        field = stray[0] if stray else "count"
        raise InputError(words, source=frame.source, field=field, expected=expected)
    return tuple(given if operations is None else operations)


def _once(frame: ColumnTable, keys: Sequence[tuple[str, IntArray, int]]) -> None:
    """Refuse the second of two rows for the same cell."""
    places, sizes = tuple(codes for _, codes, _ in keys), tuple(size for _, _, size in keys)
    flat = np.ravel_multi_index(places, sizes)
    _, rows = np.unique(flat, return_index=True)
    if len(rows) == len(flat):
        return
    second = int(np.setdiff1d(np.arange(len(flat)), rows)[0])
    first = int(np.nonzero(flat == flat[second])[0][0])
    columns = [name for name, _, _ in keys if name in frame.columns]
    given = ", ".join(frame.text(column, second) for column in columns)
    words, expected = "a row given twice", f"once (first in row {frame.number(first)})"
    raise refused(frame.at(second), ", ".join(columns), words, given, expected)


def _complete(
    frame: ColumnTable,
    keys: Sequence[tuple[str, IntArray, int]],
    labels: tuple[str, ...],
    of_label: IntArray,
    clients: tuple[str, ...],
) -> None:
    """Refuse a wide table that leaves out a client in one of its intervals."""
    here = np.zeros((len(labels) or 1, len(clients)), dtype=bool)
    here[of_label, keys[2][1]] = True
    if here.all():
        return
    interval, client = np.argwhere(~here)[0].tolist()
    in_interval = f" in interval {labels[interval]!r}" if labels else ""
    missing = int((~here).sum())
    words = "missing row" + (f" ({missing} in all)" if missing > 1 else "")
    expected = (
        f"a row for it{in_interval}, of zeros if it issued nothing; a table of client, "
        "operation and count may leave them out"
    )
    raise refused(frame.source, keys[2][0], words, clients[client], expected)


# --- the order of time of interval labels -----------------------------------------------------

T = TypeVar("T")

Place = Callable[[int], str]
"""Names the place in the file where a label stands first, from the label's position."""

_MICROSECOND = timedelta(microseconds=1)
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?", re.ASCII)


@dataclass(frozen=True, eq=False)
class IntervalOrder:
    """Intervals from the oldest to the newest."""

    #: all labels, oldest first, with those of intervals that the table does not name
    labels: tuple[str, ...]
    place: IntArray  #: position in `labels` of each label that was given
    #: sentences that say what was done, for the user; empty when the order was right
    notes: tuple[str, ...] = ()


def most_intervals(named: int) -> int:
    """Return the most intervals of a table that names some: one may be a second off the grid."""
    return 1_000 + 100 * named


def order_intervals(
    labels: Sequence[str], source: str, at: Place | None = None, *, fill: bool = True
) -> IntervalOrder:
    """Sort interval labels by time, or by size where they are numbers.

    Labels are distinct and in the order of the file. ISO 8601 dates and times are sorted by time,
    numbers by size; labels of any other kind, or of several kinds, keep their order. With `fill`,
    the intervals between the first and the last that are not named are added, where times or whole
    numbers lie on a regular grid. `at` names the place of a label's first row. Two labels of one
    interval, times with and without a time zone, and more than :func:`most_intervals` are refused.

    >>> found = order_intervals(["10", "2", "4"], "counts.csv")
    >>> found.labels, found.place.tolist()
    (('2', '4', '6', '8', '10'), [4, 0, 1])
    >>> print(*found.notes, sep="; ")
    sorted 3 intervals by number; 2 intervals have no rows: no operations are counted there
    """

    def where(position: int) -> str:
        return source if at is None else at(position)

    times = _all(labels, datetime.fromisoformat)  # before numbers: 20260302 is a date
    if times is not None:
        aware = [time.tzinfo is not None for time in times]
        if any(aware) and not all(aware):
            odd = aware.index(not aware[0])
            words = "times with and without a time zone"
            expected = "a zone in all labels, or in none"
            raise refused(where(odd), "interval", words, labels[odd], expected)
        start = min(times)
        ticks = [(time - start) // _MICROSECOND for time in times]

        def name(after: int) -> str:
            return (start + after * _MICROSECOND).isoformat()

        return _ordered(labels, ticks, name if fill else None, "time", where)
    numbers = _all(labels, _number)
    if numbers is None:
        notes: tuple[str, ...] = ()
        if len(labels) > 1:
            notes = (
                f"the labels of {len(labels)} intervals are neither all times nor all numbers: "
                "the order of the file was kept",
            )
        return IntervalOrder(tuple(labels), np.arange(len(labels)), notes)
    whole = [int(value) for value in numbers]
    grid = fill and whole == numbers
    return _ordered(labels, whole if grid else numbers, str if grid else None, "number", where)


def _number(label: str) -> float | int:
    if not _NUMBER.fullmatch(label):
        raise ValueError(label)
    return float(label) if "." in label else int(label)


def _all(labels: Sequence[str], read: Callable[[str], T]) -> list[T] | None:
    try:
        return [read(label) for label in labels]
    except ValueError:
        return None


def _ordered(
    labels: Sequence[str],
    values: Sequence[float],
    name: Callable[[int], str] | None,
    kind: str,
    where: Callable[[int], str],
) -> IntervalOrder:
    """Order labels by distinct values; `name` names the values of a grid that have no label."""
    first: dict[float, int] = {}
    for position, value in enumerate(values):
        before = first.setdefault(value, position)
        if before != position:  # such as 1 and 01
            words, both = "two names for one interval", f"{labels[before]}, {labels[position]}"
            expected = f"one label per interval (the other is in {where(before)})"
            raise refused(where(position), "interval", words, both, expected)
    ordered = sorted(values)
    notes = []
    if ordered != list(values):
        notes.append(f"sorted {len(labels)} intervals by {kind}")
    grid: Sequence[float] = ordered
    if name is not None and len(ordered) > 1:
        grid = _grid([int(value) for value in ordered], name, where)
        silent = len(grid) - len(ordered)
        if silent:
            notes.append(
                f"{silent} interval{'s have' if silent > 1 else ' has'} no rows: no operations are "
                "counted there"
            )
    given = dict(zip(values, labels, strict=True))
    place = {value: i for i, value in enumerate(grid)}
    return IntervalOrder(
        tuple(
            given[value] if value in given or name is None else name(int(value)) for value in grid
        ),
        np.array([place[value] for value in values], dtype=np.intp),
        tuple(notes),
    )


def _grid(ordered: Sequence[int], name: Callable[[int], str], where: Place) -> Sequence[int]:
    """Return every value of the regular grid through rising values; them alone if there is none."""
    steps = [b - a for a, b in pairwise(ordered)]
    step = min(steps)
    if math.gcd(*steps) != step:
        return ordered
    count = (ordered[-1] - ordered[0]) // step + 1
    if count > most_intervals(len(ordered)):
        words = f"{count:,} intervals between the first and the last, and only "
        words += f"{len(ordered):,} of them in the table"
        source, given = where(0).split(", row ")[0], f"{name(ordered[0])} to {name(ordered[-1])}"
        raise refused(source, "interval", words, given, "labels on one grid")
    return range(ordered[0], ordered[-1] + 1, step)


# --- tables of databases and dashboards ------------------------------------------------------

_OPTION = "--count-columns"
_UNIT = re.compile(r"\s*[\d.,]+\s*\D.*")
_ANY = "*"
"""Name for every operation in a map, and for series without the label of an operation."""

_SQL = {
    "select": "strong_read",
    **dict.fromkeys(("insert", "update", "delete", "upsert", "merge", "replace"), "single_group"),
}
"""Operation of a statement of SQL, unless the user or the table says another."""

_Row = tuple[str, str, str, float]
"""Interval, client, operation, count."""


@dataclass(frozen=True, slots=True)
class DemandRequest:
    """Facts about a table of demand that the user told."""

    columns: Mapping[str, str] = field(default_factory=dict)  #: role -> column
    #: name in the table -> operation; `*` stands for every other name
    operations: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, str] = field(default_factory=dict)  #: name in the table -> client
    decimal: Decimal = "auto"


def is_standard(path: str | os.PathLike[str], request: DemandRequest) -> bool:
    """Return whether a table has the columns of the package, with plain numbers.

    Such a table may have millions of rows; :func:`read_demand` reads it by column. A Parquet file
    without a request counts as one.
    """
    if request.columns or request.operations or request.clients or request.decimal != "auto":
        return False
    if Path(path).suffix.lower() in PARQUET:
        return True
    content = Content.of(path)
    if content.is_page or content.braced:
        return False
    head = content.head[: content.head.rfind("\n") + 1] or content.head
    (table,) = Content(content.source, head).blocks
    names = [name.strip().lower() for name in table.columns]
    if "client" not in names and "client" in _roles(table, {}):
        return False
    keys = ("database", "interval", "client", "operation")
    numbers = [i for i, name in enumerate(table.columns) if name not in keys]
    texts = [str(row[i]) for row in table.rows for i in numbers if isinstance(row[i], str)]
    plain = not any("," in text or _UNIT.fullmatch(text) for text in texts if len(text) <= 100)
    long = {"operation", "count"} & set(table.columns)
    if "operation" in table.columns:
        verb = table.column("operation")
        plain = plain and not any(str(row[verb]).strip().lower() in _SQL for row in table.rows)
    return names[0] not in ("time", "series") and plain and bool(long or not _words(table, numbers))


def _words(table: Table, columns: Sequence[int]) -> list[int]:
    """Return columns with a word such as SELECT, apart from columns named like an operation."""
    known = {kind.name for kind in NAMED_OPERATIONS}
    word = re.compile(r"\s*(?!inf|nan)[A-Za-z_][\w ./-]*", re.IGNORECASE)
    return [
        i
        for i in columns
        if table.columns[i] not in known
        and any(word.fullmatch(str(row[i])) and not is_missing(row[i]) for row in table.rows)
    ]


def _roles(table: Table, given: Mapping[str, str]) -> dict[str, str]:
    """Return role -> column for the roles that are given, or that exactly one column fits."""
    check_given(given, table.columns, table.source, _OPTION)
    found = dict(given)
    for role, names in DEMAND_ROLES.items():
        free = [name for name in table.columns if name not in found.values()]
        fitting = [name for name in free if name == names[0]] or [
            name for name in free if "_".join(re.findall(r"[^\W_]+", name.lower())) in names
        ]
        if role not in found and fitting:
            found[role] = str(the_column(fitting, role, table.source, _OPTION))
    return found


def read_demand_feed(path: str | os.PathLike[str], request: DemandRequest) -> DemandTable:
    """Read demand of any of the layouts; its notes say what was done.

    Refused, with file, row, column and value: a role with no column or several, a cell that is no
    count, a series without client or operation, an operation of the map that the table lacks.
    """
    content = Content.of(path)
    tables = content.blocks if content.tabular else []
    if len(tables) != 1 or not tables[0].rows:
        words = "no rows" if tables and not tables[0].rows else f"{len(tables)} tables"
        expected = "one table with a row per count: CSV, of psql, or JSON objects"
        raise InputError(words, source=content.source, expected=expected)
    (table,) = tables
    plain = [name.strip().lower() for name in table.columns]
    if set(plain) == {"series", "time", "value"} and not request.columns:
        series, time, value = (plain.index(name) for name in ("series", "time", "value"))
        rows, notes = _series_rows(table, series, time, value, request)
        notes = ["Grafana, a row per series and time", *notes]
    elif plain[0] == "time" and not request.columns and "client" not in _roles(table, {}):
        rows, notes = [], [f"Grafana, {len(plain) - 1} series as columns"]
        for column in range(1, len(plain)):
            more, said = _series_rows(table, -1, 0, column, request)
            rows.extend(more)
            notes.extend(said)
    else:
        rows, notes = _by_role(table, request)
    known = {operation for _, _, operation, _ in rows}
    for name in request.operations:
        if name != _ANY and name not in known:
            words = "no such operation in the demand"
            expected = "one of " + ", ".join(sorted(known))
            raise refused(table.source, "--operation", words, name, expected)
    other = request.operations.get(_ANY)
    preset = {name: _SQL[name.lower()] for name in sorted(known) if name.lower() in _SQL}
    operations = {**({} if other else preset), **request.operations}
    sums: dict[tuple[str, str, str], float] = defaultdict(float)
    for interval, client, operation, count in rows:
        kind = operations.get(operation, other or operation)
        sums[interval, request.clients.get(client, client), kind] += count
    first = 0 if any(interval for interval, *_ in rows) else 1
    done: list[tuple[Cell, ...]] = [(*key[first:], repr(count)) for key, count in sums.items()]
    columns = ("interval", "client", "operation", "count")[first:]
    said = [*dict.fromkeys(notes)]
    if len(done) < len(rows):
        said.append(f"{len(rows)} counts were added up to {len(done)}")
    if operations:
        named = (f"{name} is {operation}" for name, operation in operations.items())
        said.append("operations: " + ", ".join(named))
    clean = Table(table.source, columns, tuple(done), tuple(range(1, len(done) + 1)))
    demand = demand_of(ColumnTable.of(clean))
    return dataclasses.replace(demand, notes=(*said, *demand.notes))


def _counts(
    table: Table, column: int, request: DemandRequest, *, blank: bool
) -> tuple[list[float], list[str]]:
    """Return the counts of a column, 0 for a blank cell where it is allowed, and notes."""
    name = table.columns[column]
    clean = clean_counts(
        [row[column] for row in table.rows], table.at, name, decimal=request.decimal
    )
    gone = [blank and is_missing(cell) for cell in clean.cells]
    values = for_each(
        lambda i: 0.0 if gone[i] else quantity_cell(clean.cells[i], table.at(i), name, COUNT),
        range(len(gone)),
        math.nan,
    )
    notes = [*clean.notes, *(["values are rates"] if clean.per_second else [])]
    if any(gone):
        notes.append(f"{sum(gone)} cells without a value count as 0 operations")
    return values, notes


def _by_role(table: Table, request: DemandRequest) -> tuple[list[_Row], list[str]]:
    roles = _roles(table, request.columns)
    place = {role: table.column(name) for role, name in roles.items()}
    long = "count" in roles and ("operation" in roles or _ANY in request.operations)
    wide = [place["count"]] if long else []
    if "client" in roles and not long:
        keys = {place[role] for role in ("client", "interval", "database") if role in place}
        wide = [i for i in range(len(table.columns)) if i not in keys]
        roles = {role: name for role, name in roles.items() if role in ("client", "interval")}
        words = [i for i in _words(table, wide) if table.columns[i] not in request.operations]
        if words:
            counts = [table.columns[i] for i in wide if i not in words]
            name = table.columns[words[0]]
            told = "a column of names, where counts are expected"
            expected = f"{_OPTION} operation={name},count={[*counts, 'COLUMN'][0]}"
            cell, expected = table.rows[0][words[0]], f"{expected}, or no such column"
            raise refused(table.at(0), name, told, cell, expected)
    if "client" not in roles or not wide:
        role = "count" if "client" in roles else "client"
        expected = f"a column {role}, or {_OPTION} {role}=COLUMN"
        raise refused(
            table.source, "header", f"no column for the {role}", ", ".join(table.columns), expected
        )
    notes = ["columns: " + ", ".join(f"{role} is {name!r}" for role, name in roles.items())]
    rows: list[_Row] = []
    for column in wide:
        values, said = _counts(table, column, request, blank=False)
        notes.extend(said)
        for i, cells in enumerate(table.rows):
            names = {"operation": _ANY if long else table.columns[column], "interval": ""}
            for role in roles.keys() - {"count"}:
                names[role] = name_cell(cells[place[role]], table.at(i), roles[role]).strip()
            rows.append((names["interval"], names["client"], names["operation"], values[i]))
    return rows, notes


def _series_rows(
    table: Table, series: int, time: int, value: int, request: DemandRequest
) -> tuple[list[_Row], list[str]]:
    """Return the rows of a column of values; `series` < 0: the header names the one series."""
    values, notes = _counts(table, value, request, blank=True)
    rows: list[_Row] = []
    ends = _series(table.columns[value], table.source, request) if series < 0 else None
    for i, cells in enumerate(table.rows):
        at = table.at(i)
        interval = name_cell(cells[time], at, table.columns[time])
        client, operation = ends or _series(name_cell(cells[series], at, "series"), at, request)
        rows.append((interval, client, operation, values[i]))
    return rows, notes


def _series(name: str, at: str, request: DemandRequest) -> tuple[str, str]:
    """Return client and operation of a series: labels in braces, or the client alone."""
    text = name.strip()
    client, operation = text, _ANY
    if text.endswith("}") and "{" in text:
        labels = labels_of(text[text.index("{") + 1 : -1], at)
        client = next((labels[k] for k in DEMAND_ROLES["client"] if k in labels), "")
        operation = next((labels[k] for k in DEMAND_ROLES["operation"] if k in labels), _ANY)
    lacks = "client" if not client.strip() else "operation"
    if lacks == "client" or (operation == _ANY and _ANY not in request.operations):
        expected = (
            'a label such as region="us-east"'
            if lacks == "client"
            else "a label such as op=\"read\", or --operation '*=strong_read'"
        )
        raise refused(at, "series", f"a series without a label for the {lacks}", name, expected)
    return client, operation

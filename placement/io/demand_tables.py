"""Demand from tables: operations issued per database, interval, client and kind of operation.

Tables of demand may have millions of rows. They are read by column, and checked row by row only
after an error, to find its row.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeVar

import numpy as np

from placement.errors import InputError, for_each, refused
from placement.io.formats.column_reader import ColumnTable, read_frame, read_frames
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
    flat = np.ravel_multi_index(
        tuple(codes for _, codes, _ in keys), tuple(size for _, _, size in keys)
    )
    if len(np.unique(flat)) == len(flat):
        return
    order = np.argsort(flat, kind="stable")
    again = order[1:][np.diff(flat[order]) == 0]
    second = int(again.min())
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

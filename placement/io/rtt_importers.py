"""Measured RTTs as tables: square and long.

Every reader gives an :class:`RttTable`; :mod:`placement.io.assemble_instance` makes an instance of
it. Other formats are in :mod:`placement.io.feeds`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placement.errors import InputError
from placement.io.formats.column_reader import ColumnTable
from placement.io.formats.tables import (
    RTT,
    Table,
    check_unique,
    is_blank,
    name_cell,
    quantity_cell,
    read_table,
)
from placement.io.interval_order import order_intervals
from placement.io.rtt_table import RttTable

__all__ = [
    "LongColumns",
    "long_rtts",
    "read_long_rtt",
    "read_rtt",
    "square_rtts",
]


@dataclass(frozen=True, slots=True)
class LongColumns:
    """Names of the columns of a long table.

    Attributes
    ----------
    source, destination, rtt
        From where, to where, and the RTT; the source waits for the destination.
    interval
        The interval of the measurement; None: there is one measurement per pair.
    """

    source: str = "src"
    destination: str = "dst"
    rtt: str = "rtt"
    interval: str | None = None


def read_rtt(
    path: str | os.PathLike[str], kind: str = "auto", columns: LongColumns | None = None
) -> RttTable:
    """Read RTTs of any registered format.

    Parameters
    ----------
    path
        CSV, TSV, Parquet, JSON or the text of a tool.
    kind
        A format of :data:`placement.io.feeds.registry.FEEDS`; "auto": the one that recognises the
        content.
    columns
        Of a long table.

    Raises
    ------
    InputError, MissingDependencyError
        As :func:`placement.io.feeds.registry.read_feed`.
    """
    from placement.io.feeds.registry import FeedRequest, read_feed

    roles: dict[str, str] = {}
    if columns is not None:
        roles = {"src": columns.source, "dst": columns.destination, "rtt": columns.rtt}
        if columns.interval is not None:
            roles["interval"] = columns.interval
        kind = "long" if kind == "auto" else kind
    return read_feed(path, kind, FeedRequest(roles))[1].table


def square_rtts(table: Table) -> RttTable:
    """Return the RTTs of a square (or, for clients, rectangular) table: rows wait for columns.

    The first column names the rows, the header the columns; a blank cell is a missing pair.

    Raises
    ------
    InputError
        For duplicate rows or columns, and for cells that are no RTT.
    """
    destinations = tuple(name.strip() for name in table.columns[1:])
    if not destinations:
        raise InputError(
            "one column only",
            source=table.source,
            value=table.columns[0],
            expected="a square table (the names in the first column, a column per destination)",
        )
    check_unique(destinations, table.source)
    rows: dict[str, int] = {}
    try:
        values, whole = ColumnTable.of(table).matrix(table.columns[1:], RTT), True
    except InputError:  # a blank, which is a missing pair, or a cell that is refused below
        values, whole = np.full((len(table.rows), len(destinations)), math.nan), False
    for i, cells in enumerate(table.rows):
        name = name_cell(cells[0], table.at(i), table.columns[0] or "first column").strip()
        if name in rows:
            raise _twice(table, i, table.columns[0] or "first column", name, rows[name])
        rows[name] = i
        for j, destination in enumerate(() if whole else destinations):
            if not is_blank(cells[j + 1]):
                values[i, j] = quantity_cell(cells[j + 1], table.at(i), destination)
    if not rows:
        raise InputError("no rows", source=table.source, expected="a row per source")
    return RttTable(table.source, tuple(rows), destinations, values, (), (_from(table.source),))


def _twice(table: Table, row: int, column: str, name: str, first: int) -> InputError:
    return InputError(
        "duplicate row",
        source=table.at(row),
        field=column,
        value=name,
        expected=f"once (first in row {table.numbers[first]})",
    )


def read_long_rtt(path: str | os.PathLike[str], columns: LongColumns | None = None) -> RttTable:
    """Read a long table: one row per pair (and interval).

    Raises
    ------
    InputError
        For a missing column, a pair given twice, and cells that are no RTT. Missing pairs are
        refused, or filled, by :meth:`RttTable.between`, which knows which are needed.
    """
    return long_rtts(read_table(path), columns or LongColumns())


def long_rtts(table: Table, columns: LongColumns) -> RttTable:
    """Return the RTTs of a long table; errors as :func:`read_long_rtt`."""
    frame, varying = ColumnTable.of(table), columns.interval is not None
    for name in (columns.source, columns.destination, columns.rtt, columns.interval):
        if name is not None:
            table.column(name)
    if not table.rows:
        raise InputError("no rows", source=table.source, expected="a row per pair")
    labels: tuple[str, ...] = ("",)
    of_interval = np.zeros(frame.rows, dtype=np.intp)
    try:
        if columns.interval is not None:
            labels, of_interval = frame.found(columns.interval, strip=False)
        sources, of_source = frame.found(columns.source)
        destinations, of_destination = frame.found(columns.destination)
        numbers = frame.quantities(columns.rtt, RTT)
    except InputError:
        _check_rows(table, columns)  # the first row that is wrong, whatever its column
        raise
    shape = (len(labels), len(sources), len(destinations))
    cells = np.ravel_multi_index((of_interval, of_source, of_destination), shape)
    if len(np.unique(cells)) < len(cells):
        _check_rows(table, columns)
    if varying:
        order = order_intervals(labels, table.source, fill=False)
        labels, of_interval = order.labels, order.place[of_interval]
    values = np.full(shape, math.nan)
    values[of_interval, of_source, of_destination] = numbers
    return RttTable(
        table.source,
        sources,
        destinations,
        values if varying else values[0],
        labels if varying else (),
        (_from(table.source, columns.rtt),),
    )


def _check_rows(table: Table, columns: LongColumns) -> None:
    """Refuse the first row of a long table with a bad cell, or a pair that was given before."""
    source, destination, rtt = (
        table.column(name) for name in (columns.source, columns.destination, columns.rtt)
    )
    interval = None if columns.interval is None else table.column(columns.interval)
    found: dict[tuple[str, str, str], int] = {}
    for i, cells in enumerate(table.rows):
        at = table.at(i)
        key = (
            "" if interval is None else name_cell(cells[interval], at, table.columns[interval]),
            name_cell(cells[source], at, columns.source).strip(),
            name_cell(cells[destination], at, columns.destination).strip(),
        )
        if key in found:
            pair = f"{key[1]} → {key[2]}" + (f", interval {key[0]}" if key[0] else "")
            raise InputError(
                "a pair given twice",
                source=at,
                field=columns.destination,
                value=pair,
                expected=f"once (first in row {table.numbers[found[key]]})"
                + ("" if key[0] else "; --columns interval=COLUMN, or --format samples"),
            )
        found[key] = i
        quantity_cell(cells[rtt], at, columns.rtt)


def _from(source: str, column: str = "") -> str:
    of = f", column {column!r}" if column else ""
    return f"RTTs were imported from {Path(source).name}{of}."

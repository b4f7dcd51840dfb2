"""Measured RTTs as people have them: square tables, long tables, cloudping's JSON.

Every reader gives an :class:`RttTable`; :mod:`placement.io.assemble_instance` makes an instance of
it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from placement.checks import FloatArray, number
from placement.errors import InputError
from placement.io.formats.column_reader import ColumnTable
from placement.io.formats.document import read_json
from placement.io.formats.tables import (
    RTT,
    Table,
    is_blank,
    name_cell,
    quantity_cell,
    read_table,
)
from placement.io.interval_order import order_intervals

__all__ = [
    "Fill",
    "Kind",
    "LongColumns",
    "RttTable",
    "read_cloudping",
    "read_long_rtt",
    "read_rtt",
    "read_square_rtt",
]

Kind = Literal["auto", "square", "long", "cloudping", "percentiles"]
"""Layout of a file of RTTs."""

Fill = Literal["none", "transpose"]
"""Treatment of a missing pair: refuse it, or take the RTT of the opposite direction."""

_SHOWN = 5


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


@dataclass(frozen=True, eq=False)
class RttTable:
    """RTTs by name, gaps allowed.

    Attributes
    ----------
    source
        The file.
    sources, destinations
        Names along the axes, in the order of the file: a source waits for a destination.
    values
        ms, NaN where nothing was measured: shape (sources, destinations), or with a leading axis of
        intervals.
    intervals
        Labels, oldest first where they are times or numbers, else in the order of the file; empty
        without such an axis.
    provenance
        Sentences for the instance.
    """

    source: str
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    values: FloatArray
    intervals: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()

    def scaled(self, factor: float) -> RttTable:
        """Return the table in other units, for instance times 1000 for seconds.

        Raises
        ------
        InputError
            Unless the factor is a finite number > 0.
        """
        factor = number(factor, "scale", above=True)
        if factor == 1:
            return self
        return RttTable(
            self.source,
            self.sources,
            self.destinations,
            self.values * factor,
            self.intervals,
            (*self.provenance, f"RTTs of {Path(self.source).name} were multiplied by {factor:g}."),
        )

    def between(
        self,
        rows: tuple[str, ...],
        columns: tuple[str, ...],
        *,
        fill: Fill = "none",
        diagonal: bool = True,
    ) -> tuple[FloatArray, tuple[str, ...]]:
        """Return the RTTs from `rows` to `columns`, without gaps.

        Parameters
        ----------
        rows, columns
            Names wanted; those of the table that are not wanted are left out.
        fill
            "transpose": a missing pair takes the RTT of the opposite direction, if that is there.
        diagonal
            Whether an RTT of a name to itself is needed; where it is not, it stays NaN if missing.

        Returns
        -------
        values
            Shape (rows, columns), or with a leading axis of intervals.
        sentences
            What was filled, for the provenance.

        Raises
        ------
        InputError
            For a name that the table does not have, and for missing pairs: how many, and the first
            few.
        """
        place = {
            "source": {name: i for i, name in enumerate(self.sources)},
            "destination": {name: i for i, name in enumerate(self.destinations)},
        }
        values = self._pick(place["source"], place["destination"], rows, columns)
        same = np.array([[a == b for b in columns] for a in rows])
        wanted = np.broadcast_to(np.ones_like(same) if diagonal else ~same, values.shape)
        gaps = np.isnan(values) & wanted
        sentences: tuple[str, ...] = ()
        if gaps.any() and fill == "transpose":
            back = self._pick(place["source"], place["destination"], columns, rows)
            other = np.swapaxes(back, -1, -2)
            filled = gaps & ~np.isnan(other)
            values = np.where(filled, other, values)
            if filled.any():
                sentences = (
                    f"{int(filled.sum())} missing RTTs of {Path(self.source).name} were taken from "
                    f"the opposite direction: {self._pairs(filled, rows, columns)}.",
                )
            gaps = np.isnan(values) & wanted
        if gaps.any():
            raise InputError(
                f"{int(gaps.sum())} of {int(wanted.sum())} pairs have no RTT",
                source=self.source,
                field="rtt",
                value=self._pairs(gaps, rows, columns),
                expected="an RTT for every pair (fill='transpose', --fill transpose, takes the "
                "opposite direction where that was measured)",
            )
        return values, sentences

    def _pick(
        self,
        sources: Mapping[str, int],
        destinations: Mapping[str, int],
        rows: tuple[str, ...],
        columns: tuple[str, ...],
    ) -> FloatArray:
        """Values by name; NaN for names that the table does not have."""
        picked = np.full((*self.values.shape[:-2], len(rows), len(columns)), math.nan)
        known_rows = [i for i, name in enumerate(rows) if name in sources]
        known_columns = [j for j, name in enumerate(columns) if name in destinations]
        from_rows = [sources[rows[i]] for i in known_rows]
        from_columns = [destinations[columns[j]] for j in known_columns]
        picked[..., np.array(known_rows, dtype=np.intp)[:, np.newaxis], known_columns] = (
            self.values[..., np.array(from_rows, dtype=np.intp)[:, np.newaxis], from_columns]
        )
        return picked

    def _pairs(self, where: np.ndarray, rows: tuple[str, ...], columns: tuple[str, ...]) -> str:
        found = [tuple(map(int, index)) for index in np.argwhere(where)[:_SHOWN]]
        shown = [
            f"{rows[i[-2]]} → {columns[i[-1]]}"
            + (f" (interval {self.intervals[i[0]]})" if len(i) == 3 else "")
            for i in found
        ]
        return ", ".join(shown) + (", …" if int(where.sum()) > _SHOWN else "")


def read_rtt(
    path: str | os.PathLike[str], kind: Kind = "auto", columns: LongColumns | None = None
) -> RttTable:
    """Read RTTs of any layout.

    Parameters
    ----------
    path
        CSV, TSV, Parquet or JSON.
    kind
        "auto": JSON is cloudping's; a table is long if it has the three columns of a long table,
        one of percentiles if it has instead ``src``, ``dst`` and columns such as ``p50``, else
        square.
    columns
        Of a long table.

    Raises
    ------
    InputError, MissingDependencyError
        As the reader of the layout.
    """
    if kind not in get_args(Kind):
        raise InputError(
            "unknown layout",
            field="kind",
            value=kind,
            expected="one of " + ", ".join(get_args(Kind)),
        )
    if kind == "cloudping" or (kind == "auto" and Path(path).suffix.lower() == ".json"):
        return read_cloudping(path)
    names = columns or LongColumns()
    table = read_table(path)
    long = {names.source, names.destination, names.rtt} <= set(table.columns)
    if kind == "long" or (kind == "auto" and (long or columns is not None)):
        return _long(table, names)
    if kind == "percentiles" or (kind == "auto" and {"src", "dst"} <= set(table.columns)):
        from placement.io.rtt_distributions import percentile_columns, percentile_rtts

        if kind == "percentiles" or percentile_columns(table):
            return percentile_rtts(table)
    return _square(table)


def read_square_rtt(path: str | os.PathLike[str]) -> RttTable:
    """Read a square (or, for clients, rectangular) table: the row waits for the column.

    The first column names the rows, the header the columns; a blank cell is a missing pair.

    Raises
    ------
    InputError
        For duplicate rows or columns, and for cells that are no RTT.
    """
    return _square(read_table(path))


def _square(table: Table) -> RttTable:
    destinations = tuple(name.strip() for name in table.columns[1:])
    if not destinations:
        raise InputError(
            "one column only",
            source=table.source,
            value=table.columns[0],
            expected="a square table (the names in the first column, a column per destination)",
        )
    _once(destinations, table)
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


def _once(names: tuple[str, ...], table: Table) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(
                "duplicate column", source=table.source, field="header", value=name, expected="once"
            )
        seen.add(name)


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
    return _long(read_table(path), columns or LongColumns())


def _long(table: Table, columns: LongColumns) -> RttTable:
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
                + ("" if key[0] else "; is there a column of intervals?"),
            )
        found[key] = i
        quantity_cell(cells[rtt], at, columns.rtt)


def _from(source: str, column: str = "") -> str:
    of = f", column {column!r}" if column else ""
    return f"RTTs were imported from {Path(source).name}{of}."


# --- cloudping -------------------------------------------------------------------------------


def read_cloudping(path: str | os.PathLike[str]) -> RttTable:
    """Read what the API of cloudping.co (latency between AWS regions) answers.

    Two forms are known: that of ``/latencies``, a percentile over a time frame,

        {"metadata": {"percentile": "p_50", "timeframe": "1Y", "unit": "milliseconds"},
         "data": {"eu-west-1": {"us-east-1": 67.9, …}, …}}

    and the older one of ``/averages/day``,

        [{"region": "eu-west-1", "averages": [{"regionTo": "us-east-1", "average": 68.1}, …]}, …]

    Raises
    ------
    InputError
        For any other form or unit, a pair given twice, and values that are no RTT.
    """
    source = os.fspath(path)
    value = read_json(path)
    if isinstance(value, list):
        pairs, words = _averages(value, source), "averages"
    elif isinstance(value, dict) and isinstance(value.get("data"), dict):
        pairs, words = _latencies(value["data"], source), _metadata(value, source)
    else:
        raise InputError(
            "not an answer of cloudping.co",
            source=source,
            expected='{"metadata": …, "data": {from: {to: ms}}} or '
            '[{"region": from, "averages": [{"regionTo": to, "average": ms}]}]',
        )
    sources = tuple(dict.fromkeys(pair[0] for pair in pairs))
    destinations = tuple(dict.fromkeys(pair[1] for pair in pairs))
    if not pairs:
        raise InputError("no RTTs", source=source, expected="at least one pair of regions")
    rows, columns = ({name: i for i, name in enumerate(axis)} for axis in (sources, destinations))
    values = np.full((len(sources), len(destinations)), math.nan)
    for (start, end), rtt in pairs.items():
        values[rows[start], columns[end]] = rtt
    sentence = (
        f"RTTs were measured by cloudping.co ({words}) and imported from {Path(source).name}."
    )
    return RttTable(source, sources, destinations, values, (), (sentence,))


def _metadata(value: Mapping[str, object], source: str) -> str:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return "percentile and time frame unknown"
    unit = metadata.get("unit", "milliseconds")
    if unit != "milliseconds":
        raise InputError(
            "another unit",
            source=source,
            field="metadata.unit",
            value=unit,
            expected="milliseconds",
        )
    return f"percentile {metadata.get('percentile')}, time frame {metadata.get('timeframe')}"


def _latencies(data: Mapping[str, object], source: str) -> dict[tuple[str, str], float]:
    pairs: dict[tuple[str, str], float] = {}
    for start, row in data.items():
        if not isinstance(row, dict):
            raise InputError(
                "not RTTs by region",
                source=source,
                field=f"data.{start}",
                value=row,
                expected="{…}",
            )
        for end, rtt in row.items():
            if rtt is not None:
                field = f"data.{start}.{end}"
                pairs[_region(start, source, field), _region(end, source, field)] = _json_rtt(
                    rtt, source, field
                )
    return pairs


def _averages(rows: list[object], source: str) -> dict[tuple[str, str], float]:
    pairs: dict[tuple[str, str], float] = {}
    for i, row in enumerate(rows):
        averages = row.get("averages") if isinstance(row, dict) else None
        if not isinstance(row, dict) or not isinstance(averages, list):
            raise InputError(
                "not the averages of a region",
                source=source,
                field=f"[{i}]",
                value=row,
                expected='{"region": …, "averages": […]}',
            )
        start = _region(row.get("region"), source, f"[{i}].region")
        for j, item in enumerate(averages):
            place = f"[{i}].averages[{j}]"
            if not isinstance(item, dict):
                raise InputError(
                    "not an average", source=source, field=place, value=item, expected="{…}"
                )
            end = _region(item.get("regionTo"), source, f"{place}.regionTo")
            if (start, end) in pairs:
                raise InputError(
                    "a pair given twice",
                    source=source,
                    field=f"{place}.regionTo",
                    value=f"{start} → {end}",
                    expected="once",
                )
            if item.get("average") is not None:
                pairs[start, end] = _json_rtt(item["average"], source, f"{place}.average")
    return pairs


def _region(value: object, source: str, field: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(
            "not a region", source=source, field=field, value=value, expected="the name of a region"
        )
    return value.strip()


def _json_rtt(value: object, source: str, field: str) -> float:
    if isinstance(value, (dict, list)):
        raise InputError(
            "not a number", source=source, field=field, value=value, expected="milliseconds"
        )
    return quantity_cell(value, source, field)

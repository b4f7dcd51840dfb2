"""Measured distributions of RTTs in their usual formats: percentiles, histograms, samples per pair.

A long table with the columns ``src`` and ``dst`` and

* a column per percentile, such as ``p10``, ``p50``, ``p99`` (also ``rtt_p50``, ``p50_ms``,
  ``rtt_p50_ms``): a row per pair;
* or ``rtt`` and ``count`` (or ``weight``, ``probability``, ``share``): a row per pair and bar of
  its histogram;
* or ``rtt`` alone: a row per sample.

The source waits for the destination. A row serves a client and a site of the same name alike.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placement.errors import InputError, PlacementWarning, UnitsWarning
from placement.io.formats.column_reader import ColumnTable
from placement.io.formats.tables import (
    RTT,
    Table,
    csv_bytes,
    name_cell,
    quantity_cell,
    read_table,
)
from placement.io.rtt_table import RttTable
from placement.model.instance import Instance
from placement.support.checks import FloatArray
from placement.tail.bin_grid import bins_for, bins_within, reach_of_percentiles
from placement.tail.histograms import means_of_percentiles, of_percentiles, of_weights
from placement.tail.rtt_distributions import Distributions

__all__ = [
    "PairTable",
    "distributions_of",
    "pairs_csv",
    "pairs_of",
    "percentile_columns",
    "percentile_rtts",
    "read_distributions",
    "read_pairs",
    "weight_of",
]

_PERCENTILE = re.compile(r"(?:rtt_)?p(\d+(?:\.\d+)?)(?:_ms)?")
_WEIGHTS = ("count", "weight", "probability", "share")
_MEANS = ("rtt_mean_ms", "rtt_mean", "mean_ms", "mean", "rtt")
_SHOWN = 5
_UNLIKE = 5.0

Pair = tuple[str, str]
"""Source and destination."""

Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Values in ms, and the percents or weights that belong to them."""


@dataclass(frozen=True, eq=False)
class PairTable:
    """Distributions by name, gaps allowed.

    Attributes
    ----------
    source
        The file.
    percents
        Rising; empty for histograms and samples.
    pairs
        What is told of each pair.
    """

    source: str
    percents: tuple[float, ...]
    pairs: Mapping[Pair, Curve]

    def constant(self, rtt: float) -> Curve:
        """Return the row in this table of a pair whose RTT never varies."""
        return ((rtt,) * len(self.percents), self.percents) if self.percents else ((rtt,), (1.0,))

    def reach(self, curve: Curve) -> float:
        """RTT in ms that is hardly ever exceeded."""
        return reach_of_percentiles(self.percents, curve[0]) if self.percents else max(curve[0])

    def histogram(self, curve: Curve, width: float, bins: int) -> FloatArray:
        """Probabilities per bin."""
        if self.percents:
            percentiles = dict(zip(self.percents, curve[0], strict=True))
            return of_percentiles(percentiles, width=width, bins=bins)
        return of_weights(*curve, width=width, bins=bins)


def percentile_columns(table: Table) -> dict[float, int]:
    """Percent -> position of its column, rising; empty when there is none.

    Raises
    ------
    InputError
        For two columns of one percentile, or one that is not between 0 and 100.
    """
    found: dict[float, int] = {}
    for position, name in enumerate(table.columns):
        match = _PERCENTILE.fullmatch(name.strip())
        if match is None:
            continue
        percent = float(match[1])
        if not 0 < percent < 100 or percent in found:
            raise InputError(
                "not a percentile" if percent not in found else "a percentile given twice",
                source=table.source,
                field="header",
                value=name,
                expected="p1 to p99.9…, each once",
            )
        found[percent] = position
    return dict(sorted(found.items()))


def read_pairs(path: str | os.PathLike[str]) -> PairTable:
    """Read distributions of any of the three layouts.

    Raises
    ------
    InputError
        For a missing column, percentiles that fall within a row, a pair given twice (in a table of
        percentiles), a histogram without weight, and cells that are no numbers; with file, row,
        field.
    """
    return pairs_of(read_table(path))


def weight_of(table: Table) -> str | None:
    """Return the column with the weights of a histogram; None without one."""
    return next((name for name in _WEIGHTS if name in table.columns), None)


def pairs_of(table: Table) -> PairTable:
    """Return the distributions of a table; errors as :func:`read_pairs`."""
    source, destination = table.column("src"), table.column("dst")
    percents = percentile_columns(table)
    if not table.rows:
        raise InputError("no rows", source=table.source, expected="a row per pair")
    if percents:
        return _percentiles(table, source, destination, percents)
    weight = weight_of(table)
    rtt = table.column("rtt")
    bars: dict[Pair, tuple[list[float], list[float]]] = {}
    for i, cells in enumerate(table.rows):
        at = table.at(i)
        values, weights = bars.setdefault(_pair(cells, at, source, destination), ([], []))
        values.append(quantity_cell(cells[rtt], at, "rtt"))
        weights.append(
            1.0
            if weight is None
            else quantity_cell(cells[table.column(weight)], at, weight, "a finite number >= 0")
        )
    for pair, (_, weights) in bars.items():
        if not sum(weights) > 0:
            raise InputError(
                f"a histogram without weight: {pair[0]} → {pair[1]}",
                source=table.source,
                field=weight or "",
                value=0.0,
                expected="a weight > 0",
            )
    return PairTable(
        table.source, (), {pair: (tuple(v), tuple(w)) for pair, (v, w) in bars.items()}
    )


def _pair(cells: tuple[object, ...], at: str, source: int, destination: int) -> Pair:
    return (
        name_cell(cells[source], at, "src").strip(),
        name_cell(cells[destination], at, "dst").strip(),
    )


def _percentiles(
    table: Table, source: int, destination: int, columns: Mapping[float, int]
) -> PairTable:
    percents = tuple(columns)
    if len(percents) < 2:
        raise InputError(
            "one percentile only",
            source=table.source,
            field="header",
            value=table.columns[columns[percents[0]]],
            expected="two or more columns such as p50 and p99",
        )
    pairs = _whole_percentiles(table, source, destination, columns)
    if len(pairs) == len(table.rows):
        return PairTable(table.source, percents, pairs)
    pairs = {}
    first: dict[Pair, int] = {}
    for i, cells in enumerate(table.rows):
        at = table.at(i)
        pair = _pair(cells, at, source, destination)
        if pair in pairs:
            raise InputError(
                "a pair given twice",
                source=at,
                field="dst",
                value=f"{pair[0]} → {pair[1]}",
                expected=f"once (first in row {table.numbers[first[pair]]})",
            )
        values: list[float] = []
        for position in columns.values():
            name = table.columns[position]
            value = quantity_cell(cells[position], at, name)
            if values and value < values[-1]:
                raise InputError(
                    "below the percentile before it",
                    source=at,
                    field=name,
                    value=cells[position],
                    expected=f">= {values[-1]:g}",
                )
            values.append(value)
        pairs[pair], first[pair] = (tuple(values), percents), i
    return PairTable(table.source, percents, pairs)


def _whole_percentiles(
    table: Table, source: int, destination: int, columns: Mapping[float, int]
) -> dict[Pair, Curve]:
    """Return the pairs of a table where all is well; fewer than its rows where one is wrong."""
    frame, percents = ColumnTable.of(table), tuple(columns)
    try:
        sources, of_source = frame.found(table.columns[source])
        destinations, of_destination = frame.found(table.columns[destination])
        values = frame.matrix([table.columns[place] for place in columns.values()], RTT)
    except InputError:
        return {}
    if (np.diff(values, axis=1) < 0).any():
        return {}
    ends = zip(of_source.tolist(), of_destination.tolist(), values.tolist(), strict=True)
    return {(sources[a], destinations[b]): (tuple(curve), percents) for a, b, curve in ends}


def percentile_rtts(table: Table) -> RttTable:
    """RTTs of a table of percentiles: its column of means, or the means of what it describes.

    Parameters
    ----------
    table
        Columns ``src``, ``dst``, percentiles, and perhaps ``mean`` (also ``rtt_mean``, ``mean_ms``,
        ``rtt_mean_ms``, ``rtt``).

    Raises
    ------
    InputError
        As :func:`read_pairs`.
    """
    found = _percentiles(table, table.column("src"), table.column("dst"), percentile_columns(table))
    column = next((name for name in _MEANS if name in table.columns), None)
    sources = tuple(dict.fromkeys(a for a, _ in found.pairs))
    destinations = tuple(dict.fromkeys(b for _, b in found.pairs))
    values = np.full((len(sources), len(destinations)), np.nan)
    rows, columns = ({name: i for i, name in enumerate(axis)} for axis in (sources, destinations))
    if column is None:
        means = means_of_percentiles(
            found.percents, [curve for curve, _ in found.pairs.values()]
        ).tolist()
    else:
        place = table.column(column)
        means = [
            quantity_cell(cells[place], table.at(row), column)
            for row, cells in enumerate(table.rows)
        ]
    for (a, b), mean in zip(found.pairs, means, strict=True):
        values[rows[a], columns[b]] = mean
    how = f"column {column!r}" if column is not None else "means of the percentiles"
    return RttTable(
        table.source,
        sources,
        destinations,
        values,
        (),
        (f"RTTs were imported from {Path(table.source).name}, {how}.",),
    )


def read_distributions(
    path: str | os.PathLike[str],
    instance: Instance,
    *,
    clients: str | os.PathLike[str] | None = None,
    width: float = 1.0,
    horizon: float | None = None,
) -> Distributions:
    """Read the distributions of an instance's pairs.

    Parameters
    ----------
    path
        Table of pairs; pairs that the instance does not have are left out.
    instance
        With one RTT matrix.
    clients
        Table of the pairs from clients to sites, where it is another file.
    width
        Bin width in ms.
    horizon
        Last RTT in ms that is told apart; None: far enough for the operations of the instance.

    Raises
    ------
    InputError
        As :func:`read_pairs`, and when pairs are missing: how many, and the first few.

    Warns
    -----
    UnitsWarning
        When the means are far from the RTTs of the instance.
    PlacementWarning
        When a client stands in a site of its own name and no row tells their distribution: its RTT
        is then taken to be constant.
    """
    sites = read_pairs(path)
    return distributions_of(
        sites,
        instance,
        clients=sites if clients is None else read_pairs(clients),
        width=width,
        horizon=horizon,
    )


def distributions_of(
    sites: PairTable,
    instance: Instance,
    *,
    clients: PairTable,
    width: float = 1.0,
    horizon: float | None = None,
) -> Distributions:
    """Make distributions of tables of pairs; parameters as for :func:`read_distributions`."""
    between = _curves(sites, instance.sites, instance.sites, instance.site_rtt)
    reading = _curves(clients, instance.clients, instance.sites, instance.client_rtt)
    parts = ((sites, between), (clients, reading))
    if horizon is not None:
        bins = bins_within(instance, horizon, width)
    else:
        reaches = [table.reach(curve) for table, rows in parts for row in rows for curve in row]
        endless = bool(sites.percents or clients.percents)
        bins = bins_for(instance, reaches, width, endless=endless)
    if sites.percents and sites.percents == clients.percents:
        made = Distributions.from_percentiles(
            instance,
            sites.percents,
            np.array([[curve[0] for curve in row] for row in reading]),
            np.array([[curve[0] for curve in row] for row in between]),
            width=width,
            bins=bins,
        )
    else:
        to_sites, across = (
            np.array([[table.histogram(curve, width, bins) for curve in row] for row in rows])
            for table, rows in ((clients, reading), (sites, between))
        )
        own = np.arange(len(instance.sites))
        across[own, own] = np.eye(1, bins)[0]
        made = Distributions(to_sites, across, width, instance.sites, instance.clients)
    _compare_units(made, instance, sites.source)
    return made


def _curves(
    table: PairTable, rows: tuple[str, ...], columns: tuple[str, ...], rtt: FloatArray
) -> list[list[Curve]]:
    """Entries of the table for every pair; a name that waits for itself may be missing."""
    if rtt.ndim != 2:
        raise InputError(
            "RTTs that vary by interval have no one distribution per pair",
            field="instance",
            expected="an instance with one RTT matrix",
        )
    missing = [(a, b) for a in rows for b in columns if a != b and (a, b) not in table.pairs]
    if missing:
        shown = ", ".join(f"{a} → {b}" for a, b in missing[:_SHOWN])
        raise InputError(
            f"{len(missing)} of {len(rows) * len(columns)} pairs have no distribution",
            source=table.source,
            field="src, dst",
            value=shown + (", …" if len(missing) > _SHOWN else ""),
            expected="rows for every pair",
        )
    same = [(i, columns.index(a)) for i, a in enumerate(rows) if a in columns]
    still = [rows[i] for i, j in same if (rows[i], columns[j]) not in table.pairs and rtt[i, j]]
    if still:
        _warn_still(table, still)
    found: list[list[Curve]] = []
    for i, a in enumerate(rows):
        found.append([])
        for j, b in enumerate(columns):
            found[-1].append(table.pairs.get((a, b)) or table.constant(float(rtt[i, j])))
    return found


def _warn_still(table: PairTable, names: list[str]) -> None:
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    warnings.warn(
        f"{table.source}: no distribution from {shown} to itself; the RTT of the instance is taken "
        "to be constant there",
        PlacementWarning,
        stacklevel=2,
    )


def _compare_units(made: Distributions, instance: Instance, source: str) -> None:
    """Warn when the distributions cannot be about the RTTs of the instance."""
    place = np.arange(made.bins) * made.width
    # Overflow lies beyond the horizon, so that this mean is at most the real one.
    mean = float((made.client_site @ place).mean() + (made.site_site @ place).mean())
    told = float(instance.client_rtt.mean() + instance.site_rtt.mean())
    if told > 0 and not told / _UNLIKE < mean < told * _UNLIKE:
        warnings.warn(
            f"{source}: the mean of the distributions is {mean:.4g} ms where that of the "
            f"instance's RTTs is {told:.4g} ms; are they milliseconds?",
            UnitsWarning,
            stacklevel=2,
        )


def pairs_csv(table: PairTable) -> bytes:
    """Return a table of percentiles, or of RTTs and weights; floats to the last bit."""
    if table.percents:
        columns = ["src", "dst", *(f"p{percent:g}" for percent in table.percents)]
        return csv_bytes(columns, [(a, b, *curve[0]) for (a, b), curve in table.pairs.items()])
    rows: list[tuple[str, str, float, float]] = [
        (a, b, value, weight)
        for (a, b), (values, weights) in table.pairs.items()
        for value, weight in zip(values, weights, strict=True)
    ]
    return csv_bytes(["src", "dst", "rtt", "count"], rows)

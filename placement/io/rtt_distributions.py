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
import warnings

import numpy as np

from placement.errors import PlacementWarning, UnitsWarning, refused, require
from placement.io.feeds.rtt_tables import read_pairs
from placement.io.formats.tables import csv_bytes
from placement.io.rtt_table import Curve, PairTable
from placement.model.instance import Instance
from placement.support.checks import FloatArray
from placement.tail.rtt_distributions import Distributions, bins_for, bins_within

_SHOWN = 5
_UNLIKE = 5.0


def read_distributions(
    path: str | os.PathLike[str],
    instance: Instance,
    *,
    clients: str | os.PathLike[str] | None = None,
    width: float = 1.0,
    horizon: float | None = None,
) -> Distributions:
    """Read the distributions of an instance's pairs; those of clients may be in another file.

    `width` of a bin in ms; `horizon` is the last RTT that is told apart, None: far enough. Missing
    pairs are refused, and a client in a site of its own name may have a constant RTT.
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
    place = np.arange(made.bins) * made.width
    # Overflow lies beyond the horizon, so that this mean is at most the real one.
    mean = sum(float((t[:] @ place).mean()) for t in (made.client_site, made.site_site))
    told = float(instance.client_rtt.mean() + instance.site_rtt.mean())
    if told > 0 and not told / _UNLIKE < mean < told * _UNLIKE:
        warnings.warn(
            f"{sites.source}: the mean of the distributions is {mean:.4g} ms where that of the "
            f"instance's RTTs is {told:.4g} ms; are they milliseconds?",
            UnitsWarning,
            stacklevel=2,
        )
    return made


def _curves(
    table: PairTable, rows: tuple[str, ...], columns: tuple[str, ...], rtt: FloatArray
) -> list[list[Curve]]:
    """Entries of the table for every pair; a name that waits for itself may be missing."""
    words = "RTTs that vary by interval have no one distribution per pair"
    require(rtt.ndim == 2, "instance", words, expected="an instance with one RTT matrix")
    missing = [(a, b) for a in rows for b in columns if a != b and (a, b) not in table.pairs]
    if missing:
        shown = ", ".join(f"{a} → {b}" for a, b in missing[:_SHOWN])
        words = f"{len(missing)} of {len(rows) * len(columns)} pairs have no distribution"
        shown += ", …" if len(missing) > _SHOWN else ""
        raise refused(table.source, "src, dst", words, shown, "rows for every pair")
    same = [(i, columns.index(a)) for i, a in enumerate(rows) if a in columns]
    still = [rows[i] for i, j in same if (rows[i], columns[j]) not in table.pairs and rtt[i, j]]
    if still:
        shown = ", ".join(still[:_SHOWN]) + (", …" if len(still) > _SHOWN else "")
        warnings.warn(
            f"{table.source}: no distribution from {shown} to itself; the RTT of the instance is "
            "taken to be constant there",
            PlacementWarning,
            stacklevel=2,
        )
    found: list[list[Curve]] = []
    for i, a in enumerate(rows):
        found.append([])
        for j, b in enumerate(columns):
            found[-1].append(table.pairs.get((a, b)) or table.constant(float(rtt[i, j])))
    return found


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

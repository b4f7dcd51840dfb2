"""Load of the servers over time, and latency over time, of one run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placement.online.selection.simulator import SelectionRun
from placement.support.checks import FloatArray, IntArray, instance_of, number

__all__ = ["TimeLine", "busiest_load", "server_load", "time_line"]


def server_load(run: SelectionRun, bin_ms: float = 100.0) -> IntArray:
    """Return the reads that each server began to serve in each bin, shape (bins, servers).

    Reads count where they were answered first; updates, copies and duplicates that lost do not
    count. The last bin, which may not be full, is left out.
    """
    instance_of(run, SelectionRun, "run", "a SelectionRun")
    number(bin_ms, "bin_ms", above=True)
    servers = run.sample.cluster.servers
    counted = ~run.update
    bins = int(run.end_ms // bin_ms)
    place = np.floor(run.start[counted] / bin_ms).astype(np.intp)
    inside = place < bins
    cell = place[inside] * servers + run.server[counted][inside]
    return np.bincount(cell, minlength=bins * servers).reshape(bins, servers)


def busiest_load(run: SelectionRun, bin_ms: float = 100.0) -> IntArray:
    """Return the reads per bin of the server that served most reads in the whole run."""
    load = server_load(run, bin_ms)
    return np.asarray(load[:, int(load.sum(axis=0).argmax())])


@dataclass(frozen=True, eq=False)
class TimeLine:
    """Latency of the reads over time, by the time at which they were issued; shape (bins,) each.

    Attributes
    ----------
    start
        Beginning of each bin, ms.
    count
        Reads.
    median, p99
        Latency in ms; NaN without reads.
    """

    start: FloatArray
    count: IntArray
    median: FloatArray
    p99: FloatArray


def time_line(run: SelectionRun, bin_ms: float = 100.0) -> TimeLine:
    """Return the time line of a run; O(n log n)."""
    instance_of(run, SelectionRun, "run", "a SelectionRun")
    number(bin_ms, "bin_ms", above=True)
    reads = ~run.update
    place = np.floor(run.issued[reads] / bin_ms).astype(np.intp)
    order = np.argsort(place, kind="stable")
    latency, place = run.latency[reads][order], place[order]
    bins = int(place[-1]) + 1 if len(place) else 0
    borders = np.searchsorted(place, np.arange(bins + 1))
    parts = [latency[a:b] for a, b in pairwise(borders.tolist())]

    def percentile(share: float) -> FloatArray:
        found = [np.percentile(part, share) if len(part) else np.nan for part in parts]
        return np.array(found, dtype=np.float64)

    return TimeLine(
        np.arange(bins, dtype=np.float64) * bin_ms, np.diff(borders), percentile(50), percentile(99)
    )

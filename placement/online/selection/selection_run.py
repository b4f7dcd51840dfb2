"""Run of a policy on a sample path: what came out, load over time, latency over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.online.selection.sample_path import ServerSamplePath
from placement.online.simulation import Latencies, summarise
from placement.support.checks import BoolArray, FloatArray, IntArray, instance_of, number

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class SelectionRun:
    """Run of one policy on one sample path.

    Attributes
    ----------
    policy
        Its name.
    sample
        The path.
    issued
        ms at which each operation reached its client, shape (n,).
    latency
        End-to-end ms of every operation, from reaching the client to the first response that
        counts; shape (n,).
    server
        Server of that response, shape (n,).
    start
        When service began there, ms, shape (n,).
    update
        Whether the operation is an update, shape (n,).
    end_ms
        When the last read was answered; 0 without reads.
    tries, refused
        How often a read asked the bucket of a replica for a token, and got none; both 0 without a
        limiter.
    events
        Operations, network arrivals, completions, responses, wakes, retries, and ends of the wait
        for a duplicate that were processed.
    hedged
        Reads that were sent to a second replica.
    """

    policy: str
    sample: ServerSamplePath
    issued: FloatArray
    latency: FloatArray
    server: IntArray
    start: FloatArray
    update: BoolArray
    end_ms: float
    tries: int
    refused: int
    events: int
    hedged: int

    def latencies(self, warm_up_ms: float = 0.0) -> Latencies:
        """Summarise the reads that reached their client at or after `warm_up_ms`."""
        return summarise(self.latency[(self.issued >= warm_up_ms) & ~self.update])

    @property
    def at_nearest(self) -> BoolArray:
        """Whether the nearest replica of its client answered each operation, shape (n,)."""
        sample = self.sample
        way = sample.cluster.one_way[sample.client]
        nearest = np.take_along_axis(way, sample.cluster.groups[sample.group], axis=1).min(axis=1)
        return np.asarray(way[np.arange(sample.size), self.server] <= nearest)

    @property
    def refused_share(self) -> float:
        """Refused over tries; 0 without tries."""
        return self.refused / self.tries if self.tries else 0.0

    @property
    def throughput(self) -> float:
        """Operations answered per second of simulated time; NaN when no time passed."""
        return self.sample.size / self.end_ms * 1000.0 if self.end_ms else math.nan


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


def time_line(run: SelectionRun, bin_ms: float = 100.0) -> pd.DataFrame:
    """Return the latency of the reads over time, a row for each bin of the times of their issue.

    The index is the beginning of the bin in ms. Columns: ``reads``, their ``median`` and ``p99``
    latency in ms, NaN without reads.
    """
    import pandas as pd

    instance_of(run, SelectionRun, "run", "a SelectionRun")
    number(bin_ms, "bin_ms", above=True)
    reads = ~run.update
    place = np.floor(run.issued[reads] / bin_ms).astype(np.intp)
    parts = pd.Series(run.latency[reads]).groupby(place)
    found = {"reads": parts.size(), "median": parts.median(), "p99": parts.quantile(0.99)}
    line = pd.DataFrame(found).reindex(range(place.max(initial=-1) + 1)).fillna({"reads": 0})
    return line.set_axis(line.index * bin_ms)

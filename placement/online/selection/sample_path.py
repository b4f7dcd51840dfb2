"""A sample path, drawn before any policy decides, and the run of a policy on it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, require
from placement.online.selection.cluster import ServerCluster
from placement.online.simulation import Latencies, checked_seed, spawn_streams, summarise, zipf
from placement.support.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    instance_of,
    number,
    numbers_of,
    read_only,
    whole,
)

if TYPE_CHECKING:
    import pandas as pd

_SPARE = 4.0
"""Speeds are drawn for this many times the span of the arrivals; what drains later reuses them."""

_TYPES: dict[str, type[np.generic]] = {
    "arrival": np.float64,
    "client": np.intp,
    "group": np.intp,
    "work": np.float64,
    "shadowed": np.bool_,
    "shadow_work": np.float64,
    "shuffle": np.int8,
    "uniform": np.float64,
    "mix": np.float64,
    "means": np.float64,
}
"""Types of the arrays of a path: the compiled event loop reads their bytes."""

_MOST_UNITS = 1000
"""Largest multiple of the common unit of all means on a grid."""

_LONGEST = 1e12
"""No time of a path is longer, ms."""


@dataclass(frozen=True, eq=False)
class ServerSamplePath:
    """The randomness of one run; policies share it (common random numbers).

    Attributes
    ----------
    cluster, seed
        Cluster of the path, and seed of its draw.
    arrival
        ms at which each read reaches its client, increasing; shape (n,). Generators in a closed
        loop ignore it.
    client, group
        Of each read, shape (n,).
    work
        Unit-mean work of each read, shape (n,).
    shadowed
        Whether the read also goes to the other replicas, shape (n,).
    shadow_work
        Work of those extra reads, by the order of the other replicas on the ring; shape
        (n, replication − 1). Each copy has its own.
    shuffle
        A random order of the replicas' places for each read, for random policies and random ties:
        each row a permutation; shape (n, replication).
    uniform
        A uniform number per read, for policies that need one; shape (n,).
    mix
        A uniform number per operation: it is an update where the number is below the
        `update_share` of its generators; shape (n,).
    means
        Mean service time in ms of every server in each epoch, shape (epochs, servers).
    """

    cluster: ServerCluster
    seed: int
    arrival: FloatArray
    client: IntArray
    group: IntArray
    work: FloatArray
    shadowed: BoolArray
    shadow_work: FloatArray
    shuffle: npt.NDArray[np.int8]
    uniform: FloatArray
    mix: FloatArray
    means: FloatArray

    def __post_init__(self) -> None:
        instance_of(
            self.cluster, ServerCluster, "cluster", "a ServerCluster of placement.online.selection"
        )
        checked_seed(self.seed)
        for name, kind in _TYPES.items():
            object.__setattr__(self, name, _typed(getattr(self, name), name, kind))
        if self.arrival.ndim != 1 or self.means.ndim != 2:
            name = "means" if self.arrival.ndim == 1 else "arrival"
            raise InputError(
                "wrong shape",
                field=name,
                value=getattr(self, name).shape,
                expected="(n,)" if name == "arrival" else "(epochs, servers)",
            )
        cluster, n = self.cluster, len(self.arrival)
        others = cluster.replication - 1
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_TYPES, (n,))
        shapes |= {"shadow_work": (n, others), "shuffle": (n, others + 1)}
        shapes["means"] = (len(self.means), cluster.servers)
        for name, shape in shapes.items():
            found = getattr(self, name).shape
            if found != shape:
                raise InputError("wrong shape", field=name, value=found, expected=str(shape))
        if not len(self.means) or not (np.isfinite(self.means) & (self.means > 0)).all():
            raise InputError("not a mean", field="means", expected="at least one epoch, all > 0")
        if n and (np.diff(self.arrival) < 0).any():
            raise InputError("not in order", field="arrival", expected="increasing times")
        longest = float(self.means.max())
        for name in ("arrival", "work", "shadow_work"):
            times = getattr(self, name) * (1.0 if name == "arrival" else longest)
            # Beyond, a float can no longer tell nearby events apart.
            if not ((times >= 0) & (times < _LONGEST)).all():
                raise InputError("not a time", field=name, expected=f"0 to {_LONGEST:g} ms")
        for name in ("uniform", "mix"):
            if not ((getattr(self, name) >= 0) & (getattr(self, name) < 1)).all():
                raise InputError("out of range", field=name, expected="numbers from 0 to below 1")
        for name, below in (("client", cluster.clients), ("group", len(cluster.groups))):
            values = getattr(self, name)
            if n and (values.min() < 0 or values.max() >= below):
                expected = f"whole numbers from 0 to {below - 1}"
                raise InputError("out of range", field=name, expected=expected)
        # A row that leaves a replica out leaves its place in the order of a policy undefined.
        wrong = (np.sort(self.shuffle, axis=1) != np.arange(others + 1)).any(axis=1)
        if wrong.any():
            read = int(np.argmax(wrong))
            raise InputError(
                f"row {read} is no order of the replicas", field="shuffle",
                value=self.shuffle[read].tolist(), expected=f"each of 0 to {others} once",
            )  # fmt: skip

    @property
    def size(self) -> int:
        """Number of reads."""
        return len(self.arrival)

    def mean_at(self, server: int, time_ms: float) -> float:
        """Return the mean service time in force, in ms; epochs repeat after the last one drawn."""
        epoch = math.floor(time_ms / self.cluster.epoch_ms) if self.epochs > 1 else 0
        return float(self.means[epoch % self.epochs, server])

    @property
    def epochs(self) -> int:
        """Return the number of sampled epochs of speeds."""
        return len(self.means)

    def first(self, count: int, *, plain_from: int | None = None) -> Self:
        """Return the path of the first `count` reads.

        Parameters
        ----------
        count
            From 0 to the number of reads.
        plain_from
            From this read on nothing is shadowed; None: leave all as it is.
        """
        path = self.only(slice(whole(count, "count", maximum=self.size)))
        if plain_from is None:
            return path
        plain = path.shadowed & (np.arange(path.size) < plain_from)
        return dataclasses.replace(path, shadowed=read_only(plain))

    def only(self, which: BoolArray | slice) -> Self:
        """Return the path of some operations alone."""
        names = [name for name in _TYPES if name != "means"]
        return dataclasses.replace(self, **{name: getattr(self, name)[which] for name in names})

    def on_grid(self, ticks_per_ms: int = 128) -> Self:
        """Return the path rounded so that every time is a whole number of ticks.

        Times become multiples of 1/ticks_per_ms ms, which must be a power of two: sums of such
        numbers are exact in floating point, so that simulator and integer programs compute the
        same numbers. The work becomes the service time on a fast server (ms), the means become 1
        (fast) and `fluctuation` (slow).

        Raises
        ------
        InputError
            When ticks_per_ms is no power of two, or the delay, the epoch or the fluctuation does
            not fit the grid.
        """
        ticks = whole(ticks_per_ms, "ticks_per_ms", minimum=1)
        words = "floats are exact on binary grids only"
        require(ticks & (ticks - 1) == 0, "ticks_per_ms", words, ticks, "a power of two")
        cluster = self.cluster
        for name in ("one_way_ms", "epoch_ms"):
            value = getattr(cluster, name)
            if math.isfinite(value) and value * ticks != round(value * ticks):
                raise InputError(
                    "not on the grid", field=name, value=value, expected=f"multiples of 1/{ticks}"
                )
        unit = _common_unit(np.unique(self.means))
        factors = np.rint(self.means / unit) if unit else self.means
        exact = np.allclose(factors * unit, self.means, rtol=1e-9, atol=0)
        if not exact or factors.max() > _MOST_UNITS:
            raise InputError(
                "not on the grid",
                field="fluctuation",
                value=cluster.fluctuation,
                expected=f"means that are multiples of one time, by at most {_MOST_UNITS}",
            )

        def rounded(work: FloatArray) -> FloatArray:
            return read_only(np.maximum(1, np.rint(work * unit * ticks)) / ticks)

        return dataclasses.replace(
            self,
            cluster=dataclasses.replace(
                cluster,
                rtt_ms=tuple(map(tuple, 2 * np.rint(cluster.one_way * ticks) / ticks))
                if cluster.rtt_ms
                else (),
            ),
            arrival=read_only(np.floor(self.arrival * ticks) / ticks),
            work=rounded(self.work),
            shadow_work=rounded(self.shadow_work),
            means=read_only(factors),
        )


def draw(cluster: ServerCluster, seed: int) -> ServerSamplePath:
    """Draw a sample path.

    Parameters
    ----------
    cluster
        What to draw for.
    seed
        Streams are those of :func:`placement.online.spawn_streams`; work is drawn per request and
        not per server, so that a request is equally large wherever it goes.

    Notes
    -----
    O(n·replication + epochs·servers).
    """
    instance_of(cluster, ServerCluster, "cluster", "a ServerCluster of placement.online.selection")
    streams = spawn_streams(seed)
    n, others = cluster.requests, cluster.replication - 1
    rng = streams["arrivals"]
    arrival = _arrivals(cluster, rng)
    client = rng.choice(cluster.clients, n, p=cluster.client_weights / cluster.client_weights.sum())
    if cluster.group_zipf:
        group = rng.choice(len(cluster.groups), n, p=cluster.group_chances)
    else:
        group = rng.integers(len(cluster.groups), size=n)
    work = streams["work"].standard_exponential(n)
    mix, size = streams["work"].random(n), np.ones(n)  # of the records, over the mean size
    if cluster.largest_record > 1:
        each = np.arange(1, cluster.largest_record + 1, dtype=np.float64)
        chance = zipf(cluster.largest_record, cluster.record_zipf)
        size = streams["work"].choice(each, n, p=chance) / (chance @ each)
    shadow, policy = streams["shadow"], streams["policy"]
    return ServerSamplePath(
        cluster,
        seed,
        read_only(arrival),
        read_only(client.astype(np.intp)),
        read_only(group.astype(np.intp)),
        read_only(work * size),
        read_only(shadow.random(n) < cluster.shadow),
        read_only(shadow.standard_exponential((n, others)) * size[:, np.newaxis]),
        read_only(np.argsort(policy.random((n, others + 1)), axis=1).astype(np.int8)),
        read_only(policy.random(n)),
        read_only(mix),
        read_only(_speeds(cluster, streams["speeds"], float(arrival[-1]) if n else 0.0)),
    )


def _common_unit(means: FloatArray) -> float:
    """Return the largest time of which all means are multiples; near 0 if there is none."""
    unit = Fraction(0)
    for mean in means.tolist():
        other = Fraction(mean).limit_denominator(10**6)
        while other:
            unit, other = other, unit % other
    return float(unit)


def _typed(values: object, field: str, kind: type[np.generic]) -> npt.NDArray[np.generic]:
    """Return an array of a type; numbers that the type cannot hold are refused."""
    if isinstance(values, np.ndarray) and values.dtype == kind:
        return values
    numbers = numbers_of(values, field)
    with np.errstate(invalid="ignore"):
        array = numbers.astype(kind)
    if kind is not np.float64 and (array != numbers).any():
        words = "True or False" if kind is np.bool_ else "whole numbers"
        raise InputError("of another type", field=field, expected=words)
    return read_only(array)


def _arrivals(cluster: ServerCluster, rng: np.random.Generator) -> FloatArray:
    n, rate = cluster.requests, cluster.arrivals_per_ms
    if cluster.arrivals == "poisson":
        return np.cumsum(rng.exponential(1 / rate, n))
    rows = -(-n // cluster.generators)
    gaps = rng.poisson(cluster.generators / rate, (rows, cluster.generators)).astype(np.float64)
    if rows:
        gaps[0] = 0.0  # every source fires at once at the start
    times = np.cumsum(gaps, axis=0).ravel()[:n]
    return np.sort(times, kind="stable")


def _speeds(cluster: ServerCluster, rng: np.random.Generator, last_ms: float) -> FloatArray:
    epochs = 1
    if cluster.fluctuation > 1 and math.isfinite(cluster.epoch_ms):
        epochs += 1 + math.ceil(_SPARE * last_ms / cluster.epoch_ms)
    fast = rng.random((epochs, cluster.servers)) < 0.5
    means = np.where(fast, cluster.fast_ms, cluster.slow_ms)
    return means * np.array(cluster.slowness) if cluster.slowness else means


# --- the run of a policy on a path --------------------------------------------------------------


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

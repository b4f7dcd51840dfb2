"""Two linear programs whose duals are prices of server time.

The time-indexed program of a window has slots of `width` ticks; x_rsu >= 0 is the part of read r
that starts on server s in slot u:

    min  Σ (max(u·width, a_r + l) + p + l − a_r)·x_rsu
    Σ_su x_rsu = 1                                            for every read
    Σ_r Σ_{u' <= u < u' + ⌊p/width⌋} x_rsu' <= c − fixed_su    for every server and slot

It is a relaxation for every width: a read counted in slot u is in service at the end of the slot.
Fixed intervals count likewise. The bound is not the solver's word: the duals, made non-negative,
are put into the Lagrangean bound of this program, computed here, and into that of
:mod:`~formulations.online.selection.price_bounds`, which knows the true durations and is the
stronger of the two.

The fluid program is for 10^5 reads and more. Reads of the same group g, of keys and of clients with
the same nearest replica, are alike: of mean work w̄ and mean RTT. Time is cut into bins of `width`
ticks. x_gsk is how much of group g starts on server s in bin k, B_gk the backlog at its end
(network time beyond the nearest replica is added to the cost of x):

    min  Σ w̄·f_sk·x_gsk + width·Σ W_gk
    B_gk = B_g,k−1 + arrivals_gk − Σ_s x_gsk >= 0
    W_gk >= B_gk − arrivals_gk,  W_gk >= 0                (these waited all bin long)
    Σ_g w̄·f_sk·x_gsk <= c·width                            (servers, per bin)

The value of the program is a floor for large numbers only: works differ, and service that starts
late in a fast bin may run past it. The proven bound comes from its capacity duals as prices
for the reads as they are.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass

import numpy as np

from formulations.online.selection.price_bounds import (
    ServerTimePrices,
    ascend,
    check_width,
    incumbent,
    latest_starts,
    price,
)
from formulations.solvers.highs import solve_linear
from formulations.solvers.program_builder import Builder
from placement.online.selection import ServerSamplePath, Ticks, Window, cut
from placement.support.checks import FloatArray, IntArray

__all__ = ["Fluid", "TimeIndexed", "fluid_bound", "path_bound", "time_indexed_bound"]


@dataclass(frozen=True, eq=False)
class TimeIndexed:
    """Bounds on the mean flow time of a window, in ms, for every order and any idling.

    Attributes
    ----------
    bound
        The best proven: the largest of the following two.
    dual
        The Lagrangean bound of the program at its duals; what the solver calls its optimum, but
        without its tolerances.
    priced
        The bound of the prices, after ascent, in continuous time.
    columns
        Variables of the program.
    prices
        The best prices.
    wall_s
        Seconds.
    """

    bound: float
    dual: float
    priced: float
    columns: int
    prices: ServerTimePrices
    wall_s: float


@dataclass(frozen=True, eq=False)
class _SlotColumns:
    """x_rsu: read, server, slot, slots occupied and cost in ticks; all of shape (columns,)."""

    read: IntArray
    server: IntArray
    slot: Ticks
    length: Ticks
    cost: Ticks


def time_indexed_bound(window: Window, *, width: int = 32, steps: int = 60) -> TimeIndexed:
    """Solve the program with HiGHS and prove a bound from its duals.

    Parameters
    ----------
    window
        The reads.
    width
        Ticks per slot; must divide the epoch. Smaller is tighter and slower.
    steps
        Ascent steps on the prices.

    Raises
    ------
    InputError
        When the width does not divide the epoch.
    SolverError
        When HiGHS fails.
    """
    check_width(width, window, "slots")
    began = time.perf_counter()
    total = incumbent(window)[2]
    columns = _columns(window, width, latest_starts(window, total))
    slots = int((columns.slot + columns.length).max()) + 1
    capacity = _capacity(window, width, slots)
    repeated = np.repeat(np.arange(len(columns.read)), columns.length)
    within = np.arange(len(repeated)) - np.repeat(
        np.cumsum(columns.length) - columns.length, columns.length
    )
    rows = columns.server[repeated] * slots + columns.slot[repeated] + within
    count = len(columns.read)
    builder = Builder()
    starts = builder.add_columns(columns.cost.astype(np.float64), upper=np.inf)
    builder.put(builder.add_rows(-np.inf, capacity.ravel(), capacity.size)[rows], repeated, 1.0)
    builder.put(builder.add_rows(1.0, 1.0, window.size)[columns.read], starts, 1.0)
    _, duals = solve_linear(builder.program())
    dual = np.maximum(0.0, -duals[: capacity.size]).reshape(capacity.shape)
    lagrangean = _lagrangean(columns, dual, capacity, window.size)
    in_ms = 1 / window.size / window.ticks_per_ms
    start = ServerTimePrices(width, dual / width)
    risen = ascend(window, start, total * in_ms, steps)
    return TimeIndexed(
        max(lagrangean * in_ms, risen.best.bound),
        lagrangean * in_ms,
        risen.best.bound,
        count,
        risen.prices,
        time.perf_counter() - began,
    )


def _columns(window: Window, width: int, latest: Ticks) -> _SlotColumns:
    parts: list[tuple[np.ndarray, ...]] = []
    for read in range(window.size):
        there = int(window.release[read]) + window.delay
        slot = np.arange(there // width, int(latest[read]) // width + 1, dtype=np.int64)
        begin = np.maximum(slot * width, there)
        for server in window.replicas[read].tolist():
            service = window.work[read] * window.factor(server, begin)
            cost = begin + service + window.delay - window.release[read]
            where = np.full(len(slot), server)
            parts.append((np.full(len(slot), read), where, slot, service // width, cost))
    read_, server_, slot_, length, cost = (np.concatenate(c) for c in zip(*parts, strict=True))
    return _SlotColumns(read_, server_, slot_, length, cost)


def _capacity(window: Window, width: int, slots: int) -> FloatArray:
    """Slots of each server that fixed intervals leave at the end of each time slot."""
    free = np.full((window.path.cluster.servers, slots), float(window.path.cluster.slots))
    for server, start, end in window.fixed.tolist():
        # In service just before (u + 1)·width: start < (u + 1)·width <= end.
        low, high = max(0, start // width), end // width - 1
        if high >= low:
            free[server, low : high + 1] -= 1
    return free


def _lagrangean(columns: _SlotColumns, dual: FloatArray, capacity: FloatArray, reads: int) -> float:
    """Σ_r min over its columns of (cost + duals of its slots) − Σ dual·capacity, in ticks."""
    paid = np.concatenate([np.zeros((len(dual), 1)), np.cumsum(dual, axis=1)], axis=1)
    end = columns.slot + columns.length
    reduced = columns.cost + paid[columns.server, end] - paid[columns.server, columns.slot]
    least = np.full(reads, np.inf)
    np.minimum.at(least, columns.read, reduced)
    rounding = 1e-9 * (float(least.sum()) + float((dual * capacity).sum()))
    return float(least.sum()) - float((dual * capacity).sum()) - rounding


_GOLDEN = (5**0.5 - 1) / 2
_NARROWINGS = 5
_DRAIN = 1.25
"""Bins are laid out for this many times the span of the arrivals."""


@dataclass(frozen=True, eq=False)
class Fluid:
    """Optimum of the fluid program, and the bound that is proven.

    Attributes
    ----------
    bound
        Proven lower bound on the mean flow time in ms, for every order and any idling.
    value
        Optimum of the program in ms: no bound, but where bounds go as reads become many.
    prices
        Those that give the bound.
    bounds
        The bound after each ascent step, ms; the first is that of the duals, times the factor in
        [0, 1] that makes it largest.
    wall_s
        Seconds.
    """

    bound: float
    value: float
    prices: ServerTimePrices
    bounds: tuple[float, ...]
    wall_s: float


def fluid_bound(window: Window, *, width: int, steps: int = 0) -> Fluid:
    """Solve the program with HiGHS and prove a bound from its duals.

    Parameters
    ----------
    window
        The reads; for a whole path, cut at 0.
    width
        Ticks per bin; must divide the epoch.
    steps
        Ascent steps on the prices; the duals of a large program are hard to improve.

    Raises
    ------
    InputError
        When the width does not divide the epoch.
    SolverError
        When HiGHS fails.

    Notes
    -----
    (replication + 2)·groups·bins columns.
    """
    check_width(width, window, "bins")
    began = time.perf_counter()
    cluster = window.path.cluster
    servers, copies = cluster.servers, cluster.replication
    first = int(window.release[0]) // width
    nearest = window.delays.min(axis=1)
    last = int((window.release + nearest).max())
    bins = int((last - first * width) * _DRAIN) // width + 2
    # Reads are alike that have a group and a nearest replica in common.
    members, group = np.unique(
        window.path.group[window.first :] * copies + window.delays.argmin(axis=1),
        return_inverse=True,
    )
    groups = len(members)
    arrivals = np.zeros((groups, bins))
    np.add.at(arrivals, (group, (window.release + nearest) // width - first), 1.0)
    # Mean network time of a group's reads beyond the nearest replica, there and back.
    further = np.zeros((groups, copies))
    np.add.at(further, group, 2.0 * (window.delays - nearest[:, np.newaxis]))
    further /= np.maximum(np.bincount(group, minlength=groups), 1)[:, np.newaxis]
    work = float(window.work.mean())
    begin = (first + np.arange(bins)) * width
    service = work * window.factor(np.arange(servers)[:, np.newaxis], begin).astype(np.float64)
    room = cluster.slots * float(width) - _fixed(window, width, first, bins)

    # Columns: x[g, copy, k], then B[g, k], then W[g, k].
    g, copy, k = (a.ravel() for a in np.indices((groups, copies, bins)))
    where = cluster.groups[members[g] // copies, copy]
    cells = groups * bins
    backlog, waiting = len(g) + np.arange(cells), len(g) + cells + np.arange(cells)
    cost = np.concatenate(
        [service[where, k] + further[g, copy], np.zeros(cells), np.full(cells, float(width))]
    )
    # A read that never starts still pays its quickest service: waiting for ever is not free.
    cost[backlog.reshape(groups, bins)[:, -1]] = work * float(window.factors.min())
    here = np.arange(cells)
    later = here[here % bins > 0]
    builder = Builder()
    builder.add_columns(cost, upper=np.inf)
    rows = servers * bins
    limits = builder.add_rows(
        -np.inf, np.concatenate([room.ravel(), arrivals.ravel()]), rows + cells
    )
    builder.put(where * bins + k, np.arange(len(g)), service[where, k])
    builder.put(limits[rows:], backlog, 1.0)
    builder.put(limits[rows:], waiting, -1.0)
    balance = builder.add_rows(arrivals.ravel(), arrivals.ravel(), cells)
    builder.put(balance[g * bins + k], np.arange(len(g)), 1.0)
    builder.put(balance, backlog, 1.0)
    builder.put(balance[later], backlog[later - 1], -1.0)
    optimum, duals = solve_linear(builder.program())
    dual = np.maximum(0.0, -duals[:rows]).reshape(servers, bins)
    value = np.concatenate([np.zeros((servers, first)), dual], axis=1)
    in_ms = 1 / window.size / window.ticks_per_ms
    target = incumbent(window)[2] * in_ms
    risen = ascend(window, _scaled(window, ServerTimePrices(width, value)), target, steps)
    return Fluid(
        risen.best.bound,
        optimum * in_ms + 2 * float(nearest.mean()) / window.ticks_per_ms,
        risen.prices,
        risen.bounds,
        time.perf_counter() - began,
    )


def path_bound(sample: ServerSamplePath, *, bins: int = 200, steps: int = 10) -> float:
    """Return a proven lower bound on the mean latency in ms of the reads of a path on a grid.

    It holds for every policy that interrupts no service, holding reads back included: copies and
    updates are left out, which can only help.

    Parameters
    ----------
    sample
        From :meth:`placement.online.selection.sample_path.ServerSamplePath.on_grid`, with reads
        that arrive.
    bins
        About this many bins of time, and at most one for ten reads; more are tighter and slower.
    steps
        Ascent steps on the prices.

    Raises
    ------
    InputError
        Without any read, or off the grid.
    UnsupportedError
        For generators in a closed loop.
    """
    cluster = sample.cluster
    reads = sample.mix >= cluster.update_share
    kept = dataclasses.replace(
        sample,
        cluster=dataclasses.replace(cluster, update_share=0.0),
        arrival=sample.arrival[reads],
        client=sample.client[reads],
        group=sample.group[reads],
        work=sample.work[reads],
        shadowed=np.zeros(int(reads.sum()), dtype=np.bool_),
        shadow_work=sample.shadow_work[reads],
        shuffle=sample.shuffle[reads],
        uniform=sample.uniform[reads],
        mix=sample.mix[reads],
    )
    window = cut(kept, (), 0, kept.size)
    span = int(window.release[-1]) - int(window.release[0])
    width = max(1, span // min(bins, 1 + kept.size // 10))
    if window.epoch:  # a divisor of the epoch
        width = max(part for part in range(1, min(width, window.epoch) + 1)
                    if window.epoch % part == 0)  # fmt: skip
    return fluid_bound(window, width=width, steps=steps).bound


def _scaled(window: Window, prices: ServerTimePrices) -> ServerTimePrices:
    """Return the prices times the factor in [0, 1] of best bound, by golden section.

    The bound is concave in the prices. Where servers are overloaded for long, the duals of alike
    reads are too high for reads that differ, and a fraction of them proves more.
    """

    def at(factor: float) -> float:
        return price(window, ServerTimePrices(prices.width, factor * prices.value)).bound

    known = {0.0: at(0.0), 1.0: at(1.0)}
    low, high = 0.0, 1.0
    for _ in range(_NARROWINGS):
        inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
        for factor in inner:
            if factor not in known:
                known[factor] = at(factor)
        if known[inner[0]] < known[inner[1]]:
            low = inner[0]
        else:
            high = inner[1]
    best = max(known, key=known.__getitem__)
    return ServerTimePrices(prices.width, best * prices.value)


def _fixed(window: Window, width: int, first: int, bins: int) -> FloatArray:
    """Ticks of fixed intervals in every bin."""
    used = np.zeros((window.path.cluster.servers, bins))
    for server, start, end in window.fixed.tolist():
        low = np.arange(bins) * width + first * width
        used[server] += np.clip(np.minimum(end, low + width) - np.maximum(start, low), 0, None)
    return used

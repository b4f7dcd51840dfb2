"""A fluid linear program whose duals are prices of server time: a bound for 10^5 reads and more.

Reads of the same group g, of keys and of clients with the same nearest replica, are alike: of mean
work w̄ and mean RTT. Time is cut into bins of `width` ticks. x_gsk is how much of group g starts on
server s in bin k, B_gk the backlog at its end (network time beyond the nearest replica is added to
the cost of x):

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
    price,
    room_left,
)
from formulations.solvers.highs import solve_linear
from formulations.solvers.linear_program import Builder
from placement.online.selection import ServerSamplePath, Window, cut

_GOLDEN = (5**0.5 - 1) / 2
_NARROWINGS = 5
_DRAIN = 1.25
"""Bins are laid out for this many times the span of the arrivals."""


@dataclass(frozen=True, eq=False)
class Fluid:
    """Optimum of the fluid program, and the bound that is proven."""

    bound: float  #: proven lower bound on the mean flow time in ms, for every order and any idling
    #: optimum of the program in ms: no bound, but where bounds go as reads become many
    value: float
    wall_s: float  #: seconds


def fluid_bound(window: Window, *, width: int, steps: int = 0) -> Fluid:
    """Solve the program with HiGHS and prove a bound from its duals.

    The window of a whole path is cut at 0. `width` counts ticks per bin and divides the epoch, else
    InputError; `steps` ascent steps on the prices (the duals of a large program are hard to
    improve). (replication + 2)·groups·bins columns.
    """
    check_width(width, window)
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
    room = room_left(window, (servers, bins), width, first)

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
    start = _scaled(window, ServerTimePrices(width, value))
    _, best = ascend(window, start, target, steps)
    value_ms = optimum * in_ms + 2 * float(nearest.mean()) / window.ticks_per_ms
    return Fluid(best.bound, value_ms, time.perf_counter() - began)


def path_bound(sample: ServerSamplePath, *, bins: int = 200, steps: int = 10) -> float:
    """Return a proven lower bound on the mean latency in ms of the reads of a path on a grid.

    It holds for every policy that interrupts no service, holding reads back included: copies and
    updates are left out, which can only help. The path comes from
    :meth:`placement.online.selection.sample_path.ServerSamplePath.on_grid`. There are about `bins`
    bins of time, and at most one for ten reads; more are tighter and slower. InputError without any
    read, or off the grid; UnsupportedError for generators in a closed loop.
    """
    cluster = sample.cluster
    reads = sample.mix >= cluster.update_share
    alone = dataclasses.replace(sample, cluster=dataclasses.replace(cluster, update_share=0.0))
    kept = alone.only(reads)
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

"""The time-indexed linear program of a window, whose duals are prices of server time.

Slots of `width` ticks; x_rsu >= 0 is the part of read r that starts on server s in slot u:

    min  Σ (max(u·width, a_r + l) + p + l − a_r)·x_rsu
    Σ_su x_rsu = 1                                            for every read
    Σ_r Σ_{u' <= u < u' + ⌊p/width⌋} x_rsu' <= c − fixed_su    for every server and slot

It is a relaxation for every width: a read counted in slot u is in service at the end of the slot.
Fixed intervals count likewise. The bound is not the solver's word: the duals, made non-negative,
are put into the Lagrangean bound of this program, computed here, and into that of
:mod:`.prices`, which knows the true durations and is the stronger of the two.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from formulations.online.selection.server_time_prices import ServerTimePrices, ascend, check_width
from formulations.online.selection.start_options import incumbent, latest_starts
from formulations.solvers.highs import solve_linear
from formulations.solvers.program_builder import Builder
from placement.online.selection import Ticks, Window
from placement.support.checks import FloatArray, IntArray

__all__ = ["TimeIndexed", "bound"]


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


def bound(window: Window, *, width: int = 32, steps: int = 60) -> TimeIndexed:
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

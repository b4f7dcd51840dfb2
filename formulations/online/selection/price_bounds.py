"""Prices of server time, a bound for any of them, and what a read may start when.

Time is cut into bins of equal width. Let π_sk >= 0 be a price per tick of service on server s in
bin k. In every schedule the service given in a bin is at most c·width less what is fixed, so that

    Σ_r flow_r  >=  Σ_r min_{s ∈ E_r, t >= a_r + l} [ t + p_rs(t) + l − a_r + ∫_t^{t+p} π_s ]
                    − Σ_sk π_sk·(c·width − fixed_sk)

whatever the order, idling included: the Lagrangean relaxation of capacity. Each read is priced
alone and exactly: inside a bin speeds are constant and the cost is piecewise linear in t, with a
kink where the read's end meets the border of a bin, so that three starts per bin decide. Good
prices come from the dual of a linear program and from ascent.

A *segment* is a stretch of time in which a server keeps one speed; a read may start inside it and
then takes work·factor ticks, even if it ends in a later segment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.errors import InputError, SolverError
from placement.online.selection import Ticks, Window
from placement.support.checks import FloatArray, IntArray

_ROUNDING = 1e-9
"""The bound is lowered by this much, relatively: more than floating point can lose."""


@dataclass(frozen=True, eq=False)
class ServerTimePrices:
    """π: flow ticks per tick of service, per server and bin; zero after the last bin."""

    width: int  #: ticks per bin; divides the epoch
    value: FloatArray  #: shape (servers, bins), >= 0

    @classmethod
    def zero(cls, window: Window, width: int, bins: int) -> ServerTimePrices:
        """Zero prices: their bound is the time of reads when alone."""
        return cls(width, np.zeros((window.path.cluster.servers, bins)))


@dataclass(frozen=True, eq=False)
class Priced:
    """Bound by prices of server time, and the choice of each read under the prices."""

    bound: float  #: proven lower bound on the mean flow time, ms
    total: float  #: the same on the sum, in ticks, before the allowance for rounding
    #: `server`, `start`: the cheapest choice of each read, shape (N,)
    server: IntArray
    start: Ticks
    #: ticks of service that these choices ask of every bin, shape (servers, bins)
    usage: FloatArray


def check_width(width: int, window: Window) -> None:
    """Raise InputError unless no bin of `width` ticks lies in two epochs."""
    if width < 1 or (window.epoch and window.epoch % width):
        expected = f"a divisor of the epoch, {window.epoch} ticks"
        raise InputError("bins that straddle epochs", field="width", value=width, expected=expected)


def price(window: Window, prices: ServerTimePrices) -> Priced:
    """Compute the bound of some prices, in O(reads·replication·bins waited).

    InputError when a price is negative or not finite, or the width does not divide the epoch.
    """
    width, value = prices.width, prices.value
    check_width(width, window)
    if not (np.isfinite(value).all() and (value >= 0).all()):
        raise InputError("not a price", field="prices", expected="finite numbers >= 0")
    server, start, cost = _cheapest(window, prices)
    service = window.work * window.factor(server, start)
    room = room_left(window, value.shape, width)
    paid = float((value * room).sum())
    total = float(cost.sum()) - paid
    scale = float(np.abs(cost).sum()) + float((value * np.abs(room)).sum())
    bound = (total - _ROUNDING * scale) / window.size / window.ticks_per_ms
    usage = _usage(value.shape, width, server, start, start + service)
    return Priced(bound, total, server, start, usage)


def _cheapest(window: Window, prices: ServerTimePrices) -> tuple[IntArray, Ticks, FloatArray]:
    """Return server, start and cost in ticks of the cheapest choice of every read."""
    width, value = prices.width, prices.value
    bins = value.shape[1]
    paid = np.concatenate(
        [np.zeros((len(value), 1)), np.cumsum(value * width, axis=1)], axis=1
    )  # price of all service on s before the border of a bin
    padded = np.concatenate([value, np.zeros((len(value), 1))], axis=1)

    def until(server: IntArray, time: Ticks) -> FloatArray:
        at = np.minimum(time // width, bins)
        return np.asarray(paid[server, at] + padded[server, at] * (time - at * width))

    size, copies = window.replicas.shape
    read = np.repeat(np.arange(size), copies)
    where = window.replicas.ravel()
    delay = window.delays.ravel()
    there = window.release[read] + delay
    base = delay - window.release[read]
    work = window.work[read]
    quickest = work * window.factors.min(axis=0)[where]
    bin_ = there // width
    best = np.full(size, np.inf)
    best_server = window.replicas[:, 0].astype(np.intp)
    best_start = np.zeros(size, dtype=np.int64)
    while read.size:
        low = np.maximum(bin_ * width, there)
        high = (bin_ + 1) * width - 1
        service = work * window.factor(where, low)
        kink = -(-(low + service) // width) * width - service
        for begin in (low, np.minimum(kink, high), high):
            cost = begin + service + base + until(where, begin + service) - until(where, begin)
            order = np.lexsort((cost, read))
            first = order[np.unique(read[order], return_index=True)[1]]  # the least of every read
            better = first[cost[first] < best[read[first]]]
            best[read[better]] = cost[better]
            best_server[read[better]], best_start[read[better]] = where[better], begin[better]
        bin_ = bin_ + 1
        open_ = bin_ * width + quickest + base < best[read]  # nothing later is cheaper otherwise
        read, where, there, base = read[open_], where[open_], there[open_], base[open_]
        work, quickest, bin_ = work[open_], quickest[open_], bin_[open_]
    return best_server, best_start, best


def _usage(
    shape: tuple[int, ...], width: int, server: IntArray, start: Ticks, end: Ticks
) -> FloatArray:
    """Ticks of the intervals [start, end) in every bin; ticks beyond the last bin are dropped."""
    used = np.zeros(shape)
    at = start // width
    while at.size:
        inside = (at >= 0) & (at < shape[1])
        overlap = np.minimum(end, (at + 1) * width) - np.maximum(start, at * width)
        np.add.at(used, (server[inside], at[inside]), overlap[inside])
        at = at + 1
        more = (at * width < end) & (at < shape[1])
        server, start, end, at = server[more], start[more], end[more], at[more]
    return used


def room_left(window: Window, shape: tuple[int, ...], width: int, first: int = 0) -> FloatArray:
    """Ticks of service that fixed intervals leave in every bin from the `first` on."""
    server, start, end = window.fixed.T
    begin = first * width
    fixed = _usage(shape, width, server, start - begin, end - begin)
    return window.path.cluster.slots * float(width) - fixed


def ascend(
    window: Window, prices: ServerTimePrices, target_ms: float, steps: int = 30
) -> tuple[ServerTimePrices, Priced]:
    """Improve prices by subgradient steps of Polyak's length; return the best with their bound.

    `target_ms` is the mean flow time of some plan: the bound can't pass it, and steps aim at it.
    The step shrinks by a half whenever three in a row have not improved the bound.
    """
    now, length, idle = prices, 1.0, 0
    found = best = price(window, prices)
    best_prices = prices
    room = room_left(window, prices.value.shape, prices.width)
    target = target_ms * window.size * window.ticks_per_ms
    for _ in range(steps):
        slope = found.usage - room
        slope[(now.value == 0) & (slope < 0)] = 0.0  # such a price can't fall
        norm = float((slope * slope).sum())
        if norm == 0 or target <= found.total:
            break
        step = length * (target - found.total) / norm
        now = ServerTimePrices(prices.width, np.maximum(0.0, now.value + step * slope))
        found = price(window, now)
        if found.bound > best.bound:
            best, best_prices, idle = found, now, 0
        else:
            idle += 1
        if idle == 3:
            length, idle, now, found = length / 2, 0, best_prices, best
    return best_prices, best


@dataclass(frozen=True, slots=True)
class Option:
    """Read `read` starts on `server` at a tick in earliest..latest and takes `duration` ticks."""

    read: int
    server: int
    earliest: int
    latest: int
    duration: int


def segments(window: Window, server: int, begin: int, end: int) -> list[tuple[int, int, int]]:
    """Return (from, to, factor) of the segments of a server that cover ticks begin..end.

    Neighbouring epochs of the same speed are one segment; `to` is the last tick inside.
    """
    if not window.epoch:
        return [(begin, end, int(window.factors[0, server]))]
    parts: list[tuple[int, int, int]] = []
    for epoch in range(begin // window.epoch, end // window.epoch + 1):
        low, high = max(begin, epoch * window.epoch), min(end, (epoch + 1) * window.epoch - 1)
        factor = int(window.factors[epoch % len(window.factors), server])
        if parts and parts[-1][2] == factor:
            parts[-1] = (parts[-1][0], high, factor)
        else:
            parts.append((low, high, factor))
    return parts


def incumbent(window: Window) -> tuple[np.ndarray, np.ndarray, int]:
    """Return a schedule (servers, starts) and its total flow time in ticks.

    Greedy: read by read to the server where it ends first, behind what was sent before it; the
    first replica among equals.
    """
    slots = window.path.cluster.slots
    free: dict[int, list[int]] = {}
    for server, _, end in window.fixed.tolist():  # by start: the slot that is free first takes it
        times = free.setdefault(server, [0] * slots)
        times[times.index(min(times))] = end
    servers, starts, total = [], [], 0
    for read in range(window.size):
        best: tuple[int, int, int, int] | None = None
        ways = zip(window.replicas[read].tolist(), window.delays[read].tolist(), strict=True)
        for server, delay in ways:
            times = free.setdefault(server, [0] * slots)
            start = max(int(window.release[read]) + delay, min(times))
            end = start + int(window.work[read]) * int(window.factor(server, start))
            if best is None or end + delay < best[0]:
                best = (end + delay, end, server, start)
        if best is None:
            raise SolverError("a read has no replica")
        back, end, server, start = best
        free[server][free[server].index(min(free[server]))] = end
        servers.append(server)
        starts.append(start)
        total += back - int(window.release[read])
    return np.array(servers), np.array(starts), total


def latest_starts(window: Window, total: int) -> np.ndarray:
    """Return the last tick at which each read can start in a schedule of flow at most `total`.

    A read may take what the others leave when all of them are as quick as they ever could be; it
    then starts before it ends by at least its quickest service. Shape (N,).
    """
    return np.asarray(window.release + window.delay + total - int(window.least.sum()))


def options(window: Window, latest: np.ndarray) -> list[list[Option]]:
    """Return the options of every read whose start is at most `latest`."""
    found = []
    for read in range(window.size):
        begin, end = int(window.release[read]) + window.delay, int(latest[read])
        work = int(window.work[read])
        found.append(
            [
                Option(read, server, low, high, work * factor)
                for server in window.replicas[read].tolist()
                for low, high, factor in segments(window, server, begin, end)
            ]
        )
    return found

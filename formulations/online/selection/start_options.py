"""Servers and times at which each read of a window may start, before any decision.

A *segment* is a stretch of time in which a server keeps one speed; a read may start inside it and
then takes work·factor ticks, even if it ends in a later segment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.errors import SolverError
from placement.online.selection import Window

__all__ = ["Option", "incumbent", "latest_starts", "options", "segments"]


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
    spare = total - int(window.least.sum())
    fastest = window.least - 2 * window.delay
    return np.asarray(window.release + window.least + spare - window.delay - fastest)


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

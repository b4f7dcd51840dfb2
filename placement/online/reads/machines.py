"""Machines with several cores, first come first served."""

from __future__ import annotations

import heapq

__all__ = ["Machine"]


class Machine:
    """A machine that is told of every visit in the order of arrival.

    Because service is first come first served, the end of a visit is known on its arrival: the
    first core to be free takes it. No event is needed for that.
    """

    __slots__ = ("_busy", "_free", "_running", "cores")

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self._free = [0.0] * cores
        self._running: list[float] = []
        self._busy = 0.0

    def visit(self, now: float, work: float) -> float:
        """Arrive at `now` with `work` ms; return when it is done. O(log cores)."""
        start = self._free[0]
        end = (start if start > now else now) + work
        heapq.heapreplace(self._free, end)
        self._busy += work
        return end

    def visit_counted(self, now: float, work: float) -> tuple[float, int]:
        """Like `visit`; also return the number of jobs in the queue or in service on arrival."""
        running = self._running
        while running and running[0] <= now:
            heapq.heappop(running)
        found = len(running)
        end = self.visit(now, work)
        heapq.heappush(running, end)
        return end, found

    @property
    def busy(self) -> float:
        """Core-milliseconds of work accepted so far."""
        return self._busy

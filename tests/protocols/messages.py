"""A message-level simulation of commit protocols: an event queue, half an RTT a message.

Written from the descriptions of the protocols, apart from the evaluator: nobody computes an order
statistic here, answers are counted as they arrive.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence

__all__ = ["Clause", "Network"]

Clause = tuple[int, Sequence[int]]
"""So many answers from these members."""


class Network:
    """Actors that exchange messages; RTTs are symmetric halves there and back."""

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()

    def at(self, time: float, then: Callable[[float], None]) -> None:
        heapq.heappush(self._queue, (time, next(self._order), then))

    def run(self) -> None:
        while self._queue:
            time, _, then = heapq.heappop(self._queue)
            then(time)

    def trip(self, time: float, rtt: float, work: Callable[[float, Callable[[float], None]], None],
             then: Callable[[float], None]) -> None:  # fmt: skip
        """Send a request, let the other side work, and send its answer back."""

        def arrived(now: float) -> None:
            work(now, lambda done: self.at(done + rtt / 2, then))

        self.at(time + rtt / 2, arrived)

    def gather(
        self,
        time: float,
        rtts: Sequence[float],
        clauses: Sequence[Clause],
        then: Callable[[float], None],
    ) -> None:
        """Ask all members of all clauses at once; go on when every clause has its answers."""
        missing = [need for need, _ in clauses]
        done = [False]

        def answer(member: int) -> Callable[[float], None]:
            def arrived(now: float) -> None:
                for place, (_, members) in enumerate(clauses):
                    missing[place] -= member in members
                if not done[0] and all(count <= 0 for count in missing):
                    done[0] = True
                    then(now)

            return arrived

        for member in sorted({member for _, members in clauses for member in members}):
            self.trip(time, rtts[member], lambda now, reply: reply(now), answer(member))

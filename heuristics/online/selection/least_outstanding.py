"""LOR: the replica to which this client has fewest requests outstanding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from heuristics.online.selection.tie_orders import Tie, Tied, in_tie_order
from placement.online.selection import Servers, ServerSamplePath

__all__ = ["LeastOutstanding"]


@dataclass(frozen=True)
class LeastOutstanding(Tied):
    """LOR, without rate control unless one is given; copies count as outstanding too."""

    _: KW_ONLY
    name: str = "LOR"

    def start(self, sample: ServerSamplePath, servers: Servers) -> _Outstanding:
        """Start with nothing outstanding."""
        return _Outstanding(sample, self.tie)


class _Outstanding:
    def __init__(self, sample: ServerSamplePath, tie: Tie) -> None:
        self._sample, self._tie = sample, tie
        self._count = sample.cluster.servers
        self._outstanding = [0] * (sample.cluster.clients * self._count)

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        base = client * self._count
        order = in_tie_order(self._sample, self._tie, read, replicas)
        return sorted(order, key=lambda server: self._outstanding[base + server])

    def sent(self, number: int, read: int, client: int, server: int, now: float) -> None:
        self._outstanding[client * self._count + server] += 1

    def answered(
        self,
        client: int,
        server: int,
        response_ms: float,
        service_ms: float,
        queue: int,
        now: float,
    ) -> None:
        self._outstanding[client * self._count + server] -= 1

"""Policies that look at nothing: rotation and chance, both under the rate control of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from heuristics.online.selection.tie_orders import check_policy, in_tie_order
from placement.online.selection import LimiterRules, Passive, Servers, ServerSamplePath

__all__ = ["RandomChoice", "RoundRobin"]


@dataclass(frozen=True)
class RoundRobin:
    """RR: each client rotates through the replicas of each group.

    Under the limiter it walks the rotated list to the first replica that has a token.
    """

    _: KW_ONLY
    limiter: LimiterRules | None = field(default_factory=LimiterRules)
    name: str = "RR"

    def __post_init__(self) -> None:
        check_policy(self.limiter, name=self.name)

    def start(self, sample: ServerSamplePath, servers: Servers) -> _Rotation:
        """Start every rotation at the first replica of the group."""
        return _Rotation(sample)


class _Rotation(Passive):
    def __init__(self, sample: ServerSamplePath) -> None:
        cluster = sample.cluster
        self._group: list[int] = sample.group.tolist()
        self._count, self._size, self._n = cluster.servers, cluster.replication, sample.size
        self._turn = [0] * (cluster.clients * cluster.servers)

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        turn = self._turn[client * self._count + self._group[read]]
        return [*replicas[turn:], *replicas[:turn]]

    def sent(self, number: int, read: int, client: int, server: int, now: float) -> None:
        if number < self._n:
            index = client * self._count + self._group[read]
            self._turn[index] = (self._turn[index] + 1) % self._size


@dataclass(frozen=True)
class RandomChoice:
    """RAND: the replicas in random order."""

    _: KW_ONLY
    limiter: LimiterRules | None = field(default_factory=LimiterRules)
    name: str = "RAND"

    def __post_init__(self) -> None:
        check_policy(self.limiter, name=self.name)

    def start(self, sample: ServerSamplePath, servers: Servers) -> _Shuffle:
        """Use the orders drawn with the sample path."""
        return _Shuffle(sample)


class _Shuffle(Passive):
    def __init__(self, sample: ServerSamplePath) -> None:
        self._sample = sample

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        return in_tie_order(self._sample, "random", read, replicas)

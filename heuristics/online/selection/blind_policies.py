"""Policies that ignore the load: rotation, chance, and the nearest replica."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from heuristics.online.selection.tie_orders import Limited, Tie, Tied, in_tie_order
from placement.online.selection import LimiterRules, Passive, Servers, ServerSamplePath

__all__ = ["NearestReplica", "RandomChoice", "RoundRobin"]


@dataclass(frozen=True)
class RoundRobin(Limited):
    """RR: each client rotates through the replicas of each group.

    Under the limiter it walks the rotated list to the first replica that has a token.
    """

    _: KW_ONLY
    limiter: LimiterRules | None = field(default_factory=LimiterRules)
    name: str = "RR"

    def start(self, sample: ServerSamplePath, servers: Servers) -> _Rotation:
        """Start every rotation at the first replica of the group."""
        return _Rotation(sample)


class _Rotation(Passive):
    def __init__(self, sample: ServerSamplePath) -> None:
        cluster = sample.cluster
        self._group: list[int] = sample.group.tolist()
        self._count, self._size, self._n = len(cluster.groups), cluster.replication, sample.size
        self._turn = [0] * (cluster.clients * self._count)

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        turn = self._turn[client * self._count + self._group[read]]
        return [*replicas[turn:], *replicas[:turn]]

    def sent(self, number: int, read: int, client: int, server: int, now: float) -> None:
        if number < self._n:
            index = client * self._count + self._group[read]
            self._turn[index] = (self._turn[index] + 1) % self._size


@dataclass(frozen=True)
class RandomChoice(Limited):
    """RAND: the replicas in random order."""

    _: KW_ONLY
    limiter: LimiterRules | None = field(default_factory=LimiterRules)
    name: str = "RAND"

    def start(self, sample: ServerSamplePath, servers: Servers) -> _Shuffle:
        """Use the orders drawn with the sample path."""
        return _Shuffle(sample)


class _Shuffle(Passive):
    def __init__(self, sample: ServerSamplePath) -> None:
        self._sample = sample

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        return in_tie_order(self._sample, "random", read, replicas)


@dataclass(frozen=True)
class NearestReplica(Tied):
    """NEAR: the replica with the smallest RTT from the client, as many drivers choose by default.

    With equal RTTs it is the first of the group ("ring"), or a random one.
    """

    _: KW_ONLY
    name: str = "NEAR"

    def start(self, sample: ServerSamplePath, servers: Servers) -> _ByDelay:
        """Start with the order of the RTTs."""
        return _ByDelay(sample, self.tie)


class _ByDelay(Passive):
    def __init__(self, sample: ServerSamplePath, tie: Tie) -> None:
        self._sample, self._tie = sample, tie
        self._delay: list[list[float]] = sample.cluster.one_way.tolist()

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        delay = self._delay[client]
        order = in_tie_order(self._sample, self._tie, read, replicas)
        return sorted(order, key=lambda server: delay[server])

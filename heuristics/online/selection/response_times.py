"""Policies that rank by response times: two choices, least recent, weighted random."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from heuristics.online.selection.c3 import C3, C3Selector
from heuristics.online.selection.tie_orders import Limited, Tie, Tied, in_tie_order
from placement.online.selection import Passive, Selector, Servers, ServerSamplePath
from placement.support.checks import number

__all__ = ["LeastResponseTime", "TwoChoices", "WeightedResponseTime"]


@dataclass(frozen=True)
class TwoChoices(Limited):
    """2C: of two random replicas the one with the better C3 score, outstanding requests left out.

    The score is (R̄ − S̄) + (1 + q̄)^b·S̄. The replicas that were not drawn come last.
    """

    _: KW_ONLY
    exponent: float = 3.0
    name: str = "2C"

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.exponent, "exponent")

    def start(self, sample: ServerSamplePath, servers: Servers) -> Selector:
        """Listen as C3 does."""
        score = C3(exponent=self.exponent, outstanding=False, limiter=None)
        return _TwoOf(score, sample)


class _TwoOf(C3Selector):
    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        order = in_tie_order(self._sample, "random", read, replicas)
        pair = sorted(order[:2], key=lambda server: self.score(client, server))
        return [*pair, *order[2:]]


@dataclass(frozen=True)
class LeastResponseTime(Tied):
    """LRT: the replica whose last response was fastest; one never heard from comes first."""

    _: KW_ONLY
    name: str = "LRT"

    def start(self, sample: ServerSamplePath, servers: Servers) -> Selector:
        """Start with nothing heard."""
        return _LastResponse(sample, self.tie)


@dataclass(frozen=True)
class WeightedResponseTime(Limited):
    """WRT: random, with probability in inverse proportion to the last response time.

    The authors' simulator weighs *towards* slow replicas, by mistake; this does not. While a
    replica of the group was never heard from, those come first. The replicas that were not drawn
    follow by response time.
    """

    _: KW_ONLY
    name: str = "WRT"

    def start(self, sample: ServerSamplePath, servers: Servers) -> Selector:
        """Start with nothing heard."""
        return _WeightedResponse(sample, "random")


class _LastResponse(Passive):
    def __init__(self, sample: ServerSamplePath, tie: Tie) -> None:
        self._sample, self._tie = sample, tie
        self._count = sample.cluster.servers
        self._last = [0.0] * (sample.cluster.clients * self._count)

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        base = client * self._count
        order = in_tie_order(self._sample, self._tie, read, replicas)
        return sorted(order, key=lambda server: self._last[base + server])

    def answered(
        self,
        client: int,
        server: int,
        response_ms: float,
        service_ms: float,
        queue: int,
        now: float,
    ) -> None:
        self._last[client * self._count + server] = response_ms


class _WeightedResponse(_LastResponse):
    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        order = list(super().rank(read, client, replicas, now))
        base = client * self._count
        if self._last[base + order[0]] == 0.0:  # never heard from
            return order
        weights = [1.0 / self._last[base + server] for server in order]
        left = float(self._sample.uniform[read]) * sum(weights)
        for place, weight in enumerate(weights):
            left -= weight
            if left < 0.0:
                return [order[place], *order[:place], *order[place + 1 :]]
        return order  # rounding alone leads here

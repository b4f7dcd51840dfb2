"""DS: dynamic snitching, what Cassandra did before C3.

Source: the rules of Apache Cassandra's dynamic snitch as C3's authors compare with them: a decaying
sample of response times per server, scores recomputed every 100 ms, the static order kept unless it
is bad enough. Its second term, the severity that servers gossip (disk waits), has no counterpart in
a simulation without disks and is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from heuristics.online.selection.tie_orders import Limited
from placement.online.random_streams import spawn_streams
from placement.online.selection import Passive, Servers, ServerSamplePath
from placement.support.checks import FloatArray, number, whole

__all__ = ["DynamicSnitch"]


_BLOCK = 4096
"""Draws that are made at once."""


def _stream(sample: ServerSamplePath) -> np.random.Generator:
    """Return the stream of the path's seed that decides which samples are kept."""
    causes = ("speeds", "arrivals", "work", "shadow", "policy", "snitch")
    return spawn_streams(sample.seed, causes)["snitch"]


@dataclass(frozen=True)
class DynamicSnitch(Limited):
    """The policy.

    Parameters
    ----------
    update_ms
        Time between two computations of the scores.
    reset_ms
        Time between two clearings of all samples.
    size
        Responses in a sample.
    decay
        α per second: a response t seconds after another weighs e^(α·t) times as much in the draw of
        who stays in the sample (forward decay, as in the metrics library that Cassandra uses).
    badness
        The static order (by RTT, then as the group lists them) stands unless some replica's score
        times (1 + badness) is below the score of the one that the static order puts in its place;
        0: always by score.

    Notes
    -----
    score = median of the sample / largest median that the client has; 0 for a server never heard
    from. O(size) per response, O(clients·servers·size) every `update_ms`.
    """

    _: KW_ONLY
    update_ms: float = 100.0
    reset_ms: float = 600_000.0
    size: int = 100
    decay: float = 0.75
    badness: float = 0.1
    name: str = "DS"

    def __post_init__(self) -> None:
        for field in ("update_ms", "reset_ms"):
            number(getattr(self, field), field, above=True)
        object.__setattr__(self, "size", whole(self.size, "size", minimum=1))
        number(self.decay, "decay")
        number(self.badness, "badness")
        super().__post_init__()

    def priorities(self, sample: ServerSamplePath, many: int) -> FloatArray:
        """Return at least `many` draws for the places in samples, in the order of the responses.

        They are exponential: w/u with u uniform has the order of log w − log u.
        """
        rng = _stream(sample)
        blocks = [rng.standard_exponential(_BLOCK)[::-1] for _ in range(-(-many // _BLOCK) or 1)]
        return np.concatenate(blocks)

    def start(self, sample: ServerSamplePath, servers: Servers) -> _Snitch:
        """Start with empty samples; whom they keep is drawn from a stream of the path's seed."""
        return _Snitch(self, sample)


class _Snitch(Passive):
    def __init__(self, policy: DynamicSnitch, sample: ServerSamplePath) -> None:
        cluster = sample.cluster
        shape = (cluster.clients, cluster.servers, policy.size)
        self._policy = policy
        self._value = np.full(shape, np.nan)
        self._rank = np.full(shape, -np.inf)  # log of the priority: the least one gives way
        self._score = np.zeros(shape[:2])
        self._next_update, self._next_reset = policy.update_ms, policy.reset_ms
        self._rng = _stream(sample)
        self._draws = self._drawn()
        self._delay: list[list[float]] = cluster.one_way.tolist()

    def _drawn(self) -> Iterator[float]:
        """Yield the numbers of :meth:`DynamicSnitch.priorities`."""
        while True:
            yield from self._rng.standard_exponential(_BLOCK)[::-1].tolist()

    def _advance(self, now: float) -> None:
        """Compute the scores as they were at the last update before `now`."""
        if now < self._next_update:
            return
        period = self._policy.update_ms
        self._next_update = (math.floor(now / period) + 1) * period
        heard = np.isfinite(self._value)
        filled = np.where(heard, self._value, np.inf)
        filled.sort(axis=2)
        count = heard.sum(axis=2)
        low, high = np.maximum(count - 1, 0) // 2, count // 2
        high = np.minimum(high, np.maximum(count - 1, 0))
        middle = (
            np.take_along_axis(filled, low[..., np.newaxis], 2)[..., 0]
            + np.take_along_axis(filled, high[..., np.newaxis], 2)[..., 0]
        ) / 2
        median = np.where(count > 0, middle, 0.0)
        largest = median.max(axis=1, keepdims=True)
        self._score = np.divide(median, largest, out=np.zeros_like(median), where=largest > 0)
        if now >= self._next_reset:
            self._value.fill(np.nan)
            self._rank.fill(-np.inf)
            self._next_reset += self._policy.reset_ms

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        self._advance(now)
        scores, delay = self._score[client], self._delay[client]
        replicas = sorted(replicas, key=lambda server: delay[server])
        order = sorted(replicas, key=lambda server: float(scores[server]))
        factor = 1.0 + self._policy.badness
        for static, better in zip(replicas, order, strict=True):
            if scores[static] > scores[better] * factor:
                return order
        return replicas

    def answered(
        self,
        client: int,
        server: int,
        response_ms: float,
        service_ms: float,
        queue: int,
        now: float,
    ) -> None:
        self._advance(now)
        rank = self._policy.decay * now / 1000.0 + next(self._draws)
        ranks = self._rank[client, server]
        least = int(ranks.argmin())
        if rank > ranks[least]:
            ranks[least] = rank
            self._value[client, server, least] = response_ms

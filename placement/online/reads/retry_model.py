"""Number of repetitions of a strongly consistent quorum read, and their cost.

On one key, write intents appear at rate w while there is none and last D on average (from the
append at the first replica of the quorum until the last one has resolved it), both exponential: a
chain of two states. With λ = w + 1/D and π = w/λ, the part of time with an intent,

    P(attempt 1 fails)                       = π
    P(attempt after back-off j fails | the last one failed)
                                             = q_j = π + (1 − π)·E[exp(−λ(b_j + rtt))]
    b_j ~ U[1 − δ, 1 + δ]·min(b_0·2^j, cap)

    E[attempts] = 1 + Σ_{j >= 0} F_j,      F_0 = (1 − x)·π,   F_{j+1} = F_j·(1 − x)·q_j
    E[latency]  = rtt + Σ_{j >= 0} F_j·(E[b_j] + rtt)

From the first j at which the back-off is capped, q_j is constant and the rest of both series is
geometric, so that nothing is cut off. The back-off is that of the authors' branch of CockroachDB:
b_0 = 50 ms, doubled up to 5 s, ±15 %, without limit on the number of retries. Each attempt tosses
a new coin x, and the leaseholder never fails it. The chain itself is derived here; the paper
reports only that hot spots cause many retries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from placement.errors import InputError
from placement.online.simulation import check_fields
from placement.support.checks import instance_of, number

__all__ = ["Backoff", "RetryModel", "simulate"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between attempts: b_j = U[1 − jitter, 1 + jitter]·min(first·2^j, cap), in ms."""

    first: float = 50.0
    cap: float = 5000.0
    jitter: float = 0.15

    def __post_init__(self) -> None:
        check_fields(self, positive=["first"])
        number(self.cap, "cap", minimum=self.first)
        number(self.jitter, "jitter", maximum=math.nextafter(1.0, 0.0))

    def mean(self, retry: int) -> float:
        """E[b_j] in ms for j = `retry`, counted from 0."""
        return float(min(self.first * 2.0 ** min(retry, 1000), self.cap))

    def draw(self, retry: int, uniform: float) -> float:
        """b_j in ms for a number drawn from U[0, 1)."""
        return self.mean(retry) * (1.0 + self.jitter * (2.0 * uniform - 1.0))


@dataclass(frozen=True, slots=True)
class RetryModel:
    """The two-state chain of one key.

    Parameters
    ----------
    write_rate
        w, intents per second on this key while it has none, >= 0.
    intent_ms
        D, mean life of an intent in ms, >= 0.
    rtt
        Duration of one attempt in ms.
    backoff
        Waits between attempts.
    share
        x, part of the attempts that go to the leaseholder, which has no unresolved intents.

    Examples
    --------
    >>> model = RetryModel(write_rate=5, intent_ms=20, rtt=1)
    >>> round(model.conflict, 4), round(model.attempts, 4), round(model.latency, 2)
    (0.0909, 1.1057, 7.3)
    """

    write_rate: float
    intent_ms: float
    rtt: float = 1.0
    backoff: Backoff = field(default_factory=Backoff)
    share: float = 0.0

    def __post_init__(self) -> None:
        times = ("write_rate", "intent_ms", "rtt")
        check_fields(self, least=dict.fromkeys(times, 0.0), shares=["share"])
        instance_of(self.backoff, Backoff, "backoff", "a Backoff of placement.online.reads")

    @property
    def conflict(self) -> float:
        """π, the part of the time in which the key has an intent."""
        busy = self.write_rate / 1000.0 * self.intent_ms
        return busy / (1.0 + busy)

    def repeat_probability(self, retry: int) -> float:
        """q_j: how likely a quorum after back-off j = `retry` fails, the last one having failed.

        For a jitter of 0 the mean over the back-off is one exponential.
        """
        if self.conflict == 0.0:
            return 0.0
        rate = self.write_rate / 1000.0 + 1.0 / self.intent_ms
        middle = self.backoff.mean(retry)
        half = rate * middle * self.backoff.jitter
        spread = math.sinh(half) / half if 0 < half < 700 else 1.0
        decay = math.exp(-rate * (middle + self.rtt)) * spread
        if half >= 700:  # sinh would overflow; its growing part joins the exponent
            shortest = middle * (1.0 - self.backoff.jitter)
            decay = math.exp(-rate * (shortest + self.rtt)) / (2.0 * half)
        return self.conflict + (1.0 - self.conflict) * decay

    @property
    def attempts(self) -> float:
        """E[attempts]."""
        return 1.0 + self._series()[0]

    @property
    def latency(self) -> float:
        """E[latency] of a read in ms, without queueing."""
        failed, waited = self._series()
        return self.rtt * (1.0 + failed) + waited

    def _series(self) -> tuple[float, float]:
        """Σ F_j and Σ F_j·E[b_j]."""
        quorum = 1.0 - self.share
        failing = quorum * self.conflict
        failed = waited = 0.0
        retry = 0
        while self.backoff.mean(retry) < self.backoff.cap:
            failed += failing
            waited += failing * self.backoff.mean(retry)
            failing *= quorum * self.repeat_probability(retry)
            retry += 1
        tail = failing / (1.0 - quorum * self.repeat_probability(retry))
        return failed + tail, waited + tail * self.backoff.cap


def simulate(model: RetryModel, reads: int, rng: np.random.Generator) -> tuple[float, float]:
    """Mean attempts and mean latency (ms) over `reads` reads of a key that is drawn, not solved.

    A timeline of intents is drawn (exponential gaps and lives), and every read starts at a uniform
    instant of it and looks the state up at each attempt. The timeline is 400 reads' worst waits and
    at least 200 000 intents long and wraps around.

    Raises
    ------
    InputError
        When nothing is ever written: the formula then needs no simulation.
    """
    if model.conflict == 0.0 or reads < 1:
        raise InputError(
            "nothing to simulate",
            field="model",
            value=(model.write_rate, model.intent_ms, reads),
            expected="a positive write rate, a positive life of intents, at least one read",
        )
    cycle = 1000.0 / model.write_rate + model.intent_ms
    count = max(200_000, math.ceil(400 * model.backoff.cap / cycle))
    gaps = rng.exponential(1000.0 / model.write_rate, count)
    lives = rng.exponential(model.intent_ms, count)
    edges = np.cumsum(np.stack([gaps, lives], axis=1).ravel())  # start, end, start, end, …
    now = rng.random(reads) * edges[-1]
    latency = np.zeros(reads)
    attempts = np.zeros(reads)
    alive = np.arange(reads)
    retry = 0
    while alive.size:
        attempts[alive] += 1
        latency[alive] += model.rtt
        place = np.searchsorted(edges, now[alive] % edges[-1], side="right")
        met = place % 2 == 1
        if model.share > 0:
            met &= rng.random(alive.size) >= model.share
        alive = alive[met]
        jitter = model.backoff.jitter * (2.0 * rng.random(alive.size) - 1.0)
        wait = model.backoff.mean(retry) * (1.0 + jitter)
        latency[alive] += wait
        now[alive] += wait + model.rtt
        retry += 1
    return float(attempts.mean()), float(latency.mean())

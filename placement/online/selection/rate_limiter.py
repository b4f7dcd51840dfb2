"""C3's rate control: a token bucket per client and server whose rate follows a cubic curve.

Source: L. Suresh, M. Canini, S. Schmid, A. Feldmann, "C3: Cutting tail latency in cloud data stores
via adaptive replica selection", NSDI 2015, with the constants of the authors' simulator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from placement.support.checks import number, text

__all__ = ["Limiter", "LimiterRules", "Wake", "cubic", "inflection_ms"]

Wake = Literal["absim", "strict"]

_ALMOST = 1.0 - 1e-9
"""A bucket this full has a token: refilling for exactly the time that was missing must suffice."""


@dataclass(frozen=True)
class LimiterRules:
    """Constants of the rate control; the defaults come from the authors' simulator.

    Attributes
    ----------
    window_ms
        δ: rates are tokens per window.
    decrease
        β: a decrease multiplies the rate by it.
    growth
        γ, of the cubic curve.
    step
        s_max: most that one response may add to the rate.
    hysteresis
        No decrease within this many windows after an increase.
    floor
        Least rate.
    rate, tokens, capacity, saddle
        Initial rate, initial tokens, size of the bucket, initial R0.
    smoothing
        a: weight of the newest window in the receive rate.
    wake
        What happens when a backlog wakes because a token is due. "absim": the bucket is *set* to
        one token, and the backlog tries again in a later event of the same instant; of several
        backlogs that wake together only the first finds it. "strict": the bucket holds what has
        flowed in since, nothing is minted.
    """

    window_ms: float = 20.0
    decrease: float = 0.2
    growth: float = 4e-6
    step: float = 10.0
    hysteresis: float = 2.0
    floor: float = 0.01
    rate: float = 10.0
    tokens: float = 10.0
    capacity: float = 10.0
    saddle: float = 10.0
    smoothing: float = 0.1
    wake: Wake = "absim"

    def __post_init__(self) -> None:
        # Below these least values a bucket would need longer for a token than a run can last.
        least = {"window_ms": 1e-3, "growth": 1e-12, "floor": 1e-6, "rate": 1e-6}
        for name, value in least.items():
            number(getattr(self, name), name, minimum=value)
        number(self.step, "step", above=True)
        number(self.decrease, "decrease", above=True, maximum=1.0)
        for name in ("hysteresis", "tokens", "saddle"):
            number(getattr(self, name), name)
        number(self.smoothing, "smoothing", maximum=1.0)
        number(self.capacity, "capacity", minimum=1.0)
        text(self.wake, "wake", choices=get_args(Wake))


def inflection_ms(rules: LimiterRules, saddle: float) -> float:
    """Return K = ∛(R0·β/γ): ms after a decrease at which the cubic is back at R0."""
    return math.cbrt(saddle * rules.decrease / rules.growth)


def cubic(rules: LimiterRules, saddle: float, since_ms: float) -> float:
    """Return γ·(Δ − K)³ + R0, the rate the curve asks for Δ ms after a decrease.

    At Δ = 0 it is (1 − β)·R0, whereas the decrease went to β·R0: with β = 0.2 the first increase
    jumps from a fifth towards four fifths of R0. TCP CUBIC has no such step; the published
    constants do, and they are kept.

    Examples
    --------
    >>> rules = LimiterRules()
    >>> round(cubic(rules, 20.0, 100.0), 9), round(cubic(rules, 20.0, 0.0), 9)
    (20.0, 16.0)
    """
    x = since_ms - inflection_ms(rules, saddle)
    return rules.growth * (x * x * x) + saddle


class Limiter:
    """The buckets of all pairs of client and server, by index client·servers + server.

    Parameters
    ----------
    rules
        Constants.
    pairs
        How many buckets.
    """

    def __init__(self, rules: LimiterRules, pairs: int) -> None:
        self.rules = rules
        self.rate = [rules.rate] * pairs
        self.tokens = [rules.tokens] * pairs
        self._granted = [0.0] * pairs
        self._received = [0.0] * pairs
        self._count = [0] * pairs
        self._tick = [0] * pairs
        self._saddle = [rules.saddle] * pairs
        self._decreased = [0.0] * pairs
        self._increased = [0.0] * pairs

    def _due(self, pair: int, now: float) -> float:
        """Return the tokens that a grant at `now` finds: all time since the last grant counts.

        Nothing is written. The original credits time at a grant only, at the rate in force then;
        a refusal that stored its refill would credit time before a rise of the rate at the old,
        lower rate.
        """
        earned = (now - self._granted[pair]) * self.rate[pair] / self.rules.window_ms
        return min(self.rules.capacity, self.tokens[pair] + earned)

    def take(self, pair: int, now: float) -> bool:
        """Take a token if there is one; a refusal changes nothing."""
        tokens = self._due(pair, now)
        if tokens < _ALMOST:
            return False
        self.tokens[pair] = tokens - 1.0
        self._granted[pair] = now
        return True

    def debit(self, pair: int) -> None:
        """Charge a read that does not ask: at most one token of the count at the last grant."""
        self.tokens[pair] = max(self.tokens[pair] - 1.0, 0.0)

    def wait_ms(self, pair: int, now: float) -> float:
        """Return the time until there is a token at the present rate, in ms."""
        missing = max(1.0 - self._due(pair, now), 0.0)
        return missing * self.rules.window_ms / self.rate[pair]

    def wake(self, pair: int, now: float) -> None:
        """Apply the rules when a backlog wakes for a token of this bucket."""
        if self.rules.wake == "absim":
            self.tokens[pair] = 1.0
            self._granted[pair] = now

    def answered(self, pair: int, now: float) -> None:
        """Adapt the rate to a response: grow along the cubic, or decrease."""
        rules = self.rules
        self._roll(pair, now)
        self._count[pair] += 1
        rate, received = self.rate[pair], self._received[pair]
        if rate < received:
            self._increased[pair] = now
            wanted = cubic(rules, self._saddle[pair], now - self._decreased[pair])
            faster = rate + rules.step if wanted - rate > rules.step else wanted
            # The curve starts at (1 − β)·R0, which other constants may put near zero.
            self.rate[pair] = max(faster, rules.floor / 2)
        elif received == 0.0:  # nothing has been measured yet
            return
        elif rate > received and now - self._increased[pair] > rules.hysteresis * rules.window_ms:
            self._saddle[pair] = rate
            self.rate[pair] = max(rate * rules.decrease, rules.floor)
            self._decreased[pair] = now

    def _roll(self, pair: int, now: float) -> None:
        """Close the windows that ended since the last response; all but the first were empty."""
        tick = math.floor(now / self.rules.window_ms)
        passed = tick - self._tick[pair]
        if passed <= 0:
            return
        a = self.rules.smoothing
        received = a * self._count[pair] + (1.0 - a) * self._received[pair]
        if passed > 1:
            received *= math.pow(1.0 - a, passed - 1)
        self._received[pair] = received
        self._count[pair] = 0
        self._tick[pair] = tick

"""The policies of the comparison: frozen descriptions, which the compiled event loop plays.

C3 and its rate control are those of L. Suresh, M. Canini, S. Schmid, A. Feldmann, "C3: Cutting tail
latency in cloud data stores via adaptive replica selection", NSDI 2015, with score and constants as
the authors' simulator has them. ORA is the paper's oracle. ORAF, ECT and ECTF are ours and show how
much better than it a policy with data that no client has can be. What each policy computes stands
in ``csrc/selection.c``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np

from placement.errors import InputError
from placement.online.selection import ServerSamplePath
from placement.online.simulation import check_fields, spawn_streams
from placement.support.checks import FloatArray, flag, instance_of, number, text

Tie = Literal["ring", "random"]
"""Order of replicas that tie: the first of the group, or one drawn per read."""

Wake = Literal["absim", "strict"]


@dataclass(frozen=True)
class LimiterRules:
    """C3's rate control: a token bucket per client and server whose rate follows a cubic curve.

    Δ ms after a decrease the curve asks for γ·(Δ − K)³ + R0, with K = ∛(R0·β/γ). At Δ = 0 that is
    (1 − β)·R0, whereas the decrease went to β·R0: with β = 0.2 the first increase jumps from a
    fifth towards four fifths of R0. TCP CUBIC has no such step; the published constants do.

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
        slow = {"window_ms": 1e-3, "growth": 1e-12, "floor": 1e-6, "rate": 1e-6}
        least = {**slow, "hysteresis": 0.0, "tokens": 0.0, "saddle": 0.0, "capacity": 1.0}
        check_fields(self, least=least, positive=("step", "decrease"), shares=["smoothing"])
        number(self.decrease, "decrease", maximum=1.0)
        text(self.wake, "wake", choices=get_args(Wake))


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Base of all policies.

    Parameters
    ----------
    limiter
        Rate control; None: none.

    Raises
    ------
    InputError
        With the field, its value and what was expected.
    """

    limiter: LimiterRules | None = None
    name: str = ""
    code: ClassVar[int] = -1
    """Number of the policy in the kernel."""

    def __post_init__(self) -> None:
        if self.limiter is not None:
            instance_of(self.limiter, LimiterRules, "limiter", "LimiterRules or None")
        text(self.name, "name")

    def described(self, clients: int) -> tuple[int, bool, float, float, float]:
        """Return the kernel's form: number, random ties, b, w, α; for a number of clients."""
        return self.code, getattr(self, "tie", "random") == "random", *self.constants(clients)

    def constants(self, clients: int) -> tuple[float, float, float]:
        """Return b, w and α."""
        del clients
        return 0.0, 0.0, 1.0


@dataclass(frozen=True, kw_only=True)
class _Tied(Policy):
    """Base of the policies that rank replicas by a score.

    `tie` is "random", or "ring" as in the authors' simulator.
    """

    tie: Tie = field(default="random", kw_only=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        text(self.tie, "tie", choices=get_args(Tie))


@dataclass(frozen=True, kw_only=True)
class C3(_Tied):
    """Least (R̄ − S̄) + q̂^b·S̄; a server never heard from has score 0, so it is tried first.

    Parameters
    ----------
    exponent
        b >= 0.
    weight
        w >= 0: how many requests one outstanding request stands for, 0: it does not count; None:
        the number of clients.
    smoothing
        Weight of the newest sample in the averages; the first sample replaces the initial state.
    tie, limiter
        See the base classes.
    """

    exponent: float = 3.0
    weight: float | None = None
    smoothing: float = 0.9
    limiter: LimiterRules | None = field(default_factory=LimiterRules)
    name: str = "C3"
    code: ClassVar[int] = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.exponent, "exponent")
        if self.weight is not None:
            number(self.weight, "weight")
        number(self.smoothing, "smoothing", above=True, maximum=1.0)

    def constants(self, clients: int) -> tuple[float, float, float]:
        """Return b, w and α."""
        weight = float(clients) if self.weight is None else float(self.weight)
        return self.exponent, weight, self.smoothing


@dataclass(frozen=True, kw_only=True)
class LeastOutstanding(_Tied):
    """LOR: fewest requests of this client outstanding, copies too; no rate control by default."""

    name: str = "LOR"
    code: ClassVar[int] = 5


@dataclass(frozen=True, kw_only=True)
class RoundRobin(Policy):
    """RR: each client rotates through the replicas of each group, first the first of the group.

    Under the limiter it walks the rotated list to the first replica that has a token.
    """

    limiter: LimiterRules | None = field(default_factory=LimiterRules)
    name: str = "RR"
    code: ClassVar[int] = 6


@dataclass(frozen=True, kw_only=True)
class RandomChoice(Policy):
    """RAND: the replicas in random order, drawn with the sample path."""

    limiter: LimiterRules | None = field(default_factory=LimiterRules)
    name: str = "RAND"
    code: ClassVar[int] = 7


@dataclass(frozen=True, kw_only=True)
class TwoChoices(Policy):
    """2C: of two random replicas the one with the better C3 score, outstanding requests left out.

    The score is (R̄ − S̄) + (1 + q̄)³·S̄. The replicas that were not drawn come last.
    """

    name: str = "2C"
    code: ClassVar[int] = 8

    def constants(self, clients: int) -> tuple[float, float, float]:
        """Return the exponent and the smoothing of C3."""
        return C3.exponent, 0.0, C3.smoothing


@dataclass(frozen=True, kw_only=True)
class LeastResponseTime(_Tied):
    """LRT: the replica whose last response was fastest; one never heard from comes first."""

    name: str = "LRT"
    code: ClassVar[int] = 9


@dataclass(frozen=True, kw_only=True)
class NearestReplica(_Tied):
    """NEAR: the replica with the smallest RTT from the client, as many drivers choose by default.

    With equal RTTs it is the first of the group ("ring"), or a random one.
    """

    name: str = "NEAR"
    code: ClassVar[int] = 10


@dataclass(frozen=True, kw_only=True)
class WeightedResponseTime(Policy):
    """WRT: random, with probability in inverse proportion to the last response time.

    The authors' simulator weighs *towards* slow replicas, by mistake; this does not. While a
    replica of the group was never heard from, those come first. The replicas that were not drawn
    follow by response time.
    """

    name: str = "WRT"
    code: ClassVar[int] = 12


@dataclass(frozen=True, kw_only=True)
class Oracle(_Tied):
    """ORA: least (1 + in service + waiting)·(mean service time now), without rate control.

    Parameters
    ----------
    in_flight
        Whether reads still on the network count too (ORAF).
    """

    in_flight: bool = False
    name: str = field(default="ORA", init=False)

    def __post_init__(self) -> None:
        flag(self.in_flight, "in_flight")
        object.__setattr__(self, "name", "ORAF" if self.in_flight else "ORA")
        super().__post_init__()

    def described(self, clients: int) -> tuple[int, bool, float, float, float]:
        """Return the kernel's form."""
        return int(self.in_flight), self.tie == "random", *self.constants(clients)


@dataclass(frozen=True, kw_only=True)
class EarliestCompletion(_Tied):
    """ECT: where this read would end first, by replaying the queues with known work.

    Parameters
    ----------
    future
        False: as if servers kept the speed they have now (ECT). True: with the speeds to come
        (ECTF), where the replay is exact, the clairvoyant greedy choice. With different RTTs of
        clients, with updates to come and with duplicates the replay is an estimate.
    """

    future: bool = False
    name: str = field(default="ECT", init=False)

    def __post_init__(self) -> None:
        flag(self.future, "future")
        object.__setattr__(self, "name", "ECTF" if self.future else "ECT")
        super().__post_init__()

    def described(self, clients: int) -> tuple[int, bool, float, float, float]:
        """Return the kernel's form."""
        return 2 + self.future, self.tie == "random", *self.constants(clients)


_BLOCK = 4096
"""Draws of dynamic snitching that are made at once."""


@dataclass(frozen=True, kw_only=True)
class DynamicSnitch(Policy):
    """DS: dynamic snitching, what Cassandra did before C3.

    After the rules of Apache Cassandra's dynamic snitch as C3's authors compare with them: a
    decaying sample of response times per server, scores recomputed every 100 ms, the static order
    kept unless it is bad enough. The severity that servers gossip (disk waits) has no counterpart
    in a simulation without disks and is left out.

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

    update_ms: float = 100.0
    reset_ms: float = 600_000.0
    size: int = 100
    decay: float = 0.75
    badness: float = 0.1
    name: str = "DS"
    code: ClassVar[int] = 11

    def __post_init__(self) -> None:
        least = {"decay": 0.0, "badness": 0.0}
        check_fields(self, counts={"size": 1}, least=least, positive=("update_ms", "reset_ms"))
        super().__post_init__()

    def priorities(self, sample: ServerSamplePath, many: int) -> FloatArray:
        """Return at least `many` draws for the places in samples, in the order of the responses.

        They come from a stream of the path's seed and are exponential: w/u with u uniform has the
        order of log w − log u.
        """
        causes = ("speeds", "arrivals", "work", "shadow", "policy", "snitch")
        rng = spawn_streams(sample.seed, causes)["snitch"]
        blocks = [rng.standard_exponential(_BLOCK)[::-1] for _ in range(-(-many // _BLOCK) or 1)]
        return np.concatenate(blocks)


@dataclass(frozen=True, kw_only=True)
class Hedged(Policy):
    """A policy whose reads are sent to a second replica after a percentile of the latency.

    Each client estimates the percentile p of its own reads by stochastic approximation: after a
    read of latency x the estimate is multiplied by 1 + step·p if x is above it, else by
    1 − step·(1 − p). A read that has waited for the estimate goes to the replica that the policy
    now ranks best among the others; the first answer counts. The duplicate takes a slot until it is
    served. Updates, and reads that go to all replicas anyway, are not duplicated. Rate control is
    that of the policy; a duplicate is charged and does not wait.

    Parameters
    ----------
    policy
        Chooses the replicas.
    percentile
        p, above 0 and below 1; 0.95 in the speculative retry that the C3 paper compares with.
    initial_ms
        First estimate of every client, ms.
    step
        Size of a correction, above 0 and at most 0.5.

    Raises
    ------
    InputError
        With the field, its value and what was expected.
    """

    policy: Policy = field(kw_only=False)
    percentile: float = 0.95
    initial_ms: float = 20.0
    step: float = 0.05
    name: str = field(default="", init=False)
    limiter: LimiterRules | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy) or isinstance(self.policy, Hedged):
            raise InputError(
                "not a policy to hedge", field="policy", value=self.policy,
                expected="a policy of heuristics.online.selection",
            )  # fmt: skip
        if not 0 < number(self.percentile, "percentile") < 1:
            raise InputError(
                "out of range", field="percentile", value=self.percentile,
                expected="a number above 0 and below 1",
            )  # fmt: skip
        number(self.initial_ms, "initial_ms", above=True)
        number(self.step, "step", above=True, maximum=0.5)
        object.__setattr__(self, "name", f"{self.policy.name}, hedged")
        object.__setattr__(self, "limiter", self.policy.limiter)
        super().__post_init__()

    def described(self, clients: int) -> tuple[int, bool, float, float, float]:
        """Return the kernel's form of the policy that chooses the replicas."""
        return self.policy.described(clients)

    @property
    def factors(self) -> tuple[float, float]:
        """Factors of the estimate: after a slower read, after another."""
        return 1.0 + self.step * self.percentile, 1.0 - self.step * (1.0 - self.percentile)


def comparison() -> tuple[Policy, ...]:
    """Return the policies that a comparison shows: blind ones first, a clairvoyant one last.

    Beside C3 as published stands its score with b = 1/2, without rate control, for sites whose RTTs
    differ: the cube lets no RTT weigh against one outstanding request.
    """
    return (
        NearestReplica(),
        RandomChoice(limiter=None),
        RoundRobin(limiter=None),
        DynamicSnitch(),
        LeastResponseTime(),
        TwoChoices(),
        LeastOutstanding(),
        Hedged(NearestReplica()),
        Hedged(LeastOutstanding()),
        C3(),
        C3(limiter=None, exponent=0.5, name="C3 b=1/2"),
        EarliestCompletion(future=True),
    )

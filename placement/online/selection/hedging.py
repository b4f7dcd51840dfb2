"""Request duplication: a second replica is asked when the first has not answered for long."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from placement.errors import InputError
from placement.online.selection.policy import Policy, Selector, Servers
from placement.online.selection.rate_limiter import LimiterRules
from placement.online.selection.sample_path import ServerSamplePath
from placement.support.checks import number

__all__ = ["Hedged"]


@dataclass(frozen=True)
class Hedged:
    """A policy whose reads are sent to a second replica after a percentile of the latency.

    Each client estimates the percentile p of its own reads by stochastic approximation: after a
    read of latency x the estimate is multiplied by 1 + step·p if x is above it, else by
    1 − step·(1 − p). A read that has waited for the estimate goes to the replica that the policy
    now ranks best among the others; the first answer counts. The duplicate takes a slot until it is
    served. Updates, and reads that go to all replicas anyway, are not duplicated.

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

    policy: Policy
    _: KW_ONLY
    percentile: float = 0.95
    initial_ms: float = 20.0
    step: float = 0.05

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy) or isinstance(self.policy, Hedged):
            raise InputError(
                "not a policy to hedge", field="policy", value=self.policy,
                expected="name, limiter and start()",
            )  # fmt: skip
        if not 0 < number(self.percentile, "percentile") < 1:
            raise InputError(
                "out of range", field="percentile", value=self.percentile,
                expected="a number above 0 and below 1",
            )  # fmt: skip
        number(self.initial_ms, "initial_ms", above=True)
        number(self.step, "step", above=True, maximum=0.5)

    @property
    def name(self) -> str:
        """Name of the policy, and that it is hedged."""
        return f"{self.policy.name}, hedged"

    @property
    def limiter(self) -> LimiterRules | None:
        """Rate control of the policy; a duplicate is charged and does not wait."""
        return self.policy.limiter

    def start(self, sample: ServerSamplePath, servers: Servers) -> Selector:
        """Start the policy."""
        return self.policy.start(sample, servers)

    @property
    def factors(self) -> tuple[float, float]:
        """Factors of the estimate: after a slower read, after another."""
        return 1.0 + self.step * self.percentile, 1.0 - self.step * (1.0 - self.percentile)

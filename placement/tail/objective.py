"""The objective "p-th percentile of the latency of all operations".

What the latency of all operations is, and how it is distributed:
:mod:`placement.tail.latency_mixture`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placement.checks import instance_of
from placement.errors import InputError
from placement.evaluation.losses import Failures, failures
from placement.evaluation.objective import ProofMethod, score_of, values_one_by_one
from placement.evaluation.value_tables import ValueTable
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.status import Status
from placement.tail.distribution_arithmetic import percentile
from placement.tail.latency_mixture import mixture
from placement.tail.rtt_distributions import Distributions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from placement.io.formats.document import Document
    from placement.model.instance import Instance
    from placement.plan import Plan
    from placement.problem import Problem

__all__ = ["Percentile"]

_REMEMBERED = 4096
"""Values that an objective remembers."""

_ENUMERATED_SETS = 20_000
"""Replica sets up to which percentiles are enumerated: a minute or so on 60 clients."""


@dataclass(frozen=True)
class Percentile:
    """Minimise the p-th percentile of operation latency.

    Parameters
    ----------
    percent
        p in (0, 100].
    distributions
        Of the RTTs of every pair.
    """

    percent: float
    distributions: Distributions = field(hash=False)
    # A value takes a convolution, and methods, rules and plans all ask for it.
    _known: dict[tuple[Problem, Configuration], float] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __getstate__(self) -> dict[str, object]:
        return {"percent": self.percent, "distributions": self.distributions, "_known": {}}

    def __post_init__(self) -> None:
        instance_of(
            self.distributions, Distributions, "distributions", "placement.tail.Distributions"
        )
        if isinstance(self.percent, bool) or not (
            isinstance(self.percent, (int, float)) and 0 < self.percent <= 100
        ):
            raise InputError(
                "out of range", field="percentile", value=self.percent, expected="0 < p <= 100"
            )

    @property
    def kind(self) -> str:
        """Return "percentile"."""
        return "percentile"

    def value(self, problem: Problem, configuration: Configuration) -> float:
        """p-th percentile in ms; infinite when it lies beyond the horizon of the distributions."""
        key = (problem, configuration)
        value = self._known.get(key)
        if value is None:
            latency = mixture(problem, configuration, self.distributions)
            bins = percentile(latency, self.percent / 100, horizon=self.distributions.bins)
            value = bins * self.distributions.width
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = value
        return value

    def values(
        self, problem: Problem, configurations: Sequence[Configuration]
    ) -> npt.NDArray[np.float64]:
        """Values of many configurations, each as :meth:`value` gives it, shape (n,)."""
        return values_one_by_one(self, problem, configurations)

    def in_ms(self, problem: Problem, value: float) -> float:
        """Return the value: percentiles are in ms already."""
        del problem
        return value

    @property
    def beyond(self) -> str:
        """Return the text for a percentile beyond the horizon of the distributions."""
        return "beyond the horizon"

    def failures(self, problem: Problem, configuration: Configuration) -> Failures:
        """Mean latency under the loss of each single site, clients staying where they are."""
        return failures(problem, configuration)

    def headline(self, problem: Problem) -> str:
        """Return the percentile in words."""
        del problem
        return self.describe().split()[0]

    def tie_break(self, problem: Problem, configuration: Configuration) -> float:
        """Mean latency: percentiles on a grid tie often."""
        return score_of(problem, configuration)

    def violations(self, problem: Problem, configuration: Configuration) -> tuple[str, ...]:
        """Say so when the percentile lies beyond the horizon."""
        if math.isfinite(self.value(problem, configuration)):
            return ()
        horizon = self.distributions.bins * self.distributions.width
        return (f"its {self.describe()} lies beyond the horizon of {horizon:g} ms",)

    def diversity(self, voters: int, quorum: int) -> tuple[Diversity, ...]:
        """Return no rules."""
        del voters, quorum
        return ()

    @property
    def minimises_mean(self) -> bool:
        """Return False."""
        return False

    @property
    def decimals(self) -> int:
        """Return the decimals with which a value in ms is shown: those of the grid."""
        return max(1, math.ceil(-math.log10(self.distributions.width) - 1e-9))

    def check(self, problem: Problem) -> None:
        """Check that the distributions are the instance's, RTTs do not vary, no money counts."""
        self.distributions.check(problem.instance)
        if problem.cost_weight:
            raise InputError(
                "a percentile does not weigh money",
                field="cost_weight",
                value=problem.cost_weight,
                expected="0, or a budget",
            )
        if problem.demand.scenarios > 1:
            raise InputError(
                "RTTs that vary by interval have no one distribution per pair",
                field="objective",
                expected="an instance with one RTT matrix",
            )

    def reasons_infeasible(self, problem: Problem) -> tuple[str, ...]:
        """Return nothing: every configuration has a percentile, be it beyond the horizon."""
        del problem
        return ()

    def caveats(self, problem: Problem) -> tuple[str, ...]:
        """Say so when the horizon is short enough to be the reason that no plan was found."""
        del problem
        if self.distributions.overflow <= 1e-9:
            return ()
        horizon = self.distributions.bins * self.distributions.width
        return (
            f"plans whose {self.describe()} lies beyond the horizon of {horizon:g} ms do not "
            "count; a longer horizon tells more",
        )

    def proof_method(
        self, problem: Problem, sets: Callable[[], int], time_limit: float | None
    ) -> ProofMethod | None:
        """Return None, or ``exhaustive`` where the percentile is no sum for each deadline.

        With a refusal where the replica sets are too many.
        """
        from placement.tail.late_operations import why_no_sum

        del time_limit
        reason = why_no_sum(problem)
        if reason is None:
            return None
        count, refusal = sets(), ""
        if count > _ENUMERATED_SETS:
            refusal = (
                f"{reason}: such a percentile is proven by evaluating every replica set, and there "
                f"are {count:,} of them (at most {_ENUMERATED_SETS:,} are taken); use "
                "'local-search', which has a bound, or 'exhaustive' and patience"
            )
        return ProofMethod("exhaustive", reason, refusal)

    def unproven(self, plan: Plan) -> tuple[str, str] | None:
        """Return the value of the plan, and nothing about others: the integer proof bounds sums.

        None for an infeasible plan, whose certificate counts sites.
        """
        if plan.status is Status.INFEASIBLE:
            return None
        held = "the plan holds no configuration"
        if plan.found:
            rules = "breaks constraints" if plan.reasons else "obeys all constraints"
            held = (
                "the configuration was evaluated again from the distributions in the file: its "
                f"{self.describe()} is {plan.objective:g} ms, and it {rules}"
            )
        return held, (
            "plans for a percentile carry no certificate, so that no other plan is ruled out "
            f"here; {plan.method!r} said {plan.status.value!r}: solve again with 'exhaustive', or "
            "with 'leader' or 'tier2' where replicas are given, which try everything"
        )

    def describe(self) -> str:
        """Return the objective in words."""
        return f"p{self.percent:g} latency"

    def tables(self, problem: Problem, configuration: Configuration) -> tuple[ValueTable, ...]:
        """Return other percentiles, and every voter as leader by this percentile."""
        from placement.tail.percentile_breakdown import value_tables

        return value_tables(problem, configuration)

    def plan_rows(
        self, problem: Problem, configuration: Configuration
    ) -> Mapping[str, Sequence[object]]:
        """Return other percentiles, and every voter as leader."""
        from placement.tail.percentile_breakdown import PercentileValue, by_leader, percentile_curve

        return {
            "percentiles": [
                PercentileValue(*row) for row in percentile_curve(problem, configuration)
            ],
            "leaders": by_leader(problem, configuration),
        }

    def document(self, instance: Instance) -> dict[str, object]:
        """Return the percentile and the distributions of every pair."""
        from placement.tail.document import distributions_document

        return {
            "percent": float(self.percent),
            "distributions": distributions_document(self.distributions, instance),
        }

    @classmethod
    def from_document(cls, document: Document, instance: Instance) -> Percentile:
        """Return the objective that :meth:`document` wrote."""
        from placement.tail.document import distributions_from

        given = distributions_from(document.table("distributions"), instance)
        return cls(document.number("percent"), given)

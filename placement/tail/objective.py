"""The objective "p-th percentile of the latency of all operations".

The distribution of the latency of all operations:
:mod:`placement.tail.latency_mixture`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.evaluation.losses import Failures, failures
from placement.evaluation.objective import ProofMethod, score_of, values_one_by_one
from placement.evaluation.value_tables import ValueTable
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.model.demand import decay_weights
from placement.support.checks import FloatArray, instance_of
from placement.support.status import Status
from placement.tail.distribution_arithmetic import percentile
from placement.tail.latency_mixture import mixture, weighted_sum
from placement.tail.rtt_distributions import Distributions

if TYPE_CHECKING:
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
        Of the RTTs of every pair; in the first interval, where RTTs vary by interval.
    by_interval
        Where RTTs vary: those of every interval, on one grid. Empty: RTTs do not vary.
    """

    percent: float
    distributions: Distributions = field(hash=False)
    by_interval: tuple[Distributions, ...] = field(hash=False, default=())
    # A value takes a convolution, and methods, rules and plans all ask for it.
    _known: dict[tuple[Problem, Configuration, int | None], float] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __getstate__(self) -> dict[str, object]:
        return {
            "percent": self.percent,
            "distributions": self.distributions,
            "by_interval": self.by_interval,
            "_known": {},
        }

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
        object.__setattr__(self, "by_interval", tuple(self.by_interval))
        for interval, one in enumerate(self.by_interval):
            instance_of(
                one, Distributions, f"by_interval[{interval}]", "placement.tail.Distributions"
            )
            if (one.width, one.bins) != (self.distributions.width, self.distributions.bins):
                raise InputError(
                    "distributions on different grids",
                    field=f"by_interval[{interval}]",
                    value=f"{one.bins} bins of {one.width:g} ms",
                    expected=f"{self.distributions.bins} bins of {self.distributions.width:g} ms",
                )

    @classmethod
    def varying(cls, percent: float, by_interval: Sequence[Distributions]) -> Percentile:
        """Return the percentile over intervals whose RTTs differ, one entry per interval."""
        if not by_interval:
            raise InputError(
                "no distributions", field="by_interval", expected="one entry per interval"
            )
        return cls(percent, by_interval[0], tuple(by_interval))

    @property
    def kind(self) -> str:
        """Return "percentile"."""
        return "percentile"

    def value(
        self, problem: Problem, configuration: Configuration, quorum: int | None = None
    ) -> float:
        """p-th percentile in ms; infinite when it lies beyond the horizon of the distributions.

        `quorum` as in :meth:`latency`.
        """
        key = (problem, configuration, quorum)
        value = self._known.get(key)
        if value is None:
            value = self._of_latency(self.latency(problem, configuration, quorum))
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = value
        return value

    def latency(
        self,
        problem: Problem,
        configuration: Configuration,
        quorum: int | None = None,
    ) -> FloatArray:
        """Distribution of the latency of all operations, per bin.

        Where RTTs vary, the mixture of the intervals, each with its weight in the demand.

        Parameters
        ----------
        problem, configuration
            The plan, or what a loss leaves of it.
        quorum
            Votes that a commit waits for; None: those of the configuration.
        """
        parts = self.by_scenario(problem)
        counts = problem.demand.counts
        whole = float(counts.sum())
        return weighted_sum(
            [
                (
                    float(counts[scenario].sum()) / whole if len(parts) > 1 else 1.0,
                    mixture(problem, configuration, one, scenario, quorum),
                )
                for scenario, one in enumerate(parts)
                if counts[scenario].any()
            ]
        )

    def by_scenario(self, problem: Problem) -> tuple[Distributions, ...]:
        """Return the distributions of every scenario of the demand: of intervals with a weight."""
        if not self.by_interval:
            return (self.distributions,)
        counts = problem.instance.counts
        weights = decay_weights(len(counts), problem.decay)
        kept = np.asarray((counts * weights[:, np.newaxis, np.newaxis]).any(axis=(1, 2)))
        return tuple(one for one, known in zip(self.by_interval, kept, strict=True) if known)

    def _of_latency(self, latency: FloatArray) -> float:
        """p-th percentile in ms of a distribution of latency per bin."""
        bins = percentile(latency, self.percent / 100, horizon=self.distributions.bins)
        return bins * self.distributions.width

    def mixed(
        self, problem: Problem, configurations: Sequence[Configuration], shares: Sequence[float]
    ) -> float:
        """p-th percentile in ms of a database whose groups run on several configurations."""
        return self.of_mixture(
            [
                (share, self.latency(problem, one))
                for one, share in zip(configurations, shares, strict=True)
                if share
            ]
        )

    def of_mixture(self, parts: Sequence[tuple[float, FloatArray]]) -> float:
        """p-th percentile in ms of latencies per bin with their shares, which sum to 1."""
        return self._of_latency(weighted_sum(parts))

    def of_intervals(self, intervals: int | slice) -> Percentile:
        """Return the percentile with the distributions of one interval, or of several."""
        if not self.by_interval:
            return self
        if isinstance(intervals, slice):
            return Percentile.varying(self.percent, self.by_interval[intervals])
        return Percentile(self.percent, self.by_interval[intervals])

    def values(
        self, problem: Problem, configurations: Sequence[Configuration]
    ) -> npt.NDArray[np.float64]:
        """Values of many configurations, each as :meth:`value` gives it, shape (n,)."""
        return values_one_by_one(self, problem, configurations)

    def in_ms(self, problem: Problem, value: float) -> float:
        """Return the value: percentiles are in ms already."""
        del problem
        return value

    def unit(self, problem: Problem) -> str:
        """Return "ms"."""
        del problem
        return "ms"

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
        """Return the number of decimals of a value in ms: as many as the grid has."""
        return max(1, math.ceil(-math.log10(self.distributions.width) - 1e-9))

    def check(self, problem: Problem) -> None:
        """Check that the distributions are the instance's, and that no money counts."""
        for one in (self.distributions, *self.by_interval):
            one.check(problem.instance)
        periods = len(problem.instance.intervals) if problem.instance.varying_rtt else 0
        if len(self.by_interval) != periods:
            raise InputError(
                "as many distributions as intervals with RTTs of their own are needed"
                if periods
                else "RTTs do not vary by interval",
                field="by_interval",
                value=len(self.by_interval),
                expected=f"one for each of {periods} intervals" if periods else "none",
            )
        if problem.cost_weight:
            raise InputError(
                "a percentile does not support a weight of the cost",
                field="cost_weight",
                value=problem.cost_weight,
                expected="0, or a budget",
            )

    def reasons_infeasible(self, problem: Problem) -> tuple[str, ...]:
        """Return nothing: every configuration has a percentile, be it beyond the horizon."""
        del problem
        return ()

    def remarks(self, problem: Problem) -> tuple[str, ...]:
        """Return nothing."""
        del problem
        return ()

    def caveats(self, problem: Problem) -> tuple[str, ...]:
        """Say so when the horizon is short enough to be the reason that no plan was found."""
        del problem
        if max(one.overflow for one in (self.distributions, *self.by_interval)) <= 1e-9:
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
        reason = why_no_sum(problem, self)
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
        """Return the value of a plan without a certificate, which says nothing about others.

        None where the certificate decides, and for an infeasible plan, for which counting may.
        """
        if plan.status is Status.INFEASIBLE or plan.certificate is not None:
            return None
        held = "the plan holds no configuration"
        if plan.found:
            rules = "breaks constraints" if plan.reasons else "obeys all constraints"
            held = (
                "the configuration was evaluated again from the distributions in the file: its "
                f"{plan.problem.objective.describe()} is {plan.objective:g} ms, and it {rules}"
            )
        return held, (
            "the plan carries no certificate, so that no other plan is ruled out here; "
            f"{plan.method!r} said {plan.status.value!r}: solve again with 'exact', or with "
            "'leader' or 'tier2' where replicas are given, which try everything"
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

        document: dict[str, object] = {"percent": float(self.percent)}
        if self.by_interval:
            document["by_interval"] = [
                distributions_document(one, instance.at_interval(interval))
                for interval, one in enumerate(self.by_interval)
            ]
        else:
            document["distributions"] = distributions_document(self.distributions, instance)
        return document

    @classmethod
    def from_document(cls, document: Document, instance: Instance) -> Percentile:
        """Return the objective that :meth:`document` wrote."""
        from placement.tail.document import distributions_from

        percent = document.number("percent")
        if not document.has("by_interval"):
            return cls(percent, distributions_from(document.table("distributions"), instance))
        tables = document.tables("by_interval")
        if not instance.varying_rtt or len(tables) != len(instance.intervals):
            raise document.refuse(
                "by_interval",
                "another number of intervals",
                f"one entry for each of {len(instance.intervals)} intervals whose RTTs vary",
            )
        return cls.varying(
            percent,
            [
                distributions_from(table, instance.at_interval(interval))
                for interval, table in enumerate(tables)
            ],
        )

"""Percentiles of the latency of all operations: their values, and their distributions of RTTs.

The measure of that name reads it (:mod:`placement.measures.values`). The distribution of the
latency of all operations: :mod:`placement.tail.latency_mixture`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.model.configuration import Configuration
from placement.model.demand import decay_weights
from placement.support.checks import FloatArray, instance_of
from placement.tail.distribution_arithmetic import percentile
from placement.tail.latency_mixture import mixture, weighted_sum
from placement.tail.rtt_distributions import Distributions

if TYPE_CHECKING:
    from placement.problem import Problem

_REMEMBERED = 4096
"""Values that an objective remembers."""


_PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class PercentileRow:
    """A percentile of all operations: percent, and ms (infinite beyond the horizon)."""

    percent: float
    ms: float


@dataclass(frozen=True)
class Percentile:
    """The p-th percentile of operation latency.

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
        return {**vars(self), "_known": {}}

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

    def value(
        self, problem: Problem, configuration: Configuration, quorum: int | None = None
    ) -> float:
        """p-th percentile in ms; infinite when it lies beyond the horizon of the distributions.

        `quorum` as in :meth:`latency`.
        """
        key = (problem, configuration, quorum)
        value = self._known.get(key)
        if value is None:
            value = self.of_mixture([(1.0, self.latency(problem, configuration, quorum))])
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

    def of_mixture(self, parts: Sequence[tuple[float, FloatArray]]) -> float:
        """p-th percentile in ms of latencies per bin with their shares, which sum to 1."""
        latency, one = weighted_sum(parts), self.distributions
        return percentile(latency, self.percent / 100, horizon=one.bins) * one.width

    def rows(self, problem: Problem, configuration: Configuration) -> tuple[PercentileRow, ...]:
        """Return some percentiles of a plan, of one distribution of its latency."""
        latency, one = self.latency(problem, configuration), self.distributions
        return tuple(
            PercentileRow(p, one.width * percentile(latency, p / 100, horizon=one.bins))
            for p in _PERCENTS
        )

    def check(self, problem: Problem) -> None:
        """Check that the distributions are the instance's."""
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

"""Limits of a search, its reports on the way, and its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from formulations.exact.kernel import Counters
from formulations.exact.no_plan_proof import NoPlan
from formulations.exact.reduced_problem import ReducedProblem
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray
from placement.support.status import Status, Termination, status_of

if TYPE_CHECKING:
    from formulations.exact.certificate_events import Certificate


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits at which a search stops early.

    Attributes
    ----------
    seconds
        Wall time; +∞: no limit.
    gap
        Relative gap between incumbent and bound at which to stop; 0: prove.
    """

    seconds: float = math.inf
    gap: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchReport:
    """A moment of the search: seconds since its start, incumbent and proven lower bound."""

    seconds: float
    incumbent: float
    bound: float


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a search: its best configuration and what it proved.

    Attributes
    ----------
    core
        The problem.
    termination
        Why the search stopped.
    configuration
        The incumbent, with its best voters; None when there is none.
    proven
        Proven lower bound on the objective of every feasible configuration; +∞ when infeasible.
    reports, seconds
        On the way, and how long it took.
    counters
        Nodes, leaves, evaluations of the bound.
    leader_bounds
        Proven lower bound, for every leader searched (−1 when no leader matters), of all that its
        tree has not evaluated.
    multipliers
        Multipliers of the active clients by leader, to start a similar search from.
    certified
        Builds the certificate, when the search finished and was asked for one; None: there is none.
    none
        What shows that there is no configuration, when there is none.
    """

    core: ReducedProblem
    termination: Termination
    configuration: Configuration | None
    proven: float
    reports: tuple[SearchReport, ...]
    seconds: float
    counters: Counters
    leader_bounds: Mapping[int, float] = field(default_factory=dict)
    multipliers: Mapping[int, FloatArray] = field(default_factory=dict)
    certified: Callable[[], Certificate] | None = None
    none: NoPlan | None = None

    @cached_property
    def score(self) -> float:
        """Objective of the incumbent by the shared evaluator; +∞ when there is none."""
        return math.inf if self.configuration is None else self.core.score(self.configuration)

    @property
    def bound(self) -> float:
        """Proven bound, lowered to the score where rounding put it above."""
        return min(self.proven, self.score)

    @property
    def status(self) -> Status:
        """Status of the incumbent, from score and bound."""
        return status_of(self.configuration is not None, self.score, self.bound)

    @property
    def trace(self) -> tuple[SearchReport, ...]:
        """Reports, in time; incumbents fall, bounds rise."""
        return (*self.reports, SearchReport(self.seconds, self.score, self.bound))

    @cached_property
    def certificate(self) -> Certificate | None:
        """Certificate that re-proves the bound; built when first read, as most plans need none."""
        return None if self.certified is None else self.certified()


def round_up(core: ReducedProblem, bound: float) -> float:
    """Next multiple of the granularity, when every objective is one."""
    if not core.granularity or not math.isfinite(bound):
        return bound
    return core.granularity * math.ceil(bound / core.granularity)

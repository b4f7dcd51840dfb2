"""What a search is told, reports on its way, and returns."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from formulations.exact.certificate import Certificate
from formulations.exact.infeasible import NoPlan
from formulations.exact.kernel import Counters
from placement.checks import FloatArray
from placement.configuration import Configuration
from placement.status import Status, Termination

__all__ = ["Limits", "Report", "Result"]


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop early.

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
class Report:
    """A moment of the search: seconds since its start, incumbent and proven lower bound."""

    seconds: float
    incumbent: float
    bound: float


@dataclass(frozen=True, eq=False)
class Result:
    """What a search found and proved.

    Attributes
    ----------
    status, termination
        What is known, and why the search stopped.
    configuration
        The incumbent, with its best voters; None when there is none.
    score
        Its objective by the shared evaluator; +∞ when there is none.
    bound
        Proven lower bound on the objective of every feasible configuration; +∞ when infeasible.
    trace
        Reports, in time; incumbents fall, bounds rise.
    counters
        Nodes, leaves, evaluations of the bound.
    leader_bounds
        Proven lower bound for every leader searched (−1 when no leader matters).
    multipliers
        Multipliers of the active clients by leader, to start a similar search from.
    certified
        Puts together what re-proves the bound, when the search finished and was asked for it.
    none
        What shows that there is no configuration, when there is none.
    """

    status: Status
    termination: Termination
    configuration: Configuration | None
    score: float
    bound: float
    trace: tuple[Report, ...]
    counters: Counters
    leader_bounds: Mapping[int, float] = field(default_factory=dict)
    multipliers: Mapping[int, FloatArray] = field(default_factory=dict)
    certified: Callable[[], Certificate] | None = None
    none: NoPlan | None = None

    @cached_property
    def certificate(self) -> Certificate | None:
        """What re-proves the bound; put together at the first look: most plans get none."""
        return None if self.certified is None else self.certified()

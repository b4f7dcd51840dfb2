"""Dynamic copies with their cost and a proven bound."""

from __future__ import annotations

import math
from dataclasses import dataclass

from placement.errors import SolverError
from placement.online.dynamic.evaluator import Evaluation, checked_copies, evaluate
from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import BoolArray
from placement.support.status import (
    OPTIMALITY_TOLERANCE,
    Status,
    least_bound,
    relative_gap,
    status_of,
)

__all__ = ["ReplicationPlan"]


@dataclass(frozen=True, eq=False)
class ReplicationPlan:
    """An answer to a :class:`ReplicationProblem`. Make it with :meth:`of`.

    Attributes
    ----------
    copies
        Dynamic copies, shape (sites, objects), read-only.
    evaluation
        What they cost, by the evaluator.
    bound
        No dynamic copies within capacity cost less; −∞ when nothing is proven.
    status
        "optimal" only when the bound is within a relative 1e-9 of the cost.
    method
        Who made it.
    notes
        What a reader of the result should know.
    """

    copies: BoolArray
    evaluation: Evaluation
    bound: float
    status: Status
    method: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        problem: ReplicationProblem,
        copies: BoolArray,
        method: str,
        *,
        bound: float = -math.inf,
        notes: tuple[str, ...] = (),
    ) -> ReplicationPlan:
        """Evaluate copies within the capacities, and derive the status from `bound`.

        Raises
        ------
        SolverError
            When a site is overfull, or the bound lies above the cost.
        """
        kept = checked_copies(problem, copies).copy()
        kept.flags.writeable = False
        result = evaluate(problem, kept)
        if result.overfull:
            site = problem.geography.sites[result.overfull[0]]
            raise SolverError(f"{method}: more copies than fit at {site!r}")
        if bound > result.cost + OPTIMALITY_TOLERANCE * abs(result.cost):
            raise SolverError(f"{method}: bound {bound!r} above the cost {result.cost!r}")
        bound = least_bound(bound, result.cost)
        return cls(kept, result, bound, status_of(True, result.cost, bound), method, notes)

    @property
    def cost(self) -> float:
        """The objective."""
        return self.evaluation.cost

    @property
    def gap(self) -> float:
        """(cost − bound)/cost."""
        return relative_gap(self.cost, self.bound)

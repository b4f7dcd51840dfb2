"""The answer to a :class:`ReadProblem`: strategy, figures, proof."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from placement.errors import SolverError
from placement.online.reads.problem import ReadGoal, ReadProblem
from placement.online.reads.quorum_mixture import ReadStrategy
from placement.online.reads.strategy_evaluator import ReadFigures, evaluate
from placement.support.status import (
    OPTIMALITY_TOLERANCE,
    Status,
    least_bound,
    relative_gap,
    status_of,
)

__all__ = ["ReadPlan"]


@dataclass(frozen=True, eq=False)
class ReadPlan:
    """A read strategy with its figures and a proven bound.

    Build one with :meth:`of`: every figure is then the evaluator's, and the status follows from
    value and bound.

    Attributes
    ----------
    problem, goal
        The question.
    strategy, figures
        None when no strategy obeys the limits, or none was found.
    value, bound
        Of the goal; both +∞ when infeasible.
    status, method, notes
        Proof state, method, and remarks for the reader.
    """

    problem: ReadProblem
    goal: ReadGoal
    strategy: ReadStrategy | None
    figures: ReadFigures | None
    value: float
    bound: float
    status: Status
    method: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        problem: ReadProblem,
        goal: ReadGoal,
        strategy: ReadStrategy | None,
        *,
        method: str,
        bound: float = -math.inf,
        notes: Sequence[str] = (),
    ) -> ReadPlan:
        """Return the plan of an evaluated `strategy`, with its status.

        Raises
        ------
        SolverError
            When the strategy breaks the limits of the goal, or its value lies below `bound`: then
            the method that produced them is wrong.
        """
        figures, value, bound = None, math.inf, least_bound(bound)
        if strategy is not None:
            figures = evaluate(problem, strategy)
            value = figures.objective(goal)
            broken = figures.broken(goal)
            if broken:
                raise SolverError(f"{method} returned a strategy that breaks limits: {broken[0]}")
            # A strategy may exceed limits by the tolerance of the evaluator, and gain by it.
            if bound - value > 10 * OPTIMALITY_TOLERANCE * abs(value):
                raise SolverError(f"{method} claims the bound {bound} above the value {value}")
        return cls(
            problem,
            goal,
            strategy,
            figures,
            value,
            bound,
            status_of(strategy is not None, value, bound),
            method,
            tuple(notes),
        )

    @property
    def gap(self) -> float:
        """(value − bound)/value."""
        return relative_gap(self.value, self.bound)

"""The functions of a question under one leader: its limits, and what it minimises, as rows.

The search and the checker of its certificates both build their scenarios from here. Neither reads
a row from a file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placement.evaluation.cost_model import LinearCost
from placement.measures.measure import Measure, MeasureKind
from placement.measures.rows import Row, rows
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray

__all__ = ["Function", "counted_clients", "functions"]

_MEAN = Measure(MeasureKind.MEAN)


@dataclass(frozen=True, eq=False)
class Function:
    """A limited or minimised function of the plans under one leader: the largest of its rows.

    Attributes
    ----------
    rows
        X of each.
    scale
        Value of the function times this is X.
    allowed
        Largest X that the evaluator takes; +∞ where the function is minimised.
    """

    rows: tuple[Row, ...]
    scale: float
    allowed: float

    @property
    def whole(self) -> bool:
        """Return whether X is a whole number for every plan."""
        given = [
            np.asarray(part)
            for row in self.rows
            for part in (row.constant, row.costs, row.prices, row.votes)
            if part is not None
        ]
        weighs = any(row.waits is not None or row.late is not None for row in self.rows)
        return not weighs and all(bool((part % 1 == 0).all()) for part in given)


def counted_clients(problem: Problem) -> IntArray:
    """Return the clients that any row may count: those with operations or prices nearby."""
    demand = problem.demand
    counted = (demand.near[0] > 0) | (demand.relay[0] > 0)
    linear = [limit.linear(0) for limit in problem.limits]
    for one in (*linear, problem.added_cost(0)):
        if one is not None and one.nearest is not None:
            counted |= one.nearest.any(axis=1)
    return np.nonzero(counted)[0]


def functions(problem: Problem, leader: int) -> tuple[Function, ...]:
    """Return the limits of a question under a leader, and last what it minimises."""
    kept = [
        Function((_with_votes(problem, _linear(leader, limit.linear(leader))),), 1.0, limit.allowed)
        for limit in problem.limits
    ]
    (mean,) = rows(problem, _MEAN, leader).rows
    added = problem.added_cost(leader)
    if added is not None:
        mean = _plus(mean, _linear(leader, added))
    return (*kept, Function((_with_votes(problem, mean),), 1.0, np.inf))


def _linear(leader: int, cost: LinearCost) -> Row:
    near = None if cost.nearest is None else cost.nearest.T
    return Row(leader, cost.constant, near, prices=cost.replica, votes=cost.voter)


def _plus(row: Row, other: Row) -> Row:
    return replace(
        row,
        constant=row.constant + other.constant,
        costs=_sum(row.costs, other.costs),
        prices=_sum(row.prices, other.prices),
        votes=_sum(row.votes, other.votes),
    )


def _sum(one: FloatArray | None, other: FloatArray | None) -> FloatArray | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _with_votes(problem: Problem, row: Row) -> Row:
    """Return a row with the votes in the prices of replicas where all of them vote."""
    rules = problem.rules
    if row.votes is None or rules.replicas_max != rules.voters:
        return row
    return replace(row, prices=_sum(row.prices, row.votes), votes=None)

"""Losses with waits, witnesses or a vote layout by enumeration: part of the method ``exhaustive``.

Every configuration has its normal score from the one evaluator, many at a time. The goals "worst"
and "bounded" are at least the normal score, and "weighted" is at least a share of it
(:meth:`.Contingency.normal_share`). So the losses of a configuration are evaluated in ascending
order of this floor, and not at all once it exceeds the best value so far.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from formulations.enumeration.enumerate_sets import Found, is_better
from formulations.enumeration.waits import (
    configurations,
    enumerate_configurations,
    in_order,
    with_order,
)
from placement.contingency.objective import Contingency
from placement.evaluation.objective import scores_of
from placement.evaluation.score import TIE
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import IntArray

__all__ = ["UnderLosses", "solve"]

_BLOCK = 2_000

_AT_ONCE = 500
"""Configurations whose losses are evaluated together."""


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every configuration, under losses where its floor does not exclude it.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    goal = problem.objective
    assert isinstance(goal, Contingency)
    looked = UnderLosses(problem, goal)
    plan = enumerate_configurations(problem, options, looked.best_of, _BLOCK)
    return plan.replace(stats={**plan.stats, "under losses": looked.evaluated})


class UnderLosses:
    """The least value so far of all configurations that were evaluated under losses.

    Parameters
    ----------
    problem
        The question; `goal` is its objective.

    Attributes
    ----------
    share
        A value is at least this times the normal score.
    value
        The least so far; infinite: none.
    evaluated
        Number of configurations that were evaluated under losses.
    """

    def __init__(self, problem: Problem, goal: Contingency) -> None:
        self.problem, self.goal = problem, goal
        self.share = goal.normal_share(problem)
        self.value = math.inf
        self.evaluated = 0

    def best_of(self, sets: IntArray) -> Found | None:
        """Return the best configuration of some replica sets that is no worse than the value."""
        return self.best_among(configurations(self.problem, sets))

    def best_among(
        self, found: Sequence[Configuration], *, above: float = -math.inf
    ) -> Found | None:
        """Return the best of some configurations that is no worse than the value.

        Parameters
        ----------
        found
            Configurations that obey the rules.
        above
            Those with a normal score up to this one are left out.

        Returns
        -------
        tuple or None
            Value, normal score, configuration.
        """
        if not found:
            return None
        normal = scores_of(self.problem, found)
        best: Found | None = None
        order = np.argsort(normal, kind="stable")
        order = order[(normal[order] > above) & np.isfinite(normal[order])]
        for first in range(0, len(order), _AT_ONCE):
            rows = order[first : first + _AT_ONCE]
            rows = rows[self.share * normal[rows] <= self.value * (1 + TIE)]
            if not len(rows):
                break
            self.evaluated += len(rows)
            values = self.goal.values(self.problem, [found[row] for row in rows.tolist()])
            for row, value in zip(rows.tolist(), values.tolist(), strict=True):
                if math.isinf(value):
                    continue
                one: Found = (value, float(normal[row]), found[row])
                if best is None or self.comes_before(one, best):
                    best = one
                self.value = min(self.value, value)
        return None if best is None else (*best[:2], with_order(self.problem, best[2]))

    def comes_before(self, one: Found, other: Found) -> bool:
        """Return whether `one` is better, or ties and comes first."""
        if is_better(one, other) or is_better(other, one):
            return is_better(one, other)
        return in_order(self.problem, one[2]) < in_order(self.problem, other[2])

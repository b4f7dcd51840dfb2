"""Percentile placement by enumeration: method ``exhaustive`` when the objective is a percentile.

Every replica set with its best roles (:mod:`placement.tail.roles`). A percentile is no sum, so
nothing is shared between sets and each takes milliseconds: for small instances.
"""

from __future__ import annotations

from formulations.set_enumeration import Found, enumerate_sets
from placement.breakdown import objective
from placement.checks import IntArray
from placement.methods import Options
from placement.plan import Plan
from placement.problem import Problem
from placement.tail.roles import best_roles

__all__ = ["solve"]


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every replica set with its best roles.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    enumerated = 0

    def look(sets: IntArray) -> Found | None:
        nonlocal enumerated
        (replicas,) = sets.tolist()
        found, by_hand = best_roles(problem, replicas)
        enumerated += by_hand
        if found is None:
            return None
        return objective(problem, found), problem.objective.tie_break(problem, found), found

    return enumerate_sets(
        problem,
        options,
        look,
        block=1,
        instead="'tier2' with given replicas",
        stats=lambda: {"leaders with enumerated voters": enumerated},
    )

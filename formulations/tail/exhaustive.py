"""Percentile placement by enumeration: method ``exhaustive`` when the objective is a percentile.

Every replica set with its best roles (:mod:`placement.tail.role_choice`). A percentile is no sum,
so nothing is shared between sets and each takes milliseconds: for small instances.
"""

from __future__ import annotations

from formulations.enumeration.enumerate_sets import Found, enumerate_sets
from placement.evaluation.breakdown import objective_value
from placement.methods.options import Options
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import IntArray
from placement.support.status import Status
from placement.tail.role_choice import best_roles, describe_voter_search

__all__ = ["solve"]


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every replica set with its best roles.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    leaders = enumerated = 0

    def look(sets: IntArray) -> Found | None:
        nonlocal leaders, enumerated
        (replicas,) = sets.tolist()
        roles = best_roles(problem, replicas)
        leaders, enumerated = leaders + roles.leaders, enumerated + roles.enumerated
        best = roles.best
        if best is None:
            return None
        return objective_value(problem, best), problem.objective.tie_break(problem, best), best

    plan = enumerate_sets(
        problem,
        options,
        look,
        block=1,
        instead="'local-search', or 'tier2' with given replicas",
        stats=lambda: {"leaders": leaders, "leaders with enumerated voters": enumerated},
    )
    if plan.status is Status.INFEASIBLE:
        return plan.replace(reasons=(*plan.reasons, *problem.objective.caveats(problem)))
    return (
        plan.replace(notes=(*plan.notes, describe_voter_search(leaders, enumerated)))
        if leaders
        else plan
    )

"""Contingency placement by enumeration: method ``exhaustive`` when the objective is a contingency.

For the mean with one RTT matrix and clients that stay where they are, replica sets are evaluated by
the thousand (:mod:`formulations.contingency.enumerate_losses`); otherwise every configuration is
evaluated on its own.
"""

from __future__ import annotations

import math

from formulations.contingency.enumerate_losses import best_of_block
from formulations.enumeration.enumerate_sets import Found, enumerate_sets, is_better
from placement.contingency.objective import Contingency
from placement.evaluation.breakdown import objective_value
from placement.feasibility.feasible_plans import role_choices, violations
from placement.methods.options import Options
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import IntArray

__all__ = ["solve"]

_BLOCK = 4_000


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every replica set, voter set and leader under every loss.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    contingency = problem.objective
    assert isinstance(contingency, Contingency)
    plain = not contingency.clients_move and contingency.percentile is None
    fast = problem.demand.scenarios == 1 and plain
    look = best_of_block if fast else _one_by_one
    return enumerate_sets(
        problem,
        options,
        lambda sets: look(problem, contingency, sets),
        block=_BLOCK if fast else 16,
        instead="'exact'" if contingency.percentile is not None else "'cp-sat' or 'local-search'",
    )


def _one_by_one(problem: Problem, contingency: Contingency, block: IntArray) -> Found | None:
    best: Found | None = None
    for row in block.tolist():
        for configuration in role_choices(problem, tuple(row)):
            value = objective_value(problem, configuration)
            if math.isinf(value):  # it breaks the limit, or a loss stops it
                continue
            found = (value, contingency.tie_break(problem, configuration), configuration)
            if (best is None or is_better(found, best)) and not violations(problem, configuration):
                best = found
    return best

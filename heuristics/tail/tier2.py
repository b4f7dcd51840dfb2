"""Tier 2 for percentiles: method ``tier2`` when the objective is a percentile."""

from __future__ import annotations

import numpy as np

from heuristics.tier2 import plan_of_roles
from placement.methods.options import Options
from placement.plan import Plan
from placement.problem import Problem
from placement.tail.role_choice import best_roles, describe_voter_search

__all__ = ["solve"]


def solve(problem: Problem, options: Options) -> Plan:
    """Take the best roles among the given replicas (:mod:`placement.tail.role_choice`)."""
    del options
    found = best_roles(problem, np.nonzero(problem.rules.must_hold)[0].tolist())
    notes = (describe_voter_search(found.leaders, found.enumerated),)
    return plan_of_roles(problem, found.best, notes)

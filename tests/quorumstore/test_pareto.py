"""Pareto fronts of read and write thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from formulations.quorumstore import QuorumMethod, pareto_front, place
from formulations.quorumstore.covering.cpsat import CpSatCovering
from formulations.quorumstore.covering.threshold_bisection import solve as bisect
from placement.quorumstore import Goal, StoreRules, Target
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules
from tests.quorumstore.referee import every_configuration, figures


def brute_front(problem):
    goal = problem.goal
    points = set()
    for found in every_configuration(problem):
        normal, worst, _, _ = figures(problem, *found)
        read, write = worst if problem.rules.contingency else normal
        if read <= goal.read_bound and write <= goal.write_bound and math.isfinite(read + write):
            points.add((read, write))
    return sorted(
        (read, write)
        for read, write in points
        if not any(
            other != (read, write) and other[0] <= read and other[1] <= write for other in points
        )
    )


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_front_equals_exhaustive_search(seed):
    """All corners and nothing else, by enumeration and (fewer) by CP-SAT."""
    rng = np.random.default_rng([50, seed])
    problem = random_problem(rng, sites=5, rules=random_rules(rng))
    if seed % 3 == 0:
        problem = problem.with_goal(Goal(write_bound=float(rng.choice(problem.rtt.ravel()))))
    expected = brute_front(problem)
    front = pareto_front(problem)
    assert [(point.read_threshold, point.write_threshold) for point in front] == expected
    for point in front:
        effects = point.plan.losses if problem.rules.contingency else point.plan.losses[:1]
        assert max(effect.read_threshold for effect in effects) == point.read_threshold
    if seed % 6 == 0:
        other = pareto_front(problem, lambda key: bisect(key, CpSatCovering()))
        assert [(point.read_threshold, point.write_threshold) for point in other] == expected


def test_front_of_impossible_rules_is_empty():
    """Nothing to trade off."""
    problem = random_problem(np.random.default_rng(51), rules=StoreRules(max_replicas=2))
    assert pareto_front(problem) == ()


@pytest.mark.parametrize("seed", range(12))
def test_weighted_optimum_lies_on_the_front(seed):
    """The least α·T_r + β·T_w over all configurations is attained at a corner."""
    rng = np.random.default_rng([52, seed])
    problem = random_problem(rng, sites=6)
    weighted = problem.with_goal(Goal(Target.WEIGHTED, read_weight=3.0, write_weight=1.0))
    front = pareto_front(problem)
    best = min(3.0 * point.read_threshold + point.write_threshold for point in front)
    assert place(weighted, QuorumMethod.ENUMERATION).value == best

"""Bisection with HiGHS and with CP-SAT against exhaustive search and enumeration."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from formulations.quorumstore.covering_solvers import CpSatCovering, HighsCovering
from formulations.quorumstore.enumeration import solve as enumerate_sets
from formulations.quorumstore.threshold_bisection import solve as bisect
from placement.quorumstore import (
    Goal,
    LossScope,
    Target,
)
from placement.support.status import Status
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules
from tests.quorumstore.referee import value_and_ties

COVERINGS = {"highs": HighsCovering, "cp-sat": CpSatCovering}


def assert_same(problem, covering):
    value, ties = value_and_ties(problem)
    enumerated = enumerate_sets(problem)
    plan = bisect(problem, covering)
    if not ties:
        assert plan.status is Status.INFEASIBLE
        assert enumerated.status is Status.INFEASIBLE
        return
    assert plan.status is Status.OPTIMAL
    assert plan.value == pytest.approx(value, rel=1e-12)
    assert enumerated.value == plan.value
    found = plan.configuration
    assert (found.replicas, found.read, found.write) in list(ties)
    if problem.goal.monotone(problem.rules.contingency):
        # The first keys of the tie rule are optimised too.
        assert plan.normal.threshold == enumerated.normal.threshold


@pytest.mark.parametrize("method", COVERINGS)
@pytest.mark.parametrize("seed", seeds(20, 100))
def test_default_goal(seed, method):
    """BA and N-1C, three redirections, four percentiles: brute force = enumeration = solver."""
    assert_same(random_problem(np.random.default_rng([10, seed])), COVERINGS[method]())


@pytest.mark.parametrize("method", COVERINGS)
@pytest.mark.parametrize("seed", seeds(8, 32))
def test_other_goals(seed, method):
    """Lexicographic, bounded, weighted and mixed goals."""
    rng = np.random.default_rng([11, seed])
    problem = random_problem(rng, sites=5)
    options = {}
    if rng.integers(2):
        options[str(rng.choice(["read_bound", "write_bound"]))] = float(
            rng.choice(problem.rtt.ravel())
        )
    target = [Target.THRESHOLD, Target.READS, Target.WRITES, Target.WEIGHTED][seed % 4]
    if target is Target.WEIGHTED:
        options |= {"read_weight": 1.0, "write_weight": float(rng.integers(0, 4))}
        if seed % 8 == 3:
            options |= {"normal_weight": 1.0, "worst_weight": 0.0}
    elif problem.rules.contingency:
        weights = [(0.0, 1.0), (1.0, 0.0), (1.0, 0.5)][rng.integers(3)]
        options |= {"normal_weight": weights[0], "worst_weight": weights[1]}
    assert_same(problem.with_goal(Goal(target, **options)), COVERINGS[method]())


@pytest.mark.parametrize("method", COVERINGS)
@pytest.mark.parametrize("seed", seeds(8, 16))
def test_rules(seed, method):
    """Two failures, regions lost, regions apart, fixed quorums."""
    rng = np.random.default_rng([12, seed])
    options = [
        {"failures": 2, "max_replicas": 5},
        {"loss": LossScope.REGION, "max_replicas": 5},
        {"distinct_regions": True},
        {"replicas": 5, "read_quorum": 4, "write_quorum": 3},
    ][seed % 4]
    problem = random_problem(rng, sites=6, rules=random_rules(rng, contingency=True, **options))
    regions = tuple(rng.choice(["x", "y", "z", "u"], 6))
    assert_same(dataclasses.replace(problem, regions=regions), COVERINGS[method]())

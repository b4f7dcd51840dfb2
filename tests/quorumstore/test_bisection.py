"""Bisection with HiGHS and with CP-SAT against exhaustive search and enumeration."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest

from formulations.quorumstore.covering.cpsat import CpSatCovering
from formulations.quorumstore.covering.milp import HighsCovering
from formulations.quorumstore.covering.model import bill_of
from formulations.quorumstore.covering.threshold_bisection import solve as bisect
from formulations.quorumstore.enumeration.enumeration import solve as enumerate_sets
from placement.quorumstore import (
    Goal,
    LossScope,
    QuorumProblem,
    Redirect,
    StoreRules,
    Target,
    TrafficPrices,
    metrics,
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


@pytest.mark.parametrize("method", COVERINGS)
@pytest.mark.parametrize("seed", seeds(8, 40))
def test_costs(seed, method):
    """Budgets and cheapest plans: brute force = enumeration = solver, ties and zero prices too."""
    rng = np.random.default_rng([13, seed])
    problem = random_problem(rng, sites=5)
    whole = seed % 4 < 2
    traffic = rng.integers(0, 5, (5, 5)) if whole else rng.random((5, 5))
    prices = TrafficPrices(
        traffic * (1 - np.eye(5)),
        rng.integers(0, 9, 5) if seed % 3 else None,
        object_gb=[4.0, 0.3][seed % 2],
        digest_gb=[0.0, 1.0, 0.1][seed % 3],
    )
    problem = dataclasses.replace(problem, prices=prices)
    bound = float(rng.choice(problem.rtt.ravel()))
    free = enumerate_sets(problem)
    # A budget that binds: what some configuration costs, to the last bit, or a little less.
    budget = free.cost * float(rng.choice([1.0, 0.9, 0.7])) if free.configuration else 10.0
    goal = [
        Goal(Target.COST, read_bound=bound),
        Goal(cost_bound=budget),
        Goal(Target.WRITES, cost_bound=budget, read_bound=3 * bound),
        Goal(Target.COST, cost_bound=budget),
        Goal(Target.WEIGHTED, write_weight=2.0, cost_bound=budget),
    ][seed % 5]
    problem = problem.with_goal(goal)
    plan, truth = bisect(problem, COVERINGS[method]()), enumerate_sets(problem)
    value, ties = value_and_ties(problem)
    assert plan.status is truth.status
    assert (plan.configuration is None) is (not ties)
    if ties:
        assert truth.value == pytest.approx(value, rel=1e-12)
        assert plan.value == pytest.approx(value, rel=1e-9)
        assert plan.bound == pytest.approx(value, rel=1e-9)


def test_the_bill_is_that_of_the_evaluator():
    """Fixed prices and routed reads add up to the evaluator's cost, for every replica set."""
    rng = np.random.default_rng(14)
    problem = dataclasses.replace(
        random_problem(rng, sites=6),
        prices=TrafficPrices(rng.random((6, 6)), rng.random(6), object_gb=0.7, digest_gb=0.2),
    )
    for size, read in ((3, 2), (4, 3), (5, 1)):
        bill = bill_of(problem, read)
        for replicas in combinations(range(6), size):
            cost = metrics(problem, [replicas], read, size).cost[0]
            assert bill.of(replicas) == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("covering", COVERINGS)
def test_a_cost_of_nothing_is_proven(covering):
    """The bound of the solver ends an ulp below 0, which no cost is."""
    traffic = [
        [0, 2, 0, 0, 3, 3],
        [1, 0, 2, 3, 1, 0],
        [1, 2, 0, 2, 2, 0],
        [3, 2, 0, 0, 0, 3],
        [0, 3, 3, 2, 0, 0],
        [1, 2, 0, 2, 3, 0],
    ]
    problem = QuorumProblem(
        np.full((6, 6), 7.0),
        [11, 11, 0, 9, 4, 0],
        [0] * 6,
        rules=StoreRules(failures=0, redirect=Redirect.CLOSEST, write_fraction=0.5),
        goal=Goal(Target.COST, read_bound=30.0, write_bound=30.0),
        prices=TrafficPrices(traffic, [4, 3, 1, 4, 2, 0], object_gb=0.0, digest_gb=0.1),
    )
    plan = bisect(problem, COVERINGS[covering]())
    assert (plan.status, plan.value, plan.bound) == (Status.OPTIMAL, 0.0, 0.0)

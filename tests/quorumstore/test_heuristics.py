"""Heuristics: never better than the optimum, honest about it, and close on small instances."""

from __future__ import annotations

import math

import numpy as np
import pytest

from formulations.quorumstore.enumeration import solve
from heuristics.quorumstore import (
    busiest_sites,
    coverage_greedy,
    home_and_nearest,
    local_search,
    random_placement,
    weighted_medians,
)
from placement.errors import InputError
from placement.quorumstore import (
    Goal,
    LossScope,
    QuorumProblem,
    StoreRules,
    Target,
    full_replication_bound,
)
from placement.quorumstore.set_swaps import swap_neighbours
from placement.support.status import Status, Termination
from tests.effort import examples, seeds
from tests.quorumstore.instances import random_problem, random_rules


def heuristic_plans(problem, rng):
    yield coverage_greedy(problem)
    yield local_search(problem, rng)


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_never_better_than_the_optimum(seed):
    """Bound <= optimum <= heuristic value, over goals and rules."""
    rng = np.random.default_rng([30, seed])
    rules = random_rules(rng)
    if seed % 5 == 0:
        rules = random_rules(rng, loss=LossScope.REGION, distinct_regions=bool(seed % 2))
    problem = random_problem(rng, sites=6, rules=rules)
    target = list(Target)[seed % 4]
    problem = problem.with_goal(Goal(target, read_weight=2.0))
    optimum = solve(problem)
    for plan in heuristic_plans(problem, rng):
        assert plan.bound <= optimum.value * (1 + 1e-12)
        if plan.configuration is not None:
            assert plan.value >= optimum.value * (1 - 1e-12)
        if optimum.status is Status.OPTIMAL and target is Target.THRESHOLD and seed % 5:
            assert plan.configuration is not None


def test_local_search_is_nearly_always_optimal_on_small_instances():
    """Six sites: single and double swaps from four starts miss the optimum rarely, greedy more."""
    rng = np.random.default_rng(31)
    local, greedy, total = 0, 0, examples(100)
    for _ in range(total):
        problem = random_problem(rng, sites=6)
        optimum = solve(problem).value
        greedy += coverage_greedy(problem).value == optimum
        local += local_search(problem, rng).value == optimum
    assert local >= 0.95 * total
    assert greedy >= 0.5 * total


def test_same_seed_same_answer():
    """Randomness comes from the generator alone."""
    problem = random_problem(np.random.default_rng(32), sites=12, rules=StoreRules(True))
    plans = [
        local_search(problem, np.random.default_rng(1), starts=3, pair_swaps=100) for _ in range(2)
    ]
    assert plans[0].configuration == plans[1].configuration


def test_no_single_swap_improves():
    """The result is a local optimum of the threshold."""
    problem = random_problem(np.random.default_rng(33), sites=14, rules=StoreRules(True))
    plan = local_search(problem, np.random.default_rng(2), pair_swaps=0)
    found = plan.configuration
    from placement.quorumstore import metrics

    around = metrics(problem, swap_neighbours(found.replicas, 14), found.read, found.write)
    assert plan.value <= problem.goal.values(around, True).min()


def test_time_limit_gives_the_best_so_far():
    """A limit of zero still returns the greedy configuration of the first (N, R, W)."""
    problem = random_problem(np.random.default_rng(34), sites=10, rules=StoreRules(True))
    plan = local_search(problem, np.random.default_rng(0), time_limit=0.0)
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.status in (Status.FEASIBLE, Status.OPTIMAL)
    assert math.isfinite(plan.value)


def test_bounds_out_of_reach_give_no_plan():
    """A heuristic cannot prove that nothing exists: unknown, not infeasible."""
    problem = random_problem(np.random.default_rng(35), sites=6, rules=StoreRules())
    plan = local_search(
        problem.with_goal(Goal(read_bound=0.0, write_bound=0.0)), np.random.default_rng(0)
    )
    assert plan.configuration is None
    assert plan.status is Status.UNKNOWN
    assert "excess" in plan.notes[0]


def test_baselines():
    """Each takes the sites its rule names."""
    rtt = np.abs(np.subtract.outer([0, 10, 50, 51, 100], [0, 10, 50, 51, 100])) + 1.0
    problem = QuorumProblem(rtt, [5, 0, 9, 0, 6], [0, 0, 1, 0, 0], sites=list("abcde"))
    assert busiest_sites(problem).replicas == ("a", "c", "e")
    assert home_and_nearest(problem).replicas == ("b", "c", "d")
    assert weighted_medians(problem).replicas == ("a", "c", "e")
    drawn = [random_placement(problem, np.random.default_rng(s)).replicas for s in range(40)]
    assert len(set(drawn)) > 5
    assert {site for sites in drawn for site in sites} == set("abcde")
    with pytest.raises(InputError, match="no such quorums"):
        busiest_sites(problem, (9, 2, 2))
    optimum = solve(problem)
    for plan in (busiest_sites(problem), home_and_nearest(problem), weighted_medians(problem)):
        assert plan.value >= optimum.value
        assert plan.bound == full_replication_bound(problem)

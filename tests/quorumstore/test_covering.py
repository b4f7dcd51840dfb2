"""Covering questions against the definitions: the model, what is left of it, and the solvers."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from formulations.quorumstore import threshold_bisection as bisection
from formulations.quorumstore.covering_model import covering_model
from formulations.quorumstore.covering_solvers import CpSatCovering, HighsCovering
from formulations.quorumstore.enumeration import solve as enumerate_sets
from formulations.quorumstore.threshold_bisection import (
    improve_by_swaps,
    start_configuration,
    threshold_values,
)
from formulations.quorumstore.threshold_bisection import solve as bisect
from placement.quorumstore import (
    Goal,
    QuorumConfiguration,
    Redirect,
    Target,
    ThresholdLimits,
    metrics,
)
from tests.effort import seeds
from tests.quorumstore import referee
from tests.quorumstore.instances import random_problem, random_rules

COVERINGS = {"highs": HighsCovering, "cp-sat": CpSatCovering}


def questions(problem, rng, count):
    """Some (N, R, W) with some limits, normal operation at most at that of the worst case."""
    values = threshold_values(problem)
    for _ in range(count):
        pair = problem.pairs[rng.integers(len(problem.pairs))]
        worst = [float(rng.choice(values)) for _ in range(2)]
        if rng.integers(2):
            worst[1] = worst[0]
        normal = [min(limit, float(rng.choice(values))) for limit in worst]
        if rng.integers(2):
            normal = worst
        yield pair, ThresholdLimits(*normal, *worst)


def answers(problem, pair, limits):
    """Every replica set that obeys the limits, by the referee's definitions."""
    total, read, write = pair
    found = set()
    for replicas in combinations(range(len(problem.sites)), total):
        normal, worst, _ = referee.figures(problem, replicas, read, write)
        if not problem.rules.contingency:
            worst = (0.0, 0.0)
        if (
            normal[0] <= limits.normal_read
            and normal[1] <= limits.normal_write
            and worst[0] <= limits.worst_read
            and worst[1] <= limits.worst_write
        ):
            found.add(replicas)
    return found


@pytest.mark.parametrize("seed", seeds(12, 120))
def test_the_model_says_what_the_definitions_say(seed):
    rng = np.random.default_rng([70, seed])
    rules = random_rules(rng, contingency=seed % 6 > 0, max_replicas=4)
    problem = random_problem(rng, sites=int(rng.integers(4, 8)), rules=rules)
    for pair, limits in questions(problem, rng, 12):
        truth = answers(problem, pair, limits)
        model = covering_model(problem, *pair, limits)
        every = combinations(range(len(problem.sites)), pair[0])
        assert {one for one in every if model.holds(one)} == truth
        for covering in COVERINGS.values():
            found = covering()(model)
            assert (found in truth) if truth else found is None


def test_one_binary_per_client_and_quorum():
    """The loss of single sites adds a row each, but no copy of the clients."""
    rng = np.random.default_rng(73)
    rules = random_rules(rng, contingency=True, redirect=Redirect.KEEP)
    problem = random_problem(rng, sites=12, rules=rules)
    for pair, limits in questions(problem, rng, 20):
        model = covering_model(problem, *pair, limits)
        assert len(model.covers) <= 2 * 3 * 12  # reads and writes: normal, and R or R + 1 after
        assert len(model.demands) <= 2 * (1 + 12)


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_bisection_without_swaps(seed, monkeypatch):
    """The proof does not lean on the incumbent: the same optimum when questions find everything."""
    monkeypatch.setattr(bisection, "start_configuration", lambda *_: None)
    monkeypatch.setattr(
        bisection, "improve_by_swaps", lambda problem, goal, caps, found, deadline: found
    )
    problem = random_problem(np.random.default_rng([75, seed]), sites=6)
    plan, truth = bisect(problem, CpSatCovering()), enumerate_sets(problem)
    assert (plan.status, plan.value, plan.bound) == (truth.status, truth.value, truth.bound)
    if truth.configuration is not None:
        assert plan.normal.threshold == truth.normal.threshold


@pytest.mark.parametrize("seed", seeds(8, 40))
def test_swaps(seed):
    """Swaps obey rules, bounds and caps, are never worse, and end where no swap helps."""
    rng = np.random.default_rng([76, seed])
    problem = random_problem(rng, sites=7)
    bound = float(rng.choice(threshold_values(problem)))
    problem = problem.with_goal(Goal([Target.THRESHOLD, Target.READS][seed % 2], read_bound=bound))
    goal, contingency = problem.goal, problem.rules.contingency
    best = start_configuration(problem, goal)
    optimum = enumerate_sets(problem)
    if best is not None:
        figures = metrics(problem, [best.replicas], best.read, best.write)
        assert (best.size, best.read, best.write) in problem.pairs
        assert optimum.value <= goal.values(figures, contingency)[0] < math.inf
    total, read, write = problem.pairs[-1]
    start = QuorumConfiguration(tuple(range(total)), read, write)
    before = metrics(problem, [start.replicas], read, write)
    caps = ThresholdLimits(*(float(one[0]) for one in (before.normal_read, before.normal_write)))
    found = improve_by_swaps(problem, goal, caps, start)
    after = metrics(problem, [found.replicas], read, write)
    assert len(set(found.replicas)) == total
    if math.isfinite(goal.values(before, contingency)[0]):
        assert caps.kept(after)[0]
        assert goal.values(after, contingency)[0] <= goal.values(before, contingency)[0]
        assert improve_by_swaps(problem, goal, caps, found) == found
    assert improve_by_swaps(problem, goal, caps, start, deadline=-math.inf) == start

"""Covering questions against the definitions: the model, what is left of it, and the solvers."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from formulations.quorumstore import threshold_bisection as bisection
from formulations.quorumstore.covering_model import (
    Reduced,
    covering_model,
    reduce_model,
    relaxed_model,
)
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
    QuorumProblem,
    Redirect,
    StoreRules,
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


def answers_of_reduced(reduced: Reduced, replicas: int):
    """Every replica set that satisfies what is left, by trying all."""
    found = set()
    for chosen in combinations(reduced.open, replicas):
        held = set(chosen)
        within = {}
        for ball, steps in reduced.ladders:
            for step in steps:
                within[step.index] = len(held.intersection(ball)) >= step.quorum
        if (
            held.issuperset(reduced.held)
            and all(len(held.intersection(ball)) >= least for ball, least in reduced.required)
            and all(k in held for j, k in reduced.ahead if j in held)
            and all(
                sum(count for index, count in row.terms if within[index]) >= row.needed
                for row in reduced.rows
                if row.lost is None or row.lost in held
            )
        ):
            found.add(chosen)
    return found


@pytest.mark.parametrize("seed", seeds(24, 120))
def test_model_and_reduction(seed):
    """The model says what the definitions say; what is left has an answer iff the model has."""
    rng = np.random.default_rng([70, seed])
    rules = random_rules(rng, contingency=seed % 6 > 0, max_replicas=4)
    problem = random_problem(rng, sites=int(rng.integers(4, 8)), rules=rules)
    for pair, limits in questions(problem, rng, 12):
        truth = answers(problem, pair, limits)
        model = covering_model(problem, *pair, limits)
        every = combinations(range(len(problem.sites)), pair[0])
        assert {one for one in every if model.holds(one)} == truth
        left = answers_of_reduced(reduce_model(model), pair[0])
        assert left <= truth
        assert bool(left) is bool(truth)


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_relaxed_model(seed):
    """Every solution of the question solves the simpler one, reduced or not."""
    rng = np.random.default_rng([71, seed])
    redirect = (Redirect.CLOSEST, Redirect.HOP)[seed % 2]
    rules = random_rules(rng, contingency=True, redirect=redirect, max_replicas=4)
    problem = random_problem(rng, sites=int(rng.integers(4, 8)), rules=rules)
    for pair, limits in questions(problem, rng, 12):
        truth = answers(problem, pair, limits)
        model = relaxed_model(problem, *pair, limits)
        assert all(model.holds(one) for one in truth)
        if truth:
            left = answers_of_reduced(reduce_model(model), pair[0])
            assert left
            assert all(model.holds(one) for one in left)


def test_reduction_decides_something():
    """Sites are closed, held and ordered, and rows are left out: none of the rules is idle."""
    rng = np.random.default_rng(72)
    shut = held = ahead = required = refuted = fewer = 0
    for _ in range(60):
        rules = random_rules(rng, contingency=True, redirect=Redirect.KEEP, max_replicas=4)
        problem = random_problem(rng, sites=8, rules=rules)
        for pair, limits in questions(problem, rng, 6):
            model = covering_model(problem, *pair, limits)
            reduced = reduce_model(model)
            refuted += not reduced.possible
            if reduced.possible:
                shut += len(reduced.open) < 8
                held += bool(reduced.held)
                ahead += bool(reduced.ahead)
                required += bool(reduced.required)
                fewer += reduced.steps < len(model.covers)
    assert min(shut, held, ahead, required, refuted, fewer) > 0


def test_one_binary_per_client_and_quorum():
    """The loss of single sites adds a row each, but no copy of the clients."""
    rng = np.random.default_rng(73)
    rules = random_rules(rng, contingency=True, redirect=Redirect.KEEP)
    problem = random_problem(rng, sites=12, rules=rules)
    for pair, limits in questions(problem, rng, 20):
        model = covering_model(problem, *pair, limits)
        assert len(model.covers) <= 2 * 3 * 12  # reads and writes: normal, and R or R + 1 after
        assert len(model.demands) <= 2 * (1 + 12)


@pytest.mark.parametrize("method", COVERINGS)
@pytest.mark.parametrize("seed", seeds(6, 12))
def test_solvers(seed, method):
    """A solver finds an answer iff there is one."""
    rng = np.random.default_rng([74, seed])
    problem = random_problem(rng, sites=7)
    covering = COVERINGS[method]()
    for pair, limits in questions(problem, rng, 6):
        model = covering_model(problem, *pair, limits)
        truth = answers(problem, pair, limits)
        found = covering(model)
        assert (found is None) if not truth else (found in truth)
    assert not covering.notes


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


@pytest.mark.parametrize("seed", [895, 5079, 5841, 7802, 9926, 14188, 14700, 14872, *range(40)])
def test_moved_clients_hinder_replacements(seed):
    """A site that seems replaceable may not be, for the sake of clients moved when it is lost.

    The seeds up to 14872 were searched for: there the only answers are lost if the moved clients of
    the site that is replaced (or of the one that replaces it) are left out of account.
    """
    rng = np.random.default_rng([78, seed])
    n = int(rng.integers(5, 7))
    rtt = np.where(rng.random((n, n)) < 0.6, 10.0, rng.choice([20.0, 30.0], (n, n)))
    reads = rng.integers(1, 6, n) * (rng.random(n) < 0.6)
    if not reads.any():
        reads[0] = 1
    rules = StoreRules(
        True,
        redirect=[Redirect.CLOSEST, Redirect.HOP][seed % 2],
        read_fraction=float(rng.choice([0.5, 0.8, 0.9])),
        replicas=3,
    )
    problem = QuorumProblem(rtt, reads, [0] * n, rules=rules)
    limit = float(rng.choice([10.0, 20.0, 30.0])) + 10.0 * (seed % 2)
    limits = ThresholdLimits(*[limit] * 4)
    truth = answers(problem, (3, 2, 2), limits)
    left = answers_of_reduced(reduce_model(covering_model(problem, 3, 2, 2, limits)), 3)
    assert left <= truth
    assert bool(left) is bool(truth)

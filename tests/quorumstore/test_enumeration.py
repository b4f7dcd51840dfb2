"""Enumeration against exhaustive search written from the definitions."""

from __future__ import annotations

import dataclasses
import math
from itertools import combinations

import numpy as np
import pytest

from formulations.quorumstore import tuning
from formulations.quorumstore.enumeration.compiled_search import Kernel, compiled_available
from formulations.quorumstore.enumeration.enumeration import Enumeration, solve
from formulations.quorumstore.enumeration.nearest_sites import SetTables
from placement.quorumstore import (
    Goal,
    LossScope,
    Metrics,
    QuorumProblem,
    Redirect,
    StoreRules,
    Target,
    TrafficPrices,
    metrics,
    tie_order_of_equals,
)
from placement.quorumstore.goal import second_key
from placement.support.status import Status
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules
from tests.quorumstore.referee import value_and_ties

KERNELS: tuple[Kernel, ...] = ("compiled", "numpy") if compiled_available() else ("numpy",)


def assert_same(problem: QuorumProblem) -> None:
    value, ties = value_and_ties(problem)
    for kernel in KERNELS:
        plan = solve(problem, kernel=kernel)
        if not ties:
            assert plan.status is Status.INFEASIBLE
            continue
        found = plan.configuration
        assert plan.status is Status.OPTIMAL
        assert plan.value == pytest.approx(value, rel=1e-12)
        assert (found.replicas, found.read, found.write) == ties[0]


@pytest.mark.parametrize("seed", seeds(50, 250))
def test_default_goal(seed):
    """BA and N-1C, all redirections and percentiles: same value, same configuration under ties."""
    assert_same(random_problem(np.random.default_rng(seed)))


@pytest.mark.parametrize("seed", seeds(32, 160))
def test_other_goals(seed):
    """Reads first, writes first, weighted, bounded, normal against worst."""
    rng = np.random.default_rng([1, seed])
    problem = random_problem(rng)
    bounds = {}
    if rng.integers(2):
        bounds[str(rng.choice(["read_bound", "write_bound"]))] = float(
            rng.choice(problem.rtt.ravel())
        )
    if problem.rules.contingency and rng.integers(2):
        weights = [(1.0, 0.0), (1.0, 0.5), (0.25, 2.0)][rng.integers(3)]
        bounds |= {"normal_weight": weights[0], "worst_weight": weights[1]}
    target = [Target.THRESHOLD, Target.READS, Target.WRITES, Target.WEIGHTED][seed % 4]
    if target is Target.WEIGHTED:
        bounds |= {"read_weight": float(rng.integers(0, 3)), "write_weight": 1.5}
    assert_same(problem.with_goal(Goal(target, **bounds)))


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_costs(seed):
    """Cost as objective under bounds, and as a budget. Whole prices keep the sums exact."""
    rng = np.random.default_rng([2, seed])
    problem = random_problem(rng, sites=5)
    prices = TrafficPrices(
        rng.integers(0, 5, (5, 5)) * (1 - np.eye(5)),
        rng.integers(0, 9, 5),
        object_gb=4.0,
        digest_gb=1.0,
    )
    problem = dataclasses.replace(problem, prices=prices)
    if seed % 2:
        bound = float(rng.choice(problem.rtt.ravel()))
        goal = Goal(Target.COST, read_bound=bound, write_bound=math.inf)
    else:
        goal = Goal(cost_bound=float(rng.integers(50, 800)))
    assert_same(problem.with_goal(goal))


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_rules(seed):
    """Fixed N, R, W; two failures; none; regions lost or kept apart."""
    rng = np.random.default_rng([3, seed])
    kind = seed % 6
    options = [
        {"replicas": 4},
        {"read_quorum": 2, "max_replicas": 5},
        {"replicas": 5, "read_quorum": 4, "write_quorum": 3},
        {"failures": 2, "max_replicas": 5},
        {"failures": 0, "max_replicas": 3},
        {
            "distinct_regions": bool(rng.integers(2)),
            "loss": [LossScope.SITE, LossScope.REGION][seed % 4 // 2],
        },
    ][kind]
    problem = random_problem(rng, sites=6, rules=random_rules(rng, **options))
    regions = tuple(rng.choice(["x", "y", "z", "u"], 6))
    assert_same(dataclasses.replace(problem, regions=regions))


@pytest.mark.parametrize("kernel", KERNELS)
def test_order_of_keys_does_not_matter(kernel):
    """The pool of earlier optima changes the speed, never the answer."""
    rng = np.random.default_rng(5)
    first = random_problem(rng, sites=6, rules=StoreRules(True))
    keys = [
        first.with_demand(rng.integers(0, 9, 6) + (np.arange(6) == 0), rng.integers(0, 9, 6))
        for _ in range(20)
    ]
    tables = SetTables.of(first)
    forwards, backwards = Enumeration(tables, kernel), Enumeration(tables, kernel)
    one = [forwards.solve(key).configuration for key in keys]
    other = [backwards.solve(key).configuration for key in reversed(keys)]
    assert one == other[::-1]
    assert one == [solve(key).configuration for key in keys]


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_ties_are_returned(kernel):
    """With one RTT for all pairs every tight configuration is optimal, and all are listed once."""
    problem = QuorumProblem(np.full((6, 6), 5.0), [1] * 6, [1] * 6, rules=StoreRules(True))
    value, ties = Enumeration(SetTables.of(problem), kernel).optima(problem)
    listed = [
        (tuple(row), group.read, group.write) for group in ties for row in group.sets.tolist()
    ]
    assert value == 10.0
    assert len(listed) == len(set(listed)) == 20 * 1 + 15 * 2 + 6 * 3


@pytest.mark.parametrize("seed", seeds(30, 150))
def test_every_path_of_large_stores(seed, monkeypatch):
    """Tiny runs, lanes, chunks and samples: small keys go the ways that large stores go.

    Sampling survivors once kept the ties of an incumbent that the sample had just beaten, so
    a worse configuration could win by the tie rule; it showed only above 512 survivors.
    """
    monkeypatch.setattr(tuning, "PREFIX_BLOCK", 11)
    monkeypatch.setattr(tuning, "LANE_CLIENTS", [2, 4, 14][seed % 3])
    monkeypatch.setattr(tuning, "SURVIVOR_CHUNK", 3)
    monkeypatch.setattr(tuning, "SAMPLED_SURVIVORS", 4)
    rng = np.random.default_rng([4, seed])
    problem = random_problem(rng, sites=6, rules=random_rules(rng, max_replicas=5))
    if seed % 4 == 3:
        weights = {"normal_weight": 1.0, "worst_weight": 0.5} if seed % 8 == 3 else {}
        problem = problem.with_goal(Goal(list(Target)[seed % 3 + 1], **weights))
    assert_same(problem)


def evaluate_everything(problem):
    """Value and configuration by handing every set to the evaluator and sorting by the tie rule."""
    figures, rows, sizes, reads = [], [], [], []
    width = max(total for total, _, _ in problem.pairs)
    for total, read, write in problem.pairs:
        sets = np.array(list(combinations(range(len(problem.sites)), total)))
        figures.append(metrics(problem, sets, read, write))
        rows.append(np.pad(sets, ((0, 0), (0, width - total)), constant_values=-1))
        sizes.append(np.full(len(sets), total))
        reads.append(np.full(len(sets), read))
    names = [field.name for field in dataclasses.fields(Metrics)]
    joined = Metrics(*(np.concatenate([getattr(one, n) for one in figures]) for n in names))
    sets, size, read = (np.concatenate(parts) for parts in (rows, sizes, reads))
    goal, contingency = problem.goal, problem.rules.contingency
    second = second_key(goal, joined, contingency)
    order = tie_order_of_equals(joined, sets, size, read)  # lexsort is stable: keys 3 to 8
    keys = [goal.values(joined, contingency)[order]]
    keys += [] if second is None else [second[order]]
    first = order[np.lexsort(keys[::-1])[0]]
    value = problem.goal.values(joined, problem.rules.contingency)[first]
    return value, tuple(sets[first, : size[first]].tolist()), int(read[first])


@pytest.mark.parametrize("seed", seeds(8, 18))
def test_medium_stores(seed):
    """Thirteen sites, thousands of sets: the winner under the whole tie rule, key after key."""
    rng = np.random.default_rng([5, seed])
    rules = StoreRules(seed % 6 > 0, redirect=list(Redirect)[seed % 3], read_fraction=0.8)
    first = random_problem(rng, sites=13, rules=rules)
    solvers = [Enumeration(SetTables.of(first), kernel) for kernel in KERNELS]
    for number in range(3):
        share = rng.dirichlet(np.full(13, [0.2, 1.0, 5.0][number]))
        key = first.with_demand(rng.poisson(300 * share) + 1, rng.poisson(40 * share))
        if seed % 4 == 3:
            key = key.with_goal(Goal([Target.READS, Target.WEIGHTED][number % 2]))
        value, replicas, read = evaluate_everything(key)
        for solver in solvers:
            found = solver.solve(key).configuration
            assert (found.replicas, found.read) == (replicas, read)
            assert solver.optima(key)[0] == value

"""Deterministic quorums and lease placement against brute force."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from formulations.online.reads import solve_compact, solve_deterministic, solve_leases
from placement.errors import InputError, LimitError, UnsupportedError
from placement.online.reads import (
    LeaseProblem,
    ReadGoal,
    ReadProblem,
    ReadStrategy,
    ThresholdQuorums,
    evaluate,
    evaluate_leases,
)
from placement.support.status import Status
from tests.effort import seeds
from tests.online.reads.instances import random_problem


def goals(peak: float, latency: float) -> list[ReadGoal]:
    return [
        ReadGoal.least_load(),
        ReadGoal.least_latency(1.2 * peak),
        ReadGoal(load_weight=1, latency_weight=0.02),
        ReadGoal.least_latency(0.9 * peak),
        ReadGoal.least_load(0.8 * latency),
    ]


@pytest.mark.parametrize("seed", range(9))
def test_deterministic_is_the_best_of_all(seed):
    """Against every combination of sets; never below the optimal mixture."""
    problem = random_problem(seed, most=4)
    mixed = solve_compact(problem, ReadGoal.least_load())
    assert mixed.figures is not None
    every = [
        evaluate(problem, ReadStrategy.of(problem, [{quorum: 1.0} for quorum in combination]))
        for combination in product(*(problem.choices(i) for i in range(problem.nodes)))
    ]
    for goal in goals(float(mixed.figures.load.max()), mixed.figures.latency):
        best = min((f.objective(goal) for f in every if not f.broken(goal)), default=math.inf)
        plan = solve_deterministic(problem, goal)
        if math.isinf(best):
            assert plan.status is Status.INFEASIBLE
            continue
        assert plan.status is Status.OPTIMAL
        assert plan.value == pytest.approx(best, rel=1e-9)
        assert solve_compact(problem, goal).value <= plan.value * (1 + 1e-9)


def test_deterministic_survives_failures():
    """With one spare node, any one of those asked may fail and a majority still answers."""
    rng = np.random.default_rng(3)
    rtt = rng.uniform(1, 50, (5, 5))
    problem = ReadProblem(rtt, np.ones(5), None, system=ThresholdQuorums(5, 3, spare=1))
    plan = solve_deterministic(problem, ReadGoal.least_latency())
    assert plan.strategy is not None
    for gateway, ((quorum, _),) in enumerate(plan.strategy.mixtures):
        assert len(quorum) == 4
        assert gateway in quorum
        assert sorted(rtt[gateway, v] for v in quorum)[2] == sorted(rtt[gateway])[2]


def test_deterministic_limits():
    with pytest.raises(UnsupportedError, match="queueing"):
        solve_deterministic(ReadProblem.uniform(3), ReadGoal(queue_weight=1))
    with pytest.raises(LimitError, match="solve_compact"):
        solve_deterministic(ReadProblem.uniform(21), ReadGoal.least_load())


def random_leases(seed: int, nodes: int, ranges: int) -> LeaseProblem:
    rng = np.random.default_rng([46, seed])
    points = rng.uniform(0, 50, (nodes, 2))
    rtt = np.linalg.norm(points[:, None] - points[None], axis=2)
    reads = rng.uniform(0, 1, (ranges, nodes)) * (rng.random((ranges, nodes)) < 0.7)
    if seed % 4 == 3:
        reads[-1] = 0.0
    return LeaseProblem(
        rtt,
        reads,
        rng.uniform(0, 0.2, (ranges, nodes)),
        leader_cost=3,
        follower_cost=1,
        capacity=rng.uniform(4, 8, nodes),
    )


def best_strategies(problem: LeaseProblem, leases: tuple[int, ...], goal: ReadGoal) -> float:
    """Optimum for given leases: one program over all sets of all ranges, by SciPy."""
    columns = []
    fixed = sum(problem.write_waits(lease, r) for r, lease in enumerate(leases))
    base = sum(problem.write_load(lease, r) for r, lease in enumerate(leases))
    for r, lease in enumerate(leases):
        reads = problem.read_problem(r, lease)
        for i in range(problem.nodes) if reads is not None else ():
            columns += [(r, i, q, reads.latency(i, q)) for q in reads.choices(i)]
    waits = np.array([problem.reads[r, i] * wait for r, i, _, wait in columns] + [0.0])
    waits /= problem.operations
    rows = np.array(
        [
            [problem.reads[r, i] * (v in q) / problem.capacities[v] for r, i, q, _ in columns]
            + [-1.0]
            for v in range(problem.nodes)
        ]
    )
    limits = list(-base)
    if math.isfinite(goal.latency_budget):
        rows = np.vstack([rows, waits])
        limits.append(goal.latency_budget - fixed / problem.operations)
    groups = sorted({(r, i) for r, i, _, _ in columns})
    one = [[float((r, i) == g) for r, i, _, _ in columns] + [0.0] for g in groups]
    cost = goal.latency_weight * waits
    cost[-1] = goal.load_weight
    upper = None if math.isinf(goal.load_limit) else goal.load_limit
    found = linprog(
        cost, rows, limits, one, np.ones(len(groups)), [(0, None)] * len(columns) + [(0, upper)]
    )
    if found.status != 0:
        return math.inf
    return float(found.fun + goal.latency_weight * fixed / problem.operations)


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_leases_are_the_best_of_all(seed):
    """Against every placement of the leases, each with its optimal strategies."""
    nodes, ranges = (3, 3) if seed % 2 else (4, 2)
    problem = random_leases(seed, nodes, ranges)
    loads = solve_leases(problem, ReadGoal.least_load())
    assert loads.figures is not None
    for goal in goals(loads.value, loads.figures.latency):
        best = min(
            best_strategies(problem, leases, goal)
            for leases in product(range(nodes), repeat=ranges)
        )
        plan = solve_leases(problem, goal)
        if math.isinf(best):
            assert plan.status is Status.INFEASIBLE
        else:
            assert plan.status is Status.OPTIMAL
            assert plan.value == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_range_is_the_best_leader(seed):
    """One range: the best over leaders of the compact program, writes as base load."""
    problem = random_leases(seed, 5, 1)
    values = []
    for leader in range(5):
        reads = problem.read_problem(0, leader)
        assert reads is not None
        based = ReadProblem(
            reads.rtt, reads.reads, leader, system=reads.system, capacity=reads.capacity,
            base=problem.write_load(leader, 0),
        )  # fmt: skip
        values.append(solve_compact(based, ReadGoal.least_load()).value)
    assert solve_leases(problem, ReadGoal.least_load()).value == pytest.approx(min(values))


def test_leases_spread_over_equal_nodes():
    """Five like ranges on five like nodes: a lease each, and no quorum is needed for balance."""
    rtt = 1.0 - np.eye(5)
    problem = LeaseProblem(rtt, np.full((5, 5), 0.2), np.full((5, 5), 0.01), leader_cost=4)
    plan = solve_leases(problem, ReadGoal.least_load(), time_limit=20)
    assert plan.value == pytest.approx(1 + 0.05 * 4 + 0.2 * 1)
    assert sorted(plan.leases) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"rtt": np.ones((2, 2))}, "rtt"),
        ({"reads": -np.ones((1, 3))}, "reads"),
        ({"writes": np.ones((2, 3))}, "writes"),
        ({"capacity": [1, 0, 1]}, "capacity"),
        ({"leader_cost": float("nan")}, "leader_cost"),
        ({"reads": np.zeros((1, 3)), "writes": np.zeros((1, 3))}, "reads"),
    ],
)
def test_bad_lease_problems(change, field):
    good = {"rtt": np.ones((3, 3)), "reads": np.ones((1, 3)), "writes": np.ones((1, 3))}
    with pytest.raises(InputError, match=field):
        LeaseProblem(**{**good, **change})


def test_leases_want_a_strategy_for_every_read():
    problem = LeaseProblem(np.ones((3, 3)), np.ones((1, 3)), np.ones((1, 3)))
    with pytest.raises(InputError, match="strategies"):
        evaluate_leases(problem, [0], [None])
    with pytest.raises(InputError, match="leases"):
        evaluate_leases(problem, [0, 1], [None])

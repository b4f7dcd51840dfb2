"""Deterministic quorums against brute force."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from formulations.online.reads import solve_compact, solve_deterministic
from placement.errors import LimitError, UnsupportedError
from placement.online.reads import (
    ReadGoal,
    ReadProblem,
    ReadStrategy,
    ThresholdQuorums,
    evaluate,
)
from placement.support.status import Status
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

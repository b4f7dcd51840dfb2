"""Programs of rows: ``milp`` and ``cp-sat`` against enumeration, and what a program says."""

from __future__ import annotations

import math

import pytest

import placement
from formulations.linear.leader_program import LeaderCase, LeaderProgram, beyond_rows, least
from formulations.solvers.highs import Relaxation
from placement import Problem
from placement.errors import UnsupportedError
from placement.measures.rows import row_value
from placement.measures.scenarios import functions
from placement.testing.small_worlds import every_configuration, random_instance
from tests.effort import seeds
from tests.measures.test_questions import asked, truth

AIMS = (
    None,
    "mean after the loss of any site",
    "mean after the loss of any site, the leader may move",
    "mean(reads) after the loss of any region, clients move",
    "mean over outages",
    "slowest client",
    "cost",
)


def drawn(seed: int) -> Problem:
    return asked(seed, limits=(seed + 2) % 3, aim=AIMS[seed % len(AIMS)], voters=3, replicas=(3, 4))


@pytest.mark.parametrize("method", ["milp", "cp-sat"])
@pytest.mark.parametrize("seed", seeds(7, 200))
def test_against_enumeration(method: str, seed: int) -> None:
    problem = drawn(seed)
    if beyond_rows(problem) is not None:
        with pytest.raises(UnsupportedError, match="exhaustive"):
            placement.solve(problem, method)
        return
    best, mean = truth(problem)
    plan = placement.solve(problem, method)
    if math.isinf(best):
        assert plan.status == "infeasible"
        return
    assert plan.status == "optimal"
    assert plan.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
    if problem.objective.kind == "measures":
        assert plan.score == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("seed", seeds(1, 3))
@pytest.mark.parametrize("moves", ["", ", the leader may move", ", clients move"])
def test_no_plan_is_below_the_program_or_the_floor(seed: int, moves: str) -> None:
    """The relaxation of every case, and the sum of least terms, bound the plans of the case."""
    instance = random_instance(seed, sites=5, clients=3)
    loss = f"mean after the loss of any site{moves}"
    problem = Problem(instance, replicas=(3, 4), voters=3, minimise=loss)
    plans = list(every_configuration(problem))
    for leader in range(5):
        each = functions(problem, leader)
        led = [plan for plan in plans if plan.leader == leader]
        best = min(max(row_value(problem, row, plan) for row in each[-1].rows) for plan in led)
        every = set(range(len(each[-1].rows)))
        cases = [LeaderCase(leader)]
        if not moves:
            cases = [LeaderCase(leader, heir) for heir in range(5) if heir != leader]
        bounds = []
        for case in cases:
            program = LeaderProgram(problem, case, each, every, 1.01 * best)
            relaxation = Relaxation(program.arrays(1e6 / best, 1.01 * best))
            solved = relaxation.solve().value == "optimal"
            bounds.append(relaxation.objective / 1e6 * best if solved else math.inf)
            assert max(least(problem, case, row) for row in each[-1].rows) <= bounds[-1] * (
                1 + 1e-7
            )
        assert min(bounds) <= best * (1 + 1e-7)


def test_a_limit_of_time_keeps_the_best_so_far() -> None:
    problem = Problem(placement.load("world27"), replicas=5, voters=3, minimise=AIMS[1])
    for method in ("milp", "cp-sat"):
        plan = placement.solve(problem, method, time_limit=1.0)
        assert plan.bound <= plan.objective
        assert plan.status != "optimal"

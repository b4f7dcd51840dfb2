"""Contingency placement by enumeration, against every configuration there is."""

import dataclasses
import math

import numpy as np
import pytest

import placement
from formulations.contingency.exhaustive import solve
from placement.contingency.objective import Contingency
from placement.errors import InputError
from placement.feasibility.feasible_plans import reasons_infeasible
from placement.methods.options import Options
from placement.model.constraints import Diversity
from placement.plan import cheapest, objective_value
from placement.testing import every_configuration, random_instance
from tests.effort import PROFILE

OPTIONS = Options(settings={"limit": 10**6})

GOALS = [
    Contingency(),
    Contingency("region"),
    Contingency(leader_may_move=True),
    Contingency(together=2),
    Contingency(goal="weighted", probability=0.03),
    Contingency("region", goal="weighted", probability={"region-0": 0.5, "region-2": 0.25}),
    Contingency(clients_move=True),
]

ASKS = [
    {"replicas": 4, "voters": 3},
    {"replicas": (4, 5), "voters": 4, "quorum": 2},
    {"replicas": 5, "voters": 5},
    {"replicas": 4, "voters": 3, "leaders": ["site-1", "site-4"]},
    {"replicas": 4, "voters": 3, "pinned": ["site-0"], "pinned_voters": ["site-5"]},
    {"replicas": 4, "voters": 3, "forbidden": ["site-2"], "non_voters": ["site-3"]},
    {"replicas": 5, "voters": 3, "diversity": Diversity("continent", min_domains=2)},
    {"replicas": 4, "voters": 3, "diversity": Diversity("region", "replicas", cap=1)},
]


def brute_force(problem):
    """Least value and, among those, least normal score, by plain enumeration."""
    best = cheapest(problem, every_configuration(problem))
    if best is None:
        return math.inf, math.inf
    return objective_value(problem, best), problem.objective.tie_break(problem, best)


def check(problem):
    plan = solve(problem, OPTIONS)
    value, normal = brute_force(problem)
    if math.isinf(value):
        assert plan.status == "infeasible"
        return plan
    assert plan.status == "optimal"
    assert plan.objective == pytest.approx(value, rel=1e-12)
    assert plan.score == pytest.approx(normal, rel=1e-9)
    return plan


@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: " ".join(ask))
@pytest.mark.parametrize(
    "goal", GOALS, ids=lambda goal: f"{goal.goal}-{goal.level}-{goal.together}"
)
def test_equals_brute_force(ask, goal):
    number = ASKS.index(ask) + GOALS.index(goal)
    for seed in range(2) if PROFILE != "ordinary" else [number % 2]:
        instance = random_instance(seed, ties=bool(seed))
        if reasons_infeasible(problem := placement.Problem(instance, **ask, objective=goal)):
            continue
        check(problem)


def test_varying_rtts_take_the_slow_path():
    instance = random_instance(4, sites=5, clients=3, intervals=2, varying=True)
    check(placement.Problem(instance, replicas=4, voters=3, objective=Contingency()))


def test_bounded():
    instance = random_instance(8)
    worst = solve(
        placement.Problem(instance, replicas=4, voters=3, objective=Contingency()), OPTIONS
    )
    best = worst.objective / worst.problem.demand.operations
    for factor in (1.0, 1.05, 1.3):
        goal = Contingency(goal="bounded", limit=best * factor)
        plan = check(worst.problem.replace(objective=goal))
        assert plan.failures.worst.mean_latency <= best * factor * (1 + 1e-12)
        assert plan.score <= worst.score * (1 + 1e-12)
    unreachable = worst.problem.replace(objective=Contingency(goal="bounded", limit=best * 0.99))
    assert check(unreachable).status == "infeasible"


def test_never_better_than_normal_and_tie_break_is_the_normal_score():
    for seed in range(6):
        instance = random_instance(seed)
        problem = placement.Problem(instance, replicas=4, voters=3)
        normal = placement.solve(problem, method="exhaustive")
        after = solve(problem.replace(objective=Contingency()), OPTIONS)
        assert after.objective >= normal.score * (1 - 1e-12)
        assert after.score >= normal.score * (1 - 1e-12)

        # The N−1 plan's worst case is at most that of the plan made for normal times.
        def worst_case(plan):
            return max(plan.failures.worst.mean_latency, plan.mean_latency)

        assert worst_case(after) <= worst_case(normal) * (1 + 1e-12)
        moving = solve(problem.replace(objective=Contingency(leader_may_move=True)), OPTIONS)
        assert moving.objective <= after.objective * (1 + 1e-12)


def test_weighted_with_probability_zero_is_the_normal_optimum():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3)
    normal = placement.solve(problem, method="exhaustive")
    goal = Contingency(goal="weighted", probability=0.0)
    assert solve(problem.replace(objective=goal), OPTIONS).objective == pytest.approx(normal.score)


def test_quorums_that_can_spare_nobody_are_explained():
    problem = placement.Problem(random_instance(2), replicas=4, voters=2, objective=Contingency())
    (reason,) = reasons_infeasible(problem)
    assert reason.startswith("2 voters with quorum 2 can spare 0")
    pairs = problem.replace(voters=3, objective=Contingency(together=2))
    assert "needs 2 to be spared" in reasons_infeasible(pairs)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"goal": "best"}, "goal: unknown goal"),
        ({"together": 3}, "together: out of range"),
        ({"goal": "bounded"}, "needs a limit"),
        ({"limit": 3.0}, "does not use a limit"),
        ({"goal": "weighted"}, "needs a probability"),
        ({"goal": "weighted", "probability": -0.1}, "probability: out of range"),
        ({"goal": "bounded", "limit": float("nan")}, "limit: out of range"),
    ],
)
def test_bad_objectives(arguments, message):
    with pytest.raises(InputError, match=message):
        Contingency(**arguments)


def test_probabilities_are_checked_against_the_instance():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3)
    for probability, message in (
        ({"nowhere": 0.1}, "no such loss"),
        (0.5, "sum to more than 1"),
    ):
        goal = Contingency(goal="weighted", probability=probability)
        with pytest.raises(InputError, match=message):
            problem.replace(objective=goal)


def test_methods_that_cannot_take_it_refuse():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3, objective=Contingency())
    tier2 = problem.replace(replicas=list(problem.instance.sites[:4]))
    with pytest.raises(placement.UnsupportedError, match="of the kind 'contingency'"):
        placement.solve(tier2, method="tier2")


def test_interrupt_keeps_the_best():
    seen = []

    def stop(report):
        seen.append(report)
        if len(seen) == 1:
            raise KeyboardInterrupt

    problem = placement.Problem(random_instance(2), replicas=4, voters=3, objective=Contingency())
    options = dataclasses.replace(OPTIONS, progress=stop)
    plan = solve(problem, options)
    assert plan.termination == "interrupted"
    assert plan.bound == -math.inf
    assert plan.found
    assert np.isfinite(plan.objective)


def test_a_budget_below_the_cheapest_latency_is_kept():
    """The best plan over all budgets is too dear: the one within the budget must still be found."""
    instance = random_instance(2, prices=True)
    problem = placement.Problem(instance, replicas=4, voters=3, objective=Contingency())
    free = check(problem)
    plan = check(problem.replace(budget=free.cost * 0.8))
    assert plan.found
    assert plan.cost <= free.cost * 0.8 < free.cost
    assert plan.objective > free.objective

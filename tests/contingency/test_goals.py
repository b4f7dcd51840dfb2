"""Losses of every domain of a level, said in measures: spelling, refusals, other methods."""

import pytest

import placement
from placement import Contingency
from placement.errors import InputError
from placement.feasibility.feasible_plans import reasons_infeasible
from placement.testing import random_instance


def test_goals_are_questions_of_measures():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3)
    for goal, words in (
        (Contingency(), {"minimise": "mean after the loss of any site"}),
        (
            Contingency("region", "bounded", limit=80, leader_may_move=True),
            {"keep": "mean after the loss of any region, the leader may move <= 80 ms"},
        ),
        (
            Contingency("region", "weighted", probability=0.01),
            {"minimise": "mean over outages", "outages": {"any region": 0.01}},
        ),
    ):
        assert problem.replace(objective=goal).objective == problem.replace(**words).objective


def test_weighted_with_probability_zero_is_the_normal_optimum():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3)
    weighted = problem.replace(objective=Contingency(goal="weighted", probability=0.0))
    mean = placement.solve(problem).mean_latency
    assert placement.solve(weighted).objective == pytest.approx(mean)


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
        ({"nowhere": 0.1}, "no such site or domain"),
        (0.5, "sum to more than 1"),
    ):
        goal = Contingency(goal="weighted", probability=probability)
        with pytest.raises(InputError, match=message):
            problem.replace(objective=goal)


def test_methods_that_cannot_take_it_refuse():
    problem = placement.Problem(random_instance(2), replicas=4, voters=3, objective=Contingency())
    tier2 = problem.replace(replicas=list(problem.instance.sites[:4]))
    with pytest.raises(placement.UnsupportedError, match="it takes no measures"):
        placement.solve(tier2, method="tier2")

"""Floors of leaders after a loss, against every configuration and every loss."""

import math
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import placement
from formulations.contingency.leader_floors import always_hit, survivor_floor
from placement.contingency.objective import Contingency
from placement.evaluation.losses import score_after
from placement.feasibility.feasible_plans import violations
from placement.model.configuration import Configuration
from placement.testing import random_instance
from tests.contingency.test_methods import KINDS
from tests.effort import examples
from tests.strategies import problems


def configurations(problem):
    """Every feasible configuration."""
    rules = problem.rules
    sites = range(len(problem.instance.sites))
    for size in range(rules.replicas_min, rules.replicas_max + 1):
        for replicas in combinations(sites, size):
            for voters in combinations(replicas, rules.voters):
                for leader in voters:
                    found = Configuration.of(leader, voters, replicas)
                    if not violations(problem, found):
                        yield found


def scores(problem):
    """(leader after it, score) of every configuration and every loss that takes a replica."""
    goal = problem.objective
    for found in configurations(problem):
        for loss in goal.losses(problem):
            if loss.sites.isdisjoint(found.replicas):
                continue
            yield from score_after(
                problem, found, loss.sites, leader_may_move=goal.leader_may_move
            ).items()


@given(
    problem=problems(kinds=KINDS, min_sites=3, max_sites=5, max_clients=4, writes=True),
    level=st.sampled_from(["site", "site", "zone"]),
    together=st.sampled_from([1, 1, 2]),
    moves=st.booleans(),
)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_no_loss_costs_less_than_the_floor(problem, level, together, moves):
    goal = Contingency(level, together=together, leader_may_move=moves)
    problem = problem.replace(objective=goal)
    floors = {}
    for leader, score in scores(problem):
        if leader not in floors:
            floors[leader] = survivor_floor(problem, leader)
        assert score >= floors[leader] * (1 - 1e-9)


def test_the_floor_is_reached():
    """With free sites, and every replica a voter that is awaited, some loss costs just that."""
    problem = placement.Problem(
        random_instance(4, sites=6), replicas=3, voters=3, quorum=2, objective=Contingency()
    )
    least = {}
    for leader, score in scores(problem):
        least[leader] = min(score, least.get(leader, math.inf))
    assert least
    for leader, score in least.items():
        assert survivor_floor(problem, leader) == pytest.approx(score, rel=1e-9)


def test_which_plans_are_always_hit():
    """The loss of single sites hits every plan beside its leader; others need not."""
    instance = random_instance(2)
    problem = placement.Problem(instance, replicas=4, voters=3, objective=Contingency())
    assert always_hit(problem)
    for goal in (
        Contingency("region"),
        Contingency(leader_may_move=True),
        Contingency(goal="weighted", probability=0.01),
        Contingency(together=2),
    ):
        assert not always_hit(problem.replace(objective=goal)), goal

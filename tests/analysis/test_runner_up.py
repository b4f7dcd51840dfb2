"""Runners-up against plain enumeration: the next best leader and replicas, in order."""

import itertools
import math

import pytest

import placement
from formulations.exact.reduced_problem import ReducedProblem
from placement import Contingency
from placement.analysis.sensitivity import best_plans, next_best_plans
from placement.errors import UnsupportedError
from placement.plan import objective_value
from placement.testing import every_configuration, random_instance, worlds
from tests.effort import examples, seeds


def ranked(problem):
    """Best objective of every (leader, replicas), ascending."""
    best = {}
    for c in every_configuration(problem):
        key = (c.leader, c.replicas)
        best[key] = min(best.get(key, float("inf")), objective_value(problem, c))
    return sorted(best.values()), best


@pytest.mark.parametrize("seed", seeds(1, 2))
def test_equal_enumeration_on_every_kind_of_world(seed):
    for world in worlds(seed):
        values, best = ranked(world.problem)
        # Where 'exact' hands the parts to a solver, a few of them will do.
        values = values[
            : examples(40)
            if ReducedProblem.refuses(world.problem.demand, world.problem.rules) is None
            else 5
        ]
        found = list(itertools.islice(best_plans(world.problem), len(values)))
        assert [p.objective for p in found] == pytest.approx(values, rel=1e-9), world.name
        keys = [(p.configuration.leader, p.configuration.replicas) for p in found]
        assert len(set(keys)) == len(keys), world.name
        assert set(keys) <= set(best), world.name


def test_all_plans_of_a_small_problem_and_no_more():
    problem = placement.Problem(random_instance(4, sites=5), replicas=(2, 4), voters=2)
    values, _ = ranked(problem)
    assert [p.objective for p in best_plans(problem)] == pytest.approx(values, rel=1e-9)


def test_runner_ups_leave_out_the_best():
    problem = placement.Problem(random_instance(9), replicas=3, voters=3)
    plan = placement.solve(problem)
    following = next_best_plans(plan, 3)
    assert len(following) == 3
    assert all(p.objective >= plan.objective for p in following)
    assert all(p.problem is problem for p in following)
    assert plan.configuration not in [p.configuration for p in following]


@pytest.mark.parametrize("goal", ["worst", "bounded", "weighted"])
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_plans_under_losses_are_in_the_order_of_enumeration(seed, goal):
    """Before, leaders that were left out of a part did not lead after a loss there either."""
    extra = {"bounded": {"limit": 110.0 + 40 * (seed % 3)}, "weighted": {"probability": 0.02}}
    problem = placement.Problem(
        random_instance(seed, sites=6, clients=5, ties=seed % 2 == 0),
        replicas=4,
        voters=3,
        objective=Contingency(goal=goal, **extra.get(goal, {})),
    )
    values, best = ranked(problem)
    values = [value for value in values if value < math.inf][: examples(12)]
    found = list(itertools.islice(best_plans(problem), len(values)))
    assert [p.objective for p in found] == pytest.approx(values, rel=1e-9)
    assert {(p.configuration.leader, p.configuration.replicas) for p in found} <= set(best)
    if len(values) < examples(12):
        assert len(list(best_plans(problem))) == len(values)


def test_losses_with_candidates_for_leader_are_refused():
    problem = placement.Problem(random_instance(1), replicas=3, voters=3, objective=Contingency())
    few = problem.replace(leaders=problem.instance.sites[:2])
    moving = problem.replace(objective=Contingency(leader_may_move=True))
    for asked, field in ((few, "leaders"), (moving, "leader_may_move")):
        with pytest.raises(UnsupportedError, match=field):
            next(best_plans(asked))

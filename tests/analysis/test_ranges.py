"""Sensitivity: ranges and runners-up against exhaustive search, and ``placement explain``."""

import itertools
import math

import numpy as np
import pytest

import placement
from formulations.exact.reduced_problem import ReducedProblem
from placement import Contingency
from placement.analysis.sensitivity import (
    best_plans,
    demand_range,
    next_best_plans,
    rtt_range,
    safe_demand_range,
    safe_rtt_range,
)
from placement.cli import main
from placement.errors import InputError, UnsupportedError
from placement.evaluation.objective import MEAN_LATENCY
from placement.plan import objective_value
from placement.testing import every_configuration, random_instance, worlds
from tests.effort import examples, seeds


def optimal_at(plan, problem, tolerance=1e-7):
    best = placement.solve(problem, method="exhaustive")
    return objective_value(problem, plan.configuration) <= best.objective * (1 + tolerance)


def with_demand(plan, client, factor):
    counts = plan.problem.instance.counts.copy()
    counts[:, plan.problem.instance.client_index(client)] *= factor
    return plan.problem.replace(instance=plan.problem.instance.replace(counts=counts))


def with_rtt(plan, source, site, value):
    instance = plan.problem.instance
    column = instance.sites.index(site)
    if source in instance.clients:
        rtt = instance.client_rtt.copy()
        rtt[instance.clients.index(source), column] = value
        return plan.problem.replace(instance=instance.replace(client_rtt=rtt))
    rtt = instance.site_rtt.copy()
    rtt[instance.sites.index(source), column] = value
    return plan.problem.replace(instance=instance.replace(site_rtt=rtt))


def plans():
    for seed in range(3):
        instance = random_instance(seed, sites=6, clients=6)
        yield placement.solve(placement.Problem(instance, replicas=3, voters=3))


def test_demand_ranges():
    moved = 0
    for plan in plans():
        instance = plan.problem.instance
        for client in instance.clients:
            if not instance.counts[:, instance.client_index(client)].any():
                continue
            found = demand_range(plan, client, most=200.0)
            assert found.low <= 1 <= found.high
            inside = np.linspace(found.low, min(found.high, 200.0), 5)
            assert all(optimal_at(plan, with_demand(plan, client, x)) for x in inside)
            if found.low > 0:
                moved += 1
                assert not optimal_at(plan, with_demand(plan, client, found.low * 0.99))
            if found.high < 200:
                moved += 1
                assert not optimal_at(plan, with_demand(plan, client, found.high * 1.01))
    assert moved > 10


@pytest.mark.parametrize("kind", ["client", "site"])
def test_rtt_ranges(kind):
    rng = np.random.default_rng(1)
    ended = 0
    for plan in plans():
        instance = plan.problem.instance
        second = next_best_plans(plan, 1)[0]
        sources = instance.clients if kind == "client" else (plan.leader, *plan.replicas[:2])
        for source in list(sources)[:3]:
            site = plan.replicas[int(rng.integers(len(plan.replicas)))]
            if source == site:
                continue
            found = rtt_range(plan, source, site, most=400.0)
            safe = safe_rtt_range(plan, second, source, site)
            assert found.low <= found.value <= found.high
            assert found.low <= safe.low * (1 + 1e-6) + 1e-6
            assert min(safe.high, 400.0) <= found.high * (1 + 1e-6) + 1e-6
            for x in np.linspace(found.low, found.high, 6)[1:-1]:
                assert optimal_at(plan, with_rtt(plan, source, site, float(x)))
            if found.high < 399:
                ended += 1
                beyond = with_rtt(plan, source, site, found.high + 0.01)
                assert not optimal_at(plan, beyond, 1e-12)
            if found.low > 0.01:
                ended += 1
                beyond = with_rtt(plan, source, site, found.low - 0.01)
                assert not optimal_at(plan, beyond, 1e-12)
    assert ended > 3


def lone_client(counts, **more):
    """Three sites on a line, one client that issues everything, another one that may issue."""
    rtt = np.array([[0.0, 10, 40], [10, 0, 30], [40, 30, 0]])
    return placement.Instance(
        sites=("a", "b", "c"),
        clients=("alone", "silent"),
        client_rtt=rtt[:2],
        site_rtt=rtt,
        counts=counts,
        **more,
    )


def test_money_does_not_grow_with_the_demand_of_a_lone_client():
    prices = placement.Prices(storage=np.array([900.0, 100, 200]))
    instance = lone_client([[10.0, 0, 0, 0, 5], [0, 0, 0, 0, 0]], prices=prices)
    problem = placement.Problem(instance, replicas=(1, 3), voters=1, cost_weight=1)
    plan = placement.solve(problem)
    assert plan.leader == "b"
    found = demand_range(plan, "alone")
    assert found.exact
    assert not found.high_is_limit
    assert found.low_is_limit
    assert found.low == 1 / 1000
    for factor, best in (
        (found.low, True),
        (found.high * 0.999, True),
        (found.high * 1.001, False),
    ):
        assert optimal_at(plan, with_demand(plan, "alone", factor), 1e-12) is best
    assert placement.solve(with_demand(plan, "alone", 10)).leader == "a"


def test_only_the_intervals_that_the_decay_leaves_count():
    counts = np.zeros((2, 2, 5))
    counts[1, 0] = counts[0, 1] = 3.0
    problem = placement.Problem(lone_client(counts), replicas=2, voters=1, decay=math.inf)
    plan = placement.solve(problem)
    assert (demand_range(plan, "alone").low, demand_range(plan, "alone").high) == (0, math.inf)
    with pytest.raises(InputError, match="has no demand in the intervals that count"):
        demand_range(plan, "silent")


def test_ends_at_a_search_limit_are_marked():
    counts = [[10.0, 0, 0, 0, 0], [0, 0, 1, 0, 0]]
    plan = placement.solve(placement.Problem(lone_client(counts), replicas=3, voters=3))
    found = demand_range(plan, "silent", most=1.5)
    assert (found.high, found.high_is_limit, found.low_is_limit) == (1.5, True, False)
    nearby = rtt_range(plan, "alone", "c", most=50)
    assert (nearby.high, nearby.high_is_limit) == (50, True)
    assert nearby.low_is_limit is False
    for wrong in (0.5, "2", None, math.nan):
        with pytest.raises(InputError, match="most: "):
            demand_range(plan, "alone", most=wrong)


def test_only_optimal_plans_of_the_mean():
    problem = placement.Problem(random_instance(1), replicas=3, voters=3)
    with pytest.raises(InputError, match="status optimal"):
        demand_range(placement.solve(problem, method="kq"), "client-0")
    plan = placement.solve(problem)
    with pytest.raises(InputError, match="unknown client"):
        demand_range(plan, "nobody")
    with pytest.raises(InputError, match="reaches itself for free"):
        rtt_range(plan, "site-0", "site-0")


def test_rtts_that_vary_have_no_range_where_one_interval_has_demand():
    one = random_instance(4, sites=4, clients=3, intervals=2, varying=True)
    counts = one.counts.copy()
    counts[0] = 0
    plan = placement.solve(placement.Problem(one.replace(counts=counts), replicas=2, voters=2))
    assert plan.problem.demand.scenarios == 1
    assert demand_range(plan, one.clients[0]).low <= 1
    with pytest.raises(InputError, match="varies by interval"):
        rtt_range(plan, one.clients[0], one.sites[0])


GOALS = (MEAN_LATENCY, Contingency(), Contingency("site", "weighted", probability=0.05))


def plans_of_goal(goal):
    for seed in range(1):
        instance = random_instance(seed, sites=6, clients=5)
        problem = placement.Problem(instance, replicas=4, voters=3, objective=goal)
        plan = placement.solve(problem)
        yield plan, next(iter(next_best_plans(plan, 1)), None)


@pytest.mark.parametrize("goal", GOALS)
def test_plans_stay_optimal_inside(goal):
    moved = 0
    for plan, second in plans_of_goal(goal):
        instance = plan.problem.instance
        for client in instance.clients[:2]:
            if not instance.counts[:, instance.client_index(client)].any():
                continue
            found = safe_demand_range(plan, second, client, most=50.0)
            assert found.low <= 1 <= found.high
            moved += found.low < 1 < found.high
            for x in (found.low, found.high):
                assert optimal_at(plan, with_demand(plan, client, x))
            rtt = safe_rtt_range(plan, second, client, str(plan.leader), waiting="client")
            assert rtt.low <= rtt.value <= rtt.high
            moved += rtt.low < rtt.high
            for x in (rtt.low, rtt.high):
                assert optimal_at(plan, with_rtt(plan, client, str(plan.leader), x))
        for voter in plan.voters:
            if voter != plan.leader:
                rtt = safe_rtt_range(plan, second, str(plan.leader), voter, waiting="site")
                for x in (rtt.low, rtt.high):
                    assert optimal_at(plan, with_rtt(plan, str(plan.leader), voter, x))
    assert moved > 2


def test_what_no_range_is_known_of_is_refused():
    instance = random_instance(0, sites=6, clients=5)
    moving = Contingency(clients_move=True)
    plan = placement.solve(placement.Problem(instance, replicas=4, voters=3, objective=moving))
    with pytest.raises(InputError, match="clients that stay"):
        safe_demand_range(plan, None, instance.clients[0])


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


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    assert main(["solve", "world27", "--replicas", "4", "--voters", "3", "-o", str(path)]) == 0
    return str(path)


def test_text_and_json(plan, command):
    asked = ("explain", plan, "--clients", "2", "--runner-ups", "3")
    assert "Next best plans, each proven" in command(*asked, code=0).out
    answer = command(*asked, "--json", code=0).document
    overheads = [row["overhead_percent"] for row in answer["runner_ups"]]
    assert len(overheads) == 3
    assert overheads == sorted(overheads)
    assert all(row["low"] <= row["value"] for row in answer["demand"] + answer["rtt"])


def test_search_limits_are_marked_in_text_and_json(plan, command):
    text = command("explain", plan, "--clients", "3", "--exact", code=0).out
    answer = command("explain", plan, "--clients", "3", "--exact", "--json", code=0).document
    limited = [row["high_is_limit"] for row in answer["demand"] + answer["rtt"]]
    assert any(limited)
    assert not all(limited)
    assert text.count("at least ") == sum(limited)
    assert not any(row["low_is_limit"] for row in answer["demand"] + answer["rtt"])

"""Safe ranges against exhaustive search, with and without losses: the plan is optimal inside."""

import pytest

import placement
from placement import Contingency
from placement.analysis.sensitivity import next_best_plans, safe_demand_range, safe_rtt_range
from placement.errors import InputError
from placement.evaluation.objective import MEAN_LATENCY
from placement.testing import random_instance
from tests.analysis.test_ranges import optimal_at, with_demand, with_rtt

GOALS = (MEAN_LATENCY, Contingency(), Contingency("site", "weighted", probability=0.05))


def plans(goal):
    for seed in range(1):
        instance = random_instance(seed, sites=6, clients=5)
        problem = placement.Problem(instance, replicas=4, voters=3, objective=goal)
        plan = placement.solve(problem)
        yield plan, next(iter(next_best_plans(plan, 1)), None)


@pytest.mark.parametrize("goal", GOALS)
def test_plans_stay_optimal_inside(goal):
    moved = 0
    for plan, second in plans(goal):
        instance = plan.problem.instance
        for client in instance.clients[:3]:
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
    assert moved > 3


def test_what_no_range_is_known_of_is_refused():
    instance = random_instance(0, sites=6, clients=5)
    moving = Contingency(clients_move=True)
    plan = placement.solve(placement.Problem(instance, replicas=4, voters=3, objective=moving))
    with pytest.raises(InputError, match="clients that stay"):
        safe_demand_range(plan, None, instance.clients[0])

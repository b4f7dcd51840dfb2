"""Loss of sites by hand and against a slow reference; changes with a known effect on scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import Instance
from placement.evaluation.losses import failures, losses, score_after
from placement.evaluation.score import score
from placement.model.configuration import Configuration
from placement.model.demand import aggregate, decay_weights
from placement.plan import objective_value
from placement.testing import every_configuration, random_instance, worlds
from tests.evaluation.test_score import configurations
from tests.reference import small
from tests.strategies import instances


def line(counts, clients=("a", "b", "c")):
    # a -10- b -20- c, and d next to c (5): one client in each of the first three, 1 ms away.
    at = {"a": 0.0, "b": 10.0, "c": 30.0, "d": 35.0}
    site_rtt = np.abs(np.subtract.outer(list(at.values()), list(at.values())))
    client_rtt = np.abs(np.subtract.outer([at[c] for c in clients], list(at.values()))) + 1
    return small(
        tuple(at), client_rtt, site_rtt, counts, domains={"half": ("west", "west", "east", "east")}
    )


def test_by_hand():
    # Weak reads, one per client; one strong read and one single-group transaction in a.
    counts = np.zeros((3, 5))
    counts[:, 0] = 1
    counts[0, 2] = counts[0, 3] = 1
    problem = placement.Problem(line(counts), replicas=4, voters=3)
    chosen = Configuration(0, (0, 1, 2), (0, 1, 2, 3))
    report = failures(problem, chosen)
    # normal: reads 1 + 1 + 1, strong 1, write 1 + 10 = 15 over 5 operations
    assert report.normal == pytest.approx(15 / 5)
    lost = {f.lost: f for f in report.each}
    # a lost: reads 11 + 1 + 1; leader b: strong 11, write 11 + 20 → 55. leader c: 31, 31 + 20 → 95.
    assert lost["a"].leader == "b"
    assert lost["a"].mean_latency == pytest.approx(55 / 5)
    assert (lost["a"].worst_leader, lost["a"].worst_latency) == ("c", pytest.approx(95 / 5))
    # b lost: a stays and waits for c: reads 1 + 11 + 1, strong 1, write 1 + 30.
    assert (lost["b"].leader, lost["b"].mean_latency) == ("a", pytest.approx(45 / 5))
    # d lost: only c's neighbour, nothing read there.
    assert lost["d"].overhead == pytest.approx(0)
    assert report.worst is not None
    assert report.worst.lost == "a"
    assert report.failover == (("b", pytest.approx(11)), ("c", pytest.approx(19)))
    # The west half holds two of three voters: the service is lost.
    halves = {f.lost: f for f in failures(problem, chosen, "half").each}
    assert not halves["west"].survives
    assert math.isinf(halves["west"].mean_latency)
    assert halves["east"].survives


def test_clients_move_to_the_closest_surviving_site():
    counts = np.zeros((3, 5))
    counts[0, 0] = 1
    problem = placement.Problem(line(counts), replicas=4, voters=3)
    chosen = Configuration(1, (0, 1, 2), (0, 1, 2, 3))
    # The client in a reads at b, 11 ms away; served from b: 10 ms on the way, 1 ms from there.
    assert score_after(problem, chosen, [0]) == {1: pytest.approx(11)}
    assert score_after(problem, chosen, [0], clients_move=True) == {1: pytest.approx(10 + 1)}


def test_pairs_and_domains():
    counts = np.ones((3, 5))
    problem = placement.Problem(line(counts), replicas=4, voters=3)
    assert len(losses(problem, together=2)) == 6
    assert [loss.name for loss in losses(problem, "half")] == ["west", "east"]
    assert losses(problem, "half")[0].sites == {0, 1}


def test_a_surviving_leader_stays_unless_it_may_move():
    counts = np.zeros((3, 5))
    counts[2, 2] = 1  # strong reads in c
    problem = placement.Problem(line(counts), replicas=3, voters=3)
    chosen = Configuration(0, (0, 1, 2), (0, 1, 2))
    assert set(score_after(problem, chosen, [1])) == {0}
    moved = score_after(problem, chosen, [1], leader_may_move=True)
    assert set(moved) == {0, 2}
    assert min(moved, key=moved.get) == 2


def test_invariants_on_every_kind_of_world():
    """No mean latency falls with fewer replicas and voters and the same leader."""
    for world in worlds(3):
        problem = world.problem
        chosen = next(every_configuration(problem), None)
        if chosen is None:
            continue
        for loss in losses(problem):
            scores = score_after(problem, chosen, loss.sites)
            left = [v for v in chosen.voters if v not in loss.sites]
            if len(left) < problem.rules.quorum:
                assert scores == {}
                continue
            assert scores
            if chosen.leader not in loss.sites and not problem.demand.relay.any():
                # Same leader, fewer voters and replicas: without relayed reads nothing improves.
                normal = objective_value(problem, chosen) - (
                    problem.rules.cost_weight * plan_cost(problem, chosen)
                )
                assert scores[chosen.leader] >= normal * (1 - 1e-12)


def plan_cost(problem, chosen):
    from placement.evaluation.cost_model import configuration_cost

    return configuration_cost(problem.instance, chosen)


def test_plan_reports_failures():
    for seed in range(6):
        problem = placement.Problem(random_instance(seed), replicas=4, voters=3)
        plan = placement.solve(problem, method="exhaustive")
        order = [latency for _, latency in plan.failures.failover]
        assert order == sorted(order)
    assert len(plan.failures.each) == 4
    assert {name for name, _ in plan.failures.failover} == set(plan.voters) - {plan.leader}
    nothing = placement.solve(problem.replace(forbidden=problem.instance.sites[:4]), "exhaustive")
    with pytest.raises(placement.InputError, match="no configuration"):
        _ = nothing.failures


def value(instance: Instance, chosen: tuple[Any, Any, Any], decay: float = 1.0) -> float:
    leader, voters, replicas = chosen
    return score(aggregate(instance, decay), leader, voters, replicas, len(voters) // 2 + 1)


@given(
    st.data(),
    instances(max_intervals=3),
    st.sampled_from([0.25, 8.0, 16.0]),
    st.sampled_from([0.5, 4.0]),
)
def test_scaling(data: st.DataObject, instance: Instance, time: float, load: float) -> None:
    """Powers of two scale every number exactly, so that the score scales to the last bit."""
    chosen = data.draw(configurations(len(instance.sites)))
    scaled = instance.replace(
        client_rtt=instance.client_rtt * time,
        site_rtt=instance.site_rtt * time,
        counts=instance.counts * load,
    )
    assert value(scaled, chosen) == value(instance, chosen) * time * load


@pytest.mark.parametrize("decay", [0.99, 0.0, -1.0, math.nan, "fast"])
def test_a_decay_below_one_is_refused(decay: Any) -> None:
    with pytest.raises(ValueError, match=r"decay: .*: got .*, expected a number >= 1"):
        decay_weights(2, decay)

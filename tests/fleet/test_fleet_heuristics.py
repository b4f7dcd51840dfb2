"""Greedy and local search on fleets, and the fleets that are drawn for them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import placement
from formulations.fleet import FleetSearch, prove_fleet_bound, solve_fleet
from heuristics.fleet import greedy_by_size, local_search
from placement import Problem
from placement.errors import InputError
from placement.fleet import (
    FleetMember,
    FleetPlan,
    FleetProblem,
    NoFleetPlan,
    SharedLimits,
    SharedRows,
    synthetic_fleet,
)
from placement.overtime.replay.generated_fleets import client_ground
from placement.testing import random_instance
from placement.workloads import Clients
from tests.effort import seeds
from tests.fleet.test_fleet_search import drawn_fleet

WORLD = placement.load("world27")
CLIENTS = client_ground(WORLD).clients


def drawn(databases: int, seed: int, **more: float | None) -> FleetProblem:
    return synthetic_fleet(WORLD, CLIENTS, databases, seed=seed, **more)  # type: ignore[arg-type]


def found(plan: FleetPlan | NoFleetPlan) -> FleetPlan:
    assert isinstance(plan, FleetPlan)
    return plan


@pytest.mark.parametrize(("databases", "groups"), [(15, None), (60, 4)])
def test_heuristics_are_above_the_bound_of_each_database_alone(
    databases: int, groups: int | None
) -> None:
    fleet = drawn(databases, 3, groups=groups, slack=1.6)
    alone = prove_fleet_bound(fleet, np.zeros(len(SharedRows(fleet).capacity)))
    greedy, local = found(greedy_by_size(fleet)), found(local_search(fleet))
    for plan in (greedy, local):
        assert not plan.violations
        assert plan.value >= alone * (1 - 1e-12)
    assert local.value <= greedy.value * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_heuristics_are_above_the_proven_bound(seed: int) -> None:
    fleet = drawn(60, seed, slack=1.6)
    proven = solve_fleet(fleet, FleetSearch(gap=0.02, seconds=20.0))
    plan = found(local_search(fleet))
    assert not plan.violations
    if isinstance(proven, FleetPlan):
        assert plan.value >= proven.bound * (1 - 1e-12)
    else:
        assert not proven.proven


def test_single_databases_are_where_descent_puts_them_alone() -> None:
    fleet = drawn(1, 0, slack=100.0)
    member = fleet.members[0]
    plan = found(greedy_by_size(fleet))
    best = placement.solve(member.problem, method="exact")
    assert plan.value >= best.objective * (1 - 1e-12)
    assert found(local_search(fleet)).placed[0][0].configuration == plan.placed[0][0].configuration


def test_an_exchange_gives_the_good_site_to_the_database_that_gains_more() -> None:
    """Greedy gives the one good site to the larger database, which hardly gains there."""
    base = random_instance(5, sites=2, clients=2)
    rtt = np.array([[1.0, 100.0], [1.0, 100.0]])

    def member(name: str, weight: float, storage: float) -> FleetMember:
        counts = np.zeros_like(base.counts)
        counts[0, :, 0] = weight
        instance = base.replace(counts=counts, client_rtt=rtt)
        return FleetMember(name, Problem(instance, replicas=1, voters=1), storage_gb=storage)

    members = [member("large", 1.0, 10.0), member("eager", 50.0, 9.0)]
    fleet = FleetProblem(members, SharedLimits(storage_gb=np.array([10.0, 100.0])))
    greedy, local = found(greedy_by_size(fleet)), found(local_search(fleet))
    assert greedy.placed[0][0].configuration.leader == 0
    assert local.placed[1][0].configuration.leader == 0
    assert not local.violations
    assert local.value < greedy.value


def test_groups_stay_apart_and_moves_stay_few() -> None:
    fleet = drawn(6, 1, slack=5.0)
    names = [member.name for member in fleet.members]
    first = found(greedy_by_size(fleet))
    members = [
        FleetMember(member.name, member.problem, storage_gb=1.0, present=placed[0].configuration)
        for member, placed in zip(fleet.members, first.placed, strict=True)
    ]
    still = FleetProblem(members, SharedLimits(most_moves=0))
    plan = found(local_search(still))
    assert not plan.violations
    assert plan.value == pytest.approx(first.value)
    apart = found(greedy_by_size(FleetProblem(members, SharedLimits(apart=[names[:3]]))))
    assert not apart.violations
    held = [set(apart.placed[i][0].configuration.replicas) for i in range(3)]
    assert len(set.union(*held)) == sum(map(len, held))


def test_a_database_without_a_plan_is_named() -> None:
    problem = Problem(WORLD, replicas=3, voters=3, forbidden=WORLD.sites[2:])
    plan = greedy_by_size(FleetProblem([FleetMember("no-room", problem)], SharedLimits()))
    assert isinstance(plan, NoFleetPlan)
    assert plan.proven
    assert "no-room" in plan.reasons[0]
    assert isinstance(local_search(plan.fleet), NoFleetPlan)


def test_the_time_limit_leaves_the_greedy_plan() -> None:
    fleet = drawn(10, 2, slack=1.5)
    plan = found(local_search(fleet, seconds=0.0))
    assert plan.value == found(greedy_by_size(fleet)).value
    assert plan.termination is placement.Termination.TIME_LIMIT


def test_drawn_fleets_repeat_and_hold_their_slack() -> None:
    one, two = drawn(40, 7, groups=8, slack=2.0), drawn(40, 7, groups=8, slack=2.0)
    assert one.databases == 40
    assert len(one.members) == 8
    for a, b in zip(one.members, two.members, strict=True):
        assert (a.name, a.storage_gb, a.leader_load) == (b.name, b.storage_gb, b.leader_load)
        assert np.array_equal(a.problem.instance.counts, b.problem.instance.counts)
    limits = one.limits
    assert limits.storage_gb is not None
    stored = math.fsum(3 * m.copies * m.storage_gb for m in one.members)
    assert float(limits.storage_gb.sum()) >= 2.0 * stored * (1 - 1e-12)
    assert float(limits.storage_gb.min()) >= max(m.storage_gb for m in one.members)
    assert [m.name for m in drawn(5, 7).members] == [m.name for m in drawn(9, 7).members[:5]]


@pytest.mark.parametrize(
    ("clients", "more", "field"),
    [
        (CLIENTS, {"slack": 0.5}, "slack"),
        (CLIENTS, {"groups": 9}, "groups"),
        (Clients.from_cities(placement.datasets.cities()[:4]), {}, "clients"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    clients: Clients, more: dict[str, float], field: str
) -> None:
    with pytest.raises(InputError, match=field):
        synthetic_fleet(WORLD, clients, 5, seed=0, **more)  # type: ignore[arg-type]


def test_a_small_overload_never_pays() -> None:
    """The near site has room for all but a millionth; the far one is ten thousand times as far."""
    base = random_instance(5, sites=2, clients=2)
    counts = np.zeros_like(base.counts)
    counts[0, :, 0] = 1.0
    instance = base.replace(counts=counts, client_rtt=np.array([[1.0, 1e4], [1.0, 1e4]]))
    member = FleetMember("a", Problem(instance, replicas=1, voters=1), storage_gb=10.0)
    limits = SharedLimits(storage_gb=np.array([10.0 * (1 - 1e-6), 100.0]))
    for plan in (greedy_by_size, local_search):
        placed = found(plan(FleetProblem([member], limits))).placed
        assert placed[0][0].configuration.leader == 1


def test_what_does_not_fit_is_no_plan_and_says_where_and_by_how_much() -> None:
    base = random_instance(3, sites=3, clients=3)
    problem = Problem(base, replicas=2, voters=1)
    members = [FleetMember(name, problem, storage_gb=10.0) for name in "abcd"]
    fleet = FleetProblem(members, SharedLimits(storage_gb=np.array([30.0, 20.0, 20.0])))
    for method in (greedy_by_size, local_search):
        plan = method(fleet)
        assert isinstance(plan, NoFleetPlan)
        assert not plan.proven
        assert sum(each.short_by for each in plan.short) in (10.0, 20.0)
        assert all(each.name.startswith("storage GB at ") for each in plan.short)
        assert plan.reasons[0].startswith(f"{plan.short[0].name}: short by ")


@pytest.mark.parametrize("seed", seeds(4, 60))
def test_drawn_fleets_get_a_plan_within_all_limits_or_none(seed: int) -> None:
    fleet = drawn_fleet(seed, most_sites=7, most_databases=12, rules=True)
    for plan in (greedy_by_size(fleet), local_search(fleet, seconds=5.0)):
        if isinstance(plan, FleetPlan):
            assert not plan.violations
        else:
            assert plan.proven or plan.short
            assert plan.reasons

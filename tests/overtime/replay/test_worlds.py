"""Traces, deployments and fleets: what they are made of, and what they refuse."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

import placement
from placement import Problem
from placement.errors import InputError
from placement.overtime.replay import NOBODY, Deployments, Trace, replay
from placement.overtime.replay.generated_fleets import client_ground, fleet_trace, trace_of
from placement.workloads import Timeline, fleet, generate
from tests.overtime.replay.cases import world27


def test_deployments_are_the_plans_for_the_first_interval():
    problem, trace, _ = world27(3)
    counts = trace.counts.copy()
    counts[1, 0] = 0  # silent at first: gets what suits all of them
    counts[:, 1:] *= 7  # what comes later plays no part
    reports: list[tuple[int, int]] = []
    quiet = Trace(trace.databases, trace.intervals, counts)
    asked = problem.replace(survive="country")
    held = Deployments.solved(asked, quiet, progress=lambda *at: reports.append(at))
    assert reports == [(1, 3), (2, 3), (3, 3)]
    for row, demand in enumerate((counts[0, 0], counts[:, 0].sum(axis=0), counts[2, 0])):
        plan = placement.solve(
            asked.replace(instance=asked.instance.replace(counts=demand, intervals=()), decay=1.0)
        )
        names = asked.instance.sites
        assert {names[i] for i in np.nonzero(held.replicas[row])[0]} == set(plan.replicas)
        assert {names[i] for i in np.nonzero(held.voters[row])[0]} == set(plan.voters)
    counts[:, 0] = 0
    with pytest.raises(InputError, match="nothing was issued in the first interval"):
        Deployments.solved(asked, Trace(trace.databases, trace.intervals, counts))


def test_a_wish_becomes_the_closest_voter():
    world = placement.load("world27")
    voters = ("us-east-1", "eu-central-1", "ap-northeast-1")
    held = Deployments.same(world, 3, [*voters, "us-west-2"], voters)
    wished = held.preferring(world, ["eu-central-1", "eu-west-1", None])
    assert wished.preferred.tolist()[2] == NOBODY
    assert world.sites[wished.preferred[0]] == "eu-central-1"
    assert world.sites[wished.preferred[1]] == "eu-central-1"
    with pytest.raises(InputError, match="unknown site"):
        held.preferring(world, ["mars", None, None])
    with pytest.raises(InputError, match="one preferred leader per database is needed"):
        held.preferring(world, [None])


@pytest.mark.parametrize(
    ("replicas", "voters", "preferred", "message"),
    [
        ([[1, 0]], [[0, 1]], [NOBODY], "holds no replica there"),
        ([[1, 0]], [[0, 0]], [NOBODY], "no voters"),
        ([[1, 1]], [[1, 0]], [1], "no voter there"),
        ([[1, 1]], [[1, 0]], [7], "no voter there"),
        ([[1, 1]], [[1, 0]], [0, 0], "preferred: wrong shape"),
        ([[1, 1]], [[1]], [NOBODY], "voters: wrong shape"),
    ],
)
def test_deployments_that_contradict_themselves(replicas, voters, preferred, message):
    with pytest.raises(InputError, match=message):
        Deployments(np.array(replicas, dtype=bool), np.array(voters, dtype=bool), preferred)
    with pytest.raises(InputError, match="replicas: wrong shape"):
        Deployments(np.ones((1, 2)), np.ones((1, 2), dtype=bool), np.array([NOBODY]))


@pytest.mark.parametrize(
    ("databases", "intervals", "counts", "message"),
    [
        (("a", "a"), ("1",), np.ones((2, 1, 1, 1)), "duplicate name"),
        (("a",), ("1", "1"), np.ones((1, 2, 1, 1)), "duplicate name"),
        (("a",), ("1",), np.ones((1, 1, 1)), "wrong shape"),
        (("a",), ("1",), np.ones((1, 2, 1, 1)), "wrong shape"),
        (("a",), ("1",), np.full((1, 1, 1, 1), np.nan), "database 'a', interval '1'"),
        (("a",), ("1",), np.full((1, 1, 1, 1), -1.0), "out of range"),
        (("a",), ("1",), np.full((1, 1, 1, 1), np.inf), "out of range"),
        (("a",), ("1",), "counts", "not a table of numbers"),
        ((), ("1",), np.ones((0, 1, 1, 1)), "nothing to replay"),
    ],
)
def test_bad_traces(databases, intervals, counts, message):
    with pytest.raises(InputError, match=message):
        Trace(databases, intervals, counts)


def test_parts_of_a_trace():
    _, trace, _ = world27(4)
    assert trace.part(1, 3).databases == ("db1", "db2")
    some = trace.of(["db3", "db0"])
    np.testing.assert_array_equal(some.counts, trace.counts[[3, 0]])
    with pytest.raises(InputError, match="no such database"):
        trace.of(["db9"])
    with pytest.raises(InputError, match="at least one block"):
        Trace.of_blocks([], Timeline.of_day(date(2026, 3, 2)))


def test_a_fleet_on_cities_is_the_generators():
    world = placement.load("world27")
    ground = client_ground(world)
    assert ground.clients.names == world.clients
    day = Timeline.of_day(date(2026, 3, 2), 4)
    trace, wishes = fleet_trace(world, 5, day, seed=9)
    drawn = fleet(ground.clients, 5, seed=9, timeline=day, nearest_sites=ground.nearest_sites)
    wanted = Trace.of_blocks(generate(drawn, ground.clients, day, seed=9), day)
    np.testing.assert_array_equal(trace.counts, wanted.counts)
    assert trace.databases == wanted.databases
    assert wishes == tuple(each.preferred_leader for each in drawn)
    fewer, _ = fleet_trace(world, 2, day, seed=9)
    np.testing.assert_array_equal(fewer.counts, trace.counts[:2])


def test_cities_belong_to_the_closest_client():
    """Clients that are no cities: every operation goes somewhere, and to the closest."""
    world = placement.load("world27")
    at = np.array([[50.0, 8.0], [40.0, -75.0], [35.0, 139.0]])  # Frankfurt, New York, Tokyo
    three = placement.Instance(
        sites=world.sites,
        clients=("west of Asia", "Americas", "Far East"),
        client_rtt=world.client_rtt[:3],
        site_rtt=world.site_rtt,
        counts=np.ones((3, 5)),
        client_coordinates=at,
    )
    ground = client_ground(three)
    owner = dict(zip(ground.clients.names, ground.owner.tolist(), strict=True))
    assert (owner["Paris"], owner["Chicago"], owner["Seoul"]) == (0, 1, 2)
    day = Timeline.of_day(date(2026, 3, 2), 3)
    drawn = fleet(ground.clients, 3, seed=1)
    trace = trace_of(ground, three, drawn, day, seed=1)
    whole = Trace.of_blocks(generate(drawn, ground.clients, day, seed=1), day)
    np.testing.assert_array_equal(trace.counts.sum(axis=2), whole.counts.sum(axis=2))
    nowhere = placement.Instance(
        sites=("a",), clients=("b",), client_rtt=[[1.0]], site_rtt=[[0.0]], counts=np.ones((1, 5))
    )
    with pytest.raises(InputError, match="the places of the clients are unknown"):
        client_ground(nowhere)
    weak = nowhere.replace(operations=placement.STANDARD_OPERATIONS[:1], counts=np.ones((1, 1)))
    with pytest.raises(InputError, match="five standard operations"):
        client_ground(weak)


def test_a_problem_needs_no_demand_of_its_own():
    """The instance's counts are not what is replayed."""
    problem, trace, held = world27(2)
    other = problem.replace(
        instance=problem.instance.replace(counts=np.ones((60, 5)), intervals=())
    )
    one, two = (replay(asked, trace, held, tiers=(1, 2)).to_frame() for asked in (problem, other))
    assert one.equals(two)
    assert isinstance(other, Problem)

"""Geography, ring, evaluator, bad input."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.errors import InputError, SolverError
from placement.online import spawn_streams
from placement.online.dynamic import (
    Geography,
    ReplicationPlan,
    ReplicationProblem,
    clustered_sites,
    evaluate,
    hot_set_world,
    six_sites,
)
from placement.online.dynamic.store_demand import random_ring
from placement.online.simulation import zipf
from tests.online.dynamic.worlds import all_copies, slow_cost, small_problems


def test_preference_lists_are_those_of_table_1():
    geography = six_sites()
    named = {
        geography.sites[i]: [geography.sites[j] for j in row]
        for i, row in enumerate(geography.preferred)
    }
    assert named == {
        "California": ["California", "Virginia"],
        "Virginia": ["Virginia", "California", "Ireland"],
        "Ireland": ["Ireland", "Germany", "Virginia"],
        "Germany": ["Germany", "Ireland"],
        "Australia": ["Australia"],
        "Japan": ["Japan"],
    }
    assert np.array_equal(geography.rtt, geography.rtt.T)


def test_clusters_prefer_their_own_continent():
    assert [set(row) for row in clustered_sites().preferred] == [{0, 1, 2}] * 3 + [{3, 4, 5}] * 3


@pytest.mark.parametrize(
    ("lists", "word"),
    [
        (((1, 0), (1,)), "not a preference list"),
        (((0,), (1, 1)), "not a preference list"),
        (((0, 2), (1,)), "not a preference list"),
        (((0,), ()), "not a preference list"),
        (((0,),), "wrong number"),
    ],
)
def test_bad_lists_are_named(lists, word):
    with pytest.raises(InputError, match=word):
        Geography(("a", "b"), [[1, 5], [5, 1]], lists)


def test_a_list_must_ascend_and_skip_nobody():
    rtt = [[1, 5, 9], [5, 1, 5], [9, 5, 1]]
    with pytest.raises(InputError, match="order of RTT"):
        Geography(("a", "b", "c"), rtt, ((0, 2, 1), (1,), (2,)))
    with pytest.raises(InputError, match="left out"):
        Geography(("a", "b", "c"), rtt, ((0, 2), (1,), (2,)))


@given(small_problems(), st.integers(0, 2**32 - 1))
def test_the_evaluator_is_the_sum_over_single_reads(problem, seed):
    rng = np.random.default_rng(seed)
    copies = (rng.random(problem.static.shape) < 0.4) & ~problem.static
    result = evaluate(problem, copies)
    assert result.cost == pytest.approx(slow_cost(problem, copies), rel=1e-12)
    assert result.overfull == tuple(np.flatnonzero(copies.sum(axis=1) > problem.capacity))


@given(small_problems(writes_too=False))
def test_one_more_copy_never_costs_reads(problem):
    for copies in itertools.islice(all_copies(problem), 20):
        free = np.argwhere(~copies & ~problem.static)
        for j, o in free[:3]:
            more = copies.copy()
            more[j, o] = True
            assert evaluate(problem, more).read_cost <= evaluate(problem, copies).read_cost + 1e-9


def test_bad_problems_are_named():
    geography = six_sites()
    static = np.zeros((6, 2), dtype=bool)
    static[0] = True
    reads = np.ones((6, 2))
    with pytest.raises(InputError, match="static"):
        ReplicationProblem(geography, np.zeros((6, 2)), reads, 1)
    for broken in (np.nan, -1.0, np.inf):
        bad = reads.copy()
        bad[1, 1] = broken
        with pytest.raises(InputError, match=r"\(1, 1\)"):
            ReplicationProblem(geography, static, bad, 1)
    with pytest.raises(InputError, match="whole"):
        ReplicationProblem(geography, static, reads, 1.5)
    with pytest.raises(InputError, match="capacity"):
        ReplicationProblem(geography, static, reads, -1)
    with pytest.raises(InputError, match="shape"):
        ReplicationProblem(geography, static[:, :0], reads[:, :0], 1)
    problem = ReplicationProblem(geography, static, reads, 1)
    with pytest.raises(InputError, match="static one"):
        evaluate(problem, static)


def test_a_plan_says_no_more_than_is_proven():
    static = np.zeros((6, 2), dtype=bool)
    static[0] = True
    problem = ReplicationProblem(six_sites(), static, np.ones((6, 2)), 1)
    cost = evaluate(problem, problem.none).cost
    assert ReplicationPlan.of(problem, problem.none, "x").status == "feasible"
    assert ReplicationPlan.of(problem, problem.none, "x", bound=cost).status == "optimal"
    with pytest.raises(SolverError, match="above the cost"):
        ReplicationPlan.of(problem, problem.none, "x", bound=cost * 1.001)
    with pytest.raises(SolverError, match="more copies than fit"):
        ReplicationPlan.of(problem, ~static, "x")


def test_the_ring_places_copies_as_a_walk_does():
    rng = np.random.default_rng(3)
    ring = random_ring(rng, 3, 4)
    keys = rng.random(50)
    static, holders, contacts = ring.static_nodes(keys), ring.holders(keys), ring.contacts(keys)
    for index, key in enumerate(keys):
        first = next((n for n in range(12) if ring.position[n] >= key), 0)
        walk = [(first + step) % 12 for step in range(12)]
        assert static[index].tolist() == walk[:3]
        for site in range(3):
            mine = [n for n in walk if ring.site[n] == site]
            assert holders[site, index] == mine[0]
            held = [n for n in walk[:3] if ring.site[n] == site]
            assert contacts[site, index] == (held or mine)[0]
            assert ring.static_sites(keys)[site, index] == bool(held)


def test_a_static_copy_is_local_in_42_5_per_cent():
    """Three successive nodes of 96 miss one site's 16 with (80·79·78)/(96·95·94)."""
    expected = 1 - 80 * 79 * 78 / (96 * 95 * 94)
    assert expected == pytest.approx(0.425, abs=5e-4)
    rng = np.random.default_rng(0)
    shares = [random_ring(rng, 6).static_sites(rng.random(200)).mean() for _ in range(200)]
    assert np.mean(shares) == pytest.approx(expected, abs=3 * np.std(shares) / np.sqrt(200))


def test_demand_is_zipf_on_the_keys_of_each_generator():
    world = hot_set_world(six_sites(), 50, spawn_streams(1, ("ring", "demand")), correlation=0.25)
    generators = world.generators
    chances = generators.probabilities()
    assert chances.sum(axis=1) == pytest.approx(1)
    assert chances[4, generators.order[4, 0]] >= 0.75 * zipf(50)[0]
    assert generators.reads(6).sum() == pytest.approx(1)
    after = generators.restarted(4, np.random.default_rng(0))
    assert (after.order[4] != generators.order[4]).any()
    assert (np.delete(after.order, 4, axis=0) == np.delete(generators.order, 4, axis=0)).all()

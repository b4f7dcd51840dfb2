"""Small worlds for tests: drawn, hand-worked, and brute force over all copies."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from placement.online import spawn_streams
from placement.online.dynamic import Geography, ReplicationProblem, hot_set_world, six_sites


def published_problem(seed, keys=500, capacity=20, correlation=1.0):
    streams = spawn_streams(seed, ("ring", "demand"))
    return hot_set_world(six_sites(), keys, streams, correlation=correlation).problem(capacity)


def two_sites(ireland, germany):
    """Two objects, static copies in California; only Ireland and Germany have room, for one."""
    static = np.zeros((6, 2), dtype=bool)
    static[0] = True
    reads = np.zeros((6, 2))
    reads[2], reads[3] = ireland, germany
    return ReplicationProblem(six_sites(), static, reads, [0, 0, 1, 1, 0, 0])


def triangle():
    """Three sites that each prefer themselves and the next, two objects, room for one copy each.

    The linear relaxation has half a copy of each object everywhere and serves every read nearby,
    which no whole copies do: two neighbours of an odd cycle must choose alike.
    """
    rtt = np.full((4, 4), 100.0)
    rtt[:3, :3] = 2.0
    np.fill_diagonal(rtt, 1.0)
    geography = Geography(("a", "b", "c", "far"), rtt, ((0, 1), (1, 2), (2, 0), (3,)))
    static = np.zeros((4, 2), dtype=bool)
    static[3] = True
    reads = np.ones((4, 2))
    reads[3] = 0
    return ReplicationProblem(geography, static, reads, 1)


@st.composite
def small_problems(draw, *, writes_too=True, sites=(1, 4), objects=(1, 4)):
    """Draw a problem small enough for brute force; zero reads and zero room occur."""
    count, things = draw(st.integers(*sites)), draw(st.integers(*objects))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rtt = rng.integers(5, 60, (count, count)).astype(float)
    if draw(st.booleans()):
        rtt = (rtt + rtt.T) / 2
    np.fill_diagonal(rtt, rng.integers(0, 4, count))
    limit = draw(st.sampled_from([0.0, 25.0, 100.0]))
    geography = Geography.within([f"s{i}" for i in range(count)], rtt, limit)
    static = rng.random((count, things)) < 0.35
    for column in static.T:
        column[rng.integers(count)] |= not column.any()
    reads = rng.integers(0, 9, (count, things)).astype(float)
    capacity = rng.integers(0, 3, count)
    writes = np.zeros((count, things))
    if writes_too and draw(st.booleans()):
        writes = rng.integers(0, 3, things) * rng.integers(0, 30, (count, things)).astype(float)
    return ReplicationProblem(geography, static, reads, capacity, writes)


def slow_cost(problem, copies):
    """The objective, read by read and write by write, written from the rules of the system."""
    geography, total = problem.geography, 0.0
    for o in range(problem.objects):
        static = [j for j in range(problem.sites) if problem.static[j, o]]
        held = static + [j for j in range(problem.sites) if copies[j, o]]
        for i in range(problem.sites):
            first = next((j for j in geography.preferred[i] if j in held), None)
            fallback = min(static, key=lambda j: geography.rtt[i, j])
            # the closest static copy may be closer than what the list has only at a tie
            serving = fallback if first is None else first
            total += problem.reads[i, o] * geography.rtt[i, serving]
        total += sum(problem.write_cost[j, o] for j in range(problem.sites) if copies[j, o])
    return total


def all_copies(problem):
    per_site = []
    for j in range(problem.sites):
        free = np.flatnonzero(~problem.static[j])
        sizes = range(min(int(problem.capacity[j]), len(free)) + 1)
        per_site.append([c for k in sizes for c in itertools.combinations(free.tolist(), k)])
    for choice in itertools.product(*per_site):
        copies = problem.none.copy()
        for j, things in enumerate(choice):
            copies[j, list(things)] = True
        yield copies


def brute_force(problem):
    return min(slow_cost(problem, copies) for copies in all_copies(problem))

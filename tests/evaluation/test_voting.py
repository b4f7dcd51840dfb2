"""Best voters of a leader against all voter sets there are, also where RTTs vary."""

from __future__ import annotations

import itertools
import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placement import Diversity, Instance, Problem
from placement.evaluation.least_total_wait import least_total_wait
from placement.evaluation.score import TIE
from placement.evaluation.voter_choice import (
    best_voters,
    best_voters_of_each,
    by_answer_time,
    greedy_voters,
    greedy_waits,
)
from placement.model.constraints import GroupRule, Rules
from placement.model.demand import Demand
from placement.model.site_families import SiteSubset
from tests import reference
from tests.strategies import ALL, NESTED, problems

VOTING = ALL - {"budget", "cost_weight", "replica_caps"}


def some_replicas(data: st.DataObject, problem: Problem) -> tuple[int, ...]:
    """R between the sites that must and those that may hold a replica."""
    must, may = problem.rules.must_hold, problem.rules.may_hold
    sizes = range(problem.rules.replicas_min, problem.rules.replicas_max + 1)
    needed = int(must.sum())
    free = np.nonzero(may & ~must)[0].tolist()
    possible = [n for n in sizes if needed <= n <= needed + len(free)]
    assume(possible)
    size = data.draw(st.sampled_from(possible))
    chosen = data.draw(st.permutations(free))[: size - needed]
    return tuple(sorted([*np.nonzero(must)[0].tolist(), *chosen]))


def total_wait(demand: Demand, leader: int, voters: tuple[int, ...], quorum: int) -> float:
    weights = demand.quorum.tolist() if demand.quorum.any() else [1.0] * demand.scenarios
    return sum(
        weight * sorted(rtt[leader][x] for x in voters)[quorum - 1]
        for weight, rtt in zip(weights, demand.site_rtt.tolist(), strict=True)
    )


def check_best_voters(problem: Problem, replicas: tuple[int, ...]) -> None:
    demand, rules = problem.demand, problem.rules
    for leader in replicas:
        admitted = [
            voters
            for voters in itertools.combinations(replicas, rules.voters)
            if reference.votes_obey(problem, leader, voters)
        ]
        found = best_voters(demand, rules, leader, replicas)
        if not admitted:
            assert found is None
            continue
        assert found is not None
        assert tuple(sorted(found)) in admitted
        waits = [total_wait(demand, leader, voters, rules.quorum) for voters in admitted]
        mine = total_wait(demand, leader, found, rules.quorum)
        assert mine <= min(waits) * (1 + TIE)
        assert found == by_answer_time(demand, leader, found)
        if demand.scenarios == 1:
            # Of those with this wait the closest: lowest ranks in the leader's order of sites.
            row = demand.site_rtt[0, leader].tolist()
            ranked = [sorted((row[x], x) for x in voters) for voters in admitted]
            best = min(r for r, w in zip(ranked, waits, strict=True) if w == min(waits))
            assert found == tuple(x for _, x in best)


@given(st.data(), problems(kinds=VOTING, min_sites=2))
def test_no_voters_are_better(data: st.DataObject, problem: Problem) -> None:
    check_best_voters(problem, some_replicas(data, problem))


@given(st.data(), problems(kinds=VOTING, min_sites=2))
def test_voters_of_many_leaders_are_those_of_each(data: st.DataObject, problem: Problem) -> None:
    """Sets of several sizes, leaders that may lead and that may not."""
    sites = len(problem.instance.sites)
    sets = data.draw(st.lists(st.sets(st.integers(0, sites - 1), min_size=1), max_size=5))
    leaders = [data.draw(st.sampled_from(sorted(chosen))) for chosen in sets]
    replicas = [tuple(chosen) for chosen in sets]
    assert best_voters_of_each(problem.demand, problem.rules, leaders, replicas) == [
        best_voters(problem.demand, problem.rules, leader, chosen)
        for leader, chosen in zip(leaders, replicas, strict=True)
    ]


@given(
    st.data(),
    problems(kinds={"crossing", "min_domains", "pinned_voters", "quorum"}, min_sites=5),
)
def test_no_voters_are_better_where_greedy_fails(data: st.DataObject, problem: Problem) -> None:
    check_best_voters(problem, some_replicas(data, problem))


@given(st.data(), problems(kinds={"varying_rtt"}, min_sites=5, min_kinds=1, writes=True))
def test_no_voters_are_better_when_rtts_vary(data: st.DataObject, problem: Problem) -> None:
    check_best_voters(problem, some_replicas(data, problem))


def test_voters_that_are_close_in_turn_beat_those_close_on_average() -> None:
    """Two of three votes: a answers after 1 and 9 ms, b after 9 and 1, c after 4 and 4.

    With a and b there is always an answer after 1: 2 in all. With c, the closest on average (8
    against 10), and either of them 1 + 4 = 5.
    """
    rtt = np.zeros((2, 4, 4))
    rtt[0, 0], rtt[1, 0] = [0, 1, 9, 4], [0, 9, 1, 4]
    instance = Instance(
        sites=["l", "a", "b", "c"],
        clients=["k"],
        client_rtt=np.ones((1, 4)),
        site_rtt=rtt,
        counts=np.array([[[0, 0, 0, 1, 0]], [[0, 0, 0, 1, 0]]]),
    )
    problem = Problem(instance, replicas=4, voters=3)
    assert best_voters(problem.demand, problem.rules, 0, [0, 1, 2, 3]) == (0, 1, 2)


@given(
    st.data(),
    problems(
        kinds={"nested_caps", "pinned_voters", "survive", "non_voters"}, min_sites=4, max_kinds=3
    ),
)
def test_no_voters_are_better_under_caps_and_pins(data: st.DataObject, problem: Problem) -> None:
    check_best_voters(problem, some_replicas(data, problem))


def test_greedy_takes_no_pin_for_granted() -> None:
    """Rules by hand: a pinned voter outside R, and more pins than voters, leave no voters."""
    anywhere = np.ones(4, dtype=bool)
    pinned = np.array([False, True, True, False])
    rules = Rules(
        replicas_min=2,
        replicas_max=4,
        voters=2,
        quorum=2,
        may_hold=anywhere,
        must_hold=pinned,
        may_vote=anywhere,
        must_vote=pinned,
        may_lead=anywhere,
    )
    rtt = 1 - np.eye(4)
    leaders, rows = np.array([1, 1, 0]), np.array([[0, 1, 2], [0, 1, 3], [0, 1, 2]])
    assert greedy_waits(rules, rtt, leaders, rows).tolist() == [1.0, np.inf, np.inf]
    _, found = greedy_voters(rules, rtt, leaders[2:], rows[2:])
    assert not found[0]  # leader 0 and two pins are three


@given(st.data(), problems(kinds=NESTED, min_sites=3, max_sites=9, max_kinds=5))
def test_greedy_for_many_pairs_is_greedy_for_one(data: st.DataObject, problem: Problem) -> None:
    rules, rtt = problem.rules, problem.instance.site_rtt
    assert rules.nested_voter_caps
    size = rules.replicas_max
    allowed = np.nonzero(rules.may_hold)[0].tolist()
    assume(len(allowed) >= size)
    pairs = [
        (leader, replicas)
        for replicas in itertools.combinations(allowed, size)
        for leader in replicas
    ]
    leaders = np.array([leader for leader, _ in pairs])
    rows = np.array([replicas for _, replicas in pairs])
    waits = greedy_waits(rules, rtt, leaders, rows)
    voters, found = greedy_voters(rules, rtt, leaders, rows)
    for i in range(0, len(pairs), data.draw(st.integers(1, 7))):
        leader, replicas = pairs[i]
        best = best_voters(problem.demand, rules, leader, replicas)
        assert np.isfinite(waits[i]) == (best is not None)
        if best is not None:
            assert found[i]
            assert tuple(voters[i].tolist()) == best
            assert waits[i] == sorted(rtt[leader, list(best)])[rules.quorum - 1]


def test_greedy_is_not_exact_where_levels_cross() -> None:
    """Why crossing levels need a search: from the leader l, sites a, b, c answer after 1, 2, 3.

    Providers: l P, a Q, b R, c Q; regions: l X, a Y, b Y, c Z. Three voters, one per provider and
    per region. Closest first takes a, whose region then shuts b out and whose provider c: stuck.
    The only set is {l, b, c}, with b's answer at 2 as the majority.
    """
    rtt = np.array([[0, 1, 2, 3], [1, 0, 1, 1], [2, 1, 0, 1], [3, 1, 1, 0]], dtype=float)
    instance = Instance(
        sites=["l", "a", "b", "c"],
        clients=["k"],
        client_rtt=[[0, 1, 2, 3]],
        site_rtt=rtt,
        counts=[[0, 0, 0, 1, 0]],
        domains={"provider": ["P", "Q", "R", "Q"], "region": ["X", "Y", "Y", "Z"]},
    )
    rules = [Diversity("provider"), Diversity("region")]
    problem = Problem(instance, replicas=["l", "a", "b", "c"], voters=3, diversity=rules)
    assert not problem.rules.nested_voter_caps
    assert best_voters(problem.demand, problem.rules, 0, [0, 1, 2, 3]) == (0, 2, 3)
    _, found = greedy_voters(problem.rules, rtt, np.array([0]), np.array([[0, 1, 2, 3]]))
    assert not found[0]


def enumerated(waits, weights, quorum, choice):
    """The first set of least total wait, in the order of the choice."""
    best, found = math.inf, None
    for voters in combinations(choice.order, choice.size):
        if not choice.pinned <= set(voters):
            continue
        obeyed = True
        for group in choice.groups:
            held = np.bincount(group.labels[list(voters)], minlength=len(group.names))
            obeyed &= group.cap is None or held.max() <= group.cap
            obeyed &= group.min_domains is None or (held > 0).sum() >= group.min_domains
        if not obeyed:
            continue
        total = sum(
            w * sorted(row[list(voters)])[quorum - 1] for w, row in zip(weights, waits, strict=True)
        )
        if total < best * (1 - TIE) or found is None:
            best, found = total, voters
    return best, found


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_it_equals_enumeration(data, seed):
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(1, 9))
    scenarios = int(rng.integers(2, 5))
    high = data.draw(st.sampled_from([2, 4, 100]))  # few values: many ties
    waits = rng.integers(0, high, (scenarios, sites)).astype(float)
    leader = int(rng.integers(sites))
    waits[:, leader] = 0
    weights = rng.integers(0, 4, scenarios).astype(float)
    if not weights.any():
        weights[:] = 1
    size = int(rng.integers(1, sites + 1))
    quorum = int(rng.integers(1, size + 1))
    groups = []
    if data.draw(st.booleans()):
        names = tuple("abc")[: int(rng.integers(1, 4))]
        labels = rng.integers(0, len(names), sites)
        cap = None if data.draw(st.booleans()) else int(rng.integers(1, 4))
        fewest = None if cap is not None and data.draw(st.booleans()) else 1
        groups = [GroupRule("voters", "level", labels, names, cap, fewest, "a rule")]
    pinned = {leader, *rng.choice(sites, int(rng.integers(0, 2)), replace=False).tolist()}
    order = sorted(range(sites), key=lambda s: (float(weights @ waits[:, s]), s))
    choice = SiteSubset(order, size, frozenset(pinned), groups)
    best, expected = enumerated(waits, weights, quorum, choice)
    found = least_total_wait(waits, weights, quorum, choice)
    if expected is None:
        assert found is None
        return
    assert found is not None
    value = sum(
        w * sorted(row[list(found)])[quorum - 1] for w, row in zip(weights, waits, strict=True)
    )
    assert value == pytest.approx(best, rel=1e-12, abs=1e-12)
    if high == 100:
        assert found == expected

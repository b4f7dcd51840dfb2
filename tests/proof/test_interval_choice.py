"""The search for sites near the leader where RTTs vary by interval: against every set of sites."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from placement import load, solve
from placement.evaluation.waits.wait_floors import wait_order
from placement.model.constraints import Rules
from placement.problem import Problem
from placement.proof.choice.site_choice import IntervalChoice
from placement.proof.choice.sorted_sites import SortedSites
from placement.proof.claim import Claim
from placement.testing.small_worlds import random_instance
from tests.effort import seeds

pytestmark = pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning")


def _nothing(steps: int) -> None:
    del steps


def _rules(may_vote: np.ndarray, voters: int, quorum: int) -> Rules:
    every = np.ones(len(may_vote), dtype=bool)
    return Rules(
        replicas_min=voters,
        replicas_max=len(may_vote),
        voters=voters,
        quorum=quorum,
        may_hold=every,
        must_hold=~every,
        may_vote=may_vote,
        must_vote=~every,
        may_lead=may_vote,
        groups=(),
    )


def _sum_of_waits(waits: np.ndarray, voters: tuple[int, ...], quorum: int) -> int:
    return int(np.sort(waits[:, list(voters)], axis=1)[:, quorum - 1].sum())


@pytest.mark.parametrize("block", seeds(1, 20))
def test_decides_as_every_set_of_sites_does(block: int) -> None:
    """Exactly where all may vote at once; else never above the least over replicas and voters."""
    proved = 0
    for seed in range(60 * block, 60 * block + 60):
        rng = np.random.default_rng([seed, 5])
        scenarios, sites = int(rng.integers(1, 5)), int(rng.integers(3, 8))
        largest = int(rng.choice([4, 50]))
        waits = rng.integers(0, largest, (scenarios, sites))
        waits[:, 0] = 0  # the leader
        rho = rng.integers(-largest, largest, sites).tolist()
        may_vote = rng.random(sites) < 0.85
        may_vote[0] = True
        inside = frozenset({0, *rng.choice(sites, int(rng.integers(0, 2))).tolist()})
        free = [s for s in range(sites) if s not in inside and rng.random() < 0.9]
        low = int(rng.integers(0, len(free) + 1))
        sizes = range(low, int(rng.integers(low, len(free) + 1)) + 1)
        quorum = int(rng.integers(1, 4))
        voters = int(rng.integers(quorum, quorum + 3))
        least_of_all, least = np.inf, np.inf
        for size in sizes:
            for more in itertools.combinations(free, size):
                able = tuple(s for s in sorted({*inside, *more}) if may_vote[s])
                price = sum(rho[s] for s in more)
                if len(able) >= quorum:
                    least_of_all = min(least_of_all, price + _sum_of_waits(waits, able, quorum))
                others = [s for s in able if s]
                for chosen in itertools.combinations(others, voters - 1):
                    least = min(least, price + _sum_of_waits(waits, (0, *chosen), quorum))
        ordered = SortedSites(inside, free, rho)
        few = IntervalChoice(_rules(may_vote, voters, quorum), waits, waits)
        every = IntervalChoice(_rules(may_vote, sites + 9, quorum), waits, waits)
        for wanted in range(-4 * largest, 6 * largest, max(1, largest // 4)):
            assert every.is_open(wanted, ordered, sizes, _nothing) == (least_of_all < wanted), seed
            if not few.is_open(wanted, ordered, sizes, _nothing):
                assert least >= wanted, seed
                proved += least_of_all < wanted
    assert proved  # that not all near sites can vote says more


def test_no_site_serves_every_interval() -> None:
    """A leader and two sites, each near in one interval: one of them waits 10, both wait 2."""
    waits = np.array([[0, 1, 9], [0, 9, 1]])
    ordered = SortedSites({0}, [1, 2], [0, 5, 5])
    choice = IntervalChoice(_rules(np.ones(3, dtype=bool), 3, 2), waits, waits)
    assert not choice.is_open(12, ordered, range(1, 3), _nothing)  # 2 + 5 + 5
    assert choice.is_open(13, ordered, range(1, 3), _nothing)
    assert not choice.is_open(15, ordered, range(1, 2), _nothing)  # 10 + 5
    assert choice.is_open(16, ordered, range(1, 2), _nothing)
    two = IntervalChoice(_rules(np.ones(3, dtype=bool), 2, 2), waits, waits)
    assert not two.is_open(20, ordered, range(2, 3), _nothing)  # one of the sites has no vote
    assert two.is_open(21, ordered, range(2, 3), _nothing)


def test_floors_of_the_sites_that_are_left_never_exceed_the_wait_of_voters_among_them() -> None:
    rng, raised = np.random.default_rng(2), 0
    for seed in range(30):
        instance = random_instance(seed, sites=6, clients=3, intervals=3, varying=True)
        claim = Claim(Problem(instance, replicas=4, voters=3), 1.0, 0.0)
        leader = int(rng.integers(6))
        waits = np.rint(claim.quorum[:, np.newaxis] * claim.scenario_rtt[:, leader]).astype(int)
        outside = [s for s in range(6) if s != leader and rng.random() < 0.4]
        order = wait_order(claim.scenario_rtt[:, leader], claim.quorum).tolist()
        place = {site: at for at, site in enumerate(order)}
        floors = claim.floor_costs(waits, leader, outside)
        assert floors == sorted(floors)
        raised += floors != claim.floor_costs(waits, leader)
        left = [s for s in range(6) if s not in outside]
        for voters in itertools.combinations(left, 3):
            wait = _sum_of_waits(waits, voters, claim.rules.quorum)
            assert sorted(floors[place[v]] for v in voters)[claim.rules.quorum - 1] <= wait
    assert raised


def test_a_bound_of_the_waits_leaves_few_parts() -> None:
    """Floors of the waits alone took 397 nodes: 3 % of the wait were missing everywhere."""
    plain = load("aws", mix="sessions")
    rng = np.random.default_rng(1)
    client_rtt, site_rtt = (
        np.round(rtt * rng.uniform(0.8, 1.2, (3, *rtt.shape)), 1)
        for rtt in (plain.client_rtt, plain.site_rtt)
    )
    instance = plain.replace(
        client_rtt=client_rtt,
        site_rtt=site_rtt,
        counts=np.repeat(plain.counts.sum(axis=0)[np.newaxis] / 3, 3, axis=0),
        intervals=("1", "2", "3"),
    )
    plan = solve(Problem(instance, replicas=7, voters=5))
    assert plan.status.value == "optimal"
    assert plan.stats["nodes"] < 200

"""The quick form of the checker: rounded down, never wrapped around, below the exact form."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from placement.proof.choice.site_choice import SiteChoice
from placement.proof.claim import Claim, finest_bit
from placement.proof.costs import cheap_pairs
from placement.proof.costs.exact_costs import ExactCosts
from placement.proof.costs.multipliers import Betas
from placement.proof.costs.rounded_costs import RoundedCosts
from placement.proof.leader_proof import LeaderProof
from placement.proof.start_bounds import closed_at_once
from placement.support.work import Work
from tests.effort import examples
from tests.proof.random_states import betas, multipliers, state_of, transfers
from tests.proof.test_checker import TAKEN, plain
from tests.strategies import problems

pytestmark = pytest.mark.usefixtures("loops")


def by_hand(costs, inside, free, u, beta, less):
    """L and ρ from the rounded data, one client and site at a time, in Python's integers."""
    grid, rank = costs.grid, costs.rank.tolist()
    entries = {}
    for row, site, value in zip(beta.rows, beta.sites, beta.values, strict=True):
        client = int(beta.clients[row])
        entries.setdefault(client, {})[int(site)] = math.floor(grid.scaled(value))
    rho = [int(p) for p in costs.price]
    constant = costs.constant + sum(rho[s] for s in inside)
    for c, row in enumerate(rank):
        listed = entries.get(c, {})
        multiplier = math.floor(grid.scaled(u[c]))
        order = sorted(range(len(row)), key=row.__getitem__)
        home = next((j for j in order if j in inside), None)
        ahead = order if home is None else order[: row[home]]

        def cost(j, c=c):
            both = grid.near_costs[c, j] + costs.relay[c] * costs.to_leader[costs.scenario[c], j]
            return int(both * (1 - 2.0**-51))

        if less in listed and less in ahead:
            multiplier = max(0, multiplier - listed[less])
        before = 0
        for j in ahead:
            own = listed.get(j, 0) if j in free else 0
            rho[j] += own + min(0, cost(j) + before - multiplier)
            before += own
        served = multiplier if home is None else min(multiplier, cost(home) + before)
        constant += served - before
    return constant, rho


def drawn_claim(problem, seed):
    rng, claim = np.random.default_rng(seed), Claim(problem, 1.0, 0.0)
    sites = len(problem.instance.sites)
    return rng, claim, sites, int(rng.integers(sites)) if claim.leader_matters else None


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_rounded_bounds_are_below_the_exact_ones_and_nothing_wraps_around(problem, seed):
    rng, claim, sites, leader = drawn_claim(problem, seed)
    choice = SiteChoice(
        problem.rules, leader, None if leader is None else claim.wait_places(leader)
    )
    exact = ExactCosts(claim, leader, choice.radii)
    rounded = RoundedCosts(claim, leader, choice.radii)
    inside, free = state_of(rng, sites)
    beta = betas(rng, claim, sites)
    u = multipliers(rng, claim)
    less = free[0] if free and rng.random() < 0.5 else None
    assume(rounded.fits(u, beta))
    fixed, rho = rounded.evaluation(inside, free, u, beta, less)
    assert (fixed, [rho[j] for j in free]) == (
        (found := by_hand(rounded, inside, free, u, beta, less))[0],
        [found[1][j] for j in free],
    )
    shift = claim.bits - rounded.grid.shift
    assert shift >= 0
    pairs = np.indices(claim.rank.shape)
    whole = rounded._costs(pairs[0], pairs[1]).astype(object)
    assert ((whole << shift) <= exact._whole_costs(slice(None))).all()
    assert ((rounded.price.astype(object) << shift) <= exact.price).all()
    assert rounded.constant << shift <= exact.constant
    for low, high in zip(rounded.radius_costs, exact.radius_costs, strict=True):
        assert low << shift <= high
    if inside:
        held = sorted(inside)
        assert rounded.reads(held) << shift <= exact.reads(held)
    assert (rounded.needed - 1) << shift < claim.needed <= rounded.needed << shift


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_lists_of_pairs_serve_a_walk_through_states(problem, seed):
    """Lists that were made for a state, for multipliers or for β serve later ones, or are left."""
    rng, claim, sites, leader = drawn_claim(problem, seed)
    rounded = RoundedCosts(claim, leader, np.zeros(1))
    known = betas(rng, claim, sites)
    inside, free = state_of(rng, sites)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cheap_pairs, "_NARROW", 1)  # a list of its own for each state
        for _ in range(8):
            if inside and rng.random() < 0.3:  # from a branch with a site to the one without
                inside = {*sorted(inside)[1:]}
            elif free and rng.random() < 0.6:  # on from the state before
                chosen = free[int(rng.integers(len(free)))]
                free = [s for s in free if s != chosen]
                if rng.random() < 0.5:
                    inside = {*inside, chosen}
            elif rng.random() < 0.5:
                inside, free = state_of(rng, sites)
            beta = known if rng.random() < 0.6 else betas(rng, claim, sites)
            u = multipliers(rng, claim) * rng.choice([0.5, 1.0, 2.0])
            less = free[0] if free and rng.random() < 0.5 else None
            if not rounded.fits(u, beta):
                continue
            fixed, rho = rounded.evaluation(inside, free, u, beta, less)
            by_pairs, sums = by_hand(rounded, inside, free, u, beta, less)
            assert (fixed, [rho[j] for j in free]) == (by_pairs, [sums[j] for j in free])


def first_bound(claim, leader, u):
    """L of the state that holds a leader alone, Z by trying every set of other sites."""
    rules = claim.rules
    waits = claim.wait_places(leader)
    costs = RoundedCosts(claim, leader, np.unique(waits))
    free = [s for s in np.flatnonzero(rules.may_hold).tolist() if s != leader]
    fixed, rho = by_hand(costs, {leader}, free, u, Betas(), None)
    quorum = int(claim.rounded.quorum[0] * waits.max() * (1 - 2.0**-51)) > 0
    least = math.inf
    for size in range(rules.replicas_max):
        for chosen in itertools.combinations(free, size):
            near = sorted(waits[s] for s in chosen if rules.may_vote[s])[: rules.quorum - 1]
            if len(near) == rules.quorum - 1:
                wait = near[-1] if near and quorum else 0.0
                paid = int(claim.rounded.quorum[0] * wait * (1 - 2.0**-51))
                least = min(least, paid + sum(rho[s] for s in chosen))
    return fixed + least


@settings(max_examples=examples(1000, 60))
@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_leaders_are_closed_at_once_up_to_their_first_bound(loops, problem, seed):
    rng = np.random.default_rng(seed)
    claim = Claim(problem, 1.0, 0.0)
    assume(not claim.varies and not claim.by_cases)
    leaders = np.flatnonzero(problem.rules.may_lead).tolist()
    at_leader = claim.near * claim.client_rtt[claim.clients][:, leaders].T
    rows = list(at_leader * rng.uniform(0.3, 1.0, at_leader.shape))
    proofs = [(s, {"events": [["close", u.tolist()]]}) for s, u in zip(leaders, rows, strict=True)]
    for at, (leader, u) in enumerate(zip(leaders, rows, strict=True)):
        value = first_bound(claim, leader, u)
        if not 2**25 < value < math.inf:
            continue
        bound = math.ldexp(value, -claim.rounded.shift)
        for factor, holds in ((1 - 1e-6, loops == "compiled"), (1 + 1e-6, False)):
            claimed = Claim(problem, bound * factor, 0.0)
            closed = closed_at_once(claimed, proofs, (), Work(10**9))
            assert closed[at] <= holds
            assert closed[at] or not holds or claim.price(leader).any()  # a price may be left out
            for one, done in zip(proofs, closed.tolist(), strict=True):
                if done:
                    LeaderProof(claimed, one[0], Work(10**9)).replay(one[1]["events"])


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_the_loops_are_those_that_are_asked_for(loops, problem, seed):
    rng = np.random.default_rng(seed)
    claim = Claim(problem, 1.0, 0.0)
    rounded = RoundedCosts(claim, 0, np.zeros(1))
    u = multipliers(rng, claim)
    assume(rounded.fits(u, Betas()))
    rounded.evaluation([0], [], u, Betas())
    assert bool(rounded._lists) == (loops == "compiled")


def test_the_compiled_loops_refuse_arrays_that_do_not_fit():
    compiled = pytest.importorskip("placement.proof._pair_sums")
    rank = np.array([[0, 1], [1, 0], [0, 1]], dtype=np.int16)
    costs = np.array([[5, 9], [9, 5], [5, 30]])
    limits = np.array([8, 10, 40])
    pairs = compiled.list_table((3, 2, 2), rank, limits, costs)
    assert compiled.count(pairs) == 5
    first, free = np.full(3, 2, dtype=np.int32), np.ones(2, dtype=bool)
    none, prefix, totals = (
        np.zeros(4, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(2, int),
    )
    given_arrays = [pairs, limits, first, free, 0, none, prefix, totals]
    assert compiled.savings(*given_arrays) == 5
    assert totals.tolist() == [-3 - 1 - 35, -5 - 10]
    for at, wrong in (
        (0, None), (1, limits[:2]), (2, first.astype(np.int64)), (3, free[:1]), (4, -1), (4, 2),
        (5, none[:3]), (5, np.array([0, 2, 1, 0])), (6, none), (7, totals[:1]),
    ):  # fmt: skip
        changed = [*given_arrays[:at], wrong, *given_arrays[at + 1 :]]
        with pytest.raises((ValueError, TypeError, BufferError)):
            compiled.savings(*changed)
    for sizes in ((3, 3, 2), (-1, 2, 2), (3, 0, 2), (2**30, 2**30, 2)):
        with pytest.raises(ValueError, match=r"bytes|range"):
            compiled.list_table(sizes, rank, limits, costs)
    with pytest.raises(ValueError, match="scenario"):
        compiled.list_sums(
            (3, 2, 2, 1), 1.0, rank, limits, costs * 1.0, np.zeros(3), np.zeros((1, 2)),
            np.array([0, 1, 0], dtype=np.int32),
        )  # fmt: skip
    with pytest.raises(ValueError, match="leader"):
        compiled.start_sums(
            (3, 2, 2, 2), 1.0, rank, limits, costs * 1.0, np.zeros(3), np.zeros(2), totals
        )
    with pytest.raises(ValueError, match="fit"):
        compiled.place_entries(pairs, 1, np.array([0, 2, 2, 1]), np.zeros(1, dtype=np.int32))
    with pytest.raises(ValueError, match="bytes"):
        compiled.narrow(pairs, first, free[:1])


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ([0, 0, -1.0], ValueError), ([0, 0, math.nan], ValueError), ([0, 0, math.inf], ValueError),
        ([5, 0, 1.0], ValueError), ([0, 7, 1.0], ValueError), ([-1, 0, 1.0], ValueError),
        ([0, 0], ValueError), ([0, 0, 1.0, 1.0], ValueError), ([0.0, 0, 1.0], TypeError),
        ([0, "0", 1.0], TypeError), ([0, 0, "1"], TypeError), ([0, 0, None], TypeError),
        ([2**70, 0, 1.0], OverflowError),
    ],
)  # fmt: skip
def test_multipliers_that_are_none_are_refused(entry, error):
    with pytest.raises(error):
        Betas.read([[0, 0, 1.0], entry], 5, 7)


def test_of_multipliers_given_twice_the_last_one_counts():
    read = Betas.read([[3, 1, 2.0], [0, 4, 1.0], [2, 1, 7.0], [3, 1, 5.0]], 5, 7)
    assert read.clients.tolist() == [1, 4]
    assert read.rows.tolist() == [0, 0, 1]
    assert read.sites.tolist() == [2, 3, 0]
    assert read.values.tolist() == [7.0, 5.0, 1.0]
    assert not len(Betas().clients)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 3e-320, 5e-324, 2.0**80, 1e18, 1 / 3, 2**-40])
def test_the_finest_bit(value):
    assert finest_bit(np.array([0.0, value])) == value.as_integer_ratio()[1].bit_length() - 1


@pytest.mark.parametrize("value", [2.0**63, -(2.0**63), 1e30, -1e30, 1e308, -1e308])
def test_multipliers_beyond_the_grid_have_no_rounded_form(value):
    claim = Claim(plain(), 1.0, 0.0)
    rounded = RoundedCosts(claim, 0, np.unique(claim.site_rtt[0]))
    u = np.zeros(len(claim.clients))
    assert rounded.fits(u, Betas())
    u[-1] = value
    assert not rounded.fits(u, Betas())
    if value > 0:
        assert not rounded.fits(u * 0, Betas([(0, 0, value), (1, 0, 0.0)]))


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_rounded_bounds_after_transfers_are_below_the_exact_ones(problem, seed):
    rng, claim, sites, leader = drawn_claim(problem, seed)
    radii, moved = np.zeros(1), transfers(rng, claim, sites)
    rounded = RoundedCosts(claim, leader, radii).after(moved)
    exact = ExactCosts(claim, leader, radii).after(moved)
    inside, free = state_of(rng, sites)
    grid, drawn = claim.rounded, betas(rng, claim, sites)
    u = np.ldexp(np.floor(grid.scaled(multipliers(rng, claim))), -grid.shift)  # else two bounds
    values = np.ldexp(np.floor(grid.scaled(drawn.values)), -grid.shift)
    owners = drawn.clients[drawn.rows]
    beta = Betas(zip(drawn.sites.tolist(), owners.tolist(), values.tolist(), strict=True))
    assume(rounded is not None and rounded.fits(u, beta))
    low, sums = rounded.evaluation(inside, free, u, beta)
    high, exact_sums = exact.evaluation(inside, free, u, beta)
    shift = claim.bits - rounded.grid.shift
    assert low << shift <= high
    assert all(sums[j] << shift <= exact_sums[j] for j in free)

"""The quick form of the checker: rounded down, never wrapped around, same verdicts as the exact."""

import copy
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from placement.errors import CertificateError, LimitError
from placement.proof import cheap_pairs, rounded_costs
from placement.proof.certificate_check import check_certificate
from placement.proof.claim import Claim, finest_bit
from placement.proof.compiled_pairs import CompiledPairs, compiled_sums
from placement.proof.exact_costs import ExactCosts
from placement.proof.multipliers import Betas, CostTransfers
from placement.proof.rounded_costs import RoundedCosts
from placement.proof.site_choice import SiteChoice, SortedSites
from placement.status import Status
from placement.testing import optimum
from tests.effort import examples
from tests.proof.test_checker import (
    MUTATIONS,
    TAKEN,
    certified,
    certified_problems,
    mutate,
    plain,
    solve,
    with_certificate,
)
from tests.strategies import problems


@pytest.fixture(params=["compiled", "numpy"], autouse=True, scope="module")
def loops(request):
    """Sum by the compiled loops, and by NumPy as where no compiler was at hand."""
    if request.param == "compiled":
        if compiled_sums() is None:
            pytest.skip("no compiled loops here")
        yield request.param
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounded_costs, "compiled_sums", lambda: None)
        yield request.param


# --- the bound -----------------------------------------------------------------------------------


def state_of(rng, sites):
    """Some sites inside, the free ones, and multipliers from harmless to hostile."""
    kind = rng.integers(0, 3, sites)
    inside = set(np.nonzero(kind == 0)[0][:3].tolist())
    free = [s for s in range(sites) if s not in inside and kind[s] < 2]
    return inside, free


def multipliers(rng, claim):
    """Random u of the size of the costs, some of them as large as the grid allows, or negative."""
    near = claim.near * claim.client_rtt[claim.clients].mean(axis=1)
    u = near * rng.uniform(0, 2, len(near))
    total = math.ldexp(claim.rounded.total, -claim.rounded.shift)
    wild = rng.random(len(u)) < 0.2
    u = np.where(wild, rng.choice([-1.0, 1.0, 5e-324], len(u)) * total, u)
    return u * min(1.0, 1.5 * total / max(float(np.abs(u).sum()), 5e-324))


def transfers(rng, claim, sites):
    """Random transfers of whole amounts on the grid, together no more than it takes."""
    clients, grid = len(claim.clients), claim.rounded
    entries = []
    for _ in range(int(rng.integers(0, 6)) if clients else 0):
        giver, site, taker = rng.integers(clients), rng.integers(sites), rng.integers(clients)
        amount = np.ldexp(np.floor(rng.uniform(0, 0.15) * grid.total), -grid.shift)
        entries.append((int(giver), int(site), int(taker), float(amount)))
    return CostTransfers(entries, sites, clients)


def betas(rng, claim, sites):
    count = int(rng.integers(0, 6))
    if not len(claim.clients):
        return Betas()
    scale = float(np.mean(claim.near * claim.client_rtt[claim.clients].mean(axis=1)))
    return Betas(
        (
            int(rng.integers(sites)),
            int(rng.integers(len(claim.clients))),
            float(scale * rng.uniform(0, 1)),
        )
        for _ in range(count)
    )


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


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_rounded_bounds_are_below_the_exact_ones_and_nothing_wraps_around(problem, seed):
    rng = np.random.default_rng(seed)
    claim = Claim(problem, 1.0, 0.0)
    sites = len(problem.instance.sites)
    leader = int(rng.integers(sites)) if claim.leader_matters else None
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
    assert ((whole << shift) <= exact.w).all()
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
    rng = np.random.default_rng(seed)
    claim = Claim(problem, 1.0, 0.0)
    sites = len(problem.instance.sites)
    leader = int(rng.integers(sites)) if claim.leader_matters else None
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


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_the_loops_are_those_that_are_asked_for(loops, problem, seed):
    rng = np.random.default_rng(seed)
    claim = Claim(problem, 1.0, 0.0)
    rounded = RoundedCosts(claim, 0, np.zeros(1))
    u = multipliers(rng, claim)
    assume(rounded.fits(u, Betas()))
    rounded.evaluation([0], [], u, Betas())
    assert isinstance(rounded._lists[0], CompiledPairs) == (loops == "compiled")


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
    """They would wrap around in 64 bits."""
    claim = Claim(plain(), 1.0, 0.0)
    rounded = RoundedCosts(claim, 0, np.unique(claim.site_rtt[0]))
    u = np.zeros(len(claim.clients))
    assert rounded.fits(u, Betas())
    u[-1] = value
    assert not rounded.fits(u, Betas())
    if value > 0:
        assert not rounded.fits(u * 0, Betas([(0, 0, value), (1, 0, 0.0)]))


# --- the inner problem ---------------------------------------------------------------------------


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_rounded_bounds_after_transfers_are_below_the_exact_ones(problem, seed):
    rng = np.random.default_rng(seed)
    claim = Claim(problem, 1.0, 0.0)
    sites = len(problem.instance.sites)
    leader = int(rng.integers(sites)) if claim.leader_matters else None
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


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_the_least_sum_by_places_is_that_of_the_greedy(problem, seed):
    """Without rules for voters the radii are valued from sums of prefixes."""
    rng = np.random.default_rng(seed)
    sites = len(problem.instance.sites)
    leader = int(rng.integers(sites))
    choice = SiteChoice(problem.rules, leader, rng.integers(0, 4, sites).astype(float))
    inside = {leader, *np.nonzero(problem.rules.must_hold)[0].tolist()}
    free = [s for s in range(sites) if s not in inside and rng.random() < 0.8]
    if choice._rules_votes or choice._sizes(len(inside))[1] < 0:
        return
    rho = rng.integers(-5, 4, sites).tolist()
    ordered = SortedSites(inside, free, rho)
    for site in (None, *free):
        for put_in in (None,) if site is None else (None, site):
            held = inside if put_in is None else inside | {put_in}
            last = len(choice.radii) - 1
            for radius in (None, *range(len(choice.radii))):
                within, wanted = radius, problem.rules.quorum
                if within is None:  # all voters, at any distance
                    within, wanted = last, problem.rules.voters
                greedy = choice._cheapest_with_family(
                    ordered, held, site, within, wanted, choice._unruled
                )
                quick = choice._cheapest_by_places(ordered, held, put_in, site, radius)
                assert quick == greedy


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_the_least_sum_without_rules_for_replicas_is_that_of_enumeration(problem, seed):
    rng = np.random.default_rng(seed)
    sites = len(problem.instance.sites)
    choice = SiteChoice(problem.rules, None, None)
    inside = {*np.nonzero(problem.rules.must_hold)[0].tolist()}
    free = [s for s in range(sites) if s not in inside and rng.random() < 0.8]
    if choice._families:
        return
    rho = rng.integers(-5, 4, sites).tolist()
    ordered = SortedSites(inside, free, rho)
    for site in (None, *free):
        left = [s for s in free if s != site]
        sums = [
            sum(rho[s] for s in more)
            for size in choice.sizes_of(len(inside), len(left))
            for more in itertools.combinations(left, size)
        ]
        assert choice._cheapest_under_rules(ordered, inside, site) == min(sums, default=None)


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_what_a_fixed_site_must_reach_is_the_least_over_the_sets_with_or_without_it(problem, seed):
    """Radii that reach the claim before a site is fixed reach it after."""
    rng = np.random.default_rng(seed)
    sites = len(problem.instance.sites)
    leader = int(rng.integers(sites))
    choice = SiteChoice(problem.rules, leader, rng.integers(0, 4, sites).astype(float))
    inside = {leader, *np.nonzero(problem.rules.must_hold)[0].tolist()}
    free = [s for s in range(sites) if s not in inside and rng.random() < 0.8]
    rho = rng.integers(-9, 9, sites).tolist()
    costs = np.sort(rng.integers(0, 9, len(choice.radii))).tolist()
    ordered = SortedSites(inside, free, rho)
    wanted = int(rng.integers(-20, 20))
    radii = choice.open_radii(wanted, ordered, costs)
    for site in free:
        others = [s for s in free if s != site]
        without = choice.open_radii(wanted, ordered, costs, left_out=site, radii=radii)
        assert without == choice.open_radii(wanted, SortedSites(inside, others, rho), costs)
        least = wanted - rho[site]
        with_it = choice.open_radii(least, ordered, costs, put_in=site, radii=radii)
        more = SortedSites(inside | {site}, others, rho)
        assert with_it == choice.open_radii(least, more, costs)


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_one_evaluation_never_proves_more_of_a_fixed_site_than_enumeration(problem, seed):
    """Both cases of every free site, against the best set of replicas with it and without it."""
    rng = np.random.default_rng(seed)
    claim = Claim(problem, 1.0, 0.0)
    sites = len(problem.instance.sites)
    leader = int(rng.integers(sites)) if claim.leader_matters else None
    asks = leader is not None and problem.rules.quorum > 1 and claim.quorum.any()
    choice = SiteChoice(problem.rules, leader, claim.wait_places(leader) if asks else None)
    costs = ExactCosts(claim, leader, choice.radii)
    inside = {*np.nonzero(problem.rules.must_hold)[0].tolist()} | ({leader} - {None})
    free = [s for s in range(sites) if s not in inside and problem.rules.may_hold[s]]
    values = {}
    for size in choice.sizes_of(len(inside), len(free)):
        for more in itertools.combinations(free, size):
            replicas = sorted({*inside, *more})
            cost = choice.radius_cost(replicas, costs.radius_costs)
            if replicas and cost is not None:
                values[more] = costs.reads(replicas) + cost
    u, beta = multipliers(rng, claim), betas(rng, claim, sites)
    fixed, rho = costs.after(transfers(rng, claim, sites)).evaluation(inside, free, u, beta)
    ordered = SortedSites(inside, free, rho)
    for site in free:
        for with_it in (True, False):
            found = [value for more, value in values.items() if (site in more) == with_it]
            if not found:
                continue
            wanted = min(found) + 1 - fixed
            if with_it:
                below = choice.open_radii(
                    wanted - rho[site], ordered, costs.radius_costs, put_in=site
                )
            else:
                below = choice.open_radii(wanted, ordered, costs.radius_costs, left_out=site)
            assert below


# --- verdicts ------------------------------------------------------------------------------------

KINDS = (*MUTATIONS, "raise a little", "move beta", "wild multiplier", "beta of all")


def prepared(plan, kind, rng):
    """A certificate with events of the kind that is to be mutated, where the search used none."""
    c = copy.deepcopy(dict(plan.certificate))
    sites, clients = len(plan.problem.instance.sites), len(c["clients"])
    for proof in c["proofs"]:
        if [e[0] for e in proof["events"]] == ["close"]:
            (close,) = proof["events"]
            site = (proof["leader"] + int(rng.integers(1, sites))) % sites
            if kind == "flip branch":
                proof["events"] = [["branch", site], close, copy.deepcopy(close)]
            elif kind in ("fix more", "close early"):
                out, kept = ([site], []) if rng.random() < 0.5 else ([], [site])
                proof["events"] = [["fix", close[1], out, kept], copy.deepcopy(close)]
        if kind == "move beta":
            size = c["bound"] / clients / 1000 * float(rng.choice([0.1, 1, 10]))
            entries = [
                [int(rng.integers(sites)), int(rng.integers(clients)), size * rng.random()]
                for _ in range(4)
            ]
            proof["events"].insert(0, ["beta", entries])
            c["bound"] = plan.bound * float(rng.choice([0.98, 0.9999]))
    return c


def mutate_more(certificate, kind, rng):
    """Mutations of the checker's tests, and those that aim at rounding and wrapping around."""
    if kind in MUTATIONS:
        return mutate(certificate, kind, rng)
    c = copy.deepcopy(dict(certificate))
    if kind == "raise a little":
        c["bound"] *= 1 + float(rng.choice([1e-9, 1e-10, 1e-11, 3e-12]))
        return c
    events = [event for proof in c["proofs"] for event in proof["events"]]
    if kind == "move beta":
        events = [event for event in events if event[0] == "beta" and event[1]]
        if not events:
            return None
        event = events[int(rng.integers(len(events)))]
        entry = list(event[1][int(rng.integers(len(event[1])))])
        entry[2] = entry[2] * float(rng.choice([0, 0.5, 1.01, 2])) + float(rng.choice([0, 1e4]))
        event[1] = [*event[1], entry]
        return c
    if kind == "beta of all":
        value = float(rng.choice([1.0, 1e6, 1e18, 1e300]))
        proof = c["proofs"][int(rng.integers(len(c["proofs"])))]
        proof["events"].insert(0, ["beta", [[0, i, value] for i in range(len(c["clients"]))]])
        return c
    holders = [event for event in events if event[0] in ("close", "fix") and event[1]]
    if not holders:
        return None
    u = holders[int(rng.integers(len(holders)))][1]
    u[int(rng.integers(len(u)))] = float(rng.choice([2.0**63, -(2.0**63), 1e308, -1e308, 5e-324]))
    return c


def verdict(plan):
    """The message of the flaw, or None."""
    try:
        check_certificate(plan)
    except CertificateError as flaw:
        return str(flaw)
    return None


def compare(plans, rng, per_kind):
    """Ask both forms about mutated certificates; return how many of each kind both refused."""
    refused = dict.fromkeys(KINDS, 0)
    proved = 0
    for kind in KINDS:
        tried = 0
        for _ in range(30 * per_kind):
            plan = plans[int(rng.integers(len(plans)))]
            changed = mutate_more(prepared(plan, kind, rng), kind, rng)
            if changed is None:
                continue
            tried += 1
            believer = plan.replace(
                certificate=changed, bound=changed["bound"], status=Status.FEASIBLE
            )
            quick = verdict(believer)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Claim, "rounded", None)
                slow = verdict(believer)
            assert quick == slow
            refused[kind] += quick is not None
            proved += quick is None
            if tried == per_kind:
                break
        assert tried == per_kind, kind
    assert proved
    return refused


def test_both_forms_have_the_same_verdict_on_mutated_certificates():
    plans = certified_problems()
    refused = compare(plans, np.random.default_rng(1), per_kind=8)
    assert refused["raise bound"] == refused["drop proof"] == 8
    assert refused["raise a little"] >= 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_both_forms_have_the_same_verdict_on_thousands_of_mutated_certificates(seed):
    plans = certified_problems()
    per_kind = examples(50)
    refused = compare(plans, np.random.default_rng([2, seed]), per_kind=per_kind)
    assert sum(refused.values()) >= 0.4 * len(KINDS) * per_kind


def test_transfers_are_the_first_event_and_change_no_score():
    """Any amounts at the start leave a certificate true or refused; later they are refused."""
    refused = 0
    for plan in certified_problems()[::9]:
        sites, clients = len(plan.problem.instance.sites), len(plan.certificate["clients"])
        if clients < 2:
            continue
        moved = ["transfer", [[0, sites - 1, 1, 1.0], [1, 0, 0, 0.5]]]
        for at in (0, 1):
            edited = copy.deepcopy(plan.certificate)
            events = edited["proofs"][0]["events"]
            events.insert(at, moved)
            try:
                check_certificate(plan.replace(certificate=edited))
            except CertificateError:
                refused += at
            else:
                assert at == 0
    assert refused > 2


def test_a_claim_of_one_part_in_a_thousand_million_too_much_is_refused():
    for plan in certified_problems()[::12]:
        claim = optimum(plan.problem) * (1 + 1e-9)
        edited = with_certificate(plan, bound=claim).replace(bound=claim, status=Status.FEASIBLE)
        with pytest.raises(CertificateError):
            check_certificate(edited)


# --- hostile certificates ------------------------------------------------------------------------

NUMBERS = [
    2**63, -(2**63), 2**64, 10**400, -(10**400), 1e308, -1e308, math.nan, math.inf, -math.inf,
    "1", None, [1.0], {}, [[[[]]]], 5e-324,
]  # fmt: skip


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: str(value)[:8])
def test_no_number_of_a_certificate_proves_what_is_false(value):
    """Whatever stands for a multiplier, a site or a β: refused, or the claim is true."""
    plan = solve(plain())
    least = optimum(plan.problem)
    events = plan.certificate["proofs"][0]["events"]
    u = next(e[1] for e in events if e[0] in ("close", "fix"))
    hostile = [
        ["close", [value] * len(u)],
        ["close", [*u[:-1], value]],
        ["fix", u, [value], []],
        ["fix", u, [], [value]],
        ["fix", u, value, []],
        ["fix", [value] * len(u), [1, 2], [3]],
        ["branch", value],
        ["transfer", [[value, 0, 1, 1.0]]],
        ["transfer", [[0, value, 1, 1.0]]],
        ["transfer", [[0, 0, value, 1.0]]],
        ["transfer", [[0, 0, 1, value], [1, 1, 0, 1.0]]],
        ["transfer", value],
        ["beta", [[value, 0, 1.0]]],
        ["beta", [[0, value, 1.0]]],
        ["beta", [[0, 0, value]]],
        ["beta", [[s, c, value] for s, c in itertools.product(range(6), range(len(u)))]],
        ["beta", value],
        [value],
        value,
    ]
    for event in hostile:
        for claim in (plan.bound, least * 1.01, 1e300):
            proofs = copy.deepcopy(plan.certificate["proofs"])
            for proof in proofs:
                proof["events"].insert(0, event)
            edited = with_certificate(plan, proofs=proofs, bound=claim)
            edited = edited.replace(bound=claim, status=Status.FEASIBLE)
            try:
                checked = check_certificate(edited)
            except CertificateError:
                continue
            assert checked.bound <= least * (1 + 1e-12)


def test_sites_named_twice_or_out_of_range_are_refused():
    plan = solve(plain())
    u = next(e[1] for e in plan.certificate["proofs"][0]["events"] if e[0] in ("close", "fix"))
    for out, kept in (([1, 1], []), ([1], [1]), ([-1], []), ([6], []), ([10**30], []), ([1.0], [])):
        proofs = copy.deepcopy(plan.certificate["proofs"])
        proofs[0]["events"].insert(0, ["fix", u, out, kept])
        with pytest.raises(CertificateError, match=r"not free, or twice|malformed"):
            check_certificate(with_certificate(plan, proofs=proofs))


@pytest.mark.parametrize("event", [["branch", 1], ["beta", []], ["enumerate"]])
def test_a_million_events_end_early(event):
    plan = solve(plain())
    proofs = copy.deepcopy(plan.certificate["proofs"])
    proofs[0]["events"] = [event] * 1_000_000
    with pytest.raises((CertificateError, LimitError)):
        check_certificate(with_certificate(plan, proofs=proofs), work=100_000)


def test_lists_within_lists_without_end_are_refused():
    plan = solve(plain())
    nested = []
    for _ in range(100_000):
        nested = [nested]
    first, *others = plan.certificate["proofs"]
    u = next(e[1] for e in first["events"] if e[0] in ("close", "fix"))
    for event in (
        nested,
        ["close", nested],
        ["close", [nested] * len(u)],
        ["beta", nested],
        [nested],
    ):
        proofs = [{**first, "events": [event, *first["events"]]}, *others]
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**plan.certificate, "proofs": proofs}))
    for key in plan.certificate:
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**plan.certificate, key: nested}))


def test_numbers_beyond_the_rounded_grid_are_decided_in_exact_integers():
    """Weights of 1e-200 leave no room for a grid of doubles; the verdict is the same."""
    problem = plain()
    tiny = problem.instance.replace(counts=problem.instance.counts * 1e-200)
    plan = certified(type(problem)(tiny, replicas=3, voters=3))
    assert Claim(plan.problem, plan.bound, 0.0).rounded is None
    assert check_certificate(plan).bound == plan.bound
    claim = plan.bound * (1 + 1e-9)
    with pytest.raises(CertificateError):
        check_certificate(with_certificate(plan, bound=claim).replace(bound=claim))

"""The least sum over the sites that a proof may add, against enumeration."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.model.constraints import GroupRule
from placement.model.site_families import SiteFamily
from placement.proof.choice.site_choice import SiteChoice
from placement.proof.choice.sorted_sites import SortedSites
from tests.effort import examples
from tests.proof.test_checker import TAKEN, plain
from tests.strategies import problems


def drawn(problem, seed, *, led=True):
    rng, sites = np.random.default_rng(seed), len(problem.instance.sites)
    leader = int(rng.integers(sites)) if led else None
    radii = rng.integers(0, 4, sites).astype(float) if led else None
    choice = SiteChoice(problem.rules, leader, radii)
    inside = {*np.nonzero(problem.rules.must_hold)[0].tolist()} | ({leader} if led else set())
    free = [s for s in range(sites) if s not in inside and rng.random() < 0.8]
    return rng, sites, choice, inside, free


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_the_least_sum_by_places_is_that_of_the_greedy(problem, seed):
    """Without rules for voters the radii are valued from sums of prefixes."""
    rng, sites, choice, inside, free = drawn(problem, seed)
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
                    ordered, held, site, within, wanted, SiteFamily.of_blocks(sites, {})
                )
                quick = choice._cheapest_by_places(ordered, held, put_in, site, radius)
                assert quick == greedy


@given(problems(kinds=TAKEN), st.integers(0, 2**32 - 1))
def test_the_least_sum_without_rules_for_replicas_is_that_of_enumeration(problem, seed):
    rng, sites, choice, inside, free = drawn(problem, seed, led=False)
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
    rng, sites, choice, inside, free = drawn(problem, seed)
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


def many_sites(rng, sites):
    """Rules without groups for many sites and few replicas; some votes forbidden, some pinned."""
    votes = rng.random(sites) < rng.choice([0.15, 0.6, 1.0])
    votes[0] = True
    pins = np.zeros(sites, dtype=bool)
    pins[rng.choice(np.nonzero(votes)[0], 1)] = rng.random() < 0.3
    voters = int(rng.integers(1, 5))
    most = voters + int(rng.choice([0, 2, 12]))
    return dataclasses.replace(
        plain().rules,
        replicas_min=int(rng.integers(voters, most + 1)), replicas_max=most,
        voters=voters, quorum=int(rng.integers(1, voters + 1)),
        may_hold=np.ones(sites, dtype=bool), must_hold=pins, may_vote=votes, must_vote=pins,
        may_lead=votes,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(examples(400)))
def test_sites_that_come_after_all_that_are_taken_share_a_floor(seed):
    """The sites of one "fix", against each by itself: few or many with ρ < 0, ties, far voters."""
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(8, 50))
    rules = many_sites(rng, sites)
    asks = rng.random() < 0.7
    waits = rng.integers(0, int(rng.choice([2, 9])), sites).astype(float)
    choice = SiteChoice(rules, 0, waits if asks else None)
    inside = {0, *np.nonzero(rules.must_hold)[0].tolist()}
    free = [s for s in range(sites) if s not in inside and rng.random() < 0.9]
    scale = int(rng.choice([1, 2**70]))  # beyond 64 bits too
    below = int(rng.choice([-9, -1, 0]))
    rho = [scale * x for x in rng.integers(below, int(rng.choice([1, 6])), sites).tolist()]
    costs = [scale * x for x in np.sort(rng.integers(0, 9, len(choice.radii))).tolist()]
    ordered = SortedSites(inside, free, rho)
    assert [rho[s] for s in ordered.order] == sorted(rho[s] for s in free)
    assert ordered.negative == sum(rho[s] < 0 for s in free)
    assert [s for s in range(sites) if ordered.place[s] < 0] == sorted({*range(sites)} - {*free})
    for wanted in (
        *rng.integers(-110, -25, 5).tolist(),
        *rng.integers(-25, 12, 5).tolist(),
        float("inf"),
        float("-inf"),
    ):
        least = scale * wanted
        radii = choice.open_radii(least, ordered, costs)
        alone = [
            s for s in free
            if choice.open_radii(least - rho[s], ordered, costs, put_in=s, radii=radii)
        ]  # fmt: skip
        assert sorted(choice.open_with(least, ordered, costs, free, radii)) == alone


def rules_of(sites, voters, most, **changes):
    """Rules for voters and at most so many replicas: a majority answers, all sites may do all."""
    everyone, nobody = np.ones(sites, dtype=bool), np.zeros(sites, dtype=bool)
    usual = {
        "replicas_min": voters, "replicas_max": most, "voters": voters, "quorum": voters // 2 + 1,
        "may_hold": everyone, "must_hold": nobody, "may_vote": everyone, "must_vote": nobody,
        "may_lead": everyone,
    }  # fmt: skip
    return dataclasses.replace(plain().rules, **{**usual, **changes})


def cap(role, labels, most):
    names = tuple(str(n) for n in range(max(labels) + 1))
    return GroupRule("rack", role, np.array(labels), names, most, None, "")


def least_with(choice, leader, inside, free, rho, waits, costs, site):
    """Least Σ ρ + D·q over all sets of replicas that hold a site, and all of their voters.

    The ρ of the site does not count; ∞ when the rules forbid all sets.
    """
    rules, best = choice.rules, float("inf")
    must = {leader, *np.nonzero(rules.must_vote)[0].tolist()}
    others = [s for s in free if s != site]
    for size in range(rules.replicas_max - len(inside)):
        for more in itertools.combinations(others, size):
            replicas = sorted({*inside, *more, site})
            if len(replicas) < rules.replicas_min:
                continue
            if not all(group.satisfied(replicas) for group in rules.of("replicas")):
                continue
            for voters in itertools.combinations(replicas, rules.voters):
                allowed = must <= {*voters} and all(rules.may_vote[s] for s in voters)
                if allowed and all(group.satisfied(voters) for group in rules.of("voters")):
                    wait = sorted(waits[s] for s in voters)[rules.quorum - 1]
                    cost = costs[choice.radii.tolist().index(wait)]
                    best = min(best, sum(rho[s] for s in more) + cost)
    return best


def left_open(choice, wanted, inside, free, rho, costs):
    """Sites that one evaluation leaves open, as the replay of a certificate asks for them."""
    ordered = SortedSites(inside, free, rho)
    added = choice.open_sites(inside, free)
    radii = choice.open_radii(wanted, ordered, costs)
    return choice.open_with(wanted, ordered, costs, added, radii)


@pytest.mark.parametrize("asks", [False, True])
def test_late_voters_that_others_need_have_floors_of_their_own(asks):
    """The free voters 11 to 14 come after ten sites that may not vote; three of them are needed."""
    sites = 15
    may_vote = np.zeros(sites, dtype=bool)
    may_vote[[0, 11, 12, 13, 14]] = True
    choice = SiteChoice(
        rules_of(sites, 4, 4, may_vote=may_vote), 0, np.zeros(sites) if asks else None
    )
    free, rho = [*range(1, sites)], [0] * 12 + [10, 50, 50]
    # 11 and 12 with 13 or with 14 cost 60, which 13 and 14 share; other sites have no room
    assert left_open(choice, 61, {0}, free, rho, [0]) == [11, 12, 13, 14]
    assert left_open(choice, 60, {0}, free, rho, [0]) == []


@pytest.mark.parametrize("role", ["replicas", "voters"])
def test_sites_of_a_full_domain_share_no_floor_with_others(role):
    """Site 1, with ρ = -100, may stand beside site 10, and not beside 9, which comes before."""
    sites = 11
    labels = [0, 1, *range(2, 9), 1, 9]
    rules = rules_of(sites, 3, 3, groups=(cap(role, labels, 1),))
    choice = SiteChoice(rules, 0, None)
    free, rho = [1, *range(2, 11)], [0, -100, *[5] * 7, 5, 6]
    assert left_open(choice, -90, {0}, free, rho, [0]) == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    # each of them with 1 alone; 9 goes with a site of 5
    assert left_open(choice, 10, {0}, free, rho, [0]) == [1, 2, 3, 4, 5, 6, 7, 8, 10]
    assert left_open(choice, 11, {0}, free, rho, [0]) == free


def test_a_pin_beyond_a_radius_leaves_one_vote_less_within_it():
    """Leader 0 and pin 1, far away, are both voters: 2, near, cannot answer in time as a third."""
    must = np.zeros(4, dtype=bool)
    must[1] = True
    waits = np.array([0.0, 9.0, 1.0, 1.0])
    rules = rules_of(4, 2, 4, must_vote=must, must_hold=must)
    choice = SiteChoice(rules, 0, waits)
    ordered = SortedSites({0, 1}, [2, 3], [0, 0, -1, -2])
    costs = [0, 10, 90]
    assert choice.open_radii(87, ordered, costs) == []
    assert choice.open_radii(88, ordered, costs) == [2]


def test_a_quorum_beside_a_far_leader_needs_one_site_more_than_it_when_one_is_left_out():
    """Leader 0 is beyond the radius of 1, 2 and 3: two of them answer, whichever is left out."""
    choice = SiteChoice(rules_of(4, 3, 4), 0, np.array([9.0, 1.0, 1.0, 1.0]))
    ordered = SortedSites({0}, [1, 2, 3], [0, 1, 2, 3])
    for left_out, least in ((1, 5), (2, 4), (3, 3)):
        assert choice.open_radii(least, ordered, [0, 90], left_out=left_out) == []
        assert choice.open_radii(least + 1, ordered, [0, 90], left_out=left_out) == [0]


def test_pins_beside_the_leader_may_be_all_voters_or_too_many():
    must = np.array([False, True, True, False])
    waits = np.zeros(4)
    for voters, answer in ((3, [0]), (2, [])):
        rules = rules_of(4, voters, 4, must_vote=must, must_hold=must)
        choice = SiteChoice(rules, 0, waits)
        assert choice.open_radii(float("inf"), SortedSites({0, 1, 2}, [3], [0] * 4), [0]) == answer


def test_the_floor_obeys_the_rules_for_replicas():
    """Two of the domain of site 1 are too many: what voters cost alone is below that."""
    labels = [0, 1, 1, 2]
    rules = rules_of(4, 2, 3, replicas_min=3, groups=(cap("replicas", labels, 1),))
    choice = SiteChoice(rules, 0, None)
    ordered = SortedSites({0}, [1, 2, 3], [0, -9, -8, 4])
    assert choice.open_radii(-4, ordered, [0]) == [0]
    assert choice.open_radii(-5, ordered, [0]) == []


@pytest.mark.parametrize("seed", range(examples(300)))
def test_no_site_is_ruled_out_that_the_best_set_holds(seed):
    rng = np.random.default_rng(seed)
    sites, voters = 9, int(rng.integers(2, 4))
    most = voters + int(rng.integers(0, 2))
    may_vote = rng.random(sites) < rng.choice([0.5, 1.0])
    must = np.zeros(sites, dtype=bool)
    must[1] = rng.random() < 0.3
    may_vote[:2] = True
    groups = tuple(
        cap(role, rng.integers(0, 5, sites).tolist(), int(rng.integers(1, 3)))
        for role in ("replicas", "voters")
        if rng.random() < 0.4
    )
    least = int(rng.integers(voters, most + 1))
    rules = rules_of(
        sites, voters, most, may_vote=may_vote, must_vote=must, must_hold=must, groups=groups,
        replicas_min=least,
    )  # fmt: skip
    waits = rng.integers(0, 4, sites).astype(float)
    waits[0] = 0.0
    choice = SiteChoice(rules, 0, waits)
    inside = {0, *np.nonzero(must)[0].tolist()}
    free = [s for s in range(sites) if s not in inside and rng.random() < 0.9]
    rho = rng.integers(-6, 6, sites).tolist()
    costs = np.sort(rng.integers(0, 9, len(choice.radii))).tolist()
    best = {s: least_with(choice, 0, inside, free, rho, waits, costs, s) for s in free}
    for wanted in range(-20, 20):
        open_ones = left_open(choice, wanted, inside, free, rho, costs)
        assert {s for s in free if best[s] + rho[s] < wanted} <= {*open_ones}

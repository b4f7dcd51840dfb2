"""Waits of leaders inside ``exact``: cases, their cheapest sites, balls, certificates."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import placement
from formulations.exact.branch_and_bound import search
from formulations.exact.kernel import compiled_available, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement import Diversity, Problem, check_certificate, with_waits
from placement.errors import CertificateError
from placement.evaluation.score import quorum_latency
from placement.evaluation.waits.wait_cases import (
    FORBIDDEN,
    MOST_BLOCKS,
    CaseGreedy,
    SingleWaits,
    WaitCases,
    case_wait,
    no_cases,
)
from placement.evaluation.waits.wait_latency import wait_latency
from placement.model.site_families import FamilyCount, SiteFamily, family_counts
from placement.support.checks import FloatArray
from placement.support.status import Status
from tests.effort import seeds
from tests.protocols.test_sets import questions
from tests.protocols.worlds import world

needs_kernel = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")


def led(seed: int) -> Problem | None:
    """Return a random question whose leaders wait, where the engine takes it."""
    problem = questions(seed)
    taken = case_wait(problem.demand) and no_cases(problem.demand, problem.rules) is None
    return problem if taken else None


def least_wait(problem: Problem, leader: int, replicas: list[int]) -> float:
    """Return the least Σ_j D_j · wait_j of a leader over all sets of voters, by definition."""
    demand, rules = problem.demand, problem.rules
    best = np.inf
    for more in itertools.combinations([s for s in replicas if s != leader], rules.voters - 1):
        voters = np.array([[leader, *more]])
        one = np.array([leader])
        total = demand.quorum[0] * quorum_latency(demand.site_rtt[0], one, voters, rules.quorum)[0]
        for term in demand.waits:
            world_of = (demand.client_rtt[0], demand.site_rtt[0], one, voters)
            near = np.array([[leader]])
            long = wait_latency(term, *world_of, np.array([replicas]), near, rules.quorum)
            total += term.weight[0].sum() * long[0, 0]
        best = min(best, float(total))
    return best


@pytest.mark.parametrize("part", seeds(4, 200))
def test_a_replica_set_waits_for_the_cheapest_case_that_it_meets(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem = led(seed)
        if problem is None or not problem.rules.may_vote.all():
            continue
        rules = problem.rules
        sites = len(rules.may_hold)
        cases = WaitCases.of(problem.demand, rules, range(sites))
        rng = np.random.default_rng(seed)
        for leader in rng.permutation(sites)[:3].tolist():
            first, last = cases.start[leader], cases.start[leader + 1]
            assert (np.diff(cases.price[first:last]) >= 0).all()
            size = rules.replicas_max
            rest = [s for s in np.nonzero(rules.may_hold)[0].tolist() if s != leader]
            for more in itertools.islice(itertools.combinations(rest, size - 1), 15):
                replicas = sorted([leader, *more])
                if not rules.may_hold[leader] or not set(np.nonzero(rules.must_hold)[0]) <= {
                    *replicas
                }:
                    continue
                met = [case for case in cases.met(replicas) if first <= case < last]
                price = cases.price[met].min(initial=np.inf)
                assert price == pytest.approx(least_wait(problem, leader, replicas), rel=1e-12)


@pytest.mark.parametrize("part", seeds(4, 200))
def test_the_greedy_of_a_case_finds_the_least_sum_of_the_sets_that_meet_it(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem = led(seed)
        if problem is None:
            continue
        rng = np.random.default_rng(seed)
        sites = len(problem.rules.may_hold)
        leader = int(rng.integers(sites))
        cases = WaitCases.of(problem.demand, problem.rules, [leader])
        greedy = CaseGreedy(cases)
        rho = rng.integers(-9, 6, sites).tolist()
        held = {leader, int(rng.integers(sites))}
        free = [s for s in range(sites) if s not in held and rng.random() < 0.9]
        order = sorted(free, key=rho.__getitem__)
        size = problem.rules.replicas_max
        least, most = max(problem.rules.replicas_min - len(held), 0), size - len(held)
        for case in range(greedy.number):
            sums = [
                sum(rho[s] for s in more)
                for number in range(least, most + 1)
                for more in itertools.combinations(free, number)
                if case in greedy.met([*held, *more])
            ]
            found = greedy.cheapest(case, held, order, rho, least, most)
            if not sums:
                assert found is None or cases.family[case].max() > 0
            elif cases.family[case].max() == 0:
                assert found == min(sums)
            else:
                assert found is not None
                assert found <= min(sums)


@needs_kernel
def test_a_certificate_of_other_waits_is_refused() -> None:
    easy = Problem(world(3, 9), replicas=4, voters=4, protocol="semi-sync:level=region")
    hard = easy.replace(protocol="leases")
    plan, other = placement.solve(easy), placement.solve(hard)
    assert check_certificate(other).bound <= other.score
    stolen = {
        **plan.certificate,
        **{key: other.certificate[key] for key in ("leader", "voters", "replicas", "score")},
        "bound": other.certificate["bound"],
    }
    with pytest.raises(CertificateError):
        check_certificate(other.replace(certificate=stolen))


def test_waits_that_cases_do_not_take_are_named() -> None:
    one = world(4)
    two = placement.with_waits(
        one, {"single_group": ["leader: 1 of voters outside region", "leader: 2 of voters"]}
    )
    problem = Problem(two, replicas=4, voters=3)
    reason = no_cases(problem.demand, problem.rules)
    assert reason is not None
    assert "may cross" in reason
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    assert any("solved by" in note for note in plan.notes)
    assert no_cases(problem.demand, dataclasses.replace(problem.rules, replicas_max=3,
                    replicas_min=3)) is None  # fmt: skip


@needs_kernel
def test_kernel_and_tables_have_room_for_as_many_blocks() -> None:
    """Also the name by which a kernel that was built before it took cases is told apart."""
    from formulations.exact import _kernel

    assert _kernel.MOST_BLOCKS == MOST_BLOCKS


def fitting(
    core: ReducedProblem, held: set[int], free: list[int], least: int, most: int
) -> list[int] | None:
    """Return the sites beside which the rules leave room; None: for those held there is none."""
    sizes = least + len(held), most + len(held)
    counts = family_counts(core.families["replicas"], *sizes, held)
    if counts is None:
        return None
    return [site for site in free if all(count.fits(site) for count in counts)]


def cheapest_of_family(
    family: SiteFamily, held: set[int], by_rho: list[int], rho: FloatArray, least: int, most: int
) -> float:
    """Return the least sum of more sites that obey a family; infinite: there are none."""
    count = FamilyCount(family, least + len(held), most + len(held))
    assert count.take_all(held)
    total, size = 0.0, 0
    for site in by_rho:
        wanted = rho[site] < 0 or count.missing > 0
        take = count.take if rho[site] < 0 else count.take_needed
        if wanted and size < most and take(site):
            total += rho[site]
            size += 1
    return total if count.missing <= 0 else np.inf


def assert_cheapest_cases(problem: Problem, seed: int) -> None:
    """Compare bounds of the kernel with those of all cases, each after other multipliers.

    Where rules hold for replicas, each case costs at least what these ask for.
    """
    core, rules = ReducedProblem.of(problem), problem.rules
    kernel, rng, active = (
        open_kernel(core, "compiled"),
        np.random.default_rng(seed),
        core.active,
    )
    rtt = core.client_rtt[active]
    for leader in rng.permutation(np.nonzero(rules.may_lead)[0])[:3].tolist():
        cases = WaitCases.of(problem.demand, rules, [leader])
        greedy = CaseGreedy(cases)
        held = {leader, *np.nonzero(rules.must_hold)[0].tolist()}
        free = [s for s in np.nonzero(rules.may_hold)[0].tolist() if s not in held]
        relay = problem.demand.site_rtt[0][:, leader].copy()
        relay[leader] = 0.0
        costs = core.near[active, np.newaxis] * rtt + np.outer(core.relay[active], relay)
        order = np.argsort(rtt, axis=1, kind="stable").argsort(axis=1)
        first = [min(held, key=row.__getitem__) for row in order]
        most = costs[np.arange(len(active)), first]
        for _ in range(4):
            u = np.floor(rng.random(len(active)) * (most + 1.0)).clip(0.0, most)
            rho = np.zeros(len(rtt[0]))
            for s in free:
                nearer = order[:, s] < order[np.arange(len(active)), first]
                rho[s] = np.minimum(0.0, costs[:, s] - u)[nearer].sum()
            least = max(rules.replicas_min, rules.voters) - len(held)
            sizes = max(least, 0), rules.replicas_max - len(held)
            able = fitting(core, held, free, *sizes)
            by_rho = sorted(able or (), key=rho.__getitem__)
            floor = -np.inf if able is not None else np.inf
            for family in core.families["replicas"] if able is not None else ():
                floor = max(floor, cheapest_of_family(family, held, by_rho, rho, *sizes))
            inner = np.inf
            for case, price in enumerate(cases.price.tolist()):
                cheapest = greedy.cheapest(case, held, by_rho, rho.tolist(), *sizes)
                inner = inner if cheapest is None else min(inner, price + max(cheapest, floor))
            expected = core.direct[leader] + u.sum() + inner
            found = kernel.bound_root(leader, u.copy(), 1, 0, True, 10.0)
            assert found == pytest.approx(expected, rel=1e-9)
        wait = SingleWaits.of(problem.demand, rules, np.array([leader])).floors()[0]
        assert wait <= cases.price.min(initial=np.inf) * (1 + 1e-12)


@needs_kernel
@pytest.mark.parametrize("part", seeds(4, 300))
def test_the_bound_of_a_leader_is_that_of_its_cheapest_case(part: int) -> None:
    """Whole numbers, so that many cases tie."""
    for seed in range(10 * part, 10 * part + 10):
        problem = led(seed)
        if problem is None:
            continue
        core, rules = ReducedProblem.of(problem), problem.rules
        plain = not core.families["replicas"] and not core.families["voters"] and core.price is None
        if plain and rules.may_vote[rules.may_hold].all() and not rules.must_vote.any():
            assert_cheapest_cases(problem, seed)


@needs_kernel
def test_sites_too_far_for_a_wait_for_all_replicas_are_ruled_out_together() -> None:
    """Before, a tree decided them one by one: 35 nodes and 1158 bounds."""
    one = placement.load("world27", mix="ycsb-a")
    plan = placement.solve(Problem(one, replicas=7, voters=7, protocol="leases"), method="exact")
    assert plan.stats["bounds"] < 700
    assert check_certificate(plan).bound <= plan.score
    assert any(
        event[0] == "fix" and len(event[2]) > 5
        for proof in plan.certificate["proofs"]
        for event in proof["events"]
    )


def test_the_certificate_holds_where_the_wait_of_a_leader_has_no_case() -> None:
    """The region of s1 leaves one site outside, and the wait of s1 asks for two such sites."""
    one = world(3, sites=5, clients=2).replace(
        domains={"region": ("east", "west", "east", "west", "west")}
    )
    asked = placement.with_waits(one, {"strong_read": ["leader: 2 of voters outside region"]})
    rule = Diversity("region", "replicas", min_domains=2)
    problem = Problem(asked, replicas=3, voters=3, quorum=3, diversity=[rule], forbidden=["s0"])
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    assert plan.certified
    assert placement.check_certificate(plan).bound <= plan.objective * (1 + 1e-12)
    best = placement.solve(problem, "exhaustive")
    assert plan.objective == pytest.approx(best.objective, rel=1e-12)


@needs_kernel
def test_hundreds_of_sites_are_no_reason_to_search_over_sets() -> None:
    """Before, leaders with waits were limited to 322 sites."""
    instance = placement.testing.random_instance(5, sites=330, clients=3, ties=True)
    problem = Problem(instance, replicas=2, voters=2, protocol="leases")
    plan = placement.solve(problem, "exact")
    assert plan.notes == ()
    assert check_certificate(plan).bound >= plan.objective * (1 - 1e-9)


pytestmark = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")

PROTOCOLS = ("leases", "leases:interference=0.2", "leases:interference=1")


def of_balls(seed: int) -> Problem:
    """Return a random question of waits for votes within, and for all replicas; few are alike.

    Distances tie and differ by direction; some sites hold nothing, some replicas do not vote, and
    the number of replicas may have a range.
    """
    rng = np.random.default_rng(seed)
    one = world(seed, int(rng.integers(6, 10)), int(rng.integers(2, 7)), ties=bool(seed % 3))
    size = int(rng.integers(2, 6))
    voters = size if rng.random() < 0.5 else int(rng.integers(1, size + 1))
    between = np.asarray(one.site_rtt) + 10.0 * rng.integers(0, 2, np.shape(one.site_rtt))
    np.fill_diagonal(between, 0.0)
    one = dataclasses.replace(one, site_rtt=between)
    names = rng.permutation(one.sites).tolist()
    protocol: str | None = PROTOCOLS[seed % len(PROTOCOLS)]
    if rng.random() < 0.2:  # votes alone, but fewer or more than a quorum
        protocol = None
        one = with_waits(
            one, {"single_group": f"leader: {int(rng.integers(1, voters + 1))} of voters"}
        )
    return Problem(
        one,
        replicas=size if voters == size or rng.random() < 0.6 else (max(voters, size - 1), size),
        voters=voters,
        forbidden=names[:1] if voters == size and rng.random() < 0.5 else (),
        protocol=protocol,
    )


@pytest.mark.parametrize("part", seeds(6, 300))
def test_the_scan_finds_the_cheapest_case(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem = of_balls(seed)
        if ReducedProblem.of(problem).cases is not None:
            assert_cheapest_cases(problem, seed)


@pytest.mark.parametrize("part", seeds(6, 300))
def test_a_search_from_afar_finds_what_enumeration_finds(part: int) -> None:
    """The start is inflated, so that a case that is left out wrongly prunes the best plan."""
    for seed in range(10 * part, 10 * part + 10):
        problem = of_balls(seed)
        best = placement.solve(problem, method="exhaustive")
        core = ReducedProblem.of(problem)
        for kernel in ("compiled", "tight"):
            pretend = best.score * 1.5 + 1 if best.found else None
            found = search(core, kernel=open_kernel(core, kernel), pretend=pretend)
            assert (found.configuration is not None) == best.found
            if found.configuration is not None:
                assert core.score(found.configuration) == pytest.approx(best.score, rel=1e-9)


def test_a_site_that_may_not_lead_has_no_cases() -> None:
    """Rows of the other sites are as if every site might lead."""
    problem = Problem(world(3), replicas=4, voters=4, protocol="leases:interference=0.2")
    some = np.array([1, 2, 5])
    everywhere = SingleWaits.of(problem.demand, problem.rules, np.arange(7)).waits
    for one, whole in zip(
        SingleWaits.of(problem.demand, problem.rules, some).waits, everywhere, strict=True
    ):
        spread = one.of_sites(some)
        for site in range(7):
            radii = spread.radius[spread.start[site] : spread.start[site + 1]]
            if site in some:
                expected = whole.radius[whole.start[site] : whole.start[site + 1]]
                assert radii.tolist() == expected.tolist()
                assert spread.scope[site].tolist() == whole.scope[site].tolist()
            else:
                assert len(radii) == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_the_scan_fixes_holds(protocol: str) -> None:
    """The checker works out the cases one by one."""
    fixed = 0
    for mix, size, voters in (("ycsb-a", 7, 7), ("ycsb-b", 7, 7), ("ycsb-a", 6, 4), ("oltp", 6, 4)):
        one = placement.load("world27", mix=mix)
        plan = placement.solve(Problem(one, replicas=size, voters=voters, protocol=protocol))
        assert check_certificate(plan).bound <= plan.score
        proofs = plan.certificate["proofs"]
        fixed += sum(event[0] == "fix" for proof in proofs for event in proof["events"])
    assert fixed > 0


def test_the_questions_here_are_of_balls() -> None:
    """Not so one about a domain, which is not scanned."""
    problem = Problem(world(1), replicas=4, voters=4, protocol="leases:interference=0.2")
    waits = SingleWaits.of(problem.demand, problem.rules, np.arange(7)).waits
    assert [len(one.near) for one in waits] == [1, 0]
    assert [bool((one.scope & FORBIDDEN).all()) for one in waits] == [False, True]
    other = problem.replace(protocol="semi-sync:level=region")
    (wait,) = SingleWaits.of(other.demand, other.rules, np.arange(7)).waits
    assert not (wait.scope & 1).all()

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
from placement.evaluation.score import score
from placement.evaluation.waits.wait_cases import (
    FORBIDDEN,
    MOST_BLOCKS,
    CaseGreedy,
    SingleWaits,
    WaitCases,
    case_wait,
    no_cases,
)
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


@pytest.mark.parametrize("part", seeds(4, 200))
def test_a_replica_set_waits_for_the_cheapest_case_that_it_meets(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem = led(seed) or of_balls(seed)
        demand, rules = problem.demand, problem.rules
        if ReducedProblem.of(problem).cases is None or not rules.may_vote.all():
            continue
        none = np.zeros_like(demand.near)
        waits = dataclasses.replace(
            demand, near=none, relay=none, direct=none, constants=0.0 * demand.constants
        )
        may, must = ({*np.nonzero(one)[0].tolist()} for one in (rules.may_hold, rules.must_hold))
        for leader in may:
            cases = WaitCases.of(demand, rules, [leader])
            floor = SingleWaits.of(demand, rules, np.array([leader])).floors()[0]
            assert [floor, *cases.price] == pytest.approx(sorted([floor, *cases.price]), rel=1e-12)
            sets = itertools.combinations(sorted(may - {leader}), rules.replicas_max - 1)
            for more in itertools.islice(sets, 15):
                held = [leader, *more]
                least = min(
                    score(waits, leader, [leader, *votes], held, rules.quorum)
                    for votes in itertools.combinations(more, rules.voters - 1)
                )
                met = cases.price[cases.met(held)].min(initial=np.inf)
                assert not must <= {*held} or met == pytest.approx(least, rel=1e-12)


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

"""Cases that are balls around the leader, which the kernel scans by distance: as for leases."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import placement
from formulations.exact.branch_and_bound import search
from formulations.exact.kernel import compiled_available, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement import Problem, check_certificate, with_waits
from placement.evaluation.waits.wait_cases import FORBIDDEN, SingleWaits
from tests.effort import seeds
from tests.protocols.test_leader_waits import assert_cheapest_cases
from tests.protocols.worlds import world

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

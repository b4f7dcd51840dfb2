"""Waits that count votes, which the kernel bounds radius by radius: against all cases and plans."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import placement
from formulations.exact.branch_and_bound import search
from formulations.exact.kernel import compiled_available, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement import Problem, check_certificate
from placement.evaluation.waits.single_waits import FORBIDDEN
from tests.effort import seeds
from tests.protocols.test_leader_waits import assert_cheapest_cases
from tests.protocols.worlds import world

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")


def of_votes(seed: int) -> Problem | None:
    """Return a random question of sites with votes; few are alike. None where none is possible.

    Distances tie and differ by direction; some sites hold nothing, some replicas do not vote, and
    the number of replicas may have a range. Rules for replicas hold beside, and all replicas may be
    waited for.
    """
    rng = np.random.default_rng(seed)
    one = world(seed, int(rng.integers(5, 11)), int(rng.integers(2, 7)), ties=bool(seed % 3))
    between = np.asarray(one.site_rtt) + 10.0 * rng.integers(0, 2, np.shape(one.site_rtt))
    np.fill_diagonal(between, 0.0)
    one = dataclasses.replace(one, site_rtt=between)
    size = int(min(rng.choice([1, 2, 3, 4, 5, 6, 7, 7]), len(one.sites)))
    voters = size if rng.random() < 0.6 else int(rng.integers(1, size + 1))
    kinds = rng.choice([1, 2, 3, 4, 5, 7], int(rng.integers(2, 5)), replace=False)
    votes = {name: int(rng.choice(kinds)) for name in one.sites}
    number = int(rng.integers(1, 2 * voters + 1)) if rng.random() < 0.25 else None
    rule = placement.Diversity("region", "replicas", cap=int(rng.integers(2, 4)))
    try:
        return Problem(
            one,
            replicas=size if voters == size else (max(voters, size - 1), size),
            voters=voters,
            votes=votes,
            quorum=number,  # of votes, instead of a majority
            forbidden=rng.permutation(one.sites).tolist()[:1] if rng.random() < 0.3 else (),
            pinned=one.sites[2:3] if rng.random() < 0.2 and voters < size else (),
            diversity=[rule] if rng.random() < 0.25 else (),
            protocol="leases" if rng.random() < 0.3 else None,
        )
    except placement.InputError:
        return None


def taken(problem: Problem | None) -> bool:
    """Return whether the engine takes a question by cases."""
    if problem is None or ReducedProblem.refuses(problem.demand, problem.rules) is not None:
        return False
    return ReducedProblem.of(problem).cases is not None


@pytest.mark.parametrize("part", seeds(8, 300))
def test_the_bound_is_that_of_the_cheapest_case(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem = of_votes(seed)
        if problem is not None and taken(problem):
            assert_cheapest_cases(problem, seed)


@pytest.mark.parametrize("part", seeds(6, 300))
def test_a_search_from_afar_finds_what_enumeration_finds(part: int) -> None:
    """Half of the starts are inflated: a case that is left out wrongly prunes the best plan."""
    for seed in range(10 * part, 10 * part + 10):
        problem = of_votes(seed)
        if problem is None or not taken(problem):
            continue
        best = placement.solve(problem, method="exhaustive")
        core = ReducedProblem.of(problem)
        for kernel in ("compiled", "tight", "sparse"):
            pretend = best.score * 1.5 + 1 if best.found and seed % 2 else None
            found = search(core, kernel=open_kernel(core, kernel), pretend=pretend)
            assert (found.configuration is not None) == best.found
            if found.configuration is not None:
                assert core.score(found.configuration) == pytest.approx(best.score, rel=1e-9)
                assert found.proven == pytest.approx(best.score, rel=1e-9)
        plan = placement.solve(problem)
        if plan.found:
            assert check_certificate(plan).bound == pytest.approx(best.score, rel=1e-9)


def test_some_questions_have_many_rows_and_some_none() -> None:
    """The questions above are of the kinds that the kernel tells apart."""
    kinds = set()
    for seed in range(200):
        problem = of_votes(seed)
        if problem is None or not taken(problem):
            continue
        cases = ReducedProblem.of(problem).cases
        assert cases is not None
        wait = cases.waits[0]
        everyone = problem.rules.replicas_max == problem.rules.voters
        barred = bool((wait.scope & FORBIDDEN).any())
        kinds.add((everyone, wait.needed > 0, len(wait.least) > 12, barred))
    assert len(kinds) >= 8

"""Losses of operations whose leader waits, by milp and cp-sat: equal to enumeration and exact."""

from __future__ import annotations

import numpy as np
import pytest

import placement
from placement import Contingency, Diversity, InputError, Problem, Status, UnsupportedError
from placement.feasibility.feasible_plans import violations
from tests.effort import seeds
from tests.protocols.test_loss_sets import GOALS, uneven, worst_of
from tests.protocols.test_sets import HAND, LED
from tests.protocols.worlds import world

LED_BY_HAND = tuple(wait for wait in HAND if wait.startswith("leader"))


def asked(seed: int) -> Problem | None:
    """Draw a small question about losses; None where its rules leave no voter to spare."""
    rng = np.random.default_rng([seed, 31])
    one = world(seed, sites=int(rng.integers(5, 7)), clients=5, ties=bool(rng.integers(2)))
    size = int(rng.integers(2, 5))
    given: dict[str, object] = {"replicas": size, "voters": int(rng.integers(2, size + 1))}
    if rng.integers(2):
        given["protocol"] = str(rng.choice(LED[1:]))
    else:
        one = placement.with_waits(one, {"single_group": [str(rng.choice(LED_BY_HAND))]})
    rules = rng.integers(6)
    if rules == 0:
        given["diversity"] = Diversity("region", cap=2)
    elif rules == 1:
        given["diversity"] = Diversity("region", "replicas", min_domains=2)
    elif rules == 2:
        given["leaders"] = ("s0", "s2", "s3")
    elif rules == 3:
        given["non_voters"] = ["s1"]
    elif rules == 4 and size < 4:
        given["replicas"] = (size, size + 1)
    if seed % 3 == 0:
        one = uneven(one, seed)
    try:
        return Problem(one, **given, objective=GOALS[seed % len(GOALS)])  # type: ignore[arg-type]
    except InputError:
        return None


@pytest.mark.parametrize("part", seeds(5, 260))
def test_both_programs_agree_with_enumeration(part: int) -> None:
    for seed in range(4 * part, 4 * part + 4):
        problem = asked(seed)
        if problem is None:
            continue
        expected = placement.solve(problem, "exhaustive")
        for method in ("milp", "cp-sat"):
            found = placement.solve(problem, method)
            assert found.status is expected.status, (seed, method)
            if not found.found:
                continue
            assert found.objective == pytest.approx(expected.objective, rel=1e-9), (seed, method)
            assert found.configuration is not None
            assert not violations(problem, found.configuration)
            if problem.objective.goal == "worst":  # type: ignore[attr-defined]
                same = pytest.approx(expected.mean_latency, rel=1e-9)
                assert found.mean_latency == same, (seed, method)


@pytest.mark.parametrize("seed", seeds(3, 60))
def test_no_start_hides_a_row_that_is_too_strong(seed: int) -> None:
    """Without a first plan, or from a poor one, nothing that is better was cut off."""
    problem = asked(seed + 2000)
    if problem is None:
        return
    expected = placement.solve(problem, "exhaustive")
    for method in ("milp", "cp-sat"):
        found = placement.solve(problem, method, settings={"start": "none"})
        assert found.status is expected.status, method
        if not found.found:
            continue
        assert found.objective == pytest.approx(expected.objective, rel=1e-9), method
        again = placement.solve(problem, method, start=worst_of(problem))
        assert again.objective == pytest.approx(expected.objective, rel=1e-9), method


def test_a_majority_of_a_domain_counts_its_lost_voters() -> None:
    """Two of three voters of a region are lost: the one that is left is no majority of three."""
    one = placement.with_waits(
        world(5, sites=6), {"single_group": ["leader: majority of voters inside region"]}
    )
    two = Contingency(together=2)
    problem = Problem(one, replicas=["s0", "s3", "s1", "s4", "s2"], voters=5, objective=two)
    expected = placement.solve(problem, "exhaustive")
    for method in ("milp", "cp-sat", "exact"):
        found = placement.solve(problem, method)
        assert found.status is expected.status
        assert found.found == expected.found
        if found.found:
            assert found.objective == pytest.approx(expected.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"protocol": "epaxos:multi=2"}, "the nearest replica waits"),
        ({"protocol": "abd:multi=2"}, "the client waits"),
        ({"protocol": "leases:holders=2"}, "no lease holders under losses"),
        ({"voters": 3, "witnesses": 1}, "no witnesses after losses"),
        ({"voters": 3, "vote_layout": (2, 2, 1)}, "one vote for each voter"),
    ],
)
def test_what_both_programs_refuse(more: dict[str, object], why: str) -> None:
    problem = Problem(world(2), replicas=3, objective=Contingency(), **more)  # type: ignore[arg-type]
    for method in ("milp", "cp-sat"):
        with pytest.raises(UnsupportedError, match=why):
            placement.solve(problem, method)
    assert placement.solve(problem).status is Status.OPTIMAL

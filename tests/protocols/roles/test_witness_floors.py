"""Witnesses in the engine: floors of the waits, on every kernel, with proofs."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import placement
from formulations.exact.branch_and_bound import search
from formulations.exact.reduced_problem import ReducedProblem
from placement import Problem
from placement.errors import CertificateError
from placement.evaluation.voter_choice import best_voters
from placement.evaluation.waits.wait_floors import (
    no_floors,
    voters_with_replicas,
    witness_floors,
)
from placement.feasibility.feasible_plans import reasons_infeasible
from placement.support.status import Status
from tests.effort import examples
from tests.exact.test_engine import KERNELS
from tests.protocols.worlds import world


@st.composite
def questions(draw: st.DrawFn, most: int = 9) -> Problem:
    """Questions with witnesses and asymmetric RTTs, of which the lemma holds for the most."""
    sites = draw(st.integers(7, most))
    seed = draw(st.integers(0, 10_000))
    instance = world(seed, sites, draw(st.integers(1, 12)), ties=draw(st.booleans()))
    if draw(st.booleans()):  # one way is longer than the other
        rng = np.random.default_rng(seed)
        between = instance.site_rtt + 10.0 * rng.integers(0, 4, (sites, sites))
        np.fill_diagonal(between, 0.0)
        instance = instance.replace(site_rtt=between)
    replicas, witnesses = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    voters = draw(st.integers(1, replicas)) + witnesses
    large = draw(st.integers(0, 9)) == 0  # more votes than voters with a replica
    asked: dict[str, object] = {
        "quorum": draw(st.integers(1, voters if large else voters - witnesses))
    }
    extra = draw(st.sampled_from(["", "", "forbidden", "non_voters", "pinned", "leader", "named"]))
    if extra == "named":
        asked["replicas"] = [f"s{i}" for i in range(replicas)]
    elif extra:
        asked[extra] = "s2" if extra == "leader" else ["s2"]
    if draw(st.booleans()):
        cap = draw(st.integers(1, 2))
        asked["diversity"] = placement.Diversity("region", "replicas", cap=cap)
    return Problem(
        instance, **{"replicas": replicas, "voters": voters, "witnesses": witnesses} | asked
    )  # type: ignore[arg-type]


@settings(deadline=None)
@given(problem=questions(7))
def test_the_best_voters_wait_as_the_lemma_says(problem: Problem) -> None:
    rules, demand = problem.rules, problem.demand
    assume(rules.replicas_max + rules.witnesses <= len(rules.may_hold))
    assume(no_floors(demand, rules) is None)
    floors, holding = witness_floors(demand, rules), voters_with_replicas(rules)
    assert (holding.voters, holding.witnesses) == (rules.voters - rules.witnesses, 0)
    able, rtt = np.nonzero(rules.may_hold)[0].tolist(), demand.site_rtt[0]
    for replicas in itertools.combinations(able, rules.replicas_max):
        if not set(np.nonzero(rules.must_hold)[0].tolist()) <= set(replicas):
            continue
        for leader in replicas:
            chosen = best_voters(demand, rules, leader, replicas)
            voting = [s for s in replicas if rules.may_vote[s]]
            if not rules.may_lead[leader] or len(voting) < holding.voters:
                assert chosen is None
                continue
            assert chosen is not None
            near = sorted(rtt[leader, voting])[holding.quorum - 1]
            wait = sorted(rtt[leader, list(chosen)])[rules.quorum - 1]
            assert wait == max(floors[leader], near)


@pytest.mark.parametrize("kernel", KERNELS)
@settings(deadline=None, max_examples=examples(40))
@given(problem=questions(), inflated=st.booleans())
def test_every_kernel_finds_what_enumeration_finds(
    kernel: str, problem: Problem, inflated: bool
) -> None:
    assume(not reasons_infeasible(problem))
    assume(ReducedProblem.refuses(problem.demand, problem.rules) is None)
    best = placement.solve(problem, method="exhaustive")
    pretend = best.score * 1.5 + 1 if inflated and best.found else None
    found = search(ReducedProblem.of(problem), kernel=kernel, pretend=pretend)
    assert found.status is best.status
    if best.found:
        assert found.score == pytest.approx(best.score, rel=1e-9)
        assert found.bound <= found.score
        assert found.configuration is not None
        assert len(found.configuration.witnesses) == problem.rules.witnesses


@settings(deadline=None, max_examples=examples(60))
@given(problem=questions())
def test_certificates_hold_and_claim_no_more(problem: Problem) -> None:
    plan = placement.solve(problem)
    if not plan.found:
        assert plan.status is Status.INFEASIBLE
        return
    assert plan.certificate is not None
    assert placement.check_certificate(plan).bound == pytest.approx(plan.score, rel=1e-9)
    assume(plan.score > 0)
    more = plan.certificate | {"bound": plan.score * 1.001}
    with pytest.raises(CertificateError):
        placement.check_certificate(plan.replace(certificate=more))


def test_a_certificate_without_witnesses_proves_nothing_with_them() -> None:
    """More votes than sites with replicas give would raise the bound: the checker uses floors."""
    problem = Problem(world(11, 9, 8, ties=False), replicas=4, voters=5, witnesses=1)
    plan = placement.solve(problem)
    plain = placement.solve(problem.replace(voters=4, witnesses=0))
    assert plain.certificate is not None
    assert plan.certificate is not None
    assert plain.score > plan.score
    claims = plan.certificate | {"bound": plain.score, "proofs": plain.certificate["proofs"]}
    with pytest.raises(CertificateError):
        placement.check_certificate(plan.replace(certificate=claims))


def test_large_questions_are_proven_by_the_engine() -> None:
    instance = placement.load("aws")
    for replicas, voters, witnesses in ((5, 3, 1), (7, 7, 2)):
        problem = Problem(instance, replicas=replicas, voters=voters, witnesses=witnesses)
        plan = placement.solve(problem)
        assert plan.status is Status.OPTIMAL
        assert plan.certified
        assert len(plan.witnesses) == witnesses
        assert placement.check_certificate(plan).bound == pytest.approx(plan.score, rel=1e-9)


def test_what_the_lemma_does_not_hold_for_is_said() -> None:
    instance = world(3)
    asked = {"replicas": 3, "voters": 4, "witnesses": 2}

    def reason(**changes: object) -> str:
        problem = Problem(instance, **asked | changes)  # type: ignore[arg-type]
        return no_floors(problem.demand, problem.rules) or ""

    assert "always waits for witnesses" in reason()
    assert reason(quorum=2) == ""
    assert "rules for voters" in reason(quorum=2, survive="region")
    assert "pinned" in reason(quorum=2, pinned_voters=["s0"])
    assert "not as a witness" in reason(quorum=2, witnesses=["s0", "s1"])
    assert "other waits" in reason(quorum=2, protocol="leases")
    assert "too few sites" in reason(quorum=2, replicas=6, forbidden=[])
    assert "no witnesses" in reason(voters=3, witnesses=0)
    varying = instance.replace(
        client_rtt=np.stack([instance.client_rtt] * 2), counts=np.repeat(instance.counts, 2, 0),
        site_rtt=np.stack([instance.site_rtt] * 2), intervals=("a", "b"),
    )  # fmt: skip
    both = Problem(varying, **asked | {"quorum": 2})  # type: ignore[arg-type]
    assert "vary" in (no_floors(both.demand, both.rules) or "")
    rules = dataclasses.replace(both.rules, must_hold=both.rules.must_hold.copy())
    assert no_floors(Problem(instance, **asked | {"quorum": 2}).demand, rules) is None  # type: ignore[arg-type]
    plan = placement.solve(both)
    assert plan.status is Status.OPTIMAL

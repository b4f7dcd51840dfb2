"""Certificates of the search over sets: they hold, prove nothing false, and bounds are bounds."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import placement
from formulations.waits import set_certificate
from formulations.waits.set_certificate import write_certificate
from formulations.waits.set_search import compiled_available
from placement import Problem, check_certificate
from placement.errors import CertificateError, LimitError
from placement.evaluation.objective import score_of
from placement.evaluation.score import score_many
from placement.feasibility.feasible_plans import violations
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.proof.enumeration_check import FORMAT as ENUMERATION
from placement.proof.sets.prefix_bounds import PrefixBounds
from placement.proof.sets.set_check import FORMAT
from placement.proof.sets.set_walk import walk_refusal
from placement.proof.sets.wait_pairs import PairedWait, WaitPairs
from placement.support.status import Status
from tests.effort import seeds
from tests.protocols.test_sets import questions
from tests.protocols.worlds import world

needs_kernel = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")


def everyone_votes(seed: int) -> Problem | None:
    """Return a random question that certificates of sets prove."""
    problem = questions(seed)
    return problem if problem.demand.waits and walk_refusal(problem) is None else None


@pytest.mark.parametrize("part", seeds(4, 200))
def test_no_set_with_a_beginning_is_below_its_bounds(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem = everyone_votes(seed)
        if problem is None:
            continue
        rng = np.random.default_rng(seed)
        size, quorum = problem.rules.voters, problem.rules.quorum
        order = rng.permutation(len(problem.rules.may_hold)).tolist()
        leader = None if problem.demand.leaderless else order[0]
        tables = PrefixBounds(problem.demand, size, quorum, leader)
        pairs = some_pairs(rng, tables)
        paired = PrefixBounds(problem.demand, size, quorum, leader, pairs)
        for depth in range(0 if leader is None else 1, size):
            chosen, coming = order[:depth], order[depth : depth + int(rng.integers(size, 8))]
            if len(coming) < size - depth:
                continue
            sets = np.sort(
                [[*chosen, *more] for more in itertools.combinations(coming, size - depth)]
            )
            led = sets[:, 0] if leader is None else np.full(len(sets), leader)
            least = float(score_many(problem.demand, led, sets, sets, quorum).min())
            start = tables.beginning(chosen, coming)
            assert start.independent <= least
            prices = rng.uniform(0, 1.2, len(start.home)) * np.minimum(start.home, 1e9)
            assert start.lagrangean(prices) <= least
            both = paired.beginning(chosen, coming)
            assert start.rest <= both.rest * (1 + 1e-12)
            assert both.independent <= least
            assert both.lagrangean(prices) <= least


def some_pairs(rng: np.random.Generator, tables: PrefixBounds) -> list[list[float]]:
    """Return random pairs of waits, with weights that leave a part of each wait."""
    number = len(tables.waits)
    pairs = list(itertools.combinations(range(number), 2))
    kept = [pair for pair in pairs if rng.random() < 0.5]
    least = [min(tables.waits[a].rounds, tables.waits[b].rounds) for a, b in kept]
    return [[a, b, one / number] for (a, b), one in zip(kept, least, strict=True)]


def test_two_majorities_far_apart_wait_longer_together() -> None:
    rtt = np.array([[0.0, 1.0, 2.0, 9.0, 9.0, 9.0], [9.0, 9.0, 9.0, 0.0, 1.0, 2.0]])
    waits = [PairedWait(one, 2, 1.0) for one in rtt]
    pairs = WaitPairs(waits, [(0, 1, 0.5)])
    # each alone waits for 1 ms; two of three sites cannot be near to both
    assert pairs.gain([], range(6), 3) == 0.5 * (1.0 + 9.0 - 2.0)
    assert pairs.gain([], range(6), 4) == 0.0
    assert pairs.gain([0, 1], [2, 3, 4, 5], 1) == 0.0
    assert pairs.gain([0, 1], [2, 4, 5], 1) == 0.0
    assert pairs.gain([0], [1, 2, 3, 4, 5], 2) == 4.0
    assert pairs.gain([], [0], 1) == np.inf
    for wrong in ([0, 0, 0.1], [0, 2, 0.1], [0, 1, -0.1], [0, 1, 1.0], [0, 1, np.nan], [0.5, 1, 0]):
        with pytest.raises(CertificateError):
            WaitPairs(waits, [wrong])
    with pytest.raises(CertificateError):
        WaitPairs(waits, [(0, 1, 0.5), (0, 1, 0.5)])


@needs_kernel
def test_pairs_prove_what_waits_alone_do_not() -> None:
    problem = Problem(placement.load("world27"), replicas=5, voters=5, protocol="abd:multi=2")
    plan = placement.solve(problem, method="sets")
    assert plan.certified
    certificate = plan.certificate
    (proof,) = certificate["proofs"]
    assert proof["pairs"]
    assert check_certificate(plan).bound == plan.bound
    for pairs in ([], [[a, b, 2 * weight] for a, b, weight in proof["pairs"]]):
        alone = {**certificate, "proofs": [{**proof, "pairs": pairs}]}
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate=alone))


@needs_kernel
@pytest.mark.parametrize("part", seeds(4, 200))
def test_certificates_hold_and_prove_no_more_than_is_true(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem = everyone_votes(seed)
        if problem is None:
            continue
        plan = placement.solve(problem, method="sets")
        if not plan.found:
            continue
        assert plan.certificate["format"] == FORMAT
        again = json.loads(json.dumps(plan.certificate))
        result = check_certificate(plan.replace(certificate=again))
        assert result.bound == plan.bound
        worse = next_best(problem, plan)
        if worse is None:
            continue
        lie = Plan.of(problem, worse, method="sets", bound=score_of(problem, worse))
        with pytest.raises(CertificateError):
            check_certificate(lie.replace(certificate=write_certificate(lie)))
        if any(one["steps"] for one in again["proofs"]):
            with pytest.raises(CertificateError):
                check_certificate(lie.replace(certificate=ruled_out(again, lie)))


def next_best(problem: Problem, plan: Plan) -> Configuration | None:
    """Return the configuration of a higher score that swaps one site; None: there is none."""
    best = plan.configuration
    assert best is not None
    found: list[tuple[float, Configuration]] = []
    for out, into in itertools.product(best.replicas, range(len(problem.rules.may_hold))):
        members = tuple(sorted({*best.replicas, into} - {out}))
        leader = members[0] if problem.demand.leaderless else best.leader
        if len(members) != len(best.replicas) or leader not in members:
            continue
        one = Configuration(leader, members, members)
        if not violations(problem, one) and np.isfinite(score_of(problem, one)):
            found.append((score_of(problem, one), one))
    above = [pair for pair in found if pair[0] > plan.score * (1 + 1e-6)]
    return min(above, key=lambda pair: pair[0])[1] if above else None


def ruled_out(certificate: dict[str, object], lie: Plan) -> dict[str, object]:
    """Return a certificate that rules out everything at the first beginning."""
    own = lie.configuration
    assert own is not None
    proofs = certificate["proofs"]
    assert isinstance(proofs, list)
    return {
        **certificate,
        "bound": lie.bound,
        "score": lie.objective,
        "leader": own.leader,
        "voters": list(own.voters),
        "replicas": list(own.replicas),
        "proofs": [{**one, "steps": one["steps"] and "i", "prices": []} for one in proofs],
    }


@needs_kernel
def test_damaged_certificates_are_refused() -> None:
    problem = Problem(world(11, 9), replicas=4, voters=4, protocol="epaxos:multi=2")
    plan = placement.solve(problem, method="sets")
    whole = plan.certificate
    (proof,) = whole["proofs"]
    for part in (
        {"steps": proof["steps"] + "o"},
        {"steps": proof["steps"][:-1]},
        {"steps": "x" + proof["steps"][1:]},
        {"steps": "l", "prices": ["zz"]},
        {"prices": [*proof["prices"], "000"]},
        {"leader": 1},
    ):
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**whole, "proofs": [{**proof, **part}]}))
    for other in ({"order": whole["order"][1:]}, {"proofs": []}, {"bound": float("nan")}):
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**whole, **other}))
    with pytest.raises(LimitError):
        check_certificate(plan, work=1000)


@needs_kernel
def test_a_search_that_is_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(placement.load("world27"), replicas=5, voters=5, protocol="epaxos:multi=2")
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    assert plan.certified
    monkeypatch.setattr(set_certificate, "MOST_NODES", 10)
    without = placement.solve(problem)
    assert without.configuration == plan.configuration
    if without.certified:
        assert without.certificate["format"] == ENUMERATION
    else:
        assert "no certificate: it would be too large" in " ".join(without.notes)
    assert not placement.solve(problem, settings={"certificate": False}).certified

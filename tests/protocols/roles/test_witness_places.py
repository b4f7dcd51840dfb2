"""Witnesses beside rules, pins, leases and RTTs that vary: every choice of their sites proven."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import placement
from placement import Diversity, InputError, Problem, check_certificate
from placement.errors import CertificateError
from placement.evaluation.objective import score_of
from placement.feasibility.feasible_plans import violations
from placement.feasibility.witness_places import count_places, named_question, witness_places
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.proof.certificate_check import PLACES
from placement.support.status import Status
from tests.effort import seeds
from tests.protocols.worlds import world

PROTOCOLS = (
    "raft", "leases", "leases:interference=0.3", "semi-sync:level=region", "flexiraft:level=region",
    "crdb-global", "tidb:follower=0.5",
)  # fmt: skip
LEASES = ("leases:holders=1", "leases:holders=2", "leases:holders=2,interference=0.3")


def varied(rng: np.random.Generator, one: Instance) -> Instance:
    """Return the instance with intervals that have RTTs of their own, some without demand."""
    number = int(rng.integers(2, 4))
    sites = np.eye(len(one.sites), dtype=bool)
    rtt = [one.client_rtt * rng.uniform(0.5, 1.5, one.client_rtt.shape) for _ in range(number)]
    factors = rng.uniform(0.5, 1.5, (number, *sites.shape))
    between = [np.where(sites, 0.0, one.site_rtt * factor) for factor in factors]
    counts = one.counts if one.counts.ndim == 3 else one.counts[np.newaxis]
    shares = [1, *rng.integers(0, 3, number - 1).tolist()]
    return one.replace(
        intervals=[f"{k}" for k in range(number)],
        client_rtt=np.stack(rtt),
        site_rtt=np.stack(between),
        counts=np.concatenate([counts[:1] * share for share in shares]),
    )


def question(seed: int) -> Problem | None:
    """Return a random small question with witnesses, or None where it contradicts itself."""
    rng = np.random.default_rng([seed, 99])
    one = world(
        seed, sites=int(rng.integers(5, 8)), clients=int(rng.integers(2, 6)),
        ties=bool(rng.integers(2)),
    )  # fmt: skip
    size, witnesses = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    voters = int(rng.integers(1, size + 1)) + witnesses
    asked: dict[str, object] = {"replicas": size, "voters": voters, "witnesses": witnesses}
    kind = rng.integers(4)
    if kind == 0:
        asked["protocol"] = str(rng.choice(LEASES))
        asked["voters"] = voters = size + witnesses
    elif kind == 1:
        asked["protocol"] = str(rng.choice(PROTOCOLS))
    elif kind == 2:
        one = varied(rng, one)
    if kind and rng.random() < 0.3:
        asked["replicas"] = (size, size + 1)
    if rng.random() < 0.3:
        asked["quorum"] = int(rng.integers(1, voters + 1))
    rule = rng.integers(9)
    named = ["s1", "s3"][:witnesses]
    if rule == 0:
        asked["survive"] = "region"
    elif rule == 1:
        asked["diversity"] = Diversity("region", "voters", cap=int(rng.integers(1, 3)))
    elif rule == 2:
        asked["diversity"] = [
            Diversity("region", "voters", min_domains=2), Diversity("region", "replicas", cap=2),
        ]  # fmt: skip
    elif rule == 3:
        asked["witnesses"] = named
    elif rule == 4:
        asked["pinned_voters"] = ["s2"]
    elif rule == 5:
        asked |= {
            "diversity": Diversity("region", "replicas", min_domains=2),
            "witnesses": named,
        }
    elif rule == 6:
        asked |= {
            "diversity": Diversity("site", "replicas", domain="s2", least=1),
            "survive": "site",
        }
    elif rule == 7:
        asked |= {"non_voters": ["s0"], "pinned": ["s4"]}
    try:
        problem = Problem(one, **asked)  # type: ignore[arg-type]
        assert problem.rules.witnesses
    except InputError:
        return None
    return problem


@pytest.mark.parametrize("part", seeds(8, 300))
def test_exact_finds_what_enumeration_finds_and_proves_it(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem = question(seed)
        if problem is None:
            continue
        expected = placement.solve(problem, "exhaustive")
        found = placement.solve(problem)
        assert found.status is expected.status, seed
        if expected.configuration is None or found.configuration is None:
            continue
        assert found.score == pytest.approx(expected.score, rel=1e-12), seed
        assert not violations(problem, found.configuration)
        again = placement.solve(problem, "exact", start=expected.configuration)
        assert again.score == pytest.approx(expected.score, rel=1e-12), seed
        assert found.certified
        kept = json.loads(json.dumps(found.certificate))
        assert check_certificate(found.replace(certificate=kept)).bound == found.bound


@pytest.mark.parametrize("seed", seeds(30, 300))
def test_a_question_of_places_has_the_scores_of_the_question(seed: int) -> None:
    problem = question(seed)
    if problem is None:
        return
    rules = problem.rules
    assert len(list(witness_places(problem))) <= count_places(problem)
    for places in itertools.islice(witness_places(problem), 3):
        named = named_question(problem, places)
        if named is None:
            continue
        sizes = range(named.problem.rules.replicas_min, named.problem.rules.replicas_max + 1)
        able = np.nonzero(named.problem.rules.may_hold)[0].tolist()
        for size in sizes:
            for chosen in itertools.islice(itertools.combinations(able, size), 300):
                for leader in chosen:
                    votes = named.problem.rules.voters
                    voters = chosen if votes == size else (leader, *chosen[: votes - 1])
                    if leader not in voters or len(set(voters)) != votes:
                        continue
                    one = Configuration.of(leader, voters, chosen)
                    if violations(named.problem, one):
                        continue
                    back = named.original(one)
                    assert not violations(problem, back), (seed, places, one)
                    assert score_of(problem, back) == pytest.approx(
                        score_of(named.problem, one), rel=1e-12
                    )
                    assert rules.witness_sites(back.replicas).size >= rules.witnesses


def test_a_certificate_has_a_part_for_every_choice() -> None:
    problem = Problem(
        placement.load("world27", mix="ycsb-a"), replicas=4, voters=5, witnesses=1,
        survive="continent",
    )  # fmt: skip
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    certificate = plan.certificate
    assert certificate["format"] == PLACES
    parts = certificate["parts"]
    assert isinstance(parts, list)
    assert len(parts) == len(list(witness_places(problem)))
    assert check_certificate(plan).leaders > len(parts)
    for other in (parts[1:], [*parts, parts[0]], [*parts[1:], parts[0]], [{"format": "x"}]):
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**certificate, "parts": other}))
    without = plan.replace(problem=problem.replace(survive=None))
    with pytest.raises(CertificateError):  # without the rule other places of the voters are better
        check_certificate(without)


@pytest.mark.parametrize(
    "asked",
    [
        {"survive": "continent"},
        {"diversity": Diversity("continent", "voters", cap=2)},
        {"protocol": "leases"},
        {"protocol": "leases:holders=2"},
        {"witnesses": ["us-east1"]},
    ],
)
def test_exact_proves_witnesses_of_a_world(asked: dict[str, object]) -> None:
    world27 = placement.load("world27", mix="ycsb-a")
    if "witnesses" in asked:
        asked = {"witnesses": [world27.sites[7]], "survive": "continent"}
    problem = Problem(world27, **({"replicas": 4, "voters": 5, "witnesses": 1} | asked))  # type: ignore[arg-type]
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    assert plan.certified
    assert not any("milp" in note for note in plan.notes)
    assert check_certificate(plan).bound == plan.bound


def test_a_time_limit_leaves_a_true_plan() -> None:
    problem = Problem(
        placement.load("azure"), replicas=4, voters=6, witnesses=2, survive="continent"
    )
    plan = placement.solve(problem, time_limit=1e-3)
    assert plan.status is not Status.OPTIMAL
    assert plan.bound <= plan.objective
    if plan.configuration is not None:
        assert not violations(problem, plan.configuration)


def test_a_time_limit_leaves_a_bound_on_the_choices_that_were_not_searched() -> None:
    instance = placement.load("world27")
    problem = Problem(instance, replicas=4, voters=5, witnesses=2, survive="country")
    optimum = placement.solve(problem)
    assert optimum.status is Status.OPTIMAL
    for limit in (1e-4, 5e-3, 2e-2):
        plan = placement.solve(problem, time_limit=limit)
        assert 0.5 * optimum.score < plan.bound <= optimum.score * (1 + 1e-12)
        assert not plan.found or plan.score >= optimum.score * (1 - 1e-12)

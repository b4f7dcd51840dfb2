"""Witnesses: voters that hold no replica, serve no reads and cannot lead."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import placement
from placement import Configuration, Diversity, InputError, Prices, Problem, UnsupportedError
from placement.analysis.sensitivity import best_plans
from placement.databases.deployment import deployment_of_plan
from placement.errors import CertificateError
from placement.evaluation.objective import score_of
from placement.evaluation.waits.wait_checks import refuse_waits, wait_notes
from placement.feasibility.feasible_plans import (
    count_places,
    named_question,
    original,
    violations,
    witness_places,
)
from placement.io import load_plan, save_plan
from placement.model.instance import Instance
from placement.overtime.replay import Deployments, Trace
from placement.proof.certificate_check import PLACES
from placement.report import report_html, save_figures
from placement.support.status import Status
from tests.cli.command import Run
from tests.effort import seeds
from tests.protocols.worlds import world

PROTOCOLS = ("raft", "spanner:epsilon=5", "tidb:follower=0.5", "follower-reads:fresh=0.7")


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
    kind = rng.integers(3)
    if kind == 1:
        asked["protocol"] = str(rng.choice(PROTOCOLS))
    elif kind == 2:
        one = varied(rng, one)
    if rng.random() < 0.3:
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
        asked |= {"diversity": Diversity("region", "replicas", min_domains=2), "witnesses": named}
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
        sizes = range(named.rules.replicas_min, named.rules.replicas_max + 1)
        able = np.nonzero(named.rules.may_hold)[0].tolist()
        for size in sizes:
            for chosen in itertools.islice(itertools.combinations(able, size), 300):
                for leader in chosen:
                    votes = named.rules.voters
                    voters = chosen if votes == size else (leader, *chosen[: votes - 1])
                    if leader not in voters or len(set(voters)) != votes:
                        continue
                    one = Configuration.of(leader, voters, chosen)
                    if violations(named, one):
                        continue
                    back = original(one, places)
                    assert not violations(problem, back), (seed, places, one)
                    assert score_of(problem, back) == pytest.approx(score_of(named, one), rel=1e-12)
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
    assert placement.check_certificate(plan).leaders > len(parts)
    for other in (parts[1:], [*parts, parts[0]], [*parts[1:], parts[0]], [{"format": "x"}]):
        with pytest.raises(CertificateError):
            placement.check_certificate(plan.replace(certificate={**certificate, "parts": other}))
    without = plan.replace(problem=problem.replace(survive=None))
    with pytest.raises(CertificateError):  # without the rule other places of the voters are better
        placement.check_certificate(without)


def test_a_witness_brings_the_commit_and_no_reads(tmp_path: Path) -> None:
    """Two regions far apart with a witness between them: RTTs of the CockroachDB demo."""
    rtt = np.array([[0.0, 66.0, 64.0], [66.0, 0.0, 146.0], [64.0, 146.0, 0.0]])
    instance = placement.Instance(
        sites=("us-east1", "us-west1", "europe-west1"), clients=("a", "b"),
        client_rtt=np.array([[100.0, 0.0, 100.0], [0.0, 90.0, 90.0]]), site_rtt=rtt,
        counts=np.ones((1, 2, 2)),
        operations=(
            placement.Operation("write", direct=1, quorum=1), placement.Operation("read", near=1),
        ),
    )  # fmt: skip
    asked = Problem(
        instance, replicas=["us-west1", "europe-west1"], voters=3, witnesses=["us-east1"],
        leader="us-west1",
    )  # fmt: skip
    plan = placement.solve(asked)
    assert plan.witnesses == ("us-east1",)
    assert plan.replicas == ("us-west1", "europe-west1")
    assert plan.quorum_wait == 66.0
    # b reads 90 ms away, although the witness is beside it
    assert [row.to_nearest for row in plan.client_rows] == [0.0, 90.0]
    assert plan.mean_latency == (0 + 90 + 2 * 66 + 0 + 90) / 4
    free = placement.solve(asked.replace(leader=None))
    assert {row.leader for row in free.leaders} == {"us-west1", "europe-west1"}
    assert "witness " in str(plan)
    assert "3 voters (1 witness: us-east1)" in repr(asked)
    assert any("only the leader holds" in note for note in wait_notes(asked))
    page = report_html(plan)
    assert 'class="mark witness"' in page
    assert "witness: votes without a replica" in page
    assert save_figures(plan, tmp_path)
    assert "2 of 2 replicas vote, and 1 witness without a replica." in page


def test_a_plan_file_keeps_witnesses(tmp_path: Path) -> None:
    problem = Problem(world(5), replicas=3, voters=4, witnesses=2)
    plan = placement.solve(problem)
    assert len(plan.witnesses) == 2
    save_plan(plan, tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert document["version"] == 2
    assert document["witnesses"] == list(plan.witnesses)
    assert document["problem"]["witnesses"] == 2
    again = load_plan(tmp_path / "plan.json", problem.instance)
    assert (again.configuration, again.score) == (plan.configuration, plan.score)
    assert placement.check_certificate(again).bound == pytest.approx(plan.score, rel=1e-9)
    named = problem.replace(witnesses=["s5", "s6"], forbidden=["s0"])
    save_plan(placement.solve(named), tmp_path / "named.json")
    assert load_plan(tmp_path / "named.json", problem.instance).problem.witnesses == ("s5", "s6")


def test_a_witness_counts_where_losses_must_leave_votes() -> None:
    problem = Problem(world(4), replicas=2, voters=3, witnesses=1, survive="region")
    plan = placement.solve(problem)
    regions = dict(zip(problem.instance.sites, problem.instance.domains["region"], strict=True))
    assert len({regions[site] for site in plan.voters}) == 3


def test_a_witness_has_no_price_of_a_replica() -> None:
    prices = Prices(
        storage=np.arange(1.0, 8.0), machines=np.full(7, 10.0),
        machines_non_voting=np.full(7, 4.0),
    )  # fmt: skip
    instance = world(3).replace(prices=prices)
    plan = placement.evaluate(
        Problem(instance, replicas=2, voters=3, witnesses=1),
        leader="s0", voters=["s0", "s1", "s6"], replicas=["s0", "s1"],
    )  # fmt: skip
    assert plan.status is Status.FEASIBLE
    assert plan.cost == 1 + 2 + 2 * 10
    assert plan.bill is not None
    assert sum(line.amount for line in plan.bill.rows) == plan.cost


def test_the_command_line_asks_for_witnesses(tmp_path: Path, command: Run) -> None:
    asked = ["solve", "world27", "--replicas", "3", "--voters", "3", "--witnesses", "1", "--json"]
    document = command(*asked, code=0).document
    assert document["status"] == "optimal"
    (witness,) = document["witnesses"]
    assert witness in document["voters"]
    assert witness not in document["replicas"]
    given = [f"--{role}={','.join(document[role])}" for role in ("voters", "replicas")]
    same = ["check", "configuration", "world27", "--leader", document["leader"], *given, "--json"]
    again = command(*same, "--witnesses", "1", code=0).document
    assert again["score"] == document["score"]
    named = [*asked[:-3], "--witnesses", witness, "--json"]
    assert command(*named, code=0).document["score"] == document["score"]


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("witnesses", {"witnesses": 3}),
        ("witnesses", {"witnesses": -1}),
        ("witnesses", {"witnesses": 1.5}),
        ("witnesses", {"witnesses": "s1"}),
        ("witnesses", {"witnesses": True}),
        ("witnesses", {"witnesses": ["s1", "s2", "s3"]}),
        ("witnesses", {"witnesses": ["nowhere"]}),
        ("witnesses", {"witnesses": ["s1"], "leader": "s1"}),
        ("witnesses", {"witnesses": ["s1"], "pinned": ["s1"]}),
        ("witnesses", {"witnesses": ["s1"], "pinned_voters": ["s1"]}),
        ("witnesses", {"witnesses": ["s1"], "replicas": ["s1", "s2", "s3"]}),
        ("witnesses", {"witnesses": ["s1"], "forbidden": ["s1"]}),
        ("witnesses", {"witnesses": ["s1"], "non_voters": ["s1"]}),
        ("witnesses", {"witnesses": 1, "voters": ["s1", "s2", "s3"]}),
        ("witnesses", {"witnesses": ["s4"], "voters": ["s1", "s2", "s3"]}),
        ("witnesses", {"witnesses": 1, "protocol": "leases"}),
        ("witnesses", {"witnesses": 1, "protocol": "flexiraft:level=region"}),
        ("objective", {"witnesses": 1, "objective": placement.Contingency()}),
        ("voters", {"witnesses": 1, "voters": 5}),
        ("quorum", {"witnesses": 1, "quorum": 4}),
        ("pinned_voters", {"witnesses": 1, "pinned_voters": ["s0", "s1", "s2"]}),
        ("current", {"witnesses": 1,
                     "current": {"leader": "s0", "voters": ["s0"], "replicas": ["s0"]}}),
    ],
)  # fmt: skip
def test_what_witnesses_cannot_be_asked_with_is_refused(
    field: str, asked: dict[str, object]
) -> None:
    with pytest.raises(InputError) as caught:
        Problem(world(2), **{"replicas": 3, "voters": 3} | asked)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_too_few_sites_for_witnesses_is_a_reason() -> None:
    problem = Problem(world(2), replicas=7, voters=3, witnesses=1)
    plan = placement.solve(problem)
    assert plan.status is Status.INFEASIBLE
    assert "0 sites may be one" in " ".join(plan.reasons) or "only" in " ".join(plan.reasons)
    free = problem.replace(replicas=6, forbidden=["s6"])
    assert placement.solve(free).status is Status.INFEASIBLE


def test_too_many_choices_of_sites_are_refused_with_their_number() -> None:
    problem = Problem(placement.load("azure"), replicas=3, voters=6, witnesses=3)
    with pytest.raises(UnsupportedError, match=r"17,296: name the witnesses"):
        placement.solve(problem)


def test_what_counts_voters_as_replicas_refuses_witnesses() -> None:
    problem = Problem(world(2), replicas=3, voters=3, witnesses=1)
    with pytest.raises(UnsupportedError, match=r"witnesses: a replay"):
        refuse_waits(problem, "a replay")
    with pytest.raises(UnsupportedError, match=r"witnesses: the list of the next best plans"):
        next(best_plans(problem))
    with pytest.raises(UnsupportedError, match=r"witnesses: a replay"):
        Deployments.solved(problem, Trace.of_instance(problem.instance))
    plan = placement.solve(problem)
    assert {row.lost for row in plan.failures.each} >= set(plan.witnesses)
    assert not set(plan.witnesses) & {name for name, _ in plan.failures.failover}
    with pytest.raises(InputError, match="without witnesses"):
        deployment_of_plan(plan)
    for method in ("local-search", "milp", "cp-sat", "exhaustive"):
        with pytest.raises(UnsupportedError, match="supports only voters with a replica"):
            placement.solve(problem, method=method)
    broken = Configuration(0, (0, 1, 2), (0, 1, 2))
    assert "0 witnesses instead of 1" in violations(problem, broken)
    leads = Configuration(3, (0, 1, 3), (0, 1, 2))
    assert any("is a witness" in reason for reason in violations(problem, leads))

"""Witnesses: voters that hold no replica, serve no reads and cannot lead."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement import Configuration, InputError, Prices, Problem, UnsupportedError
from placement.analysis.sensitivity import best_plans
from placement.cli import main
from placement.databases.deployment import deployment_of_plan
from placement.evaluation.voter_choice import best_voters
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.evaluation.waits.wait_notes import wait_notes
from placement.feasibility.feasible_plans import violations
from placement.io import load_plan, save_plan
from placement.io.leader_plan_document import plan_document
from placement.overtime.replay import Deployments, Trace
from placement.report import report_html, save_figures
from placement.support.status import Status
from tests.effort import examples
from tests.protocols.worlds import world


def least_score(problem: Problem) -> float:
    """Return the best score by plain loops over ℓ, R, V ∩ R and the witnesses, and Eq. 1."""
    demand, rules = problem.demand, problem.rules
    sites = range(len(problem.instance.sites))
    near, relay, direct = demand.near[0], demand.relay[0], demand.direct[0]
    client, between = demand.client_rtt[0], demand.site_rtt[0]
    best = float("inf")
    for size in range(rules.replicas_min, rules.replicas_max + 1):
        for replicas in itertools.combinations(sites, size):
            rest = [s for s in sites if s not in replicas]
            closest = [
                min(replicas, key=lambda r, c=c: (client[c, r], r)) for c in range(len(near))
            ]
            for holding in itertools.combinations(replicas, rules.voters - rules.witnesses):
                for witnesses in itertools.combinations(rest, rules.witnesses):
                    for leader in holding:
                        found = Configuration(leader, (*holding, *witnesses), replicas)
                        if violations(problem, found):
                            continue
                        answers = sorted(between[leader, x] for x in (*holding, *witnesses))
                        total = demand.quorum[0] * answers[rules.quorum - 1]
                        for c, r in enumerate(closest):
                            total += near[c] * client[c, r] + relay[c] * between[r, leader]
                            total += direct[c] * client[c, leader]
                        best = min(best, float(total))
    return best


@st.composite
def questions(draw: st.DrawFn) -> Problem:
    """Small questions with witnesses, rules and ties."""
    instance = world(draw(st.integers(0, 10_000)), 6, 3, ties=draw(st.booleans()))
    replicas = draw(st.integers(1, 4))
    witnesses = draw(st.integers(0, 2))
    voters = draw(st.integers(1, replicas)) + witnesses
    asked: dict[str, object] = {"quorum": draw(st.none() | st.integers(1, voters))}
    extra = draw(st.sampled_from(["", "forbidden", "non_voters", "pinned", "leader", "names"]))
    if extra == "names":
        asked["witnesses"] = ["s4", "s1"][:witnesses]
    elif extra == "leader":
        asked["leader"] = "s2"
    elif extra:
        asked[extra] = ["s3"]
    if draw(st.booleans()):
        cap = draw(st.integers(1, 2))
        asked["diversity"] = placement.Diversity("region", "voters", cap=cap)
    low = max(1, voters - witnesses, replicas - draw(st.integers(0, 1)))
    return Problem(
        instance, **{"replicas": (low, replicas), "voters": voters, "witnesses": witnesses} | asked
    )  # type: ignore[arg-type]


@settings(deadline=None, max_examples=examples(60))
@given(problem=questions())
@pytest.mark.parametrize("method", ["exhaustive", "exact", "milp", "cp-sat"])
def test_methods_find_what_plain_loops_find(method: str, problem: Problem) -> None:
    least = least_score(problem)
    plan = placement.solve(problem, method=method)
    if np.isinf(least):
        assert plan.status is Status.INFEASIBLE
        return
    assert plan.status is Status.OPTIMAL
    assert plan.configuration is not None
    assert violations(problem, plan.configuration) == ()
    assert plan.score == pytest.approx(least, rel=1e-9)


@settings(deadline=None)
@given(problem=questions(), leader=st.integers(0, 5), data=st.data())
def test_the_voters_of_given_replicas_wait_least(
    problem: Problem, leader: int, data: st.DataObject
) -> None:
    rules = problem.rules
    size = rules.replicas_max
    replicas = sorted(data.draw(st.permutations(range(6)).map(lambda order: order[:size])))
    waits = {}
    for voters in itertools.combinations(range(6), rules.voters):
        if leader in voters and leader in replicas:
            found = Configuration(leader, voters, tuple(replicas))
            if not violations(problem, found):
                rtt = problem.demand.site_rtt[0, leader, list(voters)]
                waits[voters] = float(np.sort(rtt)[rules.quorum - 1])
    if leader not in replicas or violations_of_replicas(problem, replicas):
        return
    chosen = best_voters(problem.demand, rules, leader, replicas)
    if not waits:
        assert chosen is None
        return
    assert chosen is not None
    assert waits[tuple(sorted(chosen))] == min(waits.values())


def violations_of_replicas(problem: Problem, replicas: list[int]) -> bool:
    """Return whether the replicas alone break a rule."""
    rules = problem.rules
    held = np.isin(np.arange(6), replicas)
    return bool((held & ~rules.may_hold).any() or (rules.must_hold & ~held).any())


@settings(deadline=None, max_examples=examples(40))
@given(
    problem=questions(),
    protocol=st.sampled_from(["leases", "semi-sync:level=region", "flexiraft:level=region"]),
)
def test_methods_agree_on_waits_of_the_leader(problem: Problem, protocol: str) -> None:
    try:
        asked = problem.replace(protocol=protocol)
    except InputError:  # more answers than voters
        return
    best = placement.solve(asked, method="exhaustive")
    for method in ("milp", "cp-sat"):
        plan = placement.solve(asked, method=method)
        assert plan.status is best.status
        if best.found:
            assert plan.score == pytest.approx(best.score, rel=1e-9)


def test_no_witness_is_the_question_without_the_word() -> None:
    instance = placement.load("world27")
    plain = placement.solve(Problem(instance, replicas=5, voters=3))
    none = placement.solve(Problem(instance, replicas=5, voters=3, witnesses=0))
    assert (plain.configuration, plain.score) == (none.configuration, none.score)
    assert plain.witnesses == ()
    document = plan_document(none)
    assert document["version"] == 1
    assert "witnesses" not in document
    assert "witnesses" not in document["problem"]


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
    assert [row.to_nearest for row in plan.per_client] == [0.0, 90.0]
    assert plan.mean_latency == (0 + 90 + 2 * 66 + 0 + 90) / 4
    free = placement.solve(asked.replace(leader=None))
    assert {row.leader for row in free.leaders} == {"us-west1", "europe-west1"}
    assert "witness " in str(plan)
    assert "3 voters (1 witness: us-east1)" in repr(asked)
    assert any("only the leader holds" in note for note in wait_notes(asked))
    layout = asked.replace(vote_layout=(2, 2, 1))
    assert placement.solve(layout).quorum_wait == 66.0
    page = report_html(plan)
    assert "witness: votes, holds no data" in page
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
    cheap = placement.solve(Problem(instance, replicas=2, voters=3, witnesses=1, budget=23.0))
    assert set(cheap.replicas) == {"s0", "s1"}
    assert cheap.status is Status.OPTIMAL


def test_a_witness_may_cost_a_part_of_the_storage(tmp_path: Path) -> None:
    prices = Prices(storage=np.array([8.0, 8.0, 8.0, 8.0, 8.0, 2.0]), witness_share=0.5)
    instance = world(3, 6).replace(prices=prices)
    problem = Problem(instance, replicas=2, voters=3, witnesses=1)
    asked = {"leader": "s0", "voters": ["s0", "s1", "s2"], "replicas": ["s0", "s1"]}
    plan = placement.evaluate(problem, **asked)  # type: ignore[arg-type]
    assert plan.cost == 8 + 8 + 0.5 * 8
    assert plan.bill is not None
    assert sum(row.amount for row in plan.bill.rows) == plan.cost
    # without money in the question every method takes it; with it, the witness at s5 is cheapest
    assert placement.solve(problem, method="cp-sat").status is Status.OPTIMAL
    cheap = placement.solve(problem.replace(budget=17.0, forbidden=[]))
    assert cheap.status is Status.OPTIMAL
    assert "s5" in cheap.voters
    assert cheap.cost <= 17.0
    weighed = problem.replace(cost_weight=1e6)
    best = placement.solve(weighed, method="exhaustive")
    assert placement.solve(weighed).objective == best.objective
    assert "s5" in best.voters
    dear = placement.solve(problem.replace(budget=10.0))
    assert dear.status is Status.INFEASIBLE
    with pytest.raises(UnsupportedError, match=r"prices\.witness_share"):
        placement.solve(weighed, method="milp")
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again.problem.instance.prices is not None
    assert again.problem.instance.prices.witness_share == 0.5
    assert again.cost == plan.cost
    plain = instance.replace(prices=Prices(storage=prices.storage))
    assert plain.prices is not None
    assert "witness_share" not in plain.prices.given
    with pytest.raises(InputError, match="witness_share"):
        Prices(storage=prices.storage, witness_share=1.5)


@settings(deadline=None, max_examples=examples(40))
@given(seed=st.integers(0, 10_000), data=st.data())
def test_methods_agree_where_money_counts(seed: int, data: st.DataObject) -> None:
    """Every voter with a replica pays for its machine, a witness for nothing."""
    rng = np.random.default_rng(seed)
    transfer = rng.integers(0, 5, (6, 6)).astype(float)
    np.fill_diagonal(transfer, 0.0)
    machines = rng.integers(5, 9, 6).astype(float)
    prices = Prices(
        storage=rng.integers(1, 20, 6).astype(float), transfer=transfer, written_gb=2.0,
        machines=machines, machines_non_voting=machines - data.draw(st.integers(0, 3)),
    )  # fmt: skip
    replicas, witnesses = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    problem = Problem(
        world(seed, 6, 3).replace(prices=prices), replicas=replicas, voters=replicas + witnesses,
        witnesses=witnesses, cost_weight=data.draw(st.sampled_from([0.0, 1.0, 20.0])),
        budget=data.draw(st.none() | st.integers(20, 80)),
    )  # fmt: skip
    best = placement.solve(problem, method="exhaustive")
    for method in ("exact", "milp", "cp-sat"):
        plan = placement.solve(problem, method=method)
        assert plan.status is best.status
        if best.found:
            assert plan.objective == pytest.approx(best.objective, rel=1e-9)
        if plan.certified:
            placement.check_certificate(plan)


def test_the_layout_of_spanner_with_two_regions_and_a_witness() -> None:
    """Two read-write regions, a witness and two read-only regions; 3 of 5 votes are 2 voters."""
    problem = Problem(
        placement.load("world27"), replicas=4, voters=3, witnesses=1, vote_layout=(2, 2, 1),
        protocol="spanner",
    )  # fmt: skip
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    assert problem.rules.quorum == 2
    assert (len(plan.voters), len(plan.replicas), len(plan.witnesses)) == (3, 4, 1)
    assert placement.solve(problem, method="cp-sat").score == plan.score
    assert placement.check_certificate(plan).bound == pytest.approx(plan.score, rel=1e-9)


def test_the_command_line_asks_for_witnesses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["solve", "world27", "--replicas", "3", "--voters", "3", "--witnesses", "1", "--json"]
    assert main(asked) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "optimal"
    (witness,) = document["witnesses"]
    assert witness in document["voters"]
    assert witness not in document["replicas"]
    given = [f"--{role}={','.join(document[role])}" for role in ("voters", "replicas")]
    same = ["evaluate", "world27", "--leader", document["leader"], *given, "--json"]
    assert main([*same, "--witnesses", "1"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["score"] == document["score"]
    named = [*asked[:-3], "--witnesses", witness, "--json"]
    assert main(named) == 0
    assert json.loads(capsys.readouterr().out)["score"] == document["score"]


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
        ("witnesses", {"witnesses": 1, "protocol": "epaxos:multi=2"}),
        ("witnesses", {"witnesses": 1, "protocol": "abd:multi=2"}),
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
    with pytest.raises(UnsupportedError, match="supports only voters with a replica"):
        placement.solve(problem, method="local-search")
    broken = Configuration(0, (0, 1, 2), (0, 1, 2))
    assert "0 witnesses instead of 1" in violations(problem, broken)
    leads = Configuration(3, (0, 1, 3), (0, 1, 2))
    assert any("is a witness" in reason for reason in violations(problem, leads))

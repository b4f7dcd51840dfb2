"""Protocols as questions: equal to Eq. 1 where they are, in words, tables and commands."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

import placement
from placement import (
    InputError,
    Operation,
    Prices,
    Problem,
    Protocol,
    UnsupportedError,
    Wait,
    with_waits,
)
from placement.analysis.sensitivity import demand_range, next_best_plans
from placement.cli.verbs.compare import protocol_names
from placement.evaluation.objective import score_of
from placement.evaluation.waits.wait_checks import wait_notes
from placement.io import load_instance, load_plan, save_instance, save_plan
from placement.measures.question import percentile_question
from placement.methods import load_method
from placement.methods.registry import refusal
from placement.model.configuration import Configuration
from placement.model.operations import Clause
from placement.model.protocols import families, operation_path, system_rows
from placement.overtime.moves.move_prices import MovePrices
from placement.overtime.moves.move_search import best_move
from placement.overtime.replay import Deployments, Trace
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status
from placement.tail import Distributions, Percentile
from placement.testing.small_worlds import every_configuration
from placement.workloads import MIXES
from tests.cli.command import Run
from tests.overtime.watch.worlds import settings
from tests.protocols.worlds import world

LEADERLESS = ("epaxos", "atlas", "tempo", "caesar", "mencius", "hermes", "abd")


def score(one: placement.Instance, protocol: str | None, leader: int, group: list[int]) -> float:
    size = len(group)
    problem = Problem(one, replicas=size, voters=size, protocol=protocol)
    return score_of(problem, Configuration.of(leader, group, group))


@pytest.mark.parametrize("mix", MIXES)
def test_raft_is_eq_1_to_the_last_bit(mix: str) -> None:
    one = placement.load("world27", mix=mix)
    for group in ([0, 3, 7], [1, 4, 9, 16, 25]):
        for leader in group:
            assert score(one, "raft", leader, group) == score(one, None, leader, group)
    waits = {
        name: [f"{times} × leader: quorum of voters"]
        for name, times in (("single_group", 1), ("multi_group", 2))
    }
    by_hand = placement.with_waits(one, waits)
    assert score(by_hand, None, 3, [0, 3, 7]) == score(one, None, 3, [0, 3, 7])


def test_old_instances_keep_their_fingerprint_and_their_version(tmp_path: Path) -> None:
    one = world(3)
    assert one.fingerprint.startswith("f69e2c3277e844677cd13116")  # before there were waits
    save_instance(one, tmp_path / "old")
    manifest = json.loads((tmp_path / "old" / "instance.json").read_text())
    assert manifest["version"] == 1
    assert "waits" not in manifest["operations"][3]
    new = placement.with_waits(one, {"single_group": ["leader: all of replicas"]})
    assert new.fingerprint != one.fingerprint
    save_instance(new, tmp_path / "new")
    assert json.loads((tmp_path / "new" / "instance.json").read_text())["version"] == 2
    assert load_instance(tmp_path / "new") == new
    frames = new.to_frames()
    assert placement.Instance.from_frames(**frames).operations == new.operations
    assert "waits" not in one.to_frames()["operations"]


@pytest.mark.parametrize("protocol", ["leases:interference=0.1", "epaxos:slow=0.3,multi=2"])
def test_a_plan_file_holds_the_protocol_and_reads_back(tmp_path: Path, protocol: str) -> None:
    problem = Problem(world(5), replicas=3, voters=3, protocol=protocol)
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json", check=True)
    assert again.configuration == plan.configuration
    assert again.score == plan.score
    assert str(again.problem.protocol) == protocol
    assert (again.leader is None) == protocol.startswith("epaxos")
    changed = json.loads((tmp_path / "plan.json").read_text())
    changed["breakdown"]["waits"][0]["latency"] += 1
    (tmp_path / "plan.json").write_text(json.dumps(changed))
    with pytest.raises(InputError, match="latency"):
        load_plan(tmp_path / "plan.json")


def test_the_parts_add_up() -> None:
    for name in families():
        given = {"flexible": ":quorum=2", "flexiraft": ":level=region",
                 "semi-sync": ":level=region", "coordinated": ":r=2,w=2"}.get(name, "")  # fmt: skip
        if families()[name].one_group_only:
            given += (":" if not given else ",") + "multi=2"
        problem = Problem(world(8), replicas=5, voters=5, protocol=name + given)
        plan = placement.solve(problem, "exhaustive")
        for row, part in zip(plan.per_operation, plan.parts, strict=True):
            total = part.to_nearest + part.to_leader + part.waiting + part.constant
            assert total == pytest.approx(row.latency), name
        mean = sum(row.share * row.latency for row in plan.per_operation if row.share)
        assert mean == pytest.approx(plan.mean_latency), name
        for wait in plan.waits:
            assert wait.one_fewer <= wait.latency
            assert wait.last in plan.replicas


def test_a_certificate_of_a_small_question_is_checked_and_a_better_one_found() -> None:
    problem = Problem(world(11), replicas=3, voters=3, protocol="epaxos:multi=2")
    plan = placement.solve(problem)
    assert plan.certified
    assert check_certificate(plan).bound == pytest.approx(plan.score)
    worse = plan.replace(bound=plan.bound * 1.5)
    assert worse.bound > plan.score


# --- properties ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_scaling_rtts_scales_scores_and_constants_move_no_plan(seed: int) -> None:
    one = world(seed)
    twice = one.replace(client_rtt=2 * one.client_rtt, site_rtt=2 * one.site_rtt)
    for protocol in ("leases", "epaxos:multi=2", "pqr"):
        assert score(twice, protocol, 2, [0, 2, 5]) == 2 * score(one, protocol, 2, [0, 2, 5])
    plans = [
        placement.solve(Problem(one, replicas=3, voters=3, protocol=f"spanner:epsilon={e}"))
        for e in (3, 7)
    ]
    assert plans[0].configuration == plans[1].configuration
    writes = one.counts[:, :, 3:].sum()
    assert plans[1].score - plans[0].score == pytest.approx(4 * writes)


# --- refusals ---------------------------------------------------------------------------------


"""Stands for an objective that needs the world."""


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"protocol": "paxso"}, "protocol"),
        ({"protocol": "epaxos:fast=1"}, "protocol"),
        ({"protocol": "epaxos:slow=1.5"}, "slow"),
        ({"protocol": "epaxos:slow"}, "protocol"),
        ({"protocol": "epaxos:slow=0,slow=1"}, "protocol"),
        ({"protocol": "semi-sync"}, "protocol"),
        ({"protocol": "semi-sync:level=planet"}, "level"),
        ({"protocol": "semi-sync:level=region,k=4"}, "waits"),
        ({"protocol": "atlas:f=2,multi=2"}, "f"),
        ({"protocol": "atlas:f=0"}, "f"),
        ({"protocol": "spanner:epsilon=-1"}, "epsilon"),
        ({"protocol": "coordinated:r=2,w=4,multi=2"}, "waits"),
        ({"protocol": "epaxos"}, "protocol"),  # the world has transactions over several groups
        ({"protocol": "epaxos:multi=2", "voters": 2}, "voters"),
        ({"protocol": "epaxos:multi=2", "replicas": (3, 4)}, "voters"),
        ({"protocol": "caesar:multi=2", "replicas": 2, "voters": 2}, "voters"),
        ({"protocol": "epaxos:multi=2", "leader": "s1"}, "leader"),
        ({"protocol": "epaxos:multi=2", "leaders": ["s1", "s2"]}, "leaders"),
        ({"protocol": "flexible:quorum=2", "quorum": 3}, "quorum"),
        ({"protocol": "flexible:quorum=4"}, "protocol"),
        ({"protocol": "leases", "budget": 5}, "budget"),
        ({"protocol": "leases", "cost_weight": 5}, "cost_weight"),
        ({"protocol": 3}, "protocol"),
        ({"protocol": "pqr:interference=-0.1"}, "interference"),
        ({"protocol": "fast-paxos:multi=2", "replicas": 2, "voters": 2}, "voters"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_its_field(asked: dict, field: str) -> None:
    one = world(1).replace(prices=placement.Prices(np.ones(7)))
    with pytest.raises(InputError) as caught:
        Problem(one, **{"replicas": 3, "voters": 3, **asked})
    assert caught.value.field == field
    assert caught.value.expected


@pytest.mark.parametrize(
    ("wait", "field"),
    [
        ("leader: 4 of voters", "waits"),
        (f"leader: {'9' * 5000} of voters", "wait"),
        ("leader: 2 of voters inside region + 2 of voters outside region", "waits"),
        ("leader: majority of voters inside region + 3 of voters outside region", "waits"),
        ("near: 2 of replicas outside region + 2 of replicas inside region", "waits"),
        ("leader: 1 of voters outside planet", "level"),
        ("leader: 1 of voters outside rack", "domains['rack']"),
    ],
)
def test_waits_that_nobody_can_answer_are_refused_with_their_field(wait: str, field: str) -> None:
    one = world(1)
    domains = {**one.domains, "rack": (None, *(["a"] * 6))}
    with pytest.raises(InputError) as caught:
        Problem(
            placement.with_waits(one.replace(domains=domains), {"single_group": [wait]}),
            replicas=3,
            voters=3,
        )
    assert caught.value.field == field
    assert caught.value.expected


def test_methods_that_do_not_know_waits_refuse_them() -> None:
    problem = Problem(world(1), replicas=3, voters=3, protocol="leases")
    for name in placement.available():
        if name in ("cp-sat", "exact", "exhaustive", "milp", "sets"):
            assert placement.solve(problem, name).status is Status.OPTIMAL
        else:
            with pytest.raises(UnsupportedError, match="four coefficients"):
                placement.solve(problem, name)


def test_analyses_that_do_not_know_waits_refuse_them() -> None:
    problem = Problem(world(1), replicas=3, voters=3, protocol="leases")
    plan = placement.solve(problem)
    assert demand_range(plan, "c0").low <= 1
    with pytest.raises(UnsupportedError, match="a protocol whose commits"):
        placement.next_replicas(plan)
    seen = placement.solve(Problem(world(1), replicas=3, voters=3, witnesses=1))
    with pytest.raises(UnsupportedError, match=r"witnesses: the list .* got 1, expected 0"):
        next_best_plans(seen)


def test_waits_are_refused_beside_losses_percentiles_moves_and_rtts_that_vary() -> None:
    one = world(1)
    problem = Problem(one, replicas=3, voters=3, protocol="leases")
    plan = placement.solve(problem)
    here = plan.configuration
    assert here is not None
    varying = one.replace(
        intervals=("a", "b"),
        client_rtt=np.stack([one.client_rtt, one.client_rtt + 1]),
        counts=np.concatenate([one.counts, one.counts]),
    )
    percentile = percentile_question(99, Distributions.parametric(one, variation=0.0))
    p99 = Percentile(99.0, Distributions.parametric(one, variation=0.0))
    for field, asked in (
        ("objective", {"objective": placement.Contingency()}),
        ("objective", {"objective": percentile}),
        ("objective", {"objective": placement.Contingency(percentile=p99)}),
        ("current", {"current": here}),
        ("current", {"current": here, "moves": placement.Moves(add=1)}),
        ("instance", {"instance": varying}),
    ):
        with pytest.raises(InputError, match="have plans for the mean latency alone") as caught:
            problem.replace(**asked)
        assert caught.value.field == field
    assert not plan.tells_losses
    for refused in (
        lambda: plan.failures,
        lambda: settings(problem=problem),
        lambda: best_move(problem, here, MovePrices(leader=1.0), 5.0, placement.solve),
        lambda: Deployments.solved(problem, Trace.of_instance(one)),
    ):
        with pytest.raises(UnsupportedError, match="protocol whose commits wait for one quorum"):
            refused()


def test_a_protocol_says_what_is_unusual() -> None:
    one = world(2).replace(
        operations=(*world(2).operations[:4], Operation("odd", near=1, relay=0.3))
    )
    plan = placement.solve(Problem(one, replicas=3, voters=3, protocol="epaxos:slow=0.5"))
    assert any("conflicts" in note for note in plan.notes)
    assert any("odd" in note for note in plan.notes)
    assert plan.leader is not None  # the odd operation asks the leader
    plan = placement.solve(
        Problem(one, replicas=3, voters=3, protocol="coordinated:r=1,w=1"), "exhaustive"
    )
    assert any("r + w <= 3" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("wait", "idle"),
    [
        ("leader: 2 of voters + 1 of voters outside region", []),
        ("leader: 1 of voters + 1 of voters outside region", ["1 of voters"]),
        ("leader: quorum of voters + all of replicas", ["quorum of voters"]),
        ("leader: all of voters + 1 of voters inside region", ["1 of voters inside region"]),
        ("leader: majority of voters inside region + 2 of voters", []),
        ("leader: majority of voters outside region + 2 of voters", ["2 of voters"]),
        ("leader: all of voters outside region + 3 of voters", ["all of voters outside region"]),
        ("leader: 2 of replicas + 2 of voters", ["2 of replicas"]),
        ("leader: 3 of replicas + 2 of voters", []),
        ("leader: quorum of voters + quorum of voters + 3 of replicas", ["quorum of voters"]),
    ],
)
def test_clauses_that_never_decide_are_named_and_change_no_score(
    wait: str, idle: list[str]
) -> None:
    one = world(1)
    asked, *rest = (
        Problem(placement.with_waits(one, {"single_group": [w]}), replicas=4, voters=3)
        for w in (wait, *(_without(wait, clause) for clause in idle))
    )
    named = [note for note in wait_notes(asked) if "never decides" in note]
    assert [note.split("'")[1] for note in named] == idle
    for configuration in list(every_configuration(asked))[::7]:
        scores = [score_of(question, configuration) for question in (asked, *rest)]
        assert scores == [scores[0]] * len(scores)


def _without(wait: str, clause: str) -> str:
    origin, _, clauses = wait.partition(": ")
    kept = clauses.split(" + ")
    kept.remove(clause)
    return f"{origin}: {' + '.join(kept)}"


def test_a_quorum_of_half_the_voters_says_what_elections_need() -> None:
    def said(protocol: str, voters: int) -> list[str]:
        problem = Problem(world(1), replicas=5, voters=voters, protocol=protocol)
        return [note for note in wait_notes(problem) if "election" in note]

    assert "2 of 5 votes" in said("flexible:quorum=2", 5)[0]
    assert "an election needs 4 votes" in said("flexible:quorum=2", 5)[0]
    assert "an election needs 3 votes" in said("flexible:quorum=2", 4)[0]
    assert not said("flexible:quorum=2", 3)
    assert not said("raft", 5)
    assert not wait_notes(Problem(world(1), replicas=5, voters=5, quorum=2))


def test_a_wait_that_nobody_can_meet_makes_a_configuration_infeasible() -> None:
    one = world(2, sites=3).replace(domains={"region": ("a", "a", "b")})
    problem = Problem(one, replicas=2, voters=2, protocol="semi-sync:level=region")
    plan = placement.solve(problem)
    assert "s2" in plan.voters
    broken = placement.evaluate(problem, leader="s0", voters=["s0", "s1"], replicas=["s0", "s1"])
    assert broken.status is Status.VIOLATING
    assert "answers" in broken.reasons[0]
    nowhere = one.replace(domains={"region": ("a", "a", "a")})
    none = placement.solve(Problem(nowhere, replicas=2, voters=2, protocol=problem.protocol))
    assert none.status is Status.INFEASIBLE


def test_text_and_parameters_are_one() -> None:
    assert Protocol("epaxos", {"slow": 0.05}) == Protocol("epaxos: slow=0.05")
    assert str(Protocol("leases")) == "leases"
    assert hash(Protocol("leases")) == hash(Protocol("leases"))


def test_a_plan_under_waits_has_no_bill() -> None:
    instance = world(1)
    instance = instance.replace(prices=Prices(storage=np.ones(len(instance.sites))))
    plan = placement.solve(Problem(instance, replicas=3, voters=3))
    assert plan.bill is not None
    waiting = placement.solve(Problem(instance, replicas=3, voters=3, protocol="leases"))
    assert waiting.configuration is not None
    assert waiting.bill is None


def test_a_question_with_a_protocol_goes_to_another_process() -> None:
    asked = "leases:interference=0.2"
    problem = Problem(world(1), replicas=3, voters=3, protocol=asked)
    again = pickle.loads(pickle.dumps(problem))
    assert again.protocol == problem.protocol
    assert again.operations == problem.operations
    assert str(again.protocol) == str(Protocol(asked))


@pytest.mark.parametrize("row", system_rows(), ids=lambda row: f"{row.system} {row.operation}")
def test_a_measured_system_costs_its_row(row):
    choice, family = {"strong_read": "read"}.get(row.kind, row.kind), families()[row.system]
    given = {choice: row.operation} if choice in family.parameters else {}
    for key, times in {"disk": row.disk_before + row.disk_beside, "apply": row.apply}.items():
        if key in family.parameters:
            path = Protocol(row.system, {**given, key: 2.5}).paths(3)[row.kind]
            assert path.constant == pytest.approx(row.path.constant + times * 2.5)
    if given:
        with pytest.raises(InputError, match=f"expected one of .*{row.operation}"):
            Protocol(row.system, {choice: "none such"})


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("leader: quorum of voters", "leader: quorum of voters"),
        (" leader :  2 of voters+1 of voters outside  region ",
         "leader: 2 of voters + 1 of voters outside region"),
        ("0.05*near: majority of voters", "0.05 × near: majority of voters"),
        ("2 x client: majority of voters", "2 × client: majority of voters"),
        ("1 × near: 1 of replicas inside failure zone", "near: 1 of replicas inside failure zone"),
        ("1e-3 × near: 1 of replicas", "0.001 × near: 1 of replicas"),
    ],
)  # fmt: skip
def test_the_text_is_canonical_and_reads_back(given: str, text: str) -> None:
    wait = Wait(given)
    assert str(wait) == text
    assert Wait(text) == wait
    assert repr(wait) == f"Wait({text!r})"


def test_every_wait_that_can_be_built_reads_back() -> None:
    needs = [1, 7, "majority", "quorum", "all"]
    scopes = [("", ""), ("inside", "region"), ("outside", "failure zone")]
    clauses = []
    for need, role, (scope, level) in itertools.product(needs, ("voters", "replicas"), scopes):
        if need != "quorum" or (role == "voters" and not scope):
            clauses.append(Clause(need, role, scope, level))  # type: ignore[arg-type]
    for times, (one, two) in itertools.product((1, 0.1 + 0.2, 1 / 3, 5e-324),
                                               itertools.pairwise(clauses)):  # fmt: skip
        wait = Wait("near", (one, two), times)
        assert Wait(str(wait)) == wait


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("quorum of voters", "wait"),
        ("somebody: 1 of voters", "origin"),
        ("leader: many of voters", "need"),
        ("leader: 0 of voters", "need"),
        ("leader: 1 of witnesses", "role"),
        ("leader: 1 voters", "wait"),
        ("leader: 1 of voters inside", "role"),
        ("leader: quorum of replicas", "need"),
        ("leader: quorum of voters inside region", "need"),
        ("client: 1 of voters inside region", "origin"),
        ("some × leader: 1 of voters", "times"),
        ("-1 × leader: 1 of voters", "times"),
        ("leader: ", "wait"),
    ],
)
def test_what_is_no_wait_is_refused_with_its_field(given: str, field: str) -> None:
    with pytest.raises(InputError) as caught:
        Wait(given)
    assert caught.value.field == field


def test_an_operation_reads_its_waits_and_keeps_its_old_form() -> None:
    plain = Operation("put", direct=1, quorum=1)
    assert repr(plain) == (
        "Operation(name='put', near=0.0, relay=0.0, direct=1.0, quorum=1.0, kind='write')"
    )
    one = Operation("put", direct=1, waits="leader: 2 of voters", constant=3)
    assert one.waits == (Wait("leader: 2 of voters"),)
    assert one.kind == "write"
    assert eval(repr(one)) == one
    for wrong in ({"constant": -1}, {"waits": [3]}, {"waits": 3}, {"constant": float("nan")}):
        with pytest.raises(InputError):
            Operation("put", **wrong)  # type: ignore[arg-type]


PROTOCOLS = ("raft", "leases", "epaxos:multi=2", "pqr", "abd:multi=2")


def test_each_row_is_that_protocol_s_own_optimum() -> None:
    problem = Problem(world(4), replicas=3, voters=3)
    table = placement.compare_protocols(problem, PROTOCOLS)
    assert table["protocol"].tolist() == list(PROTOCOLS)
    assert set(table["status"]) == {"optimal"}
    for row in table.to_dict("records"):
        plan = placement.solve(problem.replace(protocol=row["protocol"]), "exhaustive")
        assert row["mean_latency"] == pytest.approx(plan.mean_latency)
        assert row["on_first"] >= row["mean_latency"] * (1 - 1e-12)
        reads = problem.demand.counts[0][:, :3].sum() / problem.demand.operations
        mixed = reads * row["reads"] + (1 - reads) * row["writes"]
        assert mixed == pytest.approx(row["mean_latency"])
        held = problem.replace(protocol=row["protocol"], replicas=table["replicas"][0])
        assert row["on_first"] == pytest.approx(placement.solve(held).mean_latency)
    assert table["leader"].isna().tolist() == [False, False, True, False, True]


def test_the_same_sites_are_those_of_the_first_with_a_plan() -> None:
    problem = Problem(world(4), replicas=3, voters=3)
    table = placement.compare_protocols(problem, ["epaxos", *PROTOCOLS], same_sites=True)
    assert table["status"][0] == "refused"
    assert "multi=2" in table["reason"][0]
    assert math.isnan(table["mean_latency"][0])
    assert table.attrs["first"] == "raft"
    assert len(set(table["replicas"][1:])) == 1
    assert table["on_first"][1:].tolist() == table["mean_latency"][1:].tolist()


def test_a_question_that_no_protocol_can_change_is_refused() -> None:
    problem = Problem(world(4), replicas=3, voters=3)
    with pytest.raises(InputError, match="already"):
        placement.compare_protocols(problem.replace(protocol="raft"), ["leases"])
    for wrong in ([], ["paxso"], "raft", [3]):
        with pytest.raises(InputError):
            placement.compare_protocols(problem, wrong)  # type: ignore[arg-type]


def test_names_keep_their_parameters() -> None:
    assert protocol_names(["raft, atlas:f=1,slow=0.1,pqr", "abd"]) == [
        "raft", "atlas:f=1,slow=0.1", "pqr", "abd",
    ]  # fmt: skip


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Run) -> None:
    monkeypatch.chdir(tmp_path)
    save_instance(world(6), tmp_path / "world")
    ask = ["compare", "protocols", "world", "--replicas", "3", "--voters", "3"]
    named = ["--protocols", "raft,leases,epaxos:slow=0.1,multi=2"]
    out = command(*ask, *named, "--plot", "p.svg", code=0).out
    assert "elsewhere: mean ms on the replicas that are best under raft" in out
    assert (tmp_path / "p.svg").read_text().count(">epaxos:slow=0.1,multi=2<") == 2  # and title
    document = command(*ask, *named, "--same-sites", "--json", code=0).document
    assert document["same_sites"] is True
    assert [row["protocol"] for row in document["protocols"]][2] == "epaxos:slow=0.1,multi=2"
    for wrong, said in (
        (["--same-sites"], "--protocols"),
        ([*named, "--methods", "exact,sets"], "--methods"),
        ([*named, "--protocol", "raft"], "already"),
    ):
        assert said in command(*ask, *wrong, code=1).err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    save_instance(world(6), tmp_path / "world")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: Run, *words: str, code: int = 0) -> str:
    done = command(*words, code=code)
    return done.out + done.err


ASK = ("solve", "world", "--replicas", "3", "--voters", "3")


def test_a_plan_without_a_leader_goes_through_every_verb_that_shows_it(
    folder: Path, command: Run
) -> None:
    out = run(command, *ASK, "--protocol", "epaxos:slow=0.1,multi=2", "-o", "plan.json")
    assert "none: no operation needs one" in out
    assert "near: 2 of voters" in out
    document = json.loads((folder / "plan.json").read_text())
    assert document["leader"] is None
    assert document["version"] == 2
    assert document["problem"]["protocol"] == "epaxos:slow=0.1,multi=2"
    assert document["failures"] is None
    assert "proved" in run(command, "check", "plan.json")
    assert run(command, "report", "plan.json", "-o", "page.html") is not None
    page = (folder / "page.html").read_text()
    assert "none is needed" in page
    assert "near: 2 of voters" in page
    assert "Ranking of leaders" not in page


def test_show_tells_the_waits(folder: Path, command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    wait = {"single_group": ["leader: all of replicas"]}
    save_instance(with_waits(world(6), wait), folder / "waiting")
    assert "leader: all of replicas" in run(command, "show", "waiting")
    shown = command("show", "waiting", "--json", code=0).document
    assert shown["operations"][3]["waits"] == wait["single_group"]
    assert "waits" not in run(command, "show", "world")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--protocol", "epaxos"), "epaxos:multi=2"),
        (
            ("--protocol", "leases", "--method", "local-search"),
            "methods that support it: cp-sat, exact, exhaustive, milp, sets",
        ),
        (("--wait", "nobody=leader: 1 of voters"), "unknown operation"),
        (("--wait", "leader: 1 of voters"), "--wait"),
        (("--wait", "single_group=leader: some of voters"), "need"),
        (
            ("--protocol", "leases", "--spread", "0.2", "--percentile", "99", "--method", "milp"),
            "have plans for the mean latency alone",
        ),
        (("--protocol", "leases:holders=2"), "every replica holds a lease"),
        (("--protocol", "write=leases"), "a protocol is one for all kinds of operations"),
        (("--protocol", "crdb-global:rho=auto"), "expected a number >= 0"),
        (("--votes", "s1=2"), "sites vote once or not at all"),
    ],
)
def test_the_command_line_refuses(
    folder: Path, command: Run, words: tuple[str, ...], said: str
) -> None:
    assert folder.exists()
    assert said in run(command, *ASK, *words, code=1)


@pytest.mark.parametrize(
    "verb", [("lab", "online", "reads"), ("lab", "online", "dynamic"), ("lab", "replay")]
)
def test_verbs_without_waits_do_not_offer_them(command: Run, verb: tuple[str, ...]) -> None:
    wait = "single_group=leader: 1 of voters"
    said = run(
        command, *verb, "world27", "--replicas", "3", "--voters", "1", "--wait", wait, code=1
    )
    assert "unrecognized arguments" in said
    assert "--wait" in said


def test_the_list_and_the_description_of_protocols(command: Run) -> None:
    listed = command("show", "protocols", "--json", code=0).document["protocols"]
    for row in listed:
        assert row["name"] in run(command, "show", "protocols")
        found = command("show", "protocols", row["name"], "--json", code=0).document
        assert found["source"]
        assert set(found["paths"]) == {
            "weak_read", "bounded_read", "strong_read", "write", "multi_write"
        }  # fmt: skip
        assert row["name"] in run(command, "show", "protocols", row["name"])
        for method in ("exact", "milp", "cp-sat", "exhaustive"):
            family = families()[row["name"]]
            given = {key: 2 for key, one in family.parameters.items() if one.required}
            given |= {"level": "region"} if "level" in given else {}
            given |= {"multi": 2} if family.one_group_only else {}
            problem = Problem(world(6), replicas=5, voters=5, protocol=Protocol(row["name"], given))
            taken = refusal(load_method(method), problem) is None
            assert taken == (method in found["proven_by"].replace(",", " ").split())


def test_a_vote_of_0_is_a_site_without_a_vote(folder: Path, command: Run) -> None:
    voting = (*ASK[:-1], "2", "--json")
    asked = json.loads(run(command, *voting, "--no-vote", "s1"))
    same = json.loads(run(command, *voting, "--votes", "s1=0"))
    assert same["problem"] == asked["problem"]
    assert same["score"] == asked["score"]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("votes", {"s1": 2}, "sites vote once or not at all"),
        ("protocol", {"kinds": {"write": "leases"}}, "a protocol is one for all kinds"),
    ],
)
def test_what_older_folders_hold_is_refused_with_what_took_its_place(
    folder: Path, command: Run, key: str, value: object, said: str
) -> None:
    manifest = folder / "world" / "instance.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, key: value}))
    assert said in run(command, *ASK, code=1)


@pytest.mark.parametrize(
    ("asked", "proven"),
    [
        ("leases:interference=0.2", "exact, milp, cp-sat, exhaustive"),
        ("pqr", "exact (by its enumeration of sets), exhaustive"),
    ],
)
def test_methods_that_prove_a_protocol_are_named(asked: str, proven: str, command: Run) -> None:
    assert command("show", "protocols", asked, "--json", code=0).document["proven_by"] == proven
    assert proven in " ".join(run(command, "show", "protocols", asked).split())


def test_the_list_of_protocols_shows_whole_summaries(
    command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    words = run(command, "show", "protocols").split()
    for family in families().values():
        summary = family.summary.split()
        assert any(words[k : k + len(summary)] == summary for k in range(len(words)))


def test_waits_of_a_kind_are_those_of_its_operations_that_are_not_named(
    folder: Path, command: Run
) -> None:
    kind = "write=leader: all of voters"
    names = [one.name for one in world(6).operations if operation_path(one) == "write"]
    assert names == ["single_group"]
    out = run(command, *ASK, "--wait", kind, "--json")
    assert {row["operation"]: row["wait"] for row in json.loads(out)["breakdown"]["waits"]} == {
        "single_group": "leader: all of voters"
    }
    said = run(command, *ASK, "--wait", "writes=leader: all of voters", code=1)
    assert "got 'writes', expected one of weak_read" in said
    assert "or a kind: write, multi_write" in said
    named = "single_group=leader: 1 of voters"
    said = run(command, *ASK, "--wait", kind, "--wait", named, code=1)
    assert "got 'write', expected one of weak_read" in said


def test_no_rtt_to_a_leader_is_shown_where_there_is_none(folder: Path, command: Run) -> None:
    asked = (*ASK, "--protocol", "epaxos:multi=2")
    assert "to leader  to nearest" not in run(command, *asked, "-o", "plan.json")
    plan = load_plan("plan.json")
    assert all(math.isnan(row.to_leader) for row in plan.client_rows)
    run(command, "report", "plan.json", "-o", "page.html")
    assert "RTT to leader" not in (folder / "page.html").read_text()

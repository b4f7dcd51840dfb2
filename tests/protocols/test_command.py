"""The command line under a protocol: solve, show, report, check, and what it refuses."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from placement import Problem, with_waits
from placement.cli import main
from placement.io import load_plan, save_instance
from placement.methods import load_method
from placement.methods.registry import refusal
from placement.model.protocols import FAMILIES, Protocol, operation_path
from tests.protocols.worlds import world


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with an instance, which is the working directory."""
    save_instance(world(6), tmp_path / "world")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    said = capsys.readouterr()
    return said.out + said.err


ASK = ("solve", "world", "--replicas", "3", "--voters", "3")


def test_a_plan_without_a_leader_goes_through_every_verb_that_shows_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = run(capsys, *ASK, "--protocol", "epaxos:slow=0.1,multi=2", "-o", "plan.json")
    assert "none: no operation needs one" in out
    assert "near: 2 of voters" in out
    document = json.loads((folder / "plan.json").read_text())
    assert document["leader"] is None
    assert document["version"] == 2
    assert document["problem"]["protocol"] == "epaxos:slow=0.1,multi=2"
    assert document["failures"] is None
    assert "proved" in run(capsys, "check", "plan.json")
    assert run(capsys, "report", "plan.json", "-o", "page.html") is not None
    page = (folder / "page.html").read_text()
    assert "none is needed" in page
    assert "near: 2 of voters" in page
    assert "Ranking of leaders" not in page


def test_show_tells_the_waits(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    wait = {"single_group": ["leader: all of replicas"]}
    save_instance(with_waits(world(6), wait), folder / "waiting")
    assert "leader: all of replicas" in run(capsys, "show", "waiting")
    shown = json.loads(run(capsys, "show", "waiting", "--json"))
    assert shown["operations"][3]["waits"] == wait["single_group"]
    assert "waits" not in run(capsys, "show", "world")


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
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert folder.exists()
    assert said in run(capsys, *ASK, *words, code=1)


@pytest.mark.parametrize(
    "verb", [("lab", "online", "reads"), ("lab", "online", "dynamic"), ("lab", "replay")]
)
def test_verbs_without_waits_do_not_offer_them(
    capsys: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    wait = "single_group=leader: 1 of voters"
    said = run(capsys, *verb, "world27", "--replicas", "3", "--voters", "1", "--wait", wait, code=1)
    assert "unrecognized arguments" in said
    assert "--wait" in said


def test_the_list_and_the_description_of_protocols(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(run(capsys, "show", "protocols", "--json"))["protocols"]
    for row in listed:
        assert row["name"] in run(capsys, "show", "protocols")
        found = json.loads(run(capsys, "show", "protocols", row["name"], "--json"))
        assert found["source"]
        assert set(found["paths"]) == {
            "weak_read", "bounded_read", "strong_read", "write", "multi_write"
        }  # fmt: skip
        assert row["name"] in run(capsys, "show", "protocols", row["name"])
        for method in ("exact", "milp", "cp-sat", "exhaustive"):
            family = FAMILIES[row["name"]]
            given = {key: 2 for key, one in family.parameters.items() if one.required}
            given |= {"level": "region"} if "level" in given else {}
            given |= {"multi": 2} if family.one_group_only else {}
            problem = Problem(world(6), replicas=5, voters=5, protocol=Protocol(row["name"], given))
            taken = refusal(load_method(method), problem) is None
            assert taken == (method in found["proven_by"].replace(",", " ").split())


def test_a_vote_of_0_is_a_site_without_a_vote(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    voting = (*ASK[:-1], "2", "--json")
    asked = json.loads(run(capsys, *voting, "--no-vote", "s1"))
    same = json.loads(run(capsys, *voting, "--votes", "s1=0"))
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
    folder: Path, capsys: pytest.CaptureFixture[str], key: str, value: object, said: str
) -> None:
    manifest = folder / "world" / "instance.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, key: value}))
    assert said in run(capsys, *ASK, code=1)


@pytest.mark.parametrize(
    ("asked", "proven"),
    [
        ("leases:interference=0.2", "exact, milp, cp-sat, exhaustive"),
        ("pqr", "exact (by its enumeration of sets), exhaustive"),
    ],
)
def test_methods_that_prove_a_protocol_are_named(
    asked: str, proven: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert json.loads(run(capsys, "show", "protocols", asked, "--json"))["proven_by"] == proven
    assert proven in " ".join(run(capsys, "show", "protocols", asked).split())


def test_the_list_of_protocols_shows_whole_summaries(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    words = run(capsys, "show", "protocols").split()
    for family in FAMILIES.values():
        summary = family.summary.split()
        assert any(words[k : k + len(summary)] == summary for k in range(len(words)))


def test_waits_of_a_kind_are_those_of_its_operations_that_are_not_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = "write=leader: all of voters"
    names = [one.name for one in world(6).operations if operation_path(one) == "write"]
    assert names == ["single_group"]
    out = run(capsys, *ASK, "--wait", kind, "--json")
    assert {row["operation"]: row["wait"] for row in json.loads(out)["breakdown"]["waits"]} == {
        "single_group": "leader: all of voters"
    }
    said = run(capsys, *ASK, "--wait", "writes=leader: all of voters", code=1)
    assert "got 'writes', expected one of weak_read" in said
    assert "or a kind: write, multi_write" in said
    named = "single_group=leader: 1 of voters"
    said = run(capsys, *ASK, "--wait", kind, "--wait", named, code=1)
    assert "got 'write', expected one of weak_read" in said


def test_no_rtt_to_a_leader_is_shown_where_there_is_none(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = (*ASK, "--protocol", "epaxos:multi=2")
    assert "to leader  to nearest" not in run(capsys, *asked, "-o", "plan.json")
    plan = load_plan("plan.json")
    assert all(math.isnan(row.to_leader) for row in plan.client_rows)
    run(capsys, "report", "plan.json", "-o", "page.html")
    assert "RTT to leader" not in (folder / "page.html").read_text()

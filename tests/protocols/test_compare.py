"""Protocols side by side: rows, proofs, the same sites, refusals, the command and its picture."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import placement
from placement import InputError, Problem
from placement.cli import main
from placement.cli.verbs.compare import protocol_names
from placement.io import save_instance
from tests.protocols.worlds import world

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


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save_instance(world(6), tmp_path / "world")
    ask = ["compare", "protocols", "world", "--replicas", "3", "--voters", "3"]
    named = ["--protocols", "raft,leases,epaxos:slow=0.1,multi=2"]
    assert main([*ask, *named, "--plot", "p.svg"]) == 0
    out = capsys.readouterr().out
    assert "elsewhere: mean ms on the replicas that are best under raft" in out
    assert (tmp_path / "p.svg").read_text().count("epaxos:slow=0.1,multi=2") == 1
    assert main([*ask, *named, "--same-sites", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["same_sites"] is True
    assert [row["protocol"] for row in document["protocols"]][2] == "epaxos:slow=0.1,multi=2"
    for wrong, said in (
        (["--same-sites"], "--protocols"),
        ([*named, "--methods", "exact,sets"], "--methods"),
        ([*named, "--protocol", "raft"], "already"),
    ):
        assert main([*ask, *wrong]) == 1
        assert said in capsys.readouterr().err

"""Moves on the command line: ``solve --from … --max-moves`` and ``next --moves``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from placement.cli import exit_codes as exits
from placement.cli.dispatch import main
from placement.io.plan_file import load_plan
from placement.proof.certificate_check import check_certificate

WORLD = ["world27", "--replicas", "5", "--voters", "3"]


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration that runs: a leader far from most clients."""
    path = tmp_path_factory.mktemp("moves") / "today.json"
    assert main(["solve", *WORLD, "--leader", "sa-east-1", "-o", str(path)]) == exits.FOUND
    return path


def test_solve_lists_the_steps_and_when_they_pay(
    today: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moves = ["--max-moves", "3", "--move-price", "add=20,leader=5,promote=1"]
    plan = tmp_path / "plan.json"
    asked = ["solve", *WORLD, "--from", str(today), *moves, "--move-horizon", "8"]
    assert main([*asked, "-o", str(plan)]) == exits.FOUND
    text = capsys.readouterr().out
    assert "hand the leadership over to" in text
    assert "3 changes" in text
    assert "paid back after" in text
    check_certificate(load_plan(plan))
    assert main(["check", str(plan)]) == exits.FOUND
    assert "a sum of mean latency and the price of the move below" in capsys.readouterr().out
    assert main([*asked, "--json"]) == exits.FOUND
    move = json.loads(capsys.readouterr().out)["move"]
    assert move["changes"] == 3
    assert move["leader"]
    assert move["price_ms"] == 6.0
    assert move["gain_ms"] == pytest.approx(move["before_ms"] - move["after_ms"])
    assert move["pays_after_periods"] == pytest.approx(6.0 / move["gain_ms"])
    assert move["steps"][-1]["mean_ms"] == pytest.approx(move["after_ms"])
    assert main(["report", str(plan), "-o", str(tmp_path / "plan.html")]) == exits.FOUND
    assert "How to get there" in (tmp_path / "plan.html").read_text(encoding="utf-8")


def test_a_configuration_by_name_is_read_too(
    today: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = load_plan(today)
    here = {"leader": plan.leader, "voters": plan.voters, "replicas": plan.replicas}
    (tmp_path / "now.json").write_text(json.dumps(here))
    asked = ["solve", *WORLD, "--from", str(tmp_path / "now.json"), "--max-moves", "0", "--json"]
    assert main(asked) == exits.FOUND
    document = json.loads(capsys.readouterr().out)
    assert document["move"]["changes"] == 0
    assert document["move"]["steps"] == []
    (tmp_path / "now.json").write_text(json.dumps({**here, "leader": "nowhere"}))
    assert main(asked) == exits.BAD_INPUT
    assert "nowhere" in capsys.readouterr().err


def test_next_tells_what_each_change_brings(
    today: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "free.json"
    asked = ["solve", *WORLD, "--from", str(today), "--max-moves", "0", "-o", str(plan)]
    assert main(asked) == exits.FOUND
    capsys.readouterr()
    assert main(["next", "world27", "--from", str(plan), "--moves", "--json"]) == exits.FOUND
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["changes"] for row in rows] == list(range(len(rows)))
    gains = [row["gain"] for row in rows]
    assert gains[0] == 0
    assert gains == sorted(gains)
    assert rows[-1]["share"] == pytest.approx(100)
    assert {row["status"] for row in rows} == {"optimal"}
    assert main(["next", "world27", "--from", str(plan), "--moves", "1"]) == exits.FOUND
    assert "% of all" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-moves", "2"], "--today"),
        (["--move-price", "5"], "--today"),
        (["--from", "TODAY", "--move-price", "add=-1"], "--move-price"),
        (["--from", "TODAY", "--move-price", "lift=1"], "--move-price"),
        (["--from", "TODAY", "--move-price", "add=1,add=2"], "twice"),
        (["--from", "TODAY", "--copy-gb", "5"], "stored_gb"),
    ],
)
def test_options_that_make_no_sense(
    today: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(today) if option == "TODAY" else option for option in options]
    assert main(["solve", *WORLD, *given]) == exits.BAD_INPUT
    assert words in capsys.readouterr().err

"""``placement sensitivity`` from the command line."""

import json

import pytest

from placement.cli import main


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    assert main(["solve", "world27", "--replicas", "4", "--voters", "3", "-o", str(path)]) == 0
    return str(path)


def test_text_and_json(plan, capsys):
    capsys.readouterr()
    assert main(["sensitivity", plan, "--clients", "2", "--runner-ups", "3"]) == 0
    text = capsys.readouterr().out
    assert "Next best plans, each proven" in text
    assert main(["sensitivity", plan, "--clients", "2", "--runner-ups", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    overheads = [row["overhead_percent"] for row in answer["runner_ups"]]
    assert len(overheads) == 3
    assert overheads == sorted(overheads)
    assert all(row["low"] <= row["value"] for row in answer["demand"] + answer["rtt"])


def test_exact_ranges_hold_the_safe_ones(plan, capsys):
    capsys.readouterr()
    rows = {}
    for more in ([], ["--exact"]):
        assert main(["sensitivity", plan, "--clients", "1", "--json", *more]) == 0
        rows[bool(more)] = json.loads(capsys.readouterr().out)["rtt"]
    for safe, exact in zip(rows[False], rows[True], strict=True):
        assert exact["low"] <= safe["low"] * (1 + 1e-6) + 1e-6
        assert exact["exact"]
        assert not safe["exact"]


def test_search_limits_are_marked_in_text_and_json(plan, capsys):
    capsys.readouterr()
    assert main(["sensitivity", plan, "--clients", "3", "--exact"]) == 0
    text = capsys.readouterr().out
    assert main(["sensitivity", plan, "--clients", "3", "--exact", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    limited = [row["high_is_limit"] for row in answer["demand"] + answer["rtt"]]
    assert any(limited)
    assert not all(limited)
    assert text.count("at least ") == sum(limited)
    assert not any(row["low_is_limit"] for row in answer["demand"] + answer["rtt"])


def test_bad_input(plan, capsys):
    assert main(["sensitivity", plan, "--clients", "-1"]) == 1
    assert "--clients: out of range" in capsys.readouterr().err

"""``placement explain`` from the command line."""

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
    assert main(["explain", plan, "--clients", "2", "--runner-ups", "3"]) == 0
    text = capsys.readouterr().out
    assert "Next best plans, each proven" in text
    assert main(["explain", plan, "--clients", "2", "--runner-ups", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    overheads = [row["overhead_percent"] for row in answer["runner_ups"]]
    assert len(overheads) == 3
    assert overheads == sorted(overheads)
    assert all(row["low"] <= row["value"] for row in answer["demand"] + answer["rtt"])


def test_search_limits_are_marked_in_text_and_json(plan, capsys):
    capsys.readouterr()
    assert main(["explain", plan, "--clients", "3", "--exact"]) == 0
    text = capsys.readouterr().out
    assert main(["explain", plan, "--clients", "3", "--exact", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    limited = [row["high_is_limit"] for row in answer["demand"] + answer["rtt"]]
    assert any(limited)
    assert not all(limited)
    assert text.count("at least ") == sum(limited)
    assert not any(row["low_is_limit"] for row in answer["demand"] + answer["rtt"])

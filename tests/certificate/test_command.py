"""``placement check`` from the command line."""

import json

from placement.cli import main


def solve(tmp_path, *more):
    plan = tmp_path / "plan.json"
    assert (
        main(["solve", "world27", "--replicas", "5", "--voters", "3", "-o", str(plan), *more]) == 0
    )
    return plan


def test_a_plan_is_proved(tmp_path, capsys):
    plan = solve(tmp_path)
    capsys.readouterr()
    assert main(["check", str(plan)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("proved: no configuration has a mean latency below")
    assert main(["check", str(plan), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["proved"] is True
    assert answer["leaders"] == 27


def test_a_corrupted_certificate_is_refused(tmp_path, capsys):
    plan = solve(tmp_path)
    document = json.loads(plan.read_text())
    document["certificate"]["proofs"].pop()
    plan.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["check", str(plan)]) == 2
    assert "refused: not exactly one proof" in capsys.readouterr().out
    assert main(["check", str(plan), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["proved"] is False


def test_a_plan_without_a_proof_is_refused(tmp_path, capsys):
    plan = solve(tmp_path, "--method", "kq")
    capsys.readouterr()
    assert main(["check", str(plan)]) == 2
    assert "carries no certificate" in capsys.readouterr().out


def test_a_missing_file_is_bad_input(tmp_path, capsys):
    assert main(["check", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err

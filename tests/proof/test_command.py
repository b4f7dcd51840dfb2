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


def test_a_search_is_repeated(tmp_path, capsys):
    """A plan that another method proved without a certificate holds, and a worse one does not."""
    plan = solve(tmp_path, "--set", "certificate=false")
    assert main(["check", str(plan)]) == 2
    capsys.readouterr()
    assert main(["check", str(plan), "--again"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("searched again: no configuration has a mean latency below 84.33")
    assert main(["check", str(plan), "--again", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["holds"] is True
    assert answer["bound"] <= answer["score"] * (1 + 1e-9)
    worse = solve(tmp_path, "--method", "nearest-centroid", "--force")
    capsys.readouterr()
    assert main(["check", str(worse), "--again"]) == 2
    assert "not proved: a second search finds 84.33" in capsys.readouterr().out
    assert main(["check", str(worse), "--again", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["holds"] is False


def test_no_plan_is_found_again(tmp_path, capsys):
    path = tmp_path / "none.json"
    words = ["solve", "world27", "--replicas", "3", "--voters", "3", "--json"]
    assert main([*words, "--distinct", "continent=4"]) == 2
    path.write_text(capsys.readouterr().out)
    assert main(["check", str(path), "--again"]) == 0
    assert "searched again: no configuration obeys all constraints" in capsys.readouterr().out


def test_a_missing_file_is_bad_input(tmp_path, capsys):
    assert main(["check", str(tmp_path / "none.json")]) == 1
    assert "none.json" in capsys.readouterr().err


def test_a_field_that_was_edited_is_bad_input(tmp_path, capsys):
    plan = solve(tmp_path)
    text = plan.read_text()
    for key, value in (
        ("voters", ["Mars", "Venus", "Pluto"]),
        ("mean_latency_ms", 1),
        ("failures", {}),
    ):
        plan.write_text(json.dumps({**json.loads(text), key: value}))
        for command in ("check", "show"):
            capsys.readouterr()
            assert main([command, str(plan)]) == 1
            told = capsys.readouterr()
            assert f"{plan}: {key}" in told.err
            assert "proved" not in told.out


def test_the_work_is_limited(tmp_path, capsys):
    plan = solve(tmp_path)
    document = json.loads(plan.read_text())
    for proof in document["certificate"]["proofs"]:
        proof["events"] = [["enumerate"]]
    plan.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["check", str(plan), "--work", "1000000"]) == 1
    assert "more than 1,000,000 steps" in capsys.readouterr().err
    assert main(["check", str(plan), "--work", "-1"]) == 1
    assert "--work: out of range: got '-1'" in capsys.readouterr().err


def test_what_was_not_checked_says_so(tmp_path, capsys):
    plan = solve(tmp_path)
    capsys.readouterr()
    assert main(["show", str(plan)]) == 0
    assert "optimal, bound claimed by exact, not checked" in capsys.readouterr().out
    assert main(["show", str(plan), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claim"] == "bound claimed by exact, not checked"
    page = tmp_path / "plan.html"
    assert main(["report", str(plan), "-o", str(page)]) == 0  # checks a short certificate itself
    assert "not checked" not in page.read_text()
    document = json.loads(plan.read_text())
    document["certificate"] = None
    plan.write_text(json.dumps(document))
    assert main(["report", str(plan), "-o", str(page), "--force"]) == 0
    assert "bound claimed by exact, not checked" in page.read_text()
    assert "no plan is better" not in page.read_text()

"""Read what runs today from any file, on the road to the best plan within two changes."""

import json
from pathlib import Path

import pytest

import placement as package
from placement.databases.deployment import deployment_document, deployment_of_plan
from placement.io import save_instance
from placement.testing import random_instance
from tests.test_docs import write_files

COMMANDS = [
    "solve mine --replicas 3 --voters 3 --max-moves 2 --json --from",
    "solve mine --replicas 3 --voters 3 --json --keep-diversity",
    "next mine --moves 2 --json --from",
    "lab migrate --instance mine --groups 2 --json",
    "lab online reads mine --json --plan",
    "db export --instance mine --json etcd",
    "db evaluate --instance mine --json",
    "db diff plan.json --json",
]


@pytest.mark.parametrize("words", COMMANDS)
def test_what_runs_today_is_read_from_any_file(tmp_path, monkeypatch, command, words):
    """A plan, a deployment, JSON or TOML of three keys: each verb takes all of them."""
    monkeypatch.chdir(tmp_path)
    world = tmp_path
    save_instance(random_instance(2, sites=4, clients=4).replace(sites=tuple("abcd")), "mine")
    plan = package.solve(package.Problem(package.load("mine"), replicas=3, voters=3))
    for name in ("three.json", "plan.json"):
        package.io.save_plan(plan, name)
    names = {"leader": plan.leader, "voters": list(plan.voters), "replicas": list(plan.replicas)}
    (world / "bare.json").write_text(json.dumps(names))
    (world / "bare.toml").write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in names.items()))
    roles = {**deployment_document(deployment_of_plan(plan)), "system": "etcd"}
    (world / "read.json").write_text(json.dumps(roles))
    answers = []
    for name in ("three.json", "bare.json", "bare.toml", "read.json"):
        done = command(*words.split(), name, code=0)
        found = done.document
        answers.append([found.get(key) for key in ("voters", "steps", "mean_latency_ms", "best")])
    assert all(answer == answers[0] for answer in answers)
    for text, word in (
        ('{"leader": "zz", "voters": ["zz"], "replicas": ["zz"]}', "zz"),
        ("{}", "leader"),
    ):
        (world / "bare.json").write_text(text)
        if "diff" in words and text != "{}":  # a difference needs no instance
            continue
        refused = command(*words.split(), "bare.json")
        assert (refused.code, "bare.json" in refused.err, word in refused.err) == (1, True, True)


@pytest.mark.parametrize("files", ["cockroachdb zones.sql", "etcd members.json status.json",
                                   "mongodb rs.json", "cassandra keyspace.txt"])  # fmt: skip
def test_read_the_best_within_two_changes_and_export(files, tmp_path, monkeypatch, command):
    """Three commands from the raw output of a database; the optimum is that of enumeration."""
    monkeypatch.chdir(tmp_path)
    docs = Path(__file__).parents[1] / "docs"
    for page in ("quick-start.md", "how-to/own-database.md"):
        write_files((docs / page).read_text(encoding="utf-8"), tmp_path)
    assert command("import", "rtt.csv", "--counts", "counts.csv", "-o", "q").code == 0
    system, *names = files.split()
    assert command("db", "read", system, *names, "--instance", "q", "-o", "now.json").code == 0
    votes = ("--protocol", "coordinated:r=2,w=2") if system == "cassandra" else ("--voters", "3")
    ask = ("solve", "q", "--replicas", "3", *votes, "--from", "now.json", "--max-moves", "2")
    assert command(*ask, "-o", "best.json").code == 0
    best = command(*ask, "--json").document
    all_tried = command(*ask, "--method", "exhaustive", "--json").document
    assert best["status"] == "optimal"
    assert best["mean_latency_ms"] == pytest.approx(all_tried["mean_latency_ms"])
    assert len({*best["replicas"]} - {"frankfurt", "oregon", "singapore"}) == 1
    more = ("--from", "now.json", "--database", "app", "-o", "out")
    assert command("db", "export", system, "best.json", *more).code == 0
    text = (tmp_path / "out").read_text()
    assert all(site in text for site in best["replicas"])
    assert system != "etcd" or "frankfurt=http://10.0.1.1:2380" in text  # as it runs

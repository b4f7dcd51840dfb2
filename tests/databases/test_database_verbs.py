"""``placement db`` and ``placement db export`` on the command line."""

import json
from pathlib import Path

import pytest

import placement as package
from placement.databases import available, load_system
from placement.io import save_instance
from placement.testing import random_instance
from tests.cli.command import runner

ZONES = """ALTER DATABASE app CONFIGURE ZONE USING num_replicas = 4,
constraints = '{+region=a: 2, +region=b: 2}', lease_preferences = '[[+region=b]]';
"""


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    instance = random_instance(2, sites=4, clients=4).replace(sites=tuple("abcd"))
    save_instance(instance, "mine")
    (tmp_path / "zones.sql").write_text(ZONES)
    plan = package.solve(package.Problem(instance, replicas=4, voters=3))
    package.io.save_plan(plan, "plan.json")
    return tmp_path


@pytest.fixture
def run(capsys, world):
    return runner(capsys)


def read(run, *more):
    return run("db", "read", "cockroachdb", "zones.sql", "--instance", "mine", *more)


def test_short_names_are_the_system(run, world):
    assert load_system("crdb") is load_system("cockroachdb")
    assert "crdb" not in available()
    short = run("db", "export", "crdb", "plan.json", "--database", "app")
    assert short.code == 0
    assert short.out == run("db", "export", "cockroachdb", "plan.json", "--database", "app").out


def test_read_writes_a_deployment_that_the_others_take(run, world):
    assert read(run, "-o", "today.json").code == 0
    assert json.loads((world / "today.json").read_text())["system"] == "cockroachdb"
    assert read(run, "-o", "today.json").code == 1  # it exists
    found = run("db", "evaluate", "today.json", "--instance", "mine", "--json").document
    assert found["best"]["status"] == "optimal"
    assert found["above_best"] >= 0
    assert found["deployment"]["leader"] == "b"
    difference = run("db", "diff", "today.json", "plan.json", "--json").document
    assert not difference["same"]
    assert difference["steps"][0]["step"] == "add-learner"
    text = run("db", "diff", "today.json", "plan.json").out
    assert "Steps, in a safe order" in text
    same = run("db", "diff", "plan.json", "plan.json")
    assert (same.code, same.out) == (0, "The same roles.\n")


def test_evaluate_holds_the_deployment_against_rules(run):
    read(run, "-o", "today.json")
    broken = run("db", "evaluate", "today.json", "--instance", "mine", "--survive", "site")
    assert broken.code == 2
    assert "Breaks" in broken.out


def test_lint_tells_broken_from_weak_by_the_exit_code(run, world):
    lint = ("db", "lint", "cockroachdb", "zones.sql", "--instance", "mine")
    weak = run(*lint)
    assert weak.code == 0
    assert "even-voters" in weak.out
    goal = run(*lint, "--survive", "site", "--json")
    assert goal.code == 2
    assert goal.document["broken"]
    assert {f["rule"] for f in goal.document["findings"]} >= {"survival-goal", "arbiter-helps"}
    (world / "zones.sql").write_text(ZONES.replace("num_replicas = 4", "num_replicas = 3"))
    assert run(*lint).code == 2
    assert read(run).code == 2


def test_export_writes_whole_files_and_notes(run, world):
    done = run("db", "export", "cockroachdb", "plan.json", "--database", "app", "-o", "plan.sql")
    assert done.code == 0
    assert "PRIMARY REGION" in done.err
    assert (world / "plan.sql").read_text().count("CONFIGURE ZONE USING") == 1
    again = run("db", "export", "cockroachdb", "plan.json", "--database", "app", "-o", "plan.sql")
    assert again.code == 1
    document = run("db", "export", "etcd", "plan.json", "--from", "plan.json", "--json")
    assert document.code == 1  # a plan does not name its servers
    assert "members" in document.err
    fresh = run("db", "export", "etcd", "plan.json", "--json").document
    assert json.loads(fresh["text"])["system"] == "etcd"


def test_what_cannot_be_said_is_refused_and_nothing_is_written(run, world):
    read(run, "-o", "today.json")
    refused = run("db", "export", "cockroachdb", "plan.json", "-o", "plan.sql")  # no database
    assert refused.code == 1
    assert "cannot express this placement" in refused.err
    assert not (world / "plan.sql").exists()
    deployment = run("db", "export", "cockroachdb", "today.json", "--database", "app")
    assert "--instance" in deployment.err
    done = run("db", "export", "cockroachdb", "today.json", "--instance", "mine")
    assert done.code == 0  # the deployment knows its database
    assert 'ALTER DATABASE "app"' in done.out


def test_every_system_is_listed(run):
    shown = run("db", "export", "--list")
    assert shown.code == 0
    listed = run("db", "export", "--list", "--json").document
    assert [one["name"] for one in listed] == [*available()]
    assert all(name in shown.out for name in available())


def test_every_system_has_its_part_of_the_page():
    page = (Path(__file__).parents[2] / "docs" / "databases.md").read_text(encoding="utf-8")
    headings = [line for line in page.splitlines() if line.startswith("### ")]
    for name in available():
        title = load_system(name).title
        assert any(title in heading for heading in headings), title
        assert f"| {title}" in page or f", {title} |" in page or name == "pd", title


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("db", "export"), "SYSTEM"),
        (("db", "export", "oracle", "plan.json"), "unknown system"),
        (("db", "export", "etcd", "zones.sql"), "zones.sql"),
        (("db", "export", "etcd", "plan.json", "--set", "x=1"), "no such setting"),
        (("db", "export", "etcd", "plan.json", "--localities", "none.csv"), "none.csv"),
        (("db", "read", "etcd", "zones.sql", "--instance", "mine"), "zones.sql"),
        (("db", "evaluate", "mine/instance.json", "--instance", "mine"), "another kind"),
    ],
)
def test_mistakes_are_one_line(run, arguments, word):
    done = run(*arguments)
    assert done.code == 1
    assert word in done.err
    assert sum(line.startswith("error: ") for line in done.err.splitlines()) == 1


@pytest.mark.parametrize("system", ["etcd", "mongodb", "zookeeper", "cockroachdb", "cassandra"])
def test_names_that_do_not_fit_are_listed_in_one_sentence(run, world, system):
    instance = random_instance(2, sites=3, clients=2).replace(sites=("A b", "C d", "E f"))
    problem = package.Problem(instance, replicas=3, voters=3)
    package.io.save_plan(package.solve(problem), "spaces.json")
    outcome = run("db", "export", system, "spaces.json", "--database", "app")
    assert outcome.code == 1
    assert outcome.err.count("'A b', 'C d', 'E f'") == 1
    assert outcome.err.count("--localities") == 1

"""``placement lab online``: the comparison of a plan's replicas, its errors, its report."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from formulations.online.reads import solve_compact
from placement.api import load
from placement.cli import main
from placement.model.read_write_counts import reads_and_writes
from placement.online.reads import ReadGoal, ReadProblem
from placement.online.verbs import GROUP, client_rtt, site_rtt
from placement.support.entry_points import entry_points


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    assert main(["solve", "world27", "--replicas", "5", "--voters", "3", "-o", str(path)]) == 0
    return path


def answer(capsys, *arguments):
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_every_part_can_be_loaded():
    for entry in entry_points(GROUP).values():
        assert callable(entry.load())


def test_reads_of_a_plan_against_the_optimum(plan, capsys):
    """The rows are the evaluator's, and the optimum is that of the problem built by hand."""
    code, out, _ = answer(capsys, "lab", "online", "reads", "world27", "--plan", plan, "--json")
    document = json.loads(out)
    rows = {row["method"]: row for row in document["rows"]}
    assert code == 0
    least = rows["optimum, least load"]
    assert least["status"] == "optimal"
    assert all(row["peak_load"] >= least["bound"] * (1 - 1e-9) for row in rows.values())
    near = rows["optimum, least latency"]
    assert all(row["mean_latency"] >= near["bound"] * (1 - 1e-9) for row in rows.values())
    instance = load("world27")
    held = json.loads(plan.read_text())
    names = held["replicas"]
    sites = instance.site_indices(names)
    reads, writes = reads_and_writes(instance)
    gateway = client_rtt(instance)[:, sites].argmin(axis=1)
    share = np.array([reads[gateway == g].sum() for g in range(5)]) / reads.sum()
    base = np.full(5, writes.sum() / reads.sum())
    problem = ReadProblem(site_rtt(instance, sites), share, names.index(held["leader"]), base=base)
    assert least["peak_load"] == pytest.approx(
        solve_compact(problem, ReadGoal.least_load()).value, rel=1e-9
    )
    assert len(document["routing"]) == 5


def test_a_slower_machine_is_asked_less(plan, capsys):
    held = json.loads(plan.read_text())
    slow = next(name for name in held["replicas"] if name != held["leader"])
    question = ("lab", "online", "reads", "world27", "--plan", plan, "--json")
    loads = []
    for more in ((), ("--capacity", f"{slow}=0.5")):
        _, out, _ = answer(capsys, *question, *more)
        row = next(r for r in json.loads(out)["rows"] if r["method"] == "optimum, least load")
        loads.append(float(row["peak_load"]))
    assert loads[1] > loads[0]


def test_dynamic_copies_of_a_plan_against_the_optimum(plan, capsys):
    code, out, _ = answer(
        capsys, "lab", "online", "dynamic", "world27", "--plan", plan, "--objects", 60,
        "--copies", 4, "--json",
    )  # fmt: skip
    rows = {row["method"]: row for row in json.loads(out)["rows"]}
    assert code == 0
    assert rows["optimum"]["status"] == "optimal"
    for row in rows.values():
        if row["copies"] <= 4:
            assert row["mean_latency"] >= rows["optimum"]["bound"] * (1 - 1e-9)
            assert row["gap"] >= -1e-9
    assert rows["static copies only"]["mean_latency"] > rows["greedy"]["mean_latency"]


def test_selection_among_the_replicas_of_a_plan(plan, capsys):
    question = (
        "lab", "online", "selection", "world27", "--plan", plan, "--requests", 300, "--epoch", 20,
        "--json",
    )  # fmt: skip
    code, out, _ = answer(capsys, *question)
    document = json.loads(out)
    rows = {row["method"]: row for row in document["rows"]}
    assert code == 0
    bound = rows["no rule is below"]["bound"]
    instance, held = load("world27"), json.loads(plan.read_text())
    near = client_rtt(instance)[:, instance.site_indices(held["replicas"])].min(axis=1)
    reads = reads_and_writes(instance)[0]
    assert bound > 0.8 * near @ reads / reads.sum()  # the network alone, up to the draw of clients
    assert all(row["mean_latency"] >= bound for row in rows.values())
    assert rows["NEAR"]["local_percent"] == 100
    assert {"C3", "LOR", "DS", "NEAR, hedged", "ECTF"} <= set(rows)
    _, again, _ = answer(capsys, *question, "--records", 100, "--updates", 0.2, "--zipf", 1)
    other = {row["method"]: row for row in json.loads(again)["rows"]}
    assert all(row["mean_latency"] >= other["no rule is below"]["bound"] for row in other.values())


def test_table_csv_and_report(plan, tmp_path, capsys):
    question = ("lab", "online", "reads", "world27", "--plan", plan)
    table = tmp_path / "reads.csv"
    assert answer(capsys, *question, "-o", table)[0] == 0
    with table.open(encoding="utf-8") as file:
        methods = [row["method"] for row in csv.DictReader(file)]
    assert methods[0] == "leaseholder"
    document, page = tmp_path / "reads.json", tmp_path / "page.html"
    assert answer(capsys, *question, "-o", document)[0] == 0
    assert answer(capsys, "report", document, "-o", page)[0] == 0
    shown = page.read_text(encoding="utf-8")
    assert "optimum, least load" in shown
    assert "peak load" in shown


def test_progress_goes_to_stderr(plan, capsys):
    _, out, err = answer(
        capsys, "lab", "online", "reads", "world27", "--plan", plan, "--progress", "--json"
    )
    assert "leaseholder  1/6" in err
    json.loads(out)


def test_ctrl_c_keeps_the_rows_so_far(plan, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("formulations.online.reads.solve_compact", interrupt)
    code, out, _ = answer(capsys, "lab", "online", "reads", "world27", "--plan", plan, "--json")
    rows = {row["method"]: row["status"] for row in json.loads(out)["rows"]}
    assert code == 130
    assert rows["leaseholder"] == "feasible"
    assert rows["optimum, least load"] == "not run"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reads", "world27"), "--plan: no replicas"),
        (("reads", "world27", "--replicas", "us-east-1,sa-east-1"), "at least 3 replicas"),
        (("reads", "aws", "--plan", "PLAN"), "unknown site"),
        (("reads", "world27", "--plan", "PLAN", "--replicas", "sa-east-1"), "--plan or --replicas"),
        (("reads", "world27", "--plan", "PLAN", "--leader", "nowhere"), "holds no replica"),
        (("reads", "world27", "--plan", "PLAN", "--capacity", "x=1"), "SITE=X"),
        (("dynamic", "world27", "--plan", "PLAN", "--sites", "sa-east-1"), "at least one of them"),
    ],
)
def test_mistakes_name_option_and_value(plan, capsys, arguments, words):
    code, out, err = answer(
        capsys, "lab", "online", *(str(plan) if part == "PLAN" else part for part in arguments)
    )
    assert (code, out) == (1, "")
    assert words in err

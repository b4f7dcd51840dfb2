"""``placement lab online``, the records of its runs, and wrong types and sizes."""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import math

import numpy as np
import pytest

from benchmarks.harness.results import read_json, read_rows
from benchmarks.harness.study import Study
from formulations.online.reads import solve_compact
from heuristics.online.dynamic.copy_choices import run_votes
from heuristics.online.reads import LeaseHolder, UniformQuorum
from heuristics.online.selection import (
    C3,
    DynamicSnitch,
    EarliestCompletion,
    LeastOutstanding,
    LeastResponseTime,
    LimiterRules,
    Oracle,
    RandomChoice,
    RoundRobin,
    TwoChoices,
    WeightedResponseTime,
    run,
)
from placement.api import load
from placement.cli import main
from placement.errors import InputError
from placement.model.demand import reads_and_writes
from placement.online import CAUSES, dynamic, reads, selection, spawn_streams, summarise
from placement.online.dynamic import store_demand, vote_simulator
from placement.online.dynamic.copy_protocol import ProtocolSettings
from placement.online.dynamic.store_demand import random_ring
from placement.online.reads import ReadGoal, ReadProblem
from placement.online.reads.elections import ElectionSettings
from placement.online.verbs import GROUP, client_rtt, site_rtt
from placement.support.entry_points import entry_points
from tests.test_wrong_arguments import faults


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    assert main(["solve", "world27", "--replicas", "5", "--voters", "3", "-o", str(path)]) == 0
    return path


def test_every_part_can_be_loaded():
    for entry in entry_points(GROUP).values():
        assert callable(entry.load())


def test_reads_of_a_plan_against_the_optimum(plan, command):
    """The rows are the evaluator's, and the optimum is that of the problem built by hand."""
    asked = ("lab", "online", "reads", "world27", "--plan", plan, "--json")
    document = command(*asked, code=0).document
    rows = {row["method"]: row for row in document["rows"]}
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


def test_a_slower_machine_is_asked_less(plan, command):
    held = json.loads(plan.read_text())
    slow = next(name for name in held["replicas"] if name != held["leader"])
    question = ("lab", "online", "reads", "world27", "--plan", plan, "--json")
    loads = []
    for more in ((), ("--capacity", f"{slow}=0.5")):
        rows = command(*question, *more).document["rows"]
        row = next(row for row in rows if row["method"] == "optimum, least load")
        loads.append(float(row["peak_load"]))
    assert loads[1] > loads[0]


def test_dynamic_copies_of_a_plan_against_the_optimum(plan, command):
    asked = ("lab", "online", "dynamic", "world27", "--plan", plan, "--objects", 60, "--copies", 4)
    rows = {row["method"]: row for row in command(*asked, "--json", code=0).document["rows"]}
    assert rows["optimum"]["status"] == "optimal"
    for row in rows.values():
        if row["copies"] <= 4:
            assert row["mean_latency"] >= rows["optimum"]["bound"] * (1 - 1e-9)
            assert row["gap"] >= -1e-9
    assert rows["static copies only"]["mean_latency"] > rows["greedy"]["mean_latency"]


def test_selection_among_the_replicas_of_a_plan(plan, command):
    question = (
        "lab", "online", "selection", "world27", "--plan", plan, "--requests", 300, "--epoch", 20,
        "--json",
    )  # fmt: skip
    rows = {row["method"]: row for row in command(*question, code=0).document["rows"]}
    bound = rows["no rule is below"]["bound"]
    instance, held = load("world27"), json.loads(plan.read_text())
    near = client_rtt(instance)[:, instance.site_indices(held["replicas"])].min(axis=1)
    reads = reads_and_writes(instance)[0]
    assert bound > 0.8 * near @ reads / reads.sum()  # the network alone, up to the draw of clients
    assert all(row["mean_latency"] >= bound for row in rows.values())
    assert rows["NEAR"]["local_percent"] == 100
    assert {"C3", "LOR", "DS", "NEAR, hedged", "ECTF"} <= set(rows)
    again = command(*question, "--records", 100, "--updates", 0.2, "--zipf", 1).document
    other = {row["method"]: row for row in again["rows"]}
    assert all(row["mean_latency"] >= other["no rule is below"]["bound"] for row in other.values())


def test_table_csv_and_report(plan, tmp_path, command):
    question = ("lab", "online", "reads", "world27", "--plan", plan)
    table = tmp_path / "reads.csv"
    command(*question, "-o", table, code=0)
    with table.open(encoding="utf-8") as file:
        methods = [row["method"] for row in csv.DictReader(file)]
    assert methods[0] == "leaseholder"
    document, page = tmp_path / "reads.json", tmp_path / "page.html"
    command(*question, "-o", document, code=0)
    command("report", document, "-o", page, code=0)
    shown = page.read_text(encoding="utf-8")
    assert "optimum, least load" in shown
    assert "peak load" in shown


def test_progress_goes_to_stderr(plan, command):
    done = command("lab", "online", "reads", "world27", "--plan", plan, "--progress", "--json")
    assert "leaseholder  1/6" in done.err
    assert done.document


def test_ctrl_c_keeps_the_rows_so_far(plan, command, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("formulations.online.reads.solve_compact", interrupt)
    done = command("lab", "online", "reads", "world27", "--plan", plan, "--json", code=130)
    rows = {row["method"]: row["status"] for row in done.document["rows"]}
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
def test_mistakes_name_option_and_value(plan, command, arguments, words):
    given = (plan if part == "PLAN" else part for part in arguments)
    done = command("lab", "online", *given, code=1)
    assert done.out == ""
    assert words in done.err


def test_a_stream_does_not_depend_on_how_much_another_draws():
    plain, greedy = spawn_streams(3), spawn_streams(3)
    greedy["speeds"].random(1000)
    for cause in CAUSES[1:]:
        assert np.array_equal(plain[cause].random(50), greedy[cause].random(50))


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1", None])
def test_bad_seeds(seed):
    with pytest.raises(InputError, match="seed"):
        spawn_streams(seed)


def test_bad_causes():
    with pytest.raises(InputError, match="causes"):
        spawn_streams(0, ("a", "a"))


def test_percentiles_by_hand():
    got = summarise(np.arange(1001.0))
    assert (got.n, got.mean, got.p50, got.p95, got.p99) == (1001, 500.0, 500.0, 950.0, 990.0)
    assert got.p999 == pytest.approx(999.0)


def test_no_latency_at_all():
    got = summarise([])
    assert got.n == 0
    assert math.isnan(got.mean)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_impossible_latencies(bad):
    with pytest.raises(InputError, match="latency"):
        summarise([1.0, bad])


@pytest.mark.parametrize("columns", [(), ("suite", "value")])
def test_experiments_keep_what_is_not_run_and_what_an_interrupt_leaves(tmp_path, columns):
    def stopped(options):
        yield {"value": options.seeds}
        raise KeyboardInterrupt

    parts = {"one": lambda options: [{"value": 1}], "two": stopped}
    study = Study("name", parts, {"seeds": 3}, columns)
    parser = argparse.ArgumentParser()
    study.add_options(parser)
    path = tmp_path / ("name.csv" if columns else "name.json")
    words = ["--results", str(tmp_path), "--only"]
    assert study.run(parser.parse_args([*words, "one"])) == 0
    with pytest.raises(KeyboardInterrupt):
        study.run(parser.parse_args([*words, "two"]))
    document = read_json(path.with_suffix(".json"))
    assert document["seeds"] == 3
    if columns:
        assert [row["value"] for row in read_rows(path)] == ["1", "3"]
    else:
        assert (document["one"], document["two"]) == ([{"value": 1}], [{"value": 3}])


STREAMS = ("ring", "demand")


def good():
    """Call and good arguments of everything that users build, by name."""
    cluster = selection.ServerCluster(4, 2, 2, 3, requests=5)
    path = selection.draw(cluster, 1)
    fields = {field.name: getattr(path, field.name) for field in dataclasses.fields(path)}
    problem = reads.ReadProblem(np.ones((3, 3)), np.ones(3), 0)
    machines, asked = reads.RaftCluster(nodes=3), reads.ReadWorkload(clients=2)
    geography = dynamic.six_sites()
    world = dynamic.hot_set_world(geography, 20, spawn_streams(1, STREAMS), nodes_per_site=2)
    traffic = store_demand.RequestWorkload(seconds=1.0, rate=10.0)
    voting = vote_simulator.VoteSettings(k=2)
    replication = world.problem(2)
    mixtures = [{(0,): 1.0}] * 3
    built = [
        C3(),
        Oracle(),
        EarliestCompletion(),
        LeastOutstanding(),
        RoundRobin(),
        RandomChoice(),
        TwoChoices(),
        LeastResponseTime(),
        WeightedResponseTime(),
        DynamicSnitch(),
        LimiterRules(),
        cluster,
        machines,
        asked,
        problem,
        reads.ReadGoal.least_load(),
        ElectionSettings(),
        ProtocolSettings(),
        UniformQuorum(0.2),
        geography,
        world,
        world.ring,
        replication,
        traffic,
        voting,
    ]
    calls = {".".join([*type(p).__module__.split(".")[2:], type(p).__name__]): p for p in built}
    assert len(calls) == len(built)
    table = {
        name: (type(p), {f.name: getattr(p, f.name) for f in dataclasses.fields(p) if f.init})
        for name, p in calls.items()
    }
    return table | {
        "ServerSamplePath": (selection.ServerSamplePath, fields),
        "draw": (selection.draw, {"cluster": cluster, "seed": 1}),
        "run": (run, {"sample": path, "policy": C3()}),
        "cut": (
            selection.cut,
            {"sample": path.on_grid(), "servers": (path.cluster.groups[path.group[0]][0],)}
            | {"first": 1, "count": 2},
        ),
        "first": (path.first, {"count": 2}),
        "on_grid": (path.on_grid, {"ticks_per_ms": 128}),
        "strategy": (reads.ReadStrategy.of, {"problem": problem, "mixtures": mixtures}),
        "simulate reads": (
            reads.simulate,
            {
                "cluster": machines,
                "workload": asked,
                "rule": LeaseHolder(),
                "operations": 4,
                "seed": 1,
                "warm_up": 0.0,
                "strong": False,
            },
        ),
        "hot_set_world": (
            lambda **given: dynamic.hot_set_world(**{"streams": spawn_streams(1, STREAMS)} | given),
            {"geography": geography, "keys": 20, "correlation": 0.5, "exponent": 0.9}
            | {"generators_per_site": 2, "nodes_per_site": 2, "static_copies": 2},
        ),
        "random_ring": (
            lambda **given: random_ring(np.random.default_rng(1), **given),
            {"sites": 2, "nodes_per_site": 3},
        ),
        "within": (
            dynamic.Geography.within,
            {"sites": ("a", "b"), "rtt": np.ones((2, 2)), "limit": 9.0},
        ),
        "simulate dynamic": (
            vote_simulator.simulate,
            {"world": world, "workload": traffic, "settings": voting, "seed": 1},
        ),
        "run_votes": (run_votes, {"problem": replication, "grace": 1, "rounds": 2}),
    }


GOOD = good()


@pytest.mark.parametrize("name", GOOD)
def test_wrong_values_are_input_errors(name):
    assert faults(name, *GOOD[name]) == []


def test_a_list_for_k_names_the_field():
    with pytest.raises(InputError, match="k: not a number: got \\[1, 2, 3\\]"):
        vote_simulator.VoteSettings(k=[1, 2, 3])

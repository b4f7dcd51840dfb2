"""The verbs, end to end on small worlds."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from placement import Instance, Prices, Problem, available, datasets, evaluate, load, solve
from placement.io import load_instance, load_plan, save_instance
from placement.workloads.mixes import MIXES
from tests.cli.command import Run
from tests.io.worlds import same, small

COUNTS = ("--replicas", 2, "--voters", 1, "--method", "exhaustive")


def _best(instance: Instance, replicas: int, voters: int) -> float:
    """Least mean latency over every configuration, by brute force through the evaluator."""
    problem = Problem(instance, replicas=replicas, voters=voters)
    return min(
        evaluate(problem, leader=leader, voters=chosen, replicas=sites).mean_latency
        for sites in itertools.combinations(instance.sites, replicas)
        for chosen in itertools.combinations(sites, voters)
        for leader in chosen
    )


def test_solve_prints_a_plan_and_writes_it(placement: Run, world: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    outcome = placement("solve", world, *COUNTS, "-o", path)
    assert (outcome.code, outcome.err) == (0, "")
    plan = load_plan(path)
    assert plan.mean_latency == pytest.approx(_best(small(), 2, 1), rel=1e-12)
    assert plan.status == "optimal"
    # everything that str(plan) says, and where the file lies
    assert outcome.out.startswith(str(plan).split(";")[0])
    assert str(plan).split("Mean latency")[1] in outcome.out
    assert outcome.out.endswith(f"Written to {path}\n")
    assert json.loads(path.read_text())["instance"]["source"] == "./world"


def test_solve_can_embed_the_instance(placement: Run, world: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert placement("solve", world, *COUNTS, "-o", path, "--embed").code == 0
    world.rename(tmp_path / "elsewhere")
    assert same(load_plan(path).problem.instance, small())


def test_solve_as_json_is_one_document(placement: Run, world: Path) -> None:
    outcome = placement("solve", world, *COUNTS, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    document = outcome.document
    plan = solve(Problem(small(), replicas=2, voters=1), "exhaustive")
    assert document["leader"] == plan.leader
    assert document["replicas"] == list(plan.replicas)
    assert document["mean_latency_ms"] == plan.mean_latency
    assert document["gap"] == 0
    assert len(document["breakdown"]["clients"]) == 4
    assert document["instance"]["fingerprint"] == small().fingerprint
    assert outcome.out.isascii()


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (("--replicas", "2..3", "--voters", 2), {"replicas": (2, 3), "voters": 2}),
        (
            ("--replicas", "Oslo, Rome", "--voters", 2),
            {"replicas": ("Oslo", "Rome"), "voters": 2},
        ),
        (
            ("--replicas", "Rome", "--replicas", "Washington, DC", "--voters", "Rome"),
            {"replicas": ("Rome", "Washington, DC"), "voters": ("Rome",)},
        ),
        (
            ("--replicas", 3, "--voters", 3, "--quorum", 3, "--survive", "site", "--decay", "inf"),
            None,
        ),
        (
            ("--replicas", 3, "--voters", 3, "--quorum", 2, "--survive", "site", "--decay", "inf"),
            {"replicas": 3, "voters": 3, "quorum": 2, "survive": "site", "decay": math.inf},
        ),
        (
            ("--replicas", 2, "--voters", 1, "--leaders", "Rome,Oslo", "--pin", "Washington, DC"),
            {
                "replicas": 2,
                "voters": 1,
                "leaders": ("Rome", "Oslo"),
                "pinned": ("Washington, DC",),
            },
        ),
        (
            ("--replicas", 2, "--voters", 1, "--pin-voter", "Rome", "--forbid", "Oslo"),
            {"replicas": 2, "voters": 1, "pinned_voters": ("Rome",), "forbidden": ("Oslo",)},
        ),
        (
            ("--replicas", 2, "--voters", 1, "--no-vote", "Rome", "--leader", "Washington, DC"),
            {"replicas": 2, "voters": 1, "non_voters": ("Rome",), "leader": "Washington, DC"},
        ),
    ],
)
def test_every_option_becomes_its_argument(
    placement: Run, world: Path, options: tuple[object, ...], asked: dict[str, object] | None
) -> None:
    outcome = placement("solve", world, *options, "--method", "exhaustive", "--json")
    if asked is None:
        assert outcome.code == 1
        assert "no voter may be lost" in outcome.err
        return
    plan = solve(Problem(small(), **asked), "exhaustive")  # type: ignore[arg-type]  # by name
    document = outcome.document
    assert outcome.code == 0
    assert document["score"] == plan.score
    assert (document["leader"], tuple(document["replicas"])) == (plan.leader, plan.replicas)
    for key, value in asked.items():
        if key == "replicas" and isinstance(value, tuple) and isinstance(value[0], int):
            value = {"least": value[0], "most": value[1]}
        elif isinstance(value, tuple):
            value = list(value)
        assert document["problem"][key] == ("inf" if value == math.inf else value)


def test_caps_and_distinct_domains_bind(placement: Run, world: Path) -> None:
    free = placement("solve", world, "--replicas", 2, "--voters", 2, *COUNTS[4:], "--json")
    assert {"Oslo", "Rome"} == set(free.document["voters"])  # both in Europe, unless told not to
    for option in ("--cap", "--distinct"):
        number = "1" if option == "--cap" else "2"
        for role in ("", ":voters", ":replicas"):
            bound = placement(
                *("solve", world, "--replicas", 2, "--voters", 2, *COUNTS[4:], "--json"),
                *(option, f"continent={number}{role}"),
            )
            assert "Washington, DC" in bound.document["voters"]
            rule = bound.document["problem"]["diversity"][0]
            assert rule["role"] == (role[1:] or "voters")
            assert rule["cap" if option == "--cap" else "min_domains"] == int(number)


def test_money(placement: Run, tmp_path: Path) -> None:
    prices = Prices(np.array([10.0, 20.0, 1.0]), None, 0.0, "EUR")
    save_instance(small(prices=prices), tmp_path / "w")
    outcome = placement("solve", tmp_path / "w", *COUNTS, "--budget", 11)
    assert outcome.code == 0
    assert "Cost         11.00 EUR" in outcome.out
    outcome = placement("solve", tmp_path / "w", *COUNTS, "--budget", 10.5)
    assert outcome.code == 2
    assert "the cheapest 2 replicas cost 11" in " ".join(outcome.out.split())
    weighed = placement("solve", tmp_path / "w", *COUNTS, "--cost-weight", 1e9, "--json").document
    assert weighed["cost"] == 11
    assert weighed["objective"] == pytest.approx(weighed["score"] + 11e9)


def test_existing_plans_need_force_and_are_checked_before_the_work(
    placement: Run, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    path.write_text("precious")

    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("the work was begun")

    with monkeypatch.context() as patch:
        patch.setattr("placement.methods.run", never)
        outcome = placement("solve", world, *COUNTS, "-o", path)
    assert outcome.code == 1
    assert f"error: {path}: exists already" in outcome.err
    assert path.read_text() == "precious"
    assert placement("solve", world, *COUNTS, "-o", path, "--force").code == 0
    assert load_plan(path).found


def test_evaluate_scores_and_holds_against_constraints(
    placement: Run, world: Path, tmp_path: Path
) -> None:
    configuration = (
        *("--leader", "Oslo", "--voters", "Rome,Oslo"),
        *("--replicas", "Oslo", "--replicas", "Rome", "--replicas", "Washington, DC"),
    )
    outcome = placement("evaluate", world, *configuration, "--json")
    assert outcome.code == 0
    expected = evaluate(
        Problem(small(), replicas=3, voters=2),
        leader="Oslo",
        voters=["Oslo", "Rome"],
        replicas=["Oslo", "Rome", "Washington, DC"],
    )
    assert outcome.document["score"] == expected.score
    assert outcome.document["status"] == "feasible"
    path = tmp_path / "plan.json"
    outcome = placement(
        "evaluate", world, *configuration, "--cap", "continent=1", "--forbid", "Rome", "-o", path
    )
    assert outcome.code == 2
    text = " ".join(outcome.out.split())
    assert "at most 1 of the voters per continent does not hold" in text
    assert "no replica is allowed at Rome" in text
    assert load_plan(path).status == "violating"
    assert placement("show", path).code == 2


def test_show_an_instance(placement: Run, world: Path) -> None:
    outcome = placement("show", world, "--clients", 1)
    assert outcome.code == 0
    for words in ("small", "Washington, DC", "North America", "東京", "… and 3 more", "by hand"):
        assert words in outcome.out
    assert "Bern" not in outcome.out
    document = placement("show", world, "--json").document
    assert [row["site"] for row in document["sites"]] == list(small().sites)
    assert document["sites"][2]["domains"] == {"country": "US", "continent": "North America"}
    assert sum(row["operations"] for row in document["clients"]) == small().counts.sum()
    assert document["client_rtt_ms"] == {"least": 0.5, "most": 250.0}


def test_show_a_plan_checks_it(placement: Run, world: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    printed = placement("solve", world, *COUNTS, "-o", path).out
    shown = placement("show", path)
    assert shown.code == 0
    assert shown.out.strip() == printed.rpartition("\n\nWritten")[0]
    assert placement("show", path, "--json").document["format"] == "replica-placement plan"
    save_instance(small(counts=small().counts + 1), world, force=True)
    outcome = placement("show", path)
    assert outcome.code == 1
    assert "made for another instance" in outcome.err


def test_datasets_lists_every_one(placement: Run) -> None:
    outcome = placement("datasets")
    document = placement("datasets", "--json").document
    assert outcome.code == 0
    assert [row["name"] for row in document["datasets"]] == list(datasets.names())
    assert list(document["mixes"]) == list(MIXES)
    for name in (*datasets.names(), *MIXES):
        assert name in outcome.out


def test_data_sets_go_by_name(placement: Run, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    outcome = placement(
        *("solve", "world27", "--mix", "ledger", "--workload-seed", 3, "--method", "exhaustive"),
        *("--replicas", 2, "--voters", 1, "-o", path),
    )
    assert outcome.code == 0
    assert load_plan(path).problem.instance == load("world27", mix="ledger", seed=3)
    assert "modelled" in outcome.out
    outcome = placement("show", "world27", "--mix", "ledgr")
    assert outcome.code == 1
    assert "ledgr" in outcome.err


def test_methods_lists_every_one(placement: Run) -> None:
    outcome = placement("methods")
    document = placement("methods", "--json").document
    assert outcome.code == 0
    listed = {row["name"] for row in document["methods"]} | set(document["broken"])
    assert listed == set(available())
    for name in available():
        assert name in outcome.out


def test_one_method_is_described_with_its_settings(placement: Run) -> None:
    outcome = placement("methods", "exhaustive")
    assert outcome.code == 0
    for words in ("can prove optimality", "complexity", "--set limit", "20000000"):
        assert words in outcome.out
    document = placement("methods", "exhaustive", "--json").document
    assert document["exact"] is True
    assert document["settings"]["limit"]["minimum"] == 1
    assert placement("methods", "exhaustif").code == 1


def test_settings_reach_the_method_and_are_checked(placement: Run, world: Path) -> None:
    outcome = placement("solve", world, *COUNTS, "--set", "limit=1")
    assert outcome.code == 1  # a LimitError: the work would exceed what the user allows
    assert "limit" in outcome.err
    for value, words in (
        ("limit=x", "limit: bad setting: got 'x'"),
        ("limits=1", "has no such setting: got 'limits', expected one of limit"),
        ("limit", "--set: not a setting: got 'limit', expected NAME=VALUE"),
    ):
        outcome = placement("solve", world, *COUNTS, "--set", value)
        assert outcome.code == 1
        assert words in outcome.err
    outcome = placement("solve", world, *COUNTS, "--set", "limit=3", "--set", "limit=4")
    assert "set twice" in outcome.err


def test_import_makes_an_instance(placement: Run, tmp_path: Path) -> None:
    (tmp_path / "rtt.csv").write_text(
        "when,from,to,ms\n1,a,b,0.003\n1,b,a,0.004\n2,a,b,0.005\n2,b,a,0.006\n"
    )
    (tmp_path / "sites.csv").write_text("site,country,lat,lon\nb,B,1,2\na,A,3,4\n")
    outcome = placement(
        *("import", tmp_path / "rtt.csv", "--src", "from", "--dst", "to", "--rtt-column", "ms"),
        *("--interval", "when", "--scale", 1000, "--sites", tmp_path / "sites.csv"),
        *("--mix", "ycsb-a", "--intra-site", 0.5, "--name", "mine", "-o", tmp_path / "w"),
        *("--tables", "parquet"),
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.endswith(f"Written to {tmp_path / 'w/instance.json'}\n")
    assert (tmp_path / "w/counts.parquet").exists()
    world = load_instance(tmp_path / "w")
    assert (world.name, world.sites, world.intervals) == ("mine", ("b", "a"), ("1", "2"))
    assert world.site_rtt.tolist() == [[[0, 4], [3, 0]], [[0, 6], [5, 0]]]
    assert world.client_rtt[0].tolist() == [[0.5, 4], [3, 0.5]]
    assert dict(world.domains) == {"country": ("B", "A")}
    again = ("import", tmp_path / "rtt.csv", "--mix", "cache", "-o", tmp_path / "w")
    assert placement(*again).code == 1
    assert load_instance(tmp_path / "w") == world


def test_import_with_clients_and_counts_then_solve(placement: Run, tmp_path: Path) -> None:
    (tmp_path / "rtt.csv").write_text("x,a,b\na,0.4,30\nb,,0.4\n")
    (tmp_path / "clients.csv").write_text("x,a,b\nnear a,1,50\nnear b,60,2\n")
    (tmp_path / "counts.csv").write_text("client,strong_read\nnear a,1\nnear b,3\n")
    arguments = (
        *("import", tmp_path / "rtt.csv", "--client-rtt", tmp_path / "clients.csv"),
        *("--counts", tmp_path / "counts.csv", "-o", tmp_path / "w"),
    )
    refused = placement(*arguments)
    assert refused.code == 1
    assert "1 of 2 pairs have no RTT: got 'b → a'" in refused.err
    outcome = placement(*arguments, "--fill", "transpose", "--json")
    assert outcome.code == 0
    assert outcome.document["sites"] == 2
    assert any("opposite direction" in text for text in outcome.document["provenance"])
    plan = placement(
        "solve", tmp_path / "w", "--replicas", 1, "--voters", 1, "--method", "exhaustive", "--json"
    ).document
    assert plan["leader"] == "b"
    assert plan["mean_latency_ms"] == (50 + 3 * 2) / 4

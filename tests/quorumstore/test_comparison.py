"""``placement lab quorum --compare`` and ``--own-demand``."""

import csv

import numpy as np
import pytest

import placement
from placement.io import save_instance
from placement.quorumstore.problem import site_requests
from tests.cli.command import runner

KEY = ("--reads", "s0=80", "--reads", "s5=40", "--writes", "s0=9", "--n-max", 3)


@pytest.fixture
def store(tmp_path):
    """A table of nine sites."""
    rtt = np.random.default_rng(4).integers(5, 200, (9, 9))
    np.fill_diagonal(rtt, 0)
    names = [f"s{i}" for i in range(9)]
    lines = [",".join(["site", *names])]
    lines += [",".join([name, *map(str, row)]) for name, row in zip(names, rtt, strict=True)]
    path = tmp_path / "rtt.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_all_methods_are_measured_against_the_best_bound(capsys, store, tmp_path):
    command = runner(capsys)
    target = tmp_path / "methods.csv"
    outcome = command("lab", "quorum", store, *KEY, "--compare", "--json", "-o", target)
    assert outcome.code == 0, outcome.err
    rows = {row["method"]: row for row in outcome.document["rows"]}
    alone = command("lab", "quorum", store, *KEY, "--json").document
    for name in ("enumeration", "cp-sat", "milp"):
        assert rows[name]["status"] == "optimal"
        assert rows[name]["value"] == alone["value_ms"]
        assert rows[name]["gap"] == 0
    for name in ("coverage-greedy", "local-search", "busiest-sites", "random"):
        row = rows[name]
        assert row["gap"] == pytest.approx(1 - alone["value_ms"] / row["value"])
        assert row["value"] >= alone["value_ms"]
        assert row["bound"] <= alone["value_ms"]
    assert rows["random"]["gap"] > 0
    with target.open(newline="", encoding="utf-8") as file:
        assert [row["method"] for row in csv.DictReader(file)] == list(rows)


def test_a_key_without_a_plan_is_infeasible_in_every_row_that_proves_it(capsys, store):
    command = runner(capsys)
    outcome = command("lab", "quorum", store, *KEY, "--read-limit", 1, "--compare")
    assert outcome.code == 2
    assert "infeasible" in outcome.out
    few = command("lab", "quorum", store, *KEY[:-1], 2, "--compare")
    assert few.code == 2
    assert "refused" in few.out


def test_the_demand_of_a_folder_enters_at_the_closest_sites(capsys, tmp_path):
    instance = placement.testing.random_instance(5, sites=5, clients=7)
    save_instance(instance, tmp_path / "world")
    reads, writes = site_requests(instance)
    issued = instance.counts.sum(axis=0)
    home = instance.client_rtt.argmin(axis=1)
    by_hand = np.zeros((2, 5))
    for client, row in enumerate(issued):
        for operation, count in zip(instance.operations, row, strict=True):
            by_hand[int(operation.is_transaction), home[client]] += count
    scale = 1.0 if (by_hand == np.floor(by_hand)).all() else 1e6 / by_hand.sum()
    np.testing.assert_array_equal(reads, np.rint(by_hand[0] * scale))
    np.testing.assert_array_equal(writes, np.rint(by_hand[1] * scale))
    command = runner(capsys)
    own = command("lab", "quorum", tmp_path / "world", "--own-demand", "--json")
    given = [
        option
        for side, counts in (("reads", reads), ("writes", writes))
        for site, count in zip(instance.sites, counts, strict=True)
        for option in (f"--{side}", f"{site}={count}")
    ]
    named = command("lab", "quorum", tmp_path / "world", *given, "--json")
    assert own.document["value_ms"] == named.document["value_ms"]
    assert own.document["replicas"] == named.document["replicas"]


def test_fractions_are_scaled_to_a_million_requests():
    instance = placement.testing.random_instance(5, sites=4, clients=4)
    halves = instance.replace(counts=instance.counts * 0.37)
    reads, writes = site_requests(halves)
    assert abs(int(reads.sum() + writes.sum()) - 1_000_000) <= 8


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--own-demand", "--reads", "us-east-1=5"), "the demand is given twice"),
        (("--own-demand", "--keys", "keys.csv"), "one key and a table"),
    ],
)
def test_two_demands_are_refused(capsys, more, message):
    outcome = runner(capsys)("lab", "quorum", "aws", *more)
    assert outcome.code == 1
    assert message in outcome.err


def test_a_table_has_no_demand_of_its_own(capsys, tmp_path):
    table = tmp_path / "rtt.csv"
    table.write_text("site,a,b,c\na,0,5,9\nb,5,0,7\nc,9,7,0\n")
    outcome = runner(capsys)("lab", "quorum", table, "--own-demand")
    assert outcome.code == 1
    assert "has no demand" in outcome.err

"""``--percentile`` in solve, evaluate and compare, and the importer of percentiles."""

import json

import pytest

from placement.io import load_plan, save_instance
from placement.testing import random_instance
from tests.cli.command import runner

ASK = ("--replicas", "4", "--voters", "3")


@pytest.fixture
def placement(capsys):
    return runner(capsys)


@pytest.fixture
def world(tmp_path):
    save_instance(random_instance(3, sites=5, clients=3), tmp_path / "world")
    return tmp_path / "world"


@pytest.fixture
def table(tmp_path):
    """Percentiles of every pair of that world, as rows."""
    instance = random_instance(3, sites=5, clients=3)
    lines = ["src,dst,p10,p50,p90,p99,mean"]
    for names, rtt in (
        (instance.clients, instance.client_rtt),
        (instance.sites, instance.site_rtt),
    ):
        for i, a in enumerate(names):
            for j, b in enumerate(instance.sites):
                if a != b:
                    x = rtt[i, j]
                    lines.append(f"{a},{b},{0.9 * x},{x},{1.2 * x},{1.7 * x},{1.03 * x}")
    path = tmp_path / "percentiles.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_solve_and_evaluate_agree(placement, world, table, tmp_path):
    plan = tmp_path / "plan.json"
    solved = placement(
        "solve", world, *ASK, "--percentile", 99, "--distributions", table, "-o", plan,
    )  # fmt: skip
    assert solved.code == 0
    assert "p99" in solved.out
    found = load_plan(plan)
    same = placement(
        "check", "configuration", world, "--leader", found.leader, "--voters",
        ",".join(found.voters), "--replicas", ",".join(found.replicas),
        "--percentile", 99, "--distributions", table, "--json",
    )  # fmt: skip
    assert same.document["objective"] == found.objective
    assert same.document["problem"]["objective"]["kind"] == "measures"


def test_compare_shows_the_percentile_and_who_refuses(placement, world):
    outcome = placement(
        "compare", world, *ASK, "--percentile", 95, "--spread", 0.2,
        "--methods", "exhaustive,exact,kq,tier2",
    )  # fmt: skip
    assert outcome.code == 0
    assert "p95 ms" in outcome.out
    (exhaustive,) = (row for row in outcome.out.splitlines() if row.startswith("exhaustive"))
    value, mean, gap = exhaustive.split()[2:5]
    assert float(value) > float(mean)
    assert gap == "0.00"
    assert exhaustive.split()[6] == f"{float(value):.3f}"  # a bound in ms, not per operation
    assert "kq: it takes no measures" in " ".join(outcome.out.split())
    document = placement(
        "compare", world, *ASK, "--percentile", 95, "--spread", 0.2, "--family", "gamma",
        "--methods", "exact", "--json",
    ).document  # fmt: skip
    (row,) = document["methods"]
    assert row["objective"] < 1000 < row["score"]


def test_a_comparison_by_percentile_is_drawn_and_reported(placement, world, tmp_path):
    pytest.importorskip("matplotlib")
    made = placement(
        "compare", world, *ASK, "--percentile", 95, "--spread", 0.2, "--methods",
        "exhaustive,exact", "-o", tmp_path / "c.json", "--plot", tmp_path / "c.png",
    )  # fmt: skip
    assert made.code == 0
    (value, _) = (
        row["objective"] for row in json.loads((tmp_path / "c.json").read_text())["methods"]
    )
    assert placement("report", tmp_path / "c.json", "-o", tmp_path / "c.html").code == 0
    page = (tmp_path / "c.html").read_text()
    assert "Objective" in page
    assert f"{value:.0f}" in page


def test_a_method_that_cannot_is_refused_with_those_that_can(placement, world):
    asked = ("--percentile", 99, "--spread", 0.1, "--method", "kq")
    outcome = placement("solve", world, *ASK, *asked)
    assert outcome.code == 1
    assert "methods that support it: exact, exhaustive" in " ".join(outcome.err.split())


def test_the_default_method_proves_a_percentile(placement, world):
    outcome = placement("solve", world, *ASK, "--percentile", 99, "--spread", 0.1)
    assert outcome.code == 0
    assert "optimal, proven; by exact" in outcome.out
    assert "solved by" not in outcome.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--spread", "0.1"], "--spread: does nothing without --percentile"),
        (["--horizon", "9"], "--rtt-horizon: does nothing without --percentile"),
        (["--percentile", "99"], "--percentile: needs the distributions of RTTs"),
        (["--percentile", "99", "--family", "gamma"], "--family: does nothing without --spread"),
        (["--percentile", "0", "--spread", "1"], "percentile: out of range"),
        (["--percentile", "101", "--spread", "1"], "percentile: out of range"),
        (["--percentile", "nan", "--spread", "1"], "percentile: out of range"),
        (["--percentile", "99", "--spread", "-1"], "--spread: out of range"),
        (["--percentile", "99", "--spread", "nan"], "--spread: out of range"),
        (["--percentile", "99", "--spread", "1", "--bin-width", "0"], "--bin-width: out of range"),
        (["--percentile", "99", "--spread", "1", "--bin-width", "1e-9"], "bin width: too fine"),
        (["--percentile", "99", "--spread", "1", "--horizon", "-1"], "horizon: out of range"),
        (
            ["--percentile", "99", "--spread", "1", "--distributions", "x.csv"],
            "--spread: does not go with --distributions",
        ),
        (["--percentile", "99", "--distributions", "x.csv"], "x.csv: no such file"),
        (["--percentile", "99", "--family", "cauchy", "--spread", "1"], "invalid choice: 'cauchy'"),
    ],
)
def test_bad_options(placement, world, options, message):
    outcome = placement("solve", world, *ASK, *options)
    assert outcome.code == 1
    assert message in outcome.err
    assert outcome.out == ""


def test_a_horizon_that_is_too_short(placement, world):
    outcome = placement(
        "solve", world, *ASK, "--percentile", 99, "--spread", 0.5, "--horizon", 20,
    )  # fmt: skip
    assert outcome.code == 2
    assert "within the horizon of the distributions" in " ".join(outcome.out.split())


def test_import_percentiles_and_ask(placement, table, tmp_path):
    """An instance from the same file: its RTTs are the means, its distributions the percentiles."""
    made = placement("import", table, "--mix", "oltp", "--sites", _sites(tmp_path),
                     "-o", tmp_path / "made", "--json")  # fmt: skip
    assert made.code == 0
    assert "column 'mean'" in json.dumps(made.document["provenance"])
    outcome = placement(
        "solve", tmp_path / "made", "--replicas", 3, "--voters", 3, "--percentile", 99,
        "--distributions", table, "--method", "exhaustive",
    )  # fmt: skip
    assert outcome.code == 0
    assert "optimal (proved by exhaustive; no certificate)" in outcome.out
    assert "no distribution from site-0" in outcome.err


def _sites(folder):
    """The sites alone: the table has clients beside them."""
    path = folder / "sites.csv"
    path.write_text("site\n" + "".join(f"site-{i}\n" for i in range(5)))
    return path

"""Comparisons of methods and sizes: output, files, pictures, and the exit codes."""

import json

import numpy as np
import pytest

from placement import Instance, Prices
from placement.analysis import compare_methods
from placement.io import save_instance
from tests.cli.command import runner


@pytest.fixture
def placement(capsys):
    return runner(capsys)


@pytest.fixture
def world(tmp_path):
    """Path of an instance with prices and two countries."""
    rng = np.random.default_rng(5)
    rtt = rng.uniform(5, 200, (5, 5))
    np.fill_diagonal(rtt, 0)
    instance = Instance(
        sites=("ams", "ber", "cdg", "dub", "ewr"),
        clients=("c1", "c2", "c3"),
        client_rtt=rng.uniform(1, 200, (3, 5)),
        site_rtt=rtt,
        counts=rng.integers(1, 90, (3, 5)).astype(float),
        domains={"side": ("eu", "eu", "eu", "eu", "us")},
        prices=Prices(rng.uniform(1, 9, 5)),
    )
    save_instance(instance, tmp_path / "world")
    return tmp_path / "world"


def test_compare_prints_a_table(placement, world):
    outcome = placement(
        "compare", world, "--replicas", 3, "--voters", 3, "--methods", "exhaustive,kq,leader"
    )
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert [line.split()[0] for line in lines if "optimal" in line] == ["exhaustive"]
    assert "0.00 %" in outcome.out
    assert any(line.startswith("leader: it is a tier 1 method") for line in lines)
    assert outcome.err == ""


def test_each_compared_method_has_a_time_limit_of_its_own(placement, world, monkeypatch):
    """All methods, asked about losses, took many minutes without one."""
    asked, compare = [], compare_methods.compare

    def noted(*args, **options):
        asked.append(options["time_limit"])
        return compare(*args, **options)

    monkeypatch.setattr(compare_methods, "compare", noted)
    question = ("compare", world, "--replicas", 3, "--voters", 3, "--methods", "kq")
    assert placement(*question).code == placement(*question, "--time-limit", 5).code == 0
    assert asked == [60, 5]


def test_compare_gives_json_without_infinities(placement, world):
    outcome = placement(
        "compare", world, "--replicas", "3", "--voters", "1", "--methods", "kq,cp-sat", "--json",
        "--set", "cp-sat.start=none",
    )  # fmt: skip
    assert outcome.code == 0
    kq, exact = outcome.document["methods"]
    assert kq["bound"] is None
    assert kq["own_gap"] is None
    assert exact["status"] == "optimal"
    assert exact["gap"] <= 1e-9
    assert len(kq["replicas"]) == 3
    assert outcome.document["best_bound"] == pytest.approx(exact["objective"])


def test_exit_codes(placement, world):
    infeasible = ("--replicas", 3, "--voters", 3, "--forbid", "ewr", "--distinct", "side=2")
    assert placement("compare", world, *infeasible, "--methods", "exhaustive,kq").code == 2
    assert placement("compare", "sizes", world, *infeasible, "--method", "exhaustive").code == 2
    assert (
        placement("compare", world, "--replicas", 3, "--voters", 1, "--methods", "leader").code == 1
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "--replicas", 3, "--voters", 1, "--methods", "kqq"), "did you mean"),
        (("compare", "--replicas", 3, "--voters", 1, "--set", "start=none"), "METHOD.NAME=VALUE"),
        (("compare", "--replicas", 3, "--voters", 1, "-o", "x.xlsx"), "unknown table format"),
        (("compare", "--replicas", 3, "--voters", 1, "--plot", "x.gif"), "unknown picture format"),
        (("compare", "sizes", "--replicas", "ams,ber", "--voters", 1), "no numbers of replicas"),
        (("compare", "sizes", "--replicas", "1..2", "--voters", "3"), "no number of voters fits"),
        (("compare", "sizes", "--replicas", "2..3", "--voters", "ber,xyz"), "unknown site"),
    ],
)
def test_bad_input(placement, world, arguments, message):
    outcome = placement(*arguments, world)
    assert outcome.code == 1
    assert message in outcome.err
    assert outcome.out == ""


def test_sweep_prints_gains(placement, world, tmp_path):
    picture, table = tmp_path / "sweep.svg", tmp_path / "sweep.json"
    outcome = placement(
        "compare", "sizes", world, "--replicas", "2..4", "--voters", "1,3", "--method",
        "exhaustive", "--plot", picture, "-o", table,
    )  # fmt: skip
    assert outcome.code == 0
    assert "gain ms" in outcome.out
    assert picture.read_text().count("<svg") == 1
    cells = json.loads(table.read_text())["cells"]
    assert [(cell["voters"], cell["replicas"]) for cell in cells] == [
        (1, 2), (1, 3), (1, 4), (3, 3), (3, 4),
    ]  # fmt: skip
    first, second = cells[:2]
    assert first["gain"] is None
    assert second["gain"] == pytest.approx(first["mean_latency"] - second["mean_latency"])


def test_pareto(placement, world, tmp_path):
    picture = tmp_path / "frontier.pdf"
    arguments = ("compare", "fronts", world, "--replicas", "1..4", "--voters", "1", "--method")
    outcome = placement(*arguments, "exhaustive", "--json", "--plot", picture)
    assert outcome.code == 0
    assert outcome.document["complete"] is True
    costs = [point["cost"] for point in outcome.document["points"]]
    latencies = [point["mean_latency"] for point in outcome.document["points"]]
    assert costs == sorted(costs)
    assert latencies == sorted(latencies, reverse=True)
    assert picture.read_bytes().startswith(b"%PDF")
    text = placement(*arguments, "exhaustive")
    assert "none is missing" in text.out
    assert "Not complete" in placement(*arguments, "exhaustive", "--points", "1").out


def test_progress_is_on_stderr(placement, world):
    outcome = placement(
        "compare", world, "--replicas", 3, "--voters", 1, "--methods", "exhaustive", "--progress",
        "--json",
    )  # fmt: skip
    assert outcome.document["methods"]
    assert "best" in outcome.err

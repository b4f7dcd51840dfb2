"""Studies of `exact`: the readers of files that the user names, and a run that is resumed."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.exact import speed
from benchmarks.exact.networks import (
    DEMANDS,
    MODELLED,
    hard_instance,
    networks,
    p_median,
    read_npz,
    read_pmed,
    read_tsplib,
)
from benchmarks.exact.scale_cell import answer, instance_of
from benchmarks.harness.results import read_json
from benchmarks.harness.tier3_worlds import read_matrix
from formulations.exact.branch_and_bound import search
from placement.datasets.distance_rtt import triangle_violations
from placement.errors import InputError, SolverError
from placement.support.checks import FloatArray

# --- networks and demand -------------------------------------------------------------------------


def test_modelled_networks_violate_triangles_and_need_no_file() -> None:
    (network,) = networks(["modelled-120"])
    assert network.rtt.shape == (120, 120)
    assert triangle_violations(network.rtt) > 0.02
    assert np.array_equal(network.rtt, next(networks(["modelled-120"])).rtt)


@pytest.mark.parametrize("kind", DEMANDS)
def test_an_instance_has_the_demand(kind: str) -> None:
    (network,) = networks(["modelled-120"])
    instance = hard_instance(network, "social", kind, seed=1)
    share = instance.counts.sum(axis=(0, 2)) / instance.counts.sum()
    assert len(share) == 120
    assert (share.max() > 0.45) == (kind == "half")
    assert (np.diag(instance.site_rtt) == 0).all()


# --- files ---------------------------------------------------------------------------------------


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_matrix_with_gaps(tmp_path: Path) -> None:
    path = written(tmp_path / "rtt.csv", "site,a,b,c\na,,10,\nb,12,,5\nc,,,0.5\n")
    names, rtt = read_matrix(path)
    assert names == ("a", "b", "c")
    assert rtt.tolist() == [[1, 10, 15], [12, 1, 5], [17, 5, 0.5]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("site,a,b\na,1,2\n", "not a square table"),
        ("site,a,b\na,1,2\nc,1,2\n", "not a square table"),
        ("site,a,b\na,1,-2\nb,1,2\n", r"negative.*'-2'"),
        ("site,a,b\na,1,\nb,,2\n", r"no path between two sites.*a to b"),
    ],
)
def test_a_matrix_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_matrix(written(tmp_path / "rtt.csv", text))


def test_an_archive_of_rtts(tmp_path: Path) -> None:
    path = tmp_path / "rtt.npz"
    np.savez(path, rtt=np.ones((3, 3)))
    assert read_npz(path).shape == (3, 3)
    for bad in (np.ones((3, 2)), np.full((2, 2), np.nan), -np.ones((2, 2))):
        np.savez(path, rtt=bad)
        with pytest.raises(InputError, match="not RTTs"):
            read_npz(path)
    np.savez(path, other=np.ones((3, 3)))
    with pytest.raises(InputError, match="not a NumPy archive of RTTs"):
        read_npz(path)
    with pytest.raises(InputError, match="not a NumPy archive of RTTs"):
        read_npz(written(path, "no archive"))


HEAD = "NAME : x\nTYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
POINTS = "1 0 0\n2 3.0e+00 4\n3 1 1\nEOF\n"


def test_points_of_tsplib_round_distances_down(tmp_path: Path) -> None:
    rtt = read_tsplib(written(tmp_path / "x.tsp", HEAD + POINTS))
    assert rtt.tolist() == [[0, 5, 1], [5, 0, 3], [1, 3, 0]]  # √2 and √13, rounded down


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("EUC_2D", "GEO") + POINTS, r"EDGE_WEIGHT_TYPE: not points.*'GEO'"),
        (HEAD.replace("3", "4") + POINTS, r"DIMENSION: not points of TSPLIB.*'4'.*expected 3"),
        (HEAD + "1 0 0\n3 1 1\n2 1 1\n", r"not in order.*expected points 1, 2, 3"),
        (HEAD + "1 0 0\n2 1\n", r"row 7: not a row of three numbers"),
        (HEAD + "1 0 inf\n", r"row 6: not a row of three numbers"),
        ("EOF\n", r"EDGE_WEIGHT_TYPE: not points"),
    ],
)
def test_points_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_tsplib(written(tmp_path / "x.tsp", text))


def test_a_graph_of_the_library(tmp_path: Path) -> None:
    path = written(tmp_path / "pmed1.txt", "3 4 2\n1 2 5\n2 3 7\n1 3 20\n2 1 4\n")
    distances, size = read_pmed(path)
    assert size == 2
    assert distances.tolist() == [[0, 4, 11], [4, 0, 7], [11, 7, 0]]  # the last edge counts
    result = search(p_median(distances, 2))
    assert result.score == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a graph of the OR-Library"),
        ("3 1\n", r"row 1: not a row of three numbers"),
        ("3 2 1\n1 2 5\n2 3 x\n", r"row 3: not a row of three numbers.*'2 3 x'"),
        ("3 2 1\n1 2 5\n", r"row 1: n edges p: not a graph.*and 1 edges as there are rows"),
        ("3 2 1\n1 2 5\n2 4 5\n", r"row 3: no such edge"),
        ("3 2 1\n1 2 5\n2 3 -5\n", r"row 3: no such edge"),
        ("3 1 1\n1 2 5\n", r"a graph in several parts"),
        ("3 1 4\n1 2 5\n", r"n edges p: not a graph"),
    ],
)
def test_a_graph_that_is_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pmed(written(tmp_path / "pmed1.txt", text))


# --- the study -----------------------------------------------------------------------------------


def cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_a_run_is_resumed(tmp_path: Path) -> None:
    table = tmp_path / "exact_speed.csv"
    words = ["run", "exact.speed", "--only", "modelled-120", "--match", " cache ", "--repeat", "1"]
    words = [*words, "--results", str(tmp_path)]
    assert main(words) == 0
    heads, *rows = cells(table)
    assert len(rows) == 6
    assert {row[5] for row in rows} == {"optimal"}
    kept = [[*row[:3], "9.999", *row[4:]] for row in rows[:4]]
    table.write_text("\n".join(map(",".join, [heads, *kept])) + "\n", encoding="utf-8")
    assert main([*words, "--resume"]) == 0
    again = cells(table)[1:]
    assert again[:4] == kept
    assert [row[1] for row in again] == [row[1] for row in rows]
    assert [row[9] for row in again] == [row[9] for row in rows]
    assert set(read_json(tmp_path / "exact_speed.json")) == {"modelled-120"}


def test_results_go_to_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file in place of the folder is refused before anything is measured."""
    (tmp_path / "rows.csv").write_text("", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["run", "exact.speed", "--results", str(tmp_path / "rows.csv")])
    assert "rows.csv is a file: expected a folder" in capsys.readouterr().err


def test_without_folders_only_the_drawn_networks_are_asked() -> None:
    some = [group for group in speed.groups() if group.name in (*MODELLED, "sky-42")]
    assert [len(list(group.questions())) for group in some] == [54, 54, 0]


def test_a_published_optimum_is_compared() -> None:
    line: FloatArray = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    ask = speed.published("rl1304", 5, speed._medians(p_median(line, 5)))
    with pytest.raises(SolverError, match="the optimum is 3099073"):
        ask(10, None)


# --- the study of scale --------------------------------------------------------------------------


@pytest.mark.parametrize(("network", "broken"), [("metric", False), ("broken", True)])
def test_drawn_networks_keep_or_break_triangles(network: str, broken: bool) -> None:
    ask = {"sites": 40, "clients": 60, "network": network, "demand": "half", "mix": "social"}
    instance = instance_of(ask)
    assert (triangle_violations(instance.site_rtt) > 0) == broken
    share = instance.counts.sum(axis=(0, 2)) / instance.counts.sum()
    assert share.max() == pytest.approx(0.5)
    assert instance.client_rtt.shape == (60, 40)


def test_a_question_of_scale_is_answered_and_checked() -> None:
    plain = {"sites": 12, "network": "broken", "demand": "lognormal", "mix": "social"}
    found = answer({**plain, "goal": "worst", "replicas": 3, "voters": 3, "check": True})
    assert (found["status"], found["gap"], found["note"]) == ("optimal", 0.0, "True")

"""`python -m benchmarks`: what it prints, writes, refuses, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType

import pytest

from benchmarks import __main__ as harness
from benchmarks.harness.cells import Failures, Limits, ScriptCell
from benchmarks.harness.result_rows import ResultsFile
from benchmarks.harness.suite_worlds import World
from benchmarks.harness.suites import SUITES, Grid, Suite
from placement.report.result_file import read_results

QUICK = Limits(time=5.0, wall=60.0, repeats=2, again=0.1)


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Suite:
    """A suite of three cells: two answered, one refused."""
    small = Suite(
        "small",
        "for tests",
        "best-of",
        grids=(
            Grid((World("world27", sites=5),), ("best-of", "exhaustive", "tier2"), (3,), (3,),
                 (Failures.NONE,), limits=QUICK),
        ),
    )  # fmt: skip
    monkeypatch.setattr(harness, "SUITES", MappingProxyType({"small": small}))
    return small


def test_run_report_and_diff(
    suite: Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run says on what it ran; resuming adds nothing; a file is no worse than itself."""
    path = tmp_path / "new" / "small.jsonl"
    command = ["run", "small", "-o", str(path)]
    assert harness.main(command) == 0
    out, err = capsys.readouterr()
    assert "Failure constraint: none" in out
    assert "1 refused" in out
    assert "3/3" in err
    results = read_results(path)
    (run,) = results.runs
    assert run["suite"] == "small"
    assert run["seeds"] == [0]
    assert {"cpu", "cores", "python", "versions", "commit"} <= set(run["machine"])
    assert "numpy" in run["machine"]["versions"]
    assert [row["outcome"] for row in results.rows] == ["ok", "ok", "refused"]

    before = path.read_bytes()
    assert harness.main([*command, "--resume"]) == 0
    assert path.read_bytes() == before
    assert "3 of 3 cells are done" in capsys.readouterr().err
    assert harness.main(command) == 1
    assert "--resume" in capsys.readouterr().err
    assert harness.main([*command, "--force", "--method", "exhaustive"]) == 0
    assert len(read_results(path).rows) == 1
    assert harness.main([*command, "--resume"]) == 0
    assert len(read_results(path).rows) == 3

    capsys.readouterr()
    assert harness.main(["report", str(path), "--markdown"]) == 0
    assert "| exhaustive | 1 | 1 | 1 | 1 | 0 %" in capsys.readouterr().out
    assert harness.main(["diff", str(path), str(path)]) == 0
    assert "0 worse" in capsys.readouterr().out


def test_diff_says_what_got_worse_and_fails(
    suite: Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lost proof is found, named, and shows in the exit code."""
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    assert harness.main(["run", "small", "-o", str(path)]) == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("status") == "optimal":
            line |= {"status": "feasible", "bound": None}
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    capsys.readouterr()
    assert harness.main(["diff", str(path), str(other)]) == 2
    out = capsys.readouterr().out
    assert "optimal → feasible" in out
    assert "exhaustive" in out


def test_retry_runs_what_failed_again(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --retry a cell that was missing gets a second row, which counts; others do not."""
    path = tmp_path / "small.jsonl"
    cell = suite.cells()[0]
    with ResultsFile(path) as file:
        run = file.start({"suite": "small", "machine": {}})
        row = {"key": cell.key, "label": cell.label, "group": cell.group, "cell": cell.to_json()}
        file.add({"run": run, **row, "outcome": "missing", "reason": "not installed"})
    only = ["--method", "best-of"]
    command = ["run", "small", "-o", str(path), "--resume", *only]
    monkeypatch.setattr("benchmarks.harness.machine.sentence", lambda machine: "")
    monkeypatch.setattr("benchmarks.harness.result_tables.sentence", lambda machine: "")
    assert harness.main(command) == 0
    assert [row["outcome"] for row in read_results(path).rows] == ["missing"]
    assert harness.main([*command, "--retry"]) == 0
    assert [row["outcome"] for row in read_results(path).rows] == ["ok"]


def test_a_defect_shows_in_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A script that fails is a row, the others run, and the run as a whole says so."""
    bad = Suite(
        "bad", "", "", scripts=(ScriptCell("tests.benchmarks.marker"), ScriptCell("calendar"))
    )
    monkeypatch.setattr(harness, "SUITES", MappingProxyType({"bad": bad}))
    assert harness.main(["run", "bad", "-o", str(tmp_path / "bad.jsonl")]) == 2
    assert "IndexError" in capsys.readouterr().out
    found = [row["outcome"] for row in read_results(tmp_path / "bad.jsonl").rows]
    assert found == ["error", "ok"]


def test_two_runs_cannot_write_to_one_file(suite: Suite, tmp_path: Path) -> None:
    """A second run is turned away while the first has the file."""
    path = tmp_path / "small.jsonl"
    with ResultsFile(path):
        assert harness.main(["run", "small", "-o", str(path), "--resume"]) == 1


@pytest.mark.parametrize(
    "more", [["--only", "nothing like it"], ["--method", "kq"], ["--jobs", "0"]]
)
def test_bad_requests(
    suite: Suite, tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be run is refused before a file is made."""
    path = tmp_path / "small.jsonl"
    assert harness.main(["run", "small", "-o", str(path), *more]) == 1
    assert capsys.readouterr().err.startswith("error: ")
    assert not path.exists()


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Every suite is listed with its size; so are the cells of one."""
    assert harness.main(["list"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in SUITES)
    assert harness.main(["list", "smoke"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(SUITES["smoke"].cells())

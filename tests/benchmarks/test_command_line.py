"""`python -m benchmarks`: what it prints, writes, refuses, its exit codes, and kills of it."""

from __future__ import annotations

import collections
import contextlib
import errno
import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL
from types import MappingProxyType
from unittest.mock import Mock

import pytest

from benchmarks import __main__ as harness
from benchmarks.harness.pictures import method_panels
from benchmarks.harness.result_rows import FORMAT, VERSION, read_results
from benchmarks.harness.results import RESULTS, alone_in, read_json, read_rows
from benchmarks.harness.suites import SUITES, CellLimits, Grid, InstanceRecipe, LossRule, Suite
from placement.errors import InputError
from tests.benchmarks.test_runner import alive
from tests.cli.command import Run

QUICK = CellLimits(time=5.0, wall=60.0, repeats=2, again=0.1)


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Suite:
    small = Suite(
        "small",
        "for tests",
        "best-of",
        grids=(
            Grid((InstanceRecipe("world27", sites=5),), ("best-of", "exhaustive", "tier2"), (3,),
                 (3,), (LossRule.NONE,), limits=QUICK),
        ),
    )  # fmt: skip
    monkeypatch.setattr(harness, "SUITES", MappingProxyType({"small": small}))
    return small


def test_run_report_and_diff(suite: Suite, tmp_path: Path, bench: Run) -> None:
    """A run says on what it ran; resuming adds nothing; a file is no worse than itself."""
    path = tmp_path / "new" / "small.jsonl"
    command = ["run", "small", "--results", path.parent]
    bench(*command, "--method", "best-of", code=0)
    bench(*command, "--force", "--method", "exhaustive", code=0)
    assert len(read_results(path).rows) == 1
    done = bench(*command, "--force", "--resume", code=0)  # keeps what it does not run
    assert "Failure constraint: none" in done.out
    assert "1 refused" in done.out
    assert "1 of 3 cells are done" in done.err
    results = read_results(path)
    for run in results.runs:
        assert run["suite"] == "small"
        assert {"cpu", "cores", "python", "versions", "commit"} <= set(run["machine"])
        assert "numpy" in run["machine"]["versions"]
    assert sorted(row["outcome"] for row in results.rows) == ["ok", "ok", "refused"]

    before = path.read_bytes()
    assert "3 of 3 cells are done" in bench(*command, "--resume", code=0).err
    assert path.read_bytes() == before

    assert "| exhaustive | 1 | 1 | 1 | 0 %" in bench("report", path, "--markdown", code=0).out
    bench("report", path, "--plot", tmp_path / "small.png", code=0)
    assert (tmp_path / "small.png").read_bytes().startswith(b"\x89PNG")
    gaps, times = method_panels(results.rows, ["exhaustive"])
    ((sizes, values, _),) = gaps.lines.values()
    assert (list(sizes), values) == ([3], [0.0])
    assert list(times.lines) == ["_exhaustive"]
    assert "0 worse" in bench("diff", path, path, code=0).out


def test_diff_says_what_got_worse_and_fails(suite: Suite, tmp_path: Path, bench: Run) -> None:
    path, other = tmp_path / "small.jsonl", tmp_path / "b.jsonl"
    bench("run", "small", "--results", tmp_path, "--method", "exhaustive", code=0)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if line.get("status") == "optimal":
            line |= {"status": "feasible", "bound": None}
    other.write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = bench("diff", path, other, code=2).out
    assert "optimal → feasible" in out
    assert "exhaustive" in out


def test_retry_runs_what_failed_again(suite: Suite, tmp_path: Path, bench: Run) -> None:
    """With --retry a cell that was missing gets a second row, which counts; others do not."""
    path = tmp_path / "small.jsonl"
    cell = suite.cells()[0]
    row = {"key": cell.key, "label": cell.label, "group": cell.group, "cell": cell.to_json()}
    row |= {"kind": "row", "run": 1, "outcome": "missing", "reason": "not installed"}
    run = {"kind": "run", "format": FORMAT, "version": VERSION, "id": 1, "machine": {}}
    path.write_text(f"{json.dumps(run)}\n{json.dumps(row)}\n")
    command = ["run", "small", "--results", tmp_path, "--resume", "--method", "best-of"]
    bench(*command, code=0)
    assert [row["outcome"] for row in read_results(path).rows] == ["missing"]
    bench(*command, "--retry", code=0)
    assert [row["outcome"] for row in read_results(path).rows] == ["ok"]


def test_a_defect_shows_in_the_exit_code(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Run
) -> None:
    program = (
        "import json, sys\n"
        "from benchmarks.harness.cell_process import solve_cell\n"
        "from benchmarks.harness.suites import cell_from_json\n"
        "cell = cell_from_json(json.loads(sys.stdin.readline()))\n"
        "if cell.method == 'best-of': raise IndexError('a defect')\n"
        "print(json.dumps({'outcome': 'ok', **solve_cell(cell)}))\n"
    )
    monkeypatch.setattr("benchmarks.harness.run_suite.COMMAND", (sys.executable, "-c", program))
    path = tmp_path / "small.jsonl"
    words = ["run", "small", "--results", tmp_path, "--method", "best-of", "exhaustive"]
    assert "IndexError" in bench(*words, code=2).out
    assert [row["outcome"] for row in read_results(path).rows] == ["crashed", "ok"]


@pytest.mark.parametrize(
    "name", ["key", "cell", "group", "outcome", "bound", "status", "cell.method"]
)
def test_a_row_that_lacks_a_part_is_refused_by_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "rows.jsonl"
    cell = {"kind": "solve", "method": "kq", "failures": "none"}
    row = {"kind": "row", "key": "a", "cell": cell, "group": "g", "outcome": "ok", "seconds": 1.0,
           "status": "optimal"}  # fmt: skip
    bad = row | ({"cell": cell | {"method": []}} if "." in name else {name: []})
    path.write_text(json.dumps(row) + "\n" + json.dumps(bad) + "\n")
    with pytest.raises(InputError, match=rf"row 2.*{name}.*\[\]"):
        read_results(path)


def test_forced_results_replace_the_old_ones_with_their_first_row(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Run
) -> None:
    """Old rows stand until a new one is on the disk; what holds no results is not added to.

    The message names the file and what the system says.
    """
    path = tmp_path / "small.jsonl"
    path.write_text("not even results\n")
    command = ["run", "small", "--results", tmp_path, "--method", "best-of"]
    bench(*command, code=1)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(os, "fsync", Mock(side_effect=full))
    assert f"error: {path}: No space left on device" in bench(*command, "--force", code=1).err
    assert path.read_text() == "not even results\n"
    monkeypatch.undo()
    monkeypatch.setattr(harness, "SUITES", MappingProxyType({"small": suite}))
    bench(*command, "--force", code=0)
    bench(*command, code=0)  # the second row of the cell counts
    assert [(row["outcome"], row["run"]) for row in read_results(path).rows] == [("ok", 2)]
    assert [entry.name for entry in tmp_path.iterdir()] == ["small.jsonl"]


def test_what_is_no_file_is_not_replaced(suite: Suite, tmp_path: Path, bench: Run) -> None:
    """Results go to a regular file: they are read again."""
    path = tmp_path / "small.jsonl"
    os.mkfifo(path)
    for more in ([], ["--force"], ["--resume"]):
        said = bench("run", "small", "--results", tmp_path, *more, code=1).err
        assert "not a regular file" in said
        assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.parametrize(
    "more", [["--only", "nothing like it"], ["--method", "kq"], ["--jobs", "0"]]
)
def test_bad_requests(suite: Suite, tmp_path: Path, more: list[str], bench: Run) -> None:
    done = bench("run", "small", "--results", tmp_path, *more, code=1)
    assert done.err.startswith("error: ")
    assert not (tmp_path / "small.jsonl").exists()


def test_list(bench: Run) -> None:
    out = bench("list", code=0).out
    assert all(name in out for name in SUITES)
    assert len(bench("list", "smoke", code=0).out.splitlines()) == len(SUITES["smoke"].cells())


def test_report_shows_rows_of_json_and_csv(bench: Run) -> None:
    lines = bench("report", RESULTS / "replay.json", "memory", code=0).out.splitlines()
    assert lines[1].split() == ["minutes", "decay", "overhead_mean", "overhead_p95", "moves"]
    assert len(lines) == 2 + len(read_json(RESULTS / "replay.json")["memory"])
    lines = bench("report", RESULTS / "set_waits.csv", code=0).out.splitlines()
    assert len(lines) == 1 + len(read_rows(RESULTS / "set_waits.csv"))
    bench("report", RESULTS / "replay.json", "nothing", code=1)


ROOT = Path(__file__).resolve().parents[2]


def rows_in(path: Path) -> list[str]:
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0]
    values = [json.loads(line) for line in whole.split(b"\n") if line]
    return [value["key"] for value in values if value["kind"] == "row"]


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_marks_survive_kills(tmp_path: Path, jobs: int) -> None:
    """After kills at random moments every cell has one row; only cells in flight ran twice."""
    output, marks, cells, kills = tmp_path / "marks.jsonl", tmp_path / "marks", 16, 4
    command = [sys.executable, "-m", "tests.benchmarks.driver", str(tmp_path), str(marks)]
    command += [str(cells), str(jobs)]
    rng = random.Random(jobs)
    for _ in range(kills):
        before = rows_in(output)
        with subprocess.Popen(command, cwd=ROOT, stdout=DEVNULL, stderr=DEVNULL) as child:
            time.sleep(rng.uniform(0, 0.8))
            child.kill()
        keys = rows_in(output)
        assert keys[: len(before)] == before, "a durable row was lost"
        assert len(keys) == len(set(keys)), "a cell has two rows"
        if output.exists():
            read_results(output)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    keys = rows_in(output)
    assert len(keys) == len(set(keys)) == cells
    time.sleep(0.1)  # an orphan of the last kill may still leave its mark
    ran = collections.Counter(marks.read_text().split())
    assert set(ran) == {str(i) for i in range(cells)}
    assert sum(ran.values()) <= cells + kills * jobs


def test_runs_write_into_a_folder_one_after_the_other(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")

    def add() -> None:
        with alone_in(tmp_path):
            found = int(count.read_text())
            time.sleep(0.01)
            count.write_text(str(found + 1))

    with ThreadPoolExecutor(8) as pool:
        _ = [pool.submit(add) for _ in range(8)]
    assert count.read_text() == "8"


STUCK = """
import ctypes, os, subprocess, sys
from benchmarks.harness.cell_process import _watch_parent
sys.stdin.readline()
_watch_parent()
other = subprocess.Popen(["sleep", "60"])
with open(sys.argv[1] + ".new", "w") as file:
    file.write(f"{os.getpid()} {other.pid}")
os.rename(sys.argv[1] + ".new", sys.argv[1])
ctypes.PyDLL(None).sleep(60)  # holds the interpreter, as a solver written in C may
"""


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_a_killed_runner_leaves_no_process_behind(tmp_path: Path) -> None:
    """Not even a cell that holds the interpreter, nor what the cell has started."""
    ids = tmp_path / "ids"
    stuck = tmp_path / "stuck.py"
    stuck.write_text(STUCK)
    program = (
        "import sys\n"
        "from benchmarks.harness import run_suite as runner\n"
        "from benchmarks.harness.suites import InstanceRecipe, LossRule, SolveCell\n"
        f"runner.COMMAND = (sys.executable, {str(stuck)!r}, {str(ids)!r})\n"
        "runner.run_cell(SolveCell(InstanceRecipe('x'), 1, 1, LossRule.NONE, 'x', 0))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=environment) as parent:
        assert wait_until(ids.exists)
        cell, other = map(int, ids.read_text().split())
        assert alive(cell)
        assert alive(other)
        parent.kill()
    try:
        assert wait_until(lambda: not alive(cell) and not alive(other), seconds=10.0)
    finally:
        for process in (cell, other):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

"""A run that is killed at any moment loses no row, repeats only what was in flight."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from placement.report.result_file import read_results

ROOT = Path(__file__).resolve().parents[2]


def rows_in(path: Path) -> list[str]:
    """Keys of all whole rows, in the order written."""
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0]
    values = [json.loads(line) for line in whole.split(b"\n") if line]
    return [value["key"] for value in values if value["kind"] == "row"]


def kill_at_random(command: list[str], path: Path, kills: int, longest: float, seed: int) -> int:
    """Start, kill after a random while, check the file; return how many kills hit a live run."""
    rng = random.Random(seed)
    hits = 0
    for _ in range(kills):
        before = rows_in(path)
        child = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0, longest))
        hits += child.poll() is None
        child.kill()
        child.wait()
        keys = rows_in(path)
        assert keys[: len(before)] == before, "a durable row was lost"
        assert len(keys) == len(set(keys)), "a cell has two rows"
        if path.exists():
            read_results(path)
    return hits


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_marks_survive_kills(tmp_path: Path, jobs: int) -> None:
    """After kills at random moments every cell has one row; only cells in flight ran twice."""
    output, marks, cells, kills = tmp_path / "rows.jsonl", tmp_path / "marks", 16, 4
    command = [sys.executable, "-m", "tests.benchmarks.driver", str(output), str(marks)]
    command += [str(cells), str(jobs)]
    kill_at_random(command, output, kills, longest=0.8, seed=jobs)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    keys = rows_in(output)
    assert len(keys) == len(set(keys)) == cells
    time.sleep(0.1)  # an orphan of the last kill may still leave its mark
    ran = collections.Counter(marks.read_text().split())
    assert set(ran) == {str(i) for i in range(cells)}
    assert sum(ran.values()) <= cells + kills * jobs


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


def is_running(process: int) -> bool:
    """Return whether a process is there and no zombie."""
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(listed) and not listed.startswith("Z")


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Return whether the condition came true in time."""
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
        "from benchmarks.harness import runner\n"
        "from benchmarks.harness.cells import InstanceRecipe, LossRule, SolveCell\n"
        f"runner.COMMAND = (sys.executable, {str(stuck)!r}, {str(ids)!r})\n"
        "runner.run_cell(SolveCell(InstanceRecipe('x'), 1, 1, LossRule.NONE, 'x', 0))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=environment) as parent:
        assert wait_until(ids.exists)
        cell, other = map(int, ids.read_text().split())
        assert is_running(cell)
        assert is_running(other)
        parent.kill()
    try:
        assert wait_until(lambda: not is_running(cell) and not is_running(other), seconds=10.0)
    finally:
        for process in (cell, other):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@pytest.mark.slow
def test_solved_cells_survive_kills(tmp_path: Path) -> None:
    """Real cells of the smoke suite survive twenty kills."""
    output = tmp_path / "smoke.jsonl"
    command = [sys.executable, "-m", "benchmarks", "run", "smoke", "-o", str(output), "--resume"]
    command += ["--only", "world27 8"]
    hits = kill_at_random(command, output, 20, longest=2.5, seed=0)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert hits
    keys = rows_in(output)
    assert len(keys) == len(set(keys)) > 0


def test_torn_last_line_is_cut_and_the_rest_kept(tmp_path: Path) -> None:
    """Cut at every byte of its last row, a file keeps the rows before; resuming mends it."""
    from benchmarks.harness.result_rows import ResultsFile

    path = tmp_path / "rows.jsonl"
    with ResultsFile(path) as file:
        run = file.start({"suite": "x"})
        for name in ("a", "b–東京"):
            file.add({"run": run, "key": name, "cell": {}, "outcome": "ok"})
    whole = path.read_bytes()
    last = whole[:-1].rfind(b"\n") + 1
    for cut in range(last, len(whole)):
        path.write_bytes(whole[:cut])
        found = read_results(path)
        assert [row["key"] for row in found.rows] == ["a"]
        assert found.dropped == cut - last
        with ResultsFile(path) as file:
            assert file.keys == {"a"}
            file.add({"run": run, "key": "c", "cell": {}, "outcome": "ok"})
        assert [row["key"] for row in read_results(path).rows] == ["a", "c"]


def test_zeros_after_a_power_failure_are_torn(tmp_path: Path) -> None:
    """A last line of the right length but without its content is no row."""
    from benchmarks.harness.result_rows import ResultsFile

    path = tmp_path / "rows.jsonl"
    with ResultsFile(path) as file:
        file.add({"run": file.start({}), "key": "a", "cell": {}, "outcome": "ok"})
    path.write_bytes(path.read_bytes() + b"\0" * 40 + b"\n")
    assert [row["key"] for row in read_results(path).rows] == ["a"]
    with ResultsFile(path) as file:
        assert file.keys == {"a"}
    assert b"\0" not in path.read_bytes()

"""The parts of the benchmarks that every figure depends on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.foundation import study as foundation
from benchmarks.harness import machine
from benchmarks.harness.timing import Timing, command, repeat


def test_a_machine_is_described_in_full() -> None:
    described = machine.describe(["numpy", "no-such-distribution"])
    assert json.loads(json.dumps(described)) == described
    assert isinstance(described["cores"], int)
    assert described["cores"] >= 1
    versions = described["versions"]
    assert isinstance(versions, dict)
    assert set(versions) == {"replica-placement", "numpy"}
    assert re.fullmatch(r"[0-9a-f]{12}\+?|unknown", str(described["commit"]))
    sentence = machine.sentence(described)
    assert f"{described['cpu']}, {described['cores']} cores" in sentence
    assert str(described["commit"])[:9] in sentence


def test_timings_leave_the_warm_up_out() -> None:
    calls: list[int] = []
    timing = repeat(lambda: calls.append(1), 5, warm_up=2)
    assert len(calls) == 7
    assert timing.runs == 5
    assert timing.cpu >= 0
    assert 0 <= timing.least <= timing.median
    assert Timing.of([3.0, 1.0, 2.0], [0.5, 0.7, 0.6]) == Timing(1.0, 2.0, 0.6, 3)


def test_processor_time_counts_work_here_and_in_children() -> None:
    def work() -> None:
        sum(i * i for i in range(1_500_000))

    assert repeat(work, 3).cpu > 0
    child = [sys.executable, "-c", "sum(i * i for i in range(1_500_000))"]
    assert command(child, 3).cpu > 0


def test_a_command_that_fails_is_no_timing() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        command([sys.executable, "-c", "raise SystemExit(3)"], 1)


def test_a_target_is_missed_by_the_median(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = [
        foundation.TimedCall("fast", "|R| = 1", Timing(0.1, 0.2, 0.3, 3), 1.0, "checked"),
        foundation.TimedCall("slow", "|R| = 2", Timing(0.9, 1.1, 1.0, 3), 1.0),
        foundation.TimedCall("free", "|R| = 3", Timing(5.0, 5.0, 5.0, 3), None),
    ]
    monkeypatch.setattr(foundation, "measure", lambda runs, seed: iter(rows))
    monkeypatch.setattr(foundation, "RESULTS", tmp_path / "results" / "foundation.json")
    assert main(["run", "foundation"]) == 1
    printed = capsys.readouterr()
    assert r"| fast | \|R\| = 1 | 0.200 s | < 1 s |" in printed.out
    assert "targets missed: slow" in printed.err
    written = json.loads(foundation.RESULTS.read_text(encoding="utf-8"))
    assert [row["what"] for row in written["rows"]] == ["fast", "slow", "free"]
    assert written["seed"] == 0
    assert main(["run", "foundation", "--show"]) == 0
    assert "1.100 s" in capsys.readouterr().out
    del rows[1]
    assert main(["run", "foundation"]) == 0


def test_a_wrong_optimum_stops_the_benchmark() -> None:
    import placement

    problem = placement.Problem(placement.load("world27"), replicas=2, voters=2)
    best = placement.solve(problem, "exhaustive")
    assert "every set scored" in foundation._verify(problem, best)
    sites = problem.instance.sites
    worse = placement.evaluate(problem, leader=sites[0], voters=sites[:2], replicas=sites[:2])
    with pytest.raises(SystemExit, match="by every set scored by the evaluator"):
        foundation._verify(problem, worse)

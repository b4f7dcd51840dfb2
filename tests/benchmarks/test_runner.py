"""Every ending of a cell is a row with its reason; `diff` finds what got worse."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness import run_suite as runner
from benchmarks.harness.result_rows import (
    Results,
    best_known,
    compare,
    diff_text,
    families,
    time_ratio,
)
from benchmarks.harness.run_suite import run_cell, run_cells
from benchmarks.harness.suites import (
    DRAWN,
    SUITES,
    CellLimits,
    InstanceRecipe,
    LossRule,
    SolveCell,
    cell_from_json,
)
from placement.errors import InputError
from placement.plan import evaluate

SMALL = InstanceRecipe("world27", sites=6)


def cell(method: str = "exhaustive", **changes: object) -> SolveCell:
    values: dict[str, object] = {
        "world": SMALL,
        "replicas": 3,
        "voters": 3,
        "failures": LossRule.NONE,
        "method": method,
        "seed": 1,
        "limits": CellLimits(time=5.0, wall=60.0, repeats=2, again=0.2),
    }
    return SolveCell(**(values | changes))  # type: ignore[arg-type]  # values of the fields above


def test_a_solved_cell_tells_what_the_evaluator_says() -> None:
    """Value, bound and configuration in the row are those of the plan, priced once more here."""
    from benchmarks.harness.suites import problem_of
    from placement import Configuration

    asked = cell()
    row = json.loads(json.dumps(run_cell(asked)))
    assert row["outcome"] == "ok"
    assert row["status"] == "optimal"
    problem = problem_of(asked, SMALL.build(1))
    index = problem.instance.sites.index
    plan = evaluate(
        problem,
        Configuration.of(
            index(row["leader"]), map(index, row["voters"]), map(index, row["replicas"])
        ),
    )
    assert row["objective"] == plan.objective
    assert row["seconds"] > 0
    assert row["calibration_seconds"] > 0
    assert row["same_again"]
    assert cell_from_json(row["cell"]) == asked
    assert row["key"] == asked.key


@pytest.mark.parametrize(
    ("asked", "outcome", "reason"),
    [
        (cell("no-such-method"), "missing", "unknown method"),
        (cell("kq", failures=LossRule.N_1), "refused", "takes no measures"),
        (cell("tier2"), "refused", "tier"),
        (cell(voters=2, failures=LossRule.REGION), "refused", "contradicts itself"),
        (cell(limits=CellLimits(time=None, wall=0.05)), "timeout", "0.05 s"),
        (cell(world=InstanceRecipe("nowhere")), "missing", "nowhere"),
    ],
)
def test_endings(asked: SolveCell, outcome: str, reason: str) -> None:
    row = run_cell(asked)
    assert row["outcome"] == outcome
    assert reason in str(row["reason"])
    json.dumps(row, allow_nan=False)


def test_memory_is_that_of_the_cell_alone() -> None:
    held = bytearray(b"x") * (400 * 2**20)
    row = run_cell(cell())
    assert row["peak_mb"] < 300, len(held)


def test_too_little_memory_is_a_row() -> None:
    big = cell(
        world=InstanceRecipe(DRAWN, sites=900, clients=900),
        method="best-mean",
        limits=CellLimits(time=5.0, wall=60.0, memory=240),
    )
    row = run_cell(big)
    assert row["outcome"] == "memory", row
    assert "240 MiB" in str(row["reason"])


def fake_child(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(runner, "COMMAND", (sys.executable, "-c", program))


@pytest.mark.parametrize(
    ("program", "outcome", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed", "SIGSEGV"),
        ("import os; os.abort()", "crashed", "SIGABRT"),
        ("import sys; sys.exit(3)", "crashed", "code 3"),
        ("pass", "crashed", "no row"),
        ("raise MemoryError", "memory", "MiB"),
        ("raise RuntimeError('oh no')", "crashed", "oh no"),
    ],
)
def test_crashes(monkeypatch: pytest.MonkeyPatch, program: str, outcome: str, reason: str) -> None:
    fake_child(monkeypatch, program)
    row = run_cell(cell())
    assert row["outcome"] == outcome
    assert reason in str(row["reason"])


def test_a_child_that_is_dead_before_it_is_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken pipe is no error of the run: how the child ended is its row."""
    start = subprocess.Popen

    def popen(command: list[str], **options: object) -> subprocess.Popen[bytes]:
        del command
        child = start([sys.executable, "-c", "import sys; sys.exit('oh no')"], **options)  # type: ignore[call-overload]  # handed on
        child.wait()
        return child  # type: ignore[no-any-return]  # of the overload

    monkeypatch.setattr(runner.subprocess, "Popen", popen)
    row = run_cell(cell())
    assert row["outcome"] == "crashed"
    assert "oh no" in str(row["reason"])


def test_timeout_kills_grandchildren(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    program = (
        "import subprocess, sys, time, pathlib\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(p.pid))\n"
        "time.sleep(60)\n"
    )
    fake_child(monkeypatch, program)
    assert run_cell(cell(limits=CellLimits(wall=1.5)))["outcome"] == "timeout"
    pid = int(note.read_text())
    for _ in range(100):
        if not alive(pid):
            break
        time.sleep(0.05)
    assert not alive(pid)


def alive(pid: int) -> bool:
    """Return whether a process runs (a zombie, whose parent is gone, does not)."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def test_an_orphan_ends_with_its_parent() -> None:
    limits = CellLimits(time=50.0, wall=60.0)
    asked = cell("milp", world=InstanceRecipe("world27"), replicas=7, limits=limits)
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.harness.cell_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(asked.to_json()).encode() + b"\n")
    child.stdin.flush()
    time.sleep(0.5)
    child.stdin.close()
    assert child.wait(timeout=30) == -signal.SIGKILL
    assert child.stdout is not None
    assert child.stdout.read() == b""
    child.stdout.close()


@pytest.mark.usefixtures("uncollected")
def test_ctrl_c_ends_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt during a run kills the processes and is raised again; finished rows are kept."""
    fake_child(
        monkeypatch,
        "import json, sys, time\n"
        "time.sleep(60 * json.loads(sys.stdin.readline())['seed'])\n"
        "print(json.dumps({'outcome': 'ok'}))\n",
    )
    cells = [cell(seed=0), cell(seed=1)]
    rows: list[dict[str, object]] = []

    def interrupt() -> None:
        while not rows:
            time.sleep(0.02)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        rows.extend(row for _, row in run_cells(cells))
    assert time.monotonic() - started < 30  # not the minute that the second cell sleeps
    assert [row["outcome"] for row in rows] == ["ok"]


def test_suites_are_data() -> None:
    """Every suite has cells, each once, that survive JSON; its reference answers its questions."""
    for suite in SUITES.values():
        cells = suite.cells()
        assert cells
        assert len({c.key for c in cells}) == len(cells)
        for c in cells:
            assert cell_from_json(json.loads(json.dumps(c.to_json()))) == c
        referred = {c.group for c in cells if c.method == suite.reference}
        assert {c.group for c in cells} == referred, suite.name


def test_groups_differ_when_questions_do() -> None:
    base = cell()
    for other in (
        cell(seed=2),
        cell(replicas=4),
        cell(voters=1),
        cell(failures=LossRule.N_1),
        cell(world=InstanceRecipe("world27", sites=6, mix="ledger")),
        cell(world=InstanceRecipe("world27", sites=6, demand="reads")),
        cell(world=InstanceRecipe("aws", sites=6)),
    ):
        assert other.group != base.group
        assert other.key != base.key
    assert cell("kq").group == base.group


def test_drawn_worlds_are_seeded() -> None:
    world = InstanceRecipe(DRAWN, sites=12, clients=20)
    assert world.build(3) == world.build(3)
    assert world.build(3) != world.build(4)
    assert len(world.build(3).sites) == 12
    assert len(world.build(3).clients) == 20


def test_the_best_bound_of_a_group_is_anybodys() -> None:
    rows = (
        {"group": "g", "objective": 10.0, "bound": None},
        {"group": "g", "objective": 9.0, "bound": 8.0},
        {"group": "h", "objective": None, "bound": None},
    )
    assert best_known(rows)["g"] == (8.0, 9.0)


def test_families_compare_like_with_like() -> None:
    """Questions put to other methods are another table; ratios pair the same question and run."""
    asked = (("exact", 3, 1.0), ("kq", 3, 0.5), ("exact", 5, 4.0), ("kq", 5, 1.0),
             ("exact", 7, 100.0), ("milp", 7, 900.0), ("exact", 9, 3.0),
             ("kq", 9, None))  # fmt: skip
    rows = [
        {"group": str(size), "run": 1, "cell": {"method": method, "failures": "none"},
         "outcome": "timeout" if seconds is None else "ok", "seconds": seconds}
        for method, size, seconds in asked
    ]  # fmt: skip
    split = families(rows)
    assert [len(mine) for _, mine in split] == [6, 2]
    assert "3 questions put to 2 methods" in split[0][0]
    assert time_ratio(split[0][1], "kq", "exact") == pytest.approx((0.5 + 0.25) / 2)
    assert time_ratio(split[1][1], "milp", "exact") == pytest.approx(9.0)
    assert time_ratio(split[1][1], "kq", "exact") is None


METHODS = {"ref": 0.010, "fast": 0.002, "slow": 0.2}


def results(
    *,
    machine: float = 1.0,
    noise: float = 0.0,
    slower: dict[str, float] | None = None,
    seed: int = 0,
    groups: int = 12,
) -> Results:
    """A run on a machine `machine` times as slow, with relative timing noise."""
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for group in range(groups):
        for method, base in METHODS.items():
            level = base * machine * (slower or {}).get(method, 1.0)
            again = [level * (1 + noise * rng.random()) for _ in range(5)]
            rows.append(
                {
                    "key": f"{group}/{method}",
                    "label": f"{group}/{method}",
                    "group": str(group),
                    "run": 1,
                    "cell": {"kind": "solve", "method": method},
                    "outcome": "ok",
                    "status": "optimal" if method == "slow" else "feasible",
                    "objective": 100.0,
                    "bound": 100.0 if method == "slow" else None,
                    "seconds": sorted(again)[2],
                    "seconds_again": again,
                    "calibration_seconds": 0.001 * machine,
                }
            )
    return Results(({"id": 1, "reference": "ref"},), tuple(rows))


def changed(results: Results, position: int, **changes: object) -> Results:
    rows = list(results.rows)
    rows[position] = {**rows[position], **changes}
    return Results(results.runs, tuple(rows))


def test_a_slower_machine_is_not_slower_code() -> None:
    found = compare(results(noise=0.1), results(machine=3.0, noise=0.1, seed=1))
    assert found.changes == ()
    assert found.timed == 36


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_not_a_change(seed: int) -> None:
    found = compare(results(noise=0.33, seed=seed), results(noise=0.33, seed=seed + 100))
    assert found.changes == ()


def test_a_slower_method_is_found() -> None:
    """Half as fast again, on all questions: the method as a whole."""
    found = compare(results(noise=0.05), results(noise=0.05, seed=1, slower={"fast": 1.6}))
    assert [(change.kind, change.what) for change in found.worse] == [
        ("slower", "all questions · fast")
    ]
    back = compare(results(noise=0.05, slower={"fast": 1.6}), results(noise=0.05, seed=1))
    assert not back.worse
    assert back.changes


def test_a_slower_reference_is_found_by_the_calibration() -> None:
    """When the unit itself got slower, everything else looks faster; the calibration tells."""
    found = compare(results(), results(slower={"ref": 2.0}))
    assert [change.what for change in found.worse] == ["all questions · ref"]


@pytest.mark.parametrize(
    ("position", "changes", "kind"),
    [
        (0, {"objective": 101.0}, "value"),
        (0, {"objective": None, "status": "unknown"}, "value"),
        (2, {"status": "feasible", "bound": 90.0}, "proof"),
        (2, {"bound": 90.0, "status": "feasible"}, "gap"),
        (1, {"outcome": "timeout", "reason": "killed"}, "outcome"),
        (2, {"bound": 120.0}, "contradiction"),
    ],
)
def test_worse_answers(position: int, changes: dict[str, object], kind: str) -> None:
    """A worse value, a lost proof, a larger gap, no answer, a false bound: no statistics needed."""
    found = compare(results(), changed(results(), position, **changes))
    assert kind in {change.kind for change in found.worse}
    assert kind in diff_text(found)


def test_cells_of_one_file_only_are_told() -> None:
    short = Results(results().runs, results().rows[:-1])
    found = compare(short, results())
    assert found.only_after == ("11/slow",)
    assert compare(results(), short).only_before == ("11/slow",)


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(InputError, match="no cell in common"):
        compare(results(), Results((), ()))

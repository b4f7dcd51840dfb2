"""Run of a cell in a separate process: ``python -m benchmarks.harness.cell_process``.

The cell comes as one JSON line on standard input, the row goes as one JSON line to standard output;
whatever a solver prints goes to standard error. Standard input stays open as long as the parent
lives: when it closes, the parent was killed, and this process ends too with all that it started. A
small process beside it waits for that: a thread could not, while a solver holds the interpreter.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.harness.suites import CellLimits, SolveCell
    from placement.methods.options import Options
    from placement.methods.registry import Method
    from placement.plan import Plan
    from placement.problem import Problem

_MIB = 1 << 20


def main() -> int:
    """Read a cell, obey its limits, write its row."""
    line = sys.stdin.readline()
    data: dict[str, Any] = json.loads(line)
    atexit.register(_end_watcher, os.getpid(), _watch_parent())
    limits = data["limits"]
    _limit(limits["memory"], limits["wall"], limits["threads"])
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    row = _row(data)
    os.write(out, json.dumps(row, allow_nan=False).encode() + b"\n")
    return 0


def _limit(memory: int, wall: float, threads: int) -> None:
    """Cap the address space, and the processor time as a second guard beside the parent's clock."""
    resource.setrlimit(resource.RLIMIT_AS, (memory * _MIB, memory * _MIB))
    seconds = math.ceil(wall * max(threads, 1)) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _watch_parent() -> int:
    """Start the process that kills this one's group when standard input closes; return its id."""
    cell = os.getpid()
    watcher = os.fork()  # before anything has started a thread
    if watcher:
        return watcher
    try:
        while os.read(0, 4096):
            pass
        if os.getpgrp() == cell:  # as the runner starts it; a group of others' is left alone
            os.killpg(cell, signal.SIGKILL)
        os.kill(cell, signal.SIGKILL)
    finally:
        os._exit(1)


def _end_watcher(cell: int, watcher: int) -> None:
    if os.getpid() == cell:  # and not a process that this one has forked
        os.kill(watcher, signal.SIGKILL)
        os.waitpid(watcher, 0)


def _row(data: Mapping[str, Any]) -> dict[str, object]:
    from benchmarks.harness.suites import cell_from_json
    from placement.errors import InputError, LimitError, SolverError, UnsupportedError

    cell = cell_from_json(data)
    try:
        return {"outcome": "ok", **solve_cell(cell), **_usage()}
    except MemoryError:
        outcome, reason = "memory", f"needs more than {cell.limits.memory} MiB"
    except (UnsupportedError, LimitError) as error:
        outcome, reason = "refused", str(error)
    except (InputError, ImportError) as error:
        outcome, reason = "missing", str(error)
    except SolverError as error:
        outcome, reason = "wrong", str(error)
    except Exception as error:  # a defect of a method is a row, not the end of the run
        traceback.print_exc()
        outcome = "memory" if "bad_alloc" in str(error) else "error"
        reason = f"{type(error).__name__}: {error}"
    return {"outcome": outcome, "reason": reason, **_usage()}


def _usage() -> dict[str, object]:
    from benchmarks.harness.machine import most_memory

    used = resource.getrusage(resource.RUSAGE_SELF)
    # not the peak of getrusage on Linux: it counts the memory of the parent too
    peak = used.ru_maxrss / 2**20 if sys.platform == "darwin" else most_memory() / 1.048576
    return {"peak_mb": round(peak, 1), "cpu_seconds": round(used.ru_utime + used.ru_stime, 4)}


def solve_cell(cell: SolveCell) -> dict[str, object]:
    """Build the instance, put the question, run the method, and return the numbers of its row.

    The instance is built and the method's module imported before the clock starts. The first run is
    timed apart (it pays for what the method imports when it runs); a quick method is run again.
    """
    from benchmarks.harness.suites import problem_of
    from benchmarks.peers import find_method
    from placement.errors import InputError, UnsupportedError
    from placement.methods.options import Options
    from placement.methods.registry import run

    method = find_method(cell.method)
    instance = cell.world.build(cell.seed)
    try:
        problem = problem_of(cell, instance)
    except InputError as error:
        raise UnsupportedError(f"the question contradicts itself: {error}") from error
    _ = problem.rules, problem.demand
    options = Options(
        time_limit=cell.limits.time,
        seed=cell.seed,
        threads=cell.limits.threads,
        settings=dict(cell.settings),
    )
    before = calibrate()
    started = time.perf_counter()
    plan = run(method, problem, options)
    first = time.perf_counter() - started
    repeats, same = _again(method, problem, options, plan, cell.limits)
    return {
        "status": plan.status.value,
        "termination": plan.termination.value,
        "objective": _finite(plan.objective),
        "score": _finite(plan.score),
        "mean_latency_ms": _finite(plan.mean_latency),
        "bound": _finite(plan.bound),
        "seconds": sorted(repeats)[len(repeats) // 2] if repeats else first,
        "seconds_first": first,
        "seconds_again": repeats,
        "calibration_seconds": min(before, calibrate()),
        "same_again": same,
        "leader": plan.leader,
        "voters": list(plan.voters),
        "replicas": list(plan.replicas),
        "reasons": list(plan.reasons),
        "notes": list(plan.notes),
        "sites": len(problem.instance.sites),
        "clients": len(problem.instance.clients),
        "exact": method.exact,
    }


def _again(
    method: Method, problem: Problem, options: Options, plan: Plan, limits: CellLimits
) -> tuple[list[float], bool]:
    """Run a quick method again; return the seconds of each and whether the value was the same."""
    from placement.methods.registry import run

    seconds: list[float] = []
    same = True
    while (
        len(seconds) < limits.repeats
        and sum(seconds) < limits.again
        and plan.seconds < (limits.again / 2)
    ):
        started = time.perf_counter()
        other = run(method, problem, options)
        seconds.append(time.perf_counter() - started)
        same = same and other.objective == plan.objective
    return seconds, same


def calibrate() -> float:
    """Return the seconds of a fixed piece of work: sums, sorts and a loop, as methods do them.

    With it one can tell a slower machine from a slower reference method.
    """
    import numpy as np

    values = np.random.default_rng(0).random((200, 200))
    best = math.inf
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(5):
            order = np.argsort(values, axis=1)
            total = float((values @ values).sum()) + float(order.sum())
        for i in range(20_000):
            total += i % 7
        best = min(best, time.perf_counter() - started)
    return best


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


if __name__ == "__main__":
    sys.exit(main())

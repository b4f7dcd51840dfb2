"""Run cells, each in a separate process that is killed when it exceeds its limits."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import IO

from benchmarks.harness.cells import SolveCell
from benchmarks.harness.machine import ROOT

_TAIL = 2000
COMMAND = (sys.executable, "-m", "benchmarks.harness.cell_process")
"""Command of the process of one cell, which it reads from its standard input."""

Report = Callable[[SolveCell, dict[str, object], int], None]
"""Called after each cell: the cell, its row, how many are done."""


class Runner:
    """Runs cells, at most `jobs` at a time.

    Parameters
    ----------
    jobs
        Processes at once. More than one disturbs the timings; the head of the run records it.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self._children: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def run(self, cells: Sequence[SolveCell], report: Report) -> None:
        """Run every cell; `report` gets each row as it comes, in this thread.

        A KeyboardInterrupt ends the processes under way and is raised again; their cells have no
        row and are run by the next ``--resume``.
        """
        done = 0
        queue = list(reversed(cells))
        under_way: dict[Future[dict[str, object]], SolveCell] = {}
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                while queue or under_way:
                    while queue and len(under_way) < self.jobs:
                        cell = queue.pop()
                        under_way[pool.submit(self._one, cell)] = cell
                    finished, _ = wait(under_way, return_when=FIRST_COMPLETED)
                    for future in finished:
                        done += 1
                        report(under_way.pop(future), future.result(), done)
            except BaseException:
                self._stop()
                raise

    def _one(self, cell: SolveCell) -> dict[str, object]:
        return run_cell(cell, self._watch)

    def _watch(self, child: subprocess.Popen[bytes], running: bool) -> None:
        with self._lock:
            if not running:
                self._children.discard(child)
                return
            self._children.add(child)
            if self._stopped:
                _kill(child)

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            for child in self._children:
                _kill(child)


def run_cell(
    cell: SolveCell, watch: Callable[[subprocess.Popen[bytes], bool], None] | None = None
) -> dict[str, object]:
    """Run one cell in a separate process and return its row.

    Parameters
    ----------
    cell
        What to run.
    watch
        Told of the process when it starts (True) and when it has ended (False).

    Returns
    -------
    dict
        The row, JSON-ready. Its ``outcome`` is one of ``ok``; ``refused`` (the method says that it
        cannot take the question); ``missing`` (the method, a package or data is not there);
        ``timeout``; ``memory``; ``crashed`` (ended by a signal, or without a row); ``wrong`` (the
        evaluator refutes the method); ``error`` (any other exception). All but ``ok`` carry a
        ``reason``.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = _start(cell, out, err)
        if watch is not None:
            watch(child, True)
        try:
            ended = _feed_and_wait(child, cell)
        finally:
            _kill(child)  # and with it whatever it has started
            child.wait()
            if child.stdin is not None:
                with contextlib.suppress(BrokenPipeError):  # unread input is still buffered
                    child.stdin.close()
            if watch is not None:
                watch(child, False)
        wall = time.perf_counter() - started
        text, noise = _read(out), _read(err)
    row: dict[str, object] = {
        "key": cell.key,
        "label": cell.label,
        "group": cell.group,
        "cell": cell.to_json(),
        "wall_seconds": round(wall, 4),
    }
    return row | _outcome(cell, child.returncode, ended, text, noise)


def _start(cell: SolveCell, out: IO[bytes], err: IO[bytes]) -> subprocess.Popen[bytes]:
    threads = str(cell.limits.threads)
    environment = os.environ | {
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "PYTHONHASHSEED": "0",
    }
    return subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=err,
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )


def _feed_and_wait(child: subprocess.Popen[bytes], cell: SolveCell) -> bool:
    """Give the child its cell and wait; False when it had to be killed at the wall-clock limit."""
    if child.stdin is not None:
        try:
            child.stdin.write(json.dumps(cell.to_json()).encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:  # it died at once: its exit code says how
            pass
    try:
        child.wait(timeout=cell.limits.wall)
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the process and its whole session."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:  # only zombies are left of the group, on some systems
        child.kill()


def _read(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="backslashreplace")


def _outcome(cell: SolveCell, code: int, ended: bool, text: str, noise: str) -> dict[str, object]:
    if not ended:
        return {
            "outcome": "timeout",
            "reason": f"killed after {cell.limits.wall:g} s of wall time",
            "stderr": noise[-_TAIL:],
        }
    lines = text.strip().splitlines()
    if code == 0 and lines:
        row: dict[str, object] = json.loads(lines[-1])
        if row["outcome"] in ("crashed", "error", "wrong"):
            row["stderr"] = noise[-_TAIL:]
        return row
    if code < 0:
        name = signal.Signals(-code).name
        if name == "SIGXCPU":
            return {"outcome": "timeout", "reason": "used up its processor time"}
        return {
            "outcome": "crashed",
            "reason": f"ended by signal {name}",
            "stderr": noise[-_TAIL:],
        }
    if "MemoryError" in noise or "bad_alloc" in noise:
        return {"outcome": "memory", "reason": f"needs more than {cell.limits.memory} MiB"}
    last = next((line for line in reversed(noise.splitlines()) if line.strip()), "")
    return {
        "outcome": "crashed",
        "reason": f"ended with code {code} and no row" + (f": {last}" if last else ""),
        "stderr": noise[-_TAIL:],
    }

"""Run cells, each in a separate process that is killed when it exceeds its limits."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import IO

from benchmarks.harness.cells import SolveCell
from benchmarks.harness.machine import ROOT

_TAIL = 2000
COMMAND = (sys.executable, "-m", "benchmarks.harness.cell_process")
"""Command of the process of one cell, which it reads from its standard input."""

_NEVER = threading.Event()


def run_cells(
    cells: Sequence[SolveCell], jobs: int = 1
) -> Generator[tuple[SolveCell, dict[str, object]], None, None]:
    """Yield every cell with its row, as it comes.

    When the iterator is closed, the processes under way are ended; their cells have no row.

    Parameters
    ----------
    cells
        What to run.
    jobs
        Processes at once. More than one disturbs the timings; the head of the run records it.
    """
    stopped, queue = threading.Event(), iter(cells)
    under_way: dict[Future[dict[str, object]], SolveCell] = {}
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while True:
                for cell in itertools.islice(queue, jobs - len(under_way)):
                    under_way[pool.submit(run_cell, cell, stopped)] = cell
                if not under_way:
                    return
                future = next(as_completed(under_way))
                yield under_way.pop(future), future.result()
        finally:
            stopped.set()


def run_cell(cell: SolveCell, stopped: threading.Event = _NEVER) -> dict[str, object]:
    """Run one cell in a separate process and return its row.

    Parameters
    ----------
    cell
        What to run.
    stopped
        Set when the process shall end.

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
        try:
            ended = _feed_and_wait(child, cell, stopped)
        finally:
            _kill(child)  # and with it whatever it has started
            child.wait()
            if child.stdin is not None:
                with contextlib.suppress(BrokenPipeError):  # unread input is still buffered
                    child.stdin.close()
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


def _feed_and_wait(
    child: subprocess.Popen[bytes], cell: SolveCell, stopped: threading.Event
) -> bool:
    """Give the child its cell and wait; False when it has to be killed, as its time is over."""
    if child.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # it died at once: its exit code says how
            child.stdin.write(json.dumps(cell.to_json()).encode() + b"\n")
            child.stdin.flush()
    end = time.monotonic() + cell.limits.wall
    while child.poll() is None:
        if time.monotonic() > end or stopped.wait(0.02):
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

"""Run a suite: its cells in separate processes, a row per cell in a file of results."""

from __future__ import annotations

import argparse
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
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from benchmarks.harness.machine import ROOT, SOLVERS
from benchmarks.harness.result_rows import (
    FORMAT,
    VERSION,
    contradictions,
    page_text,
    read_results,
    report_text,
)
from benchmarks.harness.results import RESULTS, Row, save_text
from benchmarks.harness.study import FOUND, WORSE, Study
from benchmarks.harness.suites import SolveCell, Suite
from placement.errors import InputError
from placement.io.formats.files import check_file

_TAIL = 2000
COMMAND = (sys.executable, "-m", "benchmarks.harness.cell_process")
"""Command of the process of one cell, which it reads from its standard input."""

_NEVER = threading.Event()


def run_cells(
    cells: Sequence[SolveCell], jobs: int = 1
) -> Generator[tuple[SolveCell, dict[str, object]], None, None]:
    """Yield every cell with its row, as it comes, from so many processes at once.

    When the iterator is closed, the processes under way are ended; their cells have no row. More
    than one process disturbs the timings; the head of the run records it.
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
    """Run one cell in a separate process, which ends once `stopped` is set; return its row.

    Its ``outcome`` is one of ``ok``; ``refused`` (the method says that it cannot take the
    question); ``missing`` (the method, a package or data is not there); ``timeout``; ``memory``;
    ``crashed`` (ended by a signal, or without a row); ``wrong`` (the evaluator refutes the method);
    ``error`` (any other exception). All but ``ok`` carry a ``reason``.
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
        return {"outcome": "crashed", "reason": f"ended by signal {name}", "stderr": noise[-_TAIL:]}
    if "MemoryError" in noise or "bad_alloc" in noise:
        return {"outcome": "memory", "reason": f"needs more than {cell.limits.memory} MiB"}
    last = next((line for line in reversed(noise.splitlines()) if line.strip()), "")
    return {
        "outcome": "crashed",
        "reason": f"ended with code {code} and no row" + (f": {last}" if last else ""),
        "stderr": noise[-_TAIL:],
    }


# --- suites as studies ----------------------------------------------------------------------------


class SuiteStudy(Study):
    """Study of one part, the cells of a suite, whose file has rows of several runs."""

    def file_in(self, folder: Path) -> Path:
        """Return the file of results in a folder."""
        return folder / f"{self.name}.jsonl"

    def rows_in(self, folder: Path) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the file of results in a folder."""
        path = self.file_in(folder)
        return read_results(path).rows if path.exists() else ()

    def run(self, options: argparse.Namespace) -> int:
        """Run cells, print the tables; a defect (wrong, crashed, error, contradiction) gives 2."""
        if options.jobs < 1:
            raise InputError("out of range", field="--jobs", value=options.jobs, expected=">= 1")
        path = self.file_in(options.results)
        if path.exists():
            check_file(path, force=True, regular=True)
        options.force = options.force and not options.resume  # the rows that it keeps stay there
        if not options.force:
            self.rows_in(options.results)  # refuses what holds no results
        super().run(options)
        results = read_results(path)
        print(f"{report_text(results)}\n\n{path}")
        defects = [row for row in results.rows if row["outcome"] in ("wrong", "crashed", "error")]
        return WORSE if defects or contradictions(results.rows) else FOUND

    def _keep(
        self, part: str, rows: Sequence[Mapping[str, Any]], run: Row, folder: Path, began: float
    ) -> None:
        """Add the last row, before the first one of a run what is known of the run."""
        path, lines = self.file_in(folder), [{"kind": "row", **rows[-1], "run": run.get("id")}]
        again = run["force"] and "id" not in run
        old = path.read_bytes() if path.exists() and not again else b""
        if "id" not in run:
            run["id"] = lines[0]["run"] = 1 + old.count(b'{"kind": "run"')
            lines.insert(0, {"kind": "run", "format": FORMAT, "version": VERSION, **run})
        each = (json.dumps(line, ensure_ascii=False, allow_nan=False) for line in lines)
        save_text(path, old.decode() + "".join(f"{line}\n" for line in each))


def suite_study(suite: Suite) -> SuiteStudy:
    """Return a suite as a study; ``--force`` begins a file again."""

    def rows(options: argparse.Namespace) -> Iterator[Row]:
        """Run the cells without a row; with ``--retry`` also the cells without an answer."""
        cells = _chosen(suite, options.only, options.method)
        todo = [
            cell
            for cell in cells
            if (kept := options.kept.get((cell.key,))) is None
            or (options.retry and kept["outcome"] not in ("ok", "refused"))
        ]
        print(f"{len(cells) - len(todo)} of {len(cells)} cells are done", file=sys.stderr)
        with contextlib.closing(run_cells(todo, options.jobs)) as found:
            yield from (row for _, row in found)

    def report() -> dict[str, str]:
        paths = sorted(RESULTS.glob(f"{suite.name}*.jsonl"))
        return {path.name: page_text(read_results(path)) for path in paths}

    return SuiteStudy(
        suite.name,
        {suite.name: rows},
        {"only": (), "method": (), "jobs": 1, "retry": False, "force": False},
        packages=(*SOLVERS, "pandas", "quoracle", "spopt", "pbp-pmedian", "PuLP"),
        key=("key",),
        about=False,
        facts=lambda _part: {
            "suite": suite.name,
            "reference": suite.reference,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        description=suite.purpose,
        page="docs/benchmarks.md" if suite.on_page else "",
        report=report if suite.on_page else None,
    )


def _chosen(suite: Suite, only: Sequence[str], methods: Sequence[str]) -> tuple[SolveCell, ...]:
    known = {cell.method for cell in suite.cells()}
    for method in methods:
        if method not in known:
            raise InputError(
                "not a method of this suite",
                field="--method",
                value=method,
                expected="one of " + ", ".join(sorted(known)),
            )
    chosen = tuple(
        cell
        for cell in suite.cells()
        if all(text in cell.label for text in only) and (not methods or cell.method in methods)
    )
    if not chosen:
        raise InputError("no cell is left", field="--only", value=list(only))
    return chosen

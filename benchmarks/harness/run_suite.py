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
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from benchmarks.harness.cells import SolveCell
from benchmarks.harness.machine import ROOT, SOLVERS, describe, sentence
from benchmarks.harness.result_files import RESULTS
from benchmarks.harness.result_rows import (
    ResultsFile,
    contradictions,
    page_text,
    read_results,
    report_text,
)
from benchmarks.harness.study import FOUND, INTERRUPTED, WORSE, Study
from benchmarks.harness.suites import Suite
from benchmarks.peers import CAPTIONS
from placement.errors import InputError
from placement.text import escape

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


# --- cells, each in a separate process that is killed when it exceeds its limits ----------------


@dataclass(frozen=True, kw_only=True)
class SuiteStudy(Study):
    """Study that runs the cells of a suite."""

    suite: Suite

    @property
    def results(self) -> Sequence[str]:
        """The file that a run writes."""
        return (f"{self.suite.name}.jsonl",)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of a run of a suite."""
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            help="file of results (default benchmarks/results/SUITE.jsonl)",
        )
        parser.add_argument(
            "--resume",
            action="store_true",
            help="keep the rows that are there, run the missing cells",
        )
        parser.add_argument(
            "--retry",
            action="store_true",
            help="with --resume: run the missing, killed, crashed and wrong cells again",
        )
        parser.add_argument("--force", action="store_true", help="replace an existing file")
        parser.add_argument("--jobs", type=int, default=1, help="processes at once (default 1)")
        parser.add_argument(
            "--only",
            action="append",
            default=[],
            metavar="TEXT",
            help="only cells whose label contains TEXT; may be repeated, all must match",
        )
        parser.add_argument("--method", action="append", default=[], help="only these methods")

    def run(self, options: argparse.Namespace) -> int:
        """Run the cells that have no row yet, print the tables, and return the exit code.

        InputError for a choice without cells, or a file that shall be neither continued nor
        replaced.
        """
        suite, args = self.suite, options
        if args.jobs < 1:
            raise InputError("out of range", field="--jobs", value=args.jobs, expected=">= 1")
        cells = _chosen(suite, args.only, args.method)
        path: Path = args.output if args.output is not None else RESULTS / f"{suite.name}.jsonl"
        if path.exists() and path.stat().st_size and not (args.resume or args.force):
            raise InputError(
                "exists already",
                source=str(path),
                expected="--resume to go on, --force to replace it",
            )
        with ResultsFile(path, fresh=args.force and not args.resume) as file:
            done = file.answered if args.retry else file.keys
            todo = [cell for cell in cells if cell.key not in done]
            if len(todo) < len(cells):
                print(f"{len(cells) - len(todo)} of {len(cells)} cells are done", file=sys.stderr)
            machine = describe((*SOLVERS, "pandas", "quoracle", "spopt", "pbp-pmedian", "PuLP"))
            print(sentence(machine), file=sys.stderr)
            if todo:
                run = file.start(
                    {
                        "suite": suite.name,
                        "purpose": suite.purpose,
                        "reference": suite.reference,
                        "started": datetime.now(UTC).isoformat(timespec="seconds"),
                        "machine": machine,
                        "jobs": args.jobs,
                        "cells": len(cells),
                        "captions": _captions(todo),
                        "seeds": sorted({c.seed for c in cells}),
                    }
                )

                try:
                    with contextlib.closing(run_cells(todo, args.jobs)) as rows:
                        for number, (cell, row) in enumerate(rows, 1):
                            file.add({"run": run, **row})
                            said = f"{number}/{len(todo)} {row['outcome']} {escape(cell.label)}"
                            print(said, file=sys.stderr, flush=True)
                except KeyboardInterrupt:
                    print("interrupted; go on with --resume", file=sys.stderr)
                    return INTERRUPTED
        return _summarise(path)


def suite_study(suite: Suite) -> SuiteStudy:
    """Return a suite as a study."""

    def report() -> dict[str, str]:
        paths = sorted(RESULTS.glob(f"{suite.name}*.jsonl"))
        return {path.name: page_text(read_results(path)) for path in paths}

    shown = suite.on_page
    return SuiteStudy(
        description=suite.purpose,
        page="docs/benchmarks.md" if shown else "",
        report=report if shown else None,
        suite=suite,
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


def _captions(cells: Sequence[SolveCell]) -> dict[str, str]:
    return {name: CAPTIONS[name] for name in sorted({c.method for c in cells}) if name in CAPTIONS}


def _summarise(path: Path) -> int:
    """Print the tables; a defect (wrong, crashed, error, contradiction) shows in the exit code."""
    results = read_results(path)
    print(report_text(results))
    print(f"\n{path}")
    defects = [row for row in results.rows if row["outcome"] in ("wrong", "crashed", "error")]
    return WORSE if defects or contradictions(results.rows) else FOUND

"""Run a suite: its cells in separate processes, a row per cell in a file of results."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.harness.cells import SolveCell
from benchmarks.harness.machine import SOLVERS, describe, sentence
from benchmarks.harness.result_files import RESULTS
from benchmarks.harness.result_rows import ResultsFile, contradictions, read_results
from benchmarks.harness.result_tables import page_text, report_text
from benchmarks.harness.runner import run_cells
from benchmarks.harness.study import FOUND, INTERRUPTED, WORSE, Study
from benchmarks.harness.suites import Suite
from benchmarks.peers import CAPTIONS
from placement.errors import InputError
from placement.text import escape


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

        Returns
        -------
        int
            0; 2 when a cell has a defect; 130 when the run was interrupted.

        Raises
        ------
        InputError
            For a number of processes below 1, a choice without cells, or a file that is there and
            shall be neither continued nor replaced.
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

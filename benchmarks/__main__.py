"""``python -m benchmarks``: list the suites, run one, report on and compare results."""

from __future__ import annotations

import argparse
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.cells import Cell, SolveCell
from benchmarks.harness.suites import SUITES, Suite
from placement.cli.broken_pipe import until_the_reader_leaves
from placement.errors import InputError, PlacementError

__all__ = ["main"]

RESULTS = Path(__file__).resolve().parent / "results"

FOUND, BAD, WORSE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: done; bad input, or a file that cannot be written; `diff` found something worse,
`run` a defect; interrupted. 141 as in `placement`: the reader of the output went away."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    try:
        return until_the_reader_leaves(lambda: _verb(argv))
    except KeyboardInterrupt:
        print("interrupted; go on with --resume", file=sys.stderr)
        return INTERRUPTED
    except PlacementError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD
    except OSError as error:  # a full disk, a folder that takes no files
        if error.strerror is None:
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"error: {where}{error.strerror}", file=sys.stderr)
        return BAD


def _verb(argv: Sequence[str] | None) -> int:
    args = _parser().parse_args(argv)
    code: int = args.run(args)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, allow_abbrev=False
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    verb = verbs.add_parser("list", help="list the suites, or the cells of one")
    verb.add_argument("suite", nargs="?", choices=sorted(SUITES))
    verb.set_defaults(run=_list)

    verb = verbs.add_parser("run", help="run a suite")
    verb.add_argument("suite", choices=sorted(SUITES))
    verb.add_argument(
        "-o", "--output", type=Path, help="file of results (default benchmarks/results/SUITE.jsonl)"
    )
    verb.add_argument(
        "--resume", action="store_true", help="keep the rows that are there, run the missing cells"
    )
    verb.add_argument(
        "--retry",
        action="store_true",
        help="with --resume: run again what was missing, killed, crashed or wrong",
    )
    verb.add_argument("--force", action="store_true", help="replace an existing file")
    verb.add_argument("--jobs", type=int, default=1, help="processes at once (default 1)")
    verb.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only cells whose label contains TEXT; may be repeated, all must match",
    )
    verb.add_argument("--method", action="append", default=[], help="only these methods")
    verb.set_defaults(run=_run)

    verb = verbs.add_parser("report", help="tables of gap and time from a file of results")
    verb.add_argument("results", type=Path)
    verb.add_argument("--markdown", action="store_true", help="as Markdown")
    verb.set_defaults(run=_report)

    verb = verbs.add_parser(
        "diff",
        help="what got slower or worse between two files of results",
        description="Compares two files of results; exit code 2 when something got worse. Times "
        "are compared as ratios to the reference method on the same question in the same run.",
    )
    verb.add_argument("before", type=Path)
    verb.add_argument("after", type=Path)
    verb.add_argument("--reference", help="method that is the unit of time (default: the suite's)")
    verb.add_argument(
        "--threshold",
        type=float,
        default=1.25,
        metavar="X",
        help="factor below which a change of time is called noise (default 1.25)",
    )
    verb.set_defaults(run=_diff)
    return parser


def _list(args: argparse.Namespace) -> int:
    if args.suite is not None:
        for cell in SUITES[args.suite].cells():
            print(cell.label)
        return FOUND
    for suite in SUITES.values():
        print(f"{suite.name:8s}{len(suite.cells()):5d} cells  {suite.purpose}")
    return FOUND


def _chosen(suite: Suite, only: Sequence[str], methods: Sequence[str]) -> tuple[Cell, ...]:
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


def _run(args: argparse.Namespace) -> int:
    from benchmarks.harness.machine import describe, sentence
    from benchmarks.harness.progress import RunProgress
    from benchmarks.harness.result_rows import ResultsFile
    from benchmarks.harness.runner import Runner

    suite = SUITES[args.suite]
    if args.jobs < 1:
        raise InputError("out of range", field="--jobs", value=args.jobs, expected=">= 1")
    cells = _chosen(suite, args.only, args.method)
    path: Path = args.output if args.output is not None else RESULTS / f"{suite.name}.jsonl"
    if path.exists() and path.stat().st_size and not (args.resume or args.force):
        raise InputError(
            "exists already", source=str(path), expected="--resume to go on, --force to replace it"
        )
    with ResultsFile(path, fresh=args.force and not args.resume) as file:
        if file.earlier.dropped:
            print(f"dropped a torn last line of {file.earlier.dropped} bytes", file=sys.stderr)
        done = file.answered if args.retry else file.keys
        todo = [cell for cell in cells if cell.key not in done]
        if len(todo) < len(cells):
            print(f"{len(cells) - len(todo)} of {len(cells)} cells are done", file=sys.stderr)
        machine = describe(
            ("numpy", "pandas", "highspy", "ortools", "pyomo", "quoracle", "spopt", "pbp-pmedian",
             "PuLP")
        )  # fmt: skip
        print(sentence(machine), file=sys.stderr)
        if todo:
            run = file.start(
                {
                    "suite": suite.name,
                    "purpose": suite.purpose,
                    "reference": suite.reference,
                    "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                    "machine": machine,
                    "jobs": args.jobs,
                    "cells": len(cells),
                    "captions": _captions(todo),
                    "seeds": sorted({c.seed for c in cells if isinstance(c, SolveCell)}),
                }
            )
            progress = RunProgress(sys.stderr, todo, args.jobs)

            def report(cell: Cell, row: dict[str, object], number: int) -> None:
                file.add({"run": run, **row})
                progress(cell, row, number)

            try:
                Runner(args.jobs).run(todo, report)
            finally:
                progress.close()
    return _summarise(path)


def _captions(cells: Sequence[Cell]) -> dict[str, str]:
    from benchmarks.peers import CAPTIONS

    return {name: CAPTIONS[name] for name in sorted({c.method for c in cells}) if name in CAPTIONS}


def _summarise(path: Path) -> int:
    """Print the tables; a defect (wrong, crashed, error, contradiction) shows in the exit code."""
    from benchmarks.harness.result_tables import report_text
    from placement.report.result_file import contradictions, read_results

    results = read_results(path)
    print(report_text(results))
    print(f"\n{path}")
    defects = [row for row in results.rows if row["outcome"] in ("wrong", "crashed", "error")]
    return WORSE if defects or contradictions(results.rows) else FOUND


def _report(args: argparse.Namespace) -> int:
    from benchmarks.harness.result_tables import report_text
    from placement.report.result_file import read_results

    print(report_text(read_results(args.results), markdown=args.markdown))
    return FOUND


def _diff(args: argparse.Namespace) -> int:
    from benchmarks.harness.compare_runs import compare, diff_text
    from placement.report.result_file import read_results

    if not args.threshold > 1:
        raise InputError(
            "out of range", field="--threshold", value=args.threshold, expected="a factor > 1"
        )
    difference = compare(
        read_results(args.before),
        read_results(args.after),
        reference=args.reference,
        threshold=args.threshold,
    )
    print(diff_text(difference))
    return WORSE if difference.worse else FOUND


if __name__ == "__main__":
    sys.exit(main())

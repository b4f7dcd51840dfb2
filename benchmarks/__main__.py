"""``python -m benchmarks``: list suites and studies, run one, report on and compare results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.study import (
    BAD,
    FOUND,
    INTERRUPTED,
    MODULES,
    WORSE,
    Study,
    load_study,
    summary,
)
from benchmarks.harness.suites import SUITES
from placement.cli.dispatch import ignore_broken_pipe
from placement.errors import InputError, PlacementError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        return ignore_broken_pipe(lambda: _verb(words))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
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


def _verb(words: Sequence[str]) -> int:
    args = _parser(words).parse_args(words)
    code: int = args.run(args)
    return code


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only the study that the words name is imported and adds its options."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, allow_abbrev=False
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    verb = verbs.add_parser(
        "list", help="list suites and studies; the cells of a suite; what a study writes"
    )
    verb.add_argument("name", nargs="?", metavar="NAME", choices=sorted([*SUITES, *MODULES]))
    verb.set_defaults(run=_list)

    verb = verbs.add_parser("run", help="run a suite or a study", allow_abbrev=False)
    names = verb.add_subparsers(dest="name", metavar="NAME", required=True)
    for name in (*SUITES, *MODULES):
        if list(words[:2]) != ["run", name]:
            purpose = SUITES[name].purpose if name in SUITES else summary(name)
            names.add_parser(name, help=purpose.replace("%", "%%"))
            continue
        study = _study(name)
        options = names.add_parser(
            name,
            description=study.description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        study.add_options(options)
        options.set_defaults(run=study.run_or_report)

    verb = verbs.add_parser(
        "report",
        help="tables of gap and time of a suite; all rows of a CSV or JSON file of results",
    )
    verb.add_argument("results", type=Path)
    verb.add_argument("part", nargs="?", default="", help="table of a JSON file, such as fleets")
    verb.add_argument("--plot", type=Path, metavar="PNG", help="draw gap and time of a suite")
    verb.add_argument("--method", action="append", help="method to draw (default: all)")
    verb.add_argument("--only", action="append", default=[], help="draw rows whose label has this")
    verb.add_argument("--markdown", action="store_true", help="the tables of a suite as Markdown")
    verb.set_defaults(run=_report)

    verb = verbs.add_parser(
        "library",
        help="check the answers of the instance library, or improve them",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if words[:1] == ["library"]:
        from benchmarks.instances import library as command

        verb.description = command.__doc__
        command.add_arguments(verb)
        verb.set_defaults(run=command.run)

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


def _study(name: str) -> Study:
    """Return a study, or a suite as one."""
    if name not in SUITES:
        return load_study(name)
    from benchmarks.harness.run_suite import suite_study

    return suite_study(SUITES[name])


def _list(args: argparse.Namespace) -> int:
    if args.name in SUITES:
        for cell in SUITES[args.name].cells():
            print(cell.label)
    elif args.name is not None:
        study = load_study(args.name)
        print(summary(args.name))
        for path in (*(f"benchmarks/results/{name}" for name in study.results), study.page):
            print(path, end="\n" if path else "")
    else:
        print("suites")
        for suite in SUITES.values():
            print(f"{suite.name:10s}{len(suite.cells()):5d} cells  {suite.purpose}")
        print("\nstudies")
        for name in MODULES:
            print(f"{name:30s}{summary(name)}")
    return FOUND


def _report(args: argparse.Namespace) -> int:
    from benchmarks.harness.result_rows import page_text, read_results, report_text, rows_text

    if args.results.suffix in (".csv", ".json"):
        print(rows_text(args.results, args.part))
    elif args.plot is not None:
        from benchmarks.harness.pictures import method_panels, save_panels

        rows = [
            row
            for row in read_results(args.results).rows
            if row["cell"]["kind"] == "solve" and all(part in row["label"] for part in args.only)
        ]
        every = dict.fromkeys(row["cell"]["method"] for row in rows)
        save_panels(args.plot, method_panels(rows, args.method or [*every]))
    else:
        form = page_text if args.markdown else report_text
        print(form(read_results(args.results)))
    return FOUND


def _diff(args: argparse.Namespace) -> int:
    from benchmarks.harness.result_rows import compare, diff_text, read_results

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

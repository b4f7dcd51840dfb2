"""``placement report``: one HTML page from a plan or from a table."""

from __future__ import annotations

import argparse

from placement.cli import exit_codes as exits
from placement.cli.options import FORCE, WORK_LIMIT, Subparsers, Switch, add_verb
from placement.errors import refused


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "report", run)
    parser.add_argument("source", metavar="PLAN-OR-TABLE", help="a file of a plan or of a table")
    parser.add("",
        Switch("-o --output", "FILE", "the HTML file", required=True),
        FORCE,
        Switch("--today --from", "PLAN", "plan file of the present configuration: the page "
            "compares both bills"),
        Switch("--figures", "FOLDER", "folder for the figures of the page as pictures (PNG "
            "needs vl-convert)"),
        Switch("--format", "", "format of the figures (default png)",
            default="png", choices=("png", "svg")),
        WORK_LIMIT,
    )  # fmt: skip
    parser.needs(format="figures")
    parser.add_output(tables=False)


def run(args: argparse.Namespace) -> int:
    """Make one self-contained HTML page from a plan or from a table.

    The page has map, charts and tables, and fetches nothing. A plan is a file of solve or
    fleet; a table is the JSON of compare.
    """
    from placement.cli.output import show_result
    from placement.cli.problem_options import present_configuration
    from placement.io.formats.files import check_file
    from placement.plan import Plan
    from placement.report import save_figures, write_report
    from placement.report.page import load_source

    check_file(args.output, force=args.force)
    source, written, today = load_source(args.source, work=args.work), [], None
    if args.today is not None:
        if not isinstance(source, Plan) or source.bill is None:
            expected = "a plan for an instance with prices"
            raise refused("", "--from", "no bill", args.source, expected)
        today = present_configuration(source.problem.instance, args.today)
    if args.figures is not None:
        if not isinstance(source, Plan):
            words = "a comparison or sweep has no figures of its own"
            raise refused("", "--figures", words, args.source, "a plan")
        figures = save_figures(source, args.figures, format=args.format, force=args.force)
        written = [str(path) for path in figures]
    write_report(source, args.output, today=today, force=args.force)
    told = {"report": args.output, "figures": written}
    said = "\n".join(f"Written to {path}" for path in (args.output, *written))
    show_result(args, lambda: told, lambda: said)
    return exits.FOUND

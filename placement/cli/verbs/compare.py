"""``placement compare``: several methods on one question, side by side."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_types as types
from placement.cli.argument_parser import Subparsers
from placement.cli.loss_options import add_goals, add_losses, apply_losses
from placement.cli.options import (
    add_constraints,
    add_instance,
    add_limits,
    instance_from,
    limits_from,
    problem_from,
)
from placement.cli.percentile_options import add_percentile, apply_percentile
from placement.cli.progress_line import progress_of
from placement.cli.table_output import (
    add_table_output,
    cell,
    check_table_targets,
    exit_code_of,
    records,
    save_picture,
    show_table,
)
from placement.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "compare",
        help="run several methods and show gap, bound and seconds",
        description="Run several methods on one question. The gap of each is measured against the "
        "best bound that any of them proved; what a method refuses, and why, is a row too.",
    )
    add_instance(parser)
    add_constraints(parser)
    add_percentile(parser)
    add_goals(parser, "after losses (default: the mean with nothing lost)")
    add_losses(parser)
    group = parser.add_argument_group("methods")
    group.add_argument(
        "--methods",
        action="append",
        type=types.names,
        metavar="NAMES",
        help="separated by commas (default: all; placement methods lists them)",
    )
    add_limits(group)
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="METHOD.NAME=VALUE",
        help="a setting of one method",
    )
    add_table_output(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare, write, print."""
    from placement.analysis.compare_methods import compare

    check_table_targets(args)
    settings = _settings(args)
    problem = apply_percentile(problem_from(args, instance_from(args)), args)
    problem = apply_losses(problem, args)
    names = None
    if args.methods:
        names = [part.strip() for text in args.methods for part in text.split(",") if part.strip()]
    with progress_of(args, problem) as line:
        table = compare(
            problem,
            names,
            **limits_from(args),
            progress=None if line is None else lambda _, report: line(report),
            settings=settings,
        )
    document = {
        "problem": table.attrs["problem"],
        "operations": table.attrs["operations"],
        "best_bound": _finite(table.attrs["best_bound"]),
        "methods": records(table),
    }
    show_table(table, args, document=document, text=_text(table))
    if args.plot is not None:
        from placement.report.plots import plot_comparison

        save_picture(plot_comparison(table), args)
    return exit_code_of(table["status"], table["reason"].tolist())


def _settings(args: argparse.Namespace) -> dict[str, dict[str, object]]:
    settings: dict[str, dict[str, object]] = {}
    for text in args.set:
        name, equals, value = text.partition("=")
        method, dot, setting = name.strip().partition(".")
        if not equals or not dot or not method or not setting:
            raise InputError(
                "not a setting", field="--set", value=text, expected="METHOD.NAME=VALUE"
            )
        if setting in settings.setdefault(method, {}):
            raise InputError("set twice", field="--set", value=name.strip(), expected="once")
        settings[method][setting] = value
    return settings


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def _text(table: pd.DataFrame) -> str:
    from placement.text import escape, wrap
    from placement.text import table as text_table

    # With money in the objective a bound is on more than latency, and no mean; one on a percentile
    # is a latency already.
    tail = table.attrs["objective"] if table.attrs["kind"] == "percentile" else ""
    money = not tail and bool((table["objective"] > table["score"]).any())
    scale = 1.0 if money or tail else table.attrs["operations"]
    rows = []
    for row in table.to_dict("records"):
        gap = cell(100 * row["gap"], 2)
        rows.append(
            [
                str(row["method"]),
                str(row["status"]),
                *([cell(row["objective"], 1)] if tail else []),
                cell(row["mean_latency"], 3),
                gap if gap == "–" else f"{gap} %",
                cell(row["bound"] / scale, 3),
                cell(row["seconds"], 3),
                str(row["leader"] or "–"),
            ]
        )
    lines = [
        wrap(f"{escape(str(table.attrs['problem']))}"),
        "",
        text_table(
            [
                "method",
                "status",
                *([f"{tail.split()[0]} ms"] if tail else []),
                "mean ms",
                "gap",
                "bound, objective" if money else "bound ms",
                "seconds",
                "leader",
            ],
            rows,
        ),
        "",
        wrap("gap: to the best bound that any method proved; bound: the method's own"),
    ]
    lines += [
        wrap(f"{row['method']}: {escape(str(row['reason']))}", indent="  ")
        for row in table.to_dict("records")
        if row["reason"]
    ]
    return "\n".join(lines)

"""``placement compare``: several methods on one question, side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli.argument_parser import Subparsers
from placement.cli.option_groups.question_options import add_question, question_from
from placement.cli.options import add_limits, instance_from, limits_from
from placement.cli.progress_line import progress_of
from placement.cli.table_output import (
    add_table_output,
    cell,
    check_table_targets,
    exit_code_of,
    records,
    show_table,
)
from placement.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TIME_LIMIT", "add_parser", "run"]

TIME_LIMIT = 60.0
"""Seconds of each method by default: some prove a question in minutes that another does at once."""


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "compare",
        help="run several methods and show gap, bound and seconds",
        description="Run several methods on one question. The gap of each is measured against the "
        "best bound that any of them proved; a method that refuses the question has a row with "
        "the reason. With "
        "--protocols: one question under several commit protocols, each with its own best sites.",
    )
    add_question(parser)
    group = parser.add_argument_group("methods")
    group.add_argument(
        "--methods",
        action="append",
        type=types.names,
        metavar="NAMES",
        help="methods, separated by commas (default: all; placement methods lists them)",
    )
    group.add_argument(
        "--protocols",
        action="append",
        type=types.names,
        metavar="NAMES",
        help="compare commit protocols in place of methods, for example raft,leases,epaxos:multi=2 "
        "(placement protocols lists them)",
    )
    sites = group.add_mutually_exclusive_group()
    sites.add_argument(
        "--each-optimal",
        action="store_true",
        help="each protocol on its own best sites, and on the best sites of the first protocol "
        "(default)",
    )
    sites.add_argument(
        "--same-sites",
        action="store_true",
        help="all protocols on the best sites of the first protocol",
    )
    add_limits(group, each=("each method or protocol", TIME_LIMIT))
    group.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="METHOD.NAME=VALUE",
        help="setting of one method (placement methods NAME lists them)",
    )
    add_table_output(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare, write, print."""
    from placement.analysis.compare_methods import compare

    check_table_targets(args)
    if args.protocols is not None:
        return _run_protocols(args)
    for option in ("same_sites", "each_optimal"):
        if vars(args)[option]:
            raise InputError(
                "only protocols are compared on the same sites",
                field=f"--{option.replace('_', '-')}",
                expected="--protocols together with it",
            )
    settings = _settings(args)
    problem = question_from(args, instance_from(args))
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
    return exit_code_of(table["status"], table["reason"].tolist())


def _run_protocols(args: argparse.Namespace) -> int:
    """Compare protocols, write, print."""
    from placement.analysis.compare_methods import compare_protocols

    methods = [part for text in args.methods or () for part in text.split(",") if part.strip()]
    for option, given in (("--methods", methods[1:]), ("--set", args.set)):
        if given:
            raise InputError(
                "protocols are compared with one method as it is",
                field=option,
                value=given[0],
                expected=f"no {option}" if option == "--set" else "one method",
            )
    problem = question_from(args, instance_from(args))
    with progress_of(args, problem) as line:
        table = compare_protocols(
            problem,
            protocol_names(args.protocols),
            same_sites=args.same_sites,
            method=methods[0].strip() if methods else "exact",
            **limits_from(args),
            progress=None if line is None else lambda _, report: line(report),
        )
    document: dict[str, object] = {str(key): value for key, value in table.attrs.items()}
    document["protocols"] = records(table)
    show_table(table, args, document=document, text=_protocols_text(table))
    return exit_code_of(table["status"], table["reason"].tolist())


def protocol_names(given: Sequence[str]) -> list[str]:
    """Split lists of protocols at commas; a parameter stays with its protocol.

    Examples
    --------
    >>> protocol_names(["raft,atlas:f=1,slow=0.1", "pqr"])
    ['raft', 'atlas:f=1,slow=0.1', 'pqr']
    """
    found: list[str] = []
    for part in (part.strip() for text in given for part in text.split(",")):
        key, equals, _ = part.partition("=")
        if found and equals and ":" not in key:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    return found


def _protocols_text(table: pd.DataFrame) -> str:
    from placement.text import escape, wrap
    from placement.text import table as text_table

    rows = [
        [
            str(row["protocol"]),
            str(row["status"]),
            cell(row["mean_latency"], 3),
            cell(row["reads"], 3),
            cell(row["writes"], 3),
            *([] if table.attrs["same_sites"] else [cell(row["on_first"], 3)]),
            cell(row["seconds"], 3),
            "–" if not row["replicas"] else str(row["leader"] or "none"),
        ]
        for row in table.to_dict("records")
    ]
    first = table.attrs["first"]
    other = [] if table.attrs["same_sites"] else ["elsewhere"]
    lines = [
        wrap(escape(str(table.attrs["problem"]))),
        "",
        text_table(
            ["protocol", "status", "mean ms", "reads", "writes", *other, "seconds", "leader"], rows
        ),
        "",
    ]
    if first is not None and table.attrs["same_sites"]:
        lines.append(wrap(f"all on the replicas that are best under {escape(str(first))}"))
    elif first is not None:
        lines.append(
            wrap(f"elsewhere: mean ms on the replicas that are best under {escape(str(first))}")
        )
    lines += [
        wrap(f"{escape(str(row['protocol']))}: {escape(str(row['reason']))}", indent="  ")
        for row in table.to_dict("records")
        if row["reason"]
    ]
    return "\n".join(lines)


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
    # or another measure is in its unit already.
    own = table.attrs["kind"] in ("percentile", "measures")
    tail = str(table.attrs["minimised"]) if own else ""
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
                cell(row["leader"] or None),
            ]
        )
    lines = [
        wrap(f"{escape(str(table.attrs['problem']))}"),
        "",
        text_table(
            [
                "method",
                "status",
                *([tail] if tail else []),
                "mean ms",
                "gap",
                "bound, objective" if money else f"bound {tail.split()[-1] if tail else 'ms'}",
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

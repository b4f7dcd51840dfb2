"""``placement sweep``: what one more replica brings, and what money buys."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli.argument_parser import Subparsers
from placement.cli.option_groups.question_options import add_sizes_question, question_of_sizes
from placement.cli.options import instance_from, limits_from, settings_from
from placement.cli.progress_line import progress_of
from placement.cli.table_output import (
    cell,
    check_table_targets,
    exit_code_of,
    records,
    show_table,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "sweep",
        help="solve for many numbers of replicas and voters",
        description="Solve for every number of replicas and voters, as in --replicas 3..9 "
        "--voters 1,3,5, and show the gain of one more replica; with --pareto, the least latency "
        "for every cost.",
    )
    group = add_sizes_question(parser)
    group.add_argument(
        "--pareto",
        action="store_true",
        help="show the plans that no other plan beats in both latency and cost, as pareto does",
    )
    parser.set_defaults(run=run, of=None)


def run(args: argparse.Namespace) -> int:
    """Sweep, write, print."""
    if args.pareto:
        from placement.cli.verbs.pareto import run as run_pareto

        return run_pareto(args)
    from placement.analysis.sweep import sweep

    check_table_targets(args)
    problem, sizes, voters = question_of_sizes(args, instance_from(args))
    with progress_of(args, problem) as line:
        table = sweep(
            problem,
            replicas=sizes,
            voters=voters,
            method=args.method,
            **limits_from(args),
            progress=None if line is None else lambda _size, _voters, report: line(report),
            settings=settings_from(args),
        )
    document: dict[str, object] = {
        "objective": table.attrs["objective"],
        "method": args.method,
        "cells": records(table),
    }
    show_table(table, args, document=document, text=_sweep_text(table))
    return exit_code_of(table["status"])


def _sweep_text(table: pd.DataFrame) -> str:
    from placement.text import escape, wrap
    from placement.text import table as text_table

    priced = bool(table["cost"].notna().any())
    objective = str(table.attrs["objective"])
    rows = []
    for row in table.to_dict("records"):
        line = [
            str(row["replicas"]),
            cell(row["voters"]),
            str(row["status"]),
            cell(row["mean_latency"], 3),
            *([cell(row["value"], 3)] if objective else []),
            cell(row["gain"], 3),
            cell(row["gain_percent"], 1),
            cell(100 * row["gap"], 2),
            cell(row["seconds"], 2),
        ]
        rows.append([*line, cell(row["cost"], 2), cell(row["leader"] or None)])
        if not priced:
            del rows[-1][-2]
    head = ["replicas", "voters", "status", "mean ms", *(["value ms"] if objective else [])]
    head += ["gain ms", "gain %", "gap %", "seconds", *(["cost"] if priced else []), "leader"]
    saved = "value" if objective else "latency"
    lines = [
        text_table(head, rows),
        "",
        *([wrap(f"value: {escape(objective)}, which is minimised")] if objective else []),
        wrap(f"gain: {saved} saved by the last replica, against one fewer and as many voters"),
    ]
    lines += [
        wrap(f"{row['replicas']}/{cell(row['voters'])}: {escape(str(row['reason']))}", indent="  ")
        for row in table.to_dict("records")
        if row["reason"]
    ]
    return "\n".join(lines)

"""``placement sweep``: what one more replica brings, and what money buys."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placement.cli import argument_types as types
from placement.cli.argument_parser import Subparsers
from placement.cli.loss_options import add_goals, add_losses, apply_losses
from placement.cli.options import (
    add_constraints,
    add_instance,
    add_method,
    instance_from,
    limits_from,
    names,
    problem_from,
    settings_from,
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

    from placement.model.instance import Instance
    from placement.problem import Problem

__all__ = ["add_parser", "add_question", "counts", "question_of_sizes", "run"]

_COUNTS = re.compile(r"\s*(\d+)\s*(?:\.\.\s*(\d+)\s*)?")


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "sweep",
        help="solve for many numbers of replicas and voters",
        description="Solve for every number of replicas and voters, as in --replicas 3..9 "
        "--voters 1,3,5, and show what one more replica brings; with --pareto, the least latency "
        "for every cost.",
    )
    group = add_question(parser)
    group.add_argument(
        "--pareto",
        action="store_true",
        help="the plans that no other beats in both latency and cost, as placement pareto",
    )
    parser.set_defaults(run=run)


def add_question(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what sweep and pareto ask alike; return the group of options about the frontier."""
    add_instance(parser)
    add_constraints(parser)
    add_percentile(parser)
    add_goals(parser, "after losses (default: the mean with nothing lost)")
    add_losses(parser)
    add_method(parser)
    group = parser.add_argument_group("frontier")
    group.add_argument(
        "--points",
        type=types.whole(1),
        metavar="N",
        help="most solves of the frontier per number of voters (default: all)",
    )
    add_table_output(parser)
    return group


def counts(values: Sequence[str]) -> tuple[int, ...] | None:
    """Read ``3``, ``3..7`` and ``1,3,5``, repeated or mixed; None when something is no number.

    Examples
    --------
    >>> counts(["3..5,8"]), counts(["1", "3"]), counts(["fra"])
    ((3, 4, 5, 8), (1, 3), None)
    """
    found: set[int] = set()
    for part in (part for value in values for part in value.split(",")):
        match = _COUNTS.fullmatch(part)
        if match is None:
            return None
        low, high = (
            types.read_whole(end, "--replicas, --voters", 0, types.LARGEST_SIZE)
            for end in (match[1], match[2] or match[1])
        )
        found.update(range(low, high + 1))
    return tuple(sorted(found))


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
    if args.plot is not None:
        from placement.report.plots import plot_sweep

        save_picture(plot_sweep(table), args)
    return exit_code_of(table["status"])


def question_of_sizes(
    args: argparse.Namespace, instance: Instance
) -> tuple[Problem, tuple[int, ...], tuple[int, ...] | None]:
    """Read the numbers, and build the question of the largest cell, which the others vary."""
    sizes = counts(args.replicas)
    if not sizes:
        raise InputError(
            "no numbers of replicas",
            field="--replicas",
            value=",".join(args.replicas),
            expected="numbers: 5, 3..9, or 3,5,7",
        )
    voters = counts(args.voters)
    if voters is not None:
        fitting = [count for count in voters if count <= sizes[-1]]
        if not fitting:
            raise InputError(
                "no number of voters fits into any number of replicas",
                field="--voters",
                value=",".join(args.voters),
                expected=f"<= {sizes[-1]}",
            )
        asked = [str(fitting[-1])]
    else:
        asked = list(names(args.voters, instance.sites))
    largest = min(sizes[-1], len(instance.sites))
    base = argparse.Namespace(**{**vars(args), "replicas": [str(largest)], "voters": asked})
    return apply_losses(apply_percentile(problem_from(base, instance), args), args), sizes, voters


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
        rows.append([*line, cell(row["cost"], 2), str(row["leader"] or "–")])
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

"""``placement pareto``: the whole trade-off between latency and cost."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
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
from placement.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from placement.problem import Problem

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "pareto",
        help="find the plans that no other plan beats in both latency and cost",
        description="Find every plan that no other plan beats in both latency and cost, "
        "among numbers of replicas such as --replicas 3..7, and name the changes between them. "
        "Needs prices, of the instance or by --prices.",
    )
    add_sizes_question(parser)
    parser.add_argument(
        "--of",
        nargs=2,
        type=types.text,
        metavar="MEASURE",
        help="two measures in place of the mean latency and the cost, such as cost 'p99(writes)'",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Find the frontier, write, print."""
    from placement.analysis.pareto_frontier import pareto

    check_table_targets(args)
    problem, sizes, voters = question_of_sizes(args, instance_from(args))
    if args.of is not None:
        return _of_measures(problem, sizes, voters, args)
    with progress_of(args, problem) as line:
        table = pareto(
            problem,
            replicas=sizes,
            voters=voters,
            method=args.method,
            points=args.points,
            **limits_from(args),
            progress=None if line is None else lambda _, report: line(report),
            settings=settings_from(args),
        )
    attrs = {str(name): value for name, value in table.attrs.items()}
    document = {
        "question": _question(problem, table),
        **attrs,
        "method": args.method,
        "points": records(table),
    }
    show_table(table, args, document=document, text=_pareto_text(table))
    if table.empty:
        return exit_code_of(["infeasible" if table.attrs["complete"] else "unknown"])
    return exit_code_of(table["status"])


def _of_measures(
    problem: Problem, sizes: Sequence[int], voters: Sequence[int] | None, args: argparse.Namespace
) -> int:
    """Find the front of two measures for a range of replicas, write, print."""
    import pandas as pd

    from placement.measures import read_measure
    from placement.measures.limits import measure_front
    from placement.measures.question import value_of_plan
    from placement.methods.options import Options
    from placement.problem import describe
    from placement.text import table as text_table

    one, other = (read_measure(text) for text in args.of)
    if voters is not None and len(voters) > 1:
        raise InputError(
            "one number of voters goes with --of", field="--voters", value=voters, expected="one"
        )
    if args.plot is not None:
        raise InputError("does not go with --of", field="--plot", value=args.plot, expected="none")
    problem = problem.replace(replicas=(min(sizes), max(sizes)))
    options = Options(**limits_from(args), settings=settings_from(args))
    front, complete = measure_front(
        problem, one, other, args.method, points=args.points, options=options
    )
    heads = [str(one), str(other)]
    found = pd.DataFrame(
        [
            {
                heads[0]: value_of_plan(plan, one),
                heads[1]: value_of_plan(plan, other),
                "mean_latency": plan.mean_latency,
                "status": plan.status.value,
                "leader": plan.leader,
                "voter_sites": plan.voters,
                "replica_sites": plan.replicas,
            }
            for plan in front
        ]
    )
    rows = [
        [
            *(f"{row[head]:,.3f}" for head in (*heads, "mean_latency")),
            str(row["leader"]),
            ", ".join(row["replica_sites"]),
        ]
        for row in found.to_dict("records")
    ]
    sure = "Every point is proven, and none is missing." if complete else "Not complete."
    text = text_table([*heads, "mean ms", "leader", "replicas"], rows, right=(0, 1, 2))
    document = {
        "question": f"{one} against {other} for {describe(problem)}; on {problem.instance.name}",
        "complete": complete,
        "method": args.method,
        "points": records(found),
    }
    show_table(found, args, document=document, text=f"{text}\n\n{sure}")
    if not front:
        return exit_code_of(["infeasible" if complete else "unknown"])
    return exit_code_of(found["status"])


def _question(problem: Problem, table: pd.DataFrame) -> str:
    """Return the question in words, with the currency and the source of the prices."""
    from placement.problem import describe

    said = describe(problem.replace(cost_weight=0.0, budget=None))
    parts = [f"latency against cost for {said} or fewer; on {problem.instance.name}"]
    parts.append(f"cost in {table.attrs['currency']} per month")
    if table.attrs["prices"]:
        parts.append(f"prices: {table.attrs['prices']}")
    return "; ".join(parts)


def _pareto_text(table: pd.DataFrame) -> str:
    from placement.text import escape, wrap
    from placement.text import table as text_table

    objective = str(table.attrs["objective"])
    points = table.to_dict("records")
    rows = [
        [
            str(number),
            cell(float(row["cost"]), 2),
            cell(row["mean_latency"], 3),
            *([cell(row["value"], 3)] if objective else []),
            str(row["status"]),
            str(row["replicas"]),
            str(row["voters"]),
            str(row["leader"]),
        ]
        for number, row in enumerate(points, 1)
    ]
    changes = [
        wrap(
            f"{number}: {escape(str(row['change'] or ', '.join(row['replica_sites'])))}",
            indent="  ",
        )
        for number, row in enumerate(points, 1)
    ]
    currency = str(table.attrs["currency"])
    head = ["", f"cost {currency}", "mean ms", *([f"{objective} ms"] if objective else [])]
    head += ["status", "replicas", "voters", "leader"]
    if table.attrs["complete"]:
        sure = "Every point is proven, and none is missing."
    else:
        sure = "Not complete: some points are not proven or not found; more time may find them."
    lines = [text_table(head, rows), ""]
    if points:
        lines += [
            "The sites of the first point, and what changes from point to point:",
            *changes,
            "",
        ]
    lines.append(wrap(sure))
    if table.attrs["prices"]:
        lines.append(wrap(f"Prices: {escape(str(table.attrs['prices']))}"))
    return "\n".join(lines)

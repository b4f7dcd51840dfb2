"""``placement next``: find the best site to add or to remove next, and what it brings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli.argument_parser import Subparsers
from placement.cli.option_groups.price_options import add_prices
from placement.cli.options import add_instance, instance_from
from placement.cli.table_output import (
    add_table_output,
    cell,
    check_table_targets,
    exit_code_of,
    records,
    show_table,
)
from placement.errors import InputError
from placement.overtime.move_options import add_moves, read_moves

if TYPE_CHECKING:
    import pandas as pd

    from placement.evaluation.moves import Moves
    from placement.plan import Plan
    from placement.problem import Problem

__all__ = ["add_parser", "run"]

_ALL = -1
"""Of ``--moves``: no number was given."""


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "next",
        help="find the best site to add or to remove next",
        description="Starting from the present plan, show the gain of each site as the next "
        "replica and "
        "the loss without each present replica, each with the proven best leader and voters. The "
        "rules of the plan (pins, leader, diversity, budget) hold for every row unless --lift "
        "leaves them out; sites given by name as replicas or voters count as their number.",
    )
    add_instance(parser)
    add_prices(parser)
    parser.add_argument(
        "--from",
        dest="present",
        required=True,
        metavar="PLAN",
        help="plan file of the present configuration",
    )
    parser.add_argument(
        "--moves",
        nargs="?",
        type=types.whole(),
        const=_ALL,
        metavar="K",
        help="show instead the best plan with 0, 1, 2, … changes to the present plan, up to K "
        "(default: until no change helps), each proven, with its gain",
    )
    parser.add_argument(
        "--lift",
        type=types.names,
        metavar="RULES",
        help="rules of the plan that are left out: leader, leaders, pins, voter-pins, forbidden, "
        "non-voters, diversity, survive, budget, or all",
    )
    add_moves(parser, "moves (with --moves)", limit=False)
    add_table_output(parser, plot=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Load, solve every row, print."""
    from placement.analysis.next_replica import counted, next_replicas
    from placement.io.plan_file import load_plan

    check_table_targets(args)
    moves = read_moves(args)
    if moves is not None and args.moves is None:
        raise InputError(
            "prices or limits of moves alone",
            field="--moves",
            expected="--moves as well",
        )
    plan = load_plan(args.present)
    question = counted(_lifted(plan.problem, args))
    if args.moves is not None:
        return _moves(plan, question, moves, args)
    try:
        table = next_replicas(plan.replace(problem=question), instance_from(args))
    except InputError as error:
        raise error if error.source else error.at(args.present) from None
    attrs = {str(name): value for name, value in table.attrs.items()}
    text = f"{_text(table)}\n{_question(question)}"
    show_table(table, args, document={**attrs, "rows": records(table)}, text=text)
    return exit_code_of(table["status"])


def _lifted(problem: Problem, args: argparse.Namespace) -> Problem:
    """Return the question of the plan without the rules that ``--lift`` names."""
    from placement.analysis.next_replica import without_rules

    if args.lift is None:
        return problem
    try:
        return without_rules(problem, [part.strip() for part in args.lift.split(",")])
    except InputError as error:
        raise InputError(
            "no such rule", field="--lift", value=error.value, expected=error.expected
        ) from None


def _question(problem: Problem) -> str:
    """Return the question that holds for every row, in words."""
    from placement.problem import describe
    from placement.text import escape, wrap

    return wrap(f"question of every row: {escape(describe(problem))}")


def _moves(plan: Plan, question: Problem, moves: Moves | None, args: argparse.Namespace) -> int:
    """Print the gains of the best plans with 0, 1, 2, … changes."""
    from placement.analysis.next_replica import move_counts
    from placement.evaluation.moves import CurrentSites

    if plan.configuration is None:
        raise InputError("a plan without a configuration", source=args.present, field="--from")
    try:
        current = CurrentSites(plan.leader or "", plan.voters, plan.replicas)
        instance, moves = instance_from(args), question.moves if moves is None else moves
        problem = question.replace(instance=instance, current=current, moves=moves)
        table = move_counts(problem, None if args.moves == _ALL else args.moves)
    except InputError as error:
        raise error if error.source else error.at(args.present) from None
    text = f"{_moves_text(table)}\n{_question(question.replace(current=None, moves=None))}"
    show_table(table, args, document={"rows": records(table)}, text=text)
    return exit_code_of(table["status"])


def _moves_text(table: pd.DataFrame) -> str:
    from placement.text import escape, wrap
    from placement.text import table as text_table

    rows = [
        [
            str(row["changes"]),
            cell(row["mean_latency"], 3),
            cell(row["gain"], 3),
            cell(row["share"], 1),
            str(row["status"]),
            cell(row["leader"] or None),
            cell(row["added"] or None),
            cell(row["removed"] or None),
        ]
        for row in table.to_dict("records")
    ]
    head = ["changes", "mean ms", "gain ms", "% of all", "status", "leader", "added", "removed"]
    said = ["gain: against what runs today; % of all: part of the largest gain there is"]
    gained = table[table["share"] > 0]
    if len(gained):
        first = gained.iloc[0]
        count = int(first["changes"])
        words = "the first change brings" if count == 1 else f"the first {count} changes bring"
        said.insert(0, f"{words} {first['share']:.0f} % of what is to be had")
    lines = [text_table(head, rows, right=range(4)), ""]
    return "\n".join([*lines, *(wrap(escape(line)) for line in said)])


def _text(table: pd.DataFrame) -> str:
    from placement.text import escape, wrap
    from placement.text import table as text_table

    currency = table.attrs["currency"]
    value = str(table.attrs["objective"])
    rows = []
    for row in table.to_dict("records"):
        change = {"present": "as it is", "roles": "new roles"}.get(row["change"], row["change"])
        rows.append(
            [
                f"{change} {row['site']}".strip(),
                cell(row["replicas"], 0),
                cell(row["value"], 3),
                cell(row["gain"], 3),
                cell(row["gain_percent"], 1),
                *([cell(row["cost_change"], 2)] if currency else []),
                str(row["status"]),
                cell(row["leader"] or None),
            ]
        )
    head = ["change", "replicas", "value ms" if value else "mean ms", "gain ms", "gain %"]
    head += [*([f"cost {currency}"] if currency else []), "status", "leader"]
    notes = [wrap("gain: against what runs today; every row has its best leader and voters")]
    if value:
        notes.insert(0, wrap(f"value: {escape(value)}, which is minimised"))
    if currency:
        notes.append(wrap("cost: change of the cost, per interval of demand"))
    return "\n".join([text_table(head, rows), "", *notes])

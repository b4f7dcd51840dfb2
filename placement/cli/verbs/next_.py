"""``placement next``: find the best site to add or to remove next, and what it brings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import options as types
from placement.cli.options import Subparsers, Switch, add_verb
from placement.cli.output import (
    Columns,
    add_table_output,
    check_table_targets,
    exit_code_of,
    page_of,
    records,
    show_table,
)
from placement.cli.problem_options import instance_from, read_moves
from placement.errors import InputError, located, refused, require

if TYPE_CHECKING:
    import pandas as pd

_ALL = -1
"""Of ``--moves``: no number was given."""


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "next", run)
    parser.ask("instance", "prices")
    today = {"today": "plan file of the present configuration"}
    parser.ask("today", only=("today",), required=("today",), helps=today)
    parser.add("",
        Switch("--moves", "K", "show instead the best plan with 0, 1, 2, … changes to the present "
            "plan, up to K (default: until no change helps), each proven, with its gain",
            types.whole(), nargs="?", const=_ALL),
        Switch("--lift", "RULES", "rules of the plan that are left out: leader, leaders, pins, "
            "voter-pins, forbidden, non-voters, diversity, survive, budget, or all", types.names),
    )  # fmt: skip
    parser.ask("moves", leave=("max_moves",), title="moves (with --moves)")
    add_table_output(parser, plot=False)


def run(args: argparse.Namespace) -> int:
    """Find the best site to add or to remove next.

    Starting from the present plan, show the gain of each site as the next replica and the loss
    without each present replica, each with the proven best leader and voters. The rules of the plan
    (pins, leader, diversity, budget) hold for every row unless --lift leaves them out; sites given
    by name as replicas or voters count as their number.
    """
    from placement.analysis.next_replica import counted, move_counts, next_replicas, without_rules
    from placement.databases.deployment import read_running
    from placement.evaluation.moves import CurrentSites
    from placement.problem import describe

    check_table_targets(args)
    moves = read_moves(args)
    alone = moves is not None and args.moves is None
    require(not alone, "--moves", "prices or limits of moves alone", expected="--moves as well")
    instance = instance_from(args)
    plan = read_running(instance, args.today)
    problem = plan.problem
    if args.lift is not None:
        try:
            problem = without_rules(problem, [part.strip() for part in args.lift.split(",")])
        except InputError as error:
            raise refused("", "--lift", "no such rule", error.value, error.expected) from None
    question = counted(problem)
    with located(args.today):
        if args.moves is None:
            table = next_replicas(plan.replace(problem=question), instance)
            page, more = _text, {str(name): value for name, value in table.attrs.items()}
        else:
            question = question.replace(instance=instance)
            current = CurrentSites(plan.leader or "", plan.voters, plan.replicas)
            moves = question.moves if moves is None else moves
            moving = question.replace(current=current, moves=moves)
            table = move_counts(moving, None if args.moves == _ALL else args.moves)
            question = question.replace(current=None, moves=None)
            page, more = _moves_text, {}
    columns, notes = page(table)
    text = page_of(table, columns, *notes, f"question of every row: {describe(question)}")
    show_table(table, args, document={**more, "rows": records(table)}, text=text)
    return exit_code_of(table["status"])


def _moves_text(table: pd.DataFrame) -> tuple[Columns, list[str]]:
    columns: Columns = [
        ("changes", "changes", 0),
        ("mean ms", "mean_latency", 3),
        ("gain ms", "gain", 3),
        ("% of all", "share", 1),
        *((name, name, 0) for name in ("status", "leader", "added", "removed")),
    ]
    said = ["gain: against what runs today; % of all: part of the largest gain there is"]
    gained = table[table["share"] > 0]
    if len(gained):
        first = gained.iloc[0]
        count = int(first["changes"])
        words = "the first change brings" if count == 1 else f"the first {count} changes bring"
        said.insert(0, f"{words} {first['share']:.0f} % of what is to be had")
    return columns, said


def _text(table: pd.DataFrame) -> tuple[Columns, list[str]]:
    currency = table.attrs["currency"]
    value, unit = str(table.attrs["objective"]), str(table.attrs["unit"])
    names = {"present": "as it is", "roles": "new roles"}
    columns: Columns = [
        ("change", lambda r: f"{names.get(r['change'], r['change'])} {r['site']}".strip(), 0),
        ("replicas", "replicas", 0),
        (f"{table.attrs['minimised'] or 'mean'} {unit}".strip(), "value", 3),
        (f"gain {unit}".strip(), "gain", 3),
        ("gain %", "gain_percent", 1),
        *([(f"cost {currency}", "cost_change", 2)] if currency else []),
        ("status", "status", 0),
        ("leader", "leader", 0),
    ]
    notes = [f"minimised: {value}"] if value else []
    notes.append("gain: against what runs today; every row has its best leader and voters")
    notes += ["cost: change of the cost, per interval of demand"] if currency else []
    return columns, notes

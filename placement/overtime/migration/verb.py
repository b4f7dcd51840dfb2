"""``placement migrate``: the latency while the leaders of a database move in steps."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.option_groups.percentile_options import add_distributions, distributions_from
from placement.cli.table_output import (
    add_table_output,
    cell,
    check_table_targets,
    records,
    show_table,
)
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.overtime.migration import LeaderMigration
    from placement.problem import Problem

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "migrate",
        help="show the latency while leaders move to the leader of a plan, step by step",
        description="Simulate a migration: the groups of a database have their leaders at several "
        "voters of a plan, and in each step some of them move to the leader of the plan. The "
        "output has the mean latency and percentiles after every step.",
    )
    parser.add_argument("plan", metavar="PLAN", help="a plan file with the leader at the end")
    group = parser.add_argument_group("migration")
    group.add_argument(
        "--leader-shares",
        action="append",
        default=[],
        metavar="SITE=SHARE",
        help="share of the groups that a voter leads at first, once per voter (default: equal)",
    )
    group.add_argument(
        "--groups",
        type=types.whole(1),
        default=100,
        metavar="N",
        help="number of groups (default 100)",
    )
    group.add_argument(
        "--per-step",
        type=types.whole(1),
        default=10,
        metavar="K",
        help="groups that move in a step (default 10)",
    )
    group.add_argument(
        "--percents", type=types.names, default="50,90,99", metavar="LIST",
        help="percentiles shown (default 50,90,99)",
    )  # fmt: skip
    group.add_argument("--seed", type=types.seed, default=0, metavar="N", help="seed (default 0)")
    group = parser.add_argument_group(
        "distributions of RTTs (default: those of the plan, else every RTT constant)"
    )
    add_distributions(group)
    add_table_output(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Simulate, write, print."""
    from placement.io import load_plan
    from placement.overtime.migration import migrate
    from placement.overtime.migration.simulate import plot_migration
    from placement.overtime.replay.verb import leader_shares

    check_table_targets(args)
    plan = load_plan(args.plan)
    if plan.configuration is None:
        raise InputError("a plan without a configuration", source=args.plan)
    result = migrate(
        _question(plan.problem, args),
        plan.configuration,
        shares=leader_shares(args.leader_shares) if args.leader_shares else None,
        groups=args.groups,
        per_step=args.per_step,
        percents=[
            types.read_number(part.strip(), "--percents", 0.0, 100.0, above=True)
            for part in args.percents.split(",")
        ],
        seed=args.seed,
    )
    table = result.to_frame()
    document = {"plan": args.plan, "leader": result.target, "steps": records(table)}
    show_table(
        table,
        args,
        document=document,
        text=_text(result),
        draw=lambda: plot_migration(result, title=f"Leaders move to {result.target}"),
    )
    return exits.FOUND


def _question(problem: Problem, args: argparse.Namespace) -> Problem:
    """Return the problem with distributions: as the options say, of the plan, or constant RTTs."""
    from placement.tail.objective import Percentile

    if args.distributions is None and args.spread is None:
        if isinstance(problem.objective, Percentile):
            return problem
        args.spread = 0.0
    each = distributions_from(problem.instance, args)
    from placement.evaluation.objective import MEAN_LATENCY

    return problem.replace(objective=MEAN_LATENCY, minimise="p50", distributions=each)


def _text(result: LeaderMigration) -> str:
    from placement.text import escape, wrap
    from placement.text import table as text_table

    percents = [f"p{percent:g}" for percent in result.percents]
    rows = [
        [
            str(row["step"]),
            cell(100 * row["moved"], 0),
            cell(row["mean"], 3),
            *(cell(row[name], 1) for name in percents),
        ]
        for row in result.to_frame().to_dict("records")
    ]
    head = ["step", "moved %", "mean ms", *(f"{name} ms" for name in percents)]
    first, last = result.percentiles[0], result.percentiles[-1]
    changes = [
        f"{name} by {100 * (1 - after / before):.1f} %"
        for name, before, after in zip(percents, first.tolist(), last.tolist(), strict=True)
        if before > 0
    ]
    saved = 100 * (1 - result.mean[-1] / result.mean[0]) if result.mean[0] else 0.0
    words = f"All leaders at {result.target}: the mean falls by {saved:.1f} %"
    return "\n".join(
        [
            text_table(head, rows, right=range(len(head))),
            "",
            wrap(escape(", ".join([words, *changes]) + ".")),
        ]
    )

"""``placement lab migrate``: the latency while the leaders of a database move in steps."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.options import Subparsers, Switch, add_verb
from placement.cli.output import (
    Columns,
    add_table_output,
    check_table_targets,
    page_of,
    records,
    show_table,
)
from placement.cli.problem_options import distributions_from

if TYPE_CHECKING:
    import pandas as pd

    from placement.overtime.migration.simulate import LeaderMigration
    from placement.problem import Problem


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "migrate", run)
    parser.add("",
        Switch("plan", "PLAN", "what runs at the end: a plan, or a file with leader, voters and "
            "replicas"),
        Switch("--instance", "INSTANCE", "instance of a file that is no plan"),
    )  # fmt: skip
    parser.add("migration",
        Switch("--leader-shares", "SITE=SHARE", "share of the groups that a voter leads at "
            "first, once per voter (default: equal)", several=True, default=()),
        Switch("--groups", "N", "number of groups (default 100)", types.whole(1), 100),
        Switch("--per-step", "K", "groups that move in a step (default 10)", types.whole(1), 10),
        Switch("--percents", "LIST", "percentiles shown (default 50,90,99)",
            types.names, "50,90,99"),
    )  # fmt: skip
    parser.ask("method", only=("seed",), helps={"seed": "seed of the order (default 0)"})
    title = "distributions of RTTs (default: those of the plan, else every RTT constant)"
    parser.ask("tail", leave=("percentile",), title=title)
    add_table_output(parser)


def run(args: argparse.Namespace) -> int:
    """Show the latency while leaders move to the leader of a plan, step by step.

    The groups of a database have their leaders at several voters of a plan, and in each step some
    of them move to the leader of the plan. The output has the mean latency and percentiles after
    every step.
    """
    from placement.api import load
    from placement.databases.deployment import read_running
    from placement.overtime.migration import migrate
    from placement.overtime.migration.simulate import plot_migration
    from placement.overtime.replay.verb import leader_shares

    check_table_targets(args)
    plan = read_running(None if args.instance is None else load(args.instance), args.plan)
    assert plan.configuration is not None  # else refused there
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
        text=_text(table, result),
        draw=lambda: plot_migration(result, title=f"Leaders move to {result.target}"),
    )
    return exits.FOUND


def _question(problem: Problem, args: argparse.Namespace) -> Problem:
    """Return the problem with distributions: as the options say, of the plan, or constant RTTs."""
    from placement.measures.values import MeasureData

    if args.distributions is None and args.spread is None:
        if isinstance(problem.objective, MeasureData) and problem.objective.distributions:
            return problem
        args.spread = 0.0
    each = distributions_from(problem.instance, args)
    from placement.evaluation.objective import MEAN_LATENCY

    return problem.replace(objective=MEAN_LATENCY, minimise="p50", distributions=each)


def _text(table: pd.DataFrame, result: LeaderMigration) -> str:
    percents = [f"p{percent:g}" for percent in result.percents]
    columns: Columns = [
        ("step", "step", 0),
        ("moved %", lambda row: 100 * row["moved"], 0),
        ("mean ms", "mean", 3),
        *((f"{name} ms", name, 1) for name in percents),
    ]
    first, last = result.percentiles[0], result.percentiles[-1]
    changes = [
        f"{name} by {100 * (1 - after / before):.1f} %"
        for name, before, after in zip(percents, first.tolist(), last.tolist(), strict=True)
        if before > 0
    ]
    saved = 100 * (1 - result.mean[-1] / result.mean[0]) if result.mean[0] else 0.0
    words = f"All leaders at {result.target}: the mean falls by {saved:.1f} %"
    return page_of(table, columns, ", ".join([words, *changes]) + ".")

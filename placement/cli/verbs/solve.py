"""``placement solve``: the best plan, or why there is none."""

from __future__ import annotations

import argparse

from placement.cli.argument_parser import Subparsers
from placement.cli.option_groups.percentile_options import (
    add_measures,
    apply_measures,
)
from placement.cli.option_groups.price_options import add_bill, check_present
from placement.cli.options import (
    add_constraints,
    add_instance,
    add_method,
    add_output,
    instance_from,
    limits_from,
    problem_from,
    settings_from,
)
from placement.cli.plan_output import check_target, show_plan
from placement.cli.progress_line import progress_of
from placement.overtime.move_options import add_moves, with_moves

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "solve",
        help="choose replicas, voters and leader",
        description="Choose replicas, voters and leader for an instance, with proof.",
    )
    add_instance(parser)
    add_constraints(parser)
    add_bill(parser)
    add_moves(parser)
    add_measures(parser)
    parser.add_argument(
        "--price-limits",
        action="store_true",
        help="also tell what is gained without each limit of --keep: one more question for each",
    )
    add_method(parser)
    add_output(parser, plan=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Solve, write, print."""
    from placement.methods.registry import solve

    check_target(args)
    problem = with_moves(problem_from(args, instance_from(args)), args)
    problem = apply_measures(problem, args)
    check_present(problem, args)
    with progress_of(args, problem) as progress:
        plan = solve(
            problem,
            args.method,
            **limits_from(args),
            progress=progress,
            settings=settings_from(args),
        )
        if args.price_limits:
            from placement.measures.limits import limit_prices
            from placement.methods.options import Options

            plan = limit_prices(plan, args.method, Options(**limits_from(args)))
    return show_plan(plan, args)

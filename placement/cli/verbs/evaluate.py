"""``placement evaluate``: score of a given configuration, and broken constraints."""

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
    add_output,
    instance_from,
    names,
    problem_from,
)
from placement.cli.plan_output import check_target, show_plan

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "evaluate",
        help="score a configuration of your own",
        description="Compute the latency of a configuration, and check it against constraints.",
    )
    add_instance(parser)
    add_constraints(parser, configuration=True)
    add_bill(parser)
    add_measures(parser)
    add_output(parser, plan=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Evaluate, write, print."""
    from placement.api import evaluate

    check_target(args)
    instance = instance_from(args)
    known = instance.sites
    problem = apply_measures(problem_from(args, instance, configuration=True), args)
    check_present(problem, args)
    replicas, voters = names(args.replicas, known), names(args.voters, known)
    plan = evaluate(problem, leader=args.leader, voters=voters, replicas=replicas)
    return show_plan(plan, args)

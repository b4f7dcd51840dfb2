"""``placement solve``: the best plan, or why there is none."""

from __future__ import annotations

import argparse

from placement.cli.options import (
    EMBED,
    PROGRESS,
    Subparsers,
    Switch,
    add_verb,
    limits_from,
    settings_from,
)
from placement.cli.output import check_target, progress_of, show_plan
from placement.cli.problem_options import check_present, instance_from, question_from


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "solve", run)
    parser.ask("instance", "question", "constraints", "prices", "today", "moves")
    parser.ask("measures", "tail", "method")
    parser.add("measures",
        Switch("--price-limits", "", "also tell what is gained without each limit of --keep: "
            "one more question for each"),
    )  # fmt: skip
    parser.add("method", PROGRESS)
    parser.add_output("write the plan as JSON")
    parser.add("output", EMBED)


def run(args: argparse.Namespace) -> int:
    """Choose replicas, voters and leader for an instance, with proof."""
    from placement.methods.registry import solve

    check_target(args)
    problem = question_from(args, instance_from(args))
    check_present(problem, args)
    limits = limits_from(args)
    with progress_of(args, problem) as progress:
        plan = solve(
            problem, args.method, **limits, progress=progress, settings=settings_from(args)
        )
        if args.price_limits:
            from placement.measures.limits import limit_prices
            from placement.methods.options import Options

            plan = limit_prices(plan, args.method, Options(**limits))
    return show_plan(plan, args)

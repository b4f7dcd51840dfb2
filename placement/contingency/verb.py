"""``placement contingency``: plans that stay fast when sites are lost, with or without leader."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli.argument_parser import Subparsers
from placement.cli.dispatch import add_parts
from placement.cli.option_groups.loss_options import add_goals, add_losses, loss_goal, worst_case
from placement.cli.option_groups.percentile_options import add_percentile, apply_percentile
from placement.cli.options import (
    add_constraints,
    add_instance,
    add_method,
    add_output,
    instance_from,
    limits_from,
    problem_from,
    reference_from,
    settings_from,
)
from placement.cli.page import print_page
from placement.cli.plan_output import check_target, exit_code, print_json
from placement.cli.progress_line import progress_of

if TYPE_CHECKING:
    from placement.evaluation.losses import Failures
    from placement.evaluation.objective import Objective
    from placement.plan import Plan
    from placement.problem import Problem

__all__ = ["add_parser", "run"]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb and its two parts."""
    parser = verbs.add_parser(
        "contingency",
        help="plans that stay fast when a site, a domain or two sites are lost",
        description="Plans that stay fast when sites are lost: 'leader' for databases that commit "
        "through a leader, 'quorum' for leaderless stores with read and write quorums.",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    _add_leader(parts)
    add_parts(parts, "contingency")


def _add_leader(parts: Subparsers) -> None:
    parser = parts.add_parser(
        "leader",
        help="leader, voters and replicas under the loss of sites",
        description="Choose replicas, voters and leader so that latency stays low after a loss. "
        "The survivors serve, the quorum size stays, and if the leader is lost the best surviving "
        "voter leads. With --percentile, the latency is that percentile instead of the mean.",
    )
    add_instance(parser)
    add_constraints(parser)
    goal = add_goals(parser, "objective (default --worst)")
    goal.add_argument(
        "--normal",
        action="store_true",
        help="minimise the latency with nothing lost; losses are shown",
    )
    goal.add_argument(
        "--within",
        type=types.number(),
        metavar="E",
        help="minimise the normal latency, with at most (1 + E) times the best worst case after "
        "any loss",
    )
    add_losses(parser)
    add_percentile(parser)
    add_method(parser)
    add_output(parser, plan=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Solve, write, print."""
    from placement.contingency.objective import Contingency, solve_within
    from placement.evaluation.losses import failures
    from placement.methods.registry import solve

    check_target(args)
    problem = apply_percentile(problem_from(args, instance_from(args)), args)
    objective = _objective(args, problem)
    shown = objective if isinstance(objective, Contingency) else worst_case(args, problem)
    shown.check(problem)  # an unknown level is refused before any work
    problem = problem.replace(objective=objective)
    first: Plan | None = None
    limits, settings = limits_from(args), settings_from(args)
    with progress_of(args, problem) as progress:
        if args.within is not None:
            first, plan = solve_within(
                problem, args.within, args.method, **limits, progress=progress, settings=settings
            )
        else:
            plan = solve(problem, args.method, **limits, progress=progress, settings=settings)
    report: Failures | None = None
    if plan.configuration is not None:
        report = failures(
            plan.problem,
            plan.configuration,
            args.level,
            together=2 if args.pairs else 1,
            leader_may_move=args.leader_may_move,
            clients_move=args.clients_move,
        )
    return _show(plan, report, first, args)


def _objective(args: argparse.Namespace, problem: Problem) -> Objective:
    if args.normal:
        return problem.objective
    return loss_goal(args, problem) or worst_case(args, problem)


def _show(plan: Plan, report: Failures | None, first: Plan | None, args: argparse.Namespace) -> int:
    from placement.io.leader_plan_document import failures_document, plan_document
    from placement.io.plan_file import save_plan
    from placement.text import MOST_FAILURES, failures_table

    reference = reference_from(args)
    if args.output is not None and plan.found:
        save_plan(plan, args.output, reference=None if args.embed else reference, force=args.force)
    if args.json:
        document = plan_document(plan, reference=reference, embed=reference is None)
        document["contingency"] = None if report is None else failures_document(report)
        if first is not None and first.found:
            document["best_worst_case_ms"] = first.problem.objective.in_ms(
                first.problem, first.objective
            )
        print_json(document)
    else:
        print_page(str(plan))
        if first is not None and first.found:
            best = first.problem.objective.in_ms(first.problem, first.objective)
            print(f"\nThe best worst case is {best:.3f} ms ({first.status}).")
        if report is not None and (
            report.describe() != plan.failures.describe() or len(report.each) > MOST_FAILURES
        ):
            print_page(f"\nWhen {report.describe()}\n" + failures_table(report))
        if args.output is not None:
            written = "Written" if plan.found else "Nothing was written"
            print(f"\n{written} to {args.output}")
    return exit_code(plan.status)

"""``placement contingency``: plans that stay fast when sites are lost, with or without leader."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli.argument_parser import Subparsers
from placement.cli.dispatch import add_parts
from placement.cli.option_groups.percentile_options import add_percentile, apply_measures
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
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.contingency.objective import Contingency
    from placement.evaluation.losses import Failures
    from placement.evaluation.objective import Objective
    from placement.plan import Plan
    from placement.problem import Problem

__all__ = ["add_parser", "run"]


def _add_goals(parser: argparse.ArgumentParser, title: str) -> argparse._MutuallyExclusiveGroup:
    """Add the goals that :func:`_loss_goal` reads; return the group that excludes each other."""
    goal = parser.add_argument_group(title).add_mutually_exclusive_group()
    goal.add_argument(
        "--worst",
        action="store_true",
        help="minimise the worst latency over normal operation and all losses",
    )
    goal.add_argument(
        "--weighted",
        action="append",
        type=types.text,
        metavar="P|NAME=P",
        help="minimise the mean over outages: P is the probability of every loss, NAME=P of one "
        "(repeatable)",
    )
    goal.add_argument(
        "--limit",
        type=types.number(),
        metavar="MS",
        help="minimise the normal latency, with at most MS after any loss",
    )
    return goal


def _add_losses(parser: argparse.ArgumentParser) -> None:
    """Add the options for losses and for the failover after them."""
    group = parser.add_argument_group("losses")
    group.add_argument(
        "--level",
        default="site",
        metavar="LEVEL",
        help="failure domains that are lost, one at a time (default site: N-1)",
    )
    group.add_argument("--pairs", action="store_true", help="lose two domains at once (sites: N-2)")
    group.add_argument(
        "--leader-may-move",
        action="store_true",
        help="after a loss, a surviving leader may hand over to a better one",
    )
    group.add_argument(
        "--clients-move",
        action="store_true",
        help="clients with the name of a lost site are served from the closest surviving site, "
        "and wait for the RTT to it as well (default: they stay)",
    )


def _worst_case(args: argparse.Namespace, problem: Problem) -> Contingency:
    """Return the objective of the worst case over the losses that are asked for.

    Of the mean latency, or of the percentile that the problem asks for.
    """
    from placement.contingency.objective import Contingency
    from placement.tail.objective import Percentile

    return Contingency(
        args.level,
        together=2 if args.pairs else 1,
        leader_may_move=args.leader_may_move,
        clients_move=args.clients_move,
        percentile=problem.objective if isinstance(problem.objective, Percentile) else None,
    )


def _loss_goal(args: argparse.Namespace, problem: Problem) -> Contingency | None:
    """Return the objective that a goal of the options asks for; None: none is given."""
    from dataclasses import replace

    goal = _worst_case(args, problem)
    if args.limit is not None:
        return replace(goal, goal="bounded", limit=args.limit)
    if args.weighted is not None:
        return replace(goal, goal="weighted", probability=_probability(args.weighted))
    return goal if args.worst else None


def _probability(values: list[str]) -> float | dict[str, float]:
    """Read ``0.01``, or ``name=0.01`` any number of times."""
    named: dict[str, float] = {}
    for text in values:
        name, equals, share = text.rpartition("=")
        try:
            probability = float(share)
        except ValueError:
            probability = math.nan
        if not 0 <= probability <= 1 or (not equals and len(values) > 1) or name in named:
            raise InputError(
                "not an outage probability",
                field="--weighted",
                value=text,
                expected="one number in [0, 1], or NAME=NUMBER once for each name",
            )
        if not equals:
            return probability
        named[name] = probability
    return named


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
    goal = _add_goals(parser, "objective (default --worst)")
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
    _add_losses(parser)
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
    problem = apply_measures(problem_from(args, instance_from(args)), args)
    objective = _objective(args, problem)
    shown = objective if isinstance(objective, Contingency) else _worst_case(args, problem)
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
    return _loss_goal(args, problem) or _worst_case(args, problem)


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

"""The options that ask for the worst case over losses, a mean over outages, or a limit on both."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.contingency.objective import Contingency
    from placement.problem import Problem

__all__ = ["add_goals", "add_losses", "apply_losses", "loss_goal", "worst_case"]


def add_goals(parser: argparse.ArgumentParser, title: str) -> argparse._MutuallyExclusiveGroup:
    """Add the goals that :func:`loss_goal` reads; return their group, which excludes each other.

    Parameters
    ----------
    parser
        Of a verb.
    title
        Of the options in its help.
    """
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


def add_losses(parser: argparse.ArgumentParser) -> None:
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


def worst_case(args: argparse.Namespace, problem: Problem) -> Contingency:
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


def loss_goal(args: argparse.Namespace, problem: Problem) -> Contingency | None:
    """Return the objective that a goal of :func:`add_goals` asks for; None: none is given.

    Raises
    ------
    InputError
        For a percentile that is weighted or whose clients move.
    """
    from dataclasses import replace

    goal = worst_case(args, problem)
    if args.limit is not None:
        return replace(goal, goal="bounded", limit=args.limit)
    if args.weighted is not None:
        return replace(goal, goal="weighted", probability=_probability(args.weighted))
    return goal if args.worst else None


def apply_losses(problem: Problem, args: argparse.Namespace) -> Problem:
    """Return the problem with the objective that the options ask for, if they ask for one.

    A percentile that the problem asks for already is then scored after the losses as well.

    Raises
    ------
    InputError
        For options that do nothing, or a percentile that is weighted or whose clients move.
    """
    given = {
        "--level": args.level if args.level != "site" else None,
        "--pairs": args.pairs or None,
        "--leader-may-move": args.leader_may_move or None,
        "--clients-move": args.clients_move or None,
    }
    if args.limit is None and args.weighted is None and not args.worst:
        for option, value in given.items():
            if value is not None:
                raise InputError(
                    "does nothing without --worst, --weighted or --limit",
                    field=option,
                    value=value,
                    expected="none",
                )
        return problem
    goal = loss_goal(args, problem)
    assert goal is not None
    goal.check(problem)
    return problem.replace(objective=goal)


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

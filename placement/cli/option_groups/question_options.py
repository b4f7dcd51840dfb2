"""The options of a question: an instance, constraints, and measures.

For the verbs that ask one question many times: with several methods, or with several numbers of
replicas and voters.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli.option_groups.percentile_options import (
    add_measures,
    apply_measures,
)
from placement.cli.options import (
    add_constraints,
    add_gone,
    add_instance,
    add_method,
    names,
    problem_from,
)
from placement.cli.table_output import add_table_output
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.problem import Problem

__all__ = ["add_question", "add_sizes_question", "counts", "question_from", "question_of_sizes"]

_COUNTS = re.compile(r"\s*(\d+)\s*(?:\.\.\s*(\d+)\s*)?")


def add_question(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`question_from` reads."""
    add_instance(parser)
    add_constraints(parser)
    add_measures(parser)
    add_gone(
        parser,
        {
            "--worst": "--minimise 'mean after the loss of any site'",
            "--weighted": "--minimise 'mean over outages' --outage NAME=P",
            "--limit": "--keep 'mean after the loss of any site <= 100 ms'",
            "--level": "--minimise 'mean after the loss of any LEVEL'",
            "--pairs": "--minimise 'mean after the loss of any two sites'",
            "--leader-may-move": "'…, the leader may move' at the end of a measure after a loss",
            "--clients-move": "'…, clients move' at the end of a measure after a loss",
        },
    )


def question_from(args: argparse.Namespace, instance: Instance) -> Problem:
    """Return the problem that the options describe, with its objective.

    Raises
    ------
    InputError
        For options that contradict each other, and for names that the instance does not have.
    """
    return apply_measures(problem_from(args, instance), args)


def add_sizes_question(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the common options of ``sweep`` and ``pareto``; return the frontier's group."""
    add_question(parser)
    add_method(parser)
    group = parser.add_argument_group("frontier")
    group.add_argument(
        "--points",
        type=types.whole(1),
        metavar="N",
        help="largest number of solves of the frontier per number of voters (default: all)",
    )
    add_table_output(parser)
    return group


def counts(values: Sequence[str]) -> tuple[int, ...] | None:
    """Read ``3``, ``3..7`` and ``1,3,5``, repeated or mixed; None when something is no number.

    Examples
    --------
    >>> counts(["3..5,8"]), counts(["1", "3"]), counts(["fra"])
    ((3, 4, 5, 8), (1, 3), None)
    """
    found: set[int] = set()
    for part in (part for value in values for part in value.split(",")):
        match = _COUNTS.fullmatch(part)
        if match is None:
            return None
        low, high = (
            types.read_whole(end, "--replicas, --voters", 0, types.LARGEST_SIZE)
            for end in (match[1], match[2] or match[1])
        )
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def question_of_sizes(
    args: argparse.Namespace, instance: Instance
) -> tuple[Problem, tuple[int, ...], tuple[int, ...] | None]:
    """Read the numbers, and build the problem of the largest cell."""
    sizes = counts(args.replicas)
    if not sizes:
        raise InputError(
            "no numbers of replicas",
            field="--replicas",
            value=",".join(args.replicas),
            expected="numbers: 5, 3..9, or 3,5,7",
        )
    if not args.voters:
        raise InputError(
            "no numbers of voters",
            field="--voters",
            value=None,
            expected="numbers: 3, 3..5, or 3,5; or sites by name",
        )
    voters = counts(args.voters)
    if voters is not None:
        fitting = [count for count in voters if count <= sizes[-1]]
        if not fitting:
            raise InputError(
                "no number of voters fits into any number of replicas",
                field="--voters",
                value=",".join(args.voters),
                expected=f"<= {sizes[-1]}",
            )
        asked = [str(fitting[-1])]
    else:
        asked = list(names(args.voters, instance.sites))
    largest = min(sizes[-1], len(instance.sites))
    base = argparse.Namespace(**{**vars(args), "replicas": [str(largest)], "voters": asked})
    return question_from(base, instance), sizes, voters

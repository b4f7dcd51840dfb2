"""Lease holders among given replicas: the choice that is left once leader and voters are known.

Replicas with a lease serve strong reads alone, and every write waits for all of them: more of them,
or better spread ones, shorten reads and prolong writes. Which p of n replicas are best is a problem
of medians, so that every choice is evaluated, C(n − 1, p − 1) of them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

from placement.errors import LimitError
from placement.evaluation.score import first_best
from placement.model.configuration import Configuration

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["holder_choices", "with_holders"]

_MOST_CHOICES = 200_000
"""Choices of lease holders that are evaluated for one leader, its voters and its replicas."""


def holder_choices(problem: Problem, configuration: Configuration) -> list[tuple[int, ...]]:
    """Return every choice of lease holders beside a leader, voters and replicas, each ascending.

    Parameters
    ----------
    problem
        The question; one without the role has the empty choice alone.
    configuration
        Its lease holders are ignored.
    """
    rules, leader = problem.rules, configuration.leader
    if not rules.lease_holders:
        return [()]
    if rules.voters_hold_leases:
        held = set(configuration.replicas)
        return [tuple(sorted(site for site in configuration.voters if site in held))]
    others = [site for site in configuration.replicas if site != leader]
    return [
        tuple(sorted((leader, *chosen)))
        for chosen in itertools.combinations(others, rules.lease_holders - 1)
    ]


def with_holders(problem: Problem, configuration: Configuration) -> Configuration:
    """Return a configuration with its best lease holders; among equals with the first of them.

    Parameters
    ----------
    problem
        The question; without the role the configuration is returned as it is.
    configuration
        Leader, voters and replicas; the leader holds a replica.

    Raises
    ------
    LimitError
        Where there are too many choices to evaluate.

    Notes
    -----
    C(n − 1, p − 1) evaluations for p lease holders of n replicas, many at a time.
    """
    rules = problem.rules
    if not rules.lease_holders:
        return configuration
    number = math.comb(len(configuration.replicas) - 1, rules.lease_holders - 1)
    if number > _MOST_CHOICES and not rules.voters_hold_leases:
        raise LimitError(
            f"{number:,} choices of lease holders for one leader are more than the limit of "
            f"{_MOST_CHOICES:,}; ask for fewer, or for leases on all replicas (holders=replicas)"
        )
    found = [
        dataclasses.replace(configuration, lease_holders=chosen)
        for chosen in holder_choices(problem, configuration)
    ]
    if len(found) <= 1:
        return found[0] if found else configuration
    values = problem.objective.values(problem, found)
    return found[int(first_best(values))]

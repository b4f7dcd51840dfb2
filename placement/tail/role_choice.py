"""Tier 2 for percentiles: the best leader and voters among given replicas.

Closest first is exact here too when the RTTs from a leader are *stochastically ordered*: each
closer voter answers by any time with at least the probability of each farther one. Then its quorum
wait is the stochastically smallest, and so is every percentile. If they are not ordered, or greedy
is not exact for the rules, the voter sets of that leader are enumerated.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from placement.evaluation.score import closest_first
from placement.evaluation.voter_choice import best_voters
from placement.model.configuration import Configuration
from placement.plan import cheapest
from placement.problem import Problem
from placement.support.checks import IntArray
from placement.tail.objective import Percentile

__all__ = ["RoleChoice", "best_roles", "describe_voter_search", "stochastically_ordered"]


class RoleChoice(NamedTuple):
    """The best roles, and how the voters of the candidate leaders were found.

    Attributes
    ----------
    best
        None when no choice is feasible.
    leaders
        Candidate leaders.
    enumerated
        How many of them had all their voter sets tried.
    """

    best: Configuration | None
    leaders: int
    enumerated: int


def stochastically_ordered(percentile: Percentile, leader: int, order: IntArray) -> bool:
    """Return whether the RTTs from `leader` to the sites of `order` rise stochastically."""
    answered = np.cumsum(percentile.distributions.site_site[leader, order], axis=-1)
    return bool((np.diff(answered, axis=0) <= 1e-12).all())


def best_roles(problem: Problem, replicas: list[int]) -> RoleChoice:
    """Best leader and voters among given replicas.

    Parameters
    ----------
    problem
        Whose objective is a Percentile.
    replicas
        Site indices of R.
    """
    percentile = problem.objective
    assert isinstance(percentile, Percentile)
    rules, rtt = problem.rules, problem.demand.site_rtt[0]
    candidates: list[Configuration] = []
    leaders = enumerated = 0
    for leader in sorted(replicas):
        if not rules.may_lead[leader]:
            continue
        leaders += 1
        voting = np.array([r for r in sorted(replicas) if rules.may_vote[r]], dtype=np.intp)
        order = voting[closest_first(rtt[leader, voting])]
        if len(order) == rules.voters or (
            rules.nested_voter_caps
            and not percentile.by_interval
            and stochastically_ordered(percentile, leader, order)
        ):
            voters = best_voters(problem.demand, rules, leader, replicas)
            if voters is not None:
                candidates.append(Configuration.of(leader, voters, replicas))
            continue
        enumerated += 1
        candidates.extend(
            Configuration.of(leader, chosen, replicas)
            for chosen in itertools.combinations(order.tolist(), rules.voters)
            if leader in chosen
        )
    return RoleChoice(cheapest(problem, candidates), leaders, enumerated)


def describe_voter_search(leaders: int, enumerated: int) -> str:
    """Say how the voters of so many candidate leaders were found, in a sentence.

    Examples
    --------
    >>> describe_voter_search(5, 2)
    'voters: closest first (Algorithm 2) for 3 of 5 leaders, every voter set for the other 2'
    """
    if not enumerated:
        return (
            "voters: closest first (Algorithm 2), which is exact here: the RTTs from each "
            "candidate leader are stochastically ordered, or there is only one voter set"
        )
    if enumerated == leaders:
        return (
            "voters: every voter set was tried, because closest first (Algorithm 2) is not exact "
            "here: RTTs are not stochastically ordered, or the rules do not nest"
        )
    return (
        f"voters: closest first (Algorithm 2) for {leaders - enumerated} of {leaders} leaders, "
        f"every voter set for the other {enumerated}"
    )

"""Tier 2 for percentiles: the best leader and voters among given replicas.

Closest first is exact here too when the RTTs from a leader are *stochastically ordered*, each
closer voter answering by any time with at least the probability of each farther one: then its
quorum wait is the stochastically smallest, and so is every percentile. When they are not, or greedy
is not exact for the rules, the voter sets of that leader are enumerated.
"""

from __future__ import annotations

import itertools

import numpy as np

from placement.checks import IntArray
from placement.configuration import Configuration
from placement.plan import cheapest
from placement.problem import Problem
from placement.score import closest_first
from placement.tail.objective import Percentile
from placement.voting import best_voters

__all__ = ["best_roles", "stochastically_ordered"]


def stochastically_ordered(percentile: Percentile, leader: int, order: IntArray) -> bool:
    """Whether each site of `order` answers `leader` stochastically no later than the next."""
    answered = np.cumsum(percentile.distributions.site_site[leader, order], axis=-1)
    return bool((np.diff(answered, axis=0) <= 1e-12).all())


def best_roles(problem: Problem, replicas: list[int]) -> tuple[Configuration | None, int]:
    """Best leader and voters, and for how many leaders voter sets had to be enumerated.

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
    enumerated = 0
    for leader in sorted(replicas):
        if not rules.may_lead[leader]:
            continue
        voting = np.array([r for r in sorted(replicas) if rules.may_vote[r]], dtype=np.intp)
        order = voting[closest_first(rtt[leader, voting])]
        if rules.nested_voter_caps and stochastically_ordered(percentile, leader, order):
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
    return cheapest(problem, candidates), enumerated

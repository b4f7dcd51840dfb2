"""Every replica set, every choice of voters, every leader: the reference for waits.

Part ``exhaustive.waits`` of the method ``exhaustive``. Nothing is bounded and nothing shared: each
configuration is scored by the one evaluator, many at a time.
O(C(|S|, |R|) · C(|R|, |V|) · |V| · |C| · |R|).
"""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from formulations.enumeration.enumerate_sets import Found, enumerate_sets
from placement.evaluation.breakdown import objective_values
from placement.evaluation.score import TIE
from placement.evaluation.voter_choice import by_answer_time
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import IntArray

_BLOCK = 200


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every configuration.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    return enumerate_sets(
        problem, options, lambda sets: _best_of(problem, sets), block=_BLOCK, instead="'sets'"
    )


def _configurations(problem: Problem, sets: IntArray) -> list[Configuration]:
    """Return every configuration on some replica sets of one size that obeys the rules."""
    rules = problem.rules
    sets = sets[rules.obeyed("replicas", sets)]
    found: list[Configuration] = []
    for places in itertools.combinations(range(sets.shape[1]), rules.voters):
        voters = sets[:, places]
        held = np.isin(voters, np.nonzero(rules.must_vote)[0]).sum(axis=1)
        able = rules.may_vote[voters].all(axis=1) & (held == rules.must_vote.sum())
        for row in np.nonzero(able & rules.obeyed("voters", voters))[0].tolist():
            chosen, replicas = tuple(voters[row].tolist()), tuple(sets[row].tolist())
            leaders = [site for site in chosen if rules.may_lead[site]]
            if problem.demand.leaderless:  # any does: it has no part
                leaders = leaders[:1]
            found.extend(Configuration(site, chosen, replicas) for site in leaders)
    if problem.limits:  # on moves, and the budget beside them
        found = [one for one in found if not any(limit.broken(one) for limit in problem.limits)]
    return found


def _best_of(problem: Problem, sets: IntArray) -> Found | None:
    """Return the best configuration of a block of replica sets; ties by :func:`_in_order`."""
    found = _configurations(problem, sets)
    if not found:
        return None
    values = objective_values(problem, found)
    best = float(values.min())
    if not np.isfinite(best):
        return None
    tied = np.nonzero(values <= best * (1 + TIE))[0].tolist()
    first = min(tied, key=lambda row: _in_order(problem, found[row]))
    one = found[first]
    if not problem.demand.leaderless:
        voters = by_answer_time(problem.demand, one.leader, one.voters)
        one = dataclasses.replace(one, voters=voters)
    return float(values[first]), 0.0, one


def _in_order(problem: Problem, one: Configuration) -> tuple[object, ...]:
    """Return the order among configurations of equal value; the least comes first.

    The leader, the replicas, and the voters closest to the leader.
    """
    voters: tuple[object, ...] = one.voters
    if not problem.demand.leaderless:
        sites = np.arange(problem.demand.site_rtt.shape[-1])
        near = by_answer_time(problem.demand, one.leader, sites)
        voters = tuple(sorted(near.index(site) for site in one.voters))
    return one.leader, one.replicas, voters

"""Every replica set, every choice of voters, every leader: the reference for operations with waits.

Part ``exhaustive.waits`` of the method ``exhaustive``. Nothing is bounded and nothing shared: each
configuration is scored by the one evaluator, many at a time.
O(C(|S|, |R|) · C(|R|, |V|) · |V| · |C| · |R|).
"""

from __future__ import annotations

import itertools

import numpy as np

from formulations.enumeration.enumerate_sets import Found, enumerate_sets
from placement.checks import IntArray
from placement.evaluation.breakdown import objective_values
from placement.evaluation.score import TIE
from placement.evaluation.voter_choice import by_answer_time
from placement.methods import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem

__all__ = ["solve"]

_BLOCK = 200


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every configuration.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    return enumerate_sets(
        problem,
        options,
        lambda sets: _best_of(problem, sets),
        block=_BLOCK,
        instead="'sets'",
    )


def _best_of(problem: Problem, sets: IntArray) -> Found | None:
    """Return the best configuration of a block of replica sets; ties go to the first leader."""
    rules = problem.rules
    sets = sets[rules.obeyed("replicas", sets)]
    if not len(sets):
        return None
    found: list[Configuration] = []
    for places in itertools.combinations(range(sets.shape[1]), rules.voters):
        voters = sets[:, places]
        held = np.isin(voters, np.nonzero(rules.must_vote)[0]).sum(axis=1)
        good = rules.may_vote[voters].all(axis=1) & rules.obeyed("voters", voters)
        good &= held == rules.must_vote.sum()
        for row in np.nonzero(good)[0].tolist():
            leaders = [site for site in voters[row].tolist() if rules.may_lead[site]]
            if problem.demand.leaderless:  # any does: it has no part
                leaders = leaders[:1]
            found.extend(
                Configuration(leader, tuple(voters[row].tolist()), tuple(sets[row].tolist()))
                for leader in leaders
            )
    if not found:
        return None
    values = objective_values(problem, found)
    best = float(values.min())
    if not np.isfinite(best):
        return None
    tied = np.nonzero(values <= best * (1 + TIE))[0].tolist()
    first = min(tied, key=lambda row: (found[row].leader, found[row].replicas, found[row].voters))
    one = found[first]
    if not problem.demand.leaderless:
        order = by_answer_time(problem.demand, one.leader, one.voters)
        one = Configuration(one.leader, order, one.replicas)
    return float(values[first]), 0.0, one

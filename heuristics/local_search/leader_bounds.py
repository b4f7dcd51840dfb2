"""A cheap lower bound per leader: to drop leaders that cannot be optimal, and to bound a plan.

For leader ℓ and at most n replicas, with s_ℓ of :mod:`heuristics.objective_terms`, two relaxations
bound the part of Eq. 1 that R decides, and the larger holds:

    Σ_c min { s_ℓ(c, r) : r ⪯_c ℓ }
    Σ_c s_ℓ(c, ℓ) − the n − 1 largest of { Σ_c max(0, s_ℓ(c, ℓ) − s_ℓ(c, r)) : r ≠ ℓ }, r ⪯_c ℓ

A client is served by ℓ or by something it prefers to ℓ, since ℓ ∈ R: hence the first. A set saves
no more than its members do one by one: hence the second (the Lagrangean bound of the p-median
problem at the multipliers s_ℓ(c, ℓ); Cornuéjols, Fisher and Nemhauser, Management Science 23(8),
1977). To it come Σ_c G[c]·d(c, ℓ), the wait for the m closest sites that may vote, and the price
of ℓ itself.

O(S·C·S) for all leaders.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from heuristics import tuning
from heuristics.objective_terms import ObjectiveTerms
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray


def leader_bounds(
    problem: Problem, terms: ObjectiveTerms, stop: Callable[[], bool] = lambda: False
) -> FloatArray:
    """Lower bound on the objective under each leader, infinite for sites that may not lead.

    Parameters
    ----------
    problem
        The question.
    terms
        Of the problem.
    stop
        Asked between leaders whether time is up. The leaders that are left keep the weaker bound
        of the quorum wait and the price alone.

    Returns
    -------
    ndarray
        Shape (sites,), ms·operations (plus cost_weight times the leader's price).
    """
    rules = problem.rules
    bounds = np.full(terms.sites, math.inf)
    if np.count_nonzero(rules.may_vote) < rules.voters:
        return bounds  # no leader has a plan
    leaders = np.nonzero(rules.may_lead)[0]
    step = max(1, tuning.BOUNDS_BLOCK // max(1, terms.rank.size))
    bounds[leaders] = 0.0
    for first in range(0, len(leaders), step):
        if stop():
            break
        some = leaders[first : first + step]
        bounds[some] = _served(problem, terms, some)
    waits = np.sort(terms.site_rtt[:, leaders][:, :, rules.may_vote], axis=2)
    bounds[leaders] += (
        terms.direct[leaders]
        + terms.votes @ waits[:, :, rules.quorum - 1]
        + terms.money[leaders, leaders]
    )
    return bounds


def _served(problem: Problem, terms: ObjectiveTerms, leaders: IntArray) -> FloatArray:
    """The larger of the two relaxations for some leaders, shape of `leaders`."""
    rules = problem.rules
    summands = np.array([terms.summand(leader) for leader in leaders.tolist()])
    own = np.take_along_axis(summands, leaders[:, np.newaxis, np.newaxis], axis=2)
    before = terms.rank <= terms.rank[:, leaders].T[:, :, np.newaxis]
    saving = np.where(rules.may_hold & before, np.maximum(0.0, own - summands), 0.0)
    total = own.sum(axis=(1, 2))
    each = total - saving.max(axis=2, initial=0.0).sum(axis=1)
    # the leader itself saves nothing, so that it may stay among the sites
    savings = np.sort(saving.sum(axis=1), axis=1)[:, ::-1]
    most = savings[:, : rules.replicas_max - 1].sum(axis=1)
    return np.asarray(np.maximum(each, total - most))

"""A cheap lower bound per leader: enough to drop hopeless leaders, and an honest bound for a plan.

For leader ℓ and at most n replicas, with s_ℓ of :mod:`heuristics.terms`, two relaxations bound the
part of Eq. 1 that R decides, and the larger holds:

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

import numpy as np

from heuristics.terms import Terms
from placement.checks import FloatArray
from placement.problem import Problem

__all__ = ["leader_bounds"]


def leader_bounds(problem: Problem, terms: Terms) -> FloatArray:
    """Lower bound on the objective under each leader, infinite for sites that may not lead.

    Parameters
    ----------
    problem
        The question.
    terms
        Of the problem.

    Returns
    -------
    ndarray
        Shape (sites,), ms·operations (plus cost_weight times the leader's price).
    """
    rules = problem.rules
    bounds = np.full(terms.sites, math.inf)
    rows = np.arange(len(terms.rank))
    for leader in np.nonzero(rules.may_lead)[0].tolist():
        summand = terms.summand(leader)
        own = summand[:, leader]
        usable = rules.may_hold & (terms.rank <= terms.rank[rows, leader][:, np.newaxis])
        saving = np.where(usable, np.maximum(0.0, own[:, np.newaxis] - summand), 0.0)
        each = own.sum() - saving.max(axis=1, initial=0.0).sum()
        others = np.delete(saving.sum(axis=0), leader)
        most = np.sort(others)[::-1][: rules.replicas_max - 1].sum()
        waits = np.sort(terms.site_rtt[:, leader][:, rules.may_vote], axis=1)
        bounds[leader] = (
            max(float(each), float(own.sum() - most))
            + terms.direct[leader]
            + float(terms.votes @ waits[:, rules.quorum - 1])
            + terms.money[leader, leader]
        )
    return bounds

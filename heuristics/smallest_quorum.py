"""Leader with the quickest quorum (method ``smallest-quorum``): a strategy to compare with.

Sharov et al., PVLDB 8(12), 2015, section 6.1: argmin over ℓ of q_ℓ(V). In tier 1 V is given; in
tier 2 it is the best that the replicas offer ℓ, in tier 3 the best that all sites do, and K-means
places the other replicas, as in Algorithm QK for this one leader. With RTTs that vary by interval
the waits are weighted by the rounds of votes. Clients play no part: that is what the comparison
is about. O(S² log S), beside one run of K-means in tier 3.
"""

from __future__ import annotations

import math

import numpy as np

from heuristics.completion import complete_proposal
from heuristics.objective_terms import objective_terms
from heuristics.qk import quorum_of, quorum_then_kmeans
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.plan import Plan
from placement.problem import Problem

__all__ = ["METHOD", "quickest_wait", "solve"]


def quickest_wait(problem: Problem, leader: int, size: int) -> float:
    """Smallest quorum wait in ms that a leader can have with `size` replicas; infinite: none."""
    quorum = quorum_of(problem, leader, size)
    if quorum is None:
        return math.inf
    demand = problem.demand
    weight = demand.quorum if demand.quorum.any() else np.ones(demand.scenarios)
    slowest = demand.site_rtt[:, leader, list(quorum)].max(axis=1)
    return float(weight @ slowest / weight.sum())


def solve(problem: Problem, options: Options) -> Plan:
    """Lead from the candidate with the quickest quorum."""
    del options
    candidates = np.nonzero(problem.rules.may_lead)[0].tolist()
    terms = objective_terms(problem, everyone=True)
    return complete_proposal(
        problem,
        METHOD.name,
        lambda size: sorted(candidates, key=lambda ell: quickest_wait(problem, ell, size)),
        lambda leader, size: quorum_then_kmeans(problem, terms, leader, size),
    )


METHOD = Method(
    name="smallest-quorum",
    call=solve,
    summary="comparison strategy: the leader with the quickest quorum",
    exact=False,
    complexity="O(|S|² log |S|), and K-means in tier 3",
    reference="Sharov et al. 2015, section 6.1",
)

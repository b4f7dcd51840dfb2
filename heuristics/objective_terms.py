"""Eq. 1 split into what the replica set decides and what it does not, for one leader.

For a fixed leader ℓ the score of Eq. 1 is

    Σ_c s_ℓ(c, near(c, R)) + Σ_c G[c]·d(c, ℓ) + D·q_ℓ(V)
    s_ℓ(c, r) = A[c]·d(c, r) + B[c]·d(r, ℓ)

so that a search over R needs the summand s_ℓ, the strict order in which each client prefers
sites, and nothing else of the clients. With RTTs that vary by interval every (scenario, client)
pair is a separate row; a client that neither reads nearby nor is relayed has no summand and no
row.

The score itself is written in :mod:`placement.evaluation.score` only: searches use these terms to
choose a move, and the evaluator to value what they return.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.evaluation.cost_model import cost_model
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ObjectiveTerms:
    """Terms of the objective that a search over replica sets reads."""

    rtt: FloatArray  #: d(c, r) of every row in ms, shape (rows, sites)
    #: place of each site in the row's strict order by (RTT, site order), shape (rows, sites)
    rank: IntArray
    order: IntArray  #: sites in that order, the inverse of `rank`, shape (rows, sites)
    #: `near`, `relay`: A and B of every row, shape (rows,)
    near: FloatArray
    relay: FloatArray
    scenario: IntArray  #: scenario of every row, shape (rows,)
    site_rtt: FloatArray  #: d(r, s) in ms, shape (scenarios, sites, sites)
    votes: FloatArray  #: D per scenario, shape (scenarios,)
    direct: FloatArray  #: Σ_c G[c]·d(c, ℓ) over all scenarios for every ℓ, shape (sites,)
    #: cost_weight times the price of a replica at s under leader ℓ, shape (sites, sites) as [ℓ, s];
    #: zero without a price in the objective
    money: FloatArray
    #: cost_weight times the price of r as the row's nearest replica, shape (rows, sites); None: 0
    paid: FloatArray | None = None

    @property
    def sites(self) -> int:
        """Number of sites."""
        return int(self.site_rtt.shape[-1])

    @cached_property
    def served(self) -> FloatArray:
        """Return A[c]·d(c, r) and the price of r as the row's nearest replica, (rows, sites)."""
        cost = self.near[:, np.newaxis] * self.rtt
        return cost if self.paid is None else cost + self.paid

    def summand(self, leader: int) -> FloatArray:
        """s_ℓ(c, r) = served[c, r] + B[c]·d(r, ℓ), shape (rows, sites), ms·operations."""
        to_leader = self.site_rtt[:, :, leader]
        return np.asarray(self.served + self.relay[:, np.newaxis] * to_leader[self.scenario])


def objective_terms(problem: Problem, *, everyone: bool = False) -> ObjectiveTerms:
    """Split the demand of a problem into rows; O(K·C·S log S) for K scenarios.

    With `everyone`, also the rows whose summand is zero, in the order of (scenario, client).
    """
    demand = problem.demand
    size = demand.site_rtt.shape[-1]
    near, relay = demand.near.reshape(-1), demand.relay.reshape(-1)
    rows = np.nonzero(everyone | (near > 0) | (relay > 0))[0]
    rtt = demand.client_rtt.reshape(-1, size)[rows]
    order = np.argsort(rtt, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(size)[np.newaxis], axis=1)
    weight = problem.rules.cost_weight
    money = np.zeros((size, size))
    if weight:
        for leader in range(size):
            costs = problem.site_costs(leader)
            if costs is not None:
                money[leader] = weight * costs
    paid = None
    if weight and "near reads" in problem.cost_parts:
        model = cost_model(problem.instance)
        if model is not None and model.nearest is not None:
            paid = weight * model.nearest[rows % demand.client_rtt.shape[1]]
    return ObjectiveTerms(
        rtt=rtt,
        rank=rank,
        order=order,
        near=near[rows],
        relay=relay[rows],
        scenario=rows // demand.client_rtt.shape[1],
        site_rtt=demand.site_rtt,
        votes=demand.quorum,
        direct=np.einsum("kc,kcs->s", demand.direct, demand.client_rtt),
        money=money,
        paid=paid,
    )


def total_operations(problem: Problem) -> FloatArray:
    """w_c of Sharov et al., section 5: all operations of each (scenario, client), shape (K·C,)."""
    return np.asarray(problem.demand.counts.sum(axis=-1).reshape(-1))

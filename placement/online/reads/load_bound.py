"""A lower bound on every read strategy, from prices on nodes; no solver is believed.

Let t_k be the load of the busiest node in scenario k. Pricing the rows ρ_kv <= t_k with π_kv >= 0
and the latency budget with μ >= 0 relaxes the problem to independent parts, each solved exactly:

    L(π, μ) =  Σ_i min_A [ (latency_weight + μ)·(g_i/Σ g)·wait_i(A) + g_i·Σ_{v ∈ A} p_v ]
             + Σ_kv π_kv·base_kv + Σ_k min_{0 <= t <= limit} (load_weight·w_k − Σ_v π_kv)·t
             − μ·latency_budget,          p_v = Σ_k π_kv·volume_k/capacity_v

and with a queueing term of weight c_k = queue_weight·w_k per node, a second price θ_kv >= 0 on the
load inside the convex function, whose part is

    min_{0 <= ρ < 1} [ c·ρ/(1 − ρ) − θ·ρ ] = −(√θ − √c)²  where θ > c, else 0.

By weak duality L is a lower bound for *any* prices; good ones come from the duals of a linear
program. Prices whose t would have to be infinite are scaled down until it need not be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placement.online.reads.problem import ReadGoal, ReadProblem
from placement.online.reads.quorum_systems import Quorum
from placement.support.checks import FloatArray

__all__ = ["NodePrices", "cheapest_choice", "infeasible_by", "lower_bound", "node_prices"]


@dataclass(frozen=True, eq=False)
class NodePrices:
    """Prices of the rows that couple the gateways.

    Attributes
    ----------
    peak
        π of the load of the busiest node, shape (scenarios, n).
    queue
        θ of the loads in the queueing term, shape (scenarios, n).
    latency
        μ of the latency budget.
    """

    peak: FloatArray
    queue: FloatArray
    latency: float = 0.0


def node_prices(problem: ReadProblem, prices: NodePrices) -> FloatArray:
    """Price p_v of one read per unit of time at node v, shape (n,)."""
    both = np.maximum(prices.peak, 0.0) + np.maximum(prices.queue, 0.0)
    found: FloatArray = problem.volumes @ both / problem.capacities
    return found


def cheapest_choice(
    problem: ReadProblem, gateway: int, prices: FloatArray, per_ms: float
) -> tuple[float, Quorum]:
    """Cheapest set that `gateway` may ask, per read: Σ prices of its nodes + per_ms·wait."""
    best = problem.quorums.cheapest(gateway, problem.rtt[gateway], prices, per_ms)
    if problem.leader is not None:
        leader = problem.leader
        alone = float(prices[leader]) + per_ms * float(problem.rtt[gateway, leader])
        if best is None or alone <= best[0]:
            best = (alone, (leader,))
    assert best is not None  # the problem has checked that every gateway can read
    return best


def lower_bound(problem: ReadProblem, goal: ReadGoal, prices: NodePrices) -> float:
    """L(π, μ, θ): no strategy within the limits of the goal has a smaller objective.

    With a goal whose weights are scaled to zero, a positive L would be a proof that no strategy
    obeys the limits; :func:`infeasible_by` uses that.
    """
    weights = (goal.load_weight, goal.latency_weight, goal.queue_weight)
    return _lagrangian(problem, goal, prices, weights)


def infeasible_by(problem: ReadProblem, goal: ReadGoal, prices: NodePrices) -> float:
    """Return the amount by which the prices refute the limits; positive: no strategy obeys them."""
    return _lagrangian(problem, goal, prices, (0.0, 0.0, 0.0))


def _lagrangian(
    problem: ReadProblem, goal: ReadGoal, prices: NodePrices, weights: tuple[float, float, float]
) -> float:
    load_weight, latency_weight, queue_weight = weights
    peak = np.maximum(prices.peak, 0.0)
    queue = np.maximum(prices.queue, 0.0)
    budget = max(0.0, prices.latency) if math.isfinite(goal.latency_budget) else 0.0
    earned = load_weight * problem.scenario_weights
    if not math.isfinite(goal.load_limit):
        # t may grow without end, so a scenario may not be priced above what t costs.
        total = peak.sum(axis=1)
        scale = np.minimum(1.0, np.divide(earned, total, out=np.ones_like(total), where=total > 0))
        peak = peak * scale[:, np.newaxis]
    value = float(((peak + queue) * problem.base_load).sum())
    if math.isfinite(goal.load_limit):
        value += float(np.minimum(0.0, earned - peak.sum(axis=1)).sum()) * goal.load_limit
    share = queue_weight * problem.scenario_weights[:, np.newaxis]
    excess = np.sqrt(queue) - np.sqrt(share)
    value -= float((np.where(queue > share, excess, 0.0) ** 2).sum())
    per_node = node_prices(problem, NodePrices(peak, queue))
    shares = problem.shares
    for gateway in range(problem.nodes):
        rate = float(problem.reads[gateway])
        per_ms = (latency_weight + budget) * float(shares[gateway])
        if rate > 0.0:
            value += rate * cheapest_choice(problem, gateway, per_node, per_ms / rate)[0]
    return value - (budget * goal.latency_budget if budget else 0.0)

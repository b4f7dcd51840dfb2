"""The evaluator: loads, latency, objective of a read strategy. Every figure shown is its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.online.reads.problem import ReadGoal, ReadProblem
from placement.online.reads.quorum_mixture import ReadStrategy
from placement.support.checks import FloatArray

__all__ = ["TOLERANCE", "ReadFigures", "evaluate"]

TOLERANCE = 1e-9
"""Limits on load and latency may be exceeded by this part of them: a strategy of a linear programme
sits on its limits, and summing it up again rounds."""


@dataclass(frozen=True, eq=False)
class ReadFigures:
    """Figures of a strategy.

    Attributes
    ----------
    load
        ρ, utilisation per scenario and node, shape (scenarios, n).
    peak
        Σ_k w_k max_v ρ_kv.
    latency
        Mean over the reads of the time until the quorum has answered, ms, without queueing.
    gateway_latency
        The same per gateway, shape (n,).
    queued
        Σ_k w_k Σ_v ρ_kv/(1 − ρ_kv); infinite when a node is saturated.
    leader_served
        Part of all reads that L serves, alone or in a quorum; 0 without a leaseholder.
    """

    load: FloatArray
    peak: float
    latency: float
    gateway_latency: FloatArray
    queued: float
    leader_served: float

    def objective(self, goal: ReadGoal) -> float:
        """Value of the goal, without its limits."""
        value = goal.load_weight * self.peak + goal.latency_weight * self.latency
        return value + goal.queue_weight * self.queued if goal.queue_weight else value

    def broken(self, goal: ReadGoal) -> tuple[str, ...]:
        """Return the limits of the goal that do not hold, beyond :data:`TOLERANCE`."""
        found = []
        largest = float(self.load.max())
        if largest > _relaxed(goal.load_limit):
            found.append(f"a node is used {largest:.9g}, the limit is {goal.load_limit:g}")
        if self.latency > _relaxed(goal.latency_budget):
            found.append(
                f"the mean latency is {self.latency:.9g} ms, the budget {goal.latency_budget:g} ms"
            )
        return tuple(found)


def _relaxed(limit: float) -> float:
    return limit * (1.0 + TOLERANCE)


def evaluate(problem: ReadProblem, strategy: ReadStrategy) -> ReadFigures:
    """Compute the figures of a strategy; O(members of all its quorums)."""
    visits = np.zeros(problem.nodes)
    waits = np.zeros(problem.nodes)
    for gateway, mixture in enumerate(strategy.mixtures):
        for quorum, probability in mixture:
            visits[list(quorum)] += problem.reads[gateway] * probability
            waits[gateway] += probability * problem.latency(gateway, quorum)
    load = problem.base_load + np.outer(problem.volumes, visits / problem.capacities)
    with np.errstate(divide="ignore"):
        queue = np.where(load < 1.0, load / np.maximum(1.0 - load, 0.0), np.inf)
    counted = problem.scenario_weights > 0
    queued = float(problem.scenario_weights[counted] @ queue.sum(axis=1)[counted])
    leader = 0.0 if problem.leader is None else visits[problem.leader] / problem.reads.sum()
    return ReadFigures(
        load,
        float(problem.scenario_weights @ load.max(axis=1)),
        float(problem.shares @ waits),
        waits,
        queued,
        float(leader),
    )

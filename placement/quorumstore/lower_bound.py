"""A lower bound that costs one evaluation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from placement.quorumstore.goal import Goal, Target
from placement.quorumstore.latency import metrics
from placement.quorumstore.problem import QuorumProblem

__all__ = ["full_replication_bound"]


def full_replication_bound(
    problem: QuorumProblem, goal: Goal | None = None, pair: tuple[int, int, int] | None = None
) -> float:
    """Value of the goal if every site held a replica, bounds left aside.

    For fixed (R, W) another replica never raises an order statistic, and under contingency the set
    after a loss only grows: so no set of N replicas has a smaller value ("P3").

    Parameters
    ----------
    problem
        The key.
    goal
        Another goal than the problem's.
    pair
        (N, R, W); None: the least over all pairs of the problem.

    Returns
    -------
    The bound; 0 for a cost, which grows with every replica; ∞ where there is no pair.
    """
    goal = goal or problem.goal
    if goal.target is Target.COST:
        return 0.0
    free = replace(goal, read_bound=math.inf, write_bound=math.inf, cost_bound=math.inf)
    everywhere = np.arange(len(problem.sites))[np.newaxis]
    bare = replace(problem, goal=free, prices=None)
    best = math.inf
    for _, read, write in problem.pairs if pair is None else (pair,):
        figures = metrics(bare, everywhere, read, write)
        best = min(best, float(free.values(figures, problem.rules.contingency)[0]))
    return best

"""Placements made without an optimiser: the baselines of figures.

No baseline uses thresholds. Each fixes the set by its rule and takes the quorums given, by
default N = 3, R = W = 2.
"""

from __future__ import annotations

import time

import numpy as np

from heuristics.quorumstore.rank_sets import Best, finish
from placement.errors import InputError
from placement.quorumstore import QuorumPlan, QuorumProblem

__all__ = ["busiest_sites", "home_and_nearest", "random_placement", "weighted_medians"]

_DEFAULT = (3, 2, 2)


def random_placement(
    problem: QuorumProblem,
    rng: np.random.Generator,
    pair: tuple[int, int, int] = _DEFAULT,
) -> QuorumPlan:
    """Return N sites drawn uniformly: Cassandra's random partitioner."""
    chosen = rng.choice(len(problem.sites), _checked(problem, pair), replace=False)
    return _plan(problem, chosen.tolist(), pair, "random placement")


def busiest_sites(problem: QuorumProblem, pair: tuple[int, int, int] = _DEFAULT) -> QuorumPlan:
    """Return the N sites with most requests; ties to the lower index."""
    demand = problem.reads + problem.writes
    chosen = np.argsort(-demand, kind="stable")[: _checked(problem, pair)]
    return _plan(problem, chosen.tolist(), pair, "busiest sites")


def home_and_nearest(problem: QuorumProblem, pair: tuple[int, int, int] = _DEFAULT) -> QuorumPlan:
    """Return the busiest site and the N − 1 sites nearest to it."""
    home = int(np.argmax(problem.reads + problem.writes))
    order = np.argsort(problem.rtt[home], kind="stable").tolist()
    order.remove(home)
    chosen = [home, *order[: _checked(problem, pair) - 1]]
    return _plan(problem, chosen, pair, "home and nearest")


def weighted_medians(problem: QuorumProblem, pair: tuple[int, int, int] = _DEFAULT) -> QuorumPlan:
    """Return N weighted medians by greedy insertion: least total RTT to the nearest replica.

    Ties to the lower index. O(N·n²).
    """
    demand = (problem.reads + problem.writes).astype(np.float64)
    nearest = np.full(len(problem.sites), np.inf)
    chosen: list[int] = []
    for _ in range(_checked(problem, pair)):
        totals = demand @ np.minimum(nearest[:, np.newaxis], problem.rtt)
        totals[chosen] = np.inf
        site = int(np.argmin(totals))
        chosen.append(site)
        nearest = np.minimum(nearest, problem.rtt[:, site])
    return _plan(problem, chosen, pair, "weighted medians")


def _checked(problem: QuorumProblem, pair: tuple[int, int, int]) -> int:
    total, read, write = pair
    if not (1 <= max(read, write) <= total <= len(problem.sites)):
        raise InputError(
            "no such quorums",
            field="pair",
            value=pair,
            expected=f"(N, R, W) with R, W <= N <= {len(problem.sites)}",
        )
    return total


def _plan(
    problem: QuorumProblem, chosen: list[int], pair: tuple[int, int, int], method: str
) -> QuorumPlan:
    began = time.perf_counter()
    best = Best()
    best.offer(problem, np.array([sorted(chosen)], dtype=np.intp), pair[1], pair[2])
    return finish(problem, best, method, began)

"""Placements made without an optimiser, and all heuristics by name.

No baseline uses thresholds. Each fixes the set by its rule and takes the quorums given, by
default N = 3, R = W = 2.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from heuristics.quorumstore.set_search import coverage_greedy, finish, local_search
from placement.errors import InputError, UnsupportedError
from placement.quorumstore import QuorumPlan, QuorumProblem
from placement.quorumstore.set_swaps import BestSet

_SEED = 1
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
    best = BestSet(problem, problem.goal)
    best.offer(np.array([sorted(chosen)], dtype=np.intp), pair[1], pair[2])
    return finish(best, method, began)


def heuristics() -> dict[str, Callable[[QuorumProblem], QuorumPlan]]:
    """Return the heuristics by name; random ones always draw the same.

    Baselines that fix N, R and W take 3-2-2 where the rules leave it, else the first that they do.
    """
    return {
        "coverage-greedy": coverage_greedy,
        "local-search": lambda problem: local_search(problem, np.random.default_rng(_SEED)),
        "weighted-medians": lambda problem: weighted_medians(problem, _pair(problem)),
        "busiest-sites": lambda problem: busiest_sites(problem, _pair(problem)),
        "home-and-nearest": lambda problem: home_and_nearest(problem, _pair(problem)),
        "random": lambda problem: random_placement(
            problem, np.random.default_rng(_SEED), _pair(problem)
        ),
    }


def _pair(problem: QuorumProblem) -> tuple[int, int, int]:
    if not problem.pairs:
        raise UnsupportedError("no N, R and W obey the rules")
    return _DEFAULT if _DEFAULT in problem.pairs else problem.pairs[0]

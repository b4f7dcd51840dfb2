"""Truncated-coverage greedy, bisected over the threshold.

At a threshold T, a client that wants R replicas within T counts min(|S ∩ B_i(T)|, R)/R of its
requests. The sum is monotone and submodular in S. Adding the site with the largest gain N times
therefore reaches (1 − 1/e) of its maximum (Nemhauser, Wolsey, Fisher, Mathematical Programming 14,
1978). This is a promise about this surrogate, not about the threshold. Under contingency clients
want one replica more, R + 1 and W + 1: with p = 1 and clients kept this is exactly N-1C.
"""

from __future__ import annotations

import time

import numpy as np

from heuristics.quorumstore.rank_sets import Best, finish
from placement.quorumstore import QuorumPlan, QuorumProblem
from placement.support.checks import FloatArray
from placement.support.status import Termination

__all__ = ["coverage_greedy", "greedy_sets"]

METHOD = "coverage greedy"


def coverage_greedy(problem: QuorumProblem) -> QuorumPlan:
    """Return a good configuration, fast.

    Each (N, R, W) is bisected over the distinct RTTs: if the greedy set keeps its threshold within
    T, a smaller T is tried, else a larger one. Feasibility of a heuristic is not monotone in T, so
    all sets met on the way are ranked and the best is kept.

    Complexity: O(log n · N · n²) per (N, R, W), besides about 2·log n evaluations.
    """
    began = time.perf_counter()
    best = Best()
    termination = Termination.FINISHED
    try:
        for pair in problem.pairs:
            greedy_sets(problem, pair, best)
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    return finish(problem, best, METHOD, began, termination)


def greedy_sets(problem: QuorumProblem, pair: tuple[int, int, int], best: Best) -> None:
    """Bisect the threshold for one (N, R, W), offering every greedy set to `best`."""
    _total, read, write = pair
    values = np.unique(problem.rtt)
    low, high = 0, len(values) - 1
    while low <= high:
        middle = (low + high) // 2
        chosen = _greedy(problem, pair, float(values[middle]))
        if chosen is None:
            low = middle + 1
            continue
        found = best.offer(problem, np.array([chosen]), read, write)
        # The rank's second key is the value of the goal without its bounds.
        if found is not None and found[1][1] <= values[middle]:
            high = middle - 1
        else:
            low = middle + 1


def _greedy(problem: QuorumProblem, pair: tuple[int, int, int], limit: float) -> list[int] | None:
    """N sites by largest gain in truncated coverage; ties by demand-weighted RTT, then index.

    None when the regional rules leave no N-th site.
    """
    total, read, write = pair
    more = 1 if problem.rules.contingency else 0
    within = problem.rtt <= limit
    chosen: list[int] = []
    covered = np.zeros(len(problem.sites), dtype=np.int64)
    sides = [
        (counts / counts.sum(), quorum + more)
        for counts, quorum in ((problem.reads, read), (problem.writes, write))
        if counts.any()
    ]
    shares: FloatArray = np.sum([share for share, _ in sides], axis=0)
    remoteness = shares @ problem.rtt
    cap = problem.region_cap(total, max(read, write))
    labels = problem.region_index
    for _ in range(total):
        gain = np.zeros(len(problem.sites))
        for share, wanted in sides:
            gain += (share * (covered < wanted) / wanted) @ within
        full = np.bincount(labels[chosen], minlength=labels.max() + 1)[labels] >= cap
        gain[full] = -np.inf
        gain[chosen] = -np.inf
        site = int(np.lexsort((remoteness, -gain))[0])
        if gain[site] == -np.inf:
            return None
        chosen.append(site)
        covered += within[:, site]
    return sorted(chosen)

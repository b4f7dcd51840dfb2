"""Local search over replica sets: swap one, swap two where stuck, change (N, R, W) along the way.

The threshold is flat: thousands of sets share it, so sets are compared by the whole tie rule
(normal threshold, sum of both sides, mean latency), which gives a descent somewhere to go.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np

from heuristics import tuning
from heuristics.quorumstore.greedy_cover import greedy_sets
from heuristics.quorumstore.rank_sets import Best, finish
from placement.errors import InputError
from placement.quorumstore import QuorumPlan, QuorumProblem
from placement.quorumstore.set_neighbours import swap_neighbours
from placement.support.checks import IntArray
from placement.support.status import SearchEnd, end_early

__all__ = ["local_search"]

METHOD = "local search"


def local_search(
    problem: QuorumProblem,
    rng: np.random.Generator,
    *,
    starts: int = 2,
    pair_swaps: int = 20_000,
    time_limit: float = float("inf"),
) -> QuorumPlan:
    """Return a configuration that no single swap improves.

    For every (N, R, W) the search starts from the greedy sets and from `starts` random ones, moves
    to the best single swap while that improves, then tries up to `pair_swaps` swaps of two.

    Parameters
    ----------
    problem
        The key.
    rng
        Source of randomness.
    starts
        Random starts per (N, R, W).
    pair_swaps
        Swaps of two replicas tried at once when stuck; all of them where there are no more, else a
        random sample. 0 leaves them out.
    time_limit
        Seconds; the best so far is returned when they have passed, or at Ctrl-C.

    Notes
    -----
    One round of single swaps evaluates N·(n − N) sets: 110 for N = 5, n = 27.
    """
    if starts < 0 or pair_swaps < 0:
        raise InputError(
            "out of range", field="starts, pair_swaps", value=(starts, pair_swaps), expected=">= 0"
        )
    began = time.perf_counter()
    deadline = began + time_limit
    overall = Best()
    end = SearchEnd()
    with end_early(end):
        for pair in problem.pairs:
            total, read, write = pair
            seeds = Best()
            greedy_sets(problem, pair, seeds)
            _adopt(overall, seeds)
            first = [] if seeds.configuration is None else [seeds.configuration.replicas]
            randoms = [
                tuple(sorted(rng.choice(len(problem.sites), total, replace=False).tolist()))
                for _ in range(starts)
            ]
            for start in [*first, *randoms]:
                found = Best()
                try:
                    _descend(problem, start, read, write, found, rng, pair_swaps, deadline)
                finally:
                    _adopt(overall, found)
    return finish(problem, overall, METHOD, began, end.termination)


def _descend(
    problem: QuorumProblem,
    start: tuple[int, ...],
    read: int,
    write: int,
    best: Best,
    rng: np.random.Generator,
    pair_swaps: int,
    deadline: float,
) -> None:
    best.offer(problem, np.array([start], dtype=np.intp), read, write)
    current = start
    while True:
        before = best.configuration
        _offer_all(
            problem, swap_neighbours(current, len(problem.sites)), read, write, best, deadline
        )
        if best.configuration == before and pair_swaps:
            rows = _double_swaps(current, len(problem.sites), rng, pair_swaps)
            _offer_all(problem, rows, read, write, best, deadline)
        if best.configuration == before or best.configuration is None:
            return
        current = best.configuration.replicas


def _double_swaps(
    replicas: tuple[int, ...], sites: int, rng: np.random.Generator, most: int
) -> IntArray:
    """Sets that differ in two members: all of them, or a random sample of `most`."""
    outside = np.array([site for site in range(sites) if site not in replicas], dtype=np.intp)
    out_pairs = np.array(list(combinations(range(len(replicas)), 2)), dtype=np.intp).reshape(-1, 2)
    in_pairs = np.array(list(combinations(outside.tolist(), 2)), dtype=np.intp).reshape(-1, 2)
    total = len(out_pairs) * len(in_pairs)
    if total == 0:
        return np.empty((0, len(replicas)), dtype=np.intp)
    picks = np.arange(total) if total <= most else rng.choice(total, most, replace=False)
    rows = np.tile(np.array(replicas, dtype=np.intp), (len(picks), 1))
    leaving, entering = out_pairs[picks // len(in_pairs)], in_pairs[picks % len(in_pairs)]
    np.put_along_axis(rows, leaving, entering, axis=1)
    rows.sort(axis=1)
    return rows


def _offer_all(
    problem: QuorumProblem,
    rows: IntArray,
    read: int,
    write: int,
    best: Best,
    deadline: float,
) -> None:
    for low in range(0, len(rows), tuning.SWAP_BATCH):
        if time.perf_counter() > deadline:
            raise TimeoutError
        best.offer(problem, rows[low : low + tuning.SWAP_BATCH], read, write)


def _adopt(overall: Best, found: Best) -> None:
    if found.configuration is not None and found.key < overall.key:
        overall.configuration, overall.key = found.configuration, found.key

"""Heuristics for quorum stores: greedy coverage, and local search that starts from it.

Coverage greedy, bisected over the threshold. At a threshold T, a client that wants R replicas
within T counts min(|S ∩ B_i(T)|, R)/R of its requests. The sum is monotone and submodular in S.
Adding the site with the largest gain N times therefore reaches (1 − 1/e) of its maximum (Nemhauser,
Wolsey, Fisher, Mathematical Programming 14, 1978). This is a promise about this surrogate, not
about the threshold. Under contingency clients want one replica more, R + 1 and W + 1: with p = 1
and clients kept this is exactly N-1C.

Local search swaps one site, swaps two where stuck, for each (N, R, W). The threshold is flat:
thousands of sets share it, so sets are compared by the excess over the bounds and then by the whole
tie rule, which gives a descent somewhere to go.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from placement.errors import InputError
from placement.quorumstore import (
    Goal,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    full_replication_bound,
    metrics,
    structural_reasons,
)
from placement.quorumstore.goal import judged_thresholds, second_key
from placement.quorumstore.latency import swap_neighbours
from placement.support.checks import FloatArray, IntArray
from placement.support.status import SearchEnd, Termination, end_early

__all__ = ["Best", "coverage_greedy", "finish", "greedy_sets", "local_search", "rank"]

_SWAP_BATCH = 2_000
"""Sets of replicas that are evaluated at once."""


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
    return finish(problem, best, "coverage greedy", began, termination)


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
    return finish(problem, overall, "local search", began, end.termination)


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
    for low in range(0, len(rows), _SWAP_BATCH):
        if time.perf_counter() > deadline:
            raise TimeoutError
        best.offer(problem, rows[low : low + _SWAP_BATCH], read, write)


def _adopt(overall: Best, found: Best) -> None:
    if found.configuration is not None and found.key < overall.key:
        overall.configuration, overall.key = found.configuration, found.key


# --- order of sets ---------------------------------------------------------------------------


@dataclass(slots=True)
class Best:
    """The best configuration seen, with its rank."""

    configuration: QuorumConfiguration | None = None
    key: tuple[float, ...] = (np.inf,)

    def offer(
        self, problem: QuorumProblem, sets: IntArray, read: int, write: int
    ) -> tuple[int, tuple[float, ...]] | None:
        """Rank `sets` and remember the best sets; return (its row, its rank).

        Sets that break a regional rule are ignored; None when all do.
        """
        allowed = np.flatnonzero(problem.admissible(sets, max(read, write)))
        if not allowed.size:
            return None
        keys = rank(problem, sets[allowed], read, write)
        place = int(np.lexsort(tuple(keys[::-1]))[0])
        row = int(allowed[place])
        key = tuple(float(part[place]) for part in keys)
        if self.configuration is None or key < self.key:
            self.configuration = QuorumConfiguration(tuple(sets[row].tolist()), read, write)
            self.key = key
        return row, key


def rank(problem: QuorumProblem, sets: IntArray, read: int, write: int) -> list[FloatArray]:
    """Keys to be minimised one after the other, arrays of shape (k,).

    First by how much the bounds are exceeded (0: not at all), then the goal without its bounds,
    then keys 2 to 5 of the tie rule. The threshold alone is flat (thousands of sets share it), so
    without the last keys a descent has nowhere to go.
    """
    contingency = problem.rules.contingency
    figures = metrics(problem, sets, read, write)
    judged = judged_thresholds(figures, contingency)
    goal = problem.goal
    excess = _excess(judged[0], goal.read_bound)
    excess = excess + _excess(judged[1], goal.write_bound)
    keys = [excess, _unbounded(goal).values(figures, contingency)]
    second = second_key(goal, figures, contingency)
    if second is not None:
        keys.append(second)
    return [
        *keys,
        np.maximum(figures.normal_read, figures.normal_write),
        figures.normal_read + figures.normal_write,
        figures.mean,
    ]


def finish(
    problem: QuorumProblem,
    best: Best,
    method: str,
    began: float,
    termination: Termination = Termination.FINISHED,
) -> QuorumPlan:
    """Turn the best configuration into a plan, with the bound of a replica at every site."""
    reasons = structural_reasons(problem)
    bound = np.inf if reasons else full_replication_bound(problem)
    configuration = best.configuration
    notes: Sequence[str] = ()
    if configuration is not None and best.key[0] > 0:
        configuration = None
        notes = (f"no configuration within the bounds was found (excess {best.key[0]:g})",)
    return QuorumPlan.of(
        problem,
        configuration,
        method=method,
        bound=bound,
        termination=termination,
        seconds=time.perf_counter() - began,
        reasons=reasons,
        notes=notes,
    )


def _excess(values: FloatArray, bound: float) -> FloatArray:
    if np.isinf(bound):
        return np.zeros_like(values)
    return np.maximum(values - bound, 0.0) / max(bound, 1e-9)


def _unbounded(goal: Goal) -> Goal:
    return replace(goal, read_bound=np.inf, write_bound=np.inf)

"""Heuristics for quorum stores: baselines, greedy coverage, and local search that starts from it.

No baseline uses thresholds. Each fixes the set by its rule and takes the quorums given, by
default N = 3, R = W = 2.

Coverage greedy, bisected over the threshold. At a threshold T, a client that wants R replicas
within T counts min(|S ∩ B_i(T)|, R)/R of its requests. The sum is monotone and submodular in S.
Adding the site with the largest gain N times therefore reaches (1 − 1/e) of its maximum (Nemhauser,
Wolsey, Fisher, Mathematical Programming 14, 1978). This is a promise about this surrogate, not
about the threshold. Under contingency clients want one replica more, R + 1 and W + 1: with p = 1
and clients kept this is exactly N-1C.

Local search swaps one site (:mod:`placement.quorumstore.plan`), swaps two where stuck, for
each (N, R, W).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from placement.errors import InputError, UnsupportedError
from placement.quorumstore import (
    QuorumPlan,
    QuorumProblem,
    full_replication_bound,
    structural_reasons,
)
from placement.quorumstore.plan import BestSet
from placement.support.checks import FloatArray, IntArray
from placement.support.status import SearchEnd, Termination, end_early


def coverage_greedy(problem: QuorumProblem) -> QuorumPlan:
    """Return a good configuration, fast.

    Each (N, R, W) is bisected over the distinct RTTs: if the greedy set keeps its threshold within
    T, a smaller T is tried, else a larger one. Feasibility of a heuristic is not monotone in T, so
    all sets met on the way are ranked and the best is kept.

    Complexity: O(log n · N · n²) per (N, R, W), besides about 2·log n evaluations.
    """
    began = time.perf_counter()
    best = BestSet(problem, problem.goal)
    termination = Termination.FINISHED
    try:
        for pair in problem.pairs:
            greedy_sets(pair, best)
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    return finish(best, "coverage greedy", began, termination)


def greedy_sets(pair: tuple[int, int, int], best: BestSet) -> None:
    """Bisect the threshold for one (N, R, W), offering every greedy set to `best`."""
    _total, read, write = pair
    values = np.unique(best.problem.rtt)
    low, high = 0, len(values) - 1
    while low <= high:
        middle = (low + high) // 2
        chosen = _greedy(best.problem, pair, float(values[middle]))
        found = None if chosen is None else best.offer(np.array([chosen]), read, write)
        # The second number is the value of the goal without its bounds.
        if found is not None and found[1] <= values[middle]:
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
    overall = BestSet(problem, problem.goal)
    end = SearchEnd()
    with end_early(end):
        for pair in problem.pairs:
            total, read, write = pair
            greedy = BestSet(problem, problem.goal)
            greedy_sets(pair, greedy)
            overall.take(greedy)
            found = greedy.configuration
            starts_here = [] if found is None else [list(found.replicas)]
            for _ in range(starts):
                drawn = rng.choice(len(problem.sites), total, replace=False)
                starts_here.append(sorted(drawn.tolist()))
            for start in starts_here:
                best = BestSet(problem, problem.goal, deadline=began + time_limit)
                try:
                    best.offer(np.array([start], dtype=np.intp), read, write)
                    _descend(best, rng, pair_swaps)
                finally:
                    overall.take(best)
    return finish(overall, "local search", began, end.termination)


def _descend(best: BestSet, rng: np.random.Generator, pair_swaps: int) -> None:
    """Take swaps of one while they improve, of two where stuck, and begin again."""
    before = None
    while best.configuration is not None and best.configuration != before:
        best.descend()
        before = best.configuration
        if pair_swaps:
            rows = _double_swaps(before.replicas, len(best.problem.sites), rng, pair_swaps)
            best.offer(rows, before.read, before.write)


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


def finish(
    best: BestSet,
    method: str,
    began: float,
    termination: Termination = Termination.FINISHED,
) -> QuorumPlan:
    """Turn the best configuration into a plan, with the bound of a replica at every site."""
    problem = best.problem
    reasons = structural_reasons(problem)
    configuration = best.configuration
    notes: tuple[str, ...] = ()
    if configuration is not None and not best.within:
        configuration = None
        notes = (f"no configuration within the bounds was found (excess {best.rank[0]:g})",)
    return QuorumPlan.of(
        problem,
        configuration,
        method=method,
        bound=np.inf if reasons else full_replication_bound(problem),
        termination=termination,
        seconds=time.perf_counter() - began,
        reasons=reasons,
        notes=notes,
    )


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


def heuristics(time_limit: float = math.inf) -> dict[str, Callable[[QuorumProblem], QuorumPlan]]:
    """Return the heuristics by name; random ones always draw the same, searches keep the limit.

    Baselines that fix N, R and W take 3-2-2 where the rules leave it, else the first that they do.
    """
    return {
        "coverage-greedy": coverage_greedy,
        "local-search": lambda problem: local_search(
            problem, np.random.default_rng(_SEED), time_limit=time_limit
        ),
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

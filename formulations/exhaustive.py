"""Tier 3 by enumeration (method ``exhaustive``): every replica set, and tier 2 for each.

The brute force of Sharov et al., PVLDB 8(12), 2015, section 5, and the referee of every other exact
method: simple on purpose, vectorised over replica sets. Voters come from Algorithm 2 where greedy is
exact (one RTT matrix, caps on nested levels) and from :func:`placement.voting.best_voters` elsewhere.
O(C(|S|, |R|)·|R|·C).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from placement.checks import BoolArray, FloatArray, IntArray
from placement.configuration import Configuration, site_costs
from placement.errors import LimitError
from placement.methods import Method, Options, Progress, Setting
from placement.plan import Plan, objective
from placement.problem import Problem
from placement.score import TIE, score_many
from placement.status import Termination
from placement.voting import best_voters, greedy_waits

__all__ = ["METHOD", "combinations", "count_sets", "solve"]

_BLOCK = 20_000
"""Replica sets evaluated at a time: enough to amortise NumPy, few enough for Ctrl-C."""


def count_sets(problem: Problem) -> int:
    """Return how many replica sets exhaustive search looks at."""
    rules = problem.rules
    free, pinned = int((rules.may_hold & ~rules.must_hold).sum()), int(rules.must_hold.sum())
    return sum(
        math.comb(free, size - pinned) for size in range(rules.replicas_min, rules.replicas_max + 1)
    )


def combinations(items: IntArray, size: int, block: int = _BLOCK) -> Iterator[IntArray]:
    """Yield all subsets of `size` in lexicographic order, in arrays of at most about `block` rows."""
    count = len(items)
    if size > count:
        return
    # Extend prefixes one item at a time while they are few, then finish each block on its own.
    yield from _extend(items, np.zeros((1, 0), dtype=np.intp), size, block)


def _extend(items: IntArray, chosen: IntArray, size: int, block: int) -> Iterator[IntArray]:
    """Depth-first extension of the position prefixes `chosen` to full subsets, in order."""
    length = chosen.shape[1]
    if length == size:
        yield items[chosen]
        return
    last = chosen[:, -1] if length else np.full(len(chosen), -1, dtype=np.intp)
    stop = len(items) - (size - length) + 1
    widths = stop - (last + 1)
    rows = np.repeat(np.arange(len(chosen)), widths)
    offsets = np.arange(len(rows)) - np.repeat(np.cumsum(widths) - widths, widths)
    longer = np.column_stack([chosen[rows], last[rows] + 1 + offsets])
    if len(longer) > block:
        parts = np.array_split(longer, -(-len(longer) // block))
    else:
        parts = [longer]
    for part in parts:
        yield from _extend(items, part, size, block)


class _Search:
    """Best configuration so far, and how far the enumeration has come."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.value = math.inf
        self.best: Configuration | None = None

    def offer(self, leaders: IntArray, replicas: IntArray, values: FloatArray) -> None:
        """Take the best of many (leader, R) pairs; ties to the lower leader, then the lower R."""
        least = float(values.min(initial=math.inf))
        if not least <= self.value * (1 + TIE) or math.isinf(least):
            return
        tied = np.nonzero(values <= least * (1 + TIE))[0]
        keys = np.column_stack([leaders[tied], replicas[tied]])
        first = tied[np.lexsort(keys.T[::-1])[0]]
        leader, row = int(leaders[first]), replicas[first]
        if self.best is not None and least >= self.value * (1 - TIE):
            # A tie with an earlier block: lexicographic, with the shorter set first.
            if (leader, len(row), tuple(row)) >= (
                self.best.leader,
                len(self.best.replicas),
                self.best.replicas,
            ):
                return
        voters = best_voters(self.problem.demand, self.problem.rules, leader, row)
        assert voters is not None  # its value is finite
        self.best = Configuration.of(leader, voters, row.tolist())
        self.value = objective(self.problem, self.best)


def solve(problem: Problem, options: Options) -> Plan:
    """Evaluate every replica set with every leader.

    Raises
    ------
    LimitError
        When there are more replica sets than the setting ``limit``.
    """
    rules = problem.rules
    total = count_sets(problem)
    limit = int(str(options.settings["limit"]))
    if total > limit:
        raise LimitError(
            f"{total:,} replica sets are more than the limit of {limit:,}; use 'exact', or raise "
            "the setting 'limit'"
        )
    started = time.perf_counter()
    search = _Search(problem)
    termination = Termination.FINISHED
    done = 0
    pinned = np.nonzero(rules.must_hold)[0]
    free = np.nonzero(rules.may_hold & ~rules.must_hold)[0]
    try:
        for size in range(rules.replicas_min, rules.replicas_max + 1):
            for block in combinations(free, size - len(pinned)):
                fixed = np.broadcast_to(pinned, (len(block), len(pinned)))
                replicas = np.sort(np.hstack([block, fixed]), axis=1)
                _evaluate(problem, replicas, search)
                done += len(block)
                seconds = time.perf_counter() - started
                options.report(Progress(seconds, search.value, -math.inf, done, total))
                if options.time_limit is not None and seconds > options.time_limit and done < total:
                    raise TimeoutError
    except TimeoutError:
        termination = Termination.TIME_LIMIT
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    finished = termination is Termination.FINISHED
    if search.best is None and finished:
        return Plan.infeasible(
            problem,
            method=METHOD.name,
            reasons=(f"none of the {total:,} replica sets obeys all rules",),
        )
    return Plan.of(
        problem,
        search.best,
        method=METHOD.name,
        bound=search.value if finished else -math.inf,
        termination=termination,
        stats={"sets": done, "of": total},
    )


def _evaluate(problem: Problem, replicas: IntArray, search: _Search) -> None:
    """Offer the best of a block of replica sets (rows ascending) to the search."""
    rules, demand = problem.rules, problem.demand
    replicas = replicas[_obey(problem, replicas)]
    if not len(replicas):
        return
    size = replicas.shape[1]
    rows = np.repeat(replicas, size, axis=0)
    leaders = replicas.reshape(-1)
    allowed = rules.may_lead[leaders]
    rows, leaders = rows[allowed], leaders[allowed]
    if not len(leaders):
        return
    if demand.scenarios == 1 and rules.nested_voter_caps:
        waits = greedy_waits(rules, demand.site_rtt[0], leaders, rows)
        found = np.isfinite(waits)
        # The voters enter Eq. 1 only by their wait: one voter that answers after it stands for all.
        values = _values_from_waits(problem, leaders, rows, np.where(found, waits, 0.0))
    else:
        voters = [
            best_voters(demand, rules, int(ell), row)
            for ell, row in zip(leaders, rows, strict=True)
        ]
        found = np.array([chosen is not None for chosen in voters])
        stand_in = (0,) * rules.voters
        values = score_many(
            demand,
            leaders,
            [chosen if chosen is not None else stand_in for chosen in voters],
            rows,
            rules.quorum,
        )
    values = values + _money(problem, leaders, rows)
    search.offer(leaders, rows, np.where(found, values, math.inf))


def _values_from_waits(
    problem: Problem, leaders: IntArray, rows: IntArray, waits: FloatArray
) -> FloatArray:
    """Eq. 1 with known quorum waits: the wait-free score plus D·q."""
    demand = problem.demand
    alone = score_many(demand, leaders, leaders[:, np.newaxis], rows, 1)  # q = d(ℓ, ℓ) = 0
    return np.asarray(alone + demand.quorum[0] * waits)


def _money(problem: Problem, leaders: IntArray, rows: IntArray) -> FloatArray:
    """cost_weight · cost, infinite above the budget."""
    rules = problem.rules
    if rules.budget is None and not rules.cost_weight:
        return np.zeros(len(leaders))
    costs = np.array([site_costs(problem.instance, ell) for ell in range(len(rules.may_hold))])
    total = costs[leaders[:, np.newaxis], rows].sum(axis=1)
    budget = math.inf if rules.budget is None else rules.budget + 1e-9 * (1 + rules.budget)
    return np.where(total <= budget, rules.cost_weight * total, math.inf)


def _obey(problem: Problem, replicas: IntArray) -> BoolArray:
    """Which rows obey the diversity rules for replicas."""
    good = np.ones(len(replicas), dtype=bool)
    rows = np.arange(len(replicas))[:, np.newaxis]
    for group in problem.rules.of("replicas"):
        held = np.zeros((len(replicas), len(group.names)), dtype=np.intp)
        np.add.at(held, (rows, group.labels[replicas]), 1)
        if group.cap is not None:
            good &= held.max(axis=1) <= group.cap
        if group.min_domains is not None:
            good &= (held > 0).sum(axis=1) >= group.min_domains
    return good


METHOD = Method(
    name="exhaustive",
    call=solve,
    summary="every replica set with its best roles: the referee",
    exact=True,
    settings={"limit": Setting(20_000_000, "most replica sets to enumerate", minimum=1)},
    complexity="O(C(|S|, |R|)·|R|·C)",
    reference="Sharov et al. 2015, section 5",
)

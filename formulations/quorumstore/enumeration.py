"""Proven-optimal configurations by enumerating all replica sets: the production method for N <= 5.

Every admissible (R, W) with R + W = N + 1 and every replica set is accounted for, either by a
screening condition that refutes it or by its exact thresholds. That is the proof of optimality;
the same pass yields all optimal configurations, which are many (hundreds for a typical key), and
the tie rule (:func:`placement.quorumstore.tie_order_of_equals`) picks one.

The search is compiled (csrc/). It grows sets site by site, depth first. A prefix that breaks a
condition (csrc/screening.c) breaks it with whatever sites follow, and is not grown. What passes the
conditions is tested exactly on the spot, in every scenario of whatever may be lost, and the
incumbent falls as soon as a better set is met. Latencies are ranks in one grid of all values that a
threshold can take, so a limit is a number of allowed grid values and nothing is rounded.

The search visits all sets twice: first for any set better than the best so far, until none is left,
which proves the optimum; then for the configurations of this value, of which it keeps the first
under the tie rule, so that thousands of ties cost no memory. For goals that weigh several
thresholds the kernel lists the sets within the limits of the incumbent, and the evaluator judges
them. The evaluator computes the value of every result.

Complexity: O(n^N) sets per key in the worst case. With the screening, a key among 27 sites with
N <= 5 takes a few milliseconds (``python -m benchmarks run quorumstore.speed``).
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from placement.errors import LimitError, SolverError, UnsupportedError
from placement.quorumstore import (
    Goal,
    LossScope,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    Redirect,
    StoreRules,
    Target,
    ThresholdLimits,
    full_replication_bound,
    metrics,
    stages,
    structural_reasons,
)
from placement.quorumstore.plan import BestSet, spread_sets
from placement.support.checks import FloatArray, IntArray, read_only
from placement.support.status import Status, Termination, least_bound
from placement.support.work import large_count

try:
    from formulations.quorumstore import _kernel
except ImportError:  # it was not built
    _kernel = None  # type: ignore[assignment]  # a module otherwise

if TYPE_CHECKING:
    from formulations.quorumstore._kernel import _Search, _Store

METHOD = "enumeration"

_REMEMBERED = 12
"""Recently optimal sets remembered per size, to start the next key from a good incumbent."""

_MOST_SETS = 50_000_000
"""Replica sets above which enumeration is refused."""

_CHUNK = 512
"""Sets that the evaluator judges together; fewer where many sites may be lost."""


def compiled_available() -> bool:
    """Return whether the compiled search was built and can be imported."""
    return _kernel is not None


Allowed = tuple[int, int, int, int]
"""Limits (normal reads, normal writes, worst reads, worst writes) as numbers of grid values."""


@dataclass(frozen=True, eq=False)
class CompiledStore:
    """Data that all keys of one store under the same rules share, for the kernel."""

    #: all distinct RTTs and latencies after redirection: every threshold is one of them ("P1")
    grid: FloatArray
    handle: _Store  #: the kernel's own tables
    pairs: tuple[tuple[int, int, int], ...]  #: the (N, R, W) worth looking at
    #: the same with the most replicas that may share a region, shape (pairs, 4)
    shapes: npt.NDArray[np.int32]
    #: C(N, F) of each pair; 0 without losses, or without a given number of lost sites
    ways: FloatArray
    #: m(k) − m(k−1) of conditions 1 and 3 at k = 0, 1, …: reads normally, reads after losses,
    #: writes likewise; shape (pairs, 4, largest N + 1)
    steps: FloatArray

    @classmethod
    def of(cls, problem: QuorumProblem) -> CompiledStore:
        """Tabulate the store of `problem`, whose own demand does not matter.

        O(n² log n), and O(n) for each site of each loss where clients are redirected.
        """
        rules = problem.rules
        losses = problem.losses if rules.contingency else ()
        moves = _ServedAfterLosses(problem, losses)
        count = len(problem.sites)
        stacked = np.concatenate([problem.rtt, moves.latency])
        grid, ranks = np.unique(stacked, return_inverse=True)
        ranks = ranks.reshape(stacked.shape).astype(np.int32)
        single = rules.loss is LossScope.SITE
        failures = rules.failures if single and losses else 0
        sizes = (
            count,
            len(grid),
            len(moves.latency),
            moves.variant_of.shape[1],
            len(losses),
            len(moves.sites),
            failures,
            # Where clients stay, losing another replica as well never helps.
            max(1, failures) if not problem.redirects else 1,
        )
        store = _kernel.create(
            sizes,
            grid,
            ranks[:count],
            ranks[count:],
            moves.variant_of,
            moves.begin,
            moves.sites,
            moves.variants,
            problem.region_index.astype(np.int32),
        )
        escapes = failures > 0 and problem.redirects
        width = max(total for total, _, _ in problem.pairs) + 1
        shapes, ways = [], []
        steps = np.zeros((len(problem.pairs), 4, width))
        for row, (total, read, write) in zip(steps, problem.pairs, strict=True):
            shapes.append((total, read, write, problem.region_cap(total, max(read, write))))
            ways.append(float(comb(total, failures)) if failures else 0.0)
            row[0, : total + 1] = miss_steps(total, read, 0, escapes=False)
            row[2, : total + 1] = miss_steps(total, write, 0, escapes=False)
            if failures:
                row[1, : total + 1] = miss_steps(total, read, failures, escapes=escapes)
                row[3, : total + 1] = miss_steps(total, write, failures, escapes=escapes)
        return cls(
            grid, store, problem.pairs, np.array(shapes, dtype=np.int32), np.array(ways), steps
        )

    @cached_property
    def values(self) -> list[float]:
        """The grid as a list, for look-ups of single values."""
        return [float(value) for value in self.grid]

    def allowed(self, limits: ThresholdLimits) -> Allowed:
        """Limits as numbers of allowed grid values."""
        a, b, c, d = (bisect_right(self.values, limit) for limit in limits)
        return a, b, c, d


class _ServedAfterLosses:
    """Sites that serve the clients of every site after every loss, and the latencies then."""

    #: one row for each pair of a lost site and its survivor: latency of the clients of the site to
    #: every replica; shape (variants, n)
    latency: FloatArray
    #: rows of `latency` of each site, -1 where it has fewer than others; shape (n, most)
    variant_of: npt.NDArray[np.int32]
    #: `begin`, `sites`, `variants`: sites of loss l are `sites[begin[l]:begin[l + 1]]`, with their
    #: rows, -1 for clients that stay
    begin: npt.NDArray[np.int32]
    sites: npt.NDArray[np.int32]
    variants: npt.NDArray[np.int32]

    def __init__(self, problem: QuorumProblem, losses: tuple[tuple[int, ...], ...]) -> None:
        count = len(problem.sites)
        hops = problem.rules.redirect is Redirect.HOP
        known: dict[tuple[int, int], int] = {}
        rows: list[FloatArray] = []
        own: list[list[int]] = [[] for _ in range(count)]
        sites: list[int] = []
        variants: list[int] = []
        begin = [0]
        for lost in losses:
            for site in lost:
                variant = -1
                if problem.redirects:
                    survivor = problem.closest_survivor(site, lost)
                    variant = known.setdefault((site, survivor), len(known))
                    if variant == len(rows):
                        hop = problem.rtt[site, survivor] if hops else 0.0
                        rows.append(hop + problem.rtt[survivor])
                        own[site].append(variant)
                sites.append(site)
                variants.append(variant)
            begin.append(len(sites))
        most = max(len(mine) for mine in own)
        padded = [mine + [-1] * (most - len(mine)) for mine in own]
        self.latency = np.array(rows, dtype=np.float64).reshape(len(rows), count)
        self.variant_of = np.array(padded, dtype=np.int32).reshape(count, most)
        self.begin = np.array(begin, dtype=np.int32)
        self.sites = np.array(sites, dtype=np.int32)
        self.variants = np.array(variants, dtype=np.int32)


@cache
def miss_steps(size: int, quorum: int, failures: int, *, escapes: bool) -> FloatArray:
    """m(k) − m(k−1) of condition 3 at index k = 0..N; condition 1 for F = 0.

    With k of N replicas outside, a loss of F replicas, h of them inside, leaves N − k − h inside:
    too few for a quorum iff h > N − k − q.
    """

    def lacking(outside: int) -> int:
        inside = size - outside
        everywhere = _ways(inside, outside, failures, inside - quorum)
        if not escapes:
            return everywhere
        # Ways that spare a given replica, be it inside or outside: the client's own may be either.
        spared = []
        if inside:
            spared.append(_ways(inside - 1, outside, failures, inside - quorum))
        if outside:
            spared.append(_ways(inside, outside - 1, failures, inside - quorum))
        return min(everywhere, *spared)

    totals = [lacking(outside) for outside in range(size + 1)]
    # min() above could dip; what a set breaks, a larger one breaks.
    return read_only(np.diff(np.maximum.accumulate(np.array([0, *totals], dtype=np.float64))))


def _ways(inside: int, outside: int, failures: int, over: int) -> int:
    """Ways to lose `failures` of inside + outside replicas with more than `over` inside ones."""
    return sum(
        comb(inside, hit) * comb(outside, failures - hit)
        for hit in range(max(0, over + 1), failures + 1)
    )


class Ties(NamedTuple):
    """Replica sets of one size under one (R, W), all with the best value found so far.

    `sets` has rows of increasing site indices, shape (m, N).
    """

    sets: IntArray
    read: int
    write: int


@dataclass(eq=False)
class CompiledSearch:
    """Search for one key and one goal: the incumbent and the first of the optima.

    The goal takes the place of the problem's; `caps` are limits besides its own. :meth:`run` and
    :meth:`choose` take goals that are :meth:`~placement.quorumstore.problem.Goal.monotone` without
    a budget; :meth:`sets` any. Signals are handled about fifty times a second; a
    ``KeyboardInterrupt`` leaves the incumbent as it is. The interpreter lock is released while the
    kernel runs.
    """

    store: CompiledStore
    problem: QuorumProblem
    goal: Goal
    caps: ThresholdLimits = field(default_factory=ThresholdLimits)
    _search: _Search = field(init=False)

    def __post_init__(self) -> None:
        problem, store = self.problem, self.store
        contingency = problem.rules.contingency
        loosest = self.goal.limits(math.inf, contingency).tightened(self.caps)
        tightest = self.goal.limits(0.0, contingency).tightened(self.caps)
        moving = tuple(tight < loose for tight, loose in zip(tightest, loosest, strict=True))
        self._search = _kernel.open(
            store.handle,
            problem.reads,
            problem.writes,
            (problem.needed_reads, problem.needed_writes),
            contingency and bool(problem.losses),
            moving,
            store.allowed(loosest),
            len(store.pairs),
            store.shapes,
            store.ways,
            store.steps,
        )

    def probe(self, sets: IntArray, read: int, write: int) -> None:
        """Lower the incumbent with some sets, rows of increasing site indices."""
        pair = self.store.pairs.index((sets.shape[1], read, write))
        _kernel.probe(self._search, pair, np.ascontiguousarray(sets, dtype=np.int32))

    def run(self) -> None:
        """Lower the incumbent to the optimum. O(n^N) in the worst case."""
        _kernel.find(self._search)

    def choose(self) -> QuorumConfiguration | None:
        """First configuration under the tie rule of all that reach the incumbent value."""
        return self._named(_kernel.choose(self._search))

    @property
    def value(self) -> float:
        """Incumbent value; +∞ when nothing was found."""
        allowed, _, _ = _kernel.incumbent(self._search)
        if allowed > len(self.store.grid):
            return math.inf
        return self.store.values[allowed - 1] if allowed else 0.0

    @property
    def incumbent(self) -> QuorumConfiguration | None:
        """Return a configuration with the incumbent value; None when nothing was found."""
        return self._named(_kernel.incumbent(self._search))

    def _named(self, found: tuple[int, int, tuple[int, ...]]) -> QuorumConfiguration | None:
        _, pair, replicas = found
        if pair < 0:
            return None
        _, read, write = self.store.pairs[pair]
        return QuorumConfiguration(replicas, read, write)

    def sets(self, pair: tuple[int, int, int], first: int, limits: ThresholdLimits) -> IntArray:
        """All sets of a pair within the limits whose first site is `first`, lexicographically.

        The limits hold in whatever the problem's rules let be lost. Shape (m, N).
        """
        found = _kernel.list(
            self._search, self.store.pairs.index(pair), first, self.store.allowed(limits)
        )
        sets: IntArray = np.frombuffer(found, dtype=np.uint16).reshape(-1, pair[0]).astype(np.intp)
        return sets

    def every(self, pair: tuple[int, int, int], limits: ThresholdLimits) -> Iterator[IntArray]:
        """All sets of a pair within the limits, in runs that are not empty."""
        for first in range(len(self.problem.sites) - pair[0] + 1):
            found = self.sets(pair, first, limits)
            if len(found):
                yield found


@dataclass(slots=True)
class Enumeration:
    """Solves keys one after the other, with shared tables.

    Optimal sets of earlier keys start the search of the next one. That changes how long it takes,
    never what comes out. UnsupportedError when the compiled search was not built; LimitError on a
    problem with more than 50 million replica sets, which bisection takes.
    """

    recent: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)
    stores: dict[tuple[bytes, StoreRules, tuple[str, ...]], CompiledStore] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        if not compiled_available():
            raise UnsupportedError(
                "enumeration needs the compiled search, which was not built here; cp-sat and milp "
                "answer the same questions, and auto takes cp-sat"
            )

    def solve(self, problem: QuorumProblem) -> QuorumPlan:
        """Return the optimal configuration of `problem` under the tie rule.

        Infeasible problems give a plan with status ``infeasible``; its reasons name the rules that
        conflict, or are left to :func:`~formulations.quorumstore.one_key.bound_reasons` for bounds.
        """
        start = time.perf_counter()
        reasons = structural_reasons(problem)
        if reasons:
            return QuorumPlan.of(problem, None, method=METHOD, bound=math.inf, reasons=reasons)
        goal, contingency = problem.goal, problem.rules.contingency
        search, finished, found = self._search(problem), True, None
        best = None if goal.monotone(contingency) else _FirstOfTies(problem)
        try:
            if best is not None:  # sets within limits are judged by the evaluator
                best.judge_within(search)
            else:
                self._warm(search)
                search.run()
                last = search  # key 2 of the tie rule, among the optima of key 1
                for second in stages(goal, contingency)[1:]:
                    if second.target is not Target.THRESHOLD and search.incumbent is not None:
                        one, caps = search.incumbent, goal.limits(search.value, contingency)
                        last = CompiledSearch(search.store, problem, second, caps)
                        last.probe(np.array([one.replicas]), one.read, one.write)
                        last.run()
                found = last.choose()
        except KeyboardInterrupt:
            finished, found = False, search.incumbent
        value = search.value
        if best is not None:
            value, found = best.value, best.configuration
        plan = QuorumPlan.of(
            problem,
            found,
            method=METHOD,
            # Visited prefixes keep their result; a replica at every site bounds the rest.
            bound=value if finished else least_bound(value, full_replication_bound(problem)),
            termination=Termination.FINISHED if finished else Termination.INTERRUPTED,
            seconds=time.perf_counter() - start,
        )
        if finished and plan.status not in (Status.OPTIMAL, Status.INFEASIBLE):
            raise SolverError(
                f"enumeration proved {value} ms but its configuration reaches {plan.value}"
            )
        if found is not None:
            self._remember(found.replicas)
        return plan

    def optima(self, problem: QuorumProblem) -> tuple[float, list[Ties]]:
        """Return the optimal value and all configurations that reach it; (+∞, []): none."""
        search, goal, contingency = self._search(problem), problem.goal, problem.rules.contingency
        monotone, value = goal.monotone(contingency), math.inf
        if monotone:
            self._warm(search)
            search.run()
            value = search.value
        else:
            best = _FirstOfTies(problem)
            best.judge_within(search)
            value = best.value
        ties = list[Ties]()
        for pair in problem.pairs if math.isfinite(value) else ():
            for sets in search.every(pair, goal.limits(value, contingency)):
                if not monotone:
                    found = [metrics(problem, rows, *pair[1:]) for rows in _chunks(sets)]
                    reached = [goal.values(one, contingency) == value for one in found]
                    sets = sets[np.concatenate(reached)]
                if len(sets):
                    ties.append(Ties(sets, *pair[1:]))
        return value, ties

    def _search(self, problem: QuorumProblem) -> CompiledSearch:
        asked = (problem.rtt.tobytes(), problem.rules, problem.regions)
        if asked not in self.stores:
            count = len(problem.sites)
            sets = sum(comb(count, size) for size in {total for total, _, _ in problem.pairs})
            if sets > _MOST_SETS:
                raise LimitError(
                    f"enumeration would visit {large_count(sets)} replica sets ({count} sites, N "
                    f"up to {max(problem.pairs)[0]}), above the limit of {_MOST_SETS:,}; use "
                    "bisection (cp-sat or milp), or a smaller max_replicas"
                )
            self.stores[asked] = CompiledStore.of(problem)
        return CompiledSearch(self.stores[asked], problem, problem.goal)

    def _warm(self, search: CompiledSearch) -> None:
        """Lower the incumbent with the optimal sets of earlier keys."""
        for total, read, write in search.problem.pairs:
            if total in self.recent:
                search.probe(np.array(self.recent[total], dtype=np.intp), read, write)

    def _remember(self, replicas: tuple[int, ...]) -> None:
        pool = [sets for sets in self.recent.get(len(replicas), []) if sets != replicas]
        self.recent[len(replicas)] = [replicas, *pool][:_REMEMBERED]


@dataclass
class _FirstOfTies:
    """The first of the judged configurations under the tie rule, by the evaluator."""

    problem: QuorumProblem
    configuration: QuorumConfiguration | None = None
    value: float = math.inf  #: of the goal
    key: tuple[object, ...] = ()  #: all keys of the rule; before them an excess of 0

    def judge(self, sets: IntArray, read: int, write: int) -> bool:
        """Judge some sets of one size; return whether the value is lower."""
        best, before = BestSet(self.problem, self.problem.goal), self.value
        best.offer(sets, read, write)
        one = best.configuration
        if one is not None and best.within and best.rank[1] < math.inf:
            key = (*best.rank, one.size, one.replicas, read)
            if self.configuration is None or key < self.key:
                self.configuration, self.value, self.key = one, best.rank[1], key
        return self.value < before

    def judge_within(self, search: CompiledSearch) -> None:
        """Judge every set within the limits of the best so far, some spread sets first."""
        count, goal = len(self.problem.sites), self.problem.goal
        for size, read, write in self.problem.pairs:
            self.judge(spread_sets(size, count), read, write)
        for pair in self.problem.pairs:
            for first in range(count - pair[0] + 1):
                lower = True
                while lower:
                    limits = goal.limits(self.value, self.problem.rules.contingency)
                    sets = search.sets(pair, first, limits)
                    # a few of them from everywhere lower the value, and fewer are listed then
                    few = sets[:: len(sets) // (_CHUNK // 4)] if len(sets) > _CHUNK else sets[:0]
                    lower = self.judge(few, *pair[1:])
                self.judge(sets, *pair[1:])


def solve(problem: QuorumProblem) -> QuorumPlan:
    """Return the proven optimum of one key; see :class:`Enumeration`."""
    return Enumeration().solve(problem)


# --- all optima ------------------------------------------------------------------------------
#
# Optima are wildly non-unique: under BA a typical key of a 27-site store has hundreds, and what a
# failure then costs differs by more than 100 ms among them. A statement such as "BA degrades by 80
# ms when a site is lost" is one about tie-breaking, unless the whole range is given.


class TieRange(NamedTuple):
    """Best and worst of one figure over all optimal configurations."""

    best: float
    worst: float


@dataclass(frozen=True, eq=False)
class TieEnvelope:
    """The optimal configurations of one key.

    Attributes
    ----------
    value
        The optimal value of its goal.
    ties
        All optimal configurations with R + W = N + 1 (or the fixed quorums), in blocks.
    normal, failure, mean
        Ranges of max(T_r, T_w) in normal operation, of the worst max(T_r, T_w) over normal
        operation and all losses (also if the goal has no losses), and of the mean latency.
    """

    value: float
    ties: tuple[Ties, ...]
    normal: TieRange
    failure: TieRange
    mean: TieRange

    @property
    def count(self) -> int:
        """Number of optimal configurations."""
        return sum(len(group.sets) for group in self.ties)


def tie_envelope(problem: QuorumProblem) -> TieEnvelope | None:
    """Return all optimal configurations and the ranges over them; None when infeasible.

    Parameters
    ----------
    problem
        The key.

    Notes
    -----
    The evaluator scores every tie under every loss: about 0.3 ms per tie at 27 sites.
    """
    if structural_reasons(problem):
        return None
    value, ties = Enumeration().optima(problem)
    if not ties:
        return None
    figures = [
        metrics(problem, rows, group.read, group.write, losses=True)
        for group in ties
        for rows in _chunks(group.sets)
    ]
    normal = _range([np.maximum(one.normal_read, one.normal_write) for one in figures])
    failure = _range([np.maximum(one.worst_read, one.worst_write) for one in figures])
    return TieEnvelope(value, tuple(ties), normal, failure, _range([one.mean for one in figures]))


def _chunks(sets: IntArray) -> Iterator[IntArray]:
    """Yield some rows at a time."""
    yield from (sets[low : low + _CHUNK] for low in range(0, len(sets), _CHUNK))


def _range(values: list[FloatArray]) -> TieRange:
    return TieRange(float(min(map(np.min, values))), float(max(map(np.max, values))))

"""Proven-optimal configurations by enumerating all replica sets: the production method for N <= 5.

Every admissible (R, W) with R + W = N + 1 and every replica set is accounted for, either by a
screening condition that refutes it or by its exact thresholds. That is the proof of optimality;
the same pass yields all optimal configurations, which are many (hundreds for a typical key), and
the tie rule (:func:`placement.quorumstore.tie_order_of_equals`) picks one.

The search is compiled where that was possible
(:mod:`formulations.quorumstore.enumeration.compiled_search`), else in NumPy
(:mod:`formulations.quorumstore.enumeration.set_search`); plans are the same.

Complexity: O(n^N) sets per key in the worst case. With the screening, a key among 27 sites with
N <= 5 takes a few milliseconds (``python -m benchmarks run quorumstore.speed``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from formulations.quorumstore import tuning
from formulations.quorumstore.enumeration.compiled_search import (
    CompiledSearch,
    Kernel,
    wants_compiled,
)
from formulations.quorumstore.enumeration.compiled_store import CompiledStore
from formulations.quorumstore.enumeration.exact_tests import Candidates
from formulations.quorumstore.enumeration.nearest_sites import SetTables
from formulations.quorumstore.enumeration.screening import sides_of
from formulations.quorumstore.enumeration.set_search import SetSearch, Ties
from placement.errors import SolverError
from placement.quorumstore import (
    Metrics,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    StoreRules,
    Target,
    full_replication_bound,
    metrics,
    stages,
    structural_reasons,
    tie_order_of_equals,
)
from placement.quorumstore.goal import second_key
from placement.support.status import Status, Termination, least_bound

__all__ = ["METHOD", "Enumeration", "solve"]

METHOD = "enumeration"


_ROUNDING = 1e-12
"""Relative difference up to which two sums of at most a few hundred latencies may be equal."""


@dataclass(slots=True)
class Enumeration:
    """Solves keys of one store one after the other, with shared tables.

    Parameters
    ----------
    tables
        Built by :meth:`SetTables.of` from any problem of the store; problems given to
        :meth:`solve` must share its RTTs and redirection.
    kernel
        "auto" (compiled where it was built), "compiled" or "numpy". All give the same plans.

    Notes
    -----
    Optimal sets of earlier keys start the search of the next one. That changes how long it takes,
    never what comes out.
    """

    tables: SetTables
    kernel: Kernel = "auto"
    recent: dict[int, list[tuple[int, ...]]] = field(default_factory=dict)
    stores: dict[tuple[StoreRules, tuple[str, ...]], CompiledStore] = field(default_factory=dict)
    compiled: bool = field(init=False)

    def __post_init__(self) -> None:
        self.compiled = wants_compiled(self.kernel)

    def solve(self, problem: QuorumProblem) -> QuorumPlan:
        """Return the optimal configuration of `problem` under the tie rule.

        Infeasible problems give a plan with status ``infeasible``; its reasons name the rules that
        conflict, or are left to :func:`~formulations.quorumstore.unreachable_bounds.bound_reasons`
        for bounds.
        """
        start = time.perf_counter()
        self.tables.need(problem)
        reasons = structural_reasons(problem)
        if reasons:
            return QuorumPlan.of(problem, None, method=METHOD, bound=math.inf, reasons=reasons)
        value, found, termination = (
            self._by_kernel(problem) if self._whole(problem) else self._by_arrays(problem)
        )
        finished = termination is Termination.FINISHED
        plan = QuorumPlan.of(
            problem,
            found,
            method=METHOD,
            # Visited prefixes keep their result; a replica at every site bounds the rest.
            bound=value if finished else least_bound(value, full_replication_bound(problem)),
            termination=termination,
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
        """Return the optimal value of the goal and all configurations that reach it.

        Returns
        -------
        (+∞, []) when no configuration obeys rules and bounds.
        """
        self.tables.need(problem)
        if self._whole(problem):
            search = CompiledSearch(self._store(problem), problem, problem.goal)
            self._warm(search)
            search.run()
            limits = problem.goal.limits(search.value, problem.rules.contingency)
            ties = [] if math.isinf(search.value) else search.ties(limits)
            return search.value, ties
        arrays = self._search(problem)
        self._warm(arrays)
        arrays.run()
        return arrays.value, arrays.ties

    def _whole(self, problem: QuorumProblem) -> bool:
        """Return whether the kernel can do the whole search: goals whose values are limits."""
        return (
            self.compiled
            and problem.goal.monotone(problem.rules.contingency)
            and not math.isfinite(problem.goal.cost_bound)
        )

    def _store(self, problem: QuorumProblem) -> CompiledStore:
        asked = (problem.rules, problem.regions)
        if asked not in self.stores:
            self.stores[asked] = CompiledStore.of(problem)
        return self.stores[asked]

    def _search(self, problem: QuorumProblem) -> SetSearch:
        if not self.compiled:
            return SetSearch(problem, problem.goal, self.tables.geometry)
        lister = CompiledSearch(self._store(problem), problem, problem.goal)
        return SetSearch(problem, problem.goal, self.tables.geometry, every=lister.every)

    def _by_kernel(
        self, problem: QuorumProblem
    ) -> tuple[float, QuorumConfiguration | None, Termination]:
        """Value, first configuration under the tie rule, and whether that is proven."""
        first = CompiledSearch(self._store(problem), problem, problem.goal)
        found = None
        try:
            self._warm(first)
            first.run()
            last = self._last_stage(first)
            found = last.choose()
        except KeyboardInterrupt:
            return first.value, first.incumbent, Termination.INTERRUPTED
        return first.value, found, Termination.FINISHED

    def _last_stage(self, first: CompiledSearch) -> CompiledSearch:
        """Return the search for key 2 of the tie rule, among the optima of key 1."""
        problem, last = first.problem, first
        contingency = problem.rules.contingency
        for goal in stages(problem.goal, contingency)[1:]:
            if goal.target is not Target.THRESHOLD and first.incumbent is not None:
                caps = first.goal.limits(first.value, contingency)
                last = CompiledSearch(first.store, problem, goal, caps)
                start = first.incumbent
                last.probe(np.array([start.replicas]), start.read, start.write)
                last.run()
        return last

    def _by_arrays(
        self, problem: QuorumProblem
    ) -> tuple[float, QuorumConfiguration | None, Termination]:
        """Search the sets with NumPy arrays."""
        search = self._search(problem)
        termination = Termination.FINISHED
        try:
            self._warm(search)
            search.run()
            ties = self._second_stage(search)
        except KeyboardInterrupt:
            termination = Termination.INTERRUPTED
            ties = search.ties
        return search.value, self._best(problem, ties) if ties else None, termination

    def _second_stage(self, first: SetSearch) -> list[Ties]:
        """Cut ties of ``READS`` and ``WRITES`` down by the other side's threshold.

        The stage on normal operation is key 3 of the tie rule, which `_best` applies anyway.
        """
        problem, ties = first.problem, first.ties
        contingency = problem.rules.contingency
        for goal in stages(problem.goal, contingency)[1:]:
            if goal.target is not Target.THRESHOLD and ties:
                caps = first.goal.limits(first.value, contingency)
                second = SetSearch(problem, goal, self.tables.geometry, caps)
                second.choose(ties)
                ties = second.ties
        return ties

    def _warm(self, search: SetSearch | CompiledSearch) -> None:
        """Lower the incumbent with the optimal sets of earlier keys."""
        for total, read, write in search.problem.pairs:
            if total in self.recent:
                search.probe(np.array(self.recent[total], dtype=np.intp), read, write)

    def _remember(self, replicas: tuple[int, ...]) -> None:
        pool = [sets for sets in self.recent.get(len(replicas), []) if sets != replicas]
        self.recent[len(replicas)] = [replicas, *pool][: tuning.REMEMBERED_SETS]

    def _best(self, problem: QuorumProblem, ties: Sequence[Ties]) -> QuorumConfiguration:
        """Apply the tie rule to configurations that are equal in value."""
        shortlist = _shortlist(problem, self.tables, ties)
        width = max(group.sets.shape[1] for group in shortlist)
        figures, sets, sizes, reads = [], [], [], []
        for group in shortlist:
            rows = group.sets
            figures.append(metrics(problem, rows, group.read, group.write, losses=False))
            sets.append(np.pad(rows, ((0, 0), (0, width - rows.shape[1])), constant_values=-1))
            sizes.append(np.full(len(rows), rows.shape[1]))
            reads.append(np.full(len(rows), group.read))
        order = tie_order_of_equals(
            _joined(figures), np.concatenate(sets), np.concatenate(sizes), np.concatenate(reads)
        )
        place = int(order[0])
        for group in shortlist:
            if place < len(group.sets):
                replicas = tuple(group.sets[place].tolist())
                return QuorumConfiguration(replicas, group.read, group.write)
            place -= len(group.sets)
        raise AssertionError("the order has as many entries as the shortlist")


def _shortlist(problem: QuorumProblem, tables: SetTables, ties: Sequence[Ties]) -> list[Ties]:
    """Ties with the least key 2 (where not yet equal), then keys 3 to 5 of the tie rule.

    Key 5, the mean latency, is summed here in another order than by the evaluator, so whatever is
    within rounding of the least stays.
    """
    contingency = problem.rules.contingency
    ranked = []
    for group in ties:
        found = Candidates.of(
            tables.geometry,
            group.sets,
            sides_of(problem),
            (group.read, group.write),
            losses=False,
        )
        read, write = found.normal_thresholds(tables.geometry)
        keys = [np.maximum(read, write), read + write, found.total_latency(tables.geometry)]
        if not problem.goal.monotone(contingency):
            second = second_key(
                problem.goal, metrics(problem, group.sets, group.read, group.write), contingency
            )
            keys = keys if second is None else [second, *keys]
        ranked.append((group, keys))
    for level in range(len(ranked[0][1])):
        least = min(keys[level].min() for _, keys in ranked)
        if level == len(ranked[0][1]) - 1:
            least *= 1.0 + _ROUNDING
        shorter = []
        for group, keys in ranked:
            chosen = np.flatnonzero(keys[level] <= least)
            if chosen.size:
                part = Ties(group.sets[chosen], group.read, group.write)
                shorter.append((part, [key[chosen] for key in keys]))
        ranked = shorter
    return [group for group, _ in ranked]


def _joined(parts: Sequence[Metrics]) -> Metrics:
    return Metrics(
        np.concatenate([part.normal_read for part in parts]),
        np.concatenate([part.normal_write for part in parts]),
        np.concatenate([part.worst_read for part in parts]),
        np.concatenate([part.worst_write for part in parts]),
        np.concatenate([part.mean for part in parts]),
        np.concatenate([part.cost for part in parts]),
    )


def solve(
    problem: QuorumProblem, tables: SetTables | None = None, *, kernel: Kernel = "auto"
) -> QuorumPlan:
    """Return the proven optimum of one key; see :class:`Enumeration`.

    Examples
    --------
    >>> rtt = [[1, 20, 90, 60], [20, 1, 80, 50], [90, 80, 1, 40], [60, 50, 40, 1]]
    >>> plan = solve(QuorumProblem(rtt, [5, 3, 1, 1], [1, 0, 0, 0], sites=["a", "b", "c", "d"]))
    >>> plan.replicas, plan.read_quorum, plan.write_quorum, plan.value
    (('a', 'b', 'c'), 2, 2, 50.0)
    """
    if tables is None and structural_reasons(problem):
        tables = SetTables.empty(problem)
    return Enumeration(tables or SetTables.of(problem), kernel).solve(problem)

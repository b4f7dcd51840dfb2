"""The method ``sets``: a search over sets of replicas, with proof, for operations with waits.

A radius formulation is weak here: its linear relaxation averages the k nearest chosen sites where
an operation waits for the k-th. So the sets themselves are searched, depth first, each once. Under
each possible leader, or once where no operation needs one, a bound on all sets that begin alike is

    constant + leader's waits + Σ_c clients' waits + pairs + max(independent, Lagrangean)

where every wait is asked of the chosen sites and of the best of those that may still come, and
*pairs* are what two waits at once last longer (:mod:`placement.proof.sets.wait_pairs`). For the
nearest replica each client takes its least cost (independent), or the prices of clients pay for at
most as many more sites as fit (Lagrangean, as in p-median). csrc/bound.c and csrc/pairs.c have the
arithmetic; it is lowered by more than its rounding, and only what is beyond a tie is dropped. The
beginnings of the sets are searched best bound first, so that the least of their bounds is proven at
any time.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
import time
from functools import partial
from typing import NamedTuple

from formulations.enumeration.exhaustive import count_sets
from formulations.waits.set_certificate import may_certify, write_certificate
from formulations.waits.set_tables import WaitTables, why_not
from placement.evaluation.objective import score_of
from placement.evaluation.score import TIE, cutoff
from placement.evaluation.voter_choice import with_closest_voters
from placement.methods.options import Options, Progress
from placement.methods.registry import Method, load_method, run
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Status, Termination, relative_gap

__all__ = ["METHOD", "compiled_available", "solve"]

_STARTS = 3
"""Beginnings, best bound first, below which a swap descent looks for a first good set."""

_LARGE = 10_000_000
"""Replica sets from which on beginnings are split as long as four sites are missing, so that the
least bound of what is open rises sooner. Smaller questions are split at their first site alone."""

_NOBODY = 2**31 - 1
"""Leader of a value that the kernel knows without its set; INT_MAX in csrc/module.c."""


def compiled_available() -> bool:
    """Return whether the compiled kernel was built and can be imported."""
    try:
        import formulations.waits._kernel  # noqa: F401 - only whether it imports matters
    except ImportError:
        return False
    return True


class _OpenSets(NamedTuple):
    """Sets that begin alike, under one leader."""

    bound: float
    turn: int
    tables: WaitTables
    place: int
    prefix: tuple[int, ...]
    first: int


class _Search:
    """The parts that are open, best bound first, and the best configuration so far."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self.options = options
        self.started = time.perf_counter()
        self.value = math.inf
        self.best: Configuration | None = None
        self.parts: list[_OpenSets] = []
        self.turn = itertools.count()
        self.all: list[WaitTables] = []
        self.large = count_sets(problem) > _LARGE
        if options.start is not None:
            self.best, self.value = options.start, score_of(problem, options.start)

    @property
    def bound(self) -> float:
        """Return the least value that any configuration can have."""
        return min(self.value, self.parts[0].bound) if self.parts else self.value

    def open_size(self, tables: WaitTables) -> None:
        """Add the sets of one size: one part per leader."""
        self.all.append(tables)
        for place in range(len(tables.leaders)):
            prefix = tables.beginning(place)
            if len(prefix) <= tables.size <= len(tables.order):
                self.add(tables, place, prefix, 0)

    def add(self, tables: WaitTables, place: int, prefix: tuple[int, ...], first: int) -> None:
        """Bound a part, and keep it where it may hold something better."""
        self.lead(tables, place)
        bound = tables.kernel_bound(prefix, first)
        if bound <= cutoff(self.value) and not math.isinf(bound):
            heapq.heappush(
                self.parts, _OpenSets(bound, next(self.turn), tables, place, prefix, first)
            )

    def lead(self, tables: WaitTables, place: int) -> None:
        """Let the kernel of a size know the leader and the best value."""
        tables.lead(place)
        if math.isfinite(self.value):
            tables.kernel_limit(self.value)

    def take(self, tables: WaitTables) -> None:
        """Take the best of a kernel where it is better, or ties and comes first."""
        value, leader, chosen, voters = tables.kernel_best()
        if leader == _NOBODY or leader < 0:
            return
        found = tables.configuration(leader, chosen, voters)
        key = (found.leader, found.replicas)
        if self.best is None or value < self.value * (1 - TIE) or (
            value <= cutoff(self.value) and key < (self.best.leader, self.best.replicas)
        ):  # fmt: skip
            self.best = found
        self.value = min(self.value, value)

    def descend(self) -> None:
        """Find a first good set below the most promising beginnings."""
        for part in heapq.nsmallest(_STARTS, self.parts):
            rest = [s for s in range(len(part.tables.order)) if s not in part.prefix]
            chosen = (*part.prefix, *rest[: part.tables.size - len(part.prefix)])
            self.lead(part.tables, part.place)
            part.tables.kernel_improve(chosen)
            self.take(part.tables)

    def go_on(self) -> Termination:
        """Search the parts until none is open, or a limit is met."""
        limit = self.options.time_limit
        end = math.inf if limit is None else self.started + limit
        while self.parts and self.parts[0].bound <= cutoff(self.value):
            if relative_gap(self.value, self.bound) <= self.options.gap_limit > 0:
                return Termination.GAP_LIMIT
            left = end - time.perf_counter()
            if left <= 0:
                return Termination.TIME_LIMIT
            part, done = self.parts[0], False
            try:
                heapq.heappop(self.parts)
                done = self._search(part, min(left, 1e9))
            finally:  # Ctrl-C too leaves open what was not completed
                if not done:
                    heapq.heappush(self.parts, part)
            if not done:
                return Termination.TIME_LIMIT
            self.report()
        self.parts.clear()
        return Termination.FINISHED

    def _search(self, part: _OpenSets, seconds: float) -> bool:
        """Split a part at its next site, or search it; return whether that was completed."""
        tables, free = part.tables, part.tables.size - len(part.prefix)
        if free >= 3 and (part.first == 0 or (self.large and free >= 4)):
            for site in range(part.first, len(tables.order)):
                if site not in part.prefix:
                    self.add(tables, part.place, (*part.prefix, site), site + 1)
            return True
        self.lead(tables, part.place)
        try:
            return tables.kernel_run(part.prefix, part.first, seconds)
        finally:
            self.take(tables)

    def report(self) -> None:
        """Tell how far the search is."""
        seconds = time.perf_counter() - self.started
        self.options.report(Progress(seconds, self.value, self.bound))


def solve(problem: Problem, options: Options) -> Plan:
    """Search all sets; at a limit or after Ctrl-C, the best so far with its proven bound."""
    if not compiled_available():
        settings: dict[str, object] = {"limit": 2**62}
        plan = run(
            load_method("exhaustive"), problem, dataclasses.replace(options, settings=settings)
        )
        return plan.replace(method=METHOD.name)
    search, rules = _Search(problem, options), problem.rules
    every_size_open = False
    try:
        for size in range(max(rules.replicas_min, rules.voters), rules.replicas_max + 1):
            search.open_size(WaitTables.of(problem, size))
        every_size_open = True
        search.descend()
        termination = search.go_on()
        bound = search.bound
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
        bound = search.bound if every_size_open and search.parts else -math.inf
    if termination is Termination.FINISHED and search.best is None:
        return Plan.infeasible(
            problem,
            method=METHOD.name,
            reasons=(
                f"none of the {count_sets(problem):,} replica sets has a plan that obeys all "
                "rules and meets all waits",
            ),
        )
    best = search.best
    if best is not None and not problem.demand.leaderless:
        best = with_closest_voters(problem.demand, problem.rules, best)
    counts = [tables.kernel_counts() for tables in search.all]
    nodes, leaves = sum(one for one, _ in counts), sum(one for _, one in counts)
    plan = Plan.of(
        problem,
        best,
        method=METHOD.name,
        bound=bound,
        termination=termination,
        stats={"nodes": nodes, "leaves": leaves, "sets": count_sets(problem)},
    )
    if plan.status is Status.OPTIMAL and may_certify(problem, nodes, leaves):
        return plan.replace(certificate=partial(write_certificate, plan))
    return plan


METHOD = Method(
    name="sets",
    call=solve,
    summary="search over replica sets with proof, for waits of nearest replica and client",
    exact=True,
    refuses=why_not,
    objectives=("mean", "waits"),
    complexity="exponential at worst; O(|C|·|S|) for each bound, O(|C|) for each set",
    reference="this package",
)

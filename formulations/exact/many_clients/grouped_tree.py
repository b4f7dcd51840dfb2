"""The tree of one leader over groups of clients, which shrink with every decision.

"A replica at j" ends the cells of every group at j, and "none at j" takes them out, so that clients
become alike: below a few decisions, half a million are some thousand groups. Clients are added up
again at every node. Small remaining problems go to a compiled kernel, which solves them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.exact import tuning
from formulations.exact.kernel import CompiledKernel
from formulations.exact.kernel_types import Counters, Incumbent
from formulations.exact.many_clients.client_groups import (
    FREE,
    IN,
    OUT,
    ClientGroups,
    Decision,
    States,
)
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.checks import IntArray

__all__ = ["GroupedTree"]

_NONE = Counters(0, 0, 0, math.inf)


@dataclass(eq=False)
class _GroupedPart:
    """An open part: a state, and the groups of this state (`own`) or of one above it."""

    groups: ClientGroups
    states: States
    bound: float
    decision: Decision
    own: bool = False


class GroupedTree:
    """A tree that works on its own parts, or on a part of a compiled kernel.

    Parameters
    ----------
    core
        The problem.
    root
        The kernel of the same problem without clients: it has the incumbent.
    groups
        The clients below `states`.
    leader
        Site index, or −1.
    states
        Of each site, shape (sites,).
    bound
        A proven bound.
    threads
        Most threads; no result depends on it.
    gap
        Parts whose bound is within `gap`, relatively, of the incumbent are closed.
    propose
        Called with a leader and replicas that may be better than the incumbent.
    """

    def __init__(
        self,
        core: ReducedProblem,
        root: CompiledKernel,
        groups: ClientGroups,
        leader: int,
        states: States,
        *,
        bound: float,
        threads: int,
        gap: float,
        propose: Callable[[int, Sequence[int]], None],
    ) -> None:
        self._core, self._root, self._leader = core, root, leader
        self._threads, self._gap, self._propose = threads, gap, propose
        self._closed = math.inf
        self._steps = tuning.GROUPED_ROOT_STEPS
        self._parts = [_GroupedPart(groups, states, bound, Decision(), own=True)]
        self._kernel: CompiledKernel | None = None
        self._kernel_bound = 0.0
        self._keep: IntArray = np.zeros(0, dtype=np.intp)
        self._found = math.inf
        self._done = _NONE

    def bound(self) -> float:
        """Return the proven bound, finished parts included; +∞: all is evaluated."""
        open_parts = [part.bound for part in self._parts]
        if self._kernel is not None:
            open_parts.append(max(self._kernel_bound, self._bound_of(self._kernel)))
        return min([self._closed, *open_parts])

    def counters(self) -> Counters:
        """Return the nodes of this tree, and the counters of its kernels."""
        return self._done if self._kernel is None else self._done.plus(self._kernel.counters())

    def run(self, work: float, seconds: float) -> bool:
        """Work on the tree: True when it is finished."""
        end, enough = time.perf_counter() + seconds, self._work() + work
        while self._kernel is not None or self._parts:
            left = max(end - time.perf_counter(), 0.0)
            if self._kernel is not None:
                self._run_kernel(self._kernel, max(enough - self._work(), 0.0), left)
            else:
                self._visit(self._parts.pop(), end)
            if time.perf_counter() >= end or self._work() >= enough:
                break
        return self._kernel is None and not self._parts

    def _work(self) -> float:
        return self._root.counters().work + self.counters().work

    def _bound_of(self, kernel: CompiledKernel) -> float:
        leader = self._leader
        own = leader if leader < 0 else int(np.searchsorted(self._keep, leader))
        return float(kernel.tree_bounds([own])[0])

    # --- parts -----------------------------------------------------------------------------

    def _visit(self, part: _GroupedPart, end: float) -> None:
        """Bound a part, then close it, hand it over, or branch."""
        if not self._regroup(part, end):
            self._parts.append(part)
            return
        steps = self._steps
        self._steps = tuning.GROUPED_STEPS
        self._done = self._done.plus(Counters(1, 0, 0, math.inf))
        for _ in range(tuning.GROUPED_ROUNDS):
            groups = part.groups
            free = int(np.count_nonzero(part.states == FREE))
            if groups.count * (free + 1) <= tuning.GROUPED_CELLS or free == 0:
                self._hand_over(groups, part)
                return
            left = max(end - time.perf_counter(), 0.0)
            found = groups.improve_bound(part.states, part.decision, steps, self._threads, left)
            if found.selected:
                self._try_set(groups, found.selected)
            part.bound = max(part.bound, found.bound)
            cutoff = self._root.counters().cutoff
            if found.bound >= cutoff or not found.open:
                self._closed = min(self._closed, max(found.bound, min(found.closed, cutoff)))
                return
            self._closed = min(self._closed, found.closed)
            fixed = bool((found.states != part.states).any())
            part.states, part.decision, part.own = found.states, Decision(), not fixed
            if not self._regroup(part, end) or time.perf_counter() >= end:
                self._parts.append(part)
                return
            if not fixed:
                break
        if found.branching_site < 0:  # no site is free: the next visit hands the part over
            self._parts.append(part)
            return
        for side in (OUT, IN):  # IN is visited first
            states = part.states.copy()
            states[found.branching_site] = side
            made_by = Decision(found.branching_site, side, part.bound)
            self._parts.append(_GroupedPart(part.groups, states, part.bound, made_by))

    @staticmethod
    def _regroup(part: _GroupedPart, end: float) -> bool:
        """Add the clients of a part up for its own state; False when the time is over before."""
        if part.own:
            return True
        groups = part.groups.below(part.states, max(end - time.perf_counter(), 0.0))
        if groups is not None:
            part.groups, part.own = groups, True
        return part.own

    def _try_set(self, groups: ClientGroups, selected: tuple[int, ...]) -> None:
        """Propose the set that the multipliers select, if its bound is below the incumbent."""
        cost = groups.cost(selected, self._core.sites)
        if self._leader >= 0:
            cost += float(self._core.direct[self._leader])
        if cost < self._root.counters().cutoff:
            self._propose(self._leader, selected)

    # --- the kernel of a small part ------------------------------------------------------------

    def _hand_over(self, groups: ClientGroups, part: _GroupedPart) -> None:
        """Give a part to a compiled kernel."""
        self._kernel, self._keep = groups.open_kernel(self._core, part.states)
        self._kernel_bound, self._found = part.bound, math.inf
        self._kernel.set_gap(self._gap)
        best = self._root.incumbent()
        if best is not None:
            self._kernel.propose(Incumbent(best.score, -2, ()))

    def _run_kernel(self, kernel: CompiledKernel, work: float, seconds: float) -> None:
        """Run the kernel on its part, and propose its solutions."""
        finished = kernel.run(work, seconds)
        found = kernel.incumbent()
        if found is not None and found.replicas and found.score < self._found:
            self._found = found.score
            self._propose(self._leader, self._keep[list(found.replicas)].tolist())
        if finished:
            self._closed = min(self._closed, max(self._kernel_bound, self._bound_of(kernel)))
            self._done = self._done.plus(kernel.counters())
            self._kernel = None

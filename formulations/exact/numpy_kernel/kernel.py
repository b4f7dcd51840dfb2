"""The kernel in NumPy: same optimum and same kind of proof as the compiled one, slower.

It uses the bound of :mod:`formulations.exact.certificate_events` without the multipliers β.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from formulations.exact import tuning
from formulations.exact.certificate_events import EVENTS_OF
from formulations.exact.kernel import TOLERANCE
from formulations.exact.kernel_types import Counters, Incumbent, QuickBounds, RootBounds, SizeBatch
from formulations.exact.numpy_kernel.lagrangean_bound import (
    BoundValue,
    bounds_with_site_fixed,
    evaluate,
)
from formulations.exact.numpy_kernel.swap_descent import SwapDescent
from formulations.exact.numpy_kernel.tree_node import LeaderView, TreeNode
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.checks import FloatArray

__all__ = ["NumpyKernel"]

_LEAST_SCALE = 1e-30
"""Least share of the largest weight: lengths of steps stay far from overflow."""


class NumpyKernel:
    """See :class:`formulations.exact.kernel.Kernel` for what the methods do.

    Parameters
    ----------
    core
        The problem.
    """

    def __init__(self, core: ReducedProblem) -> None:
        self._core = core
        rtt = core.client_rtt[core.active]
        order = np.argsort(rtt, axis=1, kind="stable")
        self._rank = np.empty(rtt.shape, dtype=np.intp)
        places = np.arange(core.sites, dtype=np.intp)[np.newaxis]
        np.put_along_axis(self._rank, order, places, axis=1)
        self._swaps = SwapDescent(core, self.propose)
        weight = core.near[core.active] + core.relay[core.active]
        self._scale = (
            np.maximum(weight / weight.max(initial=0.0), _LEAST_SCALE) if len(weight) else weight
        )
        self._best = Incumbent(math.inf, -2, ())
        self._cutoff = math.inf
        self._tolerance = TOLERANCE
        self._stack: list[TreeNode] = []
        self._waiting: list[tuple[float, int, FloatArray]] = []
        self._tree_bounds: dict[int, float] = {}
        self._closed = math.inf
        self._leader: LeaderView | None = None
        self._recording = False
        self._events: list[FloatArray] = []
        self._nodes = self._leaves = self._evaluations = 0
        self._left_at: dict[int, FloatArray] = {}

    # --- the protocol ---------------------------------------------------------------------------

    def bound_root(
        self, leader: int, u: FloatArray, iterations: int, swaps: int, warm: bool, seconds: float
    ) -> float:
        """Bound one leader without branching; see the protocol."""
        deadline = time.perf_counter() + seconds
        view = self._select_leader(leader)
        root = TreeNode.root_of(self._core, view, np.array(u))
        replicas = self._swaps.start(view, root, self._best.replicas) if swaps else None
        if replicas is not None:
            if swaps > 1:
                replicas = self._descend(view, replicas, swaps, deadline)
            if not warm:
                costs = np.sort(view.costs[:, replicas], axis=1)
                half = costs[:, 0] if len(replicas) == 1 else 0.5 * (costs[:, 0] + costs[:, 1])
                root.u = np.minimum(half, root.fixed_cost)
        value = self._improve(view, root, iterations, deadline)
        if value >= self._cutoff:
            self._record([2.0, 0.0], root.u)
        u[:] = root.u
        self._left_at[leader] = root.u
        return value

    def bound_roots(self, asked: RootBounds, at: int, work: float, seconds: float) -> int:
        """Bound leaders one after another; see the protocol."""
        end, enough = time.perf_counter() + seconds, self._work() + work
        for i in range(at, len(asked.leaders)):
            left = end - time.perf_counter()
            if i > at and (left <= 0 or self._work() >= enough):
                return i - at
            swaps = asked.swaps if i < asked.full or self._cutoff == math.inf else 1
            leader, u = int(asked.leaders[i]), asked.u[i]
            asked.bounds[i] = self.bound_root(
                leader, u, asked.steps, swaps, bool(asked.warm[i]), left
            )
            asked.ends[i] = sum(map(len, self._events))
        return len(asked.leaders) - at

    def quick_bounds(self, asked: QuickBounds, at: int, work: float, seconds: float) -> int:
        """Bound leaders, one evaluation each; see the protocol."""
        end, enough = time.perf_counter() + seconds, self._work() + work
        self._stack = []
        for i in range(at, len(asked.leaders)):
            if i > at and (time.perf_counter() >= end or self._work() >= enough):
                return i - at
            view = self._select_leader(int(asked.leaders[i]))
            root = TreeNode.root_of(self._core, view, asked.u[i])
            value = self._evaluate(view, root, root.u)
            asked.bounds[i] = value.safe
            asked.u[i] = root.u
            self._left_at[view.index] = root.u
        return len(asked.leaders) - at

    def with_sizes(self, core: ReducedProblem, seconds: float) -> NumpyKernel:
        """Return a kernel for another number of replicas."""
        del seconds  # the incumbent is not taken over
        other = NumpyKernel(core)
        other._left_at = self._left_at
        return other

    def bounds_from_memory(self, leaders: Sequence[int], swaps: int, seconds: float) -> FloatArray:
        """Bound leaders at the multipliers they were left at; see the protocol.

        One evaluation each.  The incumbent, which is not taken over here, is left as it is.
        """
        del swaps, seconds
        self._stack = []
        bounds = np.full(len(leaders), math.nan)
        for i, leader in enumerate(leaders):
            if leader in self._left_at:
                view = self._select_leader(leader)
                root = TreeNode.root_of(self._core, view, self._left_at[leader])
                value = self._evaluate(view, root, root.u)
                bounds[i] = value.safe
        return bounds

    def open_trees(self, leaders: Sequence[int], u: FloatArray, bounds: FloatArray) -> None:
        """Open the trees of leaders one after another, the least bound first."""
        known = bounds.tolist()
        self._stack = []
        self._waiting = sorted(zip(known, leaders, u, strict=True), key=lambda one: -one[0])
        self._tree_bounds = dict(zip(leaders, known, strict=True))

    def run(self, work: float, seconds: float) -> bool:
        """Work on the open trees: True when they are finished."""
        now = time.perf_counter()
        pause = now + (tuning.NUMPY_CHUNK if work < math.inf else seconds)
        while self._next_tree() and time.perf_counter() < min(pause, now + seconds):
            self._visit(now + seconds)
        return not self._next_tree()

    def _next_tree(self) -> bool:
        """Put the next tree on the stack when there is none; return whether there is one."""
        while self._waiting and not self._stack:
            bound, leader, u = self._waiting.pop()
            if bound >= self._cutoff:
                continue  # by these multipliers, which need no record
            self._closed = math.inf
            view = self._select_leader(leader)
            self._stack = [TreeNode.root_of(self._core, view, np.array(u))]
            self._stack[0].bound = bound
            self._record([float(EVENTS_OF), float(leader)])
        return bool(self._stack)

    def _note_tree_bound(self) -> None:
        """Note the least bound of the tree on the stack, finished parts included."""
        if self._leader is not None:
            least = min([self._closed, *(node.bound for node in self._stack)])
            self._tree_bounds[self._leader.index] = least

    def tree_bounds(self, leaders: Sequence[int]) -> FloatArray:
        """Lower bounds of the open trees."""
        return np.array([self._tree_bounds[leader] for leader in leaders])

    def propose(self, proposal: Incumbent) -> None:
        """Offer an incumbent from outside."""
        if proposal.score >= self._best.score:
            return
        self._best = proposal
        self._set_cutoff()

    def solve_sizes(
        self,
        sizes: SizeBatch,
        leaders: Sequence[int],
        steps: int,
        swaps: int,
        work: float,
        seconds: float,
    ) -> bool:
        """Refuse: one number of replicas at a time is all that this kernel can do."""
        del sizes, leaders, steps, swaps, work, seconds
        return False

    def set_gap(self, gap: float) -> None:
        """Close nodes whose bound is within `gap`, relatively, of the incumbent; 0: prove."""
        self._tolerance = max(gap, TOLERANCE)
        self._set_cutoff()

    def _set_cutoff(self) -> None:
        score = self._best.score
        if math.isinf(score):
            return
        self._cutoff = score * (1 - self._tolerance)
        grain = self._core.granularity
        if grain:
            whole = np.nextafter(score - grain * (1 - 1e-6), math.inf)
            self._cutoff = min(self._cutoff, float(whole))

    def incumbent(self) -> Incumbent | None:
        """Return the best so far."""
        return self._best if self._best.score < math.inf else None

    def counters(self) -> Counters:
        """Return the counters of the work so far."""
        return Counters(self._nodes, self._leaves, self._evaluations, self._cutoff, self._work())

    def _work(self) -> float:
        """See :attr:`Counters.work`."""
        return (
            tuning.NUMPY_BOUND_WORK * len(self._core.active) * self._core.sites * self._evaluations
        )

    def record(self, on: bool) -> FloatArray:
        """Return the events recorded since the last call."""
        events = np.concatenate(self._events) if self._events else np.zeros(0)
        self._events, self._recording = [], on
        return events

    def _select_leader(self, leader: int) -> LeaderView:
        self._leader = LeaderView.of(self._core, self._rank, leader)
        return self._leader

    def _evaluate(self, view: LeaderView, node: TreeNode, u: FloatArray) -> BoundValue:
        """Return L(u) of a node, and count the evaluation."""
        self._evaluations += 1
        return evaluate(view, node, u)

    def _improve(self, view: LeaderView, node: TreeNode, steps: int, deadline: float) -> float:
        """Take subgradient steps from node.u; keep the best multipliers there, return the bound.

        Steps are in the metric of the weights: a multiplier is as large as its client's weight.
        """
        best, step_size, stall, patience = -math.inf, 1.0, 0, max(6, steps // 20)
        u, direction = node.u.copy(), np.zeros(len(node.u))
        for step in range(steps):
            value = self._evaluate(view, node, u)
            safe = value.safe
            if safe > best:
                stall = 0 if safe > best + 1e-4 * abs(best) else stall
                best, node.u = safe, u
            else:
                stall += 1
            if best >= self._cutoff or not value.answers or step + 1 == steps:
                break
            if time.perf_counter() > deadline:
                break
            chosen = np.array(value.best.chosen, dtype=np.intp)
            node.frequency *= 0.9
            node.frequency[chosen] += 0.1
            serves = view.costs[:, chosen] < u[:, np.newaxis]
            serves &= self._rank[:, chosen] < node.fixed_rank[:, np.newaxis]
            slope = 1.0 - serves.sum(axis=1)
            slope[(slope > 0) & (u >= node.fixed_cost)] = 0.0
            norm = float(self._scale @ (slope * slope))
            if norm == 0:
                break
            target = self._cutoff if self._cutoff < math.inf else 2 * abs(value.bound) + 1
            target += 0.05 * (target - best)
            if stall >= patience:
                stall, step_size, u = 0, 0.6 * step_size, node.u
            direction = self._scale * slope + 0.7 * direction
            moved = u + step_size * (target - value.bound) / norm * direction
            u = np.clip(moved, 0.0, node.fixed_cost)
        return best

    def _descend(
        self, view: LeaderView, replicas: list[int], limit: int, deadline: float
    ) -> list[int]:
        """Return a set improved by at most `limit` swaps."""
        return self._swaps.descend(view, replicas, limit, deadline)

    # --- tree ---------------------------------------------------------------------------

    def _visit(self, deadline: float) -> None:
        """Bound the node on top; then close it, enumerate it or branch."""
        self._visit_node(deadline)
        self._note_tree_bound()

    def _visit_node(self, deadline: float) -> None:
        view, node = self._leader, self._stack[-1]
        assert view is not None
        self._nodes += 1
        for turn in range(4):
            low, high = view.inner.sizes(len(node.held), len(node.free))
            completions = sum(math.comb(len(node.free), size) for size in range(low, high + 1))
            if low <= high and completions <= tuning.NUMPY_ENUMERATED:
                self._enumerate(view, node, low, high)
                return
            steps = tuning.NUMPY_ROOT_STEPS if node.root else tuning.NUMPY_NODE_STEPS
            value = self._improve(view, node, steps, deadline)
            node.bound = max(node.bound, min(value, self._cutoff))
            if value >= self._cutoff:
                self._close(node, value)
                return
            if time.perf_counter() > deadline:
                return
            here = self._evaluate(view, node, node.u)
            if node.root and turn == 0 and here.answers:
                self._descend(view, [*node.held, *here.best.chosen], 40, deadline)
            fixed = self._fix(view, node, here)
            if fixed is None:
                self._close(node, self._cutoff)
                return
            if not fixed:
                break
        if len(node.free) == 0:
            return  # enumerated at the next visit
        site = self._branching_site(node)
        self._record([4.0, float(site)])
        self._stack.append(node.split(view, site))

    def _branching_site(self, node: TreeNode) -> int:
        """Return the free site whose selection is least decided."""
        return int(node.free[np.abs(node.frequency[node.free] - 0.7).argmin()])

    def _close(self, node: TreeNode, value: float) -> None:
        self._closed = min(self._closed, value)
        self._record([2.0, 0.0], node.u)
        self._leaves += 1
        self._stack.pop()

    def _fix(self, view: LeaderView, node: TreeNode, here: BoundValue) -> int | None:
        """Fix sites by reduced cost; return how many, or None when that closes the node."""
        if not here.answers:
            return None
        with_site, without = bounds_with_site_fixed(view, node, here)
        out = with_site >= self._cutoff
        # Where both hold, the bound without the site closes the node: with several relaxations the
        # bound of the node itself can be smaller than both.
        kept = (without >= self._cutoff) & ~out
        for values in (with_site[out], without[kept]):
            self._closed = min(self._closed, float(values.min(initial=math.inf)))
        dropped, taken = node.free[out].tolist(), node.free[kept].tolist()
        if not dropped and not taken:
            return 0
        lists = [float(len(dropped)), *dropped, float(len(taken)), *taken]
        self._record([1.0, 0.0], node.u, lists)
        node.free = node.free[~out]
        for site in taken:
            node.hold(view, site)
        return len(dropped) + len(taken)

    def _enumerate(self, view: LeaderView, node: TreeNode, low: int, high: int) -> None:
        for size in range(low, high + 1):
            for more in combinations(node.free.tolist(), size):
                self._swaps.offer(view, [*node.held, *more])
        self._record([3.0, 0.0])
        self._leaves += 1
        self._stack.pop()

    def _record(self, head: list[float], *parts: FloatArray | list[float]) -> None:
        if self._recording:
            self._events.extend(np.asarray(part, dtype=np.float64) for part in (head, *parts))

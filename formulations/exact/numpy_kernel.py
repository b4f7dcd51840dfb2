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
from formulations.exact.numpy_inner_minimum import InnerProblem
from formulations.exact.numpy_node import BoundValue, LeaderView, TreeNode
from formulations.exact.reduced_problem import ReducedProblem
from placement.checks import FloatArray

__all__ = ["NumpyKernel"]

_EPS = float(np.finfo(np.float64).eps)

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
        weight = core.demand.near[0][core.active] + core.demand.relay[0][core.active]
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

    # --- face ---------------------------------------------------------------------------

    def bound_root(
        self, leader: int, u: FloatArray, iterations: int, swaps: int, warm: bool, seconds: float
    ) -> float:
        """Bound one leader without branching; see the protocol."""
        deadline = time.perf_counter() + seconds
        view = self._select_leader(leader)
        root = self._root(view, np.array(u))
        replicas = self._start(view, root) if swaps else None
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
            root = self._root(view, asked.u[i])
            value = self._evaluate(view, root, root.u)
            asked.bounds[i] = value.bound - value.error
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
                root = self._root(view, self._left_at[leader])
                value = self._evaluate(view, root, root.u)
                bounds[i] = value.bound - value.error
        return bounds

    def open_trees(self, leaders: Sequence[int], u: FloatArray, bounds: FloatArray) -> None:
        """Open the trees of leaders: one after another here, that of the least bound first."""
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
            self._stack = [self._root(self._select_leader(leader), np.array(u))]
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
        """Return what was done so far."""
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

    # --- one leader ---------------------------------------------------------------------

    def _select_leader(self, leader: int) -> LeaderView:
        core = self._core
        rtt = core.client_rtt[core.active]
        near, relay = core.demand.near[0][core.active], core.demand.relay[0][core.active]
        relayed = core.site_rtt[:, leader] if leader >= 0 else np.zeros(core.sites)
        price = np.zeros(core.sites) if core.price is None else core.price[max(leader, 0)]
        self._leader = LeaderView(
            leader,
            near[:, np.newaxis] * rtt + relay[:, np.newaxis] * relayed,
            float(core.direct[leader]) if leader >= 0 else 0.0,
            price,
            InnerProblem(core, leader),
        )
        return self._leader

    def _root(self, view: LeaderView, u: FloatArray) -> TreeNode:
        rules = self._core.rules
        pinned = rules.must_hold.copy()
        if view.index >= 0:
            pinned[view.index] = True
        clients = len(u)
        node = TreeNode(
            held=[],
            free=np.nonzero(rules.may_hold & ~pinned)[0],
            fixed_cost=np.full(clients, math.inf),
            fixed_rank=np.full(clients, self._core.sites, dtype=np.intp),
            u=np.zeros(clients),
            frequency=np.full(self._core.sites, 0.5),
            bound=0.0,
            root=True,
        )
        for site in np.nonzero(pinned)[0].tolist():
            self._hold(view, node, site)
        node.u = np.minimum(u, node.fixed_cost)
        return node

    def _hold(self, view: LeaderView, node: TreeNode, site: int) -> None:
        """Add a certain replica: no client uses a site that it ranks after this one."""
        node.held.append(site)
        node.free = node.free[node.free != site]
        nearer = self._rank[:, site] < node.fixed_rank
        node.fixed_rank = np.where(nearer, self._rank[:, site], node.fixed_rank)
        node.fixed_cost = np.where(nearer, view.costs[:, site], node.fixed_cost)
        node.u = np.minimum(node.u, node.fixed_cost)

    # --- bound --------------------------------------------------------------------------

    def _evaluate(self, view: LeaderView, node: TreeNode, u: FloatArray) -> BoundValue:
        """Return L(u) of a node, with its rounding error and reduced costs."""
        self._evaluations += 1
        gain = np.minimum(view.costs[:, node.free] - u[:, np.newaxis], 0.0)
        gain[self._rank[:, node.free] > node.fixed_rank[:, np.newaxis]] = 0.0
        rho = gain.sum(axis=0) + view.price[node.free]
        served = float(np.minimum(u, node.fixed_cost).sum())
        base = view.constant + float(view.price[node.held].sum()) + served
        answers = view.inner.solve(node.held, node.free, rho)
        if not answers:
            return BoundValue(math.inf, 0.0, rho, answers, base)
        best = min(answers, key=lambda answer: answer.value)
        size = len(best.chosen)
        magnitude = base + abs(best.value)
        magnitude += 2.0 * sum(abs(part.value) for part in best.parts)
        terms = len(u) + self._core.sites + 24
        error = _EPS * (terms * magnitude + 6.0 * (size + 2) * served)
        return BoundValue(base + best.value, error, rho, answers, base)

    def _improve(self, view: LeaderView, node: TreeNode, steps: int, deadline: float) -> float:
        """Take subgradient steps from node.u; keep the best multipliers there, return the bound.

        Steps are in the metric of the weights: a multiplier is as large as its client's weight.
        """
        best, step_size, stall, patience = -math.inf, 1.0, 0, max(6, steps // 20)
        u, direction = node.u.copy(), np.zeros(len(node.u))
        for step in range(steps):
            value = self._evaluate(view, node, u)
            safe = value.bound - value.error
            if safe > best:
                stall = 0 if safe > best + 1e-4 * abs(best) else stall
                best, node.u = safe, u
            else:
                stall += 1
            if best >= self._cutoff or not value.answers or step + 1 == steps:
                break
            if time.perf_counter() > deadline:
                break
            chosen = np.array(min(value.answers, key=lambda a: a.value).chosen, dtype=np.intp)
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
                best = min(here.answers, key=lambda answer: answer.value)
                self._descend(view, [*node.held, *best.chosen], 40, deadline)
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
        node.free = node.free[node.free != site]
        node.root = False
        child = TreeNode(
            held=list(node.held),
            free=node.free,
            fixed_cost=node.fixed_cost,
            fixed_rank=node.fixed_rank,
            u=node.u,
            frequency=node.frequency.copy(),
            bound=node.bound,
        )
        self._hold(view, child, site)
        self._stack.append(child)

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
        low, high = view.inner.sizes(len(node.held), len(node.free))
        rho = here.rho
        with_site = np.full(len(rho), math.inf)
        without = np.full(len(rho), math.inf)
        for answer in here.answers:
            plus = np.full(len(rho), -math.inf)
            minus = np.full(len(rho), -math.inf)
            for part in answer.parts:
                size = len(part.chosen)
                top = max(part.top, 0.0) if size < high else part.top
                left = min(part.least_left, 0.0) if size > low else part.least_left
                total = answer.price + part.value
                plus = np.maximum(plus, total + np.maximum(rho - top, 0.0))
                minus = np.maximum(minus, total + np.maximum(left - rho, 0.0))
            with_site, without = np.minimum(with_site, plus), np.minimum(without, minus)
        with_site += here.base - 4.0 * here.error
        without += here.base - 4.0 * here.error
        out, kept = with_site >= self._cutoff, without >= self._cutoff
        if (out & kept).any():
            return None
        for values in (with_site[out], without[kept]):
            self._closed = min(self._closed, float(values.min(initial=math.inf)))
        dropped, taken = node.free[out].tolist(), node.free[kept].tolist()
        if not dropped and not taken:
            return 0
        lists = [float(len(dropped)), *dropped, float(len(taken)), *taken]
        self._record([1.0, 0.0], node.u, lists)
        node.free = node.free[~out]
        for site in taken:
            self._hold(view, node, site)
        return len(dropped) + len(taken)

    def _enumerate(self, view: LeaderView, node: TreeNode, low: int, high: int) -> None:
        for size in range(low, high + 1):
            for more in combinations(node.free.tolist(), size):
                self._offer(view, [*node.held, *more])
        self._record([3.0, 0.0])
        self._leaves += 1
        self._stack.pop()

    def _record(self, head: list[float], *parts: FloatArray | list[float]) -> None:
        if self._recording:
            self._events.extend(np.asarray(part, dtype=np.float64) for part in (head, *parts))

    # --- primal -------------------------------------------------------------------------

    def _offer(self, view: LeaderView, replicas: list[int]) -> float:
        """Return the score of a complete set (+∞ when it breaks a rule), and keep the best set."""
        core = self._core
        rules = core.rules
        if not rules.replicas_min <= len(replicas) <= rules.replicas_max:
            return math.inf
        if not all(group.satisfied(replicas) for group in rules.of("replicas")):
            return math.inf
        configuration = core.configuration(view.index, replicas)
        if configuration is None:
            return math.inf
        score = core.score(configuration)
        self.propose(Incumbent(score, view.index, configuration.replicas))
        return score

    def _start(self, view: LeaderView, root: TreeNode) -> list[int] | None:
        """Return the incumbent with the leader in it, or the closest sites, or None."""
        best, value = None, math.inf
        held = set(root.held)
        incumbent = [r for r in self._best.replicas if r not in held]
        room = self._core.rules.replicas_max - len(held)
        near = view.inner.near_order or list(range(self._core.sites))
        closest = [s for s in near if s in set(root.free.tolist())]
        for extra in (incumbent[:room], incumbent[-room:] if room else [], closest[:room]):
            replicas = [*root.held, *extra]
            score = self._offer(view, replicas)
            if score < value:
                best, value = replicas, score
        return best

    def _descend(
        self, view: LeaderView, replicas: list[int], limit: int, deadline: float
    ) -> list[int]:
        """Return a set improved by swaps, the most promising additions first."""
        rules = self._core.rules
        score = self._offer(view, replicas)
        if score == math.inf:
            return replicas
        fixed = set(np.nonzero(rules.must_hold)[0].tolist()) | {view.index}
        for _ in range(limit):
            better = self._best_swap(view, replicas, fixed, score, deadline)
            if better is None:
                return replicas
            replicas, score = better
        return replicas

    def _best_swap(
        self,
        view: LeaderView,
        replicas: list[int],
        fixed: set[int],
        score: float,
        deadline: float,
    ) -> tuple[list[int], float] | None:
        """Return the set and score after a swap that improves, or None."""
        rows = np.arange(len(view.costs))
        outside = np.setdiff1d(np.nonzero(self._core.rules.may_hold)[0], replicas)
        found: list[tuple[float, list[int]]] = []
        for place, old in enumerate(replicas):
            rest = replicas[:place] + replicas[place + 1 :]
            if old in fixed or not len(outside):
                continue
            if time.perf_counter() > deadline:
                break
            if rest:
                ranks = self._rank[:, rest]
                nearest = ranks.argmin(axis=1)
                rank, cost = ranks[rows, nearest], view.costs[rows, np.array(rest)[nearest]]
                joined = np.where(
                    self._rank[:, outside] < rank[:, np.newaxis],
                    view.costs[:, outside],
                    cost[:, np.newaxis],
                )
            else:
                joined = view.costs[:, outside]
            totals = joined.sum(axis=0) + view.price[outside] + view.constant
            totals += view.price[rest].sum()
            for at in np.argsort(totals, kind="stable")[:3]:
                if totals[at] < score:
                    found.append((float(totals[at]), [*rest, int(outside[at])]))
        for _, changed in sorted(found)[:12]:
            if time.perf_counter() > deadline:
                break
            value = self._offer(view, changed)
            if value < score * (1 - 1e-12):
                return changed, value
        return None

"""A tree whose bounds come from the linear relaxation: the p-median problem with many replicas.

No leader matters, and there are no rules but sites that must or may not hold a replica. The tree
fixes sites, closes nodes and records events as :mod:`formulations.exact.certificate_events` says,
with the same care for rounding as the compiled kernel. Its multipliers are not those of subgradient
steps but the duals of :mod:`formulations.exact.p_median.linear_relaxation`, restricted to the
state. One such bound costs a linear program (the dual simplex goes on from the parent's basis) and
is the best that multipliers can give, so that trees stay small where the subgradient's do not. The
site to branch on is the one whose share in the relaxation is nearest to one half.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from formulations.exact import tuning
from formulations.exact.certificate_events import EVENTS_OF
from formulations.exact.kernel import TOLERANCE, Counters, Incumbent
from formulations.exact.p_median.linear_relaxation import PMedianRelaxation
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.checks import BoolArray, FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)


@dataclass
class _Node:
    """A state with its multipliers; `free` are the sites not yet tried as replicas."""

    held: list[int]
    free: IntArray
    fixed_cost: FloatArray
    fixed_rank: IntArray
    u: FloatArray
    frequency: FloatArray
    bound: float = 0.0
    root: bool = True


@dataclass(frozen=True)
class _Bound:
    """L(u) of a node: base + the least sum of reduced costs, their order, what rounding may add."""

    base: float
    rho: FloatArray
    order: IntArray
    size: int
    least: float
    error: float

    @property
    def safe(self) -> float:
        """The bound less its rounding error; +∞: no set of replicas fits."""
        return self.base + self.least - self.error


class LinearKernel:
    """The tree of one problem; its calls are those of :class:`formulations.exact.kernel.Kernel`.

    :meth:`PMedianRelaxation.applies_to` is true of it; `keep` are the sites that the relaxation may
    use.
    """

    def __init__(self, core: ReducedProblem, keep: BoolArray) -> None:
        self._core = core
        self._relaxation = PMedianRelaxation(core, keep)
        rtt = core.client_rtt[core.active]
        order = np.argsort(rtt, axis=1, kind="stable")
        self._rank = np.empty(rtt.shape, dtype=np.intp)
        np.put_along_axis(self._rank, order, np.arange(core.sites, dtype=np.intp)[np.newaxis], 1)
        self._costs = core.near[core.active][:, np.newaxis] * rtt
        self._price = np.zeros(core.sites) if core.price is None else core.price[0]
        self._best = Incumbent(math.inf, -2, ())
        self._cutoff, self._tolerance = math.inf, TOLERANCE
        self._stack: list[_Node] = []
        self._bound = 0.0
        self._closed = math.inf
        self._recording = False
        self._events: list[FloatArray] = []
        self._nodes = self._leaves = self._evaluations = 0

    def seed(self, multipliers: FloatArray) -> None:
        """Make the first rows of the relaxation."""
        self._relaxation.seed(multipliers)

    def set_gap(self, gap: float) -> None:
        """Close nodes whose bound is within `gap`, relatively, of the incumbent; 0: prove."""
        self._tolerance = max(gap, TOLERANCE)
        self._set_cutoff()

    def propose(self, proposal: Incumbent) -> None:
        """Offer an incumbent from outside."""
        if proposal.score < self._best.score:
            self._best = proposal
            self._set_cutoff()

    def incumbent(self) -> Incumbent | None:
        """Return the best so far."""
        return self._best if self._best.score < math.inf else None

    def counters(self) -> Counters:
        """Return the counters of the work so far."""
        return Counters(self._nodes, self._leaves, self._evaluations, self._cutoff, self._work())

    def record(self, on: bool) -> FloatArray:
        """Return the events recorded since the last call, and switch recording."""
        events = np.concatenate(self._events) if self._events else np.zeros(0)
        self._events, self._recording = [], on
        return events

    def bound_root(self, u: FloatArray, seconds: float) -> float:
        """Bound the root by the relaxation, and replace `u` by the best multipliers."""
        root = self._root(u)
        value = self._improve(root, time.perf_counter() + seconds)
        if value >= self._cutoff:
            self._record([2.0, 0.0], root.u)
        u[:] = root.u
        return value

    def open_tree(self, u: FloatArray) -> None:
        """Open the tree from multipliers `u`."""
        self._closed, self._bound = math.inf, 0.0
        self._stack = [self._root(u)]
        self._record([float(EVENTS_OF), -1.0])

    def run(self, work: float, seconds: float) -> bool:
        """Work on the open tree: True when it is finished."""
        end, enough = time.perf_counter() + seconds, self._work() + work
        while self._stack and self._work() < enough and time.perf_counter() < end:
            self._visit(end)
            self._bound = min([self._closed, *(node.bound for node in self._stack)])
        return not self._stack

    def tree_bounds(self, leaders: Sequence[int]) -> FloatArray:
        """Return the bound of the tree, for leader −1."""
        return np.full(len(leaders), self._bound)

    def _work(self) -> float:
        """See :attr:`Counters.work`."""
        cells = len(self._core.active) * self._core.sites
        bounds = tuning.RELAXATION_BOUND_WORK * cells * self._evaluations
        return bounds + tuning.PIVOT_WORK * self._relaxation.pivots

    def _set_cutoff(self) -> None:
        score, grain = self._best.score, self._core.granularity
        if math.isinf(score):
            return
        self._cutoff = score * (1 - self._tolerance)
        if grain:
            whole = np.nextafter(score - grain * (1 - 1e-6), math.inf)
            self._cutoff = min(self._cutoff, float(whole))

    def _offer(self, replicas: list[int]) -> None:
        """Take a complete set as incumbent, when it obeys the rules and is better."""
        rules = self._core.rules
        if rules.replicas_min <= len(replicas) <= rules.replicas_max:
            found = self._core.configuration(-1, replicas)
            if found is not None:
                self.propose(Incumbent(self._core.score(found), -1, found.replicas))

    # --- nodes ----------------------------------------------------------------------------------

    def _root(self, u: FloatArray) -> _Node:
        rules, sites, clients = self._core.rules, self._core.sites, len(u)
        node = _Node(
            held=[],
            free=np.nonzero(rules.may_hold & ~rules.must_hold)[0],
            fixed_cost=np.full(clients, math.inf),
            fixed_rank=np.full(clients, sites, dtype=np.intp),
            u=np.zeros(clients),
            frequency=np.full(sites, 0.5),
        )
        for site in np.nonzero(rules.must_hold)[0].tolist():
            self._hold(node, site)
        node.u = np.minimum(u, node.fixed_cost)
        return node

    def _hold(self, node: _Node, site: int) -> None:
        """Add a certain replica: no client uses a site that it ranks after this one."""
        node.held.append(site)
        node.free = node.free[node.free != site]
        nearer = self._rank[:, site] < node.fixed_rank
        node.fixed_rank = np.where(nearer, self._rank[:, site], node.fixed_rank)
        node.fixed_cost = np.where(nearer, self._costs[:, site], node.fixed_cost)
        node.u = np.minimum(node.u, node.fixed_cost)

    def _sizes(self, node: _Node) -> tuple[int, int]:
        """Return fewest and most sites still to be chosen."""
        rules = self._core.rules
        least = max(rules.replicas_min, rules.voters) - len(node.held)
        return max(0, least), min(rules.replicas_max - len(node.held), len(node.free))

    def _evaluate(self, node: _Node, u: FloatArray) -> _Bound:
        """Return L(u) of a node, and count the evaluation."""
        self._evaluations += 1
        gain = np.minimum(self._costs[:, node.free] - u[:, np.newaxis], 0.0)
        gain[self._rank[:, node.free] > node.fixed_rank[:, np.newaxis]] = 0.0
        rho = gain.sum(axis=0) + self._price[node.free]
        served = float(np.minimum(u, node.fixed_cost).sum())
        base = float(self._price[node.held].sum()) + served
        order = np.argsort(rho, kind="stable")
        size, high = self._sizes(node)
        if high < 0 or size > high:
            return _Bound(base, rho, order, 0, math.inf, 0.0)
        while size < high and rho[order[size]] < 0:
            size += 1
        least = float(sum(rho[order[:size]].tolist()))
        terms = len(u) + len(self._price) + 24
        error = _EPS * (terms * (base + 3.0 * abs(least)) + 6.0 * (size + 2) * served)
        return _Bound(base, rho, order, size, least, error)

    def _improve(self, node: _Node, deadline: float) -> float:
        """Take the best multipliers of the rounds of the relaxation, or the node's own."""
        value = self._evaluate(node, node.u)
        best = value.safe
        if best >= self._cutoff:
            return best
        self._relaxation.restrict(node.held, node.free)
        for number, found in enumerate(self._relaxation.rounds(deadline), start=1):
            u = np.clip(found.multipliers, 0.0, node.fixed_cost)
            value = self._evaluate(node, u)
            node.frequency = found.share
            self._offer(list(found.replicas))
            if value.safe > best:
                best, node.u = value.safe, u
            if best >= self._cutoff or (number >= tuning.RELAXATION_ROUNDS and not node.root):
                break
        return best

    def _visit(self, deadline: float) -> None:
        """Bound the node on top; then close it, enumerate it or branch."""
        node = self._stack[-1]
        self._nodes += 1
        for _ in range(4):
            low, high = self._sizes(node)
            completions = sum(math.comb(len(node.free), size) for size in range(low, high + 1))
            if low <= high and completions <= tuning.RELAXATION_ENUMERATED:
                self._enumerate(node, low, high)
                return
            value = self._improve(node, deadline)
            node.bound = max(node.bound, min(value, self._cutoff))
            if value >= self._cutoff:
                self._close(node, value)
                return
            if time.perf_counter() > deadline:
                return
            here = self._evaluate(node, node.u)
            if math.isinf(here.least):
                self._close(node, self._cutoff)
                return
            if not self._fix(node, here):
                break
        if len(node.free) == 0:
            return  # enumerated at the next visit
        site = int(node.free[np.abs(node.frequency[node.free] - 0.5).argmin()])
        self._record([4.0, float(site)])
        node.free = node.free[node.free != site]
        node.root = False
        child = replace(node, held=list(node.held), frequency=node.frequency.copy())
        self._hold(child, site)
        self._stack.append(child)

    def _fix(self, node: _Node, here: _Bound) -> int:
        """Fix sites whose inclusion, or exclusion, alone reaches the cutoff; return how many."""
        low, high = self._sizes(node)
        rho, size = here.rho, here.size
        keys = rho[here.order]
        top = float(keys[size - 1]) if size else -math.inf
        left = float(keys[size]) if size < len(keys) else math.inf
        top = max(top, 0.0) if size < high else top
        left = min(left, 0.0) if size > low else left
        chosen = np.zeros(len(rho), dtype=np.bool_)
        chosen[here.order[:size]] = True
        safe = here.base - 4.0 * here.error
        with_site = here.least + np.maximum(rho - top, 0.0) + safe
        without = here.least + np.where(chosen, np.maximum(left - rho, 0.0), 0.0) + safe
        out = with_site >= self._cutoff
        kept = (without >= self._cutoff) & ~out
        for values in (with_site[out], without[kept]):
            self._closed = min(self._closed, float(values.min(initial=math.inf)))
        dropped, taken = node.free[out].tolist(), node.free[kept].tolist()
        if dropped or taken:
            lists = [float(len(dropped)), *dropped, float(len(taken)), *taken]
            self._record([1.0, 0.0], node.u, lists)
            node.free = node.free[~out]
            for site in taken:
                self._hold(node, site)
        return len(dropped) + len(taken)

    def _close(self, node: _Node, value: float) -> None:
        self._closed = min(self._closed, value)
        self._record([2.0, 0.0], node.u)
        self._leaves += 1
        self._stack.pop()

    def _enumerate(self, node: _Node, low: int, high: int) -> None:
        for size in range(low, high + 1):
            for more in combinations(node.free.tolist(), size):
                self._offer([*node.held, *more])
        self._record([3.0, 0.0])
        self._leaves += 1
        self._stack.pop()

    def _record(self, head: list[float], *parts: FloatArray | list[float]) -> None:
        if self._recording:
            self._events.extend(np.asarray(part, dtype=np.float64) for part in (head, *parts))

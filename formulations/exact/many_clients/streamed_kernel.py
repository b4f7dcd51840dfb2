"""A kernel for many clients and few sites: no copy of the matrix (client, site).

Here almost all time and memory of the usual kernel go into that matrix: sorted, transposed, priced
under each leader. This kernel reads the RTTs where the instance has them.

* *Roots*: subgradient steps by sweeps over the rows of the clients, by several threads. The bound
  is that of the other kernels, so any multipliers are valid.
* *First configuration*: that of a sample of some thousand clients, evaluated on all.
* *Trees*: where a root does not close its leader, it gets further sweeps, and reduced costs fix
  some of its sites. Below, clients that rank the sites before their nearest certain one alike use
  the same one whatever is decided. Their costs are added up again at every node
  (:mod:`formulations.exact.many_clients.grouped_tree`). The bound of the sum is never below the
  sum of the bounds. A certificate names multipliers client by client; when one is kept, nothing is
  added up: a compiled kernel gets all clients and the sites that are left.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.exact import tuning
from formulations.exact.kernel import CompiledKernel, Kernel
from formulations.exact.kernel_types import (
    ClientStream,
    Counters,
    Incumbent,
    QuickBounds,
    RootBounds,
    SizeBatch,
)
from formulations.exact.many_clients.client_groups import (
    FREE,
    IN,
    OUT,
    ClientGroups,
    States,
)
from formulations.exact.many_clients.grouped_tree import GroupedTree
from formulations.exact.many_clients.partial_problem import partial_problem
from formulations.exact.many_clients.site_events import events_on_sites
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.warm_start import adapt_multipliers
from placement.support.checks import FloatArray, IntArray

__all__ = ["ManyClientsKernel"]

_FIX, _CLOSE, _PART, _EVENTS_OF = 1.0, 2.0, 6.0, 7.0  # as in certificate_events

_NUMBERS = 1 << 40
"""Numbers of parts between those of two kernels."""


@dataclass(eq=False)
class _Tree:
    """The tree of a leader.

    Attributes
    ----------
    leader, u
        Whose, and its multipliers.
    bound
        A proven bound: of the root, as long as there is no kernel.
    closed
        Least bound at which a site was fixed.
    keep, kernel
        The sites that are left and the kernel that branches on them; None: the root is not done.
    found
        The best score that was taken from that kernel.
    grouped
        In their place where no certificate is asked for: the tree over groups of clients.
    """

    leader: int
    u: FloatArray
    bound: float = 0.0
    closed: float = math.inf
    keep: IntArray | None = None
    kernel: CompiledKernel | None = None
    found: float = math.inf
    grouped: GroupedTree | None = None


class ManyClientsKernel:
    """See :class:`formulations.exact.kernel.Kernel`; for problems of few sites.

    There may be at most :data:`formulations.exact.kernel.MOST_STREAMED_SITES` sites.

    Parameters
    ----------
    core
        The problem.
    threads
        Most threads of a sweep; no result depends on it.
    """

    def __init__(self, core: ReducedProblem, threads: int = 1) -> None:
        whole = len(core.active) == core.clients
        self._core = core
        self._clients = ClientStream(
            rtt=np.ascontiguousarray(core.client_rtt),
            near=np.ascontiguousarray(core.near[core.active]),
            relay=np.ascontiguousarray(core.relay[core.active]),
            rows=None if whole else core.active.astype(np.int64),
            threads=threads,
        )
        nobody = np.zeros((0, core.sites))
        everywhere = np.arange(core.sites)
        weights = (np.zeros(0), np.zeros(0))
        self._root = CompiledKernel(partial_problem(core, nobody, weights, everywhere, core.rules))
        self._gap = 0.0
        self._sampled = False
        self._tree: _Tree | None = None
        self._waiting: list[_Tree] = []
        self._tree_bounds: dict[int, float] = {}
        self._opened = 0
        self._done = Counters(0, 0, 0, math.inf)
        self._recording = False
        self._events: list[FloatArray] = []
        self._recorded = 0
        self._best: tuple[float, int, FloatArray] | None = None
        self._proposed: set[tuple[int, ...]] = set()

    # --- roots -----------------------------------------------------------------------------

    def bound_root(
        self, leader: int, u: FloatArray, iterations: int, swaps: int, warm: bool, seconds: float
    ) -> float:
        """Bound one leader by sweeps; see the protocol. The primal search runs on a sample."""
        end = time.perf_counter() + seconds
        self._tree = None
        if swaps > 0:
            self._take_sample(seconds)
        if not warm:
            self._start_multipliers(leader, u)
        left = max(end - time.perf_counter(), 0.0)
        steps = min(iterations, tuning.STREAM_SCAN_STEPS)
        bound, selected = self._root.stream_steps(self._clients, leader, u, steps, left)
        if bound < self.counters().cutoff:
            self._propose_set(leader, selected)
        if bound >= self.counters().cutoff:
            self._record(np.array([_CLOSE, 0.0]), u)
        if self._best is None or bound < self._best[0] or leader == self._best[1]:
            self._best = bound, leader, u.copy()
        return bound

    def bound_roots(self, asked: RootBounds, at: int, work: float, seconds: float) -> int:
        """Bound leaders one after another; see the protocol."""
        end, enough = time.perf_counter() + seconds, self.counters().work + work
        for i in range(at, len(asked.leaders)):
            left = end - time.perf_counter()
            if i > at and (left <= 0 or self.counters().work >= enough):
                return i - at
            leader, warm = int(asked.leaders[i]), bool(asked.warm[i])
            asked.bounds[i] = self.bound_root(
                leader, asked.u[i], asked.steps, asked.swaps, warm, max(left, 0.0)
            )
            asked.ends[i] = self._recorded
        return len(asked.leaders) - at

    def quick_bounds(self, asked: QuickBounds, at: int, work: float, seconds: float) -> int:
        """Bound leaders, one evaluation each; see the protocol."""
        end, enough = time.perf_counter() + seconds, self.counters().work + work
        self._tree = None
        for i in range(at, len(asked.leaders)):
            if i > at and (time.perf_counter() >= end or self.counters().work >= enough):
                return i - at
            asked.bounds[i], _ = self._root.stream_steps(
                self._clients, int(asked.leaders[i]), asked.u[i], 1, math.inf
            )
        return len(asked.leaders) - at

    def _start_multipliers(self, leader: int, u: FloatArray) -> None:
        """Write start multipliers: from another leader, or the costs under the incumbent."""
        found = self._root.incumbent()
        replicas = () if found is None else found.replicas
        if self._best is not None and self._best[1] >= 0 and replicas:
            u[:] = adapt_multipliers(self._core, self._best[2], self._best[1], replicas, [leader])
            return
        if not replicas:
            u[:] = 0.0
            return
        chosen = list(replicas)
        trips = self._core.site_rtt if self._core.relay_rtt is None else self._core.relay_rtt
        relay = np.zeros(len(chosen)) if leader < 0 else trips[chosen, leader]
        costs = self._clients.rtt[:, chosen][self._core.active] * self._clients.near[:, np.newaxis]
        costs += self._clients.relay[:, np.newaxis] * relay
        costs.partition(min(1, len(chosen) - 1), axis=1)
        u[:] = costs[:, :2].mean(axis=1)

    # --- configurations --------------------------------------------------------------------

    def _take_sample(self, seconds: float) -> None:
        """Propose the best configuration of a sample, once."""
        if self._sampled:
            return
        self._sampled = True
        clients, core = self._clients, self._core
        scale = clients.near + clients.relay
        total, count = np.cumsum(scale), tuning.SAMPLE_CLIENTS
        # so many draws at equal distances along the weights: a heavy client is drawn every time
        marks = (np.arange(count) + 0.5) * (total[-1] / count)
        drawn, times = np.unique(np.searchsorted(total, marks), return_counts=True)
        share = times * (total[-1] / count) / scale[drawn]
        rtt = clients.rtt[drawn if clients.rows is None else clients.rows[drawn]]
        weights = (clients.near[drawn] * share, clients.relay[drawn] * share)
        everywhere = np.arange(core.sites)
        sample = CompiledKernel(partial_problem(core, rtt, weights, everywhere, core.rules))
        leaders = core.leaders.astype(np.int32)
        asked = RootBounds(
            leaders=leaders,
            u=np.zeros((len(leaders), len(drawn))),
            warm=np.zeros(len(leaders), dtype=np.bool_),
            steps=tuning.SCAN_STEPS,
            swaps=tuning.SCAN_SWAPS,
            full=tuning.FULL_DESCENTS,
            bounds=np.full(len(leaders), math.nan),
            ends=np.zeros(len(leaders), dtype=np.int64),
        )
        end = time.perf_counter() + seconds
        if sample.bound_roots(asked, 0, math.inf, seconds) == len(leaders):
            # a plan that is best for the sample is one that later trees have to beat
            sample.open_trees(leaders.tolist(), asked.u, asked.bounds)
            work = tuning.SAMPLE_TREE_SHARE * len(core.active) * core.sites
            sample.run(work, max(end - time.perf_counter(), 0.0))
        self._done = self._done.plus(sample.counters())
        found = sample.incumbent()
        if found is not None:
            self._propose_set(found.leader, found.replicas)

    def _propose_set(self, leader: int, replicas: Sequence[int]) -> None:
        """Evaluate a replica set on all clients and propose it, if it is feasible."""
        rules, proposed = self._core.rules, (leader, *sorted(replicas))
        if proposed in self._proposed or not (
            rules.replicas_min <= len(replicas) <= rules.replicas_max
        ):
            return
        self._proposed.add(proposed)
        if not bool(rules.obeyed("replicas", np.array([sorted(replicas)]))[0]):
            return
        configuration = self._core.configuration(leader, replicas)
        if configuration is not None:
            score = self._core.score(configuration)
            self._root.propose(Incumbent(score, leader, configuration.replicas))

    # --- trees -----------------------------------------------------------------------------

    def open_trees(self, leaders: Sequence[int], u: FloatArray, bounds: FloatArray) -> None:
        """Open the trees of leaders one after another, the least bound first."""
        self._leave_tree()
        known = bounds.tolist()
        trees = [
            _Tree(leader, start.copy(), bound)
            for leader, start, bound in zip(leaders, u, known, strict=True)
        ]
        self._waiting = sorted(trees, key=lambda tree: -tree.bound)
        self._tree_bounds = dict(zip(leaders, known, strict=True))

    def run(self, work: float, seconds: float) -> bool:
        """Work on the open trees."""
        end = time.perf_counter() + seconds
        while self._tree is None:
            if not self._waiting:
                return True
            tree = self._waiting.pop()
            if tree.bound < self.counters().cutoff:  # else these multipliers close it
                self._tree = tree
                self._record(np.array([_EVENTS_OF, float(tree.leader)]))
        finished = self._run_tree(self._tree, work, max(end - time.perf_counter(), 0.0))
        self._tree_bounds[self._tree.leader] = self._bound()
        if finished:
            self._leave_tree()
        return finished and not self._waiting

    def _run_tree(self, tree: _Tree, work: float, seconds: float) -> bool:
        """Work on one tree: its root first, then the kernel of the sites that are left."""
        end = time.perf_counter() + seconds
        if tree.grouped is None and tree.kernel is None:
            if self._close_root(tree, seconds):
                return True
            if time.perf_counter() >= end:
                return False
            if not self._fix_and_open(tree, end):
                return True
        left_over = max(end - time.perf_counter(), 0.0)
        if tree.grouped is not None:
            return tree.grouped.run(work, left_over)
        if tree.kernel is None:  # the time was over before the clients were added up
            return False
        finished = tree.kernel.run(work, left_over)
        self._take_from(tree)
        return finished

    def _close_root(self, tree: _Tree, seconds: float) -> bool:
        """Improve the multipliers of a root; return whether they close the leader."""
        bound, selected = self._root.stream_steps(
            self._clients, tree.leader, tree.u, tuning.STREAM_STEPS, seconds
        )
        tree.bound = max(tree.bound, bound)
        if bound < self.counters().cutoff:
            self._propose_set(tree.leader, selected)
        if bound < self.counters().cutoff:
            return False
        self._record(np.array([_CLOSE, 0.0]), tree.u)
        return True

    def _fix_and_open(self, tree: _Tree, end: float) -> bool:
        """Fix sites, and open the tree below if there is time; return whether anything is left."""
        states, closed, left = self._root.stream_fix(self._clients, tree.leader, tree.u, math.inf)
        if self._recording:
            self._open_kernel(tree, states, closed, left)
            return True
        if not left:
            tree.bound = max(tree.bound, self.counters().cutoff)
            return False
        tree.closed = closed
        self._open_grouped(tree, states, end)
        return True

    def _open_kernel(self, tree: _Tree, states: States, closed: float, left: bool) -> None:
        """Open the kernel of the sites that are not out, with all clients, for a certificate."""
        core, rules = self._core, self._core.rules
        certain = rules.must_hold.copy()
        if tree.leader >= 0:
            certain[tree.leader] = True
        if left:
            free, fixed = states == FREE, states == IN
            out = rules.may_hold & ~certain & (states == OUT)
            taken = fixed & ~certain
            tree.closed = closed
            if out.any() or taken.any():
                self._record_fixed(tree.u, np.flatnonzero(out), np.flatnonzero(taken))
        else:  # two sides of one site are closed: the kernel finds that again, and records it
            free, fixed = rules.may_hold & ~certain, certain
        keep = np.flatnonzero(free | fixed)
        lead = np.zeros(core.sites, dtype=np.bool_)
        if tree.leader >= 0:
            lead[tree.leader] = True
        else:
            lead = rules.may_lead
        rules = rules.with_size(
            rules.replicas_min, rules.replicas_max, rules.must_hold | fixed, lead
        )
        clients = self._clients
        rtt = clients.rtt[:, keep] if clients.rows is None else clients.rtt[clients.rows][:, keep]
        weights = (clients.near, clients.relay)
        kernel = CompiledKernel(partial_problem(core, rtt, weights, keep, rules))
        del rtt  # the kernel has its own, and the tree needs the room
        tree.keep, tree.kernel = keep, kernel
        kernel.record(on=True)
        kernel.set_gap(self._gap)
        best = self._root.incumbent()
        if best is not None:
            kernel.propose(Incumbent(best.score, -2, ()))
        leader = tree.leader if tree.leader < 0 else int(np.searchsorted(keep, tree.leader))
        self._opened += 1
        self._record(np.array([_PART, float(self._opened * _NUMBERS + leader)]))
        # It has no bound yet: the kernel bounds it, and records how it is closed.
        kernel.open_trees([leader], tree.u[np.newaxis], np.array([-math.inf]))

    def _open_grouped(self, tree: _Tree, states: States, end: float) -> None:
        """Open the tree over groups of clients, which has the multipliers from now on."""
        left = max(end - time.perf_counter(), 0.0)
        groups = ClientGroups.of(self._root, self._clients, tree.leader, tree.u, states, left)
        if groups is None:
            return
        tree.u = np.zeros(0)
        tree.grouped = GroupedTree(
            self._core,
            self._root,
            groups,
            tree.leader,
            states,
            bound=tree.bound,
            threads=self._clients.threads,
            gap=self._gap,
            propose=self._propose_set,
        )

    def _take_from(self, tree: _Tree) -> None:
        """Evaluate the solutions of the kernel of a tree, and take its events."""
        assert tree.kernel is not None
        assert tree.keep is not None
        self._record(self._events_of(tree.kernel, tree.keep))
        found = tree.kernel.incumbent()
        if found is not None and found.replicas and found.score < tree.found:
            tree.found = found.score
            self._propose_set(tree.leader, tree.keep[list(found.replicas)].tolist())

    def _events_of(self, kernel: CompiledKernel, keep: IntArray) -> FloatArray:
        """Return the record of the kernel of the tree, on all sites."""
        clients, first = len(self._core.active), self._opened * _NUMBERS
        return events_on_sites(kernel.record(on=True), keep, clients, first)

    def _leave_tree(self) -> None:
        tree = self._tree
        if tree is not None and tree.grouped is not None:
            self._done = self._done.plus(tree.grouped.counters())
        elif tree is not None and tree.kernel is not None:
            self._done = self._done.plus(tree.kernel.counters())
        self._tree = None

    def tree_bounds(self, leaders: Sequence[int]) -> FloatArray:
        """Lower bounds of the open trees, finished parts included."""
        return np.array([self._tree_bounds[leader] for leader in leaders])

    def _bound(self) -> float:
        tree = self._tree
        if tree is None:
            return math.inf
        if tree.grouped is not None:
            return max(tree.bound, min(tree.closed, tree.grouped.bound()))
        if tree.kernel is None:
            return tree.bound
        leader = tree.leader
        if leader >= 0 and tree.keep is not None:
            leader = int(np.searchsorted(tree.keep, leader))
        below = float(tree.kernel.tree_bounds([leader])[0])
        return max(tree.bound, min(tree.closed, below))

    # --- the rest of the protocol ----------------------------------------------------------

    def bounds_from_memory(self, leaders: Sequence[int], swaps: int, seconds: float) -> FloatArray:
        """Return NaN for every leader: reduced costs are not kept."""
        del swaps, seconds
        return np.full(len(leaders), math.nan)

    def with_sizes(self, core: ReducedProblem, seconds: float) -> Kernel:
        """Return a kernel for another number of replicas."""
        del seconds
        return ManyClientsKernel(core, self._clients.threads)

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
        self._gap = gap
        self._root.set_gap(gap)

    def propose(self, proposal: Incumbent) -> None:
        """Offer an incumbent from outside; only its score is compared."""
        self._root.propose(proposal)

    def incumbent(self) -> Incumbent | None:
        """Return the best so far."""
        return self._root.incumbent()

    def counters(self) -> Counters:
        """Return the counters of the work so far, the sample and all trees included."""
        total = self._root.counters().plus(self._done)
        tree = self._tree
        if tree is not None and tree.grouped is not None:
            total = total.plus(tree.grouped.counters())
        elif tree is not None and tree.kernel is not None:
            total = total.plus(tree.kernel.counters())
        return total

    def record(self, on: bool) -> FloatArray:
        """Return the events recorded since the last call, and switch recording."""
        events = np.concatenate(self._events) if self._events else np.zeros(0)
        self._events, self._recorded, self._recording = [], 0, on
        return events

    def _record(self, *parts: FloatArray) -> None:
        if self._recording:
            self._events.extend(part.copy() for part in parts)
            self._recorded += sum(len(part) for part in parts)

    def _record_fixed(self, u: FloatArray, out: IntArray, taken: IntArray) -> None:
        head = np.array([_FIX, 0.0])
        self._record(
            head, u, np.array([float(len(out)), *out]), np.array([float(len(taken)), *taken])
        )

"""The search: bound every leader, then branch under those that stay open until all are proven.

For every leader ℓ the best (V, R) is a p-median problem with closest assignment and a quorum term.
Its Lagrangean bound (:mod:`formulations.exact.certificate_events` has the mathematics) mostly
reaches the incumbent after a few subgradient steps; then the leader is eliminated. The rest goes
through a depth-first tree over "replica at j, or not" with fixing by reduced cost.

1. Leaders in the order of direct demand + quorum + relayed demand, close to their true order; after
   another search with the same kernel, those that :mod:`formulations.exact.warm_start` leaves open.
2. *Root bounds*: a swap descent for the first few leaders, and a few subgradient steps for each
   leader. All but the first few start from multipliers adapted from the best so far. On larger
   problems all other leaders get a *quick bound* first, one evaluation. The steps go on with the
   least of these bounds, so that the proven bound rises from the start, and end at the first that
   is enough. If no configuration was found, counting says whether there is one
   (:mod:`formulations.exact.no_plan_proof`).
3. *Trees* for the leaders still open. Each gets the steps of its root first, then the part of the
   least bound comes next (``csrc/leader_tree.c``). The least of all bounds, of finished and
   unfinished parts, therefore rises all the time; it is a proven lower bound.
4. If the leader does not matter and a small tree has not been enough, a second tree, whose bounds
   come from the *linear relaxation* (:mod:`formulations.exact.p_median.relaxation_tree`),
   alternates with the first. Both get the same amount of work, until one of them ends. With few
   replicas many cheap bounds are better, with many replicas few good ones. With few replicas the
   first tree starts again before, from better multipliers and replicas
   (:mod:`formulations.exact.p_median.p_median_descents`).

The search returns to Python every few hundredths of a second, so that Ctrl-C, time limits and
reports work, and keeps what it has proven.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from formulations.exact import tuning
from formulations.exact.kernel import (
    Counters,
    Incumbent,
    Kernel,
    Multipliers,
    QuickBounds,
    ReferenceLeader,
    RootBounds,
    open_kernel,
)
from formulations.exact.no_plan_proof import NoPlan, counting_applies, counting_decides, no_plan
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.warm_start import adapt_multipliers, warm_bounds
from placement.errors import LimitError, SolverError
from placement.methods.options import Progress
from placement.model.configuration import Configuration
from placement.support.checks import BoolArray, FloatArray
from placement.support.status import Status, Termination, least_bound, relative_gap, status_of

if TYPE_CHECKING:
    from formulations.exact.certificate_events import Certificate
    from formulations.exact.p_median.relaxation_tree import LinearKernel


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits at which a search stops: wall time, and relative gap between incumbent and bound."""

    seconds: float = math.inf
    gap: float = 0.0


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a search: its best configuration and what it proved.

    `proven` is a lower bound on the objective of every feasible configuration, +∞ when infeasible.
    `leader_bounds` has that of every leader searched (−1 when no leader matters), of all that its
    tree has not evaluated. `multipliers`, of the active clients by leader, start a similar search.
    `certified` builds the certificate of a finished search that was asked for one. `none` shows
    that there is no configuration.
    """

    core: ReducedProblem
    termination: Termination
    configuration: Configuration | None
    proven: float
    reports: tuple[Progress, ...]
    seconds: float
    counters: Counters
    leader_bounds: Mapping[int, float] = field(default_factory=dict)
    multipliers: Mapping[int, FloatArray] = field(default_factory=dict)
    certified: Callable[[], Certificate] | None = None
    none: NoPlan | None = None

    @cached_property
    def score(self) -> float:
        """Objective of the incumbent by the shared evaluator; +∞ when there is none."""
        return math.inf if self.configuration is None else self.core.score(self.configuration)

    @property
    def bound(self) -> float:
        """Proven bound, lowered to the score where rounding put it above."""
        return min(self.proven, self.score)

    @property
    def status(self) -> Status:
        """Status of the incumbent, from score and bound."""
        return status_of(self.configuration is not None, self.score, self.bound)

    @property
    def trace(self) -> tuple[Progress, ...]:
        """Reports, in time; incumbents fall, bounds rise."""
        return (*self.reports, Progress(self.seconds, self.score, self.bound))

    @cached_property
    def certificate(self) -> Certificate | None:
        """Certificate that re-proves the bound; built when first read, as most plans need none."""
        return None if self.certified is None else self.certified()


def round_up(core: ReducedProblem, bound: float) -> float:
    """Next multiple of the granularity, when every objective is one."""
    if not core.granularity or not math.isfinite(bound):
        return bound
    return core.granularity * math.ceil(bound / core.granularity)


_UNLIMITED = 1e9
"""Seconds that stand for "no limit" where a kernel asks for a number."""


class Stop(Exception):  # noqa: N818 - a limit is no error
    """The end of a search before its proof, at the limit that was reached."""

    def __init__(self, termination: Termination) -> None:
        super().__init__(termination)
        self.termination = termination


class SearchState:
    """The state of a search.

    `bounds` has the proven lower bound of every leader; `proven` leaves out the static bounds: it
    is what the recorded events prove. `multipliers` are the last ones, `proofs` the events by
    leader, and `log` is what was recorded of the trees. `opened` are the leaders whose trees are
    open in the kernel. A `rival` is a kernel that alternates with `kernel` on the same leader.
    `best_bound` is the greatest bound reported so far.
    """

    def __init__(
        self,
        core: ReducedProblem,
        kernel: Kernel,
        limits: SearchLimits,
        listen: Callable[[Progress], None] | None,
        certify: bool,
    ) -> None:
        self.core = core
        self.kernel = kernel
        self.limits = limits
        self.listen = listen
        self.certify = certify
        self.started = time.perf_counter()
        leaders: list[int] = core.leaders.tolist()
        self.bounds = dict(zip(leaders, core.floors.tolist(), strict=True))
        self.proven: dict[int, float] = {}
        self.multipliers = Multipliers(core)
        self.proofs: dict[int, FloatArray] = {}
        self.trace: list[Progress] = []
        self.best_bound = 0.0
        self.opened: list[int] = []
        self.rival: LinearKernel | None = None
        self.log: FloatArray = np.zeros(0)

    def seconds(self) -> float:
        """Return the wall time since the start."""
        return time.perf_counter() - self.started

    def seconds_left(self) -> float:
        """Return the wall time up to the limit, or many years."""
        return min(self.limits.seconds - self.seconds(), _UNLIMITED)

    def incumbent(self) -> float:
        """Return the score of the best configuration so far; +∞: there is none."""
        found = self.kernel.incumbent()
        return math.inf if found is None else found.score

    def counters(self) -> Counters:
        """Return the work of kernel and rival so far."""
        now = self.kernel.counters()
        return now if self.rival is None else now.plus(self.rival.counters())

    def bound(self) -> float:
        """Return the least proven bound over all leaders; it never falls."""
        if self.opened:
            proven = self.kernel.tree_bounds(self.opened)
            if self.rival is not None:
                proven = np.maximum(proven, self.rival.tree_bounds(self.opened))
            for leader, bound in zip(self.opened, proven.tolist(), strict=True):
                self.raise_bound(leader, bound)
        least = least_bound(*self.bounds.values())
        self.best_bound = max(self.best_bound, least)
        return self.best_bound

    def raise_bound(self, leader: int, bound: float) -> None:
        """Note a proven bound of a leader, when it is greater than the one known."""
        self.bounds[leader] = max(self.bounds[leader], bound)

    def report_progress(self) -> None:
        """Add a report to the trace, and give it to the listener, when there is something new."""
        now, score = self.seconds(), self.incumbent()
        last = self.trace[-1] if self.trace else None
        due = last is None or now - last.seconds >= tuning.REPORT_EVERY
        if not (due or (last is not None and score < last.incumbent)):
            return
        report = Progress(now, score, min(self.bound(), score))
        if last is not None and (report.incumbent, report.bound) == (last.incumbent, last.bound):
            return
        self.trace.append(report)
        if self.listen is not None:
            self.listen(report)

    def check(self) -> None:
        """Return when the search may go on; raise Stop at the end of the time, or at the gap."""
        if self.seconds_left() <= 0:
            raise Stop(Termination.TIME_LIMIT)
        if self.limits.gap > 0 and relative_gap(self.incumbent(), self.bound()) <= self.limits.gap:
            raise Stop(Termination.GAP_LIMIT)


_MOMENT = 0.01
"""Seconds that a kernel gets at least, so that a search without time finds something."""


class _BranchAndBound:
    """State and steps of a search; :func:`search` is its only user.

    Its methods raise :class:`Stop` at a limit and KeyboardInterrupt after Ctrl-C; what they have
    proven until then is in the state.
    """

    def __init__(self, state: SearchState, find: Callable[[], Configuration | None] | None) -> None:
        self.state = state
        self.find = find
        self.core = state.core
        self.kernel = state.kernel
        self.descents = tuning.FULL_DESCENTS
        self.none: NoPlan | None = None

    def run(self, warm: Mapping[int, FloatArray], continues: bool) -> None:
        """Bound every leader, then branch under those that stay open."""
        state, leaders = self.state, self.core.leaders.tolist()
        left = self.bound_from_memory(leaders, warm) if continues else leaders
        self.bound_roots(left, warm)
        if self.kernel.incumbent() is None:
            self.none = no_plan(self.core.rules) if counting_applies(self.core.rules) else None
            if self.none is not None or self.has_no_plan():
                return
        cutoff = self.kernel.counters().cutoff
        left = [leader for leader in left if not state.proven[leader] >= cutoff]
        if left:
            self.branch(left)

    def has_no_plan(self) -> bool:
        """Look for a configuration where counting does not decide; return whether there is none.

        False too when the look becomes too long, or when waits may be impossible to meet, which it
        does not see: then the trees find one, or none.
        """
        core = self.core
        if self.find is None or core.cases is not None or counting_decides(core.rules):
            return False
        try:
            found = self.find()
        except LimitError:
            return False
        if found is not None:
            leader = found.leader if self.core.leader_matters else -1
            self.kernel.propose(Incumbent(self.core.score(found), leader, found.replicas))
        return found is None

    def seconds(self) -> float:
        """Return the seconds that a call of a kernel may take: the remaining time, or a moment."""
        return max(self.state.seconds_left(), _MOMENT)

    def bound_from_memory(self, leaders: list[int], warm: Mapping[int, FloatArray]) -> list[int]:
        """Bound leaders by the memory of the kernel; return those that stay open."""
        limits = (tuning.SCAN_SWAPS, self.seconds())
        found = warm_bounds(self.kernel, leaders, warm, self.core.floors, limits)
        state = self.state
        state.multipliers = Multipliers(self.core, warm)
        state.bounds, state.proven = found.bounds, found.proven
        if state.certify:
            state.proofs.update((leader, np.zeros(0)) for leader in state.proven)
        if found.left:
            self.descents = 0  # the kernel has made them
            state.report_progress()
        return found.left

    def bound_roots(self, leaders: list[int], warm: Mapping[int, FloatArray]) -> None:
        """Bound every leader without branching."""
        if not leaders:
            return
        clients = len(self.core.active)
        quick = not warm and clients * self.core.sites >= tuning.QUICK_BOUND_CELLS
        first = leaders[: tuning.FULL_DESCENTS] if quick else leaders
        nothing = np.zeros(clients)
        u = np.array([warm.get(leader, nothing) for leader in first]).reshape(len(first), clients)
        self.bound_in_order(first, u, [leader in warm for leader in first])
        others = leaders[len(first) :]
        if not others:
            return
        if len(others) >= tuning.SHARED_LEADERS and self.core.shares_multipliers:
            self.bound_together(others)
            return
        found = self.quick_bounds(others)
        order = np.argsort(found.bounds, kind="stable")
        left = found.leaders[order].tolist()
        # copied are the multipliers of those alone that are still open
        end = int(np.count_nonzero(found.bounds < self.kernel.counters().cutoff))
        u, bounds = found.u[order[:end]], found.bounds[order]
        self.bound_in_order(left[:end], u, [False] * end, bounds[:end])
        self.note_pruned(left[end:], [found.u[i] for i in order[end:]], bounds[end:])

    def bound_together(self, leaders: list[int]) -> None:
        """Bound leaders by multipliers that they share, of one leader after another.

        The next one is the open leader of the least bound, with a descent until several of these
        found no better replicas. Once shared multipliers have closed few of the others several
        times, each of these gets its own steps, from the multipliers that bound it best.
        """
        state, core = self.state, self.core
        found = self.kernel.incumbent()
        reference = min(state.multipliers.own, key=lambda one: state.bounds[one])
        if found is not None and found.leader in state.multipliers.own:
            reference = found.leader
        left, descents = np.array(leaders, dtype=np.int32), tuning.FULL_DESCENTS
        best: dict[int, tuple[float, ReferenceLeader]] = {}  # what a certificate can repeat
        failed = 0
        while True:
            shared = ReferenceLeader.of(core, reference, state.multipliers[reference])
            bounds = self.kernel.shared_bounds(shared, left, self.seconds())
            state.check()
            closed = bounds >= self.kernel.counters().cutoff
            for leader, bound in zip(left.tolist(), bounds.tolist(), strict=True):
                if leader not in best or bound > best[leader][0]:
                    best[leader] = bound, shared
                state.raise_bound(leader, bound)
            for leader, bound in zip(left[closed].tolist(), bounds[closed].tolist(), strict=True):
                state.multipliers.share(leader, shared)
                state.proven[leader], state.proofs[leader] = bound, np.zeros(0)
            state.report_progress()
            few = np.count_nonzero(closed) < tuning.SHARED_CLOSED * len(left)
            failed = failed + 1 if few else 0
            left = left[~closed]
            if not len(left):
                return
            known = np.array([best[one][0] for one in left.tolist()])
            order = np.argsort(known, kind="stable")
            left, known = left[order], known[order]
            end = len(left) if failed == tuning.SHARED_TRIES else 1
            u = np.array([best[one][1].under(core, one) for one in left[:end].tolist()])
            before = state.incumbent()
            self.bound_in_order(left[:end].tolist(), u, [True] * end, known[:end], descents)
            better = state.incumbent() < before
            descents = tuning.FULL_DESCENTS if better else max(0, descents - 1)
            if end == len(left):
                return
            reference, left = int(left[0]), left[1:]

    def quick_bounds(self, leaders: list[int]) -> QuickBounds:
        """Bound every leader once, by multipliers adapted from the best leader so far."""
        state, incumbent = self.state, self.kernel.incumbent()
        best = min(state.multipliers, key=lambda one: state.bounds[one])
        replicas = (incumbent.replicas if incumbent is not None else ()) or (best,)
        found = QuickBounds(
            leaders=np.array(leaders, dtype=np.int32),
            u=adapt_multipliers(self.core, state.multipliers[best], best, replicas, leaders),
            bounds=np.full(len(leaders), math.nan),
        )
        at = 0
        while at < len(leaders):
            state.check()
            self.kernel.quick_bounds(found, at, tuning.CHUNK_WORK, self.seconds())
            end = at + _count_bounded(found.bounds[at:])
            for i in range(at, end):
                state.raise_bound(leaders[i], float(found.bounds[i]))
            at = end
            state.report_progress()
        return found

    def bound_in_order(
        self,
        leaders: list[int],
        u: FloatArray,
        warm: list[bool],
        quick: FloatArray | None = None,
        descents: int = 0,
    ) -> None:
        """Bound leaders one after another by subgradient steps, `descents` of them with a descent.

        With their quick bounds, ascending, the end is where one of them proves enough for all that
        follow.
        """
        cells = u.shape[1] * self.core.sites
        asked = RootBounds(
            leaders=np.array(leaders, dtype=np.int32),
            u=u,
            warm=np.array(warm, dtype=np.bool_),
            steps=max(1, min(tuning.SCAN_STEPS, int(tuning.SCAN_WORK / (cells + 1)))),
            swaps=tuning.SCAN_SWAPS,
            full=self.descents if quick is None else descents,
            bounds=np.full(len(leaders), math.nan),
            ends=np.zeros(len(leaders), dtype=np.int64),
        )
        at = 0
        while at < len(leaders):
            if at > 0 or quick is not None:
                self.state.check()
            if quick is not None and quick[at] >= self.kernel.counters().cutoff:
                self.note_pruned(leaders[at:], list(u[at:]), quick[at:])
                return
            # without time too, the first leader is bounded
            work = tuning.CHUNK_WORK if self.state.seconds_left() > 0 else 0.0
            try:
                self.kernel.bound_roots(asked, at, work, self.seconds())
            finally:  # after Ctrl-C too: finished bounds are kept
                at = self.note_root_bounds(asked, at)
            self.state.report_progress()

    def note_pruned(self, leaders: list[int], u: Sequence[FloatArray], bounds: FloatArray) -> None:
        """Note leaders that the multipliers alone close: one event each, not recorded."""
        state = self.state
        state.multipliers.give(leaders, u)
        state.proven.update(zip(leaders, bounds.tolist(), strict=True))
        if state.certify:
            state.proofs.update((leader, np.zeros(0)) for leader in leaders)

    def note_root_bounds(self, asked: RootBounds, at: int) -> int:
        """Note the bounds of the leaders from `at` on that are bounded; return where they end."""
        state = self.state
        end = at + _count_bounded(asked.bounds[at:])
        leaders = asked.leaders[at:end].tolist()
        bounds = asked.bounds[at:end].tolist()
        state.multipliers.give(leaders, asked.u[at:end])
        state.proven.update(zip(leaders, bounds, strict=True))
        for leader, bound in zip(leaders, bounds, strict=True):
            state.raise_bound(leader, bound)
        if state.certify:
            record = self.kernel.record(on=True)
            first = 0
            for leader, last in zip(leaders, asked.ends[at:end].tolist(), strict=True):
                state.proofs[leader] = record[first:last]
                first = last
        return end

    def restart_tree(self, leader: int, u: FloatArray, steps: int, swaps: int) -> None:
        """Start the tree of the kernel over, after so many steps from `u`, which they improve."""
        state = self.state
        state.bound()
        state.opened = []  # until the tree is open its bound says nothing
        state.multipliers[leader] = (
            u  # also when the steps are interrupted: they change it in place
        )
        bound = self.kernel.bound_root(leader, u, steps, swaps, True, self.seconds())
        state.raise_bound(leader, bound)
        self.kernel.record(on=state.certify)
        # without a bound: so its root is recorded again
        self.kernel.open_trees([leader], u[np.newaxis], np.zeros(1))
        state.opened = [leader]

    def improve_incumbent(self, leader: int) -> bool:
        """Try descents among promising sites; return whether they found better replicas."""
        from formulations.exact.p_median import p_median_descents as descents

        u = self.state.multipliers[leader]
        end = time.perf_counter() + self.state.seconds_left()
        few = descents.has_few_replicas(self.core)
        return few and descents.improve_by_descents(self.core, self.kernel, u, end)

    def restart_better(self, leader: int) -> None:
        """Start over with better multipliers and replicas where the tree has turned out large."""
        multipliers = self.state.multipliers
        self.restart_tree(leader, multipliers[leader].copy(), tuning.LONG_STEPS, 0)
        if self.improve_incumbent(leader):  # steps are as long as the incumbent is far
            self.restart_tree(leader, multipliers[leader].copy(), tuning.LONG_STEPS, 0)

    def start_relaxation_tree(self, leader: int, keep: BoolArray) -> None:
        """Add a rival that bounds by the linear relaxation.

        The kernel starts over when the relaxation alone says more than all of its tree so far.
        """
        from formulations.exact.p_median.relaxation_tree import LinearKernel

        state = self.state
        rival = LinearKernel(self.core, keep)
        rival.set_gap(state.limits.gap)
        u = state.multipliers[leader].copy()
        rival.seed(u)
        found = self.kernel.incumbent()
        if found is not None:
            rival.propose(found)
        bound = rival.bound_root(u, self.seconds())
        rival.record(on=state.certify)
        rival.open_tree(u)
        better = bound > self.kernel.tree_bounds([leader])[0]
        state.rival = rival  # not before its tree is open: until then its bound says nothing
        self.exchange_incumbents()
        if better:
            # with a descent from where rounding has led
            self.restart_tree(leader, u, 1, tuning.SCAN_SWAPS)
            self.improve_incumbent(leader)
            self.exchange_incumbents()

    def next_kernel(self) -> Kernel | LinearKernel:
        """Return the kernel of the next step: the rival while its work is less than the other's."""
        rival = self.state.rival
        if rival is None or rival.counters().work >= self.kernel.counters().work:
            return self.kernel
        return rival

    def exchange_incumbents(self) -> None:
        """Give kernel and rival each other's incumbents."""
        rival = self.state.rival
        if rival is not None:
            for one, other in ((self.kernel, rival), (rival, self.kernel)):
                found = one.incumbent()
                if found is not None:
                    other.propose(found)

    def branch(self, leaders: list[int]) -> None:
        """Finish the trees of leaders; if the leader does not matter, there is one tree."""
        core, state, leader = self.core, self.state, leaders[0]
        u = np.array([state.multipliers[one] for one in leaders])
        proven = np.array([state.proven[one] for one in leaders])
        self.kernel.open_trees(leaders, u, proven)
        state.opened = leaders
        events: defaultdict[Kernel | LinearKernel, list[FloatArray]] = defaultdict(list)
        before = self.kernel.counters().work
        clients = len(core.active)
        relaxes = restarts = False
        if not core.leader_matters and clients > 0:  # else a plain question loads none of it
            from formulations.exact.p_median import p_median_descents as descents
            from formulations.exact.p_median.linear_relaxation import PMedianRelaxation

            restarts = descents.has_few_replicas(core)
            relaxes = PMedianRelaxation.applies_to(core)
        effort = tuning.PREPARE_BOUNDS * clients * float(core.sites) if restarts else math.inf
        keep, patience = None, math.inf
        while True:
            kernel = self.next_kernel()
            finished = kernel.run(tuning.CHUNK_WORK, max(state.seconds_left(), 0.0))
            if state.certify:
                events[kernel].append(kernel.record(on=True))
            self.exchange_incumbents()
            if finished:
                break
            state.report_progress()
            state.check()
            spent = self.kernel.counters().work - before
            if state.rival is None and spent >= effort:
                effort, keep = math.inf, None
                self.restart_better(leader)
            if relaxes and keep is None:
                keep = descents.undecided_sites(core, state.multipliers[leader], state.incumbent())
                # about what the first relaxation will cost, in the kernel's units
                patience = (clients * float(keep.sum())) ** tuning.RELAX_EXPONENT
            if keep is not None and spent >= patience:
                patience = math.inf
                self.start_relaxation_tree(leader, keep)
        proven = kernel.tree_bounds(leaders)
        state.proven.update(zip(leaders, proven.tolist(), strict=True))
        for one in leaders:
            state.raise_bound(one, state.proven[one])
        state.opened = []
        if state.certify:
            state.log = np.concatenate(events[kernel])
        state.report_progress()


def _count_bounded(bounds: FloatArray) -> int:
    """Return how many leaders have a bound: bounds of the other leaders are NaN."""
    return int(np.count_nonzero(~np.isnan(bounds)))


def search(
    core: ReducedProblem,
    *,
    limits: SearchLimits | None = None,
    start: Configuration | None = None,
    find: Callable[[], Configuration | None] | None = None,
    multipliers: Mapping[int, FloatArray] | None = None,
    continues: bool = False,
    listen: Callable[[Progress], None] | None = None,
    certify: bool = True,
    kernel: str | Kernel = "compiled",
    pretend: float | None = None,
) -> Result:
    """Find the best configuration with its proof; at a limit and after Ctrl-C the best so far.

    `start` is a feasible configuration. `find` looks for any feasible one, completely, where the
    descents have found none and counting does not decide; it may raise LimitError. `multipliers`
    are those of a similar search, by leader; with `continues` they are those of the last search
    with `kernel`, which has them in its memory. `kernel` is a name for :func:`open_kernel`, or has
    nothing but an incumbent. `pretend`, for tests of the pruning, closes nodes only at this value
    or above until something better is *found*; it is no less than the optimum.

    SolverError: trees and counting disagree on whether there is a configuration. One bound costs
    O(clients · sites); their number is exponential at worst.
    """
    limits = limits or SearchLimits()
    opened = open_kernel(core, kernel) if isinstance(kernel, str) else kernel
    state = SearchState(core, opened, limits, listen, certify)
    opened.record(on=certify)
    opened.set_gap(limits.gap)
    if pretend is not None:
        opened.propose(Incumbent(pretend, -2, ()))
    if start is not None:
        leader = start.leader if core.leader_matters else -1
        opened.propose(Incumbent(core.score(start), leader, start.replicas))
    work = _BranchAndBound(state, find)
    termination = Termination.FINISHED
    try:
        work.run(multipliers or {}, continues)
    except Stop as stop:
        termination = stop.termination
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    return _result(state, work.none, termination)


def _result(state: SearchState, none: NoPlan | None, termination: Termination) -> Result:
    core, found = state.core, state.kernel.incumbent()
    configuration = None
    if found is not None and found.replicas:
        configuration = core.configuration(found.leader, found.replicas)
    finished = termination is Termination.FINISHED
    bound, certified = round_up(core, state.bound()), None
    if finished and found is None:
        if none is None and core.cases is None and counting_decides(core.rules):
            raise SolverError(
                "the search found no configuration, but the counting check shows that one exists"
            )
        bound = math.inf
    elif found is not None and configuration is not None:
        if finished:
            bound = round_up(core, least_bound(*state.proven.values()))
        bound = min(bound, found.score)  # a tree does not bound the sets that it evaluated
        if finished and state.certify:
            from formulations.exact.certificate_events import Certificate

            proofs = {one: state.proofs[one] for one in state.bounds}
            record = proofs, state.multipliers, state.log
            certified = partial(Certificate.decode, core, configuration, bound, *record)
        if finished and status_of(True, found.score, bound) is Status.FEASIBLE:
            termination = Termination.GAP_LIMIT
    return Result(
        core=core,
        termination=termination,
        configuration=configuration,
        proven=bound,
        reports=tuple(state.trace),
        seconds=state.seconds(),
        counters=state.counters(),
        leader_bounds=state.bounds,
        multipliers=state.multipliers,
        certified=certified,
        none=none,
    )

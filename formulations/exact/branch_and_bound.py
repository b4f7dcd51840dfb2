"""The search: leaders one after another, each bounded, then (if need be) branched on to the end.

For every leader ℓ the best (V, R) is a p-median problem with closest assignment and a quorum term.
Its Lagrangean bound (:mod:`formulations.exact.certificate_events` has the mathematics) mostly
reaches the incumbent after a few subgradient steps; then the leader is out. What is left goes
through a depth-first tree over "replica at j, or not" with fixing by reduced cost.

1. Leaders in the order of direct demand + quorum + relayed demand, close to their true order; after
   another search with the same kernel, those that :mod:`formulations.exact.warm_start` leaves open.
2. *Scan*: a swap descent for the first few, and a few steps of the bound, for all but the first few
   from multipliers adapted from the best so far. On larger problems all others get a *glance*
   first, one evaluation (:mod:`formulations.exact.quick_bound`); the scan goes on with the least of
   the bounds, so that what is proven rises from the start, and ends at the first that is enough.
   Where it has found no configuration, counting says whether there is one
   (:mod:`formulations.exact.no_plan_proof`).
3. *Trees* for the leaders still open, least bound first: at any moment the least of all bounds, of
   finished and unfinished parts alike, is a proven lower bound of the problem.
4. Where no leader matters and a small tree has not been enough, a second tree whose bounds come
   from the *linear relaxation* (:mod:`formulations.exact.relaxation_tree`) takes turns with the
   first, both doing the same amount of work, until one of them ends: with few replicas many cheap
   bounds are better, with many replicas few good ones. With few replicas the first begins anew
   before, from better multipliers and replicas (:mod:`formulations.exact.p_median_descents`).

The search returns to Python every few hundredths of a second, so that Ctrl-C, time limits and
reports work, and keeps what it has proven.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from formulations.exact.certificate_events import Certificate
from formulations.exact.kernel import Glances, Kernel, Proposal, Scans, open_kernel
from formulations.exact.linear_relaxation import Relaxation
from formulations.exact.no_plan_proof import NoPlan, no_plan
from formulations.exact.p_median_descents import few_replicas, look, possible
from formulations.exact.quick_bound import adapted
from formulations.exact.reduced_problem import Core
from formulations.exact.relaxation_tree import LinearKernel
from formulations.exact.result import Limits, Report, Result, rounded_up
from formulations.exact.search_state import Known
from formulations.exact.warm_start import recalled
from placement.checks import BoolArray, FloatArray
from placement.errors import SolverError
from placement.model.configuration import Configuration
from placement.status import Status, Termination, least_bound, status_of

__all__ = ["Limits", "Report", "Result", "search"]

_SCAN_STEPS = 20
_SCAN_SWAPS = 60
_FULL_DESCENTS = 4
_GLANCE_CELLS = 20_000
"""Active clients x sites from which a glance at all leaders pays."""
_SCAN_WORK = 3e8
_CHUNK_WORK = 2e7
_RELAX_EXPONENT = 1.5
_PREPARE_BOUNDS = 600
_LONG_STEPS = 300


class _Search(Known):
    """One search; :func:`search` is its only user."""

    descents = _FULL_DESCENTS
    none: NoPlan | None = None

    def run(self, warm: Mapping[int, FloatArray], again: bool) -> Termination:
        """Scan, then branch; returns why it stopped."""
        leaders: list[int] = self.core.leaders.tolist()
        self.bounds = dict(zip(leaders, self.core.floors.tolist(), strict=True))
        left = self.recall(leaders, warm) if again else leaders
        stop = self.scan(left, warm)
        if stop is not None:
            return stop
        if self.kernel.incumbent() is None:
            self.none = no_plan(self.core.rules)
            if self.none is not None:
                return Termination.FINISHED
        cutoff = self.kernel.counters().cutoff
        left = [leader for leader in left if not self.proven[leader] >= cutoff]
        for leader in sorted(left, key=lambda one: self.bounds[one]):
            if self.proven[leader] >= self.kernel.counters().cutoff:
                continue
            stop = self.branch(leader)
            if stop is not None:
                return stop
        return Termination.FINISHED

    def recall(self, leaders: list[int], warm: Mapping[int, FloatArray]) -> list[int]:
        """Bound leaders by what the kernel remembers of them; returns those that stay open."""
        limits = (_SCAN_SWAPS, max(self.left(), 0.01))
        found = recalled(self.kernel, leaders, warm, self.core.floors, limits)
        self.multipliers = dict(warm)
        self.bounds, self.proven = found.bounds, found.proven
        if self.certify:
            self.proofs.update((leader, np.zeros(0)) for leader in self.proven)
        if found.left:
            self.descents = 0  # the kernel has made them
            self.tell()
        return found.left

    def scan(self, leaders: list[int], warm: Mapping[int, FloatArray]) -> Termination | None:
        """Bound every leader without branching, or return why not."""
        if not leaders:
            return None
        clients = len(self.core.active)
        glance = not warm and clients * self.core.sites >= _GLANCE_CELLS
        first = leaders[:_FULL_DESCENTS] if glance else leaders
        nothing = np.zeros(clients)
        u = np.array([warm.get(leader, nothing) for leader in first]).reshape(len(first), clients)
        stop = self.in_turn(first, u, [leader in warm for leader in first])
        others = leaders[len(first) :]
        if stop is not None or not others:
            return stop
        glances = self.glance(others)
        if isinstance(glances, Termination):
            return glances
        order = np.argsort(glances.bounds, kind="stable")
        left = glances.leaders[order].tolist()
        return self.in_turn(left, glances.u[order], [False] * len(left), glances.bounds[order])

    def glance(self, leaders: list[int]) -> Glances | Termination:
        """Bound every leader once, by the multipliers of the best so far, or return why not."""
        found = self.kernel.incumbent()
        best = min(self.multipliers, key=lambda one: self.bounds[one])
        replicas = found.replicas if found is not None and found.replicas else (best,)
        glances = Glances(
            leaders=np.array(leaders, dtype=np.int32),
            u=adapted(self.core, self.multipliers[best], best, replicas, leaders),
            bounds=np.full(len(leaders), math.nan),
        )
        at = 0
        while at < len(leaders):
            stop = self.enough()
            if stop is not None:
                return stop
            self.kernel.glances(glances, at, _CHUNK_WORK, max(self.left(), 0.01))
            end = at + int(np.count_nonzero(glances.bounds[at:] == glances.bounds[at:]))
            for i in range(at, end):
                bound = float(glances.bounds[i])
                self.bounds[leaders[i]] = max(self.bounds[leaders[i]], bound)
            at = end
            self.tell()
        return glances

    def in_turn(
        self,
        leaders: list[int],
        u: FloatArray,
        warm: list[bool],
        glanced: FloatArray | None = None,
    ) -> Termination | None:
        """Scan leaders one after another, or return why not.

        With what a glance said, ascending, the end is where it proves enough for all that follow.
        """
        count = len(leaders)
        scans = Scans(
            leaders=np.array(leaders, dtype=np.int32),
            u=u,
            warm=np.array(warm, dtype=np.bool_),
            steps=max(1, min(_SCAN_STEPS, int(_SCAN_WORK / (u.shape[1] * self.core.sites + 1)))),
            swaps=_SCAN_SWAPS,
            full=self.descents if glanced is None else 0,
            bounds=np.full(count, math.nan),
            ends=np.zeros(count, dtype=np.int64),
        )
        at = 0
        while at < count:
            stop = self.enough()
            if stop is not None and (at > 0 or glanced is not None):
                return stop
            if glanced is not None and glanced[at] >= self.kernel.counters().cutoff:
                self.closed(leaders[at:], u[at:], glanced[at:])
                return None
            left = self.left()
            work = _CHUNK_WORK if left > 0 else 0.0  # without time too, one leader is looked at
            try:
                self.kernel.scans(scans, at, work, max(left, 0.01))
            finally:  # after Ctrl-C too: what is bounded is bounded
                at = self.scanned(scans, at)
            self.tell()
        return None

    def closed(self, leaders: list[int], u: FloatArray, bounds: FloatArray) -> None:
        """Note that the multipliers alone close these leaders: one event each, not recorded."""
        self.multipliers.update(zip(leaders, u, strict=True))
        self.proven.update(zip(leaders, bounds.tolist(), strict=True))
        if self.certify:
            self.proofs.update((leader, np.zeros(0)) for leader in leaders)

    def scanned(self, scans: Scans, at: int) -> int:
        """Note the bounds of the leaders from `at` on that were scanned; returns where they end."""
        end = at + int(np.count_nonzero(scans.bounds[at:] == scans.bounds[at:]))
        leaders = scans.leaders[at:end].tolist()
        bounds = scans.bounds[at:end].tolist()
        self.multipliers.update(zip(leaders, scans.u[at:end], strict=True))
        self.proven.update(zip(leaders, bounds, strict=True))
        for leader, bound in zip(leaders, bounds, strict=True):
            if bound > self.bounds[leader]:
                self.bounds[leader] = bound
        if self.certify:
            record = self.kernel.record(on=True)
            first = 0
            for leader, last in zip(leaders, scans.ends[at:end].tolist(), strict=True):
                self.proofs[leader] = record[first:last]
                first = last
        return end

    def anew(self, leader: int, u: FloatArray, steps: int, swaps: int) -> None:
        """Begin the kernel's tree anew, after so many steps from `u`, which they improve."""
        self.bound()
        self.opened = None  # until the tree is open its bound says nothing
        self.multipliers[leader] = u  # also when the scan is interrupted: it changes them in place
        bound = self.kernel.scan(leader, u, steps, swaps, True, max(self.left(), 0.01))
        self.bounds[leader] = max(self.bounds[leader], bound)
        self.kernel.open(leader, u)
        self.opened = leader
        self.kernel.record(on=self.certify)

    def look(self, leader: int) -> bool:
        """Look for better replicas among promising sites; whether there were any."""
        u, end = self.multipliers[leader], time.perf_counter() + self.left()
        return few_replicas(self.core) and look(self.core, self.kernel, u, end)

    def prepare(self, leader: int) -> None:
        """Begin anew with better multipliers and replicas where the tree has turned out large."""
        self.anew(leader, self.multipliers[leader].copy(), _LONG_STEPS, 0)
        if self.look(leader):  # steps are as long as the incumbent is far
            self.anew(leader, self.multipliers[leader].copy(), _LONG_STEPS, 0)

    def challenge(self, leader: int, keep: BoolArray) -> bool:
        """Put up a rival that bounds by the linear relaxation; whether the kernel began anew.

        It does when the relaxation alone says more than all of its tree so far.
        """
        rival = LinearKernel(self.core, keep)
        rival.tolerate(self.limits.gap)
        u = self.multipliers[leader].copy()
        rival.seed(u)
        found = self.kernel.incumbent()
        if found is not None:
            rival.propose(found)
        bound = rival.scan(leader, u, 1, 0, True, max(self.left(), 0.01))
        rival.record(on=self.certify)
        rival.open(leader, u)
        better = bound > self.kernel.bound()
        self.rival = rival  # not before its tree is open: until then its bound says nothing
        self.share()
        if better:
            self.anew(leader, u, 1, _SCAN_SWAPS)  # a descent from where rounding has led
            self.look(leader)
            self.share()
        return better

    def next_kernel(self) -> Kernel:
        """Whose turn it is: the rival's while it has done less work than the kernel."""
        if self.rival is None or self.rival.counters().work >= self.kernel.counters().work:
            return self.kernel
        return self.rival

    def share(self) -> None:
        """Let kernel and rival know of each other's incumbents."""
        if self.rival is not None:
            for one, other in ((self.kernel, self.rival), (self.rival, self.kernel)):
                found = one.incumbent()
                if found is not None:
                    other.propose(found)

    def recorded(self) -> Mapping[int, tuple[FloatArray, FloatArray]]:
        """Events and last multipliers by leader."""
        return {one: (self.proofs[one], self.multipliers[one]) for one in self.bounds}

    def branch(self, leader: int) -> Termination | None:
        """Finish one leader's tree, or return why not."""
        self.kernel.open(leader, self.multipliers[leader])
        self.opened = leader
        events: defaultdict[Kernel, list[FloatArray]] = defaultdict(list)
        before = self.kernel.counters().work
        suits, cells = Relaxation.suits(self.core), len(self.core.active) * float(self.core.sites)
        effort = _PREPARE_BOUNDS * cells if suits and few_replicas(self.core) else math.inf
        keep, patience = None, math.inf
        while True:
            kernel = self.next_kernel()
            finished = kernel.run(_CHUNK_WORK, max(self.left(), 0.0))
            if self.certify:
                events[kernel].append(kernel.record(on=True))
            self.share()
            if finished:
                break
            self.tell()
            stop = self.enough()
            if stop is not None:
                return stop
            spent = self.kernel.counters().work - before
            if self.rival is None and spent >= effort:
                effort, keep = math.inf, None
                self.prepare(leader)
                events[self.kernel].clear()
            if suits and keep is None:
                keep = possible(self.core, self.multipliers[leader], self.incumbent())
                # about what the first relaxation will cost, in the kernel's units
                patience = (len(self.core.active) * float(keep.sum())) ** _RELAX_EXPONENT
            if keep is not None and spent >= patience:
                patience = math.inf
                if self.challenge(leader, keep):
                    events[self.kernel].clear()
        self.proven[leader] = kernel.bound()
        self.bounds[leader] = max(self.bounds[leader], self.proven[leader])
        self.opened = None
        if self.certify:
            self.proofs[leader] = np.concatenate(events[kernel])
        self.tell()
        return None


def search(
    core: Core,
    *,
    limits: Limits | None = None,
    start: Configuration | None = None,
    multipliers: Mapping[int, FloatArray] | None = None,
    again: bool = False,
    listen: Callable[[Report], None] | None = None,
    certify: bool = True,
    kernel: str | Kernel = "auto",
    pretend: float | None = None,
) -> Result:
    """Find the best configuration and prove it.

    Parameters
    ----------
    core
        The problem.
    limits
        When to stop early.
    start
        A feasible configuration to start from.
    multipliers
        Of a similar search, by leader; any numbers give valid bounds, good ones fast proofs.
    again
        Whether they are those of the last search with `kernel`, so that it need not be shown them.
    listen
        Called with every report.
    certify
        Whether to keep what re-proves the bound.
    kernel
        "auto", "compiled", "numpy", or one for this problem that has nothing but an incumbent.
    pretend
        For tests of the pruning: close nodes only at this value or above until a better
        configuration is *found*; must be at least the optimum.

    Returns
    -------
    Result
        Also at a limit and after Ctrl-C: then with the best so far and an honest bound.

    Raises
    ------
    SolverError
        When trees and counting disagree on whether there is a configuration: a defect.

    Notes
    -----
    One bound costs O(clients · sites); their number is exponential at worst. Memory: four matrices
    of clients × sites, and one more per level of the tree.
    """
    limits = limits or Limits()
    opened = open_kernel(core, kernel) if isinstance(kernel, str) else kernel
    work = _Search(core, opened, limits, listen, certify)
    work.kernel.record(on=certify)
    work.kernel.tolerate(limits.gap)
    if pretend is not None:
        work.kernel.propose(Proposal(pretend, -2, ()))
    if start is not None:
        leader = start.leader if core.leader_matters else -1
        work.kernel.propose(Proposal(core.score(start), leader, start.replicas))
    try:
        termination = work.run(multipliers or {}, again)
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    return _result(work, termination)


def _result(work: _Search, termination: Termination) -> Result:
    core, found = work.core, work.kernel.incumbent()
    configuration = None
    if found is not None and found.replicas:
        configuration = core.configuration(found.leader, found.replicas)
    finished = termination is Termination.FINISHED
    bound, certified = rounded_up(core, work.bound()), None
    if finished and found is None:
        if work.none is None:
            raise SolverError("the trees found no configuration, and counting says there is one")
        bound = math.inf
    elif found is not None and configuration is not None:
        if finished:
            bound = rounded_up(core, least_bound(*work.proven.values()))
        bound = min(bound, found.score)  # what a tree has evaluated it does not bound
        if finished and work.certify:
            score = core.score(configuration)
            claim = (configuration, score, min(bound, score), core.granularity)
            certified = partial(Certificate.decode, *claim, core.active.tolist(), work.recorded())
        if finished and status_of(True, found.score, bound) is Status.FEASIBLE:
            termination = Termination.GAP_LIMIT
    return Result(
        core=core,
        termination=termination,
        configuration=configuration,
        proven=bound,
        reports=tuple(work.trace),
        seconds=work.seconds(),
        counters=work.counters(),
        leader_bounds=work.bounds,
        multipliers=work.multipliers,
        certified=certified,
        none=work.none,
    )

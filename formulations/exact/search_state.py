"""The state of one search: its bounds, multipliers and events by leader, its clock, its reports."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from formulations.exact import tuning
from formulations.exact.kernel import Counters, Kernel
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.result import SearchLimits, SearchReport
from formulations.exact.shared_multipliers import Multipliers
from placement.support.checks import FloatArray
from placement.support.status import Termination, least_bound, relative_gap

if TYPE_CHECKING:
    from formulations.exact.p_median.relaxation_tree import LinearKernel

_UNLIMITED = 1e9
"""Seconds that stand for "no limit" where a kernel asks for a number."""


class Stop(Exception):  # noqa: N818 - a limit is no error
    """The end of a search before its proof; only :meth:`SearchState.check` raises it.

    Parameters
    ----------
    termination
        The limit that was reached.
    """

    def __init__(self, termination: Termination) -> None:
        super().__init__(termination)
        self.termination = termination


class SearchState:
    """The state of a search.

    Parameters
    ----------
    core, kernel, limits
        The problem, the kernel that works on it, and the limits.
    listen
        Called with every report.
    certify
        Whether to keep the events that re-prove the bound.

    Attributes
    ----------
    bounds
        Proven lower bound by leader.
    proven
        The same without the static bounds: what the recorded events prove.
    multipliers, proofs
        The last multipliers, and the events, by leader.
    trace
        Reports so far.
    best_bound
        Greatest bound reported so far.
    opened
        The leaders whose trees are open in the kernel; none: they say nothing.
    rival
        A kernel that alternates with `kernel` on the same leader; None: there is none.
    log
        What was recorded of the trees.
    """

    def __init__(
        self,
        core: ReducedProblem,
        kernel: Kernel,
        limits: SearchLimits,
        listen: Callable[[SearchReport], None] | None,
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
        self.trace: list[SearchReport] = []
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
        report = SearchReport(now, score, min(self.bound(), score))
        if last is not None and (report.incumbent, report.bound) == (last.incumbent, last.bound):
            return
        self.trace.append(report)
        if self.listen is not None:
            self.listen(report)

    def check(self) -> None:
        """Return when the search may go on.

        Raises
        ------
        Stop
            When the time is up, or the gap is as small as was asked for.
        """
        if self.seconds_left() <= 0:
            raise Stop(Termination.TIME_LIMIT)
        if self.limits.gap > 0 and relative_gap(self.incumbent(), self.bound()) <= self.limits.gap:
            raise Stop(Termination.GAP_LIMIT)

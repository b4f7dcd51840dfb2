"""What a search knows at any moment: incumbent, bounds, time; and whom it tells."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from formulations.exact.kernel import Counters, Kernel
from formulations.exact.reduced_problem import Core
from formulations.exact.relaxation_tree import LinearKernel
from formulations.exact.result import Limits, Report
from placement.checks import FloatArray
from placement.status import Termination, least_bound, relative_gap

__all__ = ["Known"]

_REPORT_EVERY = 0.1
_UNLIMITED = 1e9


class Known:
    """The state of a search.

    Parameters
    ----------
    core, kernel, limits
        The problem, who works on it, and for how long.
    listen
        Called with every report.
    certify
        Whether to keep what re-proves the bound.

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
        Greatest bound told so far.
    opened, rival
        The leader whose tree is on the stack, and who takes turns on it with the kernel.
    """

    def __init__(
        self,
        core: Core,
        kernel: Kernel,
        limits: Limits,
        listen: Callable[[Report], None] | None,
        certify: bool,
    ) -> None:
        self.core = core
        self.kernel = kernel
        self.limits = limits
        self.listen = listen
        self.certify = certify
        self.started = time.perf_counter()
        self.bounds: dict[int, float] = {}
        self.proven: dict[int, float] = {}  # without the static bounds: what the events prove
        self.multipliers: dict[int, FloatArray] = {}
        self.proofs: dict[int, FloatArray] = {}
        self.trace: list[Report] = []
        self.best_bound = 0.0
        self.opened: int | None = None
        self.rival: LinearKernel | None = None

    def seconds(self) -> float:
        """Return the wall time since the start."""
        return time.perf_counter() - self.started

    def left(self) -> float:
        """Return the wall time up to the limit, or many years."""
        return min(self.limits.seconds - self.seconds(), _UNLIMITED)

    def incumbent(self) -> float:
        """Return the score of the best configuration so far; +∞: there is none."""
        found = self.kernel.incumbent()
        return math.inf if found is None else found.score

    def counters(self) -> Counters:
        """Return the work of kernel and rival so far."""
        now = self.kernel.counters()
        return now if self.rival is None else now.and_those_of(self.rival.counters())

    def bound(self) -> float:
        """Return the least proven bound over all leaders; it never falls."""
        if self.opened is not None:
            proven = self.kernel.bound()
            if self.rival is not None:
                proven = max(proven, self.rival.bound())
            self.bounds[self.opened] = max(self.bounds[self.opened], proven)
        least = least_bound(*self.bounds.values())
        self.best_bound = max(self.best_bound, least)
        return self.best_bound

    def tell(self, *, always: bool = False) -> None:
        """Add a report to the trace, and give it to the listener, when there is something new."""
        now, score = self.seconds(), self.incumbent()
        last = self.trace[-1] if self.trace else None
        due = last is None or now - last.seconds >= _REPORT_EVERY
        if not (always or due or (last is not None and score < last.incumbent)):
            return
        report = Report(now, score, min(self.bound(), score))
        if last is not None and (report.incumbent, report.bound) == (last.incumbent, last.bound):
            return
        self.trace.append(report)
        if self.listen is not None:
            self.listen(report)

    def enough(self) -> Termination | None:
        """Return why to stop now, or None."""
        if self.left() <= 0:
            return Termination.TIME_LIMIT
        if self.limits.gap > 0 and relative_gap(self.incumbent(), self.bound()) <= self.limits.gap:
            return Termination.GAP_LIMIT
        return None

"""The least percentile within limits: bisection over deadlines, each a question of thresholds.

The p-th percentile of a plan is at most t when no more than a share 1 − p of all operations takes
longer than t. Under one leader that share is a row (:mod:`placement.tail.objective`), so that
"is there a plan within the limits that keeps t?" is a tree of :mod:`formulations.exact.measures`
whose rows all are limits. When t is out of reach under a leader, so is every smaller one. The
search keeps for every leader the least bin that is not ruled out.

A deadline is asked about under the leaders in the order of their floors. The first plan that keeps
it is the new best. The last bin before the best plan is the proof, so that it is asked for first;
when it takes long, then a bin half-way to what is ruled out.

Sums that differ from the allowed share by rounding alone do not decide: a part of the search is
closed only when it is late by more than the slack, and a plan counts only when the evaluator says
so. A record of a tree is about the deadline that was asked. It holds at every earlier one, where no
operation less is late, and the checker replays it at the last one below the bound.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from formulations.exact import tuning
from formulations.exact.measures import MeasuresSearch
from formulations.exact.threshold_certificate import ANY, Part
from placement.measures.question import MeasureQuestion
from placement.measures.rows import late_operations
from placement.measures.scenarios import last_bin
from placement.measures.values import percentile_of
from placement.model.configuration import Configuration


@dataclass
class DeadlineSearch(MeasuresSearch):
    """The search for the plan of the least percentile of a question of measures.

    The bound of a leader is its first deadline that is not ruled out; leaders under which a limit
    cannot be kept have none.
    """

    deadline: int | None = field(init=False, default=0)
    _until: float = field(init=False, default=math.inf)

    @cached_property
    def _question(self) -> MeasureQuestion:
        asked = self.problem.objective
        assert isinstance(asked, MeasureQuestion)
        return asked

    @cached_property
    def _width(self) -> float:
        return percentile_of(self.problem, self._question.aim).distributions.width

    @cached_property
    def _last(self) -> int:
        """Latest deadline that says anything, in bins."""
        return last_bin(self.problem, self._question.aim, math.inf)

    @property
    def _bins(self) -> int:
        """Deadline that the best plan keeps; with none, the first that says nothing any more."""
        return round(self.value / self._width) if math.isfinite(self.value) else self._last + 1

    def _first_bin(self, part: Part) -> int:
        """First deadline of a leader that is not ruled out."""
        return round(self.open_bounds[part] / self._width)

    @property
    def less(self) -> float:
        """Share of the best value by which the bound is below it when all leaders are closed."""
        return 0.0

    def search(self) -> None:
        """Rule out every deadline before that of the best plan, under every leader."""
        self.start()
        leaders = np.nonzero(self.problem.rules.may_lead)[0].tolist()
        self.open_bounds = {(leader, ANY): 0.0 for leader in leaders}
        self._bisect()
        self.open_bounds = {}

    def _bisect(self) -> None:
        first: int | None = None
        # The first deadline half-way is cheap, and a bound for a user who stops the search.
        patience, cut_short = tuning.LATE_PATIENCE, True
        horizon = percentile_of(self.problem, self._question.aim).distributions.bins
        while (low := min(map(self._first_bin, self.open_bounds), default=self._bins)) < self._bins:
            self.report()
            self.stop_at_gap()
            # Half-way, but not beyond what a percentile can be told of when none is known yet.
            deadline, self._until = (low + self._bins) // 2, self.end
            if math.isinf(self.value):
                deadline = min(deadline, max(low, horizon - 1))
            elif not cut_short:
                wanted = math.ceil(self._bins * (1 - self.options.gap_limit)) - 1
                deadline = max(deadline, min(wanted, self._bins - 1))
                self._until = min(self.end, time.perf_counter() + patience)
            try:
                found, cut_short = self._keep(deadline, first), False
            except TimeoutError:
                if not self._until <= time.perf_counter() < self.end:
                    raise
                found, cut_short, patience = None, True, 2 * patience
            if found is not None:
                first = found.leader

    def _keep(self, deadline: int, first: int | None) -> Configuration | None:
        """Return a plan that keeps a deadline; None when it is ruled out under every leader."""
        self.deadline = deadline
        (late,) = late_operations(self.problem, self._question.aim)
        waiting = [part[0] for part in self.open_bounds if self._first_bin(part) <= deadline]
        waiting.sort(key=lambda ell: (ell != first, self._led(ell)))
        size, allowed = tuning.LATE_LEADERS, math.inf
        while waiting:
            block, waiting = waiting[:size], waiting[size:]
            size *= 2
            self.in_time()
            for ell in [ell for ell in block if self._led(ell) > allowed]:
                block.remove(ell)  # late without a table
                self._rule_out(ell)
            if not block:
                continue
            late.prepare(block, deadline)
            floors = {ell: self._floor(self._functions(ell)[-1], ell) for ell in block}
            for ell in sorted(block, key=floors.__getitem__):
                *limits, minimised = self._functions(ell)
                if any(self._floor(one, ell) > self._above(one) for one in limits):
                    self.open_bounds.pop((ell, ANY))
                    continue
                allowed = self._above(minimised)
                if floors[ell] > allowed:
                    self._rule_out(ell)
                    continue
                before = self.best
                while not self._tree(ell):  # with more and more rows
                    self.in_time()
                if self.best is not before:
                    return self.best
                self.open_bounds[ell, ANY] = (deadline + 1) * self._width
        return None

    def _rule_out(self, leader: int) -> None:
        """Rule out a deadline under a leader, as a checker does without a tree."""
        assert self.deadline is not None
        self.open_bounds[leader, ANY] = (self.deadline + 1) * self._width
        if self.records is not None:
            self.records.pop((leader, ANY), None)

    @property
    def stop(self) -> float:
        """When to stop, or to ask about another deadline."""
        return min(self.end, self._until)

    def _led(self, leader: int) -> float:
        """Return the least share of late operations at a leader."""
        assert self.deadline is not None
        (late,) = late_operations(self.problem, self._question.aim)
        return self.least_led(self.late_voters(late, leader, self.deadline))

"""The functions of a question under one leader: its limits, and what it minimises, as rows.

The search and the checker of its certificates both build their scenarios from here. Neither reads
a row from a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from placement.evaluation.cost_model import cost_model, sum_of
from placement.evaluation.score import TIE
from placement.measures.measure import Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.measures.rows import (
    ClientRows,
    MeasureRows,
    Row,
    Statistic,
    cost_row,
    late_operations,
    mean_row,
    rows,
    why_no_rows,
)
from placement.measures.values import focused, percentile_of, share_step
from placement.problem import Problem
from placement.proof.late.late_claim import last_deadline
from placement.support.checks import FloatArray, IntArray

_MEAN = Measure(MeasureKind.MEAN)

_ROUNDING = 1e-12
"""Relative: more than the sums of the evaluator can be wrong by."""

_WHOLE = 1e-6  # a share so little above whole steps, as a difference from 1, is these steps


@dataclass(frozen=True, eq=False)
class Function:
    """A limited or minimised function of the plans under one leader: the largest of its rows."""

    build: Callable[[], MeasureRows]
    scale: float  #: value of the function times this is X
    allowed: float  #: largest X that the evaluator takes; +∞ where the function is minimised
    measure: Measure | None = None  #: None: the mean, or a limit on prices
    bins: int = 0  #: of late operations: bins in the longest sum of RTTs

    @cached_property  # tables take a while, and floors close most leaders
    def built(self) -> MeasureRows:
        """The measure as rows."""
        return self.build()

    @property
    def rows(self) -> Sequence[Row]:
        """X of each."""
        return self.built.rows

    @property
    def weights(self) -> FloatArray | None:
        """Return the weights of the rows of a sum, shape (rows,), or None for the largest row."""
        return None if self.bins else self.built.weights

    @property
    def rounding(self) -> float:
        """X that the evaluator may be off by.

        Its transforms are off by 1e-12, and by 1e-13 for each bin that it cuts off.
        """
        if self.bins:
            return 2e-12 + 1e-13 * self.bins
        return 1e-12 * abs(self.allowed)

    @property
    def lazy(self) -> bool:
        """Return whether only the rows that bind are worth a scenario: one for each client."""
        return isinstance(self.rows, ClientRows)

    @cached_property
    def step(self) -> float:
        """Number of which X is a multiple for every plan; 0: X is any number."""
        if isinstance(self.rows, ClientRows):
            return 0.0
        if (late := self.rows[0].late) is not None:
            return share_step(late.intervals[0].distributions)
        if any(row.waits is not None or row.late is not None for row in self.rows):
            return 0.0
        given = [
            np.asarray(part)
            for row in self.rows
            for part in (row.constant, row.costs, row.prices, row.votes)
            if part is not None
        ]
        return float(all(bool((part % 1 == 0).all()) for part in given))

    def needed(self, claimed: float) -> float:
        """Return the X that shows a claim: of whole steps anything above the one before."""
        if not self.step:
            return claimed - _ROUNDING * abs(claimed)
        near = _WHOLE if self.bins else _ROUNDING * abs(claimed)
        above = math.ceil(claimed / self.step - near) - 0.5
        return above * self.step + (self.rounding if self.bins else 0.0)


def beyond_thresholds(problem: Problem) -> str | None:
    """Return why a question is none of rows with thresholds, or None."""
    asked = problem.objective
    varies = problem.demand.scenarios > 1
    if problem.demand.has_waits:
        return "operations have waits"
    if not isinstance(asked, MeasureQuestion):
        return "RTTs vary by interval" if varies else None
    for measure in asked.measures:
        reason = why_no_rows(problem, measure)
        if measure.over_outages and asked.keep:
            reason = "it is about outages, beside limits"
        elif varies and measure.kind is not MeasureKind.MEAN:
            reason = "RTTs vary by interval"
        elif measure.after is not None and measure.share:
            reason = "where the service stops, a share is 0 and no sum"
        if reason is not None:
            return f"{measure} has no threshold: {reason}"
    return None


def beyond_trees(problem: Problem) -> str | None:
    """Return why the trees of the leaders do not take a question of rows, or None."""
    asked = problem.objective
    if problem.demand.scenarios > 1:
        return "RTTs vary by interval"
    for measure in asked.measures if isinstance(asked, MeasureQuestion) else ():
        after, reason = measure.after, ""
        if measure.over_outages or (after is not None and after.named):
            reason = "it is about outages, or one named loss"
        elif after is not None and after.clients_move:
            reason = "clients move after a loss"
        if reason:
            return f"{measure} has no threshold: {reason}"
    return None


def counted_clients(problem: Problem) -> IntArray:
    """Return the rows of clients that any row may count: those with operations or prices nearby."""
    demand, model = problem.demand, cost_model(problem.instance)
    counted = ((demand.near > 0) | (demand.relay > 0)).reshape(-1)
    near = None if model is None or not _prices_count(problem) else model.linear(0).nearest
    if near is not None:
        counted |= near.any(axis=1)
    return np.nonzero(counted)[0]


def _prices_count(problem: Problem) -> bool:
    asked = problem.objective
    measured = isinstance(asked, MeasureQuestion) and Measure(MeasureKind.COST) in asked.measures
    return measured or problem.budget is not None or bool(problem.cost_weight)


def functions(
    problem: Problem, leader: int, *, ties: float = math.inf, deadline: int | None = None
) -> tuple[Function, ...]:
    """Return the limits of a question under a leader, and last what it minimises.

    :func:`beyond_thresholds` must give no reason. Waits of the leader that are no quorum are left
    out. With `ties` the mean is minimised of the plans whose minimised value is at most this. With
    a `deadline` (bins) what is minimised is a percentile, and its function that of late operations
    at this deadline, with as many allowed as for a limit.
    """
    prices = ((one.allowed, cost_row(leader, one.linear(leader))) for one in problem.limits)
    kept = [Function(partial(_single, problem, row), 1.0, allowed) for allowed, row in prices]
    asked = problem.objective
    if isinstance(asked, MeasureQuestion):
        kept += [_of(problem, limit.measure, leader, limit.allowed) for limit in asked.keep]
        if math.isinf(ties):
            return (*kept, _of(problem, asked.aim, leader, deadline=deadline))
        allowed = 1 - ties * (1 + TIE) if asked.aim.share else ties * (1 + TIE)
        kept.append(_of(problem, asked.aim, leader, allowed))
    added = problem.added_cost(leader)

    def mean() -> MeasureRows:
        row = mean_row(problem, leader)
        return _single(problem, row if added is None else _plus(row, cost_row(leader, added)))

    return (*kept, Function(mean, 1.0, math.inf, _MEAN if added is None else None))


def _single(problem: Problem, row: Row) -> MeasureRows:
    return MeasureRows((_with_votes(problem, row),), Statistic.MAXIMUM)


def _of(
    problem: Problem,
    measure: Measure,
    leader: int,
    allowed: float | None = None,
    deadline: int | None = None,
) -> Function:
    """Return a measure as a function; `allowed`: the largest value, or the least share."""
    if measure.kind is MeasureKind.PERCENTILE and allowed is not None:
        deadline = last_bin(problem, measure, allowed)

    def build() -> MeasureRows:
        found = rows(problem, measure, leader, deadline=deadline)
        if isinstance(found.rows, ClientRows):
            return found
        return replace(found, rows=tuple(_with_votes(problem, row) for row in found.rows))

    if measure.level is not None and measure.kind.of_distributions:
        most = 1 - measure.level
        if measure.share:
            most = math.inf if allowed is None else 1 - allowed
        return Function(build, 1.0, most, measure, _bins(problem, measure))
    part = focused(problem, measure.operations, measure.clients)
    scale = part.demand.operations if measure.kind is MeasureKind.MEAN else 1.0
    return Function(build, scale, math.inf if allowed is None else allowed * scale, measure)


def last_bin(problem: Problem, measure: Measure, allowed: float) -> int:
    """Return the last deadline, in bins, that a limit on a percentile and its horizon allow."""
    each = percentile_of(problem, measure).by_scenario(problem)
    ways = [flow for one in late_operations(problem, measure) for flow in one.flows]
    last = last_deadline(ways, each)
    return last if math.isinf(allowed) else min(math.floor(allowed / each[0].width), last)


def _bins(problem: Problem, measure: Measure) -> int:
    """Return the bins of the longest sum of RTTs of an operation."""
    late = late_operations(problem, measure)
    hops = max((flow.hops for one in late for flow in one.flows), default=0)
    return hops * (late[0].distributions.bins - 1) + 1


def _plus(row: Row, other: Row) -> Row:
    return replace(
        row,
        constant=row.constant + other.constant,
        costs=sum_of(row.costs, other.costs),
        prices=sum_of(row.prices, other.prices),
        votes=sum_of(row.votes, other.votes),
    )


def _with_votes(problem: Problem, row: Row) -> Row:
    """Return a row with the votes in the prices of replicas where all of them vote."""
    rules = problem.rules
    if row.votes is None or rules.replicas_max != rules.voters:
        return row
    return replace(row, prices=sum_of(row.prices, row.votes), votes=None)

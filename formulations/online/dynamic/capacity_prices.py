"""G3: the capacities relaxed, one price per site; the best prices by cutting planes.

For prices μ >= 0 the problem falls apart into objects, each choosing its subset Y of sites:

    L(μ) = Σ_o min_Y { cost_o(Y) + Σ_{j ∈ Y} μ_j } − Σ_j μ_j·C_j

Every L(μ) is a lower bound on the cost of copies within capacity. L is concave and piecewise linear
in at most a dozen prices. Kelley's cutting planes therefore find its maximum in some tens of
evaluations; they are queried between the best point so far and the optimum of the model (in-out,
Ben-Ameur and Neto 2007). max L is the optimum of the linear relaxation over subsets, never below
that of G1 and G2.

An object whose single savings are below the prices at every site takes no copies (savings are
submodular), so only objects that beat a floor under the prices have a table. This is what makes
millions of objects affordable: nothing is evaluated for the cold ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.online.dynamic.subset_costs import SubsetTable, single_savings, subset_table
from formulations.solvers.highs import Relaxation
from formulations.solvers.program_builder import Builder
from placement.errors import SolverError
from placement.online.dynamic.evaluator import base_cost
from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import FloatArray

__all__ = ["Dual", "idle_cost", "lagrangean_bound", "solve_dual"]

_PRECISION = 1e-11
"""Relative distance between model and best bound at which the prices are good enough."""

_PATIENCE = 25
"""Evaluations without progress of a relative 1e-9 after which the prices are good enough: HiGHS
solves the model to 1e-7, so that the last digits are luck."""

_ROUNDING = 1e-13
"""Relative allowance for rounding in sums of costs; they have at most 10⁷ terms of one sign, added
pairwise, which is off by less than 30 units in the last place."""

_FLATTEST = 1e-9
"""Least gain of the model, as part of what its steepest cut gains across the prices: beyond the
ratio of 1e15 HiGHS refuses a coefficient."""

_SMALL = 20_000
"""Objects up to which a table of all of them is made at once."""


@dataclass(frozen=True, eq=False)
class Dual:
    """Prices with the bound that follows from the prices.

    Attributes
    ----------
    prices
        μ, shape (sites,).
    bound
        L(μ), rounded down.
    evaluations
        Number of L(μ) computed; the limit when it was reached, or at Ctrl-C.
    table
        Subsets of the objects that may get a copy at these prices.
    idle_cost
        Cost of all other objects, without copies.
    """

    prices: FloatArray
    bound: float
    evaluations: int
    table: SubsetTable
    idle_cost: float


def lagrangean_bound(problem: ReplicationProblem, prices: FloatArray) -> float:
    """Return L(prices), a lower bound for any prices >= 0, rounded down."""
    if (np.asarray(prices) < 0).any():
        raise SolverError("negative prices prove nothing")
    objects = np.flatnonzero((single_savings(problem) > prices[:, None]).any(axis=0))
    table = subset_table(problem, objects)
    return _value(problem, table, idle_cost(problem, table), prices)[0]


def solve_dual(problem: ReplicationProblem, *, evaluations: int = 500) -> Dual:
    """Maximise L, stopping after `evaluations` at the latest with the best prices so far.

    O(evaluations · 2^sites · objects with a table).
    """
    savings = np.maximum(single_savings(problem), 0.0)
    guess = np.array([_kth(row, c) for row, c in zip(savings, problem.capacity, strict=True)])
    used = 0
    share = 0.0 if problem.objects <= _SMALL else 0.5
    while True:
        floor = share * guess
        objects = np.flatnonzero((savings > floor[:, None]).any(axis=0))
        table = subset_table(problem, objects)
        idle = idle_cost(problem, table)
        prices, bound, count = _maximise(
            problem, table, idle, floor, savings.max(axis=1, initial=0.0), evaluations - used
        )
        used += count
        at_floor = (prices <= floor * (1 + 1e-9)) & (floor > 0)
        if not at_floor.any() or used >= evaluations:
            return Dual(prices, bound, used, table, idle)
        share = share / 4 if share > 0.01 else 0.0


def _kth(savings: FloatArray, capacity: int) -> float:
    """The capacity-th largest saving: 0 where there is room for all."""
    if capacity >= len(savings) or capacity == 0:
        return 0.0
    return float(np.partition(savings, len(savings) - capacity)[len(savings) - capacity])


def idle_cost(problem: ReplicationProblem, table: SubsetTable) -> float:
    """Cost of the objects without a table, which get no copies."""
    return base_cost(problem) - float(table.cost[0].sum())


def _value(
    problem: ReplicationProblem, table: SubsetTable, idle: float, prices: FloatArray
) -> tuple[float, FloatArray]:
    """L(prices), rounded down, and a supergradient: copies wanted less room."""
    priced = table.priced(prices)
    choice = priced.argmin(axis=0)
    least = priced[choice, np.arange(len(choice))]
    room = float(prices @ np.minimum(problem.capacity, problem.objects))
    size = float(np.abs(least).sum()) + abs(idle) + room
    size += float(table.cost[0].sum())
    wanted = table.masks[choice].sum(axis=0).astype(np.float64)
    spare = np.minimum(problem.capacity, problem.objects).astype(np.float64)
    return float(least.sum()) + idle - room - _ROUNDING * size, wanted - spare


def _maximise(
    problem: ReplicationProblem,
    table: SubsetTable,
    idle: float,
    floor: FloatArray,
    ceiling: FloatArray,
    evaluations: int,
) -> tuple[FloatArray, float, int]:
    """Cutting planes within floor <= μ <= ceiling; above the ceiling no copy pays."""
    best = floor.copy()
    bound, slope = _value(problem, table, idle, best)
    cuts = [(bound - float(slope @ best), slope)]
    count, progress, mark = 1, 1, bound
    while count < evaluations and count - progress < _PATIENCE:
        try:
            target, model = _master(cuts, floor, ceiling)
        except KeyboardInterrupt:
            return best, bound, evaluations  # as if there were none left: the bound holds
        if model - bound <= _PRECISION * max(1.0, abs(bound)):
            break
        improved = False
        # The point between cuts deeper; where it neither improves nor cuts, the target does.
        for query in (0.5 * (best + target), target):
            value, slope = _value(problem, table, idle, query)
            count += 1
            cuts.append((value - float(slope @ query), slope))
            cut_off = value + float(slope @ (target - query)) < model
            if value > bound:
                best, bound, improved = query, value, True
                if bound - mark > 1e-9 * abs(bound):
                    progress, mark = count, bound
            if improved or cut_off:
                break
        if not improved and not cut_off:
            break  # rounding is all that is left
    return best, bound, count


def _master(
    cuts: list[tuple[float, FloatArray]], floor: FloatArray, ceiling: FloatArray
) -> tuple[FloatArray, float]:
    """Maximise the least of all cuts within the box; prices count from the floor."""
    builder = Builder()
    span = np.maximum(ceiling - floor, 0.0)
    widest = float(span.max(initial=0.0)) or 1.0
    scale = max(abs(value) for value, _ in cuts) or 1.0
    # where every object can have its copy the cuts start at no cost but rounding
    scale = max(scale, _FLATTEST * widest * max(float(np.abs(slope).max()) for _, slope in cuts))
    prices = builder.add_columns(np.zeros(len(floor)), upper=span / widest)
    # θ is the gain of the model on the first cut's value at the floor; it is never negative.
    base = cuts[0][0] + float(cuts[0][1] @ floor)
    gain = builder.add_columns([-1.0], upper=np.inf)
    for constant, slope in cuts:
        (row,) = builder.add_rows(-np.inf, (constant + float(slope @ floor) - base) / scale, 1)
        builder.put(np.array([row]), gain, 1.0)
        builder.put(np.full(len(prices), row), prices, -slope * widest / scale)
    relaxation = Relaxation(builder.program())
    relaxation.solve()
    values = relaxation.values
    if values is None or not np.isfinite(values).all():
        raise SolverError("HiGHS did not solve the model of the dual")
    target = np.clip(floor + values[:-1] * widest, floor, np.maximum(ceiling, floor))
    return target, base + float(values[-1]) * scale

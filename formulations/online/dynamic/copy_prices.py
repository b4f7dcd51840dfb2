"""The best dynamic copies by prices of room at each site.

For prices μ >= 0 the problem falls apart into objects, each choosing its subset Y of sites:

    L(μ) = Σ_o min_Y { cost_o(Y) + Σ_{j ∈ Y} μ_j } − Σ_j μ_j·C_j

Every L(μ) is a lower bound on the cost of copies within capacity. L is concave and piecewise linear
in at most a dozen prices. Kelley's cutting planes therefore find its maximum in some tens of
evaluations; they are queried between the best point so far and the optimum of the model (in-out,
Ben-Ameur and Neto 2007). max L is the optimum of the linear relaxation over subsets, never below
that of the program of :mod:`formulations.online.dynamic.copy_programs`.

An object whose single savings are below the prices at every site takes no copies (savings are
submodular), so only objects that beat a floor under the prices have a table. This is what makes
millions of objects affordable: nothing is evaluated for the cold ones.

At the best prices all but a few objects have one best subset, and at a vertex of the relaxation at
most as many objects as sites are split. The rest is done in three steps:

1. rounding: give back the copies that cost least to lose where a site is overfull, then add those
   that save most where there is room;
2. fixing: a subset whose priced cost is more than the gap above the best of its object is in no
   better solution;
3. a mixed-integer program over what remains, usually some tens of objects, proven on safe bounds.
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass

import numpy as np

from formulations.solvers.highs import Guard, Relaxation, run_highs
from formulations.solvers.linear_program import Builder
from formulations.solvers.safe_bounds import prove_by_branching
from formulations.solvers.statuses import Verdict
from placement.errors import LimitError, SolverError
from placement.online.dynamic.replication_problem import (
    ReplicationPlan,
    ReplicationProblem,
    base_cost,
    evaluate,
    single_savings,
)
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import OPTIMALITY_TOLERANCE, relative_gap

_MOST_SITES = 12
_MOST_ENTRIES = 2**26
"""512 MB of costs."""


@dataclass(frozen=True, eq=False)
class SubsetTable:
    """Cost of each subset of sites as the dynamic copies of each of some objects."""

    objects: IntArray  #: the objects, increasing, shape (n,)
    masks: BoolArray  #: sites of each subset, shape (subsets, sites); row 0 is empty
    #: shape (subsets, n); infinite where a subset holds a static site of the object or one without
    #: room
    cost: FloatArray

    def priced(self, prices: FloatArray) -> FloatArray:
        """Cost plus prices[j] for each copy at j, shape (subsets, n)."""
        return self.cost + (self.masks @ prices)[:, None]


def subset_table(problem: ReplicationProblem, objects: IntArray) -> SubsetTable:
    """Tabulate all 2^sites subsets for some objects. O(2^sites · Σ_i |preferred_i| · objects).

    LimitError for more than 12 sites, or more entries than fit in memory.
    """
    if problem.sites > _MOST_SITES:
        raise LimitError(
            f"{problem.sites} sites have {2**problem.sites} subsets; the Lagrangean relaxation "
            f"takes at most {_MOST_SITES} sites"
        )
    numbers = np.arange(2**problem.sites)
    masks = (numbers[:, None] >> np.arange(problem.sites) & 1).astype(bool)
    masks = masks[~(masks & (problem.capacity == 0)).any(axis=1)]
    if len(masks) * len(objects) > _MOST_ENTRIES:
        raise LimitError(
            f"{len(objects)} objects may be worth a copy, which makes {len(masks) * len(objects)} "
            f"subsets; at most {_MOST_ENTRIES} fit"
        )
    rtt = problem.geography.rtt
    reads, static_rtt = problem.reads[:, objects], problem.static_rtt[:, objects]
    static, writes = problem.static[:, objects], problem.write_cost[:, objects]
    cost = np.empty((len(masks), len(objects)))
    for number, mask in enumerate(masks):
        total = writes[mask].sum(axis=0)
        for site, row in enumerate(problem.geography.preferred):
            near = min((float(rtt[site, j]) for j in row if mask[j]), default=np.inf)
            total = total + reads[site] * np.minimum(static_rtt[site], near)
        cost[number] = np.where((static & mask[:, None]).any(axis=0), np.inf, total)
    return SubsetTable(objects, masks, cost)


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
    """Prices with the bound that follows from the prices."""

    prices: FloatArray  #: μ, shape (sites,)
    bound: float  #: L(μ), rounded down
    evaluations: int  #: number of L(μ) computed; the limit when it was reached, or at Ctrl-C
    table: SubsetTable  #: subsets of the objects that may get a copy at these prices
    idle_cost: float  #: cost of all other objects, without copies


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
    # the capacity-th largest saving of each site, 0 where there is room for all
    guess = np.zeros(problem.sites)
    for site, (row, c) in enumerate(zip(savings, problem.capacity.tolist(), strict=True)):
        if 0 < c < len(row):
            guess[site] = np.partition(row, len(row) - c)[len(row) - c]
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


_MOST_LEFT = 50_000
"""Subsets left after fixing above which the gap is reported instead of closed."""


def solve_lagrangean(
    problem: ReplicationProblem, *, close: bool = True, time_limit: float = math.inf
) -> ReplicationPlan:
    """Solve a problem of at most 12 sites by Lagrangean relaxation.

    With `close` the gap that rounding leaves is closed, and the bound is then the cost itself. At
    the time limit (seconds), or at Ctrl-C, the best plan and bound are returned.
    """
    deadline = time.perf_counter() + time_limit
    dual = solve_dual(problem)
    choice = _rounded(problem, dual.table, dual.prices)
    copies = _copies(problem, dual.table, choice)
    cost = evaluate(problem, copies).cost
    bound = max(dual.bound, 0.0)  # rounding down may have gone below 0, which no cost does
    notes = [f"Lagrangean bound {bound:.9g} after {dual.evaluations} evaluations"]
    if close and relative_gap(cost, bound) > OPTIMALITY_TOLERANCE:
        # Give a table to every object that a better solution could give a copy. At one without, a
        # copy that saves s at the price μ is a loss of at least μ − s, and copies that save nothing
        # can be left out. A loss beyond the gap is in no better solution.
        savings, gap = single_savings(problem), (cost - dual.bound) + 1e-12 * abs(cost)
        near = ((savings > 0) & (dual.prices[:, None] - savings <= gap)).any(axis=0)
        objects = np.union1d(dual.table.objects, np.flatnonzero(near)).astype(np.intp)
        if len(objects) > len(dual.table.objects):
            table = subset_table(problem, objects)
            dual = dataclasses.replace(dual, table=table, idle_cost=idle_cost(problem, table))
        copies, bound, note = _close(problem, dual, copies, cost, deadline)
        notes.append(note)
    cost = evaluate(problem, copies).cost
    return ReplicationPlan.of(problem, copies, "lagrangean", bound=bound, notes=tuple(notes))


def _copies(problem: ReplicationProblem, table: SubsetTable, choice: IntArray) -> BoolArray:
    result = problem.none.copy()
    result[:, table.objects] = table.masks[choice].T
    return result


def _rounded(problem: ReplicationProblem, table: SubsetTable, prices: FloatArray) -> IntArray:
    """Subset of each object, within the capacities."""
    everyone = np.arange(len(table.objects))
    choice: IntArray = table.priced(prices).argmin(axis=0).astype(np.intp)
    if not len(everyone):
        return choice
    number = {mask.tobytes(): index for index, mask in enumerate(table.masks)}
    partner = np.full((problem.sites, len(table.masks)), -1, dtype=np.intp)
    for index, mask in enumerate(table.masks):
        for j in range(problem.sites):
            other = mask.copy()
            other[j] = not other[j]
            partner[j, index] = number.get(other.tobytes(), -1)
    room = problem.capacity - table.masks[choice].sum(axis=0)
    for j in np.flatnonzero(room < 0).tolist():
        while room[j] < 0:
            holding = np.flatnonzero(table.masks[choice, j])
            lost = partner[j, choice[holding]]
            loss = table.cost[lost, holding] - table.cost[choice[holding], holding]
            # Losses of different objects do not interact, so all go in one step.
            leaving = np.argsort(loss, kind="stable")[: -room[j]]
            choice[holding[leaving]] = lost[leaving]
            room[j] += len(leaving)
    while True:
        best_gain, best = 0.0, None
        for j in np.flatnonzero(room > 0).tolist():
            more = partner[j, choice]
            allowed = (more >= 0) & ~table.masks[choice, j]
            now = table.cost[choice, everyone]
            gain = np.where(allowed, now - table.cost[more, everyone], 0.0)
            thing = int(gain.argmax())
            if gain[thing] > best_gain:
                best_gain, best = float(gain[thing]), (j, thing)
        if best is None:
            return choice
        j, thing = best
        choice[thing] = partner[j, choice[thing]]
        room[j] -= 1


def _close(
    problem: ReplicationProblem,
    dual: Dual,
    copies: BoolArray,
    cost: float,
    deadline: float,
) -> tuple[BoolArray, float, str]:
    """Solve over the subsets that a better solution could have; copies, bound and a note."""
    table = dual.table
    priced = table.priced(dual.prices)
    least = priced.min(axis=0)
    # Whatever is better than `cost` spends less than the gap above the best subset of any object.
    gap = (cost - dual.bound) + 1e-12 * abs(cost)
    left = priced - least <= gap
    open_objects = np.flatnonzero(left.sum(axis=0) > 1)
    fixed = np.setdiff1d(np.arange(len(table.objects)), open_objects)
    if int(left[:, open_objects].sum()) > _MOST_LEFT:
        words = f"{len(open_objects)} objects left after fixing: gap not closed"
        return copies, max(dual.bound, 0.0), words
    settled = priced.argmin(axis=0)
    room = problem.capacity - table.masks[settled[fixed]].sum(axis=0)
    if (room < 0).any():
        return copies, cost, "fixing left no better solution"
    if not len(open_objects):
        # One set of copies is left for every object: together they are all that could be better.
        only = _copies(problem, table, settled)
        better = evaluate(problem, only).cost < cost
        return (only if better else copies), min(evaluate(problem, only).cost, cost), "all fixed"
    # A binary for each subset left, one choice per object and the free capacities; `scale` are the
    # program's units per unit of cost.
    subset, place = np.nonzero(left[:, open_objects])
    owner = open_objects[place]
    base = float(table.cost[settled, np.arange(len(settled))][open_objects].sum())
    scale = max(1, len(open_objects)) / base if base > 0 else 1.0
    builder = Builder()
    column = builder.add_columns(table.cost[subset, owner] * scale, integer=True)
    one = builder.add_rows(1.0, 1.0, len(open_objects))
    builder.put(one[place], column, 1.0)
    for j in range(problem.sites):
        mine = column[table.masks[subset, j]]
        if len(mine):
            (row,) = builder.add_rows(-np.inf, float(room[j]), 1)
            builder.put(np.full(len(mine), row), mine, 1.0)
    kept = float(table.cost[settled[fixed], fixed].sum()) + dual.idle_cost
    builder.offset = kept * scale
    program = builder.program()

    def chosen(values: FloatArray) -> BoolArray:
        choice, taken = settled.copy(), values > 0.5
        choice[owner[taken]] = subset[taken]
        return _copies(problem, table, choice)

    outcome = run_highs(program, Guard(deadline=deadline))
    best, best_cost = copies, cost
    if outcome.values is not None:
        found = chosen(outcome.values)
        found_cost = evaluate(problem, found).cost
        if found_cost < best_cost and not evaluate(problem, found).overfull:
            best, best_cost = found, found_cost
    target = best_cost * (1 - OPTIMALITY_TOLERANCE / 2)
    if outcome.verdict is Verdict.STOPPED:
        return best, max(dual.bound, 0.0), f"stopped: {outcome.stop}; gap not closed"

    def judge(values: FloatArray) -> bool:
        result = evaluate(problem, chosen(values))
        return bool(result.overfull) or bool(result.cost >= target)

    proof = prove_by_branching(program, target * scale, judge, deadline=deadline)
    bound = max(0.0, dual.bound, proof.bound / scale * (1 - 1e-15))
    words = f"{len(open_objects)} objects left after fixing, {proof.nodes} nodes, {proof.open} open"
    return best, bound, words

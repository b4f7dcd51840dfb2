"""Large problems: the Lagrangean bound, copies rounded from its prices, and the gap closed.

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

import numpy as np

from formulations.online.dynamic.capacity_prices import Dual, idle_cost, solve_dual
from formulations.online.dynamic.subset_costs import SubsetTable, single_savings, subset_table
from formulations.solvers.highs import Guard, run_highs
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.program_builder import Builder
from formulations.solvers.safe_bounds import prove_by_branching
from formulations.solvers.statuses import Verdict
from placement.online.dynamic.evaluator import evaluate
from placement.online.dynamic.plan import ReplicationPlan
from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import OPTIMALITY_TOLERANCE, relative_gap

__all__ = ["solve_lagrangean"]

_MOST_LEFT = 50_000
"""Subsets left after fixing above which the gap is reported instead of closed."""


def solve_lagrangean(
    problem: ReplicationProblem, *, close: bool = True, time_limit: float = math.inf
) -> ReplicationPlan:
    """Solve a problem by Lagrangean relaxation.

    Parameters
    ----------
    problem
        At most 12 sites, any number of objects.
    close
        Whether to close the gap that rounding leaves.
    time_limit
        Seconds for closing it; at the limit, or at Ctrl-C, the best plan and bound are returned.

    Returns
    -------
    The plan; its bound is the Lagrangean one, or the cost itself where the gap was closed.
    """
    deadline = time.perf_counter() + time_limit
    dual = solve_dual(problem)
    choice = _rounded(problem, dual.table, dual.prices)
    copies = _copies(problem, dual.table, choice)
    cost = evaluate(problem, copies).cost
    bound = max(dual.bound, 0.0)  # rounding down may have gone below 0, which no cost does
    notes = [f"Lagrangean bound {bound:.9g} after {dual.evaluations} evaluations"]
    if close and relative_gap(cost, bound) > OPTIMALITY_TOLERANCE:
        dual = _widened(problem, dual, cost)
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


def _widened(problem: ReplicationProblem, dual: Dual, cost: float) -> Dual:
    """Give a table to every object that a better solution could give a copy.

    At an object without a table, a copy that saves s at the price μ is a loss of at least μ − s,
    and copies that save nothing can be left out. A loss beyond the gap is in no better solution.
    """
    savings = single_savings(problem)
    gap = (cost - dual.bound) + 1e-12 * abs(cost)
    close = ((savings > 0) & (dual.prices[:, None] - savings <= gap)).any(axis=0)
    objects = np.union1d(dual.table.objects, np.flatnonzero(close)).astype(np.intp)
    if len(objects) == len(dual.table.objects):
        return dual
    table = subset_table(problem, objects)
    return dataclasses.replace(dual, table=table, idle_cost=idle_cost(problem, table))


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
        return (
            copies,
            max(dual.bound, 0.0),
            f"{len(open_objects)} objects left after fixing: gap not closed",
        )
    settled = priced.argmin(axis=0)
    room = problem.capacity - table.masks[settled[fixed]].sum(axis=0)
    if (room < 0).any():
        return copies, cost, "fixing left no better solution"
    if not len(open_objects):
        # One set of copies is left for every object: together they are all that could be better.
        only = _copies(problem, table, settled)
        better = evaluate(problem, only).cost < cost
        return (only if better else copies), min(evaluate(problem, only).cost, cost), "all fixed"
    program, subset, owner, scale = _program(
        problem, dual, left, open_objects, fixed, settled, room
    )
    outcome = run_highs(program, Guard(deadline=deadline))
    best, best_cost = copies, cost
    if outcome.values is not None:
        found = _chosen(problem, table, settled, subset, owner, outcome.values)
        found_cost = evaluate(problem, found).cost
        if found_cost < best_cost and not evaluate(problem, found).overfull:
            best, best_cost = found, found_cost
    target = best_cost * (1 - OPTIMALITY_TOLERANCE / 2)
    if outcome.verdict is Verdict.STOPPED:
        return best, max(dual.bound, 0.0), f"stopped: {outcome.stop}; gap not closed"

    def judge(values: FloatArray) -> bool:
        found = _chosen(problem, table, settled, subset, owner, values)
        result = evaluate(problem, found)
        return bool(result.overfull) or bool(result.cost >= target)

    proof = prove_by_branching(program, target * scale, judge, deadline=deadline)
    bound = max(0.0, dual.bound, proof.bound / scale * (1 - 1e-15))
    words = f"{len(open_objects)} objects left after fixing, {proof.nodes} nodes, {proof.open} open"
    return best, bound, words


def _program(
    problem: ReplicationProblem,
    dual: Dual,
    left: BoolArray,
    open_objects: IntArray,
    fixed: IntArray,
    settled: IntArray,
    room: IntArray,
) -> tuple[LinearProgram, IntArray, IntArray, float]:
    """Program with a binary for each subset left, one choice per object and the free capacities.

    Returns the program, the subset and the object of each column, and the units per unit of cost.
    """
    table = dual.table
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
    return builder.program(), subset.astype(np.intp), owner.astype(np.intp), scale


def _chosen(
    problem: ReplicationProblem,
    table: SubsetTable,
    settled: IntArray,
    subset: IntArray,
    owner: IntArray,
    values: FloatArray,
) -> BoolArray:
    choice = settled.copy()
    taken = values > 0.5
    choice[owner[taken]] = subset[taken]
    return _copies(problem, table, choice)

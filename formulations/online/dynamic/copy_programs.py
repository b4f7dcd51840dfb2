"""The best dynamic copies as an integer program, solved and proven.

Savings are telescoped over distance. For a client site i and an object o let
j_1, j_2, …, j_L be its preferred sites that are closer than any static copy, in its order, at
distances d_1 <= … <= d_L, and d_{L+1} the distance of the closest static copy. A copy among the
first t saves the step d_{t+1} − d_t:

    y[j, o] ∈ {0, 1}, u[i, o, t] ∈ [0, 1]

    max  Σ reads[i, o]·(d_{t+1} − d_t)·u[i, o, t] − Σ write_cost[j, o]·y[j, o]
    s.t. u[i, o, t] <= Σ_{p <= t} y[j_p, o]
         Σ_o y[j, o] <= C_j

For 0/1 y, u[i, o, t] = 1 exactly when the serving copy is among the first t, and the steps
beyond it add up to its saving.

The relaxation is often integral, but not always: three sites in a triangle, each preferring itself
and the next, with two objects and room for one copy each, have the relaxed optimum y = 1/2
everywhere (tests/online/dynamic/test_exact.py keeps it).

HiGHS solves the program; what is claimed rests on safe bounds and the evaluator.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from formulations.solvers.highs import Guard, HighsResult, Relaxation, run_highs
from formulations.solvers.linear_program import Builder, LinearProgram
from formulations.solvers.safe_bounds import prove_by_branching, safe_bound
from formulations.solvers.statuses import Verdict
from placement.errors import SolverError
from placement.online.dynamic.replication_problem import (
    ReplicationPlan,
    ReplicationProblem,
    base_cost,
    evaluate,
)
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import OPTIMALITY_TOLERANCE

TOLERANCE = 1e-6
"""Largest difference between HiGHS's objective and the evaluator's, relative to the cost without
copies."""


@dataclass(frozen=True, eq=False)
class _CopyModel:
    """A program with the columns of its copies.

    `column` is the column of y[j, o], shape (sites, objects); −1 where a copy saves nothing or has
    no room. `scale`: the program's units per unit of cost.
    """

    program: LinearProgram
    column: IntArray
    scale: float

    def values(self, values: FloatArray) -> FloatArray:
        """Return y of a solution, fractional ones too, shape (sites, objects)."""
        if not len(values):
            return np.zeros(self.column.shape)
        return np.where(self.column >= 0, values[self.column], 0.0)

    def copies(self, values: FloatArray) -> BoolArray:
        """Return the copies of a solution, shape (sites, objects)."""
        return np.asarray(self.values(values) > 0.5, dtype=bool)


def _model(problem: ReplicationProblem) -> _CopyModel:
    """Return the program; O(Σ_i |P_i|² · objects) non-zeros, steps of length 0 left out.

    The scale is such that the mean object costs 1, which suits the solver's tolerances.
    """
    builder, cost = Builder(), base_cost(problem)
    scale = problem.objects / cost if cost > 0 else 1.0
    rtt, lists = problem.geography.rtt, problem.geography.preferred
    # how many preferred sites are closer than any static copy: the first, since lists ascend
    within = np.zeros(problem.static.shape, dtype=np.intp)
    useful = np.zeros(problem.static.shape, dtype=bool)  # saves a read somewhere, and has room
    for site, row in enumerate(lists):
        for j in row:
            within[site] += rtt[site, j] < problem.static_rtt[site]
        for place, j in enumerate(row):
            useful[j] |= (within[site] > place) & (problem.reads[site] > 0)
    useful &= (problem.capacity > 0)[:, None]
    column = np.full(problem.static.shape, -1, dtype=np.intp)
    column[useful] = builder.add_columns(problem.write_cost[useful] * scale, integer=True)
    for site, capacity in enumerate(problem.capacity.tolist()):
        mine = column[site][useful[site]]
        if len(mine) > capacity:  # a larger capacity cannot bind
            (limit,) = builder.add_rows(-np.inf, capacity, 1)
            builder.put(np.full(len(mine), limit), mine, 1.0)
    for site, row in enumerate(lists):
        for place, j in enumerate(row):  # u[i, o, t] with its row, for steps of positive length
            after = rtt[site, row[place + 1]] if place + 1 < len(row) else np.inf
            step = np.minimum(after, problem.static_rtt[site]) - rtt[site, j]
            gains = problem.reads[site] * step > 0
            things = np.flatnonzero((within[site] > place) & gains)
            copies = column[list(row[: place + 1])][:, things]
            covered = (copies >= 0).any(axis=0)
            things, copies = things[covered], copies[:, covered]
            saved = builder.add_columns(-problem.reads[site, things] * step[things] * scale)
            rows = builder.add_rows(-np.inf, 0.0, len(things))
            builder.put(rows, saved, 1.0)
            for some in copies:
                builder.put(rows[some >= 0], some[some >= 0], -1.0)
    builder.offset = cost * scale
    return _CopyModel(builder.program(), column, scale)


@dataclass(frozen=True, eq=False)
class LpBound:
    """The linear relaxation of a program."""

    value: float  #: its optimum as HiGHS says, in units of cost
    bound: float  #: safe lower bound on it, from its duals by weak duality in checked arithmetic
    copies: FloatArray  #: y, shape (sites, objects), perhaps fractional

    @property
    def integral(self) -> bool:
        """Return whether y is whole to 1e-6."""
        return bool(np.abs(self.copies - np.rint(self.copies)).max(initial=0.0) < 1e-6)


def relax(problem: ReplicationProblem) -> LpBound:
    """Solve the linear relaxation."""
    return _relaxed(_model(problem))


def _relaxed(model: _CopyModel) -> LpBound:
    program = model.program
    if not len(program.cost):
        value = program.offset / model.scale
        return LpBound(value, value, model.values(program.cost))
    relaxation = Relaxation(program)
    verdict = relaxation.solve()
    values, duals = relaxation.values, relaxation.duals
    if verdict is not Verdict.OPTIMAL or values is None or duals is None:
        raise SolverError(f"HiGHS ended an LP with {verdict.value!r}")
    bound = safe_bound(program, program.lower, program.upper, duals)
    value = program.objective(values) / model.scale
    return LpBound(value, bound / model.scale, model.values(values))


def check_objective(outcome: HighsResult, scale: float, cost: float, base: float) -> None:
    """Hold HiGHS's objective against the evaluator's cost, to TOLERANCE of the cost without copies.

    An incumbent of a run that was stopped may leave savings unclaimed, so that it costs less than
    HiGHS says; never more.
    """
    more = cost - outcome.objective / scale
    less = outcome.verdict is Verdict.OPTIMAL and -more > TOLERANCE * base
    if more > TOLERANCE * base or less:
        raise SolverError(
            f"HiGHS's objective {outcome.objective / scale!r} is not the cost {cost!r}"
        )


def solve_milp(problem: ReplicationProblem, *, time_limit: float = math.inf) -> ReplicationPlan:
    """Return the best copies, with a proven bound; at the limit or at Ctrl-C what there is.

    The bound is the safe bound of the relaxation; where that does not reach the cost, branch and
    bound on safe bounds closes the rest (:mod:`formulations.solvers.safe_bounds`). HiGHS's own
    bound is not used. SolverError when HiGHS's objective is not the evaluator's.
    """
    deadline = time.perf_counter() + time_limit
    model = _model(problem)
    copies, base = problem.none, base_cost(problem)
    if not len(model.program.cost):
        return ReplicationPlan.of(problem, copies, "milp", bound=base)
    relaxed = _relaxed(model)
    outcome = run_highs(model.program, Guard(deadline=deadline))
    if outcome.verdict is Verdict.INFEASIBLE:
        raise SolverError("HiGHS calls a program infeasible that no copies at all satisfy")
    notes = [f"linear relaxation {relaxed.value:.9g}, safe bound {relaxed.bound:.9g}"]
    if outcome.values is None:
        notes.append("nothing found in time: no copies")
    else:
        copies = model.copies(outcome.values)
        check_objective(outcome, model.scale, evaluate(problem, copies).cost, base)
    cost = evaluate(problem, copies).cost
    bound = max(relaxed.bound, 0.0)  # rounding down may have gone below 0, which no cost does
    target = cost * (1 - OPTIMALITY_TOLERANCE / 2)
    if outcome.verdict is Verdict.STOPPED:
        notes.append(f"stopped: {outcome.stop}")
    elif bound < target:

        def judge(values: FloatArray) -> bool:
            return evaluate(problem, model.copies(values)).cost >= target

        proof = prove_by_branching(model.program, target * model.scale, judge, deadline=deadline)
        bound = max(bound, proof.bound / model.scale * (1 - 1e-15))
        notes.append(f"proven on safe bounds, {proof.nodes} nodes, {proof.open} left open")
    return ReplicationPlan.of(problem, copies, "milp", bound=min(bound, cost), notes=tuple(notes))

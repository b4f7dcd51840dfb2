"""The best dynamic copies as integer programs (G1, G2), solved and proven.

G1: every read is assigned to a copy.

Sets: sites S, objects O, preferred sites P_i of site i, static sites A_o.

    y[j, o] ∈ {0, 1}     dynamic copy of o at j, j ∉ A_o
    x[i, j, o] ∈ [0, 1]  share of the reads of o at i that j serves

    min  Σ reads[i, o]·rtt[i, j]·x[i, j, o] + Σ writes[o]·forward[j, o]·y[j, o] + Σ writes[o]·τ_o
    s.t. Σ_j x[i, j, o] = 1                    for all i, o
         x[i, j, o] <= y[j, o]                 j ∉ A_o
         Σ_o y[j, o] <= C_j
         τ_o >= wait[j, o]·y[j, o]             synchronous writes only

with x[i, j, o] only for j ∈ P_i ∪ A_o. Of the static copies only the closest can serve in an
optimum, and no dynamic copy further away than it; so only these have columns. For given y the best
x is integral: it need not be binary.

The program is written in savings, the constant being the cost without dynamic copies: the column of
the closest static copy has cost 0.

G2: savings telescoped over distance.

For a client site i and an object o let j_1, j_2, …, j_L be its preferred sites that are closer than
any static copy, in its order, at distances d_1 <= … <= d_L, and d_{L+1} the distance of the closest
static copy. A copy among the first t saves the step d_{t+1} − d_t:

    y[j, o] ∈ {0, 1}, u[i, o, t] ∈ [0, 1]

    max  Σ reads[i, o]·(d_{t+1} − d_t)·u[i, o, t] − costs of writes as in G1
    s.t. u[i, o, t] <= Σ_{q <= t} y[j_q, o]
         Σ_o y[j, o] <= C_j

Why it equals G1: for 0/1 y, u[i, o, t] = 1 exactly when the serving copy is among the first t, and
the steps beyond it add up to its saving. For fractional y the two relaxations are equal too: G1
fills x from the closest site on, x_q = min(y_q, 1 − Σ_{p<q} x_p), which makes
Σ_{q<=t} x_q = min(1, Σ_{q<=t} y_q).

The relaxation is often integral, but not always: three sites in a triangle, each preferring itself
and the next, with two objects and room for one copy each, have the relaxed optimum y = 1/2
everywhere (tests/online/dynamic/test_exact.py keeps it).

HiGHS solves both; what is claimed rests on safe bounds and the evaluator.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations.solvers.highs import Guard, HighsResult, Relaxation, run_highs
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.program_builder import Builder
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

__all__ = [
    "TOLERANCE",
    "CopyModel",
    "LpBound",
    "add_copies",
    "add_savings",
    "add_waits",
    "build_assignment",
    "build_telescoped",
    "check_objective",
    "finished",
    "reach",
    "relax",
    "solve_milp",
    "unit",
    "worthwhile",
]


@dataclass(frozen=True, eq=False)
class CopyModel:
    """A program with the columns of its copies.

    Attributes
    ----------
    program
        Objective in cost · `scale`.
    column
        Column of y[j, o], shape (sites, objects); −1 where a copy saves nothing or has no room.
    scale
        The program's units per unit of cost.
    """

    program: LinearProgram
    column: IntArray
    scale: float

    def copies(self, values: FloatArray) -> BoolArray:
        """Return the copies of a solution, shape (sites, objects)."""
        placed = values[self.column] > 0.5
        return np.asarray(placed & (self.column >= 0), dtype=bool)

    def values(self, values: FloatArray) -> FloatArray:
        """Return y of a solution, fractional ones too, shape (sites, objects)."""
        return np.where(self.column >= 0, values[self.column], 0.0)


def reach(problem: ReplicationProblem) -> IntArray:
    """Return how many preferred sites are closer than any static copy, shape (sites, objects).

    They come first in the list of the client, since lists ascend in RTT.
    """
    result = np.zeros(problem.static.shape, dtype=np.intp)
    for site, row in enumerate(problem.geography.preferred):
        for j in row:
            result[site] += problem.geography.rtt[site, j] < problem.static_rtt[site]
    return result


def worthwhile(problem: ReplicationProblem) -> BoolArray:
    """Return whether a copy of o at j can save any read, and has room, shape (sites, objects)."""
    within = reach(problem)
    result = np.zeros(problem.static.shape, dtype=bool)
    for site, row in enumerate(problem.geography.preferred):
        for place, j in enumerate(row):
            result[j] |= (within[site] > place) & (problem.reads[site] > 0)
    return result & (problem.capacity > 0)[:, None]


def add_copies(
    problem: ReplicationProblem, builder: Builder, scale: float, useful: BoolArray
) -> IntArray:
    """Add y[j, o] ∈ {0, 1} where `useful`, with the cost of forwarding, and Σ_o y[j, o] <= C_j."""
    column = np.full(useful.shape, -1, dtype=np.intp)
    column[useful] = builder.add_columns(problem.forward_cost[useful] * scale, integer=True)
    for site, capacity in enumerate(problem.capacity.tolist()):
        mine = column[site][useful[site]]
        if len(mine) > capacity:  # a larger capacity cannot bind
            (row,) = builder.add_rows(-np.inf, capacity, 1)
            builder.put(np.full(len(mine), row), mine, 1.0)
    return column


def add_waits(
    problem: ReplicationProblem, builder: Builder, column: IntArray, scale: float
) -> None:
    """Add τ_o >= wait[j, o]·y[j, o] with cost writes[o], beyond what the static copies wait for."""
    if problem.wait is None:
        return
    held = np.where(problem.static, problem.wait, 0.0).max(axis=0)
    more = np.where(column >= 0, np.maximum(problem.wait - held, 0.0), 0.0)
    slow = np.flatnonzero((more.max(axis=0) > 0) & (problem.write_rates > 0))
    extra = builder.add_columns(problem.write_rates[slow] * scale, upper=more.max(axis=0)[slow])
    for site in range(problem.sites):
        some = np.flatnonzero(more[site, slow] > 0)
        rows = builder.add_rows(0.0, np.inf, len(some))
        builder.put(rows, extra[some], 1.0)
        builder.put(rows, column[site, slow[some]], -more[site, slow[some]])


def finished(
    problem: ReplicationProblem, builder: Builder, column: IntArray, scale: float
) -> CopyModel:
    """Return the model, its offset the cost without dynamic copies."""
    builder.offset = base_cost(problem) * scale
    return CopyModel(builder.program(), column, scale)


def unit(problem: ReplicationProblem) -> float:
    """Scale at which the mean object costs 1, which suits the solver's tolerances."""
    cost = base_cost(problem)
    return problem.objects / cost if cost > 0 else 1.0


def build_assignment(problem: ReplicationProblem) -> CopyModel:
    """Return the program G1; O(Σ_i |P_i| · objects) columns, rows and non-zeros."""
    builder, scale = Builder(), unit(problem)
    column = add_copies(problem, builder, scale, worthwhile(problem))
    within = reach(problem)
    rtt = problem.geography.rtt
    for site, row in enumerate(problem.geography.preferred):
        asked = np.flatnonzero((within[site] > 0) & (problem.reads[site] > 0))
        served = builder.add_rows(1.0, 1.0, len(asked))
        builder.put(served, builder.add_columns(np.zeros(len(asked))), 1.0)
        for place, j in enumerate(row):
            some = np.flatnonzero((within[site, asked] > place) & (column[j, asked] >= 0))
            things = asked[some]
            saved = problem.static_rtt[site, things] - rtt[site, j]
            share = builder.add_columns(-problem.reads[site, things] * saved * scale)
            builder.put(served[some], share, 1.0)
            linked = builder.add_rows(-np.inf, 0.0, len(things))
            builder.put(linked, share, 1.0)
            builder.put(linked, column[j, things], -1.0)
    add_waits(problem, builder, column, scale)
    return finished(problem, builder, column, scale)


def build_telescoped(problem: ReplicationProblem) -> CopyModel:
    """Return the program G2; O(Σ_i |P_i|² · objects) non-zeros, steps of length 0 left out."""
    builder, scale = Builder(), unit(problem)
    column = add_copies(problem, builder, scale, worthwhile(problem))
    add_savings(problem, builder, column, scale)
    add_waits(problem, builder, column, scale)
    return finished(problem, builder, column, scale)


def add_savings(
    problem: ReplicationProblem, builder: Builder, column: IntArray, scale: float
) -> None:
    """Add u[i, o, t] with its row for every step of positive length."""
    within_reach = reach(problem)
    rtt = problem.geography.rtt
    for site, row in enumerate(problem.geography.preferred):
        for place, j in enumerate(row):
            after = rtt[site, row[place + 1]] if place + 1 < len(row) else np.inf
            step = np.minimum(after, problem.static_rtt[site]) - rtt[site, j]
            gains = problem.reads[site] * step > 0
            things = np.flatnonzero((within_reach[site] > place) & gains)
            copies = column[list(row[: place + 1])][:, things]
            covered = (copies >= 0).any(axis=0)
            things, copies = things[covered], copies[:, covered]
            saved = builder.add_columns(-problem.reads[site, things] * step[things] * scale)
            rows = builder.add_rows(-np.inf, 0.0, len(things))
            builder.put(rows, saved, 1.0)
            for some in copies:
                builder.put(rows[some >= 0], some[some >= 0], -1.0)


TOLERANCE = 1e-6
"""Largest difference between HiGHS's objective and the evaluator's, relative to the cost without
copies."""

Build = Callable[[ReplicationProblem], CopyModel]


@dataclass(frozen=True, eq=False)
class LpBound:
    """The linear relaxation of a program.

    Attributes
    ----------
    value
        Its optimum as HiGHS says, in units of cost.
    bound
        Safe lower bound on it, from its duals by weak duality in checked arithmetic.
    copies
        y, shape (sites, objects), perhaps fractional.
    """

    value: float
    bound: float
    copies: FloatArray

    @property
    def integral(self) -> bool:
        """Return whether y is whole to 1e-6."""
        return bool(np.abs(self.copies - np.rint(self.copies)).max(initial=0.0) < 1e-6)


def relax(model: CopyModel) -> LpBound:
    """Solve the linear relaxation."""
    program = model.program
    if not len(program.cost):
        value = program.offset / model.scale
        return LpBound(value, value, model.values(np.zeros(1)))
    relaxation = Relaxation(program)
    verdict = relaxation.solve()
    values, duals = relaxation.values, relaxation.duals
    if verdict is not Verdict.OPTIMAL or values is None or duals is None:
        raise SolverError(f"HiGHS ended an LP with {verdict.value!r}")
    bound = safe_bound(program, program.lower, program.upper, duals)
    return LpBound(
        program.objective(values) / model.scale, bound / model.scale, model.values(values)
    )


def check_objective(outcome: HighsResult, scale: float, cost: float, base: float) -> None:
    """Hold HiGHS's objective against the evaluator's cost, to TOLERANCE of the cost without copies.

    An incumbent of a run that was stopped may leave savings unclaimed, so that it costs less than
    HiGHS says; never more.

    Raises
    ------
    SolverError
        When the two differ otherwise.
    """
    more = cost - outcome.objective / scale
    less = outcome.verdict is Verdict.OPTIMAL and -more > TOLERANCE * base
    if more > TOLERANCE * base or less:
        raise SolverError(
            f"HiGHS's objective {outcome.objective / scale!r} is not the cost {cost!r}"
        )


def solve_milp(
    problem: ReplicationProblem, build: Build = build_telescoped, *, time_limit: float = math.inf
) -> ReplicationPlan:
    """Solve a problem with one of the programs, and prove the answer.

    The bound is the safe bound of the relaxation; where that does not reach the cost, branch and
    bound on safe bounds closes the rest (:mod:`formulations.solvers.safe_bounds`). HiGHS's own
    bound is not used.

    Parameters
    ----------
    problem
        The question.
    build
        ``build_telescoped`` (G2) or ``build_assignment`` (G1).
    time_limit
        Seconds; the best copies so far, with the bound so far, when they have passed, or at
        Ctrl-C.

    Raises
    ------
    SolverError
        When HiGHS's objective is not the evaluator's.
    """
    deadline = time.perf_counter() + time_limit
    model = build(problem)
    method = f"milp ({build.__name__.removeprefix('build_')})"
    if not len(model.program.cost):
        empty = base_cost(problem)
        return ReplicationPlan.of(problem, problem.none, method, bound=empty)
    relaxed = relax(model)
    outcome = run_highs(model.program, Guard(deadline=deadline))
    if outcome.verdict is Verdict.INFEASIBLE:
        raise SolverError("HiGHS calls a program infeasible that no copies at all satisfy")
    notes = [f"linear relaxation {relaxed.value:.9g}, safe bound {relaxed.bound:.9g}"]
    if outcome.values is None:
        copies = problem.none
        notes.append("nothing found in time: no copies")
    else:
        copies = model.copies(outcome.values)
        check_objective(outcome, model.scale, evaluate(problem, copies).cost, base_cost(problem))
    cost = evaluate(problem, copies).cost
    bound = max(relaxed.bound, 0.0)  # rounding down may have gone below 0, which no cost does
    target = cost * (1 - OPTIMALITY_TOLERANCE / 2)
    if outcome.verdict is Verdict.STOPPED:
        notes.append(f"stopped: {outcome.stop}")
    elif bound < target:

        def judge(values: FloatArray) -> bool:
            return bool(evaluate(problem, model.copies(values)).cost >= target)

        proof = prove_by_branching(model.program, target * model.scale, judge, deadline=deadline)
        bound = max(bound, proof.bound / model.scale * (1 - 1e-15))
        notes.append(f"proven on safe bounds, {proof.nodes} nodes, {proof.open} left open")
    return ReplicationPlan.of(problem, copies, method, bound=bound, notes=tuple(notes))

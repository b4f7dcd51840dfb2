"""The best dynamic copies of one round or of several as an integer program, solved and proven.

Savings are telescoped over distance. For a client site i and an object o let
j_1, j_2, …, j_L be its preferred sites that are closer than any static copy, in its order, at
distances d_1 <= … <= d_L, and d_{L+1} the distance of the closest static copy. A copy among the
first t saves the step d_{t+1} − d_t:

    y[j, o, q] ∈ {0, 1}, u[i, o, t, q] ∈ [0, 1], c[j, o, q] ∈ [0, 1]

    max  Σ reads[i, o, q]·(d_{t+1} − d_t)·u[i, o, t, q] − Σ write_cost[j, o]·y[j, o, q]
         − copying · Σ c[j, o, q]
    s.t. u[i, o, t, q] <= Σ_{p <= t} y[j_p, o, q]
         Σ_o y[j, o, q] <= C_j
         c[j, o, q] >= y[j, o, q] − y[j, o, q−1]     the copy is created in round q

For 0/1 y, u[i, o, t, q] = 1 exactly when the serving copy is among the first t, and the steps
beyond it add up to its saving. Without a price on copying the rounds fall apart.

The relaxation is often integral, but not always: three sites in a triangle, each preferring itself
and the next, with two objects and room for one copy each, have the relaxed optimum y = 1/2
everywhere (tests/online/dynamic/test_exact.py keeps it).

HiGHS solves the program; what is claimed rests on safe bounds and the evaluator.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.solvers.highs import Guard, HighsResult, Relaxation, run_highs
from formulations.solvers.linear_program import Builder, LinearProgram
from formulations.solvers.safe_bounds import prove_by_branching, safe_bound
from formulations.solvers.statuses import Verdict
from placement.errors import InputError, SolverError
from placement.online.dynamic.replication_problem import (
    ReplicationPlan,
    ReplicationProblem,
    base_cost,
    evaluate,
)
from placement.support.checks import BoolArray, FloatArray, IntArray, number
from placement.support.status import OPTIMALITY_TOLERANCE, Status, status_of

__all__ = [
    "TOLERANCE",
    "LpBound",
    "Schedule",
    "check_objective",
    "relax",
    "schedule_cost",
    "solve_milp",
    "solve_rounds",
]

TOLERANCE = 1e-6
"""Largest difference between HiGHS's objective and the evaluator's, relative to the cost without
copies."""


@dataclass(frozen=True, eq=False)
class _CopyModel:
    """A program with the columns of its copies.

    `column` is the column of y[j, o, q], shape (rounds, sites, objects); −1 where a copy saves
    nothing or has no room. `scale`: the program's units per unit of cost.
    """

    program: LinearProgram
    column: IntArray
    scale: float

    def values(self, values: FloatArray) -> FloatArray:
        """Return y of a solution, fractional ones too, shape (rounds, sites, objects)."""
        if not len(values):
            return np.zeros(self.column.shape)
        return np.where(self.column >= 0, values[self.column], 0.0)

    def copies(self, values: FloatArray) -> BoolArray:
        """Return the copies of a solution, shape (rounds, sites, objects)."""
        return np.asarray(self.values(values) > 0.5, dtype=bool)


def _reach(problem: ReplicationProblem) -> IntArray:
    """Return how many preferred sites are closer than any static copy, shape (sites, objects).

    They come first in the list of the client, since lists ascend in RTT.
    """
    result = np.zeros(problem.static.shape, dtype=np.intp)
    for site, row in enumerate(problem.geography.preferred):
        for j in row:
            result[site] += problem.geography.rtt[site, j] < problem.static_rtt[site]
    return result


def _worthwhile(problem: ReplicationProblem, within: IntArray) -> BoolArray:
    """Return whether a copy of o at j can save any read, and has room, shape (sites, objects)."""
    result = np.zeros(problem.static.shape, dtype=bool)
    for site, row in enumerate(problem.geography.preferred):
        for place, j in enumerate(row):
            result[j] |= (within[site] > place) & (problem.reads[site] > 0)
    return result & (problem.capacity > 0)[:, None]


def _model(problems: Sequence[ReplicationProblem], copying: float, before: BoolArray) -> _CopyModel:
    """Return the program; O(Σ_i |P_i|² · objects · rounds) non-zeros, steps of length 0 left out.

    The scale is such that the mean object costs 1, which suits the solver's tolerances.
    """
    builder, first = Builder(), problems[0]
    cost = base_cost(first)
    scale = first.objects / cost if cost > 0 else 1.0
    within = [_reach(problem) for problem in problems]
    # A copy may be kept through a round in which it saves nothing, for a later one.
    pairs = zip(problems, within, strict=True)
    useful = np.logical_or.reduce([_worthwhile(problem, near) for problem, near in pairs])
    column = np.full((len(problems), *useful.shape), -1, dtype=np.intp)
    for mine, problem, near in zip(column, problems, within, strict=True):
        _add_copies(problem, builder, mine, scale, useful)
        _add_savings(problem, builder, mine, scale, near)
    if copying > 0:
        for turn, later in enumerate(column):
            # A copy from before the first round is not created in it.
            wanted = useful if turn else useful & ~before
            created = builder.add_columns(np.full(int(wanted.sum()), copying * scale))
            rows = builder.add_rows(0.0, np.inf, len(created))
            builder.put(rows, created, 1.0)
            builder.put(rows, later[wanted], -1.0)
            if turn:
                builder.put(rows, column[turn - 1][wanted], 1.0)
    builder.offset = sum(base_cost(problem) for problem in problems) * scale
    return _CopyModel(builder.program(), column, scale)


def _add_copies(
    problem: ReplicationProblem, builder: Builder, column: IntArray, scale: float, useful: BoolArray
) -> None:
    """Add y[j, o] ∈ {0, 1} where `useful`, with the cost of writes, and Σ_o y[j, o] <= C_j."""
    column[useful] = builder.add_columns(problem.write_cost[useful] * scale, integer=True)
    for site, capacity in enumerate(problem.capacity.tolist()):
        mine = column[site][useful[site]]
        if len(mine) > capacity:  # a larger capacity cannot bind
            (row,) = builder.add_rows(-np.inf, capacity, 1)
            builder.put(np.full(len(mine), row), mine, 1.0)


def _add_savings(
    problem: ReplicationProblem, builder: Builder, column: IntArray, scale: float, within: IntArray
) -> None:
    """Add u[i, o, t] with its row for every step of positive length."""
    rtt = problem.geography.rtt
    for site, row in enumerate(problem.geography.preferred):
        for place, j in enumerate(row):
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


def relax(problem: ReplicationProblem) -> LpBound:
    """Solve the linear relaxation of one round."""
    return _relaxed(_model([problem], 0.0, problem.none))


def _relaxed(model: _CopyModel) -> LpBound:
    program = model.program
    if not len(program.cost):
        value = program.offset / model.scale
        return LpBound(value, value, model.values(program.cost)[0])
    relaxation = Relaxation(program)
    verdict = relaxation.solve()
    values, duals = relaxation.values, relaxation.duals
    if verdict is not Verdict.OPTIMAL or values is None or duals is None:
        raise SolverError(f"HiGHS ended an LP with {verdict.value!r}")
    bound = safe_bound(program, program.lower, program.upper, duals)
    value = program.objective(values) / model.scale
    return LpBound(value, bound / model.scale, model.values(values)[0])


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


@dataclass(frozen=True, eq=False)
class Schedule:
    """Copies of every round.

    Attributes
    ----------
    copies
        Shape (rounds, sites, objects).
    cost
        Sum over the rounds, copying included, by the evaluator.
    bound
        No schedule costs less.
    status
        "optimal" only when the bound is within a relative 1e-9 of the cost.
    notes
        What a reader of the result should know.
    """

    copies: BoolArray
    cost: float
    bound: float
    status: Status
    notes: tuple[str, ...]


def schedule_cost(
    problems: Sequence[ReplicationProblem], copies: BoolArray, copying: float, before: BoolArray
) -> float:
    """Cost of a schedule: every round by the evaluator, and `copying` for each copy created."""
    total, previous = 0.0, before
    for problem, now in zip(problems, copies, strict=True):
        total += evaluate(problem, now).cost + copying * int((now & ~previous).sum())
        previous = now
    return total


def solve_rounds(
    problems: Sequence[ReplicationProblem],
    copying: float = 0.0,
    *,
    before: BoolArray | None = None,
    time_limit: float = math.inf,
) -> Schedule:
    """Return the best schedule for the problems of successive rounds, with a proven bound.

    The bound is the safe bound of the relaxation; where that does not reach the cost, branch and
    bound on safe bounds closes the rest (:mod:`formulations.solvers.safe_bounds`). HiGHS's own
    bound is not used.

    Parameters
    ----------
    problems
        One per round; the same sites, static copies and capacities.
    copying
        Cost of creating one copy, >= 0, in the unit of the objective.
    before
        Dynamic copies before the first round; None: no copies.
    time_limit
        Seconds; the best schedule so far, with the bound so far, when they have passed, or at
        Ctrl-C.

    Raises
    ------
    InputError
        For no rounds, or rounds that do not fit together.
    SolverError
        When HiGHS's objective is not the evaluator's.
    """
    number(copying, "copying")
    _check(problems)
    start = problems[0].none if before is None else before
    deadline = time.perf_counter() + time_limit
    model = _model(problems, copying, start)
    copies = np.zeros(model.column.shape, dtype=bool)
    base = sum(base_cost(problem) for problem in problems)
    if not len(model.program.cost):
        return Schedule(copies, base, base, status_of(True, base, base), ())
    relaxed = _relaxed(model)
    outcome = run_highs(model.program, Guard(deadline=deadline))
    if outcome.verdict is Verdict.INFEASIBLE:
        raise SolverError("HiGHS calls a program infeasible that no copies at all satisfy")
    notes = [f"linear relaxation {relaxed.value:.9g}, safe bound {relaxed.bound:.9g}"]
    if outcome.values is None:
        notes.append("nothing found in time: no copies")
    else:
        copies = model.copies(outcome.values)
        found = schedule_cost(problems, copies, copying, start)
        check_objective(outcome, model.scale, found, base)
    cost = schedule_cost(problems, copies, copying, start)
    bound = max(relaxed.bound, 0.0)  # rounding down may have gone below 0, which no cost does
    target = cost * (1 - OPTIMALITY_TOLERANCE / 2)
    if outcome.verdict is Verdict.STOPPED:
        notes.append(f"stopped: {outcome.stop}")
    elif bound < target:

        def judge(values: FloatArray) -> bool:
            return schedule_cost(problems, model.copies(values), copying, start) >= target

        proof = prove_by_branching(model.program, target * model.scale, judge, deadline=deadline)
        bound = max(bound, proof.bound / model.scale * (1 - 1e-15))
        notes.append(f"proven on safe bounds, {proof.nodes} nodes, {proof.open} left open")
    bound = min(bound, cost)
    return Schedule(copies, cost, bound, status_of(True, cost, bound), tuple(notes))


def _check(problems: Sequence[ReplicationProblem]) -> None:
    if not problems:
        raise InputError("no rounds", field="problems", expected="at least one")
    first = problems[0]
    for turn, problem in enumerate(problems):
        if not (
            np.array_equal(problem.static, first.static)
            and np.array_equal(problem.capacity, first.capacity)
        ):
            raise InputError(
                "static copies or capacities differ from those of round 0",
                field=f"problems[{turn}]", expected="the same in all rounds",
            )  # fmt: skip


def solve_milp(problem: ReplicationProblem, *, time_limit: float = math.inf) -> ReplicationPlan:
    """Solve one round, and prove the answer; see :func:`solve_rounds`."""
    found = solve_rounds([problem], time_limit=time_limit)
    return ReplicationPlan.of(
        problem, found.copies[0], "milp", bound=found.bound, notes=found.notes
    )

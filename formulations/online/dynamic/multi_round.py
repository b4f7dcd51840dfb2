"""Copies over several rounds with known rates.

    y[j, o, q] ∈ {0, 1}  copy of o at j in round q, from the copies `before` on
    c[j, o, q] ∈ [0, 1]  >= y[j, o, q] − y[j, o, q−1]: it was created in round q

    min  Σ_q ( cost of y[·, ·, q] under the rates of round q ) + copying · Σ c[j, o, q]
    s.t. Σ_o y[j, o, q] <= C_j

with the costs of each round telescoped as in :mod:`formulations.online.dynamic.copy_programs`.
Without a price on copying the rounds fall apart. The bound is proven on safe bounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from formulations.online.dynamic.copy_programs import (
    CopyModel,
    add_copies,
    add_savings,
    add_waits,
    check_objective,
    unit,
    worthwhile,
)
from formulations.solvers.highs import Guard, Relaxation, run_highs
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.program_builder import Builder
from formulations.solvers.safe_bounds import prove_by_branching, safe_bound
from formulations.solvers.statuses import Verdict
from placement.errors import InputError
from placement.online.dynamic.replication_problem import ReplicationProblem, base_cost, evaluate
from placement.support.checks import BoolArray, FloatArray, IntArray, number
from placement.support.status import OPTIMALITY_TOLERANCE, Status, status_of

__all__ = ["Schedule", "schedule_cost", "solve_rounds"]


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
    """

    copies: BoolArray
    cost: float
    bound: float
    status: Status


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
    copying: float,
    *,
    before: BoolArray | None = None,
    time_limit: float = math.inf,
) -> Schedule:
    """Return the best schedule for the problems of successive rounds.

    Parameters
    ----------
    problems
        One per round; the same sites, static copies and capacities.
    copying
        Cost of creating one copy, >= 0, in the unit of the objective.
    before
        Dynamic copies before the first round; None: no copies.
    time_limit
        Seconds; the best schedule so far, with the bound so far, when they have passed.

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
    models, program = _build(problems, copying, start)
    scale = models[0].scale
    empty = np.stack([problem.none for problem in problems])
    base = sum(base_cost(problem) for problem in problems)
    if not len(program.cost):
        return Schedule(empty, base, base, status_of(True, base, base))
    relaxation = Relaxation(program)
    relaxation.solve()
    duals, bound = relaxation.duals, -math.inf
    if duals is not None:
        bound = safe_bound(program, program.lower, program.upper, duals) / scale
    outcome = run_highs(program, Guard(deadline=deadline))
    copies = empty
    if outcome.values is not None:
        copies = np.stack([model.copies(outcome.values) for model in models])
        found = schedule_cost(problems, copies, copying, start)
        check_objective(outcome, scale, found, base)
    cost = schedule_cost(problems, copies, copying, start)
    target = cost * (1 - OPTIMALITY_TOLERANCE / 2)
    if bound < target and outcome.verdict is not Verdict.STOPPED:

        def judge(values: FloatArray) -> bool:
            other = np.stack([model.copies(values) for model in models])
            return schedule_cost(problems, other, copying, start) >= target

        proof = prove_by_branching(program, target * scale, judge, deadline=deadline)
        bound = max(bound, proof.bound / scale * (1 - 1e-15))
    bound = min(max(bound, 0.0), cost)
    return Schedule(copies, cost, bound, status_of(True, cost, bound))


def _build(
    problems: Sequence[ReplicationProblem], copying: float, before: BoolArray
) -> tuple[list[CopyModel], LinearProgram]:
    builder = Builder()
    scale = unit(problems[0])
    # A copy may be kept through a round in which it saves nothing, for a later one.
    useful = np.logical_or.reduce([worthwhile(problem) for problem in problems])
    columns = []
    for problem in problems:
        column = add_copies(problem, builder, scale, useful)
        add_savings(problem, builder, column, scale)
        add_waits(problem, builder, column, scale)
        columns.append(column)
    if copying > 0:
        _add_creations(builder, columns, copying * scale, useful, before)
    builder.offset = sum(base_cost(problem) for problem in problems) * scale
    program = builder.program()
    return [CopyModel(program, column, scale) for column in columns], program


def _add_creations(
    builder: Builder,
    columns: Sequence[IntArray],
    price: float,
    useful: BoolArray,
    before: BoolArray,
) -> None:
    """Add c[j, o, q] with its price; a copy from before the first round is not created in it."""
    fresh = columns[0][useful & ~before]
    created = builder.add_columns(np.full(len(fresh), price))
    rows = builder.add_rows(0.0, np.inf, len(fresh))
    builder.put(rows, created, 1.0)
    builder.put(rows, fresh, -1.0)
    for earlier, later in pairwise(columns):
        created = builder.add_columns(np.full(int(useful.sum()), price))
        rows = builder.add_rows(0.0, np.inf, len(created))
        builder.put(rows, created, 1.0)
        builder.put(rows, later[useful], -1.0)
        builder.put(rows, earlier[useful], 1.0)


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
                field=f"problems[{turn}]",
                expected="the same in all rounds",
            )

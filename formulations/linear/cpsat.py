"""Measures by CP-SAT (part of the method ``cp-sat``): the same programs in whole numbers.

Every variable is a literal. Rows of small whole numbers become clauses where they are such, else
linear constraints. An expression Σ a y <= B becomes Σ ⌊a·s⌋ y <= ⌊B·s⌋: with y >= 0 no plan is cut
off, and what is minimised is at most its value. The scale s is so fine that rounding takes less
than a relative 1e-10; a plan that passes a limit by less is evaluated, and left out.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from formulations.linear.leader_program import Expression, LeaderProgram
from formulations.linear.leader_search import LeaderSearch, solve
from formulations.solvers.cpsat import new_solver, run_solver
from formulations.solvers.statuses import Verdict
from placement.methods.options import Options
from placement.plan import Plan
from placement.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

_FINE = 1e10
"""Units of the whole numbers in a threshold, for each term."""

_MOST = 2.0**53
"""Largest sum of coefficients: every bound is exact as a double."""


def solve_measures(problem: Problem, options: Options) -> Plan:
    """Answer a question of measures."""
    return solve(problem, options, "cp-sat", _bound)


def _bound(search: LeaderSearch, program: LeaderProgram, nodes: int | None) -> float:
    """Bound the plans of a program by CP-SAT."""
    del nodes
    model, scale, offset = _model(program)
    left = None if math.isinf(search.end) else search.end - time.perf_counter()
    solver = new_solver(seconds=left, seed=search.options.seed, threads=search.options.threads)
    answer = run_solver(solver, model, seconds=left)
    for name, more in (("conflicts", answer.conflicts), ("branches", answer.branches)):
        search.stats[name] = search.stats.get(name, 0) + more
    if answer.values is not None:
        found = program.configuration(answer.values)
        if search.judge(found):
            search.evaluated.append(found)
    if answer.interrupted:
        raise KeyboardInterrupt
    if answer.verdict is Verdict.INFEASIBLE:
        return math.inf
    if answer.verdict is Verdict.STOPPED:
        raise TimeoutError
    assert answer.bound is not None
    return (answer.bound + offset - 1) / scale


def _model(program: LeaderProgram) -> tuple[cp_model.CpModel, float, int]:
    """Return the model, the units of its objective, and the constant to add to it."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    literals = [model.new_bool_var(f"y{n}") for n in range(len(program.integer))]
    for low, high, terms in program.rows:
        signs = [(literals[column], round(one)) for column, one in terms.items()]
        clause = low == 1 - sum(one < 0 for _, one in signs) and high == math.inf
        if clause and all(abs(one) == 1 for _, one in signs):
            model.add_bool_or([y if one > 0 else ~y for y, one in signs])
            continue
        total = cp_model.LinearExpr.weighted_sum([y for y, _ in signs], [a for _, a in signs])
        if low == high:
            model.add(total == round(low))
            continue
        if low > -math.inf:
            model.add(total >= round(low))
        if high < math.inf:
            model.add(total <= round(high))

    def whole(part: Expression, scale: float) -> tuple[cp_model.LinearExpr, int]:
        columns = [literals[column] for column in part.terms]
        factors = [math.floor(one * scale) for one in part.terms.values()]
        constant = math.floor(part.constant * scale)
        return cp_model.LinearExpr.weighted_sum(columns, factors), constant

    for part, most in program.limits:
        scale = _scale([part], most)
        total, constant = whole(part, scale)
        model.add(total <= math.floor(most * scale) + 1 - constant)
    scale = _scale(program.objective, program.most)
    each = [whole(part, scale) for part in program.objective]
    top = math.floor(program.most * scale) + 1 if math.isfinite(program.most) else None
    if len(each) == 1:
        total, offset = each[0]
        if top is not None:
            model.add(total <= top - offset)
        model.minimize(total)
        return model, scale, offset
    if top is None:
        top = max(math.ceil(part.greatest() * scale) for part in program.objective) + 1
    largest = model.new_int_var(0, max(top, 0), "largest")
    for total, constant in each:
        model.add(largest >= total + constant)
    model.minimize(largest)
    return model, scale, 0


def _scale(parts: list[Expression], most: float) -> float:
    """Return the units of whole numbers for some expressions, by powers of ten."""
    size = max(sum(map(abs, part.terms.values())) + abs(part.constant) for part in parts)
    reference = most if math.isfinite(most) and most else size
    if not size or not reference:
        return 1.0
    terms = max(len(part.terms) for part in parts) + 1
    wanted = min(_FINE * terms / abs(reference), _MOST / max(size, abs(reference)))
    return float(10.0 ** math.floor(math.log10(wanted)))

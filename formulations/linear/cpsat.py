"""Method ``cp-sat``: the programs of the leaders in whole numbers, by CP-SAT.

Every variable is a literal. Rows of small whole numbers become clauses where they are such, else
linear constraints. An expression Σ a y <= B becomes Σ ⌊a·s⌋ y <= ⌊B·s⌋ + 1: with y >= 0 no plan is
cut off, and what is minimised is at most its value. The scale s is so fine that rounding takes less
than a relative 1e-10; a plan that passes a limit by less is evaluated, and left out.

A solver that denies a plan that is known, or states another value than the evaluator, is an error.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from formulations.linear.leader_program import Expression, LeaderProgram, beyond_rows
from formulations.linear.leader_search import LeaderSearch
from formulations.linear.leader_search import solve as search_leaders
from formulations.solvers.cpsat import new_solver, run_solver
from formulations.solvers.statuses import Verdict
from placement.errors import SolverError
from placement.evaluation.objective import score_of
from placement.methods.options import Options, Setting
from placement.methods.registry import Method
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.status import OPTIMALITY_TOLERANCE

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

_FINE = 1e13
"""Units of the whole numbers in a threshold, for each term."""

_MOST = 2.0**53
"""Largest sum of coefficients: every bound is exact as a double."""

_AGREEMENT = 1e-6
"""Largest relative difference between the value of CP-SAT and the evaluator's."""


def solve(problem: Problem, options: Options) -> Plan:
    """Prove the best configuration, one leader at a time."""
    return search_leaders(problem, options, METHOD.name, _bound)


def _bound(search: LeaderSearch, program: LeaderProgram, nodes: int | None) -> float:
    """Bound the plans of a program by CP-SAT."""
    del nodes
    case, options = program.case, search.options
    unit = search.functions(case.leader)[-1].scale
    known = search.best if search.best not in search.evaluated and case.heir is None else None
    holds_best = known is not None and known.leader in case.leaders
    # Where the best plan is in the program it is found again: that tests model and solver. Another
    # program without a plan of this value is not asked about ties.
    top = search.most(case.leader)
    model, scale, offset = _model(program, top, search.best)
    left = None if math.isinf(search.end) else search.end - time.perf_counter()
    gap = max(0.0, options.gap_limit - OPTIMALITY_TOLERANCE) * scale * unit
    gap *= max(0.0, (search.bounds or {}).get(case, 0.0))
    solver = new_solver(seconds=left, seed=options.seed, threads=options.threads, gap=gap)

    def proven(bound: int | None) -> float:
        return -math.inf if bound is None else (bound + offset - 1) / scale

    def listen(values: list[int] | None, bound: int | None) -> None:
        if values is not None:
            search.offer(program.configuration(values))
        search.report(case, proven(bound) / unit)

    answer = run_solver(solver, model, seconds=left, listen=listen)
    for name, more in (("conflicts", answer.conflicts), ("branches", answer.branches)):
        search.stats[name] = search.stats.get(name, 0) + more
    bound = proven(answer.bound)
    if answer.verdict is Verdict.INFEASIBLE:
        bound = top + max(1 / scale, 4e-16 * abs(top))
    if holds_best and bound > top:
        raise SolverError(f"CP-SAT finds no plan as good as the one known, {known}")
    if answer.values is not None:
        found = program.configuration(answer.values)
        if search.judge(found):
            search.evaluated.append(found)
            if answer.verdict is Verdict.OPTIMAL and answer.objective is not None:
                _compare(search, found, (answer.objective + offset) / scale / unit)
    if answer.interrupted:
        raise KeyboardInterrupt
    if answer.verdict is Verdict.STOPPED and bound < search.asked(case.leader):
        search.end = -math.inf  # the solver keeps the same clock
    return bound


def _compare(search: LeaderSearch, found: Configuration, claimed: float) -> None:
    """Raise SolverError unless the evaluator puts a plan at the value that CP-SAT claims.

    A program may lack some of several rows: then the claim is at most the value.
    """
    value = objective_value(search.problem, found)
    if math.isfinite(search.ties):
        value = score_of(search.problem, found)
    rows = sum(len(one.rows) for one in search.functions(found.leader))
    lacks = claimed < value and rows > 1
    if math.isfinite(value) and not (lacks or math.isclose(claimed, value, rel_tol=_AGREEMENT)):
        raise SolverError(f"CP-SAT puts {found} at {claimed!r}, the evaluator at {value!r}")


def _model(
    program: LeaderProgram, most: float, hint: Configuration | None
) -> tuple[cp_model.CpModel, float, int]:
    """Return the model, the units of its objective, and the constant to add to it."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    literals = [model.new_bool_var(f"y{n}") for n in range(len(program.integer))]
    if hint is not None:
        for column, value in program.values_at(hint).items():
            model.add_hint(literals[column], value)
    for low, high, terms in program.rows:
        turn = -1 if low == -math.inf else 1
        low, high = (low, high) if turn > 0 else (-high, math.inf)
        signs = [(literals[column], turn * round(one)) for column, one in terms.items()]
        clause = low == 1 - sum(one < 0 for _, one in signs) and high == math.inf
        if clause and all(abs(one) == 1 for _, one in signs):
            model.add_bool_or([y if one > 0 else ~y for y, one in signs])
            continue
        total = cp_model.LinearExpr.weighted_sum([y for y, _ in signs], [a for _, a in signs])
        if low == high:
            model.add(total == round(low))
            continue
        model.add(total >= round(low))
        if high < math.inf:
            model.add(total <= round(high))

    def whole(part: Expression, scale: float) -> tuple[cp_model.LinearExpr, int]:
        columns = [literals[column] for column in part.terms]
        factors = [math.floor(one * scale) for one in part.terms.values()]
        constant = math.floor(part.constant * scale)
        return cp_model.LinearExpr.weighted_sum(columns, factors), constant

    for part, allowed in program.limits:
        scale = _scale([part], allowed)
        total, constant = whole(part, scale)
        model.add(total <= math.floor(allowed * scale) + 1 - constant)
    scale = _scale(program.objective, most)
    each = [whole(part, scale) for part in program.objective]
    top = math.floor(most * scale) + 1 if math.isfinite(most) else None
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


METHOD = Method(
    name="cp-sat",
    call=solve,
    summary="one constraint-programming model per leader (OR-Tools CP-SAT), whole numbers only",
    exact=True,
    refuses=beyond_rows,
    objectives=("mean", "measures", "waits"),
    settings={
        "start": Setting("best-of", "method whose plan the search starts from ('none': any plan)")
    },
    complexity="exponential; O(C·|S|) literals per leader",
    reference="Sharov et al. 2015, section 5; Elloumi 2010 for the distance chains",
)

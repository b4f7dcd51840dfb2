"""Solving G1 and G2 with HiGHS; what is claimed rests on safe bounds and the evaluator."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations.online.dynamic.copy_model import CopyModel
from formulations.online.dynamic.telescoped_program import build_telescoped
from formulations.solvers.highs import Guard, HighsResult, Relaxation, run_highs
from formulations.solvers.safe_bounds import prove_by_branching, safe_bound
from formulations.solvers.statuses import Verdict
from placement.errors import SolverError
from placement.online.dynamic.evaluator import base_cost, evaluate
from placement.online.dynamic.plan import ReplicationPlan
from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import FloatArray
from placement.support.status import OPTIMALITY_TOLERANCE

__all__ = ["TOLERANCE", "LpBound", "check_objective", "relax", "solve_milp"]

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

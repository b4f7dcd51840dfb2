"""Covering questions answered by a solver: CP-SAT, and HiGHS as a second opinion.

CP-SAT has integer data throughout, so no tolerance is involved. HiGHS with presolve has called
feasible models of this family infeasible (a hull form with continuous y, several versions up to
1.15; see ERGO-Code/HiGHS #2432, #2585, #3090 for similar cases). An "infeasible" of HiGHS therefore
ends a step only if a run without presolve confirms it. A "feasible" counts only if the rounded
point passes the exact check of the model. Otherwise CP-SAT decides. Either event is kept in
`notes`.
"""

from __future__ import annotations

import math
import time
from typing import Any

from formulations.quorumstore.covering_model import CoveringModel, Reduced, reduce_model
from formulations.solvers.cpsat import solve_in_place
from formulations.solvers.highs import Guard, run_highs
from formulations.solvers.linear_program import compile_program
from formulations.solvers.statuses import StopReason, Verdict, cpsat_verdict

__all__ = ["CpSatCovering", "HighsCovering", "build"]


class CpSatCovering:
    """Answers covering questions with CP-SAT.

    Parameters
    ----------
    workers
        Threads; 1 is deterministic.
    seed
        Seed of the solver.
    """

    method = "cp-sat bisection"

    def __init__(self, workers: int = 1, seed: int = 0) -> None:
        self.workers = workers
        self.seed = seed
        self.notes: list[str] = []

    def __call__(self, model: CoveringModel, seconds: float = math.inf) -> tuple[int, ...] | None:
        """Return a replica set that answers `model`, or None: there is none.

        Raises
        ------
        TimeoutError
            When `seconds` pass without an answer.
        SolverError
            When CP-SAT fails.
        """
        reduced = reduce_model(model)
        if not reduced.possible:
            return None
        cp, x = self._build(model, reduced)
        return self._solve(cp, x, seconds)

    def _build(self, model: CoveringModel, reduced: Reduced) -> tuple[Any, list[Any]]:
        from ortools.sat.python import cp_model

        cp = cp_model.CpModel()
        x = [cp.new_bool_var(f"x{site}") for site in range(model.sites)]
        for site in set(range(model.sites)).difference(reduced.open):
            cp.add(x[site] == 0)
        for site in reduced.held:
            cp.add(x[site] == 1)
        cp.add(sum(x[site] for site in reduced.open) == model.replicas)
        for members, cap in model.caps:
            cp.add(sum(x[site] for site in members) <= cap)
        for site, other in reduced.ahead:
            cp.add_implication(x[site], x[other])
        for ball, least in reduced.required:
            cp.add(sum(x[site] for site in ball) >= least)
        y = [cp.new_bool_var(f"y{index}") for index in range(reduced.steps)]
        for ball, steps in reduced.ladders:
            inside = sum(x[site] for site in ball)
            last = None
            for step in steps:
                cp.add(inside >= step.quorum).only_enforce_if(y[step.index])
                if last is not None:
                    cp.add_implication(y[step.index], y[last])
                last = step.index
        for row in reduced.rows:
            met = cp.add(sum(count * y[index] for index, count in row.terms) >= row.needed)
            if row.lost is not None:
                met.only_enforce_if(x[row.lost])
        return cp, x

    def _solve(self, cp: Any, x: list[Any], seconds: float) -> tuple[int, ...] | None:
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self.workers
        solver.parameters.random_seed = self.seed
        if math.isfinite(seconds):
            solver.parameters.max_time_in_seconds = max(0.0, seconds)
        status = solve_in_place(solver, cp)
        verdict = cpsat_verdict(solver, status)
        if verdict is Verdict.INFEASIBLE:
            return None
        if verdict is Verdict.STOPPED and status != cp_model.FEASIBLE:
            raise TimeoutError("CP-SAT ran out of time")
        return tuple(site for site in range(len(x)) if solver.boolean_value(x[site]))


def build(model: CoveringModel, reduced: Reduced) -> Any:
    """Return the Pyomo model of a reduced question: binary x and y, compact rows.

    Nothing is minimised. Sites that are closed keep their column, at most 0.
    """
    import pyomo.environ as pyo

    mip = pyo.ConcreteModel(name="covering")
    mip.x = pyo.Var(range(model.sites), domain=pyo.Binary, doc="replica at site")
    mip.y = pyo.Var(range(reduced.steps), domain=pyo.Binary, doc="quorum within the ball")
    for site in set(range(model.sites)).difference(reduced.open):
        mip.x[site].setub(0)
    for site in reduced.held:
        mip.x[site].setlb(1)
    mip.cardinality = pyo.Constraint(
        expr=pyo.quicksum(mip.x[j] for j in reduced.open) == model.replicas
    )
    mip.quorum = pyo.ConstraintList(doc="Σ_{j ∈ ball} x_j >= Σ (quorum − the one before) · y")
    for ball, least in reduced.required:
        mip.quorum.add(pyo.quicksum(mip.x[j] for j in ball) >= least)
    for ball, steps in reduced.ladders:
        left = pyo.quicksum(mip.x[j] for j in ball)
        before, last = 0, None
        for step in steps:
            left -= (step.quorum - before) * mip.y[step.index]
            if last is not None:
                mip.quorum.add(mip.y[step.index] <= mip.y[last])
            before, last = step.quorum, step.index
        mip.quorum.add(left >= 0)
    mip.percentile = pyo.ConstraintList(doc="Σ count · y >= needed, if a replica is at `lost`")
    for row in reduced.rows:
        # Dividing by the total keeps the rows of busy keys within the solver's tolerances.
        total = sum(count for _, count in row.terms)
        left = pyo.quicksum(count / total * mip.y[index] for index, count in row.terms)
        # Half a request less than needed: sums are whole, and rounding must not cut any off.
        needed = (row.needed - 0.5) / total
        mip.percentile.add(left >= needed * (1 if row.lost is None else mip.x[row.lost]))
    mip.ahead = pyo.ConstraintList(doc="a replica that another site would hold as well is there")
    for site, other in reduced.ahead:
        mip.ahead.add(mip.x[site] <= mip.x[other])
    mip.caps = pyo.ConstraintList(doc="regional rules")
    for members, cap in model.caps:
        mip.caps.add(pyo.quicksum(mip.x[j] for j in members) <= cap)
    mip.nothing = pyo.Objective(expr=0.0)
    return mip


class HighsCovering:
    """Answers covering questions with HiGHS.

    Parameters
    ----------
    presolve
        Whether HiGHS presolves; the confirmation never does.
    """

    method = "milp bisection"

    def __init__(self, presolve: bool = True) -> None:
        self.presolve = presolve
        self.notes: list[str] = []

    def __call__(self, model: CoveringModel, seconds: float = math.inf) -> tuple[int, ...] | None:
        """Return a replica set that answers `model`, or None: there is none.

        Raises
        ------
        TimeoutError
            When `seconds` pass without an answer.
        SolverError
            When HiGHS fails.
        """
        start = time.perf_counter()
        reduced = reduce_model(model)
        if not reduced.possible:
            return None
        mip = build(model, reduced)
        for presolve in (True, False) if self.presolve else (False,):
            left = seconds - (time.perf_counter() - start)
            found = self._ask(mip, model, presolve, left)
            if found is not None:
                if not presolve and self.presolve:
                    self.notes.append("HiGHS with presolve called a feasible model infeasible")
                if model.holds(found):
                    return found
                self.notes.append("a point of HiGHS failed the exact check; CP-SAT decided")
                return CpSatCovering()(model, left)
        return None

    def _ask(
        self, mip: Any, model: CoveringModel, presolve: bool, seconds: float
    ) -> tuple[int, ...] | None:
        """Return the sites of a point, or None: infeasible, by the word of this one run."""
        if seconds <= 0:
            raise TimeoutError("no time left for HiGHS")
        program = compile_program(mip)
        result = run_highs(program, Guard(time.perf_counter() + seconds), presolve=presolve)
        if result.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if result.verdict is Verdict.INFEASIBLE:
            return None
        if result.verdict is Verdict.STOPPED or result.values is None:
            raise TimeoutError("HiGHS ran out of time")
        for variable, value in zip(program.columns, result.values.tolist(), strict=True):
            variable.set_value(value, skip_validation=True)
        return tuple(j for j in range(model.sites) if mip.x[j].value > 0.5)

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

import numpy as np
import numpy.typing as npt

from formulations.quorumstore.covering_model import CoveringModel
from formulations.solvers.cpsat import solve_in_place
from formulations.solvers.highs import Guard, run_highs
from formulations.solvers.linear_program import Builder, LinearProgram
from formulations.solvers.statuses import StopReason, Verdict, cpsat_verdict
from placement.support.checks import IntArray


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
        cp, x = self._build(model)
        return self._solve(cp, x, seconds)

    @staticmethod
    def _build(model: CoveringModel) -> tuple[Any, list[Any]]:
        from ortools.sat.python import cp_model

        cp = cp_model.CpModel()
        x = [cp.new_bool_var(f"x{site}") for site in range(model.sites)]
        y = [cp.new_bool_var(f"y{index}") for index in range(len(model.covers))]
        cp.add(sum(x) == model.replicas)
        for members, cap in model.caps:
            cp.add(sum(x[site] for site in members) <= cap)
        for cover, within in zip(model.covers, y, strict=True):
            inside = sum(x[site] for site in cover.ball)
            cp.add(inside >= cover.quorum).only_enforce_if(within)
        for demand in model.demands:
            met = cp.add(sum(count * y[index] for index, count in demand.terms) >= demand.needed)
            if demand.lost is not None:
                met.only_enforce_if(x[demand.lost])
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


def build(model: CoveringModel) -> LinearProgram:
    """Return the integer program of a question: binary x for sites, then y for covers.

    Nothing is minimised.
    """
    builder = Builder()
    x = builder.add_columns(np.zeros(model.sites), integer=True)
    y = builder.add_columns(np.zeros(len(model.covers)), integer=True)

    def row(least: float, most: float, *terms: tuple[IntArray, npt.ArrayLike]) -> None:
        (place,) = builder.add_rows(least, most, 1)
        for columns, values in terms:
            builder.put(np.full(len(columns), place), columns, values)

    row(model.replicas, model.replicas, (x, 1.0))
    for members, cap in model.caps:
        row(-np.inf, cap, (x[list(members)], 1.0))
    for index, cover in enumerate(model.covers):
        row(0.0, np.inf, (x[list(cover.ball)], 1.0), (y[[index]], -float(cover.quorum)))
    for demand in model.demands:
        # Dividing by the total keeps the rows of busy keys within the solver's tolerances. Half a
        # request less than needed: sums are whole, and rounding must not cut any off.
        total = sum(count for _, count in demand.terms) or 1
        needed = (demand.needed - 0.5) / total
        terms = [(y[[index]], count / total) for index, count in demand.terms]
        if demand.lost is None:
            row(needed, np.inf, *terms)
        else:
            row(0.0, np.inf, *terms, (x[[demand.lost]], -needed))
    return builder.program()


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
        program = build(model)
        for presolve in (True, False) if self.presolve else (False,):
            left = seconds - (time.perf_counter() - start)
            found = self._ask(program, model, presolve, left)
            if found is not None:
                if not presolve and self.presolve:
                    self.notes.append("HiGHS with presolve called a feasible model infeasible")
                if model.holds(found):
                    return found
                self.notes.append("a point of HiGHS failed the exact check; CP-SAT decided")
                return CpSatCovering()(model, left)
        return None

    def _ask(
        self, program: LinearProgram, model: CoveringModel, presolve: bool, seconds: float
    ) -> tuple[int, ...] | None:
        """Return the sites of a point, or None: infeasible, by the word of this one run."""
        if seconds <= 0:
            raise TimeoutError("no time left for HiGHS")
        result = run_highs(program, Guard(time.perf_counter() + seconds), presolve=presolve)
        if result.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if result.verdict is Verdict.INFEASIBLE:
            return None
        if result.verdict is Verdict.STOPPED or result.values is None:
            raise TimeoutError("HiGHS ran out of time")
        return tuple(np.flatnonzero(result.values[: model.sites] > 0.5).tolist())

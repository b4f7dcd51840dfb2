"""The covering model as a MILP: Pyomo and HiGHS, with every "infeasible" confirmed.

HiGHS with presolve has called feasible models of this family infeasible (a hull form with
continuous y, several versions up to 1.15; see ERGO-Code/HiGHS #2432, #2585, #3090 for similar
cases). An "infeasible" therefore ends a step only if a run without presolve confirms it. A
"feasible" counts only if the rounded point passes the exact check of the model. Otherwise CP-SAT,
which works on integers, decides. Either event is kept in `notes`.
"""

from __future__ import annotations

import math
import time
from typing import Any

from formulations.quorumstore.covering.cpsat import CpSatCovering
from formulations.quorumstore.covering.model import Bill, CoveringModel
from formulations.quorumstore.covering.reduction import Reduced, reduce_model
from formulations.solvers.highs import Guard, run_highs
from formulations.solvers.linear_program import compile_program
from formulations.solvers.statuses import StopReason, Verdict
from placement.errors import SolverError

__all__ = ["HighsCovering", "build", "run_model"]


def build(model: CoveringModel, reduced: Reduced, *, cheapest: bool = False) -> Any:
    """Return the Pyomo model of a reduced question: binary x and y, compact rows.

    Nothing is minimised, unless `cheapest` asks for the bill in place of the budget. Sites that are
    closed keep their column, at most 0.
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
    mip.excluded = pyo.ConstraintList(doc="sets that are no answer")
    for sites in model.excluded:
        mip.excluded.add(pyo.quicksum(mip.x[j] for j in sites) <= len(sites) - 1)
    mip.nothing = pyo.Objective(expr=0.0)
    if model.bill is not None and (cheapest or math.isfinite(model.budget)):
        largest = max(
            1e-300,
            *map(abs, model.bill.fixed),
            *(abs(price) for one in model.bill.routed for price in one.prices),
        )
        cost = _bill(mip, model.bill, largest)
        if cheapest:
            mip.nothing.deactivate()
            mip.cheapest = pyo.Objective(expr=cost)
        else:
            # Wider than the solver's tolerance: the evaluator has the last word on the budget.
            mip.budget = pyo.Constraint(expr=cost <= model.budget / largest * (1 + 1e-9) + 1e-9)
    return mip


def _bill(mip: Any, bill: Bill, unit: float) -> Any:
    """Return the bill in `unit`: u falls from 1 to 0 along each order, q = x ∧ u."""
    import pyomo.environ as pyo

    routes = range(len(bill.routed))
    mip.u = pyo.Var(routes, mip.x.index_set(), domain=pyo.Binary, doc="position looked at")
    mip.q = pyo.Var(routes, mip.x.index_set(), bounds=(0, 1), doc="its replica answers")
    mip.routing = pyo.ConstraintList(doc="the nearest answer")
    cost = pyo.quicksum(price / unit * mip.x[site] for site, price in enumerate(bill.fixed))
    for r, one in enumerate(bill.routed):
        for k, site in enumerate(one.order):
            mip.routing.add(mip.q[r, k] <= mip.u[r, k])
            mip.routing.add(mip.q[r, k] <= mip.x[site])
            mip.routing.add(mip.q[r, k] >= mip.x[site] + mip.u[r, k] - 1)
            if k:
                mip.routing.add(mip.u[r, k] <= mip.u[r, k - 1])
        mip.routing.add(pyo.quicksum(mip.q[r, k] for k in range(len(one.order))) == one.quorum)
        cost += pyo.quicksum(price / unit * mip.q[r, k] for k, price in enumerate(one.prices))
    return cost


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

    def cheapest(
        self, model: CoveringModel, seconds: float = math.inf
    ) -> tuple[tuple[int, ...] | None, float]:
        """Return the cheapest replica set that answers `model`, and a lower bound of its cost.

        HiGHS minimises with tolerances; CP-SAT, on whole numbers, confirms what it claims and gives
        the bound. (None, ∞) when nothing answers the model.

        Raises
        ------
        TimeoutError
            When `seconds` pass without an answer.
        SolverError
            When HiGHS fails, or the two disagree by more than 1e-6.
        """
        start = time.perf_counter()
        reduced = reduce_model(model)
        if not reduced.possible or model.bill is None:
            return None, math.inf
        mip = build(model, reduced, cheapest=True)
        found = None
        for presolve in (True, False) if self.presolve else (False,):
            found = self._ask(mip, model, presolve, seconds - (time.perf_counter() - start))
            if found is not None:
                break
        confirmed, bound = CpSatCovering().cheapest(model, seconds - (time.perf_counter() - start))
        if (found is None) is not (confirmed is None):
            self.notes.append("HiGHS and CP-SAT disagreed on feasibility; CP-SAT decided")
            return confirmed, bound
        if found is None or not model.holds(found):
            return confirmed, bound
        claimed = model.bill.of(found)
        if abs(claimed - bound) > 1e-6 * max(1.0, abs(bound)):
            raise SolverError(f"HiGHS finds {claimed} the least cost, CP-SAT {bound}")
        return found, bound

    def _ask(
        self, mip: Any, model: CoveringModel, presolve: bool, seconds: float
    ) -> tuple[int, ...] | None:
        if run_model(mip, seconds, presolve=presolve) is None:
            return None
        return tuple(j for j in range(model.sites) if mip.x[j].value > 0.5)


def run_model(mip: Any, seconds: float, *, presolve: bool) -> float | None:
    """Solve a Pyomo model with HiGHS and load the solution into its variables.

    Returns
    -------
    float or None
        The proven lower bound on the objective; None: infeasible, by the word of this one run.

    Raises
    ------
    TimeoutError
        When `seconds` pass without an answer.
    SolverError
        When HiGHS fails.
    """
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
    return result.bound

"""Solving to a proof or not at all, for analyses that need many proven optima."""

from __future__ import annotations

from placement.errors import SolverError
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Status

__all__ = ["prove"]


def prove(problem: Problem, method: str = "exact") -> Plan:
    """Return the proven optimum of a problem, or the proof that there is no plan.

    Raises
    ------
    SolverError
        When the method stops short of a proof.
    """
    exact = load_method(method)
    settings = {"certificate": False} if "certificate" in exact.settings else {}
    plan = run(exact, problem, Options(settings=settings))
    if plan.status not in (Status.OPTIMAL, Status.INFEASIBLE):
        raise SolverError(
            f"{method!r} should prove a problem, but returned the status {plan.status}"
        )
    return plan

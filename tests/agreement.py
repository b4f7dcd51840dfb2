"""A method and enumeration answer alike."""

import math

from placement import Problem, solve
from placement.plan import Plan


def like_enumeration(problem: Problem, method: str = "exact", **options: object) -> Plan:
    """Return the answer of a method: a proven one, with the value and the status of enumeration."""
    plan = solve(problem, method, **options)  # type: ignore[arg-type]
    truth = solve(problem, "exhaustive", settings={"limit": 10**9})
    assert plan.status is truth.status
    assert math.isclose(plan.objective, truth.objective, rel_tol=1e-9)
    return plan

"""What is known about an answer, and why the search for a better one stopped."""

from __future__ import annotations

import math
from enum import StrEnum

__all__ = ["OPTIMALITY_TOLERANCE", "Status", "Termination", "relative_gap", "status_of"]

OPTIMALITY_TOLERANCE = 1e-9
"""Largest relative gap between value and proven bound that is called optimal."""


class Status(StrEnum):
    """What is known about a plan."""

    OPTIMAL = "optimal"
    """The bound proves, to a relative 1e-9, that nothing is better."""
    FEASIBLE = "feasible"
    """A plan that obeys all constraints; the gap says how much better one could be."""
    INFEASIBLE = "infeasible"
    """Proven: no configuration obeys all constraints."""
    UNKNOWN = "unknown"
    """Nothing was found and nothing proven before the search was stopped."""
    VIOLATING = "violating"
    """A configuration that was only evaluated, and that breaks constraints of the problem."""


class Termination(StrEnum):
    """Why a method stopped."""

    FINISHED = "finished"
    TIME_LIMIT = "time limit"
    GAP_LIMIT = "gap limit"
    WORK_LIMIT = "work limit"
    INTERRUPTED = "interrupted"


def relative_gap(value: float, bound: float) -> float:
    """(value − bound)/value, at least 0; 0 when both are 0, infinite when either is unknown.

    Examples
    --------
    >>> relative_gap(200.0, 190.0)
    0.05
    """
    if value == bound:
        return 0.0
    if math.isinf(value) or bound == -math.inf:
        return math.inf
    difference = max(0.0, value - bound)
    return difference / abs(value) if value else (0.0 if difference == 0 else math.inf)


def status_of(found: bool, value: float, bound: float) -> Status:
    """Turn a value and its bound into a status: the one place where "optimal" is said."""
    if not found:
        return Status.INFEASIBLE if bound == float("inf") else Status.UNKNOWN
    proven = relative_gap(value, bound) <= OPTIMALITY_TOLERANCE
    return Status.OPTIMAL if proven else Status.FEASIBLE

"""Statuses of all solvers in the words of this project, one table for each solver.

A status that is in no table is an error, never a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from placement.errors import SolverError
from placement.support.status import Termination


class Verdict(StrEnum):
    """Reason why a run ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    STOPPED = "stopped"


class StopReason(StrEnum):
    """Reason why a run was stopped."""

    TIME = "time limit"
    GAP = "gap limit"
    INTERRUPTED = "interrupted"
    ENOUGH = "bound high enough"
    NODES = "node limit"


_HIGHS: Mapping[str, Verdict] = {
    "kOptimal": Verdict.OPTIMAL,
    "kInfeasible": Verdict.INFEASIBLE,
    "kTimeLimit": Verdict.STOPPED,
    "kSolutionLimit": Verdict.STOPPED,  # of nodes too
    "kInterrupt": Verdict.STOPPED,
}

_CP_SAT: Mapping[str, Verdict] = {
    "OPTIMAL": Verdict.OPTIMAL,
    "INFEASIBLE": Verdict.INFEASIBLE,
    "FEASIBLE": Verdict.STOPPED,
    "UNKNOWN": Verdict.STOPPED,
}

TERMINATIONS: Mapping[StopReason, Termination] = {
    StopReason.TIME: Termination.TIME_LIMIT,
    StopReason.GAP: Termination.GAP_LIMIT,
    StopReason.INTERRUPTED: Termination.INTERRUPTED,
}
"""Why a method stopped when its solver stopped for a reason; ENOUGH and NODES end no method."""


def highs_verdict(solver: Any) -> Verdict:
    """Return how a run of HiGHS ended; SolverError for a status that is in no table."""
    status = solver.getModelStatus()
    verdict = _HIGHS.get(status.name)
    if verdict is None:
        raise SolverError(
            f"HiGHS stopped with the status {solver.modelStatusToString(status)!r}, for which it "
            "had no reason"
        )
    return verdict


def cpsat_verdict(solver: Any, status: object) -> Verdict:
    """Return how a run of CP-SAT ended; SolverError for a status in no table: an invalid model."""
    name = str(solver.status_name(status))
    verdict = _CP_SAT.get(name)
    if verdict is None:
        raise SolverError(f"the model is invalid (status {name!r} of CP-SAT)")
    return verdict

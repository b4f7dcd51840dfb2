"""End of a search on a program: the tree closed again on safe bounds, read in configurations."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from formulations.milp.program_model import PlacementProgram
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.safe_bounds import prove_by_branching
from placement.feasibility.feasible_plans import violations
from placement.model.configuration import Configuration
from placement.plan import objective_value
from placement.problem import Problem
from placement.support.checks import FloatArray
from placement.support.status import OPTIMALITY_TOLERANCE, Termination

__all__ = ["ClosedTree", "close_tree"]


@dataclass(frozen=True, slots=True)
class ClosedTree:
    """Bound and work of a tree that was closed on safe bounds.

    Attributes
    ----------
    bound
        Safe lower bound of the problem's objective; what is in `better` is excepted.
    better
        Configurations found below the value that was to be proven.
    nodes
        LPs solved.
    termination
        Why the proof is not complete; None when it is, or when something better was found.
    """

    bound: float
    better: tuple[Configuration, ...]
    nodes: int
    termination: Termination | None


def close_tree(
    problem: Problem,
    milp: PlacementProgram,
    program: LinearProgram,
    value: float,
    *,
    deadline: float,
    report: Callable[[float], None],
    most: int | None = None,
) -> ClosedTree:
    """Prove that no configuration is better than `value`, or find one that is.

    Parameters
    ----------
    problem
        The question; its evaluator judges what the tree ends in.
    milp, program
        The model and its matrix. A relaxation of the problem will do.
    value
        Objective of the best known configuration.
    deadline
        ``time.perf_counter()`` at which to stop.
    report
        Called with bounds in units of the problem.
    most
        LPs after which to stop; None: no such limit.
    """
    target = value * (1 - OPTIMALITY_TOLERANCE / 2)
    better: list[Configuration] = []

    def judge(values: FloatArray) -> bool:
        configuration = milp.configuration(program, values)
        if violations(problem, configuration):
            return True
        if objective_value(problem, configuration) >= target:
            return True
        better.append(configuration)
        return False

    proof = prove_by_branching(
        program,
        target * milp.scale,
        judge,
        deadline=deadline,
        most=most,
        report=lambda bound: report(bound / milp.scale),
    )
    termination = None
    if proof.interrupted:
        termination = Termination.INTERRUPTED
    elif proof.open and not better:
        late = time.perf_counter() >= deadline
        termination = Termination.TIME_LIMIT if late else Termination.WORK_LIMIT
    bound = proof.bound / milp.scale * (1 - 1e-15)
    return ClosedTree(bound, tuple(better), proof.nodes, termination)

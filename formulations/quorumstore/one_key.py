"""Entry point for a single key: choose a method, solve, explain."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import Enum
from math import comb

from formulations.quorumstore import tuning
from formulations.quorumstore.covering.cpsat import CpSatCovering
from formulations.quorumstore.covering.milp import HighsCovering
from formulations.quorumstore.covering.one_shot_milp import solve_assignment, solve_radius
from formulations.quorumstore.covering.threshold_bisection import solve as bisect
from formulations.quorumstore.enumeration.compiled_search import compiled_available
from formulations.quorumstore.enumeration.enumeration import solve as enumerate_sets
from formulations.quorumstore.refutation_writer import refutation_tree
from formulations.quorumstore.unreachable_bounds import bound_reasons
from placement.quorumstore import LossScope, QuorumPlan, QuorumProblem
from placement.support.status import Status

__all__ = ["QuorumMethod", "place"]


class QuorumMethod(Enum):
    """Names of the methods that solve a key; all are exact.

    - ``AUTO``: enumeration up to two million replica sets, else CP-SAT.
      Under contingency for more than the loss of one site every set counts once per loss where each
      is put to the evaluator: without the compiled kernel, and for weighted goals and costs.
    - ``ENUMERATION``: all replica sets, screened; the full tie rule.
    - ``CP_SAT``, ``MILP``: bisection over thresholds with covering models.
    - ``ASSIGNMENT``, ``RADIUS``: one-shot MILPs, cross-checks for small instances.
    """

    AUTO = "auto"
    ENUMERATION = "enumeration"
    CP_SAT = "cp-sat"
    MILP = "milp"
    ASSIGNMENT = "assignment"
    RADIUS = "radius"


def place(
    problem: QuorumProblem,
    method: QuorumMethod = QuorumMethod.AUTO,
    *,
    time_limit: float = math.inf,
    certificate: bool = True,
) -> QuorumPlan:
    """Return the proven best configuration of a key, or the reasons why there is none.

    Parameters
    ----------
    problem
        The key.
    method
        See :class:`QuorumMethod`.
    time_limit
        Seconds, for the solvers; enumeration takes its time.
    certificate
        Whether a proven plan carries its certificate
        (:func:`formulations.quorumstore.refutation_writer.refutation_tree`): some tenths of a
        second for 30 sites. Very large questions have none.

    Raises
    ------
    UnsupportedError
        When the method does not take the goal; the message names one that does.
    LimitError
        When the instance is too large for the method.

    Examples
    --------
    >>> rtt = [[1, 20, 90, 60], [20, 1, 80, 50], [90, 80, 1, 40], [60, 50, 40, 1]]
    >>> plan = place(QuorumProblem(rtt, [5, 3, 1, 1], [1, 0, 0, 0], sites=["a", "b", "c", "d"]))
    >>> plan.replicas, plan.read_quorum, plan.write_quorum, plan.value
    (('a', 'b', 'c'), 2, 2, 50.0)
    """
    chosen = _automatic(problem) if method is QuorumMethod.AUTO else method
    plan = _solve(problem, chosen, time_limit)
    if plan.status is Status.INFEASIBLE and not plan.reasons:
        reasons = bound_reasons(problem, lambda other: _solve(other, chosen, time_limit))
        plan = replace(plan, reasons=reasons)
    if certificate and plan.status in (Status.OPTIMAL, Status.INFEASIBLE):
        tree = refutation_tree(problem, plan.bound)
        return replace(plan, certificate=tree)
    return plan


def _automatic(problem: QuorumProblem) -> QuorumMethod:
    sets = sum(comb(len(problem.sites), size) for size in {total for total, _, _ in problem.pairs})
    rules, goal = problem.rules, problem.goal
    evaluated = not (compiled_available() and goal.monotone(rules.contingency)) or math.isfinite(
        goal.cost_bound
    )
    if evaluated and rules.contingency and (rules.failures > 1 or rules.loss is LossScope.REGION):
        sets *= max(1, len(problem.losses))
    return QuorumMethod.ENUMERATION if sets <= tuning.ENUMERABLE_SETS else QuorumMethod.CP_SAT


def _solve(problem: QuorumProblem, method: QuorumMethod, time_limit: float) -> QuorumPlan:
    if method is QuorumMethod.CP_SAT:
        return bisect(problem, CpSatCovering(), time_limit=time_limit)
    if method is QuorumMethod.MILP:
        return bisect(problem, HighsCovering(), time_limit=time_limit)
    if method is QuorumMethod.ASSIGNMENT:
        return solve_assignment(problem, time_limit=time_limit)
    if method is QuorumMethod.RADIUS:
        return solve_radius(problem, time_limit=time_limit)
    return enumerate_sets(problem)

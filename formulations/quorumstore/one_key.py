"""Entry point for a single key: choose a method, solve, explain."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from enum import StrEnum
from math import comb

from formulations.quorumstore.covering_model import CpSatCovering, HighsCovering
from formulations.quorumstore.enumeration import compiled_available
from formulations.quorumstore.enumeration import solve as enumerate_sets
from formulations.quorumstore.threshold_bisection import solve as bisect
from placement.errors import InputError
from placement.quorumstore import Goal, LossScope, QuorumPlan, QuorumProblem, Target
from placement.quorumstore.refutation_tree import refutation_tree
from placement.support.status import Status
from placement.support.status import time_limit as timed

_ENUMERABLE = 2_000_000
"""Replica sets up to which enumeration is the automatic choice: a few seconds for one key."""


class QuorumMethod(StrEnum):
    """Names of the methods that solve a key; all are exact.

    - ``AUTO``: enumeration up to two million replica sets. CP-SAT beyond, and where the compiled
      search was not built. Under contingency for more than the loss of one site every set of a
      weighted goal counts once per loss, because each is put to the evaluator.
    - ``ENUMERATION``: all replica sets, screened; the full tie rule.
    - ``CP_SAT``, ``MILP``: bisection over thresholds with covering models.
    """

    AUTO = "auto"
    ENUMERATION = "enumeration"
    CP_SAT = "cp-sat"
    MILP = "milp"


def place(
    problem: QuorumProblem,
    method: QuorumMethod | str = QuorumMethod.AUTO,
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
        Seconds, for the solvers and the certificate; enumeration takes its time.
    certificate
        Whether a proven plan carries its certificate
        (:func:`placement.quorumstore.refutation_tree.refutation_tree`): some tenths of a
        second for 30 sites. Very large questions have none.

    Raises
    ------
    InputError
        For an unknown method.
    UnsupportedError
        When the method does not take the goal, or was not built; the message names one that does.

    Examples
    --------
    >>> rtt = [[1, 20, 90, 60], [20, 1, 80, 50], [90, 80, 1, 40], [60, 50, 40, 1]]
    >>> plan = place(QuorumProblem(rtt, [5, 3, 1, 1], [1, 0, 0, 0], sites=["a", "b", "c", "d"]))
    >>> plan.replicas, plan.read_quorum, plan.write_quorum, plan.value
    (('a', 'b', 'c'), 2, 2, 50.0)
    """
    if method not in list(QuorumMethod):
        raise InputError(
            "unknown method",
            field="method",
            value=method,
            expected="one of " + ", ".join(QuorumMethod),
        )
    chosen, began = QuorumMethod(method), time.perf_counter()
    if chosen is QuorumMethod.AUTO:
        chosen = _automatic(problem)
    plan = _solve(problem, chosen, time_limit)
    if plan.status is Status.INFEASIBLE and not plan.reasons:
        reasons = bound_reasons(problem, lambda other: _solve(other, chosen, time_limit))
        plan = replace(plan, reasons=reasons)
    if certificate and plan.status in (Status.OPTIMAL, Status.INFEASIBLE):
        with suppress(TimeoutError), timed(time_limit - (time.perf_counter() - began)):
            return replace(plan, certificate=refutation_tree(problem, plan.bound))
    return plan


def _automatic(problem: QuorumProblem) -> QuorumMethod:
    if not compiled_available():
        return QuorumMethod.CP_SAT
    sets = sum(comb(len(problem.sites), size) for size in {total for total, _, _ in problem.pairs})
    rules = problem.rules
    several = rules.failures > 1 or rules.loss is LossScope.REGION
    if rules.contingency and several and not problem.goal.monotone(rules.contingency):
        sets *= max(1, problem.loss_count)
    return QuorumMethod.ENUMERATION if sets <= _ENUMERABLE else QuorumMethod.CP_SAT


def _solve(problem: QuorumProblem, method: QuorumMethod, time_limit: float) -> QuorumPlan:
    if method is QuorumMethod.CP_SAT:
        return bisect(problem, CpSatCovering(), time_limit=time_limit)
    if method is QuorumMethod.MILP:
        return bisect(problem, HighsCovering(), time_limit=time_limit)
    return enumerate_sets(problem)


Method = Callable[[QuorumProblem], QuorumPlan]


def bound_reasons(problem: QuorumProblem, method: Method) -> tuple[str, ...]:
    """Return the sentences that show why a problem has no configuration because of its bounds.

    Its rules do not contradict each other. `method` proves optima. Each bound is tried separately.
    If each can be met alone, the best value of one under the other bounds is given.
    """
    goal = problem.goal
    bounds = [
        (Target.READS, "reads", goal.read_bound),
        (Target.WRITES, "writes", goal.write_bound),
    ]
    given = [entry for entry in bounds if math.isfinite(entry[2])]
    free = Goal()
    found = []
    for target, word, bound in given:
        reach = method(problem.with_goal(_judged(free, target)))
        if reach.status is Status.OPTIMAL and reach.value > bound:
            found.append(
                f"the bound on {word} is {bound:g} ms, but the least any replica set reaches "
                f"is {reach.value:g} ms{_scope(problem, target)}: {_who(reach)}"
            )
    if found:
        return tuple(found)
    for target, word, bound in given:
        others = _judged(_without(goal, target), target)
        reach = method(problem.with_goal(others))
        rest = " and ".join(
            f"{name} within {limit:g} ms" for kind, name, limit in given if kind is not target
        )
        if reach.status is Status.OPTIMAL:
            found.append(
                f"the bounds exclude each other: with {rest}, the least {word} reach is "
                f"{reach.value:g} ms, above {bound:g}: {_who(reach)}"
            )
        else:
            found.append(f"the bounds exclude each other even without the one on {word}")
    return tuple(found)


def _judged(goal: Goal, target: Target) -> Goal:
    """Minimise the value that the bound applies to."""
    return replace(goal, target=target, normal_weight=0.0, worst_weight=1.0)


def _without(goal: Goal, target: Target) -> Goal:
    if target is Target.READS:
        return replace(goal, read_bound=math.inf)
    return replace(goal, write_bound=math.inf)


def _scope(problem: QuorumProblem, target: Target) -> str:
    share = problem.rules.read_fraction if target is Target.READS else problem.rules.write_fraction
    needed, total = (
        (problem.needed_reads, problem.total_reads)
        if target is Target.READS
        else (problem.needed_writes, problem.total_writes)
    )
    where = "in the worst scenario" if problem.rules.contingency else "in normal operation"
    return f" {where} (for {needed} of {total} requests, p = {share:g})"


def _who(plan: QuorumPlan) -> str:
    return f"{', '.join(plan.replicas)} with R = {plan.read_quorum}, W = {plan.write_quorum}"

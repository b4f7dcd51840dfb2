"""The second criterion: of the plans with the best worst case, the one that is best normally."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from placement.contingency.objective import Contingency
from placement.methods.options import Options, Progress
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Status, Termination

__all__ = ["break_ties"]


def break_ties(plan: Plan, options: Options, solve: Callable[[Problem, Options], Plan]) -> Plan:
    """Return the plan with the least normal score among the plans of the proven worst case.

    Parameters
    ----------
    plan
        For the goal "worst"; returned as it is when not proven, or for another goal.
    options
        Of the method; the first search has used a part of the time limit.
    solve
        The method, for the goal "bounded".

    Notes
    -----
    One more search, with the limit at the best worst case (and the evaluator's rounding).
    """
    goal = plan.problem.objective
    assert isinstance(goal, Contingency)
    if goal.goal != "worst" or plan.status is not Status.OPTIMAL or plan.configuration is None:
        return plan
    left = options.time_limit
    if left is not None:
        left -= float(plan.stats.get("seconds_first", 0.0))
    limit = plan.objective / plan.problem.demand.operations
    bounded = dataclasses.replace(goal, goal="bounded", limit=limit)
    started = time.perf_counter()

    def listen(progress: Progress) -> None:
        options.report(dataclasses.replace(progress, incumbent=plan.objective, bound=plan.bound))

    second = solve(
        plan.problem.replace(objective=bounded),
        dataclasses.replace(
            options,
            start=plan.configuration,
            time_limit=None if left is None else max(0.0, left),
            progress=listen,
        ),
    )
    notes = plan.notes
    if second.status is not Status.OPTIMAL:
        notes = (*notes, "whether another plan of this worst case is better normally is open")
    stats = {**plan.stats, "tie_seconds": time.perf_counter() - started}
    best = plan.configuration
    if second.configuration is not None and second.score < plan.score:
        best = second.configuration
    stopped = second.termination is Termination.INTERRUPTED
    return Plan.of(
        plan.problem,
        best,
        method=plan.method,
        bound=plan.bound,
        termination=second.termination if stopped else plan.termination,
        notes=notes,
        stats=stats,
    )

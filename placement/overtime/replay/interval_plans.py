"""Asking a registered method for the plan of one moment (tier 3)."""

from __future__ import annotations

import numpy as np

from placement.errors import InputError
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options
from placement.methods.registry import Method, load_method, run
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray
from placement.support.status import Termination

__all__ = ["interval_problem", "plan_of_all_intervals", "plan_of_interval"]


def interval_problem(problem: Problem, counts: FloatArray, interval: int | None) -> Problem:
    """Return the problem for some demand.

    Parameters
    ----------
    problem
        The constraints, and the decay.
    counts
        Shape (clients, operations): of one moment, with the RTTs of `interval`. Or shape (i,
        clients, operations), `interval` None: the first i intervals, each with its own RTTs, to
        which the decay of the problem applies.
    interval
        See above.
    """
    if interval is not None:
        return problem.replace(
            instance=problem.instance.at_interval(interval, counts),
            objective=problem.objective.of_intervals(interval),
            decay=1.0,
        )
    seen = len(counts)
    changes: dict[str, object] = {"counts": counts, "intervals": problem.instance.intervals[:seen]}
    for field in ("client_rtt", "site_rtt"):
        rtt: FloatArray = getattr(problem.instance, field)
        if rtt.ndim == 3:
            changes[field] = rtt[:seen]
    return problem.replace(
        instance=problem.instance.replace(**changes),
        objective=problem.objective.of_intervals(slice(seen)),
    )


def plan_of_interval(method: Method, problem: Problem, before: Plan | None = None) -> Plan:
    """Return a plan with a configuration, started from the one before where that is allowed.

    Raises
    ------
    InputError
        When no configuration was found: a replay has nothing to pay for then.
    KeyboardInterrupt
        After Ctrl-C: methods end with the best so far then, and a replay must not go on with it.
    """
    start = before.configuration if before is not None else None
    if start is not None and violations(problem, start):
        start = None
    warm_start = before.warm_start if before is not None else None
    plan = run(method, problem, Options(start=start, warm_start=warm_start))
    if plan.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if plan.configuration is None:
        raise InputError(
            f"method {method.name!r} finds no configuration: " + "; ".join(plan.reasons),
            field="problem",
            expected="a question with an answer in every interval",
        )
    return plan


def plan_of_all_intervals(problem: Problem, counts: FloatArray, method: str) -> Configuration:
    """Return the configuration that a method plans for the demand of one moment, `counts[0]`."""
    plan = plan_of_interval(load_method(method), interval_problem(problem, np.asarray(counts), 0))
    assert plan.configuration is not None  # `plan_of_interval` saw to that
    return plan.configuration

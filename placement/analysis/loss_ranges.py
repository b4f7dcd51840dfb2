"""Ranges of demand and RTTs within which the optimal plan after losses certainly does not change.

The worst case and the mean over outages are neither affine nor concave in what moves, so that the
methods of :mod:`placement.analysis.sensitivity` find no exact range. A safe one there is. Let f be
the value of the runner-up. No plan but the best is

- below f when the demand of a client rises, or an RTT that passes no other of its row;
- below λ f when the demand of one client is multiplied by λ < 1;
- below f − K δ when an RTT falls by δ, with K the greatest weight that it can have in a score.

For each score these hold (it is a sum of products of demand and RTTs), and so for the least over
those who take over, the largest over losses, and the mean over outages. The plan itself is
evaluated on the way, and no other is solved.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from placement.analysis.sensitivity import (
    StableRange,
    Waiting,
    greatest_weight,
    moved_rtt,
    next_rtts,
    row_of,
)
from placement.contingency.objective import Contingency
from placement.errors import InputError, UnitsWarning
from placement.evaluation.breakdown import objective_value
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import instance_of, number
from placement.support.status import Status

__all__ = ["loss_demand_range", "loss_rtt_range"]

_BISECTIONS = 40


def loss_demand_range(
    plan: Plan, runner_up: Plan | None, client: str, *, most: float = 1000.0
) -> StableRange:
    """Return factors of one client's demand between which a plan certainly stays optimal.

    Parameters
    ----------
    plan
        An optimal plan whose objective is the worst case or the mean over outages.
    runner_up
        The next best plan (:func:`placement.analysis.next_best_plans.next_best_plans`); None when
        there is no other.
    client
        Name of the client.
    most
        Largest factor of the search, >= 1.

    Raises
    ------
    InputError
        For another plan, where clients move or a budget binds, and for a client without demand.

    Notes
    -----
    Some 80 evaluations of the plan.
    """
    _check(plan, runner_up)
    number(most, "most", minimum=1.0)
    instance = plan.problem.instance
    c = instance.client_index(client)
    if not plan.problem.demand.counts[:, c].any():
        raise InputError(
            "the client has no demand in the intervals that count",
            field="client",
            value=client,
            expected="a client with demand",
        )

    def build(factor: float) -> Problem:
        counts = instance.counts.copy()
        counts[:, c] *= factor
        return plan.problem.replace(instance=instance.replace(counts=counts))

    def holds(factor: float) -> bool:
        if runner_up is None:
            return True
        return _value(plan, build(factor)) <= min(1.0, factor) * runner_up.objective

    low, high = _last(holds, 1.0, 1.0 / most), _last(holds, 1.0, most)
    what = f"demand of {client} (factor)"
    return StableRange(what, 1.0, low, high, False, low == 1.0 / most, high == most)


def loss_rtt_range(
    plan: Plan,
    runner_up: Plan | None,
    source: str,
    site: str,
    *,
    waiting: Waiting | None = None,
) -> StableRange:
    """Return a range of one RTT in which a plan certainly stays optimal.

    Parameters
    ----------
    plan, runner_up
        As for :func:`loss_demand_range`.
    source, site, waiting
        As for :func:`placement.analysis.sensitivity.rtt_range`.
    """
    _check(plan, runner_up)
    refuse_waits(plan.problem, "a safe range of an RTT")
    matrix, row, column, values = row_of(plan.problem.instance, source, site, waiting)
    now = float(values[column])
    below, above = next_rtts(values, column)
    # At the other RTT itself the order may change: short of it.
    low = float(np.nextafter(below, now)) if math.isfinite(below) else 0.0
    high = float(np.nextafter(above, now)) if math.isfinite(above) else 2 * float(values.max())
    greatest = greatest_weight(plan.problem.demand, matrix, row)

    def holds(x: float) -> bool:
        if runner_up is None:
            return True
        with warnings.catch_warnings():  # of RTTs that are only tried
            warnings.simplefilter("ignore", UnitsWarning)
            own = _value(plan, moved_rtt(plan, matrix, row, column, x))
        return own + greatest * max(0.0, now - x) <= runner_up.objective

    what = f"RTT from {source} to {site} (ms)"
    reached = _last(holds, now, high)
    limited = reached == 2 * float(values.max())
    return StableRange(what, now, _last(holds, now, low), reached, False, high_is_limit=limited)


def _check(plan: Plan, runner_up: Plan | None) -> None:
    instance_of(plan, Plan, "plan", "a plan (placement.solve returns one)")
    if runner_up is not None:
        instance_of(runner_up, Plan, "runner_up", "a plan")
    goal, problem = plan.problem.objective, plan.problem
    known = isinstance(goal, Contingency) and goal.goal != "bounded" and not goal.clients_move
    if not known or problem.demand.scenarios > 1 or problem.budget is not None:
        raise InputError(
            "safe ranges after losses are known of the worst case and of the mean over outages, "
            "with clients that stay, one RTT matrix and no budget",
            field="plan",
            value=goal.describe(),
            expected="the goal 'worst' or 'weighted'",
        )
    if plan.status is not Status.OPTIMAL:
        raise InputError(
            "sensitivity is about optimal plans",
            field="plan",
            value=str(plan.status),
            expected="a plan with status optimal",
        )


def _last(holds: Callable[[float], bool], good: float, limit: float) -> float:
    """Last x from `good` towards `limit` that holds, where all before one that holds do."""
    if not math.isfinite(limit) or holds(limit):
        return limit
    for _ in range(_BISECTIONS):
        middle = (good + limit) / 2
        good, limit = (middle, limit) if holds(middle) else (good, middle)
    return good


def _value(plan: Plan, problem: Problem) -> float:
    assert plan.configuration is not None
    return objective_value(problem, plan.configuration)

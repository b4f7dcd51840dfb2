"""Greedy: the largest databases first, each at its best sites with free capacity.

The size of a database is the largest part of a shared limit that it takes in one configuration.
Planners who place one database after another work like this. Once the good sites are full, small
databases go far away, however much they would gain there.
"""

from __future__ import annotations

import math
import time

import numpy as np

from heuristics.fleet.penalised_descent import PenalisedDescent
from placement.fleet.fleet_plan import (
    FleetPlan,
    NoFleetPlan,
    Placed,
    Shortage,
    shortage_reasons,
)
from placement.fleet.fleet_problem import FleetProblem
from placement.support.checks import instance_of

__all__ = ["greedy_by_size", "place_all", "plan_within_limits"]

_METHOD = "greedy-by-size"


def greedy_by_size(fleet: FleetProblem) -> FleetPlan | NoFleetPlan:
    """Place the databases of a fleet one after another, the largest first.

    Parameters
    ----------
    fleet
        The question.

    Returns
    -------
    FleetPlan or NoFleetPlan
        A plan within all limits, without a bound. NoFleetPlan where the databases at the end had no
        room left, which proves nothing: `short` says which limits are exceeded and by how much; and
        where a database has no configuration even alone, which is proven.

    Notes
    -----
    One steepest descent for each database; like copies are placed together as far as they fit.
    """
    instance_of(fleet, FleetProblem, "fleet", "a placement.fleet.FleetProblem")
    began = time.perf_counter()
    descent = PenalisedDescent(fleet)
    placed = place_all(fleet, descent)
    if isinstance(placed, NoFleetPlan):
        return placed
    return plan_within_limits(
        FleetPlan(fleet, placed, method=_METHOD, seconds=time.perf_counter() - began)
    )


def plan_within_limits(plan: FleetPlan) -> FleetPlan | NoFleetPlan:
    """Return a plan, or the limits that it exceeds, the largest part first."""
    if not plan.overloads:
        return plan
    short = sorted(
        (Shortage(name, load - limit, limit, 0.0) for name, load, limit in plan.overloads),
        key=lambda each: -each.short_by / max(each.limit, 1e-300),
    )
    return NoFleetPlan(
        plan.fleet, False, shortage_reasons(short), termination=plan.termination, short=tuple(short)
    )


def place_all(fleet: FleetProblem, descent: PenalisedDescent) -> list[list[Placed]] | NoFleetPlan:
    """Place all databases, the largest first; `descent` has the loads afterwards."""
    sizes = []
    for member in fleet.members:
        start = descent.start(member)
        if start is None:
            return NoFleetPlan(fleet, True, (f"{member.name} has no configuration, even alone",))
        use, limit = descent.rows.use(member, start), descent.rows.capacity
        parts = np.divide(use, limit, out=np.where(use > 0, math.inf, 0.0), where=limit > 0)
        sizes.append(float(parts.max(initial=0.0)))
    placed: list[list[Placed]] = [[] for _ in fleet.members]
    for index in np.argsort(-np.array(sizes), kind="stable").tolist():
        member = fleet.members[index]
        at, left = descent.start(member), member.copies
        while left:
            assert at is not None
            at, _ = descent.descend(member, at)
            count = descent.copies_that_fit(member, at, left)
            descent.place(member, at, count)
            placed[index].append(Placed(at, count))
            left -= count
    return placed

"""Common parts of the p-median peers: the problems that they support, and their answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray
from placement.support.status import Termination

__all__ = ["cost_matrix", "plan_of", "refuses"]

TOLERANCE = 5e-10
"""Relative gap at which these solvers stop; their bound is lowered by it."""


def refuses(problem: Problem) -> str | None:
    """Return why a problem is no p-median problem, or None."""
    demand, rules = problem.demand, problem.rules
    if demand.relay.any() or demand.direct.any() or demand.quorum.any():
        return "it solves the p-median problem, and there are operations that involve the leader"
    if rules.replicas_min != rules.replicas_max:
        return "it takes one number of replicas"
    if rules.voters != 1 or rules.groups or rules.cost_weight or rules.budget is not None:
        return "it knows no voters, failure domains or prices"
    if not rules.may_hold.all() or rules.must_hold.any():
        return "it is given neither pins nor forbidden sites here"
    if demand.scenarios != 1:
        return "it takes one matrix of RTTs"
    return None


def cost_matrix(problem: Problem) -> FloatArray:
    """Weighted RTTs A[c]·d(c, r), shape (clients, sites), of the clients that read."""
    demand = problem.demand
    near = np.asarray(demand.near[0], dtype=np.float64)
    active = near > 0
    return np.ascontiguousarray(near[active, np.newaxis] * demand.client_rtt[0][active])


def plan_of(
    problem: Problem,
    method: str,
    solve: Callable[[FloatArray, int], tuple[Iterable[int], bool]],
    options: Options,
) -> Plan:
    """Hand the problem over and price what comes back.

    Parameters
    ----------
    problem, options
        As given to the method.
    method
        Its name.
    solve
        (cost matrix, p) -> (open sites, whether the solver proved them optimal).
    """
    del options
    started = time.perf_counter()
    chosen, proven = solve(cost_matrix(problem), problem.rules.replicas_min)
    sites = sorted({int(site) for site in chosen})
    configuration = Configuration.of(sites[0], [sites[0]], sites)
    worth = problem.objective.value(problem, configuration)
    return Plan.of(
        problem,
        configuration,
        method=method,
        bound=worth * (1 - TOLERANCE) if proven else -np.inf,
        termination=Termination.FINISHED if proven else Termination.TIME_LIMIT,
        stats={"peer_seconds": time.perf_counter() - started},
    )

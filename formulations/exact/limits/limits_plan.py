"""The plan that is made of a search within limits."""

from __future__ import annotations

import math

from formulations.exact.enumeration_claim import certified_or_named
from formulations.exact.limits.limits_search import LimitsSearch
from formulations.exact.reduced_problem import weighs_more_than_sites
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.status import Termination

__all__ = ["answers", "plan_of_search", "without_limits"]

_PROOF = "a search within the limits under every leader"


def without_limits(problem: Problem) -> Problem:
    """Return the question without limits, prices of moves, of votes and of near reads.

    What no configuration undercuts there, none does in the problem.
    """
    weight = 0.0 if weighs_more_than_sites(problem) else problem.cost_weight
    return problem.replace(budget=None, cost_weight=weight, current=None, moves=None)


def answers(problem: Problem, plan: Plan) -> bool:
    """Return whether the plan of the question without limits is the answer to the problem.

    A proof that there is no plan holds too; else the plan keeps the limits, at the same value.
    """
    found = plan.configuration
    if found is None:
        return plan.termination is Termination.FINISHED
    if any(limit.broken(found) for limit in problem.limits):
        return False
    return objective_value(problem, found) <= plan.objective


def plan_of_search(search: LimitsSearch, method: str) -> Plan:
    """Return the plan of a search, or that there is none, or that time ran out."""
    certificate = search.certificate
    document = None if certificate is None else certificate.to_json
    # an interrupted search may have closed the last leader before it saw the interrupt
    closed = search.termination is Termination.FINISHED or search.bound == math.inf
    proven = search.best is None and closed
    reasons: tuple[str, ...] = ()
    if proven:
        leaders = int(search.problem.rules.may_lead.sum())
        limits = " and ".join(f"{limit.name} {limit.most:g}" for limit in search.problem.limits)
        reasons = (
            f"no configuration keeps the limit ({limits}), under any of the {leaders} possible "
            "leaders (proved by a search)",
        )
    plan = Plan.of(
        search.problem,
        search.best,
        method=method,
        bound=math.inf if proven else search.bound,
        termination=search.termination,
        reasons=reasons,
        stats={
            "nodes": search.counters.nodes,
            "leaves": search.counters.leaves,
            "bounds": search.counters.bounds,
        },
        certificate=document,
    )
    return certified_or_named(plan, _PROOF, wanted=bool(search.options.settings["certificate"]))

"""The plan that is made of a search within a budget."""

from __future__ import annotations

import math

from formulations.exact.budget.budget_search import BudgetSearch, allowed_cost
from formulations.exact.enumeration_claim import certified_or_named
from placement.evaluation.cost_model import configuration_cost
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.status import Termination

__all__ = ["plan_of_search", "too_dear"]

_PROOF = "a search within the budget under every leader"


def too_dear(problem: Problem, configuration: Configuration) -> bool:
    """Return whether a configuration exceeds the budget of a problem."""
    assert problem.budget is not None
    return configuration_cost(problem.instance, configuration) > allowed_cost(problem.budget)


def plan_of_search(search: BudgetSearch, method: str) -> Plan:
    """Return the plan of a search, or that there is none, or that time ran out."""
    certificate = search.certificate
    document = None if certificate is None else certificate.to_json
    proven = search.best is None and search.termination is Termination.FINISHED
    reasons: tuple[str, ...] = ()
    if proven:
        leaders = int(search.problem.rules.may_lead.sum())
        reasons = (
            f"no configuration costs at most {search.problem.budget:g}, under any of the {leaders} "
            "possible leaders (proved by a search)",
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

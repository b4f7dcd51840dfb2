"""Search for all plans that no other plan beats in both latency and cost.

Three steps, each proven by the method that solves:

1. *Endpoints.* The plan of least latency, and one that weighs the cost so much that little else
   counts.
2. *Supported points.* The dichotomic method of Aneja and Nair (Management Science 25(1), 1979). The
   weight at which two known points are equally good finds a better point between them, or shows
   that none lies below the line between them. A search with a weight is quick, because the weight
   joins the objective.
3. *The other points.* Between two neighbours, the ε-constraint method (Haimes, Lasdon and Wismer,
   IEEE Trans. SMC 1(3), 1971): the least latency with a budget just below the cost of the last
   point, until the cheaper neighbour comes out. Below the cheapest, until nothing is affordable.

Step 3 alone finds every point; steps 1 and 2 save it one solve for each supported point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import OPTIMALITY_TOLERANCE, Status, Termination

__all__ = ["BUDGET_STEP", "descending_budgets", "frontier_plans"]

BUDGET_STEP = 4e-9
"""Relative; costs that differ by less are the same cost (budgets are kept to a relative 1e-9)."""

_HEAVY = 1e4
"""Weighted cost over latency at the endpoint where cost is nearly all that counts."""

Ask = Callable[[Problem], Plan]


def frontier_plans(problem: Problem, ask: Ask) -> Iterator[Plan]:
    """Yield the plans of a frontier; those that another beats may be among them.

    Parameters
    ----------
    problem
        Minimises the mean latency; without a budget and without a weight of the cost.
    ask
        Solves a problem, with proof unless it is stopped.

    Yields
    ------
    Plan
        Of the problem with a budget. An unproven one means that a point may be missing, and a plan
        without a configuration that nothing cheaper exists.
    """
    fastest = ask(problem)
    yield fastest
    if not fastest.found or fastest.termination is Termination.INTERRUPTED:
        return
    if not (fastest.score > 0 and fastest.cost > 0):
        yield from descending_budgets(problem, ask, _below(fastest))
        return
    points = [fastest]
    for plan in _supported(problem, ask, fastest):
        yield plan
        if plan.termination is Termination.INTERRUPTED:
            return
        points.append(plan)
    points.sort(key=lambda plan: -plan.cost)
    for dear, cheap in itertools.pairwise(points):
        budget = _below(dear)
        while budget >= cheap.cost * (1 + BUDGET_STEP) and dear.cost > cheap.cost:
            plan = ask(problem.replace(budget=budget))
            if plan.found and plan.status is Status.OPTIMAL and not _better(plan, cheap):
                break
            yield plan
            if not plan.found or plan.termination is Termination.INTERRUPTED:
                return
            budget = _below(plan)
    yield from descending_budgets(problem, ask, _below(points[-1]))


def descending_budgets(problem: Problem, ask: Ask, budget: float) -> Iterator[Plan]:
    """Yield the best plan within the budget, then within just less than that cost, and so on.

    The last one has no configuration, unless the one before costs nothing.
    """
    while budget >= 0:
        plan = ask(problem.replace(budget=None if math.isinf(budget) else budget))
        yield plan
        if not plan.found or plan.termination is Termination.INTERRUPTED:
            return
        budget = _below(plan)


def _supported(problem: Problem, ask: Ask, fastest: Plan) -> Iterator[Plan]:
    """Yield the points that a weight of the cost finds, each with the proof that it gives."""
    cheapest = _weighted(problem, ask, _HEAVY * fastest.score / fastest.cost)
    if cheapest is None or not cheapest.cost < _below(fastest):
        return
    yield cheapest
    segments = [(cheapest, fastest)]
    while segments:
        cheap, dear = segments.pop()
        if not (cheap.score > dear.score and dear.cost > cheap.cost):
            continue
        weight = (cheap.score - dear.score) / (dear.cost - cheap.cost)
        plan = _weighted(problem, ask, weight)
        if plan is None:
            continue
        line = cheap.score + weight * cheap.cost
        if plan.score + weight * plan.cost >= line * (1 - OPTIMALITY_TOLERANCE):
            continue
        yield plan
        if plan.termination is Termination.INTERRUPTED:
            return
        segments += [(cheap, plan), (plan, dear)]


def _weighted(problem: Problem, ask: Ask, weight: float) -> Plan | None:
    """Return the plan of a weight as the answer to its budget, whose bound it gives.

    With the bound b on score + λ·cost, a plan that costs no more than this one has a score of at
    least b − λ·cost. None without a plan.
    """
    plan = ask(problem.replace(cost_weight=weight))
    if plan.configuration is None:
        return None
    found = Plan.of(
        problem.replace(budget=plan.cost),
        plan.configuration,
        method=plan.method,
        bound=plan.bound - weight * plan.cost,
        termination=plan.termination,
        seconds=plan.seconds,
        stats=plan.stats,
    )
    if plan.status is Status.OPTIMAL and found.status is not Status.OPTIMAL:
        # the difference has lost digits, or a weight leaves ties: the budget itself decides
        return ask(problem.replace(budget=plan.cost))
    return found


def _below(plan: Plan) -> float:
    """Return the largest budget that leaves out the cost of a plan."""
    return plan.cost - BUDGET_STEP * (1 + plan.cost)


def _better(plan: Plan, other: Plan) -> bool:
    return plan.score < other.score * (1 - OPTIMALITY_TOLERANCE)

"""Reasons why bounds on latency or cost are too low: the reachable values, by solving for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from placement.quorumstore import Goal, QuorumPlan, QuorumProblem, Target
from placement.support.status import Status

__all__ = ["bound_reasons"]

Method = Callable[[QuorumProblem], QuorumPlan]


def bound_reasons(problem: QuorumProblem, method: Method) -> tuple[str, ...]:
    """Return the sentences that show why a problem has no configuration because of its bounds.

    Each bound is tried separately. If each can be met alone, the best value of one under the other
    bounds is given.

    Parameters
    ----------
    problem
        The key: infeasible, and its rules do not contradict each other.
    method
        Solves one problem to proven optimality, such as ``Enumeration(tables).solve``.
    """
    goal = problem.goal
    bounds = [
        (Target.READS, "reads", goal.read_bound, "ms"),
        (Target.WRITES, "writes", goal.write_bound, "ms"),
        (Target.COST, "cost", goal.cost_bound, "of cost"),
    ]
    given = [entry for entry in bounds if math.isfinite(entry[2])]
    free = Goal()
    found = []
    for target, word, bound, unit in given:
        reach = method(problem.with_goal(_judged(free, target)))
        if reach.status is Status.OPTIMAL and reach.value > bound:
            found.append(
                f"the bound on {word} is {bound:g} {unit}, but the least any replica set reaches "
                f"is {reach.value:g} {unit}{_scope(problem, target)}: {_who(reach)}"
            )
    if found:
        return tuple(found)
    for target, word, bound, unit in given:
        others = _judged(_without(goal, target), target)
        reach = method(problem.with_goal(others))
        rest = " and ".join(
            f"{name} within {limit:g} {of}" for kind, name, limit, of in given if kind is not target
        )
        if reach.status is Status.OPTIMAL:
            found.append(
                f"the bounds exclude each other: with {rest}, the least {word} reach is "
                f"{reach.value:g} {unit}, above {bound:g}: {_who(reach)}"
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
    if target is Target.WRITES:
        return replace(goal, write_bound=math.inf)
    return replace(goal, cost_bound=math.inf)


def _scope(problem: QuorumProblem, target: Target) -> str:
    if target is Target.COST:
        return ""
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

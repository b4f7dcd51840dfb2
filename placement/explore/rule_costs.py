"""Cost of each rule of a question: how much better the plan would be without it.

The plan without a rule is proven like any other, so a difference between two optimal plans is
exact. Sites that a plan leaves out are asked about in the same way, with the site pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from placement.errors import InputError, UnsupportedError
from placement.plan import Plan
from placement.problem import Problem

__all__ = ["RuleCost", "price_of_site", "rule_costs"]


@dataclass(frozen=True, slots=True)
class RuleCost:
    """Rule of the question, and the plan without it.

    Attributes
    ----------
    rule
        In words: "Tokyo is forbidden".
    plan
        Optimal plan without the rule (for :func:`price_of_site`: with the site).
    gain_ms
        Milliseconds by which the objective is lower without the rule, >= 0; infinite where there
        is no plan with it. Money that counts is part of it, in milliseconds per operation.
    """

    rule: str
    plan: Plan
    gain_ms: float


def rules_of(problem: Problem) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each rule of a problem in words, with the changes that take it away."""
    fields = (
        ("forbidden", "{} is forbidden"),
        ("pinned", "{} must hold a replica"),
        ("pinned_voters", "{} must vote"),
        ("non_voters", "{} must not vote"),
    )
    for field, words in fields:
        names: tuple[str, ...] = tuple(getattr(problem, field))
        for name in names:
            yield words.format(name), {field: [other for other in names if other != name]}
    if problem.leader is not None:
        yield f"{problem.leader} must lead", {"leader": None}
    if problem.leaders is not None:
        yield f"{len(problem.leaders)} leader candidates", {"leaders": None}
    if problem.survive is not None:
        yield f"survive the loss of any one {problem.survive}", {"survive": None}
    if problem.budget is not None:
        yield f"budget {problem.budget:g}", {"budget": None}
    if problem.moves is not None:
        yield "prices and limits of moves", {"moves": None}
    for rule in problem.diversity:
        rest = [other for other in problem.diversity if other is not rule]
        yield f"a diversity rule of the level {rule.level}", {"diversity": rest}


def rule_costs(plan: Plan, ask: Callable[[Problem], Plan]) -> tuple[RuleCost, ...]:
    """Return the cost in ms of each rule of a plan's problem, the most expensive first.

    Parameters
    ----------
    plan
        Optimal, or the proof that there is none.
    ask
        Solves a problem.

    Notes
    -----
    One solve per rule. Rules that a method cannot take without are left out.
    """
    found = []
    for words, changes in rules_of(plan.problem):
        try:
            other = ask(plan.problem.replace(**changes))
        except (InputError, UnsupportedError):
            continue
        if other.found:
            gain = _worth(plan) - _worth(other) if plan.found else float("inf")
            found.append(RuleCost(words, other, max(0.0, gain)))
    return tuple(sorted(found, key=lambda one: -one.gain_ms))


def price_of_site(plan: Plan, site: str, ask: Callable[[Problem], Plan]) -> RuleCost | None:
    """Return the best plan with a replica at a site that the plan leaves out.

    Parameters
    ----------
    plan
        Optimal.
    site
        Name.
    ask
        Solves a problem.

    Returns
    -------
    RuleCost or None
        `gain_ms` is negative or 0: the latency that the site costs, or 0 for an equally good plan.
        None where the site is in the plan, is forbidden, or no plan has it.
    """
    if not plan.found or site in plan.replicas or site in plan.problem.forbidden:
        return None
    try:
        other = ask(plan.problem.replace(pinned=(*plan.problem.pinned, site)))
    except (InputError, UnsupportedError):
        return None
    if not other.found:
        return None
    return RuleCost(f"with {site}", other, min(0.0, _worth(plan) - _worth(other)))


def _worth(plan: Plan) -> float:
    """Return the objective in ms, money that counts included."""
    return plan.problem.objective.in_ms(plan.problem, plan.objective)

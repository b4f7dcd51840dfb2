"""Explanation of an infeasible problem, by the registered explainers.

The checks of :func:`placement.feasibility.feasible_plans.reasons_infeasible` see one rule at a
time. Which rules
*together* leave no plan takes a search, and searches live in other packages, so they are found the
way methods are: as entry points, of the group ``placement.explainers``. An explainer is a function
``problem -> sentences``; nothing is imported before a problem turns out to be infeasible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from placement.problem import Problem
from placement.support.entry_points import Group

__all__ = ["EXPLAINERS", "Explainer", "explain_infeasible"]


class Explainer(Protocol):
    """Interface of a registered function."""

    def __call__(self, problem: Problem) -> Iterable[str]:
        """Return sentences that say why a problem has no plan."""


EXPLAINERS: Group[Explainer] = Group(
    "placement.explainers",
    "explainer",
    lambda found: found if callable(found) else None,
    "a function",
)
"""All registered explainers."""


def explain_infeasible(problem: Problem) -> tuple[str, ...]:
    """Return why an infeasible problem has no plan, from every registered explainer in turn.

    Raises
    ------
    SolverError
        When an explainer finds a plan, so that "infeasible" was wrong.
    UnsupportedError
        When a registered object cannot be imported or called.
    """
    sentences: list[str] = []
    for name in EXPLAINERS.names():
        sentences.extend(str(sentence) for sentence in EXPLAINERS.load(name)(problem))
    return tuple(sentences)

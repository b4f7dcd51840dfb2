"""Explanation of an infeasible problem, by the registered explainers.

The checks of :func:`placement.feasibility.feasible_plans.reasons_infeasible` see one rule at a
time. Which rules
*together* leave no plan takes a search, and searches live in other packages, so they are found the
way methods are: as entry points, of the group ``placement.explainers``. An explainer is a function
``problem -> sentences``; nothing is imported before a problem turns out to be infeasible.
"""

from __future__ import annotations

from placement.entry_points import entry_points
from placement.errors import UnsupportedError
from placement.problem import Problem

__all__ = ["GROUP", "explain_infeasible"]

GROUP = "placement.explainers"
"""The entry-point group that explainers register under."""


def explain_infeasible(problem: Problem) -> tuple[str, ...]:
    """Return why an infeasible problem has no plan, from every registered explainer in turn.

    Raises
    ------
    SolverError
        When an explainer finds a plan: then whoever said "infeasible" was wrong.
    UnsupportedError
        When a registered object cannot be imported or called.
    """
    sentences: list[str] = []
    for _, entry in sorted(entry_points(GROUP).items()):
        try:
            explainer = entry.load()
        except ImportError as error:
            raise UnsupportedError(
                f"explainer {entry.name!r} cannot be imported: {error}"
            ) from error
        if not callable(explainer):
            raise UnsupportedError(
                f"the entry point {entry.name!r} = {entry.value!r} is no function"
            )
        sentences.extend(str(sentence) for sentence in explainer(problem))
    return tuple(sentences)

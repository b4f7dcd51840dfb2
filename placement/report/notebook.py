"""Small HTML tables for notebooks: an instance, a problem, a plan.

A notebook shows ``_repr_html_`` of the last value of a cell. The tables carry no script, no style
sheet and no link, and everything that comes from data is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from placement.report.charts.markup import clipped, tag
from placement.text.instances import instance_facts
from placement.text.plans import plan_facts

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.plan import Plan
    from placement.problem import Problem

__all__ = ["instance_html", "plan_html", "problem_html"]

_LONGEST = 400
"""Most characters of a cell; names can be of any length."""


def instance_html(instance: Instance) -> str:
    """Return the size, demand and ranges of RTT of an instance as an HTML table."""
    return _table("Instance", [*instance_facts(instance), ("Sites", ", ".join(instance.sites))])


def problem_html(problem: Problem) -> str:
    """Return the question and the instance of a problem as an HTML table."""
    from placement.problem import describe

    return _table(
        "Problem",
        [("Question", describe(problem)), *instance_facts(problem.instance)],
    )


def plan_html(plan: Plan) -> str:
    """Return the question, the status and the configuration of a plan as an HTML table."""
    rows = plan_facts(plan)
    if plan.found:
        rows.append(("Voters", ", ".join(plan.voters)))
        rows.append(("Replicas", ", ".join(plan.replicas)))
    reasons = [("Breaks" if plan.found else "Why", reason) for reason in plan.reasons]
    return _table("Plan", [*rows, *reasons, *(("Note", note) for note in plan.notes)])


def _table(caption: str, rows: Sequence[tuple[str, str]]) -> str:
    left = {"style": "text-align: left"}
    body = [
        tag("tr", None, tag("th", left, name), tag("td", left, clipped(value, _LONGEST)))
        for name, value in rows
    ]
    return tag("table", None, tag("caption", left, caption), tag("tbody", None, body))

"""Objectives about losses inside plan files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from placement.support.checks import number

if TYPE_CHECKING:
    from placement.contingency.objective import Contingency
    from placement.io.formats.document import Document
    from placement.model.instance import Instance

__all__ = ["contingency_document", "contingency_from"]


def contingency_document(goal: Contingency, instance: Instance) -> dict[str, object]:
    """Return the losses, the goal and the scored clients, JSON-ready."""
    given = goal.probability
    probability = (
        {name: float(p) for name, p in given.items()}
        if isinstance(given, Mapping)
        else None
        if given is None
        else float(given)
    )
    document: dict[str, object] = {
        "level": goal.level,
        "goal": goal.goal,
        "together": goal.together,
        "limit": None if goal.limit is None else float(goal.limit),
        "probability": probability,
        "leader_may_move": goal.leader_may_move,
        "clients_move": goal.clients_move,
    }
    if goal.percentile is not None:
        document["percentile"] = goal.percentile.document(instance)
    return document


def contingency_from(document: Document, instance: Instance) -> Contingency:
    """Read what :func:`contingency_document` wrote.

    Raises
    ------
    InputError
        For a value that is missing or wrong.
    """
    from placement.contingency.objective import Contingency
    from placement.tail.objective import Percentile

    goal = document.text("goal")
    if goal not in ("worst", "bounded", "weighted"):
        raise document.refuse("goal", "unknown goal", "'worst', 'bounded' or 'weighted'")
    probability: float | dict[str, float] | None = None
    if isinstance(document.values.get("probability"), dict):
        table = document.table("probability")
        probability = {name: table.number(name) for name in table.values}
    elif document.has("probability"):
        probability = number(document.number("probability"), "probability")
    percentile: Percentile | None = None
    if document.has("percentile"):
        percentile = Percentile.from_document(document.table("percentile"), instance)
    return Contingency(
        document.text("level"),
        goal,  # type: ignore[arg-type]  # one of the three, checked above
        together=document.whole("together"),
        limit=document.number("limit") if document.has("limit") else None,
        probability=probability,
        leader_may_move=document.values.get("leader_may_move") is True,
        clients_move=document.values.get("clients_move") is True,
        percentile=percentile,
    )

"""Objectives inside plan files."""

from __future__ import annotations

from collections.abc import Mapping

from placement.checks import number
from placement.contingency.objective import Contingency
from placement.errors import UnsupportedError
from placement.evaluation.objective import MEAN_LATENCY, MeanLatency, Objective
from placement.io.formats.document import Document
from placement.model.instance import Instance

__all__ = ["objective_document", "objective_from"]


def objective_document(objective: Objective, instance: Instance) -> dict[str, object]:
    """Return an objective on an instance, JSON-ready.

    Raises
    ------
    UnsupportedError
        For an objective that plan files cannot hold: better no file than one that asks another
        question.
    """
    if type(objective) is MeanLatency:
        return {"kind": objective.kind}
    # a subclass may mean something else, so only the class itself will do
    if isinstance(objective, Contingency) and type(objective) is Contingency:
        probability = objective.probability
        return {
            "kind": objective.kind,
            "level": objective.level,
            "goal": objective.goal,
            "together": objective.together,
            "limit": None if objective.limit is None else float(objective.limit),
            "probability": {name: float(p) for name, p in probability.items()}
            if isinstance(probability, Mapping)
            else None
            if probability is None
            else float(probability),
            "leader_may_move": objective.leader_may_move,
            "clients_move": objective.clients_move,
        }
    if objective.kind == "percentile":
        from placement.tail.document import distributions_document  # only where it is asked for
        from placement.tail.objective import Percentile

        if isinstance(objective, Percentile) and type(objective) is Percentile:
            return {
                "kind": objective.kind,
                "percent": float(objective.percent),
                "distributions": distributions_document(objective.distributions, instance),
            }
    raise UnsupportedError(f"plan files cannot hold the objective {objective.kind!r} yet")


def objective_from(document: Document, instance: Instance) -> Objective:
    """Read what :func:`objective_document` wrote; the mean latency where there is nothing.

    Parameters
    ----------
    document
        The objective's table in a plan file.
    instance
        That of the plan, whose pairs latency distributions belong to.

    Raises
    ------
    InputError
        For an unknown kind, goal or value.
    """
    kind = document.text("kind", MEAN_LATENCY.kind)
    if kind == MEAN_LATENCY.kind:
        return MEAN_LATENCY
    if kind == "percentile":
        from placement.tail.document import distributions_from
        from placement.tail.objective import Percentile

        given = distributions_from(document.table("distributions"), instance)
        return Percentile(document.number("percent"), given)
    if kind != "contingency":
        raise document.refuse("kind", "unknown objective", "'mean', 'contingency' or 'percentile'")
    goal = document.text("goal")
    if goal not in ("worst", "bounded", "weighted"):
        raise document.refuse("goal", "unknown goal", "'worst', 'bounded' or 'weighted'")
    probability: float | dict[str, float] | None = None
    if isinstance(document.values.get("probability"), dict):
        table = document.table("probability")
        probability = {name: table.number(name) for name in table.values}
    elif document.has("probability"):
        probability = number(document.number("probability"), "probability")
    return Contingency(
        document.text("level"),
        goal,  # type: ignore[arg-type]  # one of the three, checked above
        together=document.whole("together"),
        limit=document.number("limit") if document.has("limit") else None,
        probability=probability,
        leader_may_move=document.values.get("leader_may_move") is True,
        clients_move=document.values.get("clients_move") is True,
    )

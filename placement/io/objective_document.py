"""Objectives inside plan files, found through the entry-point group ``placement.objectives``.

An entry point names the class of an objective; its name is the kind. The class writes itself with
`document` and reads itself with `from_document`, see
:class:`placement.evaluation.objective.Objective`.
"""

from __future__ import annotations

from functools import lru_cache

from placement.entry_points import entry_points
from placement.errors import UnsupportedError
from placement.evaluation.objective import MEAN_LATENCY, Objective
from placement.io.formats.document import Document
from placement.model.instance import Instance

__all__ = ["GROUP", "objective_document", "objective_from"]

GROUP = "placement.objectives"


@lru_cache(maxsize=1)
def _registered() -> dict[str, type[Objective]]:
    """Return the classes of objectives by kind."""
    found = entry_points(GROUP)
    return {kind: found[kind].load() for kind in sorted(found)}


def objective_document(objective: Objective, instance: Instance) -> dict[str, object]:
    """Return an objective on an instance, JSON-ready.

    Raises
    ------
    UnsupportedError
        For an objective that is not registered: better no file than one that asks another
        question.
    """
    # a subclass may mean something else, so only the class itself will do
    if _registered().get(objective.kind) is not type(objective):
        raise UnsupportedError(f"plan files cannot hold the objective {objective.kind!r} yet")
    return {"kind": objective.kind, **objective.document(instance)}


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
    found = _registered().get(kind)
    if found is None:
        names = ", ".join(repr(name) for name in _registered())
        raise document.refuse("kind", "unknown objective", f"one of {names}")
    return found.from_document(document, instance)

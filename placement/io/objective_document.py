"""Objectives inside plan files, found through the entry-point group ``placement.objectives``.

An entry point names the class of an objective; its name is the kind. The class writes itself with
`document` and reads itself with `from_document`, see
:class:`placement.evaluation.objective.Objective`.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from placement.entry_points import Group
from placement.errors import UnsupportedError
from placement.evaluation.objective import MEAN_LATENCY, Objective
from placement.io.formats.document import Document
from placement.model.instance import Instance

__all__ = ["OBJECTIVES", "objective_document", "objective_from"]


@runtime_checkable
class _ObjectiveClass(Protocol):
    """Interface of the class of an objective, as far as reading a file needs it."""

    def from_document(self, document: Document, instance: Instance) -> Objective:
        """Return the objective that its `document` wrote."""


OBJECTIVES = Group(
    "placement.objectives",
    "objective",
    lambda found: found if isinstance(found, _ObjectiveClass) else None,
    "the class of an objective",
)
"""The classes of all registered objectives, by kind."""


def objective_document(objective: Objective, instance: Instance) -> dict[str, object]:
    """Return an objective on an instance, JSON-ready.

    Raises
    ------
    UnsupportedError
        For an objective that is not registered: better no file than one that asks another
        question.
    """
    kind = objective.kind
    registered: object = OBJECTIVES.load(kind) if kind in OBJECTIVES.names() else None
    # a subclass may mean something else, so only the class itself will do
    if registered is not type(objective):
        raise UnsupportedError(f"plan files cannot hold the objective {kind!r} yet")
    return {"kind": kind, **objective.document(instance)}


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
    if kind not in OBJECTIVES.names():
        names = ", ".join(map(repr, OBJECTIVES.names()))
        raise document.refuse("kind", "unknown objective", f"one of {names}")
    return OBJECTIVES.load(kind).from_document(document, instance)

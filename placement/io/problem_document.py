"""Questions inside plan files, with their objectives.

The entry-point group ``placement.objectives`` names the classes of objectives; the name of an entry
is the kind. A class writes itself with `document` and reads itself with `from_document`, see
:class:`placement.evaluation.objective.Objective`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from placement.errors import InputError, UnsupportedError
from placement.evaluation.moves import CurrentSites, Moves
from placement.evaluation.objective import MEAN_LATENCY, Objective
from placement.io.formats.document import Document
from placement.io.recomputed_fields import check_recomputed
from placement.model.constraints import Diversity
from placement.model.instance import Instance
from placement.model.protocols import Protocol as CommitProtocol
from placement.problem import Problem
from placement.support.entry_points import Group

__all__ = ["problem_document", "problem_from", "read_protocol", "refuse_gone"]


@runtime_checkable
class _ObjectiveClass(Protocol):
    """Interface of the class of an objective, as far as reading a file needs it."""

    def from_document(self, document: Document, instance: Instance) -> Objective:
        """Return the objective that its `document` wrote."""


_OBJECTIVES = Group(
    "placement.objectives",
    "objective",
    lambda found: found if isinstance(found, _ObjectiveClass) else None,
    "the class of an objective",
)
"""The classes of all registered objectives, by kind."""


def problem_document(problem: Problem) -> dict[str, object]:
    """Return a question by name, JSON-ready."""
    replicas: object = problem.replicas
    if isinstance(replicas, range) or (
        isinstance(replicas, tuple) and not isinstance(replicas[0], str)
    ):
        low, high = (min(replicas), max(replicas)) if isinstance(replicas, range) else replicas
        replicas = {"least": int(low), "most": int(high)}
    elif isinstance(replicas, tuple):
        replicas = list(replicas)
    else:
        replicas = int(problem.replicas)  # type: ignore[arg-type]  # a number is what is left
    voters = problem.voters
    return {
        "replicas": replicas,
        "voters": list(voters) if isinstance(voters, Sequence) else int(voters),
        "quorum": None if problem.quorum is None else int(problem.quorum),
        **_witness_document(problem),
        "leader": problem.leader,
        "leaders": None if problem.leaders is None else list(problem.leaders),
        "pinned": list(problem.pinned),
        "pinned_voters": list(problem.pinned_voters),
        "forbidden": list(problem.forbidden),
        "non_voters": list(problem.non_voters),
        "diversity": [rule.document() for rule in problem.diversity],
        "survive": problem.survive,
        "decay": "inf" if math.isinf(problem.decay) else float(problem.decay),
        "budget": None if problem.budget is None else float(problem.budget),
        "cost_weight": float(problem.cost_weight),
        "objective": _objective_document(problem.objective, problem.instance),
        **({} if problem.protocol is None else {"protocol": str(problem.protocol)}),
        **_moves_document(problem),
    }


def _witness_document(problem: Problem) -> dict[str, object]:
    given = problem.witnesses
    if isinstance(given, Sequence):
        return {"witnesses": list(given)} if given else {}
    return {"witnesses": int(given)} if given else {}


def _moves_document(problem: Problem) -> dict[str, object]:
    if not isinstance(problem.current, CurrentSites):
        return {}
    found: dict[str, object] = {"current": problem.current.document()}
    return found if problem.moves is None else {**found, "moves": problem.moves.given}


def _current_from(document: Document) -> CurrentSites | None:
    if not document.has("current"):
        return None
    table = document.table("current")
    return CurrentSites(table.text("leader"), table.names("voters"), table.names("replicas"))


def _moves_from(document: Document) -> Moves | None:
    return Moves(**document.table("moves").fields(Moves)) if document.has("moves") else None


_PLAIN = (
    "voters", "quorum", "witnesses", "leader", "leaders", "pinned", "pinned_voters", "forbidden",
    "non_voters", "survive", "budget", "cost_weight",
)  # fmt: skip
"""Fields of a question that the types of its class say how to read."""


def problem_from(document: Document, instance: Instance) -> Problem:
    """Read the document of :func:`problem_document`.

    Parameters
    ----------
    document
        The table of the question.
    instance
        The one it is about.

    Raises
    ------
    InputError
        For a key that says nothing, a wrong value, and a question that the instance cannot have.
    """
    refuse_gone(document)
    replicas: int | tuple[int, int] | tuple[str, ...]
    if isinstance(document.values.get("replicas"), dict):
        span = document.table("replicas")
        replicas = (span.whole("least"), span.whole("most"))
    elif isinstance(document.values.get("replicas"), list):
        replicas = document.names("replicas")
    else:
        replicas = document.whole("replicas")
    if not document.has("voters"):
        document.whole("voters")
    problem = Problem(
        instance,
        replicas=replicas,
        **document.fields(Problem, _PLAIN),
        diversity=tuple(Diversity.from_document(rule) for rule in document.tables("diversity")),
        decay=document.number("decay", 1.0, infinite=True),
        objective=_objective_from(document.table("objective"), instance),
        protocol=read_protocol(document),
        current=_current_from(document),
        moves=_moves_from(document),
    )
    check_recomputed(
        document, problem_document(problem), "the question as it was read", defaults=True
    )
    return problem


_GONE = {
    "votes": ("sites vote once or not at all", "non_voters: the sites that do not vote"),
    "vote_layout": ("sites vote once or not at all", "voters and quorum as numbers"),
    "shares": ("a share is one for all clients", "it as a parameter of the protocol"),
    "at": ("an operation goes to the nearest replica", "no such key, and replicas that all vote"),
}


def refuse_gone(document: Document) -> None:
    """Refuse keys of files of older versions of this package, with what takes their place.

    Raises
    ------
    InputError
        Naming the file, the key and the way out.
    """
    for key, (what, instead) in _GONE.items():
        if document.has(key):
            raise document.refuse(key, what, instead)


def read_protocol(document: Document) -> CommitProtocol | None:
    """Return the protocol of a question or an instance; None without the key ``protocol``.

    The key is a text, ``"epaxos:slow=0.05"``, or a table: `name` with the parameters.

    Raises
    ------
    InputError
        Naming the file, for an unknown name, key or value.
    """
    if not document.has("protocol"):
        return None
    try:
        if not isinstance(document.values.get("protocol"), dict):
            return CommitProtocol(document.text("protocol"))
        table = document.table("protocol")
        if table.has("kinds"):
            raise table.refuse(
                "kinds", "a protocol is one for all kinds of operations", "name and parameters"
            )
        others = {key: table.plain(key) for key in table.values if key != "name"}
        return CommitProtocol(table.text("name"), others)  # type: ignore[arg-type]  # checked there
    except InputError as error:
        raise (error if error.source else error.at(document.source)) from None


def _objective_document(objective: Objective, instance: Instance) -> dict[str, object]:
    """Return an objective on an instance, JSON-ready.

    Raises
    ------
    UnsupportedError
        For an objective that is not registered: better no file than one that asks another
        question.
    """
    kind = objective.kind
    registered: object = _OBJECTIVES.load(kind) if kind in _OBJECTIVES.names() else None
    # a subclass may mean something else, so only the class itself will do
    if registered is not type(objective):
        raise UnsupportedError(f"plan files cannot hold the objective {kind!r} yet")
    return {"kind": kind, **objective.document(instance)}


def _objective_from(document: Document, instance: Instance) -> Objective:
    """Read the document of :func:`_objective_document`; the mean latency where there is nothing.

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
    if kind not in _OBJECTIVES.names():
        names = ", ".join(map(repr, _OBJECTIVES.names()))
        raise document.refuse("kind", "unknown objective", f"one of {names}")
    return _OBJECTIVES.load(kind).from_document(document, instance)

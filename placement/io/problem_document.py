"""Questions inside plan files, with their objectives.

The entry-point group ``placement.objectives`` names the classes of objectives; the name of an entry
is the kind. A class writes itself with `document` and reads itself with `from_document`, see
:class:`placement.evaluation.objective.MeanLatency`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from placement.errors import UnsupportedError, located, refused
from placement.evaluation.moves import PRICES, CurrentSites, Moves
from placement.evaluation.objective import MEAN_LATENCY, MeanLatency
from placement.io.formats.document import Document
from placement.model.constraints import RULES, SiteRule
from placement.model.instance import Instance
from placement.model.protocols import Protocol as CommitProtocol
from placement.problem import Problem
from placement.question import KEYS, Question, plain
from placement.support.entry_points import Group

_OBJECTIVES = Group(
    "placement.objectives",
    "objective",
    lambda found: found if isinstance(found, type) and issubclass(found, MeanLatency) else None,
    "the class of an objective",
)
"""The classes of all registered objectives, by kind."""


def problem_document(problem: Problem) -> dict[str, object]:
    """Return a question by name, JSON-ready: the fields of the schema, and those of classes.

    UnsupportedError for an objective that is not registered: better no file than one that asks
    another question.
    """
    found: dict[str, object] = {}
    for key in (key for key in KEYS.values() if key.field):
        value = getattr(problem, key.field)
        if key.kind == "text" or value is None:
            found[key.field] = value
        elif key.kind == "size" and not isinstance(value, Sequence):
            found[key.field] = int(value)
        elif key.kind == "size" and value and not isinstance(value[0], str):
            found[key.field] = {"least": int(min(value)), "most": int(max(value))}
        elif key.kind in ("size", "names"):
            found[key.field] = list(value)
        elif key.kind == "whole":
            found[key.field] = int(value)
        else:
            found[key.field] = "inf" if math.isinf(value) else float(value)
    if not found["witnesses"]:
        del found["witnesses"]
    if problem.protocol is None:
        del found["protocol"]
    else:
        found["protocol"] = str(problem.protocol)
    found["diversity"] = [rule.document() for rule in problem.diversity]
    objective, kind = problem.objective, problem.objective.kind
    registered: object = _OBJECTIVES.load(kind) if kind in _OBJECTIVES.names() else None
    # a subclass may mean something else, so only the class itself will do
    if registered is not type(objective):
        raise UnsupportedError(f"plan files cannot hold the objective {kind!r} yet")
    found["objective"] = {"kind": kind, **objective.document(problem.instance)}
    if isinstance(problem.current, CurrentSites):
        found["current"] = problem.current.document()
        if problem.moves is not None:
            found["moves"] = problem.moves.given
    return found


_OF_MOVES = {
    "at_most": "max_moves",
    "horizon": "move_horizon",
    "copy_gb": "copy_gb",
    "stored_gb": "replica_gb",
}
"""Keys of a question that are fields of :class:`Moves`."""


def question_of(problem: Problem, **more: Any) -> Question:
    """Return the question of a problem as a user writes it, with `more` keys: instance, method.

    An objective that is neither a percentile nor of measures, and the distributions of RTTs, have
    no keys.
    """
    values: dict[str, Any] = {}
    for key in (key for key in KEYS.values() if key.field):
        value = getattr(problem, key.field)
        if value is None or value == () or (key.name == "witnesses" and not value):
            continue
        if key.kind == "size" and not isinstance(value, Sequence):
            value = (str(value),)
        elif key.kind == "size" and value and not isinstance(value[0], str):
            value = (f"{min(value)}..{max(value)}",)
        elif key.kind == "text":
            value = str(value)
        values[key.name] = tuple(value) if key.several else value
    for rule in problem.diversity:
        for name, text in rule.texts():
            values[name] = (*values.get(name, ()), text)
    asked = problem.objective.document(problem.instance)
    if problem.objective.kind == "percentile":
        values["percentile"] = asked["percent"]
    elif problem.objective.kind == "measures":
        aim = str(asked["minimise"])
        values["maximise" if aim.startswith("within") else "minimise"] = aim
        values["keep"] = tuple(map(str, asked["keep"]))  # type: ignore[call-overload]  # texts
        outages = asked.get("outages", {})
        values["outage"] = tuple(f"{name}={plain(p)}" for name, p in outages.items())  # type: ignore[attr-defined]  # a mapping
    moves = {} if problem.moves is None else problem.moves.given
    parts = ((name, moves.pop(name)) for name in PRICES if name in moves)
    values["move_price"] = tuple(f"{name}={plain(price)}" for name, price in parts)
    values |= {_OF_MOVES[name]: value for name, value in moves.items()}
    return Question(**{**values, **more})


def current_from(table: Document) -> CurrentSites:
    """Return the configuration that runs today, from the table that holds it."""
    return CurrentSites(table.text("leader"), table.names("voters"), table.names("replicas"))


_PLAIN = tuple(
    key.field for key in KEYS.values() if key.field not in ("", "replicas", "decay", "protocol")
)
"""Fields of a question that the types of its class say how to read."""


def problem_from(document: Document, instance: Instance) -> Problem:
    """Read the document of :func:`problem_document`, a question about an instance."""
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
    asked = document.table("objective")
    kind = asked.text("kind", MEAN_LATENCY.kind)
    if kind not in _OBJECTIVES.names():
        names = ", ".join(map(repr, _OBJECTIVES.names()))
        raise asked.refuse("kind", "unknown objective", f"one of {names}")
    problem = Problem(
        instance,
        replicas=replicas,
        **document.fields(Problem, _PLAIN),
        diversity=tuple(map(_rule_from, document.tables("diversity"))),
        decay=document.number("decay", 1.0, infinite=True),
        objective=_OBJECTIVES.load(kind).from_document(asked, instance),
        protocol=read_protocol(document),
        current=current_from(document.table("current")) if document.has("current") else None,
        moves=Moves(**document.table("moves").fields(Moves)) if document.has("moves") else None,
    )
    check_recomputed(
        document, problem_document(problem), "the question as it was read", defaults=True
    )
    return problem


def _rule_from(document: Document) -> SiteRule:
    kind = document.text("rule", "diversity")
    document.need(kind in RULES, "rule", "unknown rule", f"one of {', '.join(RULES)}")
    return RULES[kind].from_document(document)


def read_protocol(document: Document) -> CommitProtocol | None:
    """Return the protocol of a question or an instance; None without the key ``protocol``.

    The key is a text, ``"epaxos:slow=0.05"``, or a table: `name` with the parameters.
    """
    if not document.has("protocol"):
        return None
    with located(document.source):
        if not isinstance(document.values.get("protocol"), dict):
            return CommitProtocol(document.text("protocol"))
        table = document.table("protocol")
        if table.has("kinds"):
            raise table.refuse(
                "kinds", "a protocol is one for all kinds of operations", "name and parameters"
            )
        others = {key: table.plain(key) for key in table.values if key != "name"}
        return CommitProtocol(table.text("name"), others)  # type: ignore[arg-type]  # checked there


# --- values of a file that are computed again -----------------------------------------------

_AGREE = 1e-9
"""Largest difference of two numbers that agree, relative and (for numbers near 0) absolute."""

_Difference = tuple[str, str, object, object]  # path, message, found, expected


GONE = {
    "votes": ("sites vote once or not at all", "non_voters: the sites that do not vote"),
    "vote_layout": ("sites vote once or not at all", "voters and quorum as numbers"),
    "shares": ("a share is one for all clients", "it as a parameter of the protocol"),
    "at": ("an operation goes to the nearest replica", "no such key, and replicas that all vote"),
}
"""Keys of files of older versions of this package: why they are refused, and what to write."""


def check_recomputed(
    document: Document, expected: Mapping[str, object], whose: str, *, defaults: bool = False
) -> None:
    """Refuse a table of a file that holds anything but recomputed values, linear in the table.

    `expected` has every key that may be there; a missing one, at any depth with `defaults`, stands
    for a default. Numbers may differ by a relative 1e-9. Rows of a ranking whose numbers agree may
    have changed places: two machines may round the values of two equals differently.
    """
    document.only(expected, GONE)
    for key, value in expected.items():
        if key not in document.values:
            continue
        different = _difference(document.values[key], value, defaults=defaults)
        if different is not None:
            path, message, found, recomputed = different
            words = message.format(whose)
            raise refused(document.source, document.key(key) + path, words, found, repr(recomputed))


def _difference(found: object, expected: object, *, defaults: bool = False) -> _Difference | None:
    """Return the first place where two JSON-like values differ, or None."""
    inner: list[tuple[str, object, object]] = []
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in (*expected, *found):
            if key in found and key not in expected:
                return f".{key}", "unknown key", found[key], None
            if key in found:
                inner.append((f".{key}", found[key], expected[key]))
            elif not defaults:
                return f".{key}", "missing key", None, expected[key]
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = zip(found, expected, strict=True)
        if not _swapped(found, expected):
            inner = [(f"[{i}]", one, other) for i, (one, other) in enumerate(pairs)]
    elif isinstance(expected, (int, float)) and not isinstance(expected, bool):
        number = isinstance(found, (int, float)) and not isinstance(found, bool)
        if not number or not math.isclose(found, expected, rel_tol=_AGREE, abs_tol=_AGREE):  # type: ignore[arg-type]  # a number
            return "", "not the value of {}", found, expected
    elif type(found) is not type(expected) or found != expected:
        return "", "not the value of {}", found, expected
    for place, one, other in inner:
        different = _difference(one, other, defaults=defaults)
        if different is not None:
            return (place + different[0], *different[1:])
    return None


def _swapped(found: Sequence[object], expected: Sequence[object]) -> bool:
    """Return whether two rankings have the same rows, and differ only in the order of ties."""
    rows = [*found, *expected]
    if not all(isinstance(row, dict) and isinstance(row.get("leader"), str) for row in rows):
        return False

    def order(row: object) -> str:
        return str(row["leader"]) if isinstance(row, dict) else ""

    def numbers(row: object) -> dict[str, object]:
        items = row.items() if isinstance(row, dict) else ()
        return {key: value for key, value in items if not isinstance(value, str)}

    same = zip(sorted(found, key=order), sorted(expected, key=order), strict=True)
    places = zip(map(numbers, found), map(numbers, expected), strict=True)
    return not any(_difference(a, b) for a, b in same) and not any(
        _difference(a, b) for a, b in places
    )

"""Values of a state file as they were written, or an error that names table and column.

A state file is a database that other programs may open and change. Every value that is read from it
is checked here before it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import numpy as np

from placement.errors import InputError
from placement.io.formats.document import parse_json
from placement.model.configuration import Configuration
from placement.overtime.decayed_counts import DecayedCounts

__all__ = [
    "refused",
    "stored_configuration",
    "stored_demand",
    "stored_json",
    "stored_recommendation",
    "stored_text",
    "stored_whole",
]

_Path = str | os.PathLike[str]

_TEXTS = ("interval", "action")
_NUMBERS = ("now_ms", "then_ms")


def refused(path: _Path, field: str, value: object, expected: str) -> InputError:
    """Return the error for a value that no watch wrote."""
    return InputError(
        "not a state file of a watch",
        source=os.fspath(path),
        field=field,
        value=value,
        expected=f"{expected}; restore the file, or begin a new state file",
    )


def stored_whole(
    value: object, path: _Path, field: str, *, least: int = 0, most: int = 2**63 - 1
) -> int:
    """Return a whole number from `least` to `most`, or raise InputError."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise refused(path, field, value, f"a whole number from {least} to {most}")
    return value


def stored_text(value: object, path: _Path, field: str) -> str:
    """Return a text, or raise InputError."""
    if not isinstance(value, str):
        raise refused(path, field, value, "a text")
    return value


def stored_json(value: object, path: _Path, field: str) -> object:
    """Return the value of a JSON text, or raise InputError."""
    text = stored_text(value, path, field)
    try:
        return parse_json(text, field)
    except InputError as error:  # broken, a number out of range, a key twice, nested too deeply
        raise refused(path, field, text[:60], f"JSON ({error})") from None


def stored_configuration(value: object, path: _Path, sites: int) -> Configuration | None:
    """Return the present configuration: [leader, [voters], [replicas]], or None for no value.

    Raises
    ------
    InputError
        For anything but site indices below `sites`, each once, with the leader among the voters and
        these among the replicas.
    """
    field = "state.current"
    if value is None:
        return None
    found = stored_json(value, path, field)

    def bad() -> InputError:
        expected = (
            f"[leader, [voters], [replicas]] of the {sites} sites, leader ∈ voters ⊆ replicas"
        )
        return refused(path, field, value, expected)

    if not isinstance(found, list) or len(found) != 3:
        raise bad()
    leader, voters, replicas = found
    if not isinstance(voters, list) or not isinstance(replicas, list):
        raise bad()
    for site in (leader, *voters, *replicas):
        if isinstance(site, bool) or not isinstance(site, int) or not 0 <= site < sites:
            raise bad()
    if not {leader} <= set(voters) <= set(replicas):
        raise bad()
    if len(set(voters)) < len(voters) or len(set(replicas)) < len(replicas):
        raise bad()
    return Configuration.of(leader, voters, replicas)


def stored_demand(
    value: object, path: _Path, empty: DecayedCounts, intervals: int
) -> DecayedCounts:
    """Return the decayed counts after some intervals.

    Parameters
    ----------
    value
        JSON text of :meth:`DecayedCounts.to_json`.
    path
        The state file, for messages.
    empty
        The state before the first interval, which gives decay and shape.
    intervals
        How many intervals were used.

    Raises
    ------
    InputError
        For another decay, shape, number of intervals or weight, and counts that are no finite
        numbers >= 0.
    """
    field = "state.demand"
    found = stored_json(value, path, field)
    if not isinstance(found, Mapping):
        raise refused(path, field, found, "decayed counts")
    try:
        demand = DecayedCounts.from_json(found)
    except (InputError, OverflowError) as error:
        raise refused(path, field, found, f"decayed counts ({error})") from None
    weight = 0.0
    for _ in range(intervals):
        weight = weight / empty.decay.factor + 1.0
    for name, there, due in (
        ("decay", demand.decay.factor, empty.decay.factor),
        ("shape", demand.counts.shape, empty.counts.shape),
        ("intervals", demand.intervals, intervals),
    ):
        if there != due:
            raise refused(path, f"{field}.{name}", there, str(due))
    if not np.isclose(demand.weight, weight, rtol=1e-6):
        raise refused(
            path, f"{field}.weight", demand.weight, f"{weight:g} of {intervals} intervals"
        )
    return demand


def stored_recommendation(value: object, path: _Path, sequence: object) -> Mapping[str, object]:
    """Return the document of a recommendation as far as it is shown.

    Raises
    ------
    InputError
        For JSON of another form.
    """
    field = f"recommendation {sequence}"
    found = stored_json(value, path, field)
    if not isinstance(found, dict):
        raise refused(path, field, found, "a document of a recommendation")

    def check(name: str, kind: Callable[[object], bool], expected: str) -> None:
        if name not in found or not kind(found[name]):
            raise refused(path, f"{field}: {name}", found.get(name), expected)

    for name in _TEXTS:
        check(name, lambda x: isinstance(x, str), "a text")
    check("leader", lambda x: x is None or isinstance(x, str), "the name of a site, or null")
    for name in _NUMBERS:
        check(name, lambda x: x is None or _is_number(x), "a number, or null")
    check("reasons", lambda x: _all(x, lambda y: isinstance(y, str)), "a list of sentences")
    check(
        "steps",
        lambda x: _all(x, lambda y: isinstance(y, dict) and isinstance(y.get("text"), str)),
        "a list of steps",
    )
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _all(values: object, kind: Callable[[object], bool]) -> bool:
    return isinstance(values, list) and all(map(kind, values))

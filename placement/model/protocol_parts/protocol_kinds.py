"""A protocol for each kind of operation: read from text, and refused where two contradict.

All operations belong to one store, so that their protocols share the leader, the lease holders and
the quorum. A path of a protocol with a leader may ask it or not; no two protocols without a leader
order operations alike:

- Paths that ask other members ask the leader, or the members of one protocol without a leader.
- Strong reads that rely on writes that wait for the reader go with writes of the same protocol.
- Strong reads of a majority go with writes that wait for a quorum.
- Parts of the same protocol differ in shares alone, and the size of a quorum or the number of lease
  holders belongs to the writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from placement.errors import InputError
from placement.model.waits import Wait
from placement.support.checks import mapping

if TYPE_CHECKING:
    from placement.model.protocols import Protocol

__all__ = ["KINDS", "check_kinds", "kinds_given", "names_kinds"]

KINDS = ("weak_read", "bounded_read", "strong_read", "write", "multi_write")
"""Kinds of operations that have a path, in the order in which their protocols are named."""

_ENOUGH_VOTERS = 3
"""Paths with a leader have the same trips and clauses for any number of voters."""


def names_kinds(given: str) -> bool:
    """Return whether a text names a protocol for each kind, and not one for all.

    Examples
    --------
    >>> names_kinds("write=leases:holders=3"), names_kinds("leases:holders=3")
    (True, False)
    """
    return ";" in given or "=" in given.partition(":")[0]


def kinds_given(
    given: str | Mapping[str, Protocol | str],
) -> Iterator[tuple[str, Protocol | str]]:
    """Yield kind and protocol, in the order of :data:`KINDS`.

    Raises
    ------
    InputError
        For what is neither such a text nor such a mapping, an unknown kind, and one named twice.
    """
    found: dict[str, Protocol | str] = {}
    if isinstance(given, str):
        for part in filter(None, map(str.strip, given.split(";"))):
            kind, equals, one = part.partition("=")
            kind = kind.strip()
            if not equals or ":" in kind or kind in found:
                raise InputError(
                    "not a protocol of a kind of operation",
                    field="protocol",
                    value=part,
                    expected="KIND=NAME:PARAMETER=VALUE,…, each kind once, or one protocol for all",
                )
            found[kind] = one.strip()
    else:
        mapping(given, "protocol", "kind of operation -> protocol")
        found.update(given)
    for kind in found:
        if kind not in KINDS:
            raise InputError(
                "unknown kind of operation",
                field="protocol",
                value=kind,
                expected="one of " + ", ".join(KINDS),
            )
    if not found:
        raise InputError(
            "no protocol", field="protocol", value=given, expected="a protocol for some kind"
        )
    return ((kind, found[kind]) for kind in KINDS if kind in found)


def check_kinds(kinds: Mapping[str, Protocol]) -> None:
    """Refuse protocols of kinds that contradict each other; see the module.

    Raises
    ------
    InputError
        Naming two kinds, their protocols and a way out.
    """
    for kind, one in kinds.items():
        if one.kinds:
            raise InputError(
                "a protocol for each kind within a kind",
                field=f"protocol[{kind!r}]",
                value=str(one),
                expected="one protocol",
            )
    _check_orders(kinds)
    _check_parameters(kinds)
    _check_reads(kinds)


def _contradiction(kinds: Mapping[str, Protocol], why: str, expected: str) -> InputError:
    value = "; ".join(f"{kind}={one}" for kind, one in kinds.items())
    return InputError(why, field="protocol", value=value, expected=expected)


def _check_orders(kinds: Mapping[str, Protocol]) -> None:
    """Refuse paths that ask a leader beside some without one, and two protocols without."""
    first: tuple[str, str, Protocol] | None = None
    for kind, one in kinds.items():
        asked = _asked(kind, one)
        if asked is None:
            continue
        if first is None:
            first = (asked, kind, one)
        elif first[0] != asked:
            leaderless = one if one.family.one_group_only else first[2]
            raise _contradiction(
                kinds,
                f"{first[1]} by {first[2].name} and {kind} by {one.name} contradict each other: "
                f"{leaderless.name} orders operations without a leader, and the other one does not "
                "take part",
                f"{first[1]} and {kind} under the same protocol, or both under protocols with a "
                "leader",
            )


def _asked(kind: str, one: Protocol) -> str | None:
    """Return who orders the operations of a kind; None: the nearest replica answers alone."""
    family = one.family
    if family.one_group_only:
        return None if kind == "weak_read" else family.name
    shares = {
        key: 0.5 for key, parameter in family.all_parameters.items() if parameter.kind == "share"
    }
    path = family.paths({**one.parameters, **shares}, _ENOUGH_VOTERS)[kind]
    alone = not any(path.trips[1:]) and not path.waits
    return None if alone else "leader"


def _check_parameters(kinds: Mapping[str, Protocol]) -> None:
    """Refuse parts of the same protocol that differ in more than shares, and idle parameters."""
    for kind, one in kinds.items():
        family = one.family
        for other_kind, other in kinds.items():
            if other.name != one.name:
                continue
            mine, theirs = family.values(one.parameters), family.values(other.parameters)
            for key, parameter in family.parameters.items():
                if parameter.kind != "share" and mine.get(key) != theirs.get(key):
                    raise _contradiction(
                        kinds,
                        f"{kind} and {other_kind} differ in {key}, which is one of the store",
                        f"the same {key} ({parameter.meaning}) for both",
                    )
        idle = next((key for key in ("quorum", "holders") if key in one.parameters), None)
        write = kinds.get("write", kinds.get("multi_write"))
        if idle is not None and (write is None or write.name != one.name):
            raise _contradiction(
                kinds,
                f"{idle} of {kind} says what writes wait for, and they have another protocol",
                f"write={one}, or {kind} without it",
            )
    write, multi = kinds.get("write"), kinds.get("multi_write")
    if write is not None and multi is not None and write.name != multi.name:
        for one in (write, multi):
            if "quorum" in one.parameters or "holders" in one.parameters:
                raise _contradiction(
                    kinds,
                    "write and multi_write wait for different members",
                    f"write and multi_write under {one}, or without parameters of their own",
                )


def _check_reads(kinds: Mapping[str, Protocol]) -> None:
    """Refuse strong reads that may miss the writes of another protocol."""
    strong = kinds.get("strong_read")
    if strong is None:
        return
    writes = {kind: kinds[kind] for kind in ("write", "multi_write") if kind in kinds}
    if strong.family.own_writes:
        odd = next((kind for kind, one in writes.items() if one.name != strong.name), None)
        if odd is not None or "write" not in writes:
            raise _contradiction(
                kinds,
                f"strong_read by {strong.name} relies on writes that wait for the replica that "
                f"reads, and those of {odd or 'write'} do not",
                f"{odd or 'write'}={strong}, or a strong_read that asks the leader, such as raft",
            )
    waits = strong.family.paths(strong.parameters, _ENOUGH_VOTERS)["strong_read"].waits
    if strong.family.one_group_only or not any(
        Wait(wait).origin == "client" and Wait(wait).clauses[0].role == "voters" for wait in waits
    ):
        return
    for kind, one in writes.items():
        path = one.family.paths(one.parameters, _ENOUGH_VOTERS)[kind]
        clauses = [clause for wait in path.waits for clause in Wait(wait).clauses]
        if not any(
            clause.need in ("quorum", "majority") and clause.role == "voters" and not clause.scope
            for clause in clauses
        ):
            raise _contradiction(
                kinds,
                f"strong_read by {strong.name} asks a majority of the voters, and {kind} by "
                f"{one.name} does not wait for a quorum of them",
                f"a {kind} that waits for a quorum, such as raft, or a strong_read that asks the "
                "leader",
            )

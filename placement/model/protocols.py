"""Commit protocols of databases: what each kind of operation waits for, in trips and waits.

A protocol rewrites the operations of an instance by their kind, and leaves the demand alone. An
operation is of the kind that its four coefficients say:

    weak_read (α = 1) · bounded_read (α = β = 1) · strong_read (γ = 1) · write (γ = δ = 1) ·
    multi_write (γ = 1, δ = 2) · other

An operation of another kind keeps its row. Common to all: no contention but for the shares that a
user gives, all members are asked at once, servers take no time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from placement.errors import InputError
from placement.model.operations import Operation

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.model.protocol_families import Path, ProtocolFamily

__all__ = ["Protocol", "operation_path", "operations_under"]


_PATH_OF: dict[tuple[float, float, float, float], str] = {
    (1, 0, 0, 0): "weak_read",
    (1, 1, 0, 0): "bounded_read",
    (0, 0, 1, 0): "strong_read",
    (0, 0, 1, 1): "write",
    (0, 0, 1, 2): "multi_write",
}


def operation_path(operation: Operation) -> str:
    """Return the kind of an operation, which decides its path; "other" keeps its row.

    Examples
    --------
    >>> operation_path(Operation("audit", direct=1, quorum=1))
    'write'
    >>> operation_path(Operation("mostly fresh read", near=1, relay=0.3))
    'other'
    """
    if operation.has_waits:
        return "other"
    if operation.name == "relayed_strong_read":
        return "strong_read"
    path = _PATH_OF.get(operation.coefficients, "other")
    return "strong_read" if path == "write" and operation.kind == "read" else path


@dataclass(frozen=True)
class Protocol:
    """A protocol with its parameters.

    Parameters
    ----------
    name
        One that ``placement protocols`` lists; or the whole as text, ``NAME:PARAMETER=VALUE,…``.
    parameters
        Those that differ from the default.

    Raises
    ------
    InputError
        For an unknown name or parameter, and for a value out of its range.

    Examples
    --------
    >>> Protocol("epaxos:slow=0.05")
    Protocol('epaxos:slow=0.05')
    >>> Protocol("raft").rewritten([Operation("put", direct=1, quorum=1)], voters=3, quorum=2)
    (Operation(name='put', near=0.0, relay=0.0, direct=1.0, quorum=1.0, kind='write'),)
    """

    name: str
    parameters: Mapping[str, float | str] = dataclasses.field(default_factory=dict)

    def __init__(self, name: str, parameters: Mapping[str, float | str] | None = None) -> None:
        from placement.model.protocol_families import read_protocol

        known, given = read_protocol(name, dict(parameters or {}))
        object.__setattr__(self, "name", known)
        object.__setattr__(self, "parameters", given)

    @cached_property
    def family(self) -> ProtocolFamily:
        """Return the family: the common part of all protocols of this name."""
        from placement.model.protocol_families import family_of

        return family_of(self.name)

    def __str__(self) -> str:
        given = ",".join(
            f"{key}={value if isinstance(value, str) else repr(value).removesuffix('.0')}"
            for key, value in self.parameters.items()
        )
        return f"{self.name}:{given}" if given else self.name

    def __repr__(self) -> str:
        return f"Protocol({str(self)!r})"

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[object, ...]:
        # The read-only mapping can't be pickled: the protocol is read again from its parts.
        return Protocol, (self.name, dict(self.parameters))

    @property
    def has_quorum(self) -> bool:
        """Return whether a parameter says how many votes a commit waits for."""
        return "quorum" in self.parameters

    def quorum(self, voters: int) -> int | None:
        """Return the votes a commit waits for, where a parameter says so; else None."""
        if not self.has_quorum:
            return None
        given = float(self.parameters["quorum"])
        if given > voters:
            raise InputError(
                "more votes than voters",
                field="protocol",
                value=str(self),
                expected=f"quorum <= {voters}",
            )
        return int(given)

    def paths(self, voters: int) -> Mapping[str, Path]:
        """Return the path of each kind of operation.

        Parameters
        ----------
        voters
            |V| of the question.

        Raises
        ------
        InputError
            For a parameter that this number does not allow.
        """
        return self.family.paths(self.parameters, voters)

    def rewritten(
        self, operations: Sequence[Operation], *, voters: int, quorum: int
    ) -> tuple[Operation, ...]:
        """Return the operations under this protocol, names and kinds unchanged.

        Parameters
        ----------
        operations
            Of an instance.
        voters, quorum
            |V| and m of the question.

        Raises
        ------
        InputError
            For a parameter that these numbers do not allow.
        """
        paths = self.paths(voters)
        found = (_on_path(one, paths.get(operation_path(one))) for one in operations)
        return tuple(_votes_as_coefficients(one, voters, quorum) for one in found)

    def needs_groups(self, operations: Sequence[Operation]) -> tuple[str, ...]:
        """Name the multi-group transactions that have no path: the groups have no leader."""
        if not self.family.one_group_only or "multi" in self.parameters:
            return ()
        return tuple(each.name for each in operations if operation_path(each) == "multi_write")

    def warnings(self, replicas: int) -> tuple[str, ...]:
        """Return warnings about unusual parameters, as sentences."""
        return self.family.warnings(self.parameters, replicas)

    def notes(self, operations: Sequence[Operation], replicas: int) -> tuple[str, ...]:
        """Return notes about the protocol for the reader of a plan, as sentences."""
        said = list(self.warnings(replicas))
        kept = [one.name for one in operations if operation_path(one) == "other"]
        if kept:
            said.append(
                f"the protocol {self.name} has no path for {', '.join(kept)}: kept as given"
            )
        return tuple(said)


def _on_path(operation: Operation, path: Path | None) -> Operation:
    """Return an operation on a path; None: as it is."""
    if path is None:
        return operation
    near, relay, direct = path.trips
    return Operation(
        operation.name,
        near=near,
        relay=relay,
        direct=direct,
        kind=operation.kind,
        waits=path.waits,
        constant=path.constant,
    )


def _votes_as_coefficients(operation: Operation, voters: int, quorum: int) -> Operation:
    """Return the operation with waits of the leader for m votes as its coefficient δ.

    The score is the same, and methods that know the four coefficients alone can take it.
    """
    rest, rounds = [], operation.quorum
    for wait in operation.waits:
        assert not isinstance(wait, str)  # text was read when the operation was made
        clause = wait.clauses[0]
        plain = len(wait.clauses) == 1 and clause.role == "voters" and not clause.scope
        need = {"quorum": quorum, "majority": voters // 2 + 1, "all": voters}.get(
            str(clause.need), clause.need
        )
        if wait.origin == "leader" and plain and need == quorum:
            rounds += wait.times
        elif wait.times > 0:
            rest.append(wait)
    if len(rest) == len(operation.waits):
        return operation
    return dataclasses.replace(operation, quorum=rounds, waits=tuple(rest))


def operations_under(
    protocol: object, instance: Instance, voters: int, quorum: int
) -> tuple[Operation, ...]:
    """Return operations with the paths and waits of a question; names are unchanged.

    Parameters
    ----------
    protocol
        Of the question; anything but a :class:`Protocol` is none.
    instance
        With its operations.
    voters, quorum
        |V| and m of the question.
    """
    given = instance.operations
    if isinstance(protocol, Protocol):
        return _rewritten(protocol, given, voters, quorum)
    if not any(operation.waits for operation in given):
        return given
    return tuple(_votes_as_coefficients(one, voters, quorum) for one in given)


@lru_cache(maxsize=64)  # every problem of a sweep asks for the operations of few protocols
def _rewritten(
    protocol: Protocol, given: tuple[Operation, ...], voters: int, quorum: int
) -> tuple[Operation, ...]:
    return protocol.rewritten(given, voters=voters, quorum=quorum)

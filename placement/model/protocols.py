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
from types import MappingProxyType
from typing import TYPE_CHECKING

from placement.errors import InputError
from placement.model.operations import Operation
from placement.model.protocol_parts.client_shares import (
    ClientPaths,
    mixture_weights,
    shares_by_client,
    shares_of_paths,
)
from placement.model.protocol_parts.handled_at import handled_at_replicas
from placement.model.protocol_parts.protocol_kinds import (
    KINDS,
    check_kinds,
    kinds_given,
    names_kinds,
)
from placement.model.waits import Wait
from placement.support.checks import text

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.model.protocol_parts.protocol_family import Path, ProtocolFamily

__all__ = ["Protocol", "asks_for_quorum", "operation_path", "operations_under"]


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
    """A protocol with its parameters, or a protocol for each kind of operation.

    Parameters
    ----------
    name
        One that ``placement protocols`` lists; or the whole as text, ``NAME:PARAMETER=VALUE,…``.
        With a protocol for each kind a mapping of kind to protocol, or its text,
        ``KIND=NAME:PARAMETER=VALUE,…; KIND=…``.
    parameters
        Those that differ from the default.

    Attributes
    ----------
    kinds
        The protocol of each kind that was named; empty where one protocol is for all. An operation
        of a kind that is not named keeps its row, and a multi-group transaction follows ``write``.

    Raises
    ------
    InputError
        For an unknown name, kind or parameter, for a value out of its range, and for protocols that
        contradict each other (:mod:`placement.model.protocol_parts.protocol_kinds`).

    Examples
    --------
    >>> Protocol("epaxos:slow=0.05")
    Protocol('epaxos:slow=0.05')
    >>> Protocol({"weak_read": "follower-reads:fresh=0.7", "write": "leases"})
    Protocol('weak_read=follower-reads:fresh=0.7; write=leases')
    >>> Protocol("raft").rewritten([Operation("put", direct=1, quorum=1)], voters=3, quorum=2)
    (Operation(name='put', near=0.0, relay=0.0, direct=1.0, quorum=1.0, kind='write'),)
    """

    name: str
    parameters: Mapping[str, float | str] = dataclasses.field(default_factory=dict)
    kinds: Mapping[str, Protocol] = dataclasses.field(default_factory=dict)

    def __init__(
        self,
        name: str | Mapping[str, Protocol | str],
        parameters: Mapping[str, float | str] | None = None,
    ) -> None:
        kinds: Mapping[str, Protocol] = MappingProxyType({})
        given: Mapping[str, float | str] = dict(parameters or {})
        if not isinstance(name, str) or names_kinds(name):
            if given:
                raise InputError(
                    "parameters beside a protocol for each kind",
                    field="parameters",
                    value=given,
                    expected="them in the text of a kind, as in {'write': 'leases:holders=3'}",
                )
            kinds = MappingProxyType(
                {
                    kind: one if isinstance(one, Protocol) else Protocol(text(one, kind))
                    for kind, one in kinds_given(name)
                }
            )
            check_kinds(kinds)
            name = "; ".join(f"{kind}={one}" for kind, one in kinds.items())
        else:
            from placement.model.protocol_families import read_protocol

            name, given = read_protocol(name, dict(given))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "parameters", given)
        object.__setattr__(self, "kinds", kinds)

    @cached_property
    def family(self) -> ProtocolFamily:
        """Return the family: the common part of all protocols of this name.

        Raises
        ------
        InputError
            Where each kind has a protocol, and so no name is that of all.
        """
        from placement.model.protocol_families import family_of

        return family_of(self.name)

    def part(self, kind: str) -> Protocol | None:
        """Return the protocol of a kind of operation; None: its operations keep their rows."""
        if not self.kinds:
            return self
        return self.kinds.get(kind, self.kinds.get("write") if kind == "multi_write" else None)

    @property
    def parts(self) -> tuple[Protocol, ...]:
        """Return the different protocols of the kinds, in the order of the kinds."""
        return tuple(dict.fromkeys(self.kinds.values())) or (self,)

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
        # The read-only mappings can't be pickled: the protocol is read again from its parts.
        return Protocol, (dict(self.kinds),) if self.kinds else (self.name, dict(self.parameters))

    @property
    def has_quorum(self) -> bool:
        """Return whether a parameter says how many votes a commit waits for."""
        return any("quorum" in one.parameters for one in self.parts)

    def quorum(self, voters: int) -> int | None:
        """Return the votes a commit waits for, where a parameter says so; else None."""
        given = next(
            (one.parameters["quorum"] for one in self.parts if "quorum" in one.parameters), None
        )
        if given is None:
            return None
        if float(given) > voters:
            raise InputError(
                "more votes than voters",
                field="protocol",
                value=str(self),
                expected=f"quorum <= {voters}",
            )
        return int(float(given))

    def lease_holders(self, voters: int) -> int | None:
        """Return how many replicas hold a lease; None: all of them, or there are no leases.

        Parameters
        ----------
        voters
            Voters with a replica, all of which hold a lease where :attr:`voters_hold_leases`.
        """
        given = self._holders
        if given == "replicas":
            return None
        return voters if given == "voters" else int(float(given))

    @property
    def voters_hold_leases(self) -> bool:
        """Return whether the lease holders are the voters, and not chosen apart from them."""
        return self._holders == "voters"

    @property
    def has_leases(self) -> bool:
        """Return whether replicas hold leases, all of them or some."""
        return any("holders" in one.family.parameters for one in self.parts)

    @property
    def _holders(self) -> float | str:
        """Return the parameter `holders`, which all parts with leases have in common."""
        found = (one.parameters["holders"] for one in self.parts if "holders" in one.parameters)
        return next(found, "replicas")

    @property
    def tunes_lead(self) -> bool:
        """Return whether the lead of a time stamp depends on the farthest replica."""
        return any(one.parameters.get("rho") == "auto" for one in self.parts)

    def share(self, kind: str) -> tuple[str, float] | None:
        """Return the parameter of a kind that is a share, and its value; None: there is none."""
        one = self.part(kind)
        if one is None:
            return None
        values = one.family.values(one.parameters)
        names = (key for key, each in one.family.parameters.items() if each.kind == "share")
        name = next(names, None)  # no protocol has two
        return None if name is None else (name, float(values[name]))

    def with_shares(self, shares: Mapping[str, float]) -> Protocol:
        """Return the protocol with other shares, where it has these parameters."""
        if self.kinds:
            return Protocol({kind: one.with_shares(shares) for kind, one in self.kinds.items()})
        known = {key: value for key, value in shares.items() if key in self.family.parameters}
        return Protocol(self.name, {**self.parameters, **known})

    def fast_quorum(self, voters: int) -> int | None:
        """Return the votes of the fast quorum; None: the protocol has none.

        Only the protocol that commits the writes may have one; see
        :mod:`placement.model.protocol_parts.protocol_kinds`.
        """
        one = self.part("write") or self.part("multi_write")
        return None if one is None else one.family.fast_quorum(one.parameters, voters)

    def paths(self, voters: int, *, slow: bool = False) -> Mapping[str, Path]:
        """Return the path of each kind of operation that has one.

        Parameters
        ----------
        voters
            |V| of the question.
        slow
            Whether no fast quorum is left, in a protocol that has one.

        Raises
        ------
        InputError
            For a parameter that this number does not allow.
        """
        found: dict[str, Path] = {}
        for kind in KINDS:
            one = self.part(kind)
            if one is not None:
                family = one.family
                make = family.slow_paths if slow and family.fast is not None else family.paths
                found[kind] = make(one.parameters, voters)[kind]
        return found

    def rewritten(
        self, operations: Sequence[Operation], *, voters: int, quorum: int, slow: bool = False
    ) -> tuple[Operation, ...]:
        """Return the operations under this protocol, names and kinds unchanged.

        Parameters
        ----------
        operations
            Of an instance.
        voters, quorum
            |V| and m of the question.
        slow
            Whether no fast quorum is left, in a protocol that has one.

        Raises
        ------
        InputError
            For a parameter that these numbers do not allow.
        """
        paths = self.paths(voters, slow=slow)
        found = (
            _on_path(handled_at_replicas(one, self), paths.get(operation_path(one)))
            for one in operations
        )
        return tuple(_votes_as_coefficients(one, voters, quorum) for one in found)

    def client_paths(
        self, instance: Instance, *, voters: int, quorum: int, slow: bool = False
    ) -> ClientPaths | None:
        """Return the operations where shares differ by client; None: they are :meth:`rewritten`.

        Parameters
        ----------
        instance
            With its operations and its table of shares. A client that the table does not name has
            the share that is a parameter.
        voters, quorum, slow
            As of :meth:`rewritten`.

        Raises
        ------
        InputError
            For a parameter that these numbers do not allow.
        """
        named = {parameter for _, parameter, _ in instance.shares}
        kinds = [operation_path(one) for one in instance.operations]
        shares = {kind: self.share(kind) for kind in kinds}
        if not any(share is not None and share[0] in named for share in shares.values()):
            return None
        operations: list[Operation] = []
        of: list[int] = []
        weights: list[tuple[float, ...]] = []
        taken = {one.name for one in instance.operations}
        for place, (operation, kind) in enumerate(zip(instance.operations, kinds, strict=True)):
            name, usual = shares[kind] or ("", 0.0)
            values = shares_by_client(instance.shares, instance.clients, name, usual)

            def under(share: float, one: Operation = operation, name: str = name) -> Operation:
                protocol = self.with_shares({name: share})
                return protocol.rewritten([one], voters=voters, quorum=quorum, slow=slow)[0]

            alike = bool((values == values[0]).all())
            first, last = (under(float(values[0])),) * 2 if alike else (under(0.0), under(1.0))
            if first == last:
                operations.append(first)
                of.append(place)
                weights.append(())
                continue
            knots = shares_of_paths(first, last)
            for knot, part in zip(knots, mixture_weights(values, knots), strict=True):
                unique = f"{operation.name} ({name} {knot:g})" if knot else operation.name
                while knot and unique in taken:
                    unique += "'"
                taken.add(unique)
                operations.append(dataclasses.replace(under(knot), name=unique))
                of.append(place)
                weights.append(tuple(part.tolist()))
        return ClientPaths(tuple(operations), tuple(of), tuple(weights))

    def needs_groups(self, operations: Sequence[Operation]) -> tuple[str, ...]:
        """Name the multi-group transactions that have no path: the groups have no leader."""
        one = self.part("multi_write")
        if one is None or not one.family.one_group_only or "multi" in one.parameters:
            return ()
        return tuple(each.name for each in operations if operation_path(each) == "multi_write")

    def needs_leader(self, operations: Sequence[Operation]) -> tuple[str, ...]:
        """Name the operations that keep a row with a leader beside writes without one."""
        one = self.part("write") or self.part("multi_write")
        if one is None or not one.family.one_group_only:
            return ()
        unnamed = [kind for kind in KINDS if self.part(kind) is None]
        return tuple(
            each.name
            for each in operations
            if operation_path(each) in unnamed and any(each.coefficients[1:])
        )

    def warnings(self, replicas: int) -> tuple[str, ...]:
        """Return warnings about unusual parameters, as sentences."""
        return tuple(
            dict.fromkeys(
                warning
                for one in self.parts
                for warning in one.family.warnings(one.parameters, replicas)
            )
        )

    def notes(self, operations: Sequence[Operation], replicas: int) -> tuple[str, ...]:
        """Return notes about the protocol for the reader of a plan, as sentences."""
        said = list(self.warnings(replicas))
        kept = [one.name for one in operations if operation_path(one) == "other"]
        if kept:
            said.append(
                f"the protocol {self.name} has no path for {', '.join(kept)}: kept as given"
            )
        unnamed = [one.name for one in operations if self.part(operation_path(one)) is None]
        unnamed = [name for name in unnamed if name not in kept]
        if unnamed:
            said.append(f"no protocol is given for {', '.join(unnamed)}: kept as given")
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
    """Return operations with the paths and waits of a question.

    Names are unchanged, but for second paths where shares differ by client.

    Parameters
    ----------
    protocol
        Of the question; anything but a :class:`Protocol` is none.
    instance
        With its operations and its shares of clients.
    voters, quorum
        |V| and m of the question.
    """
    given = instance.operations
    if isinstance(protocol, Protocol):
        if instance.shares:
            paths = protocol.client_paths(instance, voters=voters, quorum=quorum)
            if paths is not None:
                return paths.operations
        return _rewritten(protocol, given, voters, quorum)
    if not any(operation.waits or operation.at != "replicas" for operation in given):
        return given
    here = (handled_at_replicas(one, None) for one in given)
    return tuple(_votes_as_coefficients(one, voters, quorum) for one in here)


@lru_cache(maxsize=64)  # every problem of a sweep asks for the operations of few protocols
def _rewritten(
    protocol: Protocol, given: tuple[Operation, ...], voters: int, quorum: int
) -> tuple[Operation, ...]:
    return protocol.rewritten(given, voters=voters, quorum=quorum)


def asks_for_quorum(operations: Sequence[Operation]) -> bool:
    """Return whether a service with these operations stops when fewer than m voters are left.

    That is so where an operation waits for a quorum, where one waits for all members of a role
    (without a quorum nobody takes lost members out of it), and where nothing is waited for.
    """
    waits = [wait for one in operations for wait in one.waits if isinstance(wait, Wait)]
    needs = {clause.need for wait in waits for clause in wait.clauses}
    return not waits or bool(needs & {"quorum", "all"}) or any(one.quorum for one in operations)

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path as File
from types import MappingProxyType
from typing import TYPE_CHECKING

from placement.errors import InputError, nearest
from placement.model.operations import Operation
from placement.support.checks import number, text, whole

if TYPE_CHECKING:
    from placement.model.instance import Instance

_PATH_OF: dict[tuple[float, float, float, float], str] = {
    (1, 0, 0, 0): "weak_read",
    (1, 1, 0, 0): "bounded_read",
    (0, 0, 1, 0): "strong_read",
    (0, 0, 1, 1): "write",
    (0, 0, 1, 2): "multi_write",
}


def operation_path(operation: Operation) -> str:
    """Return the kind of an operation, which decides its path; "other" keeps its row."""
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
        One of ``placement show protocols``; or the whole as text, ``NAME:PARAMETER=VALUE,…``.
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

        known, given = read_protocol(name, dict(parameters or {}))
        object.__setattr__(self, "name", known)
        object.__setattr__(self, "parameters", given)

    @cached_property
    def family(self) -> ProtocolFamily:
        """Return the family: the common part of all protocols of this name."""
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
            words = "more votes than voters"
            expected = f"quorum <= {voters}"
            raise InputError(words, field="protocol", value=str(self), expected=expected)
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
    """Return operations with the paths and waits of a protocol; names are unchanged."""
    given = instance.operations
    if isinstance(protocol, Protocol):
        return _rewritten(protocol, given, voters, quorum)
    return tuple(_votes_as_coefficients(one, voters, quorum) for one in given)


@lru_cache(maxsize=64)  # every problem of a sweep asks for the operations of few protocols
def _rewritten(
    protocol: Protocol, given: tuple[Operation, ...], voters: int, quorum: int
) -> tuple[Operation, ...]:
    return protocol.rewritten(given, voters=voters, quorum=quorum)


# The protocols that the package knows: their paths as formulas, their assumptions, their sources

Values = Mapping[str, float | str]
"""Parameters by name."""


@dataclass(frozen=True, slots=True)
class Path:
    """Trips (α, β, γ), waits in words, and constant ms of one kind of operation."""

    trips: tuple[float, float, float]
    waits: tuple[str, ...] = ()
    constant: float = 0.0

    def __str__(self) -> str:
        words = ("to the nearest replica", "from there to the leader", "to the leader")
        parts = [
            (f"{count:g} × " if count != 1 else "") + word
            for count, word in zip(self.trips, words, strict=True)
            if count
        ]
        parts += [f"[{wait}]" for wait in self.waits]
        parts += [f"{self.constant:g} ms"] * bool(self.constant)
        return " + ".join(parts) or "0"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its default (None: it must be given, or is absent), meaning and range.

    `kind` is "share" (0 to 1), "number" (>= 0), "whole" (>= 1), "level" (a failure-domain level) or
    "choice" (one of `choices`).
    """

    default: float | str | None
    meaning: str
    kind: str = "share"
    required: bool = False
    choices: tuple[str, ...] = ()

    def read(self, name: str, value: object) -> float | str:
        """Return a checked value; text of a command line is converted."""
        if self.kind == "level":
            return text(value, name)
        if self.kind == "choice":
            if value not in self.choices:
                raise InputError(
                    "bad parameter of a protocol",
                    field=name,
                    value=value,
                    expected="one of " + ", ".join(self.choices),
                )
            return str(value)
        try:
            if isinstance(value, bool):
                raise TypeError(value)
            if isinstance(value, str):
                value = float(value)
            if self.kind == "whole":
                return float(whole(int(value) if value == int(value) else value, name, minimum=1))  # type: ignore[call-overload]  # refused there
            return number(value, name, maximum=1.0 if self.kind == "share" else 1e9)
        except (InputError, ValueError, TypeError, OverflowError):
            ranges = {"share": "a number from 0 to 1", "whole": "a whole number >= 1"}
            words = "bad parameter of a protocol"
            expected = f"{ranges.get(self.kind, 'a number >= 0')}: {self.meaning}"
            raise InputError(words, field=name, value=value, expected=expected) from None


@dataclass(frozen=True, slots=True)
class ProtocolFamily:
    """A protocol without its parameters."""

    #: `name`, `summary`, `source`: what it is called, in a line, and where it is described
    name: str
    summary: str
    source: str
    #: (parameters with defaults, voters) -> path of each kind of operation
    make: Callable[[Values, int], Mapping[str, Path]]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)  #: by name
    assumptions: tuple[str, ...] = ()  #: sentences beside those common to all
    #: whether a transaction over several groups has no path: no leader commits it
    one_group_only: bool = False

    @property
    def all_parameters(self) -> Mapping[str, Parameter]:
        """Return the parameters, with `multi` where transactions over groups have no path."""
        return {**self.parameters, **({"multi": _MULTI} if self.one_group_only else {})}

    def checked(self, given: Values) -> Values:
        """Return the parameters that were given, checked, in the order of the family."""
        known = self.all_parameters
        for key in given:
            if self.name == "leases" and key == "holders" and given[key] != "replicas":
                raise InputError(
                    "every replica holds a lease",
                    field="protocol",
                    value=f"leases:holders={given[key]}",
                    expected="leases, with as many replicas as shall hold one",
                )
            if key not in known:
                words = f"the protocol {self.name} has no such parameter"
                expected = "one of " + ", ".join(known) if known else "no parameter"
                raise InputError(words, field="protocol", value=key, expected=expected)
        for key, parameter in known.items():
            if parameter.required and key not in given:
                words = f"the protocol {self.name} needs a parameter"
                expected = f"{self.name}:{key}=… ({parameter.meaning})"
                raise InputError(words, field="protocol", value=self.name, expected=expected)
        return MappingProxyType(
            {key: known[key].read(key, given[key]) for key in known if key in given}
        )

    def paths(self, given: Values, voters: int) -> Mapping[str, Path]:
        """Return the path of each kind of operation for a number of voters."""
        return self._with_groups(given, self.make(self.values(given), voters))

    def values(self, given: Values) -> Values:
        """Return the parameters with their defaults."""
        known = self.all_parameters.items()
        return {**{key: one.default for key, one in known if one.default is not None}, **given}

    def _with_groups(self, given: Values, paths: Mapping[str, Path]) -> Mapping[str, Path]:
        """Return paths with that of transactions over several groups."""
        found = dict(paths)
        if "multi_write" not in found:
            times = float(given.get("multi", 1.0 if self.one_group_only else 2.0))
            found["multi_write"] = _repeated(found["write"], times, whole=self.one_group_only)
        return found

    def warnings(self, given: Values, replicas: int) -> tuple[str, ...]:
        """Return warnings about unusual parameters, as sentences."""
        found = []
        for key in ("slow", "interference"):
            if float(given.get(key, 0.0)) > 0.3:
                found.append(
                    f"{key} = {float(given[key]):g}: so much interference changes more than this "
                    "share; a model of conflicts is not part of this package"
                )
        if self.name == "coordinated" and float(given["r"]) + float(given["w"]) <= replicas:
            found.append(f"r + w <= {replicas} replicas: a read need not see the write before it")
        return tuple(found)


_MULTI = Parameter(
    None, "commits, one after another, of a transaction over several groups", "whole"
)


def _repeated(path: Path, times: float, *, whole: bool) -> Path:
    """Return a path whose waits (`whole`: whose every part) are gone through several times."""
    waits: list[str] = []
    for wait in path.waits:
        before, cross, rest = wait.rpartition(" × ")
        waits.extend(share_of_wait(times * (float(before) if cross else 1.0), rest))
    if not whole:
        return Path(path.trips, tuple(waits), path.constant)
    near, relay, direct = (times * trip for trip in path.trips)
    return Path((near, relay, direct), tuple(waits), times * path.constant)


def share_of_wait(times: float, wait: str) -> tuple[str, ...]:
    """Return a wait for a share of the operations; nothing for none."""
    if times == 0:
        return ()
    return (wait,) if times == 1 else (f"{repr(times).removesuffix('.0')} × {wait}",)


_NEAR, _RELAYED, _DIRECT = (1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_TO_NEAREST, _TO_LEADER, _THROUGH_NEAREST = Path(_NEAR), Path(_DIRECT), Path(_RELAYED)
_QUORUM = "leader: quorum of voters"


def _led(
    *waits: str,
    strong: Path = _TO_LEADER,
    weak: Path = _TO_NEAREST,
    bounded: Path = _THROUGH_NEAREST,
    constant: float = 0.0,
) -> dict[str, Path]:
    """Return the paths of a protocol whose leader takes the writes."""
    return {
        "weak_read": weak,
        "bounded_read": bounded,
        "strong_read": strong,
        "write": Path(_DIRECT, waits, constant),
    }


def _alike(path: Path, strong: Path | None = None, weak: Path | None = None) -> dict[str, Path]:
    """Return the paths of a protocol without a leader; a bounded read is a strong one."""
    strong = strong or path
    return {
        "weak_read": weak or Path(_NEAR),
        "bounded_read": strong,
        "strong_read": strong,
        "write": path,
    }


def _near(slow: float, fast: int | str, slow_wait: str) -> dict[str, Path]:
    waits = (f"near: {fast} of voters", *share_of_wait(slow, f"near: {slow_wait} of voters"))
    return _alike(Path(_NEAR, waits))


def _tolerated(p: Values, voters: int) -> int:
    """Return f, at most ⌊(v − 1)/2⌋."""
    losses = int(float(p["f"]))
    if losses > (voters - 1) // 2:
        words = "more losses than the protocol can have"
        expected = f"1 <= f <= ⌊(v − 1)/2⌋ = {(voters - 1) // 2} for {voters} voters"
        raise InputError(words, field="f", value=losses, expected=expected)
    return losses


def _three_quarters(voters: int) -> int:
    """Return ⌈3v/4⌉, for v >= 3."""
    if voters < 3:
        raise InputError(
            "too few voters for a fast quorum", field="voters", value=voters, expected=">= 3"
        )
    return -(-3 * voters // 4)


def _epaxos_votes(voters: int) -> int:
    losses = voters // 2
    return max(1, losses + (losses + 1) // 2)


def _atlas(p: Values, voters: int) -> dict[str, Path]:
    losses = _tolerated(p, voters)
    return _near(float(p["slow"]), voters // 2 + losses, str(losses + 1))


def _asked_by_client(slow: float, first: str) -> dict[str, Path]:
    return _alike(Path((0, 0, slow), (f"client: {first} of voters", *share_of_wait(slow, _QUORUM))))


def _global_tables(p: Values, voters: int) -> dict[str, Path]:
    del voters
    rho = float(p["rho"])
    lead = float(p["max_offset"]) + 25 + max(1.5 * rho + 20, 0.5 * rho + 200)
    paths = _led(strong=Path(_NEAR), bounded=Path(_NEAR), constant=lead)
    return {**paths, "multi_write": paths["write"]}


def _leases(p: Values, voters: int) -> dict[str, Path]:
    del voters
    meets = share_of_wait(float(p["interference"]) / 2, _QUORUM)
    return _led(f"{_QUORUM} + all of replicas", bounded=Path(_NEAR), strong=Path(_NEAR, meets))


def _tidb(p: Values, voters: int) -> dict[str, Path]:
    del voters
    follower = float(p["follower"])
    strong = Path((follower, follower, 1 - follower), (), float(p["tso"]))
    return _led(_QUORUM, strong=strong, bounded=Path(_NEAR), constant=float(p["tso"]))


def _follower_reads(p: Values, voters: int) -> dict[str, Path]:
    del voters
    fresh = float(p["fresh"])
    return _led(_QUORUM, weak=Path((fresh, 0.0, 1 - fresh)))


def _register(p: Values, voters: int) -> dict[str, Path]:
    del voters
    ask = "client: majority of voters"
    read = share_of_wait(1 + float(p["interference"]), ask)
    return _alike(Path((0.0, 0.0, 0.0), share_of_wait(2.0, ask)), Path((0.0, 0.0, 0.0), read))


def _coordinated(p: Values, voters: int) -> dict[str, Path]:
    del voters
    write, read = (Path(_NEAR, (f"near: {int(float(p[k]))} of replicas",)) for k in ("w", "r"))
    return _alike(write, read, Path(_NEAR))


_SLOW = {"slow": Parameter(0.0, "share of the operations that take the slow path")}
_LEVEL = Parameter(None, "a failure-domain level of the instance", "level", required=True)
_F = Parameter(1.0, "losses that are tolerated", "whole")

_ALL = (
    ProtocolFamily(
        "raft", "a leader waits for a quorum of its voters", "Sharov et al., PVLDB 8(12), 2015",
        lambda p, v: _led(_QUORUM),
    ),
    ProtocolFamily(
        "multipaxos", "as raft, which waits alike", "Sharov et al., PVLDB 8(12), 2015",
        lambda p, v: _led(_QUORUM),
    ),
    ProtocolFamily(
        "flexible", "as raft, with a quorum of any size for commits",
        "Howard, Malkhi and Spiegelman, OPODIS 2016", lambda p, v: _led(_QUORUM),
        {"quorum": Parameter(None, "votes a commit waits for", "whole", required=True)},
        ("Elections need v − quorum + 1 votes.",),
    ),
    ProtocolFamily(
        "flexiraft", "a leader waits for a majority of the voters in its own domain",
        "Yadav and Rahut, CIDR 2023",
        lambda p, v: _led(f"leader: majority of voters inside {p['level']}"), {"level": _LEVEL},
    ),
    ProtocolFamily(
        "semi-sync", "a leader waits for acknowledgements from outside its own domain",
        "Vitess, durability policy cross_cell",
        lambda p, v: _led(f"leader: {int(float(p['k']))} of voters outside {p['level']}"),
        {"k": Parameter(1.0, "acknowledgements", "whole"), "level": _LEVEL},
    ),
    ProtocolFamily(
        "spanner", "a quorum, then the commit wait; strong reads ask the leader for a time stamp",
        "Cloud Spanner documentation: replication, TrueTime",
        lambda p, v: _led(
            _QUORUM, strong=Path(_RELAYED), bounded=Path(_NEAR), constant=float(p["epsilon"])
        ),
        {"epsilon": Parameter(0.0, "commit wait, ms", "number")},
    ),
    ProtocolFamily(
        "leases", "replicas with a lease read alone, and every write waits for all of them",
        "Hu and Arpaci-Dusseau: Bodega, arXiv 2509.07158", _leases,
        {
            "interference": Parameter(0.0, "share of strong reads that meet a write under way"),
        },
        ("After the loss of a lease holder writes stop until its lease ends.",),
    ),
    ProtocolFamily(
        "crdb-global", "a write waits until its time stamp, set into the future, has passed",
        "CockroachDB, closedts/policy.go", _global_tables,
        {
            "max_offset": Parameter(500.0, "largest offset of the clocks, ms", "number"),
            "rho": Parameter(
                150.0, "RTT to the farthest replica that it assumes, ms", "number",
            ),
        },
        ("The lead of the time stamp is fixed.",),
    ),
    ProtocolFamily(
        "tidb", "as raft, with reads of followers if wanted", "TiDB documentation: follower read",
        _tidb,
        {
            "follower": Parameter(0.0, "share of strong reads that go to the nearest follower"),
            "tso": Parameter(0.0, "time stamp of the oracle, ms", "number"),
        },
    ),
    ProtocolFamily(
        "mongodb", "a primary waits for a majority", "MongoDB manual: write concern, read concern",
        lambda p, v: _led(
            "leader: majority of voters",
            strong=Path(
                _DIRECT, share_of_wait(float(p["linearizable"]), "leader: majority of voters")
            ),
        ),
        {"linearizable": Parameter(0.0, "share of strong reads that are linearizable")},
        ("Without arbiters: they elect, but acknowledge no write.",),
    ),
    ProtocolFamily(
        "follower-reads", "as raft; a share of the weak reads finds its replica fresh enough",
        "this package", _follower_reads,
        {"fresh": Parameter(1.0, "share of weak reads that the nearest replica answers")},
    ),
    ProtocolFamily(
        "epaxos", "no leader: the nearest replica waits for a fast quorum",
        "Moraru, Andersen and Kaminsky, SOSP 2013",
        lambda p, v: _near(float(p["slow"]), _epaxos_votes(v), "majority"), _SLOW,
        one_group_only=True,
    ),
    ProtocolFamily(
        "atlas", "as epaxos, with a smaller fast quorum for few losses",
        "Enes et al., EuroSys 2020", _atlas, {"f": _F, **_SLOW}, one_group_only=True,
    ),
    ProtocolFamily(
        "tempo", "quorums of atlas, order by time stamps", "Enes et al., EuroSys 2021", _atlas,
        {"f": _F, **_SLOW}, one_group_only=True,
    ),
    ProtocolFamily(
        "caesar", "no leader: a fast quorum of three quarters", "Arun et al., DSN 2017",
        lambda p, v: _near(float(p["slow"]), _three_quarters(v), "majority"), _SLOW,
        one_group_only=True,
    ),
    ProtocolFamily(
        "mencius", "the voters lead in turn: a commit hears from all of them",
        "Mao, Junqueira and Marzullo, OSDI 2008",
        lambda p, v: _alike(Path(_NEAR, ("near: all of voters",))), one_group_only=True,
        assumptions=("Upper envelope of the case in which some voters are idle.",),
    ),
    ProtocolFamily(
        "hermes", "a write waits for all replicas, reads are local",
        "Katsarakis et al., ASPLOS 2020",
        lambda p, v: _alike(Path(_NEAR, ("near: all of replicas",)), Path(_NEAR)),
        one_group_only=True,
    ),
    ProtocolFamily(
        "fast-paxos", "clients ask a fast quorum themselves; a leader settles the slow path",
        "Lamport, MSR-TR-2005-112",
        lambda p, v: _asked_by_client(float(p["slow"]), str(_three_quarters(v))), _SLOW,
        one_group_only=True,
    ),
    ProtocolFamily(
        "pqr", "as raft, but a client reads from a majority itself",
        "Charapko, Ailijiang and Demirbas, HotStorage 2019",
        lambda p, v: _led(
            _QUORUM,
            strong=Path(
                (0.0, 0.0, 0.0),
                share_of_wait(1 + float(p["interference"]), "client: majority of voters"),
            ),
        ),
        {"interference": Parameter(0.0, "share of strong reads that ask a second time")},
    ),
    ProtocolFamily(
        "abd", "no leader: a client asks a majority, twice to write",
        "Attiya, Bar-Noy and Dolev, JACM 1995", _register,
        {"interference": Parameter(0.0, "share of strong reads that write back")},
        one_group_only=True,
    ),
    ProtocolFamily(
        "coordinated", "the nearest replica asks r replicas to read, w to write",
        "Cassandra documentation: consistency levels", _coordinated,
        {
            "r": Parameter(None, "replicas that a strong read waits for", "whole", required=True),
            "w": Parameter(None, "replicas that a write waits for", "whole", required=True),
        },
        one_group_only=True,
    ),
)  # fmt: skip


# Systems as they were measured: a row of a table for each operation


@dataclass(frozen=True, slots=True)
class SystemRow:
    """An operation of a real system, as ``systems.csv`` has it."""

    #: `system`, `version`, `operation`: what was measured; `kind` is the kind of operation it is
    #: the path of
    system: str
    version: str
    operation: str
    kind: str
    path: Path  #: trips, waits, and ms that the software itself takes
    #: `disk_before`, `disk_beside`: flushes, one after another, before votes are asked for, and of
    #: each voter
    disk_before: float
    disk_beside: float
    apply: float  #: times that the operation waits until a voter has applied a write
    notes: str  #: what the four coefficients do not say

    def under(self, disk: float, apply: float, voters: int) -> Path:
        """Return the path where every flush takes `disk` ms, and applying a write `apply` ms.

        `{majority}` of a wait is that of the voters, whoever answers.
        """
        waits = tuple(wait.format(majority=voters // 2 + 1) for wait in self.path.waits)
        flushes = (self.disk_before + self.disk_beside) * disk
        constant = self.path.constant + flushes + self.apply * apply
        return Path(self.path.trips, waits, constant)


@cache
def system_rows() -> tuple[SystemRow, ...]:
    """Return every operation of every system that was measured."""
    import csv

    with (File(__file__).parent / "systems.csv").open(encoding="utf-8", newline="") as file:
        return tuple(map(_system_row, csv.DictReader(file)))


def _system_row(row: Mapping[str, str]) -> SystemRow:
    alpha, beta, gamma, delta = (float(row[k]) for k in ("alpha", "beta", "gamma", "delta"))
    waits = [*share_of_wait(delta, _QUORUM), *filter(None, map(str.strip, row["waits"].split(";")))]
    return SystemRow(
        row["system"], row["version"], row["operation"], row["kind"],
        Path((alpha, beta, gamma), tuple(waits), float(row["constant"])),
        float(row["disk_before"]), float(row["disk_beside"]), float(row["apply"]), row["notes"],
    )  # fmt: skip


_CHOICES = {"write": "write", "strong_read": "read"}
"""Kind of operation -> parameter that chooses among the rows of that kind."""


def _system_family(name: str) -> ProtocolFamily:
    """Return a measured system as a protocol; the first row of a kind is the usual one."""
    rows = [row for row in system_rows() if row.system == name]
    of = {
        kind: [row for row in rows if row.kind == kind] for kind in dict.fromkeys(_PATH_OF.values())
    }
    parameters = {
        key: Parameter(of[kind][0].operation, f"operation that is the {kind}", "choice",
                       choices=tuple(row.operation for row in of[kind]))
        for kind, key in _CHOICES.items() if len(of[kind]) > 1
    }  # fmt: skip
    parameters["disk"] = Parameter(0.0, "time of a flush to the disk, ms", "number")
    if any(row.apply for row in rows):
        parameters["apply"] = Parameter(0.0, "time until a voter has applied a write, ms", "number")

    alone = any("near:" in wait for row in of["write"] for wait in row.path.waits)

    def paths(p: Values, voters: int) -> dict[str, Path]:
        found = {}
        for kind, known in of.items():
            chosen = p.get(_CHOICES.get(kind, ""), known[0].operation if known else "")
            for row in known:
                if row.operation == chosen:
                    found[kind] = row.under(float(p["disk"]), float(p.get("apply", 0.0)), voters)
        for kind, stronger in (("bounded_read", "strong_read"), ("weak_read", "bounded_read")):
            if kind not in found and stronger in found:
                found[kind] = found[stronger]
        if alone:
            return found
        once = found["write"]
        waits = _repeated(once, 2.0, whole=False).waits
        return {**found, "multi_write": Path(once.trips, waits, 2 * once.constant)}

    return ProtocolFamily(
        name, f"{name} {rows[0].version}, as it was measured", "docs/benchmarks/commit-paths.md",
        paths, parameters, tuple(f"{row.operation}: {row.notes}." for row in rows if row.notes),
        one_group_only=alone,
    )  # fmt: skip


@cache
def families() -> Mapping[str, ProtocolFamily]:
    """Return every protocol by name: those of papers, then systems as they were measured."""
    systems = dict.fromkeys(row.system for row in system_rows())
    return MappingProxyType({one.name: one for one in (*_ALL, *map(_system_family, systems))})


def family_of(name: str) -> ProtocolFamily:
    """Return the protocol of a name; InputError with the closest name when there is none."""
    if name not in families():
        expected = "one of " + ", ".join(families()) + nearest(name, families())
        raise InputError("unknown protocol", field="protocol", value=name, expected=expected)
    return families()[name]


def read_protocol(
    name: str, given: dict[str, float | str]
) -> tuple[str, Mapping[str, float | str]]:
    """Return name and checked parameters of a protocol in words, beside parameters `given`.

    InputError for an unknown name, for a parameter that is unknown or given twice, and for a bad
    value.
    """
    name, _, rest = text(name, "protocol").partition(":")
    if "=" in name:
        words = "a protocol is one for all kinds of operations"
        expected = "NAME:PARAMETER=VALUE,…, and --wait for an operation that differs"
        raise InputError(words, field="protocol", value=name, expected=expected)
    family = family_of(name.strip())
    for part in filter(None, map(str.strip, rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals or key.strip() in given:
            words = "not a parameter of a protocol"
            expected = "NAME:PARAMETER=VALUE,…, each parameter once"
            raise InputError(words, field="protocol", value=part, expected=expected)
        given[key.strip()] = value.strip()
    return family.name, family.checked(given)

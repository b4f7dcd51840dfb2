"""Operations: what a client waits for, as four coefficients and waits.

Every operation of a leader-based store, and every variation on its message flow, costs (in ms)

    t(c) = α·d(c, near) + β·d(near, ℓ) + γ·d(c, ℓ) + δ·q_ℓ

where ``near`` is the replica closest to client c, ℓ the leader and q_ℓ the time ℓ waits for a
quorum of votes. The five operations of Sharov et al. (PVLDB 8(12), 2015, section 2) are rows of
this kind; users add their own. Other commit protocols have other waits than δ·q_ℓ: those of
:class:`Wait`, and a constant time per operation.

A wait has an origin that asks, and clauses that say whose answers it needs:

    [TIMES ×] ORIGIN: NEED of ROLE [inside|outside LEVEL] (+ NEED of ROLE [inside|outside LEVEL] …)

NEED is a number of members, "majority", "quorum" or "all".
All clauses are asked at once, so that a wait lasts as long as its slowest clause. The order
statistic of a clause is computed in :mod:`placement.evaluation.waits.wait_latency`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from placement.errors import InputError
from placement.support.checks import LARGEST, elements, instance_of, number, text

# Waits: what an operation waits for beside its trips, in words that people and programs read

Origin = Literal["leader", "near", "client"]
WaitRole = Literal["voters", "replicas"]
Scope = Literal["", "inside", "outside"]
Need = int | Literal["majority", "quorum", "all"]

_ROLES = ("voters", "replicas")
_GRAMMAR = "[TIMES ×] leader|near|client: NEED of voters|replicas [inside|outside LEVEL] [+ …]"
_WAIT = re.compile(r"(?:(?P<times>[^:]*?)\s*[×x*]\s*)?(?P<origin>[a-z]+)\s*:\s*(?P<clauses>.*)")
_CLAUSE = re.compile(
    r"(?P<need>\d{1,18}|[a-z]+)\s+of\s+(?P<role>[a-z ]+?)"
    r"(?:\s+(?P<scope>inside|outside)\s+(?P<level>.+))?"
)
_MOST_MEMBERS = 10**6


@dataclass(frozen=True, slots=True)
class Clause:
    """Answers that a wait needs from the members of one role; InputError for an unknown word."""

    #: a number >= 1; "majority" of the role, with `scope` "inside" of those in the domain;
    #: "quorum": as commits wait for
    need: Need
    role: WaitRole = "voters"
    #: only members inside or outside the origin's domain of `level`; empty, as is `level`: all
    scope: Scope = ""
    level: str = ""

    def __post_init__(self) -> None:
        good = (
            self.need in ("majority", "quorum", "all")
            if isinstance(self.need, str)
            else type(self.need) is int and 1 <= self.need <= _MOST_MEMBERS
        )
        if not good:
            words = "not a number of answers"
            expected = "a whole number >= 1, 'majority', 'quorum' or 'all'"
            raise InputError(words, field="need", value=self.need, expected=expected)
        if self.role not in _ROLES:
            words = "unknown role of a wait"
            expected = "'voters' or 'replicas'"
            raise InputError(words, field="role", value=self.role, expected=expected)
        if self.scope not in ("", "inside", "outside") or bool(self.scope) != bool(self.level):
            raise InputError(
                "not a part of the members",
                field="scope",
                value=f"{self.scope} {self.level}".strip(),
                expected="inside LEVEL or outside LEVEL, or nothing",
            )
        if self.need == "quorum" and (self.role != "voters" or self.scope):
            words = "a quorum is one of all voters"
            expected = "quorum of voters, or a number or a majority"
            raise InputError(words, field="need", value=str(self), expected=expected)

    def __str__(self) -> str:
        where = f" {self.scope} {self.level}" if self.scope else ""
        return f"{self.need} of {self.role}{where}"


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait of an operation: who asks, and whose answers it needs before it goes on.

    Parameters
    ----------
    origin
        "leader", "near" (the replica closest to the client) or "client"; or the whole wait as
        text, the only argument then.
    clauses
        What must be met, all asked at once.
    times
        Rounds; a fraction is a share of the operations.

    Raises
    ------
    InputError
        For text that is no wait, and for a domain where the client asks: clients have none.

    Examples
    --------
    >>> Wait("leader: quorum of voters + 1 of voters outside region")
    Wait('leader: quorum of voters + 1 of voters outside region')
    >>> str(Wait("0.05 x near: majority of voters"))
    '0.05 × near: majority of voters'
    """

    origin: Origin
    clauses: tuple[Clause, ...] = ()
    times: float = 1.0

    def __init__(
        self, origin: str, clauses: tuple[Clause, ...] | None = None, times: float = 1.0
    ) -> None:
        if clauses is None:
            origin, clauses, times = _read(text(origin, "wait"))
        if origin not in ("leader", "near", "client"):
            words = "unknown origin of a wait"
            expected = "'leader', 'near' or 'client'"
            raise InputError(words, field="origin", value=origin, expected=expected)
        clauses = tuple(instance_of(one, Clause, "clauses", "Clause(…)") for one in clauses)
        if not clauses:
            raise InputError(
                "a wait without clauses", field="clauses", expected="at least one clause"
            )
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "clauses", clauses)
        object.__setattr__(self, "times", number(times, "times", maximum=LARGEST))
        scoped = next((one for one in clauses if one.scope), None)
        if origin == "client" and scoped is not None:
            words = "a client lies in no failure domain"
            expected = f"origin leader or near for '{scoped.scope} {scoped.level}'"
            raise InputError(words, field="origin", value=str(self), expected=expected)

    def __str__(self) -> str:
        times = "" if self.times == 1 else f"{repr(self.times).removesuffix('.0')} × "
        return f"{times}{self.asked}"

    def __repr__(self) -> str:
        return f"Wait({str(self)!r})"

    @property
    def asked(self) -> str:
        """Return origin and clauses as text, without the times."""
        return f"{self.origin}: {' + '.join(map(str, self.clauses))}"


def _read(given: str) -> tuple[Origin, tuple[Clause, ...], float]:
    """Return origin, clauses and times of a wait in words."""
    found = _WAIT.fullmatch(given.strip())
    if found is None:
        raise InputError("not a wait", field="wait", value=given, expected=_GRAMMAR)
    times = 1.0
    if found["times"] is not None:
        try:
            times = float(found["times"])
        except ValueError:
            raise InputError(
                "not a number of times", field="times", value=found["times"], expected=_GRAMMAR
            ) from None
    clauses = tuple(_clause(part.strip(), given) for part in found["clauses"].split("+"))
    return cast("Origin", found["origin"]), clauses, times


def _clause(part: str, whole: str) -> Clause:
    """Return one clause; `whole` is the wait around it, for messages."""
    found = _CLAUSE.fullmatch(part)
    if found is None:
        raise InputError(
            f"not a clause of a wait: {part!r}", field="wait", value=whole, expected=_GRAMMAR
        )
    need = int(found["need"]) if found["need"].isdigit() else found["need"]
    scope, level = found["scope"] or "", (found["level"] or "").strip()
    return Clause(cast("Need", need), cast("WaitRole", found["role"]), cast("Scope", scope), level)


Kind = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Operation:
    """A kind of operation and the message round trips it waits for.

    Parameters
    ----------
    name
        What people call it; unique within an instance.
    near
        α, round trips from the client to its nearest replica.
    relay
        β, round trips from that nearest replica to the leader.
    direct
        γ, round trips from the client to the leader.
    quorum
        δ, rounds of votes the leader waits for.
    kind
        "read" or "write": whether the operation changes state, which its messages do not tell (a
        linearizable read may wait for votes). By default as :func:`kind_of` says. Baseline rules
        about writes ask for it; no score depends on it.
    waits
        Waits beside the δ rounds of votes, as :class:`Wait` or as its text; they add up.
    constant
        ms that every operation takes, wherever the replicas are (a commit wait, a time stamp).

    Raises
    ------
    InputError
        For a name that is no text, a coefficient that is negative, not finite or too large, an
        unknown kind, or a text that is no wait.

    Examples
    --------
    A bounded read that finds its replica fresh enough seven times in ten:

    >>> Operation("mostly fresh read", near=1, relay=0.3)
    Operation(name='mostly fresh read', near=1.0, relay=0.3, direct=0.0, quorum=0.0, kind='read')

    A write that needs a majority, and a vote from another region than the leader's:

    >>> Operation("write", direct=1, waits=["leader: 2 of voters + 1 of voters outside region"])
    Operation(name='write', near=0.0, relay=0.0, direct=1.0, quorum=0.0, kind='write', \
waits=(Wait('leader: 2 of voters + 1 of voters outside region'),))
    """

    name: str
    near: float = 0.0
    relay: float = 0.0
    direct: float = 0.0
    quorum: float = 0.0
    kind: Kind | Literal[""] = ""
    waits: Sequence[Wait | str] = ()
    constant: float = 0.0

    def __repr__(self) -> str:
        fields = ["name", "near", "relay", "direct", "quorum", "kind"]
        fields += ["waits"] * bool(self.waits) + ["constant"] * bool(self.constant)
        values = {field: self.__getattribute__(field) for field in fields}
        return f"Operation({', '.join(f'{key}={value!r}' for key, value in values.items())})"

    def __post_init__(self) -> None:
        text(self.name, "operation")
        for key, value in zip(
            ("near", "relay", "direct", "quorum"), self.coefficients, strict=True
        ):
            try:
                object.__setattr__(self, key, number(value, key, maximum=LARGEST))
            except InputError as error:
                words = f"bad coefficient of operation {self.name!r}"
                raise InputError(words, field=key, value=value, expected=error.expected) from None
        given = (self.waits,) if isinstance(self.waits, (Wait, str)) else self.waits
        if given != () or type(given) is not tuple:
            waits = [
                one if isinstance(one, Wait) else Wait(text(one, "waits"))
                for one in elements(given, "waits", "a list of waits")
            ]
            object.__setattr__(self, "waits", tuple(waits))
        if self.constant != 0 or type(self.constant) is not float:
            object.__setattr__(self, "constant", number(self.constant, "constant", maximum=LARGEST))
        if self.kind == "":
            object.__setattr__(self, "kind", self.usual_kind)
        elif self.kind not in ("read", "write"):
            words = f"unknown kind of operation {self.name!r}"
            raise InputError(words, field="kind", value=self.kind, expected="'read' or 'write'")

    @property
    def coefficients(self) -> tuple[float, float, float, float]:
        """(α, β, γ, δ)."""
        return (self.near, self.relay, self.direct, self.quorum)

    @property
    def usual_kind(self) -> Kind:
        """Return the usual kind for a name and the answers waited for; see :func:`kind_of`."""
        return kind_of(self.name, self.quorum + len(self.waits))

    @property
    def has_waits(self) -> bool:
        """Return whether more than the four coefficients says how long the operation takes."""
        return bool(self.waits) or self.constant > 0

    @property
    def is_transaction(self) -> bool:
        """Return whether the operation changes state."""
        return self.kind == "write"


def kind_of(name: str, quorum: float) -> Kind:
    """Return the kind of an operation that the input does not name.

    A read when it waits for no answers of others (`quorum` is 0), or when its name has the word
    "read" and none of "write", "modify" and "update"; else a write.

    >>> kind_of("linearizable_read", 1), kind_of("single_group", 1), kind_of("read-modify-write", 2)
    ('read', 'write', 'write')
    """
    words = set(re.findall("[a-z]+", name.lower()))
    if quorum == 0 or ("read" in words and not words & {"write", "modify", "update"}):
        return "read"
    return "write"


WEAK_READ = Operation("weak_read", near=1)
BOUNDED_READ = Operation("bounded_read", near=1, relay=1)
STRONG_READ = Operation("strong_read", direct=1)
SINGLE_GROUP = Operation("single_group", direct=1, quorum=1)
MULTI_GROUP = Operation("multi_group", direct=1, quorum=2)
RELAYED_STRONG_READ = Operation("relayed_strong_read", near=1, relay=1)

STANDARD_OPERATIONS = (WEAK_READ, BOUNDED_READ, STRONG_READ, SINGLE_GROUP, MULTI_GROUP)
"""The five operations of the source paper, in its order."""

NAMED_OPERATIONS = (*STANDARD_OPERATIONS, RELAYED_STRONG_READ)
"""The operations that a column of counts may name without giving their coefficients."""

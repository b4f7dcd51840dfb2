"""Waits: what an operation waits for beside its trips, in words that people and programs read.

A wait has an origin that asks, and clauses that say whose answers it needs:

    [TIMES ×] ORIGIN: NEED of ROLE [inside|outside LEVEL] (+ NEED of ROLE [inside|outside LEVEL] …)

NEED is a number of members, "majority", "quorum" or "all".
All clauses are asked at once, so that a wait lasts as long as its slowest clause. The order
statistic of a clause is computed in :mod:`placement.evaluation.waits.wait_latency`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from placement.errors import InputError
from placement.support.checks import LARGEST, instance_of, number, text

Origin = Literal["leader", "near", "client"]
WaitRole = Literal["voters", "replicas"]
Scope = Literal["", "inside", "outside"]
Need = int | Literal["majority", "quorum", "all"]

_ROLES = ("voters", "replicas")
_GRAMMAR = "[TIMES ×] leader|near|client: NEED of voters|replicas [inside|outside LEVEL] [+ …]"
_WAIT = re.compile(r"(?:(?P<times>[^:]*?)\s*[×x*]\s*)?(?P<origin>[a-z]+)\s*:\s*(?P<clauses>.*)")
_CLAUSE = re.compile(
    r"(?P<need>\d+|[a-z]+)\s+of\s+(?P<role>[a-z ]+?)"
    r"(?:\s+(?P<scope>inside|outside)\s+(?P<level>.+))?"
)
_MOST_MEMBERS = 10**6


@dataclass(frozen=True, slots=True)
class Clause:
    """Answers that a wait needs from the members of one role.

    Parameters
    ----------
    need
        How many: a whole number >= 1; "majority" of the role's members (with `scope` "inside": of
        those in the domain); "quorum", the votes that the problem's commits wait for; "all".
    role
        "voters" or "replicas".
    scope, level
        Only members "inside" or "outside" the origin's domain of a failure-domain level; both
        empty: all members.

    Raises
    ------
    InputError
        For a need, a role or a scope that there is not.
    """

    need: Need
    role: WaitRole = "voters"
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

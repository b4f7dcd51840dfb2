"""Operations: what a client waits for, as four coefficients.

Every operation of a leader-based store, and every variation on its message flow, costs (in ms)

    t(c) = α·d(c, near) + β·d(near, ℓ) + γ·d(c, ℓ) + δ·q_ℓ

where ``near`` is the replica closest to client c, ℓ the leader and q_ℓ the time ℓ waits for a
quorum of votes. The five operations of Sharov et al. (PVLDB 8(12), 2015, section 2) are rows of
this kind; users add their own. Other commit protocols have other waits than δ·q_ℓ: those of
:class:`placement.model.waits.Wait`, and a constant time per operation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from placement.errors import InputError
from placement.model.waits import Wait
from placement.support.checks import LARGEST, elements, number, text

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

    Examples
    --------
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

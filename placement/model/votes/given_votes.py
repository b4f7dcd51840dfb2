"""Votes given per site: a voter counts as many times as its site has votes.

Let w(x) be the votes of site x, 1 unless given. A wait for W votes ends when the voters that have
answered have W votes together; a majority of voters V is W = ⌊Σ_V w / 2⌋ + 1, more than half of
all their votes. So the votes that a commit needs depend on the voters that are chosen, and the same
sites may wait longer with one more vote: a heavier voter raises the majority that others reach.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.model.operations import Operation
from placement.model.waits import Clause, Wait
from placement.support.checks import BoolArray, IntArray, mapping, whole

if TYPE_CHECKING:
    from placement.model.instance import Instance

__all__ = [
    "check_reach",
    "commit_wait",
    "counts_votes",
    "most_votes",
    "operations_in_votes",
    "read_votes",
    "site_votes",
]

_MOST_VOTES = 10**6


def read_votes(given: object, instance: Instance) -> dict[str, int] | None:
    """Return the votes of the sites that have several; None where every site has one.

    Parameters
    ----------
    given
        Votes by name of a site; None: one each.
    instance
        Whose sites are named.

    Raises
    ------
    InputError
        For a site that there is not, and for votes that are no whole number >= 1.
    """
    if given is None:
        return None
    expected = "votes by site, such as {'eu-west-1': 2}"
    found = mapping(given, "votes", expected)
    instance.site_indices(tuple(found), "votes")
    votes = {
        name: whole(value, f"votes[{name!r}]", minimum=1, maximum=_MOST_VOTES)
        for name, value in found.items()
    }
    several = {name: votes[name] for name in instance.sites if votes.get(name, 1) > 1}
    return several or None


def site_votes(votes: Mapping[str, int], sites: Sequence[str]) -> IntArray:
    """Return the votes of every site, read-only, shape (sites,)."""
    found = np.array([votes.get(name, 1) for name in sites], dtype=np.intp)
    found.flags.writeable = False
    return found


def most_votes(votes: IntArray, able: BoolArray, must: BoolArray, voters: int) -> int:
    """Return the most votes that so many voters may have together.

    Parameters
    ----------
    votes
        Of every site.
    able, must
        Sites that may and must vote, boolean, shape (sites,).
    voters
        |V|.
    """
    free = np.sort(votes[able & ~must])[::-1]
    room = max(0, voters - int(np.count_nonzero(must)))
    return int(votes[must].sum() + free[:room].sum())


def counts_votes(clause: Clause, votes: IntArray | None) -> bool:
    """Return whether a clause counts votes of several each, and not members."""
    if votes is None or clause.role != "voters":
        return False
    return clause.of_votes or clause.need in ("majority", "quorum")


def commit_wait(quorum: int | None) -> Wait:
    """Return the wait of a leader for the votes of a commit; None: more than half of all votes."""
    asked = Clause("majority") if quorum is None else Clause(quorum, of_votes=True)
    return Wait("leader", (asked,))


@lru_cache(maxsize=64)  # as of protocols: sweeps ask for the operations of few of them
def operations_in_votes(
    operations: tuple[Operation, ...], quorum: int | None
) -> tuple[Operation, ...]:
    """Return operations whose rounds of votes are waits for votes of several each.

    δ rounds of votes become δ waits of the leader, and a quorum in a wait the votes that it has.

    Parameters
    ----------
    operations
        Under the protocol of the question.
    quorum
        Votes that a commit waits for; None: a majority of the votes of the voters.
    """
    (asked,) = commit_wait(quorum).clauses
    return tuple(_in_votes(one, asked) for one in operations)


def _in_votes(operation: Operation, asked: Clause) -> Operation:
    waits = [Wait("leader", (asked,), operation.quorum)] if operation.quorum else []
    for wait in operation.waits:
        assert isinstance(wait, Wait)  # text was read when the operation was made
        clauses = (asked if clause.need == "quorum" else clause for clause in wait.clauses)
        waits.append(Wait(wait.origin, tuple(clauses), wait.times))
    if not waits:
        return operation
    return dataclasses.replace(operation, quorum=0.0, waits=tuple(waits))


def check_reach(quorum: int | None, most: int) -> None:
    """Refuse a quorum that no choice of the voters reaches.

    Raises
    ------
    InputError
        For more votes than the voters may have.
    """
    if quorum is not None and quorum > most:
        raise InputError(
            "a quorum larger than the votes that the voters may have together",
            field="quorum",
            value=quorum,
            expected=f"<= {most}, or more votes",
        )

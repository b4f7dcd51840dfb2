"""Quorum sizes while voters come and go one at a time, so that old and new quorums always meet.

A commit waits for m of v voters, an election for e. Within one set of voters every commit must be
seen by every election, m + e > v. Across a change from V to V', while some servers still count by
the old set, a quorum of either must meet one of the other:

    m + e' > |V ∪ V'|        m' + e > |V ∪ V'|

Majorities obey both when one voter comes or goes. Flexible quorums do too if they grow by one with
every second voter, m(w) = m + ⌈(w − v)/2⌉ and e alike: the sum of m(w) and e(w+1) is then at least
w + 2. If two configurations do not lie on one such line, the walk goes through majorities. The
quorums are changed at either end while the voters stay: first those that grow, then those that
shrink.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from placement.errors import InputError
from placement.evaluation.objective import quorum_size
from placement.model.configuration import Configuration
from placement.model.constraints import majority
from placement.problem import Problem

__all__ = [
    "QuorumSizes",
    "SizeRule",
    "quorum_path",
    "quorums_intersect",
    "quorums_of",
    "resizing_steps",
    "sets_intersect",
]


class QuorumSizes(NamedTuple):
    """Votes that a commit and an election wait for."""

    commit: int
    elect: int

    @classmethod
    def majorities(cls, voters: int) -> QuorumSizes:
        """Return majorities for commits and for elections."""
        return cls(majority(voters), majority(voters))


SizeRule = Callable[[int], QuorumSizes]
"""Quorums by number of voters, for sets that are passed through."""


def quorums_of(problem: Problem, configuration: Configuration) -> QuorumSizes:
    """Quorums of a configuration: majorities, or the problem's m and its election.

    A flexible m goes with elections of v − m + 1, the fewest that meet every commit.
    """
    voters = len(configuration.voters)
    if problem.quorum is None:
        return QuorumSizes.majorities(voters)
    commit = quorum_size(problem, configuration)
    return QuorumSizes(commit, voters - commit + 1)


def quorums_intersect(voters: int, quorums: QuorumSizes) -> bool:
    """Return True when every election meets every commit, and the voters can give both."""
    commit, elect = quorums
    return 1 <= commit <= voters and 1 <= elect <= voters and commit + elect > voters


def sets_intersect(union: int, one: QuorumSizes, other: QuorumSizes) -> bool:
    """Return True when the quorums of two sets of voters meet, given the size of their union."""
    return one.commit + other.elect > union and other.commit + one.elect > union


def resizing_steps(quorums: QuorumSizes, to: QuorumSizes) -> tuple[QuorumSizes, ...]:
    """Quorums to pass through, `to` included, with the voters standing still; none when equal.

    Examples
    --------
    >>> resizing_steps(QuorumSizes(2, 4), QuorumSizes(3, 3))
    (QuorumSizes(commit=3, elect=4), QuorumSizes(commit=3, elect=3))
    """
    if quorums == to:
        return ()
    above = QuorumSizes(max(quorums.commit, to.commit), max(quorums.elect, to.elect))
    return tuple(q for q in dict.fromkeys((above, to)) if q != quorums)


def quorum_path(voters: int, start: QuorumSizes, voters_after: int, end: QuorumSizes) -> SizeRule:
    """Return the quorums to use on the way between two numbers of voters.

    The rule gives `start` and `end` at the two ends when they lie on one line, and majorities
    otherwise; quorums that a size cannot give are for the caller to skip
    (:func:`quorums_intersect`).

    Raises
    ------
    InputError
        When an end is not safe in itself.
    """
    for field, size, quorums in (("start", voters, start), ("end", voters_after, end)):
        if not quorums_intersect(size, quorums):
            raise InputError(
                f"a commit of {quorums.commit} and an election of {quorums.elect} among "
                f"{size} voters need not meet",
                field=field,
                value=tuple(quorums),
                expected=f"quorums of 1 to {size} that add up to more than {size}",
            )

    def line(size: int) -> QuorumSizes:
        more = -((voters - size) // 2)  # ⌈(size − voters)/2⌉
        return QuorumSizes(start.commit + more, start.elect + more)

    ends_are_majorities = start == QuorumSizes.majorities(voters) and end == QuorumSizes.majorities(
        voters_after
    )
    passed = range(min(voters, voters_after), max(voters, voters_after) + 2)
    if (
        not ends_are_majorities
        and line(voters_after) == end
        and all(quorums_intersect(size, line(size)) for size in passed)
    ):
        return line
    return QuorumSizes.majorities

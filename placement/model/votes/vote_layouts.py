"""Vote layouts: votes per voter, largest first, wherever the voters are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.errors import InputError
from placement.model.constraints import majority
from placement.model.protocols import Protocol
from placement.support.checks import whole

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["layout_quorum", "layout_votes", "refuse_protocol_quorum"]


def layout_votes(problem: Problem) -> tuple[int, int]:
    """Return the votes that a commit waits for under a vote layout, and all votes.

    Parameters
    ----------
    problem
        With a layout; its quorum counts votes, a majority of them unless given.
    """
    assert problem.vote_layout is not None
    total = sum(problem.vote_layout)
    return (majority(total) if problem.quorum is None else problem.quorum), total


def refuse_protocol_quorum(problem: Problem, several: str) -> None:
    """Refuse a quorum of the protocol, which counts voters, where voters have several votes.

    Parameters
    ----------
    problem
        The question.
    several
        Why voters have several votes, in words.
    """
    if isinstance(problem.protocol, Protocol) and problem.protocol.has_quorum:
        raise InputError(
            f"the quorum of the protocol counts voters, and {several}",
            field="protocol",
            value=str(problem.protocol),
            expected="the votes of a commit as quorum of the question",
        )


def layout_quorum(problem: Problem, voters: int) -> int:
    """Return how many voters have the votes of a commit under a vote layout, the leader first.

    The leader has the most votes, and the voters closest to it the next: no other placement of the
    votes waits less. The layout is therefore no decision, but the least k whose first k entries
    suffice.
    """
    assert problem.vote_layout is not None
    layout = [whole(entry, "vote_layout", minimum=1) for entry in problem.vote_layout]
    if len(layout) != voters or layout != sorted(layout, reverse=True):
        raise InputError(
            "no layout of the votes of these voters",
            field="vote_layout",
            value=problem.vote_layout,
            expected=f"{voters} whole numbers, largest first",
        )
    refuse_protocol_quorum(problem, "the layout gives them several votes")
    if problem.survive is not None:
        raise InputError(
            "which losses leave a quorum depends on where each vote lies",
            field="survive",
            value=problem.survive,
            expected="no vote layout, or diversity: at most so many voters per domain",
        )
    needed, total = whole(layout_votes(problem)[0], "quorum", minimum=1), sum(layout)
    if needed > total:
        raise InputError(
            "a quorum larger than the number of votes",
            field="quorum",
            value=needed,
            expected=f"<= {total}",
        )
    return next(k for k in range(1, voters + 1) if sum(layout[:k]) >= needed)

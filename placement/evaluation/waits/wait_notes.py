"""Notes for the reader of a plan: about its protocol, its quorums and clauses without effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.evaluation.waits.wait_checks import role_size
from placement.model.constraints import majority
from placement.model.protocols import Protocol
from placement.model.waits import Clause, Wait

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["wait_notes"]


def wait_notes(problem: Problem) -> tuple[str, ...]:
    """Return notes for the reader of a plan about the protocol and about waits given by hand.

    Parameters
    ----------
    problem
        The question; one without a protocol and without waits has no notes.

    Returns
    -------
    tuple of str
        Sentences: those of :meth:`.Protocol.notes`; quorums of at most half of the voters, with
        the votes that an election then needs; clauses that never decide how long their wait lasts.

    Examples
    --------
    >>> import placement
    >>> asked = placement.with_waits(
    ...     placement.load("world27"), {"single_group": ["leader: 2 of voters + 3 of voters"]}
    ... )
    >>> print(*wait_notes(placement.Problem(asked, replicas=5, voters=5)))  # doctest: +ELLIPSIS
    the clause '2 of voters' of the wait 'leader: 2 of voters + 3 of voters' never decides how ...
    """
    rules = problem.rules
    said: list[str] = []
    if isinstance(problem.protocol, Protocol):
        said += problem.protocol.notes(problem.instance.operations, rules.replicas_max)
    votes = bool(problem.demand.quorum.any()) or any(
        clause.need == "quorum" for term in problem.demand.waits for clause in term.clauses
    )
    asked = problem.protocol is not None or problem.demand.has_waits
    if asked and votes and 2 * rules.quorum <= rules.voters:
        said.append(
            f"a commit waits for {rules.quorum} of {rules.voters} votes: two commits need not "
            f"share a voter, and an election needs {rules.voters - rules.quorum + 1} votes"
        )
    if rules.witnesses and 1 < rules.quorum <= rules.witnesses + 1 and votes:
        said.append(
            f"the {rules.quorum} voters of a commit may be the leader and witnesses, so that only "
            "the leader holds its data at first"
        )
    by_hand = [wait for one in problem.instance.operations for wait in one.waits]
    for wait in dict.fromkeys(by_hand):
        assert isinstance(wait, Wait)  # text was read when the operation was made
        said += _idle_clauses(problem, wait)
    return tuple(said)


def _idle_clauses(problem: Problem, wait: Wait) -> list[str]:
    """Name the clauses of a wait that are met whenever another of them is."""
    found = []
    for place, clause in enumerate(wait.clauses):
        for other_place, other in enumerate(wait.clauses):
            if place == other_place or not _implies(problem, other, clause):
                continue
            if place < other_place and _implies(problem, clause, other):
                continue  # both say the same: the later one is named
            found.append(
                f"the clause '{clause}' of the wait '{wait}' never decides how long it lasts: it "
                f"is met whenever '{other}' is"
            )
            break
    return found


def _implies(problem: Problem, met: Clause, clause: Clause) -> bool:
    """Return whether a clause is met whenever `met` is, in every configuration of the question."""
    rules = problem.rules
    if clause == met:
        return True
    same_part = (clause.scope, clause.level) == (met.scope, met.level)
    all_vote = rules.voters == rules.replicas_min == rules.replicas_max and not rules.witnesses
    at_most = _number(problem, clause, rules.replicas_max)
    at_least = _number(problem, met, rules.replicas_min)
    members = role_size(rules, met, rules.replicas_max)
    everybody = met.need == "all" or (not met.scope and at_least == members)
    if everybody and (same_part or not met.scope):
        return clause.role in (met.role, "voters") or all_vote
    within = (same_part or not clause.scope) and (met.role in (clause.role, "voters") or all_vote)
    return within and at_most is not None and at_least is not None and at_most <= at_least


def _number(problem: Problem, clause: Clause, replicas: int) -> int | None:
    """Return how many answers a clause needs; None where the configuration decides it."""
    if isinstance(clause.need, int):
        return clause.need
    size = role_size(problem.rules, clause, replicas)
    if clause.need == "quorum":
        return problem.rules.quorum
    if clause.need == "majority":
        return None if clause.scope == "inside" else majority(size)
    return None if clause.scope else size

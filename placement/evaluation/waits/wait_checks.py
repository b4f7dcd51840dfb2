"""Refusals of questions about waits that contradict themselves, or that a part does not take."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from placement.errors import InputError, UnsupportedError
from placement.model.constraints import Rules
from placement.model.protocols import Protocol, operation_path
from placement.model.votes.given_votes import counts_votes, most_votes
from placement.model.wait_terms import TO_LEASE_HOLDER, WaitTerm
from placement.model.waits import Clause, Wait

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = [
    "check_waits",
    "every_replica_votes",
    "least_replicas",
    "needs_roles",
    "refuse_other_roles",
    "refuse_roles",
    "refuse_waits",
    "refuse_witnesses",
    "role_size",
]


def needs_roles(problem: Problem) -> bool:
    """Return whether a question has waits, constants, witnesses, holders or several votes.

    What is known of questions of the four coefficients alone, whose voters hold a replica and have
    one vote each, then does not hold. Lease holders are chosen even where no operation uses them.
    """
    several = problem.vote_layout is not None or bool(problem.votes)
    roles = several or problem.rules.lease_holders > 0
    return problem.demand.has_waits or problem.rules.witnesses > 0 or roles


def every_replica_votes(problem: Problem) -> bool:
    """Return whether the nearest replica or a client waits, so that V = R."""
    return any(not _asks_all(term) for term in problem.demand.waits)


def least_replicas(problem: Problem) -> int:
    """Return the fewest replicas with which the waits and lease holders of a question are met."""
    needs = [
        clause.need
        for term in problem.demand.waits
        for clause in term.clauses
        if clause.role == "replicas" and isinstance(clause.need, int)
    ]
    return max(1, problem.rules.lease_holders, *needs)


def refuse_roles(problem: Problem, what: str, expected: str) -> None:
    """Refuse waits, constants, witnesses and several votes of a voter for an objective.

    Parameters
    ----------
    problem
        The question.
    what
        What is minimised, in words.
    expected
        The way out.

    Raises
    ------
    InputError
        For a question that has one of them.
    """
    if not needs_roles(problem):
        return
    if problem.votes:
        value, other = f"votes {problem.votes}", "one vote each"
    elif problem.demand.has_waits:
        value, other = _who(problem), "operations of the four coefficients alone"
    elif problem.rules.witnesses:
        value, other = f"{problem.rules.witnesses} witnesses", "no witnesses"
    else:
        value, other = f"votes {problem.vote_layout}", "one vote each"
    raise InputError(
        f"{what} is not computed for such a question",
        field="objective",
        value=value,
        expected=f"{expected}, or {other}",
    )


def refuse_other_roles(problem: Problem, what: str) -> None:
    """Refuse witnesses, vote layouts and chosen lease holders.

    Parameters
    ----------
    problem
        The question.
    what
        What cannot take them, in words, such as "a watch".

    Raises
    ------
    UnsupportedError
        For a question that has one of them.
    """
    refuse_witnesses(problem, what)
    if problem.client_paths is not None:
        raise UnsupportedError(
            f"shares: {what} supports only shares that are the same for all clients: got "
            f"{_named_shares(problem)} by client, expected parameters of the protocol instead"
        )
    if problem.vote_layout is not None:
        raise UnsupportedError(
            f"vote_layout: {what} counts one vote for each voter: got {problem.vote_layout!r}, "
            "expected none"
        )
    if problem.votes:
        raise UnsupportedError(
            f"votes: {what} counts one vote for each voter: got {problem.votes!r}, expected none "
            "(votes={} asks with one vote each)"
        )
    if problem.rules.lease_holders:
        raise UnsupportedError(
            f"protocol: {what} gives a lease to every replica: got {_who(problem)} with "
            f"{problem.rules.lease_holders} lease holders, expected holders=replicas"
        )


def refuse_waits(problem: Problem, what: str) -> None:
    """Refuse operations with waits or constants where only the four coefficients are known.

    Parameters
    ----------
    problem
        The question.
    what
        What cannot take them, in words, such as "a range of an RTT".

    Raises
    ------
    UnsupportedError
        For a question whose operations have waits or constants, or with other roles
        (:func:`refuse_other_roles`).
    """
    if not problem.rules.lease_holders:
        refuse_other_roles(problem, what)
    if problem.demand.has_waits:
        raise UnsupportedError(
            f"protocol: {what} supports only operations of the four coefficients: got waits or "
            f"constants ({_who(problem)}), expected operations without them, or a protocol whose "
            "commits wait for one quorum of votes, such as raft"
        )


def refuse_witnesses(problem: Problem, what: str) -> None:
    """Refuse voters without a replica where only replicas are told apart.

    Parameters
    ----------
    problem, what
        As of :func:`refuse_waits`.

    Raises
    ------
    UnsupportedError
        For a question with witnesses.
    """
    if problem.rules.witnesses:
        raise UnsupportedError(
            f"witnesses: {what} supports only voters with a replica: got "
            f"{problem.rules.witnesses}, expected 0"
        )


def check_waits(problem: Problem) -> None:
    """Refuse a question with an impossible wait, or with more than waits.

    Raises
    ------
    InputError
        For more answers than members, for voters that are not all replicas where the nearest
        replica or the client waits, for a leader where there is none, for transactions without a
        path under the protocol, and for money. Objectives refuse what they cannot take.
    """
    demand, rules = problem.demand, problem.rules
    if isinstance(problem.protocol, Protocol):
        _check_groups(problem, problem.protocol)
    if problem.vote_layout is not None:
        _check_layout(problem)
    if problem.votes:
        _check_votes(problem)
    if rules.witnesses:
        _check_witnesses(problem)
    _check_at(problem)
    rewritten = problem.operations != problem.instance.operations
    if (demand.has_waits or rewritten) and (problem.budget is not None or problem.cost_weight):
        raise InputError(
            "the cost follows the messages of the operations of the instance, and not those of a "
            "protocol or of waits",
            field="cost_weight" if problem.cost_weight else "budget",
            value=problem.cost_weight or problem.budget,
            expected="no budget and no weight of the cost",
        )
    if not demand.has_waits:
        return
    if problem.tunes_lead:
        _check_lead(problem)
    if problem.moves is not None and rules.lease_holders:
        raise InputError(
            "moves are not supported where a part of the replicas holds leases",
            field="moves",
            value=problem.moves.given,
            expected="no moves, or leases with holders=replicas",
        )
    for term in demand.waits:
        for clause in term.clauses:
            _check_need(problem, clause)
        _check_parts(problem, term.clauses)
        if not _asks_all(term) and not (rules.replicas_min == rules.replicas_max == rules.voters):
            raise InputError(
                f"every replica votes where the {_ORIGINS[term.origin]} waits ({term.wait.asked})",
                field="voters",
                value=rules.voters,
                expected="as many voters as replicas, or a protocol with a leader, such as leases",
            )
    if demand.leaderless:
        for field, value in (("leader", problem.leader), ("leaders", problem.leaders)):
            if value is not None:
                raise InputError(
                    "no operation needs a leader",
                    field=field,
                    value=value,
                    expected=f"no {field} with {_who(problem)}",
                )
        if problem.moves is not None and "leader" in problem.moves.given:
            raise InputError(
                "no operation needs a leader, so that none is handed over",
                field="moves.leader",
                value=problem.moves.leader,
                expected=f"no price of another leader with {_who(problem)}",
            )


def _check_at(problem: Problem) -> None:
    """Refuse operations at the nearest voter where some replicas do not vote."""
    rules = problem.rules
    if rules.replicas_min == rules.replicas_max == rules.voters and not rules.witnesses:
        return
    for operation in problem.instance.operations:
        if operation.at == "voters" and not rules.voters_hold_leases:
            raise InputError(
                f"operation {operation.name!r} goes to the nearest voter, and not every replica "
                "votes",
                field="at",
                value=operation.at,
                expected="as many voters as replicas, the protocol leases:holders=voters, or at = "
                "'replicas'",
            )


def _check_lead(problem: Problem) -> None:
    """Refuse operations that wait for RTTs between sites beside a lead tuned to them."""
    from placement.model.protocol_families import TUNED_LEAD  # most questions need no protocol

    for operation in problem.operations:
        waits = [wait for wait in operation.waits if str(wait) != TUNED_LEAD]
        if operation.relay or operation.quorum or waits:
            raise InputError(
                f"{operation.name} waits for answers between sites, and the lead of crdb-global is "
                "tuned to them",
                field="protocol",
                value=str(problem.protocol),
                expected="rho=… as a number of ms, or no such operation",
            )


def _asks_all(term: WaitTerm) -> bool:
    """Return whether a wait is one of the leader, or a trip to the nearest lease holder."""
    return term.origin == "leader" or term.to_lease_holder


def _check_witnesses(problem: Problem) -> None:
    """Refuse witnesses where every voter holds a replica, or where moves are weighed."""
    if problem.current is not None:
        raise InputError(
            "witnesses are not supported here",
            field="current",
            value=problem.current,
            expected="no present configuration, or no witnesses",
        )
    for term in problem.demand.waits:
        if not _asks_all(term):
            raise InputError(
                f"every replica votes where the {_ORIGINS[term.origin]} waits ({term.wait.asked}), "
                "and a witness is no replica",
                field="witnesses",
                value=problem.rules.witnesses,
                expected="no witnesses, or a protocol with a leader, such as leases",
            )


def _check_layout(problem: Problem) -> None:
    """Refuse a vote layout where votes are counted otherwise than in quorums of the leader."""
    for field, odd, expected in (
        ("current", problem.current is not None, "no present configuration, or one vote each"),
        (
            "instance",
            problem.demand.scenarios > 1,
            "one RTT matrix: who is closest to the leader would change",
        ),
    ):
        if odd:
            value = problem.instance.name if field == "instance" else getattr(problem, field)
            raise InputError(
                "a vote layout is not supported here", field=field, value=value, expected=expected
            )
    if isinstance(problem.protocol, Protocol):
        paths = problem.protocol.paths(problem.rules.voters)
        waits = [Wait(wait) for path in paths.values() for wait in path.waits]
    else:
        waits = [Wait(str(wait)) for one in problem.instance.operations for wait in one.waits]
    for wait in waits:
        for clause in wait.clauses:
            counted = clause.role != "voters" or clause.need == "quorum"
            if wait != TO_LEASE_HOLDER and (wait.origin != "leader" or not counted):
                raise InputError(
                    "a vote layout says which votes a quorum of the leader has, and no more",
                    field="vote_layout",
                    value=str(wait),
                    expected="leader: quorum of voters, beside clauses about replicas",
                )


def _check_votes(problem: Problem) -> None:
    """Refuse given votes where no leader counts them, or where more than waits is asked for."""
    for field, odd in (
        ("current", problem.current is not None),
        ("budget", problem.budget is not None),
        ("cost_weight", bool(problem.cost_weight)),
    ):
        if odd:
            raise InputError(
                "sites with several votes are not supported here",
                field=field,
                value=getattr(problem, field),
                expected=f"no {field}, or one vote each (no votes)",
            )
    for term in problem.demand.waits:
        if not _asks_all(term):
            raise InputError(
                f"a leader counts votes, and here the {_ORIGINS[term.origin]} waits "
                f"({term.wait.asked})",
                field="votes",
                value=problem.votes,
                expected="one vote each (no votes), or a protocol with a leader, such as leases",
            )


_ORIGINS = {"near": "nearest replica", "client": "client"}


def _named_shares(problem: Problem) -> str:
    """Return the parameters that are given by client, in words."""
    return ", ".join(sorted({parameter for _, parameter, _ in problem.instance.shares}))


def _who(problem: Problem) -> str:
    """Return the source of the waits, in words."""
    return f"protocol {problem.protocol}" if problem.protocol else "operations with waits"


def _check_need(problem: Problem, clause: Clause) -> None:
    """Refuse a clause that asks for more members than its role has."""
    rules = problem.rules
    if clause.role == "lease holders" and not rules.lease_holders:
        raise InputError(
            "the lease holders are not given",
            field="waits",
            value=str(clause),
            expected="the protocol leases:holders=… with a number, or 'of replicas'",
        )
    size = {
        "voters": rules.voters,
        "replicas": rules.replicas_min,
        "lease holders": rules.lease_holders,
    }[clause.role]
    what = "answers"
    if counts_votes(clause, rules.votes):
        assert rules.votes is not None
        if clause.need == problem.quorum:
            return  # known to be within reach; if rules rule that out, there is no plan
        size = most_votes(rules.votes, rules.able_voters, rules.must_vote, rules.voters)
        what = "votes"
    if isinstance(clause.need, int) and clause.need > size:
        raise InputError(
            f"more {what} than {clause.role}" + (" have" if what == "votes" else ""),
            field="waits",
            value=str(clause),
            expected=f"at most {size}{' votes' if what == 'votes' else ''} of {clause.role}",
        )


def _check_parts(problem: Problem, clauses: tuple[Clause, ...]) -> None:
    """Refuse clauses about two parts of a role that together ask for more members than it has."""
    rules = problem.rules
    for first, second in itertools.combinations(clauses, 2):
        apart = first.role == second.role and first.level == second.level
        if any(counts_votes(one, rules.votes) for one in (first, second)):
            continue  # how many members have the votes depends on who they are
        if not apart or {first.scope, second.scope} != {"inside", "outside"}:
            continue
        size = role_size(rules, first, rules.replicas_max)
        # a leader that waits inside its own domain is a member: a majority is at least one
        asked = sum(one.need if isinstance(one.need, int) else 1 for one in (first, second))
        if asked > size and "all" not in (first.need, second.need):
            raise InputError(
                f"more answers than {first.role}: no member is both inside and outside",
                field="waits",
                value=f"{first} + {second}",
                expected=f"at most {size} together",
            )


def _check_groups(problem: Problem, protocol: Protocol) -> None:
    """Refuse operations that were issued and have no path: the protocol has no leader for them."""
    instance = problem.instance
    missing = protocol.needs_groups(instance.operations)
    led = protocol.needs_leader(instance.operations)
    for place, operation in enumerate(instance.operations):
        if operation.name not in (*missing, *led) or not instance.counts[:, :, place].any():
            continue
        kind = operation_path(operation)
        if operation.name in led:
            raise InputError(
                f"{operation.name} asks a leader, and the protocol of the writes has none",
                field="protocol",
                value=str(protocol),
                expected=f"{kind}={protocol.part('write')} too",
            )
        one = protocol.part(kind) or protocol
        raise InputError(
            f"the protocol {one.name} has no path for {operation.name}, which spans "
            "several groups: without a leader, no commit covers all groups",
            field="protocol",
            value=str(protocol),
            expected=f"{one.name}:multi=2 (commits one after another), another mix "
            "(--mix ycsb-a), or waits of the operation by hand",
        )


def role_size(rules: Rules, clause: Clause, replicas: int) -> int:
    """Return the number of members of a clause's role, where there are so many replicas."""
    if clause.role == "lease holders":
        return rules.lease_holders
    return rules.voters if clause.role == "voters" else replicas

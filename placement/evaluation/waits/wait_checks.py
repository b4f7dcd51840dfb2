"""Refusals of waits that contradict themselves or that a part does not take; notes on waits."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from placement.errors import InputError, UnsupportedError
from placement.model.constraints import Rules, majority
from placement.model.operations import Clause, Wait
from placement.model.protocols import Protocol

if TYPE_CHECKING:
    from placement.problem import Problem


def every_replica_votes(problem: Problem) -> bool:
    """Return whether the nearest replica or a client waits, so that V = R."""
    return any(term.origin != "leader" for term in problem.demand.waits)


def least_replicas(problem: Problem) -> int:
    """Return the fewest replicas with which the waits of a question are met."""
    needs = [
        clause.need
        for term in problem.demand.waits
        for clause in term.clauses
        if clause.role == "replicas" and isinstance(clause.need, int)
    ]
    return max([1, *needs])


def refuse_waits(problem: Problem, what: str) -> None:
    """Refuse waits, constants and witnesses for `what`, which knows the four coefficients only."""
    refuse_witnesses(problem, what)
    if problem.demand.has_waits:
        raise UnsupportedError(
            f"protocol: {what} supports only operations of the four coefficients: got waits or "
            f"constants ({_who(problem)}), expected operations without them, or a protocol whose "
            "commits wait for one quorum of votes, such as raft"
        )


def refuse_witnesses(problem: Problem, what: str) -> None:
    """Refuse voters without a replica for `what`, which tells only replicas apart."""
    if problem.rules.witnesses:
        raise UnsupportedError(
            f"witnesses: {what} supports only voters with a replica: got "
            f"{problem.rules.witnesses}, expected 0"
        )


def check_waits(problem: Problem) -> None:
    """Raise InputError for an impossible wait, or for more than waits.

    That is more answers than members, voters that are not all replicas where the nearest replica or
    the client waits, a leader where there is none, transactions without a path under the protocol,
    and money. Objectives refuse what they cannot take.
    """
    demand, rules = problem.demand, problem.rules
    if isinstance(problem.protocol, Protocol):
        _check_groups(problem, problem.protocol)
    _check_alone(problem)
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
    for term in demand.waits:
        for clause in term.clauses:
            size = role_size(rules, clause, rules.replicas_min)
            if isinstance(clause.need, int) and clause.need > size:
                words = f"more answers than {clause.role}"
                expected = f"at most {size} of {clause.role}"
                raise InputError(words, field="waits", value=str(clause), expected=expected)
        _check_parts(problem, term.clauses)
        everyone = rules.replicas_min == rules.replicas_max == rules.voters
        if term.origin != "leader" and not everyone:
            raise InputError(
                f"every replica votes where the {_ORIGINS[term.origin]} waits ({term.wait.asked})",
                field="voters",
                value=rules.voters,
                expected="as many voters as replicas, or a protocol with a leader, such as leases",
            )
    if demand.leaderless:
        for field, value in (("leader", problem.leader), ("leaders", problem.leaders)):
            if value is not None:
                words = "no operation needs a leader"
                expected = f"no {field} with {_who(problem)}"
                raise InputError(words, field=field, value=value, expected=expected)


def _check_alone(problem: Problem) -> None:
    """Refuse waits and witnesses beside each other, losses, percentiles, moves and varying RTTs.

    This is the only place: what answers these questions knows the four coefficients, and voters
    with a replica.
    """
    if not problem.needs_roles:
        return
    objective, witnesses = problem.objective, problem.rules.witnesses
    varies = problem.demand.scenarios > 1 and problem.demand.has_waits
    for field, odd, value, expected in (
        ("objective", objective.kind != "mean", objective.describe(), "the mean latency"),
        ("current", problem.current is not None, problem.current, "no present configuration"),
        ("instance", varies, problem.instance.name, "one table of RTTs for all intervals"),
        ("budget", witnesses and problem.budget is not None, problem.budget, "no budget"),
        ("cost_weight", witnesses and problem.cost_weight, problem.cost_weight, "no weight"),
        ("witnesses", witnesses and problem.demand.waits, witnesses, "no witnesses"),
    ):
        if odd:
            raise InputError(
                "operations with waits, and witnesses, have plans for the mean latency alone: one "
                "of the two, without losses, percentiles, moves, RTTs that vary by interval and a "
                "cost",
                field=field,
                value=value,
                expected=f"{expected}, or a protocol whose commits wait for one quorum of votes, "
                "such as raft, and no witnesses",
            )


_ORIGINS = {"near": "nearest replica", "client": "client"}


def _who(problem: Problem) -> str:
    """Return the source of the waits, in words."""
    return f"protocol {problem.protocol}" if problem.protocol else "operations with waits"


def _check_parts(problem: Problem, clauses: tuple[Clause, ...]) -> None:
    """Refuse clauses about two parts of a role that together ask for more members than it has."""
    rules = problem.rules
    for first, second in itertools.combinations(clauses, 2):
        apart = first.role == second.role and first.level == second.level
        if not apart or {first.scope, second.scope} != {"inside", "outside"}:
            continue
        size = role_size(rules, first, rules.replicas_max)
        # a leader that waits inside its own domain is a member: a majority is at least one
        asked = sum(one.need if isinstance(one.need, int) else 1 for one in (first, second))
        if asked > size and "all" not in (first.need, second.need):
            words = f"more answers than {first.role}: no member is both inside and outside"
            expected = f"at most {size} together"
            raise InputError(words, field="waits", value=f"{first} + {second}", expected=expected)


def _check_groups(problem: Problem, protocol: Protocol) -> None:
    """Refuse transactions over groups that were issued and have no path: there is no leader."""
    instance = problem.instance
    missing = protocol.needs_groups(instance.operations)
    for place, operation in enumerate(instance.operations):
        if operation.name not in missing or not instance.counts[:, :, place].any():
            continue
        raise InputError(
            f"the protocol {protocol.name} has no path for {operation.name}, which spans "
            "several groups: without a leader, no commit covers all groups",
            field="protocol",
            value=str(protocol),
            expected=f"{protocol.name}:multi=2 (commits one after another), another mix "
            "(--mix ycsb-a), or waits of the operation by hand",
        )


def role_size(rules: Rules, clause: Clause, replicas: int) -> int:
    """Return the number of members of a clause's role, where there are so many replicas."""
    return rules.voters if clause.role == "voters" else replicas


# Notes for the reader of a plan: about its protocol, its quorums and clauses without effect


def wait_notes(problem: Problem) -> tuple[str, ...]:
    """Return sentences about the protocol and about waits given by hand; of neither: none.

    Those of :meth:`.Protocol.notes`; quorums of at most half of the voters, with the votes that an
    election then needs; clauses that never decide how long their wait lasts.
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

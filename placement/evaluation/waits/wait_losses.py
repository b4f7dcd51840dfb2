"""Operations with waits after a loss: numbers of answers stay, lost members never answer.

Nothing has been reconfigured when sites are lost. A number of answers, a majority and a quorum keep
the size that they had with all members. So the roles stay as they are and the RTT to a lost site is
infinite: the order statistics of :mod:`placement.evaluation.waits.wait_latency` then give what is
left. Three things change with the loss:

- *All of a role* cannot answer any more. Operations stop until the lost members are taken out of
  the role (a lease that ends, a new membership), and then wait for the others. The score is the one
  afterwards; :func:`stops_first` says whether there was a stop.
- *A fast quorum* that is out of reach sends every operation down the slow path of its protocol:
  its first round ends with a majority (``slow_demand`` of a problem).
- *A leader* that takes over has a lease: it takes that of the lost leader, if it has none.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from placement.evaluation.objective import quorum_size
from placement.evaluation.score import nearest
from placement.evaluation.voter_choice import by_answer_time
from placement.model.configuration import Configuration
from placement.model.demand import Demand
from placement.model.protocols import Protocol
from placement.model.votes.vote_layouts import layout_votes
from placement.model.wait_terms import WaitTerm

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = [
    "demand_without",
    "holders_under",
    "paths_after",
    "stops_first",
    "votes_after",
    "votes_of",
]


def paths_after(problem: Problem, configuration: Configuration, gone: frozenset[int]) -> Demand:
    """Return the demand with the slow paths where a loss leaves no fast quorum."""
    slow, protocol = problem.slow_demand, problem.protocol
    if slow is None or not isinstance(protocol, Protocol):
        return problem.demand
    fast = protocol.fast_quorum(len(configuration.voters))
    left = sum(voter not in gone for voter in configuration.voters)
    return problem.demand if fast is None or left >= fast else slow


def demand_without(demand: Demand, gone: Iterable[int]) -> Demand:
    """Return a demand in which the lost sites never answer: the RTT to them is infinite."""
    lost = sorted(gone)
    client_rtt, site_rtt = demand.client_rtt.copy(), demand.site_rtt.copy()
    client_rtt[..., lost] = math.inf
    site_rtt[..., lost] = math.inf
    return dataclasses.replace(demand, client_rtt=client_rtt, site_rtt=site_rtt)


def votes_after(
    problem: Problem, configuration: Configuration, gone: frozenset[int], leader: int
) -> int | None:
    """Return for how many voters a leader waits after a loss; None where too few are left.

    m of them, or under a vote layout as many of its closest ones as have the votes of a commit:
    the votes lie where they lay before the loss. Where sites have several votes, their waits count
    them: one voter then, if enough votes are left.
    """
    voters = [voter for voter in configuration.voters if voter not in gone]
    if (given := problem.rules.votes) is not None:
        all_votes = int(given[list(configuration.voters)].sum())
        asked = all_votes // 2 + 1 if problem.quorum is None else problem.quorum
        return 1 if int(given[voters].sum()) >= asked else None
    if problem.vote_layout is None:
        m = quorum_size(problem, configuration)
        return m if len(voters) >= m else None
    votes = votes_of(problem, configuration)
    needed, found = layout_votes(problem)[0], 0
    for count, voter in enumerate(_in_turn(problem.demand, leader, voters), 1):
        found += votes[voter]
        if found >= needed:
            return count
    return None


def votes_of(problem: Problem, configuration: Configuration) -> dict[int, int]:
    """Return the votes of each voter under a vote layout: the leader has the most, then by RTT."""
    assert problem.vote_layout is not None
    placed = _in_turn(problem.demand, configuration.leader, configuration.voters)
    return dict(zip(placed, problem.vote_layout, strict=True))


def _in_turn(demand: Demand, leader: int, voters: Iterable[int]) -> tuple[int, ...]:
    """Return voters in the order in which they answer a leader, itself first."""
    others = [site for site in voters if site != leader]
    return (leader, *by_answer_time(demand, leader, others))


def holders_under(configuration: Configuration, leader: int) -> tuple[int, ...] | None:
    """Return the lease holders under a leader, lost ones among them; None: every replica."""
    holders = configuration.lease_holders
    if not holders:
        return None
    if leader in holders:
        return holders
    return tuple(sorted({*holders, leader} - {configuration.leader}))


def stops_first(
    problem: Problem, configuration: Configuration, gone: frozenset[int], leader: int
) -> bool:
    """Return whether a loss stops operations that are issued until roles are reconfigured.

    Parameters
    ----------
    problem, configuration
        The plan.
    gone
        Site indices F.
    leader
        The leader afterwards.
    """
    demand = paths_after(problem, configuration, gone)
    return any(
        term.weight.any() and _waits_for_lost(demand, term, configuration, gone, leader)
        for term in demand.waits
    )


def _waits_for_lost(
    demand: Demand,
    term: WaitTerm,
    configuration: Configuration,
    gone: frozenset[int],
    leader: int,
) -> bool:
    """Return whether a wait is for all members of a role, of which some are lost."""
    for clause, labels in zip(term.clauses, term.labels, strict=True):
        if clause.need != "all":
            continue
        members = configuration.replicas
        if clause.role == "voters":
            members = configuration.voters
        elif clause.role == "lease holders":
            members = configuration.lease_holders or members
        lost = gone.intersection(members)
        if not lost or labels is None:
            if lost:
                return True
            continue
        inside = clause.scope == "inside"
        for origin in _origins(demand, term, configuration, gone, leader):
            if any(bool(labels[origin] == labels[site]) == inside for site in lost):
                return True
    return False


def _origins(
    demand: Demand,
    term: WaitTerm,
    configuration: Configuration,
    gone: frozenset[int],
    leader: int,
) -> set[int]:
    """Return the surviving sites at which somebody waits."""
    if term.origin == "leader":
        return {leader}
    alive = [site for site in configuration.replicas if site not in gone]
    found: set[int] = set()
    for rtt, weight in zip(demand.client_rtt, term.weight, strict=True):
        found.update(nearest(rtt, alive)[weight > 0].tolist())
    return found

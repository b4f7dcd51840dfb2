"""Distributions of waits: when a wait has all its answers, pairs being independent.

All clauses of a wait ask at once, and a member that counts in several of them answers once. So

    P(wait <= x) = P(every clause has its answers by x)

is the probability of a joint event, by a recurrence over the members with one counter per clause
(:func:`placement.tail.distribution_arithmetic.at_least_of_each`). The product of the probabilities
of the clauses is another number: for 3 of 5 members and 1 of the 3 that are outside, each of which
has answered with probability 1/2 by x, the two are 0.5 and 0.4375.

An origin that is a member itself has answered at once. Under a vote layout a member counts for as
many answers as it has votes, placed by mean RTT as for the mean. In clauses that count votes, it
counts for as many as its site was given.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.score import nearest
from placement.evaluation.waits.wait_latency import needed, needed_votes
from placement.evaluation.waits.wait_losses import votes_of
from placement.model.configuration import Configuration
from placement.model.demand import Demand
from placement.model.votes.given_votes import counts_votes
from placement.model.votes.vote_layouts import layout_votes
from placement.model.wait_terms import WaitTerm
from placement.model.waits import Clause
from placement.support.checks import FloatArray, IntArray
from placement.tail.distribution_arithmetic import at_least_of_each
from placement.tail.rtt_distributions import Distributions

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["AfterLoss", "client_wait", "site_wait"]


@dataclass(frozen=True, eq=False)
class AfterLoss:
    """Demand and lost members of a question after a loss.

    Attributes
    ----------
    demand
        Paths of the operations, with infinite mean RTTs to lost sites.
    lost
        Site indices that never answer.
    """

    demand: Demand
    lost: frozenset[int]


def site_wait(
    problem: Problem,
    configuration: Configuration,
    distributions: Distributions,
    term: WaitTerm,
    origin: int,
    quorum: int,
    lost: Collection[int] = (),
) -> FloatArray:
    """Distribution of a wait of the leader or of a nearest replica, shape (bins,).

    Parameters
    ----------
    problem, configuration
        The plan.
    distributions
        Of the problem's instance, in one scenario.
    term
        The wait.
    origin
        Site index of who waits.
    quorum
        m: votes that a commit waits for; under a vote layout voters.
    lost
        Members that never answer. Numbers and majorities keep their size, and "all" leaves them out
        (:mod:`placement.evaluation.waits.wait_losses`).

    Returns
    -------
    ndarray
        All zeros for a wait that too few members can answer.
    """
    needs, counts, own = [], [], []
    members: list[int] = sorted({*configuration.voters, *configuration.replicas})
    place = {site: row for row, site in enumerate(members)}
    for clause, labels in zip(term.clauses, term.labels, strict=True):
        role = _members(configuration, clause)
        asked = list(role)
        if labels is not None:
            inside = clause.scope == "inside"
            asked = [site for site in role if bool(labels[site] == labels[origin]) is inside]
        weights = np.zeros(len(members), dtype=np.intp)
        weights[[place[site] for site in asked]] = 1
        need = _need(clause, len(role), quorum, len(asked), lost=len({*asked} & {*lost}))
        if clause.need == "quorum" and problem.vote_layout is not None:
            votes = votes_of(problem, configuration)
            weights[[place[site] for site in asked]] = [votes[site] for site in asked]
            need = layout_votes(problem)[0]
        elif counts_votes(clause, term.votes):
            assert term.votes is not None
            weights[[place[site] for site in asked]] = term.votes[asked]
            need = int(needed_votes(clause, np.array(weights.sum())))
        own.append(int(weights[place[origin]]) if origin in place else 0)
        needs.append(need)
        counts.append(weights)
    others = [site for site in members if site != origin and site not in lost]
    rows = [place[site] for site in others]
    answered = np.minimum(np.cumsum(distributions.site_site[origin, others], axis=-1), 1.0)
    by_then = at_least_of_each(
        [need - mine for need, mine in zip(needs, own, strict=True)],
        np.array(counts)[:, rows].T,
        answered,
    )
    return np.asarray(np.diff(by_then, prepend=0.0))


def client_wait(
    problem: Problem,
    configuration: Configuration,
    distributions: Distributions,
    term: WaitTerm,
    scenario: int,
    quorum: int,
    after: AfterLoss | None = None,
) -> FloatArray:
    """Distribution of a wait of every client, shape (clients, bins).

    The arguments are those of :func:`site_wait`. The trip to the nearest lease holder goes to the
    one of least mean RTT, as that to the nearest replica.
    """
    demand = problem.demand if after is None else after.demand
    lost: Collection[int] = () if after is None else after.lost
    table = distributions.client_site
    if term.to_lease_holder:
        holders = configuration.lease_holders or configuration.replicas
        near = nearest(demand.client_rtt[scenario], holders)
        return np.asarray(table[np.arange(len(near)), near])
    members: list[int] = sorted({*configuration.voters, *configuration.replicas} - {*lost})
    needs, counts = [], []
    for clause in term.clauses:
        role = _members(configuration, clause)
        counts.append(np.isin(members, role).astype(np.intp))
        gone = len({*role} & {*lost})
        needs.append(_need(clause, len(role), quorum, len(role), lost=gone))
    answered = np.minimum(np.cumsum(table[:, members], axis=-1), 1.0)
    by_then = at_least_of_each(needs, np.array(counts).T, answered.swapaxes(0, 1))
    return np.asarray(np.diff(by_then, prepend=0.0, axis=-1))


def _members(configuration: Configuration, clause: Clause) -> tuple[int, ...]:
    """Return the members of the role of a clause."""
    if clause.role == "voters":
        return configuration.voters
    if clause.role == "lease holders":
        return configuration.lease_holders or configuration.replicas
    return configuration.replicas


def _need(clause: Clause, role_size: int, quorum: int, asked: int, *, lost: int = 0) -> int:
    """Return how many answers a clause needs where so many of the asked members are lost."""
    if clause.need == "all":
        return asked - lost
    members: IntArray = np.array(asked, dtype=np.intp)
    return int(needed(clause, role_size, quorum, members))

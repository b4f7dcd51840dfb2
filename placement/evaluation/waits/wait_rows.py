"""Waits of a leader as linear inequalities over the roles, for integer and constraint programs.

Under a leader ℓ every clause asks, within a radius t, for

    Σ_r a_r · v_r  +  Σ_r b_r · x_r  +  Σ_r c_r · L_r  >=  least,

where v_r says that site r votes, x_r that it holds a replica and L_r that it holds a lease. "k of
voters" counts the voters in the ball of radius t; "all of" a role has −1 at each member beyond the
radius; a majority of a group whose size the plan decides counts members in the ball twice, and
takes every member off once. A clause that counts votes has those of each site as a factor. What
holds within a radius holds within every longer one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.waits.wait_latency import needed
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.model.votes.given_votes import counts_votes
from placement.model.wait_terms import WaitTerm
from placement.model.waits import Clause
from placement.support.checks import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["LeaderWait", "RoleRow", "leader_waits", "least_wait", "no_loss_rows", "no_rows"]


@dataclass(frozen=True)
class RoleRow:
    """A linear inequality over the roles: Σ a_r v_r + Σ b_r x_r + Σ c_r L_r >= least.

    Attributes
    ----------
    voters, replicas
        a and b by site, without those that are 0.
    least
        The right-hand side.
    holders
        c by site, without those that are 0.
    """

    voters: dict[int, int]
    replicas: dict[int, int]
    least: int
    holders: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LeaderWait:
    """Possible lengths of one wait of a leader in one scenario, and the roles that each needs.

    Attributes
    ----------
    rounds
        D_j, how often the demand waits.
    radii
        Possible durations in ms, ascending; empty: the wait never ends under this leader.
    rows
        For each radius the inequalities that end the wait within it.
    """

    rounds: float
    radii: tuple[float, ...]
    rows: tuple[tuple[RoleRow, ...], ...]


def no_rows(demand: Demand) -> str | None:
    """Return why the waits of a demand are not linear in the roles under a leader, or None.

    Trips to the nearest lease holder are no waits here: a client is served as by replicas.
    """
    for term in demand.waits:
        if term.origin != "leader" and not term.to_lease_holder:
            who = "the nearest replica waits" if term.origin == "near" else "the client waits"
            return f"{who} ({term.wait.asked}): use 'exact' or 'exhaustive'"
    return None


def no_loss_rows(problem: Problem) -> str | None:
    """Return why losses of a question are not linear in the roles under a leader, or None.

    Roles that are chosen beside leader, voters and replicas change hands after a loss, and so may
    the paths of operations.
    """
    why = no_rows(problem.demand)
    if why is not None or problem.objective.kind == "mean":
        return why
    use = "use 'exact' or 'exhaustive'"
    if problem.rules.witnesses:
        return f"it counts no witnesses after losses: {use}"
    if problem.rules.lease_holders:
        return f"it chooses no lease holders under losses: {use}, or leases with holders=replicas"
    if problem.vote_layout is not None:
        return f"it counts one vote for each voter after losses, and there is a vote layout: {use}"
    if problem.slow_demand is not None:
        return f"a loss may leave no fast quorum: {use}"
    return None


def leader_waits(
    demand: Demand, rules: Rules, leader: int, lost: Collection[int] = ()
) -> dict[tuple[int, int], LeaderWait]:
    """Return the waits of a leader beside the rounds of votes, by (place in the demand, scenario).

    Parameters
    ----------
    demand, rules
        Of a question for which :func:`no_rows` returns None.
    leader
        Site index.
    lost
        Site indices that never answer: numbers and majorities keep their size, and "all of" a role
        asks the members that are left.

    Notes
    -----
    O(S²) for each clause and scenario: a radius for each site, with a coefficient for each.
    """
    return {
        (j, k): _leader_wait(term, demand.site_rtt[k, leader], rules, leader, float(rounds), lost)
        for j, term in enumerate(demand.waits)
        if term.origin == "leader"
        for k, rounds in enumerate(term.weight.sum(axis=1).tolist())
        if rounds > 0
    }


def _leader_wait(
    term: WaitTerm,
    rtt: FloatArray,
    rules: Rules,
    leader: int,
    rounds: float,
    lost: Collection[int],
) -> LeaderWait:
    radii: list[float] = []
    rows: list[tuple[RoleRow, ...]] = []
    members = rules.may_hold | rules.able_voters | (np.arange(len(rtt)) == leader)
    alive = np.ones(len(rtt), dtype=bool)
    alive[list(lost)] = False
    members &= alive
    for radius in np.unique(rtt[members]).tolist():
        asked = [
            _clause_row(clause, labels, rtt, rules, leader, radius, alive)
            for clause, labels in zip(term.clauses, term.labels, strict=True)
        ]
        # a longer radius that asks for the same is never the shortest
        if all(_may_hold(row) for row in asked) and (not rows or rows[-1] != tuple(asked)):
            radii.append(float(radius))
            rows.append(tuple(asked))
    return LeaderWait(rounds, tuple(radii), tuple(rows))


def _may_hold(row: RoleRow) -> bool:
    """Return whether some roles, rules aside, meet a row."""
    coefficients = (*row.voters.values(), *row.replicas.values(), *row.holders.values())
    return sum(c for c in coefficients if c > 0) >= row.least


def _clause_row(
    clause: Clause,
    labels: IntArray | None,
    rtt: FloatArray,
    rules: Rules,
    leader: int,
    radius: float,
    alive: BoolArray,
) -> RoleRow:
    """Return the row that one clause requires within a radius."""
    of_voters = clause.role == "voters"
    able = rules.able_voters if of_voters else rules.may_hold
    if clause.role == "lease holders":
        able = rules.may_lease
    part = able.copy()
    if labels is not None:
        same = labels == labels[leader]
        part &= same if clause.scope == "inside" else ~same
    ball = part & alive & (rtt <= radius)
    if clause.need == "all":
        coefficient, least = np.where(part & alive & ~ball, -1, 0), 0
    elif counts_votes(clause, rules.votes):
        assert rules.votes is not None
        coefficient, least = ball * rules.votes, 1
        if isinstance(clause.need, int):
            least = clause.need
        else:  # more than half of all votes
            coefficient = 2 * coefficient - part * rules.votes
    elif clause.need == "majority" and (clause.scope == "inside" or not of_voters):
        # ball >= ⌊n/2⌋ + 1 for n members is 2·ball >= n + 1 in whole numbers
        whole = part if clause.scope == "inside" else able
        coefficient, least = 2 * ball.astype(np.intp) - whole, 1
    else:
        count = needed(clause, rules.voters, rules.quorum, np.array(0))
        coefficient, least = ball.astype(np.intp), int(count)
    given = {site: int(coefficient[site]) for site in np.nonzero(coefficient)[0].tolist()}
    if clause.role == "lease holders":
        return RoleRow({}, {}, least, given)
    return RoleRow(given, {}, least) if of_voters else RoleRow({}, given, least)


def least_wait(waits: Sequence[LeaderWait]) -> float:
    """Return a lower bound on the sum of some waits of one leader in the score."""
    return sum((wait.rounds * wait.radii[0] if wait.radii else np.inf for wait in waits), 0.0)

"""Waits of a leader as linear inequalities over the roles, for integer and constraint programs.

Under a leader ℓ every clause asks, within a radius t, for

    Σ_r a_r · v_r  +  Σ_r b_r · x_r  >=  least,

where v_r says that site r votes and x_r that it holds a replica. "k of voters" counts the voters
in the ball of radius t; "all of" a role has −1 at each member beyond the radius; a majority of a
group whose size the plan decides counts members in the ball twice, and takes every member off once.
What holds within a radius holds within every longer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.waits.wait_latency import needed
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.model.operations import Clause
from placement.support.checks import FloatArray, IntArray

if TYPE_CHECKING:
    from placement.problem import Problem


@dataclass(frozen=True)
class RoleRow:
    """A linear inequality over the roles: Σ a_r v_r + Σ b_r x_r >= least."""

    #: `voters`, `replicas`: a and b by site, without zeros
    voters: dict[int, int]
    replicas: dict[int, int]
    least: int  #: the right-hand side

    @property
    def attainable(self) -> bool:
        """Return whether some roles, rules aside, meet the row."""
        coefficients = (*self.voters.values(), *self.replicas.values())
        return sum(c for c in coefficients if c > 0) >= self.least


@dataclass(frozen=True, eq=False)
class LeaderWait:
    """Possible lengths of one wait of a leader in one scenario, and the roles that each needs."""

    rounds: float  #: D_j, how often the demand waits
    #: possible durations in ms, ascending; empty: the wait never ends under this leader
    radii: tuple[float, ...]
    #: for each radius the inequalities that end the wait within it
    rows: tuple[tuple[RoleRow, ...], ...]


def no_rows(problem: Problem) -> str | None:
    """Return why the waits of a question are not linear in the roles under a leader, or None."""
    for term in problem.demand.waits:
        if term.origin != "leader":
            who = "the nearest replica waits" if term.origin == "near" else "the client waits"
            return f"{who} ({term.wait.asked}): use 'exact' or 'exhaustive'"
    return None


def leader_waits(demand: Demand, rules: Rules, leader: int) -> dict[tuple[int, int], LeaderWait]:
    """Return the waits of a leader beside the rounds of votes, by (place in the demand, scenario).

    :func:`no_rows` must be None. O(S²) for each clause and scenario: a radius for each site, with a
    coefficient for each.
    """
    found: dict[tuple[int, int], LeaderWait] = {}
    members = rules.may_hold | rules.may_vote | (np.arange(len(rules.may_hold)) == leader)
    for j, term in enumerate(demand.waits):
        if term.origin != "leader":
            continue
        for k, rounds in enumerate(term.weight.sum(axis=1).tolist()):
            if rounds <= 0:
                continue
            radii: list[float] = []
            rows: list[tuple[RoleRow, ...]] = []
            rtt = demand.site_rtt[k, leader]
            for radius in np.unique(rtt[members]).tolist():
                asked = tuple(
                    _clause_row(clause, labels, rtt, rules, leader, radius)
                    for clause, labels in zip(term.clauses, term.labels, strict=True)
                )
                # a longer radius that asks for the same is never the shortest
                if all(row.attainable for row in asked) and (not rows or rows[-1] != asked):
                    radii.append(float(radius))
                    rows.append(asked)
            found[j, k] = LeaderWait(float(rounds), tuple(radii), tuple(rows))
    return found


def _clause_row(
    clause: Clause,
    labels: IntArray | None,
    rtt: FloatArray,
    rules: Rules,
    leader: int,
    radius: float,
) -> RoleRow:
    """Return the row that one clause requires within a radius."""
    of_voters = clause.role == "voters"
    able = rules.may_vote if of_voters else rules.may_hold
    part = able.copy()
    if labels is not None:
        same = labels == labels[leader]
        part &= same if clause.scope == "inside" else ~same
    ball = part & (rtt <= radius)
    if clause.need == "all":
        coefficient, least = np.where(part & ~ball, -1, 0), 0
    elif clause.need == "majority" and (clause.scope == "inside" or not of_voters):
        # ball >= ⌊n/2⌋ + 1 for n members is 2·ball >= n + 1 in whole numbers
        whole = part if clause.scope == "inside" else able
        coefficient, least = 2 * ball.astype(np.intp) - whole, 1
    else:
        count = needed(clause, rules.voters, rules.quorum, np.array(0))
        coefficient, least = ball.astype(np.intp), int(count)
    given = {site: int(coefficient[site]) for site in np.nonzero(coefficient)[0].tolist()}
    return RoleRow(given, {}, least) if of_voters else RoleRow({}, given, least)


def least_wait(waits: Sequence[LeaderWait]) -> float:
    """Return a lower bound on the sum of some waits of one leader in the score."""
    return sum((wait.rounds * wait.radii[0] if wait.radii else np.inf for wait in waits), 0.0)

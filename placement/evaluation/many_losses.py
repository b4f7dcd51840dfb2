"""Scores of many configurations after one loss at once, as :mod:`placement.evaluation.losses`.

Every configuration keeps its sites, and the RTT to a lost site is infinite. Those whose leader is
lost are scored under each voter that may take over. The numbers are those of ``score_after``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.losses import demand_after, score_after, unnoticed
from placement.evaluation.score import score_many
from placement.evaluation.waits.wait_losses import demand_without
from placement.model.configuration import Configuration
from placement.model.demand import Demand
from placement.model.protocols import Protocol, asks_for_quorum
from placement.support.checks import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["scores_after_many"]


def scores_after_many(
    problem: Problem,
    configurations: Sequence[Configuration],
    lost: Iterable[int],
    normal: FloatArray,
    *,
    leader_may_move: bool = False,
    clients_move: bool = False,
) -> FloatArray:
    """Return the score after a loss under the best leader; infinite where the service stops.

    Parameters
    ----------
    problem
        The question.
    configurations
        Any number of them, with the problem's number of voters.
    lost
        Site indices F.
    normal
        Normal scores, shape (n,): those of configurations that do not notice the loss.
    leader_may_move, clients_move
        As in :func:`placement.evaluation.losses.score_after`.

    Returns
    -------
    ndarray
        Shape (n,), ms times operations.

    Notes
    -----
    O(n · clients · members), in NumPy, and as many times as leaders may take over. With a vote
    layout, or several votes of a site, one configuration after another.
    """
    gone = frozenset(lost)
    found = normal.copy()
    moves = {"leader_may_move": leader_may_move, "clients_move": clients_move}
    alike: dict[tuple[int, int], list[int]] = {}
    for row, one in enumerate(configurations):
        if unnoticed(problem, one, gone, clients_move=clients_move):
            continue
        if problem.vote_layout is not None or problem.votes:
            found[row] = min(score_after(problem, one, gone, **moves).values(), default=math.inf)
            continue
        alike.setdefault((len(one.replicas), len(one.lease_holders)), []).append(row)
    for rows in alike.values():
        some = _Alike(problem, [configurations[row] for row in rows], gone)
        found[rows] = some.scores(**moves)
    return found


class _Alike:
    """Configurations of equal sizes, as arrays, and their survivors of a loss."""

    def __init__(
        self, problem: Problem, configurations: Sequence[Configuration], gone: frozenset[int]
    ) -> None:
        self.problem, self.gone = problem, gone
        self.leader: IntArray = np.array([one.leader for one in configurations], dtype=np.intp)
        self.voters: IntArray = np.array([one.voters for one in configurations], dtype=np.intp)
        self.replicas: IntArray = np.array([one.replicas for one in configurations], dtype=np.intp)
        self.holders: IntArray = np.array(
            [one.lease_holders for one in configurations], dtype=np.intp
        )
        alive = np.ones(len(problem.instance.sites), dtype=bool)
        alive[list(gone)] = False
        left = alive[self.voters]
        self.count: IntArray = left.sum(axis=1)
        held = (self.voters[:, :, np.newaxis] == self.replicas[:, np.newaxis, :]).any(axis=2)
        self.able: BoolArray = left & held
        self.leads_on: BoolArray = alive[self.leader]

    def scores(self, *, leader_may_move: bool, clients_move: bool) -> FloatArray:
        """Return the scores under the best leaders, shape (n,)."""
        problem = self.problem
        found = np.full(len(self.leader), math.inf)
        serves = self.able.any(axis=1)
        if asks_for_quorum(problem.operations):
            serves &= self.count >= problem.rules.quorum
        slow, fast = problem.slow_demand, 0
        if slow is not None and isinstance(problem.protocol, Protocol):
            fast = problem.protocol.fast_quorum(problem.rules.voters) or 0
        for demand, rows in (
            (problem.demand, serves & (self.count >= fast)),
            (slow, serves & (self.count < fast)),
        ):
            if demand is None or not rows.any():
                continue
            votes = demand.quorum.any()
            if votes:
                rows = rows & (self.count >= problem.rules.quorum)
            waits_for = [clause.need for term in demand.waits for clause in term.clauses]
            quorum = problem.rules.quorum if votes or "quorum" in waits_for else 1
            row, leaders = self._leaders(demand, np.nonzero(rows)[0], leader_may_move)
            after = demand_after(problem, self.gone, demand) if clients_move else demand
            values = score_many(
                demand_without(after, self.gone),
                leaders,
                self.voters[row],
                self.replicas[row],
                quorum,
                self._holders(row, leaders) if self.holders.shape[1] else None,
            )
            np.minimum.at(found, row, values)
        return found

    def _leaders(
        self, demand: Demand, rows: IntArray, leader_may_move: bool
    ) -> tuple[IntArray, IntArray]:
        """Return pairs of a row and a leader that it may have."""
        stays = self.leads_on[rows] & (demand.leaderless or not leader_may_move)
        if demand.leaderless:
            first = self.voters[rows, self.able[rows].argmax(axis=1)]
            return rows, np.where(stays, self.leader[rows], first)
        if self.problem.demand.leaderless:
            stays[:] = False  # the slow path needs a leader, and nobody led before
        moving = rows[~stays]
        able = self.able[moving]
        preferred = able & self.problem.rules.may_lead[self.voters[moving]]
        able = np.where(preferred.any(axis=1, keepdims=True), preferred, able)
        row, place = np.nonzero(able)
        return (
            np.concatenate([rows[stays], moving[row]]),
            np.concatenate([self.leader[rows[stays]], self.voters[moving[row], place]]),
        )

    def _holders(self, row: IntArray, leaders: IntArray) -> IntArray:
        """Return the lease holders under each leader: it takes the lease of the one before."""
        holders = self.holders[row]
        has = (holders == leaders[:, np.newaxis]).any(axis=1, keepdims=True)
        before = holders == self.leader[row][:, np.newaxis]
        return np.where(before & ~has, leaders[:, np.newaxis], holders)

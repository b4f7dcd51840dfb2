"""Scores of many configurations after one loss at once, as :mod:`placement.evaluation.losses`.

Every configuration keeps its sites, and the RTT to a lost site is infinite. Those whose leader is
lost are scored under each voter that may take over. The numbers are those of ``score_after``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placement.evaluation.losses import demand_after, unnoticed
from placement.evaluation.score import score_many
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray, IntArray

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
    O(n · clients · members), in NumPy, and as many times as leaders may take over.
    """
    gone = frozenset(lost)
    found = normal.copy()
    alike: dict[int, list[int]] = {}
    for row, one in enumerate(configurations):
        if not unnoticed(problem, one, gone, clients_move=clients_move):
            alike.setdefault(len(one.replicas), []).append(row)
    demand = demand_after(problem, gone) if clients_move else problem.demand
    client_rtt, site_rtt = demand.client_rtt.copy(), demand.site_rtt.copy()
    client_rtt[..., list(gone)] = site_rtt[..., list(gone)] = math.inf
    demand = dataclasses.replace(demand, client_rtt=client_rtt, site_rtt=site_rtt)
    alive = np.ones(len(problem.instance.sites), dtype=bool)
    alive[list(gone)] = False
    for rows in alike.values():
        some = [configurations[row] for row in rows]
        leader: IntArray = np.array([one.leader for one in some], dtype=np.intp)
        voters: IntArray = np.array([one.voters for one in some], dtype=np.intp)
        replicas: IntArray = np.array([one.replicas for one in some], dtype=np.intp)
        able = alive[voters]
        serves = able.sum(axis=1) >= problem.rules.quorum
        stays = serves & alive[leader] & (not leader_may_move)
        moving = np.nonzero(serves & ~stays)[0]
        preferred = able[moving] & problem.rules.may_lead[voters[moving]]
        may = np.where(preferred.any(axis=1, keepdims=True), preferred, able[moving])
        each, place = np.nonzero(may)
        chosen = np.concatenate([np.nonzero(stays)[0], moving[each]])
        leaders = np.concatenate([leader[stays], voters[moving[each], place]])
        values = np.full(len(rows), math.inf)
        if len(chosen):
            v, r = voters[chosen], replicas[chosen]
            scores = score_many(demand, leaders, v, r, problem.rules.quorum)
            np.minimum.at(values, chosen, scores)
        found[rows] = values
    return found

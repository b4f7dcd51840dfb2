"""Durations of waits: order statistics of their clauses, for many configurations at once.

    wait_o(clauses) = the smallest t such that every clause has its answers within t of the origin o
                    = max over the clauses of the need-th smallest { d(o, x) : x a member }

An origin that is a member itself answers at once; a client is no member. A wait that a
configuration cannot meet, for lack of members, lasts forever.
"""

from __future__ import annotations

import numpy as np

from placement.model.constraints import majority
from placement.model.demand import Demand, WaitTerm
from placement.model.operations import Clause
from placement.support.checks import BoolArray, FloatArray, IntArray


def needed(clause: Clause, role_size: int, quorum: int, members: IntArray) -> IntArray:
    """Return how many answers a clause needs, in the shape of `members` (how many are asked).

    `role_size` counts the members of the role in all.
    """
    if clause.need == "all":
        return members
    if clause.need == "majority":
        if clause.scope == "inside":
            return np.asarray(members // 2 + 1)
        return np.full_like(members, majority(role_size))
    return np.full_like(members, quorum if clause.need == "quorum" else clause.need)


def wait_latency(
    term: WaitTerm,
    client_rtt: FloatArray,
    site_rtt: FloatArray,
    leaders: IntArray,
    voters: IntArray,
    replicas: IntArray,
    near: IntArray,
    quorum: int,
) -> FloatArray:
    """Return how long one wait lasts in many configurations, ms, shape (n, clients).

    (n, 1) for a wait of the leader; infinite where it cannot be met. RTTs are those of one
    scenario; `near` is every client's nearest replica, shape (n, clients). O(n · clients · members)
    per clause.
    """
    latest = np.zeros((len(leaders), 1))
    for clause, labels in zip(term.clauses, term.labels, strict=True):
        members, asked = voters if clause.role == "voters" else replicas, None
        if term.origin == "client":
            answers = client_rtt.T[members].transpose(0, 2, 1)  # (n, clients, members)
        else:
            origins = near if term.origin == "near" else leaders[:, np.newaxis]
            answers = site_rtt[origins[..., np.newaxis], members[:, np.newaxis, :]]
            if labels is not None:
                same = labels[origins][..., np.newaxis] == labels[members][:, np.newaxis, :]
                asked = same if clause.scope == "inside" else ~same
                answers = np.where(asked, answers, np.inf)
        latest = np.maximum(latest, _until(clause, answers, asked, members.shape[1], quorum))
    return latest


def _until(
    clause: Clause, answers: FloatArray, asked: BoolArray | None, size: int, quorum: int
) -> FloatArray:
    """Return when a clause has its answers of a role of some size, along the last axis.

    `asked` are the members inside or outside the domain of the origin; None: all of them.
    """
    if clause.need == "all":
        return np.asarray(np.where(np.isfinite(answers), answers, 0.0).max(axis=-1))
    if clause.need != "majority" or clause.scope != "inside":
        need = int(needed(clause, size, quorum, np.array(size)))
        if need == 0:
            return np.zeros(answers.shape[:-1])
        if need > size:
            return np.full(answers.shape[:-1], np.inf)
        return np.asarray(np.partition(answers, need - 1, axis=-1)[..., need - 1])
    assert asked is not None  # those inside
    count = asked.sum(axis=-1)
    place = needed(clause, size, quorum, count) - 1  # the majority of no members is one
    found = np.take_along_axis(
        np.sort(answers, axis=-1), np.minimum(place, size - 1)[..., np.newaxis], axis=-1
    )
    return np.asarray(np.where(place >= size, np.inf, found[..., 0]))


def waits_score(
    demand: Demand,
    scenario: int,
    leaders: IntArray,
    voters: IntArray,
    replicas: IntArray,
    near: IntArray,
    quorum: int,
) -> FloatArray:
    """Return the sum of all waits in the scores of many configurations in one scenario, (n,).

    The arguments are those of :func:`wait_latency`.
    """
    total = np.zeros(len(leaders))
    for term in demand.waits:
        weight = term.weight[scenario]
        if not weight.any():
            continue
        rtts = (demand.client_rtt[scenario], demand.site_rtt[scenario])
        latency = wait_latency(term, *rtts, leaders, voters, replicas, near, quorum)
        if term.origin == "leader":
            total += latency[:, 0] * weight.sum()
        else:  # a client that issues nothing waits for nothing, however long
            total += (weight * np.where(weight > 0, latency, 0.0)).sum(axis=-1)
    return total

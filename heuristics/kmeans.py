"""Weighted K-means over sites: replica locations for given weights (no method of its own).

Algorithm 3 of Sharov et al., PVLDB 8(12), 2015, section 5. It looks for G ⊆ S, |G| = n, that
contains the fixed sites and has a small

    cost(G) = Σ_c s(c, nearest(c, G))          nearest by RTT, ties by site order

with s(c, r) = w_c·d(c, r), w_c = all operations of c (Eq. 3), when no leader is known (Algorithm
KQ), and s(c, r) = A[c]·d(c, r) + B[c]·d(r, ℓ), the part of Eq. 1 that R decides, when leader and
quorum are (Algorithm QK).

Start with the fixed sites; walk the clients by descending weight and add the nearest site of
each. Then repeat: cluster the clients by nearest centroid, move every centroid that is not fixed
to the site of least cost for its cluster, until a round no longer lowers the cost.

Where the paper is silent:

- When the clients run out first, the sites that lower the cost most are added one by one.
- A centroid moves only to sites outside G − {g}, so that no two centroids ever meet.
- Centroids move one after another in site order; the clusters are those of the round's start.
- A round that raises the cost is undone. The paper's line 21 has the difference the wrong way
  round: we stop when prev_cost − new_cost < threshold.
- Ties go by site order, for clients by client order: the result is deterministic.
- Under constraints, S means the sites that :class:`heuristics.room.Room` admits at that moment.

O(rounds·(C·n + n·C·S)); the cost falls in every round but the last, so rounds are finite.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from heuristics.room import Room
from placement.checks import BoolArray, FloatArray, IntArray
from placement.score import nearest

__all__ = ["THRESHOLD", "kmeans"]

THRESHOLD = 1e-12
"""Relative fall in cost below which the rounds stop."""


def kmeans(
    summand: FloatArray,
    rtt: FloatArray,
    order: IntArray,
    weights: FloatArray,
    fixed: Iterable[int],
    room: Room,
    price: FloatArray | None = None,
) -> tuple[int, ...]:
    """Algorithm 3.

    Parameters
    ----------
    summand
        s(c, r), shape (clients, sites).
    rtt
        d(c, r) in ms, shape (clients, sites).
    order
        Sites of each client by (RTT, site order), shape (clients, sites).
    weights
        w_c, shape (clients,): the order of the walk.
    fixed
        Sites that stay where they are; they are taken to obey the rules together.
    room
        Which sites may join; ``room.size`` is n.
    price
        What a centroid at each site costs by itself, shape (sites,), for problems with money in the
        objective; None: nothing.

    Returns
    -------
    tuple of int
        G in site order. Fewer than n sites when the rules, as far as `room` reads them, leave no
        site to add.
    """
    members = np.zeros(summand.shape[1], dtype=bool)
    pinned = np.zeros_like(members)
    pinned[list(fixed)] = True
    members |= pinned
    _walk(members, order, weights, room)
    prices = np.zeros(len(members)) if price is None else price
    _fill(members, summand, rtt, room, prices)
    return tuple(_rounds(members, pinned, summand, rtt, room, prices).tolist())


def _walk(members: BoolArray, order: IntArray, weights: FloatArray, room: Room) -> None:
    """Lines 5 to 10: the nearest allowed site of the heaviest clients."""
    missing = room.size - int(members.sum())
    if missing <= 0:
        return
    heaviest = np.argsort(-weights, kind="stable")
    holds = room.rules.may_hold[order[heaviest]]
    closest = order[heaviest, holds.argmax(axis=1)]
    addable = room.addable(members)
    for site in closest[holds.any(axis=1)].tolist():
        if addable[site]:
            members[site] = True
            missing -= 1
            if not missing:
                return
            addable = room.addable(members)


def _fill(
    members: BoolArray, summand: FloatArray, rtt: FloatArray, room: Room, price: FloatArray
) -> None:
    """Add the site that lowers the cost most until there are n, or none may be added."""
    clients = np.arange(len(summand))
    while int(members.sum()) < room.size:
        addable = np.nonzero(room.addable(members))[0]
        if not addable.size:
            return
        present = np.nonzero(members)[0]
        if present.size:
            near = nearest(rtt, present)
            # a newcomer takes a client over when it is closer, or as close and first in site order
            closer = (rtt[:, addable] < rtt[clients, near][:, np.newaxis]) | (
                (rtt[:, addable] == rtt[clients, near][:, np.newaxis])
                & (addable < near[:, np.newaxis])
            )
            kept = summand[clients, near][:, np.newaxis]
            costs = np.where(closer, summand[:, addable], kept).sum(axis=0)
        else:
            costs = summand[:, addable].sum(axis=0)
        members[addable[int((costs + price[addable]).argmin())]] = True


def _rounds(
    members: BoolArray,
    pinned: BoolArray,
    summand: FloatArray,
    rtt: FloatArray,
    room: Room,
    price: FloatArray,
) -> IntArray:
    """Lines 11 to 21: cluster and move until a round no longer pays."""
    clients = np.arange(len(summand))
    present = np.nonzero(members)[0]
    if not present.size or not len(clients):
        return present
    near = nearest(rtt, present)
    cost = float(summand[clients, near].sum() + price[present].sum())
    while True:
        held = members.copy()
        moving = present[~pinned[present]]
        clusters = (near == moving[:, np.newaxis]).astype(np.float64)
        totals = clusters @ summand + price  # (moving centroids, sites)
        for centroid, total in zip(moving.tolist(), totals, strict=True):
            allowed = room.replaceable(held, centroid)
            if not allowed.any():
                continue
            target = int(np.where(allowed, total, np.inf).argmin())
            held[centroid] = False
            held[target] = True
        if (held == members).all():
            return present
        moved = np.nonzero(held)[0]
        new_near = nearest(rtt, moved)
        new_cost = float(summand[clients, new_near].sum() + price[moved].sum())
        if cost - new_cost < THRESHOLD * abs(cost) or not new_cost < cost:
            return present if new_cost > cost else moved
        members, present, near, cost = held, moved, new_near, new_cost

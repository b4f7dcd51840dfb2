"""Weighted K-means over sites: replica locations for given weights (not a registered method).

Algorithm 3 of Sharov et al., PVLDB 8(12), 2015, section 5. It looks for G ⊆ S, |G| = n, that
contains the fixed sites and has a small

    cost(G) = Σ_c s(c, nearest(c, G))          nearest by RTT, ties by site order

with s(c, r) = w_c·d(c, r), w_c = all operations of c, when no leader is known (Algorithm KQ), and
s(c, r) = A[c]·d(c, r) + B[c]·d(r, ℓ), the part of Eq. 1 that R decides, when leader and quorum are
(Algorithm QK).

Start with the fixed sites; walk the clients by descending weight and add the nearest site of
each. Then repeat: cluster the clients by nearest centroid, move every centroid that is not fixed
to the site of least cost for its cluster, until a round no longer lowers the cost.

Deviation from the paper: its Eq. 3 takes the operations and RTTs of the last interval, and so does
the Eq. 1 that it uses in QK. Here w_c, A and B are the aggregates over the intervals with the decay
of the problem (Eq. 2), because the plan is scored with them. docs/heuristics.md has the measured
difference. With one interval, or decay = infinity, there is none.

Where the paper is silent:

- When the clients run out first, the sites that lower the cost most are added one by one.
- A centroid moves only to sites outside G − {g}, so that no two centroids ever meet.
- Centroids move one after another in site order; the clusters are those of the round's start.
- A round that raises the cost is undone. The paper's line 21 has the difference the wrong way
  round: we stop when prev_cost − new_cost < threshold.
- Ties go by site order, for clients by client order: the result is deterministic.
- Under constraints, S means the sites that :class:`heuristics.completion.AdmissibleSites`
  admits at that moment.

Many runs, one for each candidate leader, go side by side in arrays whose first axis is the run.
O(rounds·(C·n + n·C·S)) for each; the cost falls in every round but the last, so rounds are finite.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heuristics.completion import AdmissibleSites
from placement.support.checks import BoolArray, FloatArray, IntArray

THRESHOLD = 1e-12
"""Relative fall in cost below which the rounds stop."""


def kmeans(
    summand: FloatArray,
    rank: IntArray,
    order: IntArray,
    weights: FloatArray,
    fixed: Iterable[int],
    room: AdmissibleSites,
    price: FloatArray | None = None,
) -> tuple[int, ...]:
    """Algorithm 3: G in site order, fewer than n sites where `room` leaves none to add.

    s(c, r) has shape (clients, sites), as `rank` (place of each site in the client's order by RTT
    and site order) and `order` (the sites in it). `weights` w_c give the order of the walk. `fixed`
    sites stay and obey the rules together. `price` is the cost of a centroid by itself, shape
    (sites,).
    """
    pinned = np.zeros((1, summand.shape[1]), dtype=bool)
    pinned[0, list(fixed)] = True
    prices = np.zeros(pinned.shape) if price is None else price[np.newaxis]
    return kmeans_of_each(summand[np.newaxis], rank, order, weights, pinned, room, prices)[0]


def kmeans_of_each(
    summands: FloatArray,
    rank: IntArray,
    order: IntArray,
    weights: FloatArray,
    fixed: BoolArray,
    room: AdmissibleSites,
    prices: FloatArray,
) -> list[tuple[int, ...]]:
    """Algorithm 3 for B runs that differ in costs (B, clients, sites) and fixed sites (B, sites).

    ``room.leader`` is one for all or one for each run; `prices` has shape (B, sites).
    """
    runs = _Runs(summands, rank, order, fixed, room, prices)
    members = fixed.copy()
    runs.walk(members, weights)
    runs.fill(members)
    runs.move(members)
    return [tuple(np.nonzero(row)[0].tolist()) for row in members]


@dataclass(frozen=True, eq=False)
class _Runs:
    """Data of B runs that do not depend on the centroids; as for :func:`kmeans_of_each`."""

    summands: FloatArray
    rank: IntArray
    order: IntArray
    fixed: BoolArray
    room: AdmissibleSites
    prices: FloatArray

    def walk(self, members: BoolArray, weights: FloatArray) -> None:
        """Lines 5 to 10: the nearest allowed site of the heaviest clients."""
        missing = self.room.size - members.sum(axis=1)
        heaviest = np.argsort(-weights, kind="stable")
        holds = self.room.rules.may_hold[self.order[heaviest]]
        closest = self.order[heaviest, holds.argmax(axis=1)][holds.any(axis=1)]
        addable = self.room.addable(members)
        # a site that may not join now may not join later, so each site is asked for once
        for site in dict.fromkeys(closest.tolist()):
            if not (missing > 0).any():
                return
            joins = addable[:, site] & (missing > 0)
            if joins.any():
                members[joins, site] = True
                missing -= joins
                addable = self.room.addable(members)

    def fill(self, members: BoolArray) -> None:
        """Add the site that lowers the cost most until there are n, or none may be added."""
        rows = np.nonzero(members.sum(axis=1) < self.room.size)[0]
        while rows.size:
            addable = self.room.addable(members[rows], rows)
            possible = addable.any(axis=1)
            rows, addable = rows[possible], addable[possible]
            if not rows.size:
                return
            near, kept = self._nearest(members, rows)
            closer = self.rank < near[:, :, np.newaxis]
            costs = np.where(closer, self._summands(rows), kept[:, :, np.newaxis]).sum(axis=1)
            best = np.where(addable, costs + self.prices[rows], np.inf).argmin(axis=1)
            members[rows, best] = True
            rows = rows[members[rows].sum(axis=1) < self.room.size]

    def _nearest(self, members: BoolArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Place of every client's nearest centroid in its order, S without any, and its cost there.

        Shapes (rows, clients).
        """
        clients, sites = self.rank.shape
        held = members[rows]
        width = max(1, int(held.sum(axis=1).max(initial=0)))
        centroids = np.argsort(~held, axis=1, kind="stable")[:, :width]
        places = np.where(
            np.take_along_axis(held, centroids, axis=1)[:, :, np.newaxis],
            self._rank_of[centroids],
            sites,
        )
        near = places.min(axis=1)
        some = np.arange(clients)
        site = self.order[some, np.minimum(near, sites - 1)]
        cost = self.summands[rows[:, np.newaxis], some, site]
        return near, np.where(near < sites, cost, 0.0)

    @cached_property
    def _rank_of(self) -> IntArray:
        """Ranks by site, shape (sites, clients)."""
        return np.ascontiguousarray(self.rank.T)

    def _summands(self, rows: IntArray) -> FloatArray:
        """Return the summands of some runs, without a copy when it is all of them."""
        return self.summands if len(rows) == len(self.summands) else self.summands[rows]

    def move(self, members: BoolArray) -> None:
        """Lines 11 to 21: cluster and move until a round no longer pays."""
        if not len(self.rank):
            return
        rows = np.nonzero(members.any(axis=1))[0]
        near, cost = self._clusters(members, rows)
        while rows.size:
            moved = self._round(members[rows], rows, near)
            differs = (moved != members[rows]).any(axis=1)
            rows, cost, moved = rows[differs], cost[differs], moved[differs]
            if not rows.size:
                return
            before = members[rows]
            members[rows] = moved
            near, new_cost = self._clusters(members, rows)
            worse = new_cost > cost
            members[rows[worse]] = before[worse]
            goes_on = (cost - new_cost >= THRESHOLD * np.abs(cost)) & (new_cost < cost)
            rows, near, cost = rows[goes_on], near[goes_on], new_cost[goes_on]

    def _clusters(self, members: BoolArray, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Nearest centroid of every client, shape (rows, clients), and the cost of each run."""
        near, kept = self._nearest(members, rows)
        total = kept.sum(axis=1) + np.where(members[rows], self.prices[rows], 0.0).sum(axis=1)
        return self.order[np.arange(len(self.rank)), near], total

    def _round(self, held: BoolArray, rows: IntArray, near: IntArray) -> BoolArray:
        """Move the centroids `held` that are not fixed, one after another in site order."""
        movable = held & ~self.fixed[rows]
        count = movable.sum(axis=1)
        width = int(count.max(initial=0))
        # each run's centroids in site order; runs with fewer repeat theirs, and keep them
        centroids = np.argsort(~movable, axis=1, kind="stable")[:, :width]
        real = np.arange(width) < count[:, np.newaxis]
        clusters = (near[:, np.newaxis, :] == centroids[:, :, np.newaxis]).astype(np.float64)
        totals = clusters @ self._summands(rows) + self.prices[rows][:, np.newaxis, :]
        stays = totals.argmin(axis=2) == centroids
        for j in np.nonzero((real & ~stays).any(axis=0))[0].tolist():
            some = np.nonzero(real[:, j] & ~stays[:, j])[0]
            centroid = centroids[some, j]
            allowed = self.room.replaceable(held[some], centroid, rows[some])
            possible = allowed.any(axis=1)
            target = np.where(allowed, totals[some, j], np.inf).argmin(axis=1)
            some, centroid, target = some[possible], centroid[possible], target[possible]
            held[some, centroid] = False
            held[some, target] = True
        return held

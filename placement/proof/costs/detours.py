"""Detours: a free site that takes clients away from a fixed replica at which they would pay less.

Let f be the client's first site of I in its order, w its cost there, and w_1, …, w_p the costs at
the free sites that it prefers to f, the most preferred first. With M_i = max(w, min(w_1, …, w_i))
and M_{p+1} = w, let r_i = M_i − M_{i+1} >= 0.

**Lemma.** For any u and any set P of free sites the client pays, with replicas at I and P, at least

    min(u, w) + Σ_{i ∈ P, i <= p} ( r_i + min(0, w_i − u) ).

*Proof.* Without a site i <= p in P the client is served at f: w >= min(u, w). Else let i be the
first of them, where the client is served. The r of P sum up to M_i − w at most, as the sum of
r_i, …, r_p is M_i − w. If M_i = w, they are all 0, and w_i >= min(u, w) + min(0, w_i − u). If
M_i > w, then w_i >= M_i, and the other terms sum up to min(u, w) <= w at most.

So the sum of r_i over the clients is a price of site i that depends on the state, not on the
multipliers. Where f is missing, detours are left out.

Three sites by hand: a client prefers a to b and b to c, and pays 9, 5 and 4 there, as reads that
are relayed to a leader may. The fixed replica is c, hence w = 4. Then M_1 = 9, M_2 = 5 and M_3 = 4:
a replica at a has the price 9 − 5 = 4, and a replica at b the price 5 − 4 = 1. With replicas at all
three sites the client pays 9 = 4 + 4 + 1.

>>> detours = Detours(rank=np.array([[0, 1, 2]]), costs=np.array([[9, 5, 4]]))
>>> detours.of(first=np.array([2]), alone=np.array([4]), free=[0, 1])
[4, 1, 0]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.proof.costs.cheap_pairs import compiled_sums
from placement.support.checks import IntArray


class Detours:
    """Detours for one table of costs in whole numbers, int64 or Python's.

    Costs, and the place of each site in the order of each client, have the shape (clients, sites).
    """

    def __init__(self, rank: IntArray, costs: npt.NDArray[Any]) -> None:
        order = np.empty(
            rank.shape, dtype=np.int32
        )  # of ranks; sorting them takes ten times as long
        places = np.arange(rank.shape[1], dtype=np.int32)[np.newaxis, :]
        np.put_along_axis(order, rank.astype(np.intp), places, axis=1)
        sorted_costs = np.take_along_axis(costs, order, axis=1)
        # clients with a site that costs more than a later one
        some = np.flatnonzero((sorted_costs[:, 1:] < sorted_costs[:, :-1]).any(axis=1))
        self._sites, self._clients = rank.shape[1], some
        self._order: npt.NDArray[np.int32] = order[some]
        self._costs: npt.NDArray[Any] = np.ascontiguousarray(sorted_costs[some])

    def of(self, first: IntArray, alone: npt.NDArray[Any], free: Sequence[int]) -> list[int]:
        """Return Σ r by site, shape (sites,). O(clients · sites).

        Of each client: rank of the first site of I, no less than the number of sites where there is
        none, and its cost `alone` there.
        """
        first, alone = first[self._clients], alone[self._clients]
        is_free = np.zeros(self._sites, dtype=np.bool_)
        is_free[list(free)] = True
        if self._costs.dtype == np.int64 and compiled_sums() is not None:
            from placement.proof import _pair_sums

            total = np.zeros(self._sites, dtype=np.int64)
            places = first.astype(np.int32)
            _pair_sums.detours(
                self._order.shape, self._order, self._costs, places, alone, is_free, total
            )
            sums: list[int] = total.tolist()
            return sums
        sums = [0] * self._sites
        for row, (last, least_cost) in enumerate(zip(first.tolist(), alone.tolist(), strict=True)):
            if last >= self._sites:
                continue
            owner, before = -1, math.inf  # the free site before, and M there
            for site, cost in zip(self._order[row, :last], self._costs[row, :last], strict=True):
                if is_free[site]:
                    own = max(least_cost, min(before, int(cost)))
                    if owner >= 0:
                        sums[owner] += before - own
                    owner, before = site, own
            if owner >= 0:
                sums[owner] += before - least_cost
        return sums

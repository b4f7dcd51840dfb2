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

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.support.checks import IntArray


class Detours:
    """Detours for one table of costs.

    Parameters
    ----------
    rank
        Place of each site in the order of each client, shape (clients, sites).
    costs
        In whole numbers, int64 or Python's, shape (clients, sites).
    """

    def __init__(self, rank: IntArray, costs: npt.NDArray[Any]) -> None:
        order: IntArray = np.argsort(rank, axis=1)
        sorted_costs = np.take_along_axis(costs, order, axis=1)
        # clients with a site that costs more than a later one
        some = np.flatnonzero((sorted_costs[:, 1:] < sorted_costs[:, :-1]).any(axis=1))
        self._sites, self._clients = rank.shape[1], some
        self._order: IntArray = order[some]
        self._costs: npt.NDArray[Any] = sorted_costs[some]

    def of(self, first: IntArray, alone: npt.NDArray[Any], free: Sequence[int]) -> list[int]:
        """Return Σ r by site, shape (sites,). O(clients · sites).

        Parameters
        ----------
        first
            Rank of the first site of I that is left, shape (clients,); no less than the number of
            sites where there is none.
        alone
            Cost there, shape (clients,).
        free
            Free sites.
        """
        total = np.zeros(self._sites, dtype=self._costs.dtype)
        first, alone = first[self._clients], alone[self._clients]
        if len(self._clients) == 0 or not (first < self._sites).any():
            return [int(x) for x in total]
        is_free = np.zeros(self._sites, dtype=np.bool_)
        is_free[list(free)] = True
        width = int(first[first < self._sites].max())
        places = np.arange(width)
        usable = is_free[self._order[:, :width]] & (places < first[:, np.newaxis])
        usable[first >= self._sites] = False
        # M at each place, where it is known; before the first free site it is not, and owns nothing
        known = usable.any(axis=1)
        usable, alone = usable[known], alone[known]
        order, costs = self._order[known, :width], self._costs[known, :width]
        if not len(usable):
            return [int(x) for x in total]
        highest = costs.max()
        least = np.minimum.accumulate(np.where(usable, costs, highest), axis=1)
        most = np.maximum(least, alone[:, np.newaxis])
        owner = np.maximum.accumulate(np.where(usable, places, -1), axis=1)
        falls = most - np.append(most[:, 1:], alone[:, np.newaxis], axis=1)
        rows, at = np.nonzero((falls > 0) & (owner >= 0))
        np.add.at(total, order[rows, owner[rows, at]], falls[rows, at])
        return [int(x) for x in total]

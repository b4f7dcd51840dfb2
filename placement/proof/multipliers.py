"""Multipliers that a certificate lists by client: β of closest assignment, and transfers of cost.

Why transfers of cost hold: let T be the sites that a client g does not rank after some site, and h
another client. When h is served from T, there is a replica in T, and then g is served from T too.
So where the costs of g in T fall by an amount a >= 0 and those of h in T rise by it, no
configuration costs more than before: a bound with such costs is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.checks import FloatArray, IntArray

__all__ = ["Betas", "CostTransfers"]


class Betas:
    """β_cj >= 0 by client and site; those not listed are 0.

    Attributes
    ----------
    clients
        The clients with an entry, ascending, shape (k,).
    rows
        Which of them each entry belongs to, shape (entries,).
    sites
        Site of each entry, shape (entries,).
    values
        β of each entry, shape (entries,).
    """

    def __init__(self, entries: Iterable[tuple[int, int, float]] = ()) -> None:
        by_pair = {(client, site): value for site, client, value in entries}
        owners = np.array([client for client, _ in by_pair], dtype=np.intp)
        self.clients: IntArray
        self.clients, self.rows = np.unique(owners, return_inverse=True)
        self.sites: IntArray = np.array([site for _, site in by_pair], dtype=np.intp)
        self.values: FloatArray = np.array(list(by_pair.values()), dtype=np.float64)

    @classmethod
    def read(cls, entries: Sequence[Sequence[Any]], sites: int, clients: int) -> Betas:
        """Read the entries (site, client, value) of an event.

        Raises
        ------
        ValueError
            With the flaw: a value that is negative or not finite, or no such site or client.
        """
        found: list[tuple[int, int, float]] = []
        for site, client, value in entries:
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError("a closest-assignment multiplier is negative")
            if not (0 <= site < sites and 0 <= client < clients):
                raise ValueError("a multiplier belongs to no site or client")
            found.append((index(site), index(client), float(value)))
        return cls(found)


class CostTransfers:
    """Transfers from givers to takers.

    Parameters
    ----------
    entries
        (giver, last of its sites, taker, amount).
    sites, clients
        How many there are.

    Raises
    ------
    ValueError
        With the flaw: an amount that is negative or not finite, or no such site or client.

    Attributes
    ----------
    givers, sites, takers, amounts
        Of each transfer, shape (transfers,).
    """

    def __init__(self, entries: Sequence[Sequence[Any]], sites: int, clients: int) -> None:
        numbers: list[tuple[int, int, int]] = []
        amounts: list[float] = []
        for giver, site, taker, amount in entries:
            if not (amount >= 0 and math.isfinite(amount)):
                raise ValueError("a transfer of cost is negative or not finite")
            if not (0 <= site < sites and 0 <= giver < clients and 0 <= taker < clients):
                raise ValueError("a transfer of cost belongs to no site or client")
            numbers.append((index(giver), index(site), index(taker)))
            amounts.append(float(amount))
        columns = np.array(numbers, dtype=np.intp).reshape(len(numbers), 3).T
        self.givers: IntArray
        self.sites: IntArray
        self.takers: IntArray
        self.givers, self.sites, self.takers = columns
        self.amounts: FloatArray = np.array(amounts, dtype=np.float64)

    def apply(self, costs: npt.NDArray[Any], amounts: npt.NDArray[Any], rank: IntArray) -> None:
        """Change costs, shape (clients, sites), by these amounts in whole numbers.

        `rank` has the place of each site in the order of each client, shape (clients, sites).
        O(transfers · sites).
        """
        for giver, site, taker, amount in zip(
            self.givers.tolist(), self.sites.tolist(), self.takers.tolist(), amounts, strict=True
        ):
            first = rank[giver] <= rank[giver, site]
            costs[giver, first] -= amount
            costs[taker, first] += amount

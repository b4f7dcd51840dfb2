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

from placement.support.checks import FloatArray, IntArray


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
        self._sort(*_columns(list(entries)))

    def _sort(self, sites: IntArray, clients: IntArray, values: FloatArray) -> None:
        """Keep entries by client and then by site."""
        # of entries given twice the last one counts
        most = int(sites.max(initial=-1)) + 1
        order = np.argsort(clients * most + sites, kind="stable")
        sites, clients, values = sites[order], clients[order], values[order]
        same = (clients[1:] == clients[:-1]) & (sites[1:] == sites[:-1])
        last = np.append(~same, np.ones(min(len(order), 1), dtype=np.bool_))
        self.sites: IntArray = sites[last]
        self.values: FloatArray = values[last]
        owners = clients[last]
        starts = np.append(np.ones(min(len(owners), 1), np.bool_), owners[1:] != owners[:-1])
        self.clients: IntArray = owners[starts]
        self.rows: IntArray = np.cumsum(starts) - 1

    @classmethod
    def read(cls, entries: Sequence[Sequence[Any]], sites: int, clients: int) -> Betas:
        """Read the entries (site, client, value) of an event.

        Raises
        ------
        ValueError
            With the flaw: a value that is negative or not finite, or no such site or client.
        TypeError
            When a site or a client is no whole number, or a value no number.
        """
        of_sites, of_clients, values = _columns(entries)
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError("a closest-assignment multiplier is negative")
        for number, count in ((of_sites, sites), (of_clients, clients)):
            if not ((number >= 0).all() and (number < count).all()):
                raise ValueError("a multiplier belongs to no site or client")
        read = cls()
        read._sort(of_sites, of_clients, values)
        return read


def _columns(
    entries: Sequence[Sequence[Any]],
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return sites, clients and values of entries; TypeError where one is no such number."""
    if not {*map(len, entries)} <= {3}:
        raise ValueError("a multiplier has a site, a client and a value")
    sites, clients, values = ([entry[k] for entry in entries] for k in range(3))
    if not {*map(type, sites), *map(type, clients)} <= {int}:
        sites, clients = list(map(index, sites)), list(map(index, clients))
    if not {*map(type, values)} <= {int, float}:
        values = [math.fsum([value]) for value in values]  # refuses what is no number
    return (
        np.array(sites, dtype=np.intp),
        np.array(clients, dtype=np.intp),
        np.array(values, dtype=np.float64),
    )


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

"""Multipliers that a certificate lists by client: β of closest assignment, and transfers of cost.

Why transfers of cost hold: let T be the sites that a client g does not rank after some site, and h
another client. When h is served from T, there is a replica in T, and then g is served from T too.
So where the costs of g in T fall by an amount a >= 0 and those of h in T rise by it, no
configuration costs more than before: a bound with such costs is a bound.

Multipliers of one leader that are moved along to others.

A certificate may hold multipliers u of a leader k once, with a site s_c for each client c. Under
another leader ℓ they stand for

    u_c(ℓ) = max(0, min(u_c + B_c·(d(s_c, ℓ) − d(s_c, k)), A_c·d(c, ℓ))),

computed in doubles: what client c pays if s_c serves it, up to what it pays at ℓ. Any multipliers
give valid bounds (:mod:`placement.proof.leader_proof`), so nothing about u, s and k need be proved.

>>> import numpy as np
>>> moved = SharedMultipliers(0, np.array([5.0, 5.0]), np.array([0, 1]))
>>> rtt = np.array([[0.0, 2.0], [2.0, 0.0]])
>>> moved.under(1, np.array([1.0, 1.0]), np.array([9.0, 1.0]), rtt).tolist()
[7.0, 1.0]
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.support.checks import FloatArray, IntArray


class Betas:
    """β_cj >= 0 by client and site; those not listed are 0.

    `clients` with an entry are ascending; `rows` says which of them each entry belongs to.
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

        ValueError for a value that is negative or not finite, or no such site or client; TypeError
        for no number.
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
    """Transfers from givers to takers, read from (giver, last of its sites, taker, amount).

    ValueError for an amount that is negative or not finite, or no such site or client.
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


@dataclass(frozen=True, eq=False)
class SharedMultipliers:
    """Multipliers of a leader k, ms times operations, and the site that serves each client."""

    leader: int
    u: FloatArray
    serving: IntArray

    @classmethod
    def read(cls, entry: Sequence[Any], sites: int, clients: int) -> SharedMultipliers:
        """Read an entry of a certificate; ValueError where sizes, sites or numbers do not fit."""
        leader, given, serving = entry
        u, of = np.array(array("d", given)), np.array([index(s) for s in serving], dtype=np.intp)
        if len(u) != clients or len(of) != clients or not np.isfinite(u).all():
            raise ValueError("shared multipliers have the wrong length or are not finite")
        if not 0 <= index(leader) < sites or not ((of >= 0) & (of < sites)).all():
            raise ValueError("shared multipliers name a site that does not exist")
        return cls(index(leader), u, of)

    def under(
        self, leader: int, relay: FloatArray, fixed: FloatArray, site_rtt: FloatArray
    ) -> FloatArray:
        """Return the multipliers of a leader ℓ; `relay` and `fixed` are B_c and A_c·d(c, ℓ)."""
        moved = site_rtt[self.serving, leader] - site_rtt[self.serving, self.leader]
        return np.asarray(np.maximum(np.minimum(self.u + relay * moved, fixed), 0.0))

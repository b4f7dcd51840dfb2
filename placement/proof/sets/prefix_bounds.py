"""Lower bounds on all replica sets with the same first sites, where every replica votes.

A *beginning* is a set of chosen sites, and a list of sites of which `free` are still to be added.
Every replica set of the beginning costs at least

    K + Σ_j D_j · t_j + Σ_c Σ_j F_cj · t_cj + near,    t the least wait of leader and clients,

A wait is at least the order statistic of the chosen sites and of the `free` nearest others. The
bound on two waits together is in :mod:`placement.proof.sets.wait_pairs`.

For the nearest replica let w_cs = A_c d(c,s) + B_c d(s,ℓ) + Σ_j N_cj · t_sj, and let h_c be the
value of w at the nearest chosen site. An added site serves c only if no chosen site is nearer. Then
*near* is at least each of

    independent   Σ_c min(h_c, min_s w_cs)
    Lagrangean    Σ_c u_c + the `free` least of Σ_c min(0, w_cs − u_c),  for any u_c <= h_c.

Where moves have prices, those of the chosen sites and a constant are part of K, and those of the
sites to add count beside what they save, or without clients the `free` least of them
(:mod:`placement.evaluation.replica_prices`).

All sums are computed in doubles, and lowered by 1e-11 of the added terms. This is more than the
error of a sum of fewer than 90,000 terms, none of them negative.

Three sites by hand: a, b and c lie on a line at 0, 10 and 30 ms, with one client at each, who reads
from the nearest replica. Site a is chosen, and one of b and c is to be added. So h = (0, 10, 30).
Site b is not nearer to client a than a is, and site c is nearer than a to client c alone:

>>> far = np.inf
>>> cost = np.array([[far, 0.0, 20.0], [far, far, 0.0]])  # of b and c to the clients a, b, c
>>> state = Beginning(rest=0.0, home=np.array([0.0, 10.0, 30.0]), cost=cost, free=1)

The independent bound lets client b use b and client c use c, which are two sites: it is 0. With
u = (0, 10, 20) site b saves 10 and site c saves 20. One of them is added, so the bound is
30 − 20 = 10, the cost of {a, c}. The set {a, b} costs 20.

>>> state.independent
0.0
>>> state.saved(np.array([0.0, 10.0, 20.0])).tolist()
[-10.0, -20.0]
>>> round(state.lagrangean(np.array([0.0, 10.0, 20.0])), 6)
10.0
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from placement.evaluation.replica_prices import ReplicaPrices
from placement.evaluation.waits.wait_latency import needed
from placement.model.demand import Demand
from placement.model.wait_terms import WaitTerm
from placement.model.waits import Clause
from placement.proof.sets.wait_pairs import PairedWait, WaitPairs
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["Beginning", "PrefixBounds"]

_ROUNDING = 1e-11


class Beginning(NamedTuple):
    """Parts of the bounds on the sets with one beginning.

    Attributes
    ----------
    rest
        Cost beside that of the nearest replicas, rounded down; infinite: no set meets all waits.
    home
        h of each client, infinite without a chosen site, shape (clients,).
    cost
        w of the sites that may come, infinite where they are farther than the nearest chosen one,
        shape (sites, clients).
    free
        How many sites come.
    prices
        Price of each site that may come, >= 0, shape (sites,); None: all are 0.
    """

    rest: float
    home: FloatArray
    cost: FloatArray
    free: int
    prices: FloatArray | None = None

    @property
    def independent(self) -> float:
        """Return the bound that lets every client take its least cost."""
        near = float(np.minimum(self.home, self.cost.min(axis=0, initial=np.inf)).sum())
        if self.prices is not None:
            near += float(np.sort(self.prices)[: self.free].sum())
        return self.rest + near * (1 - _ROUNDING)

    def saved(self, prices: FloatArray) -> FloatArray:
        """Return Σ_c min(0, w_cs − u_c) of each site that may come."""
        return np.asarray(np.minimum(self.cost - prices, 0.0).sum(axis=1))

    def cheapest(self, prices: FloatArray) -> IntArray:
        """Return the `free` sites of the least price less what they save, least first."""
        saved = self.saved(prices)
        if self.prices is not None:
            saved = saved + self.prices
        return np.argsort(saved, kind="stable")[: self.free]

    def lagrangean(self, prices: FloatArray) -> float:
        """Return the bound at prices u of the clients, which are cut to h."""
        if not np.isfinite(self.home).all():
            return -np.inf
        prices = np.minimum(prices, self.home)
        paid = float(prices.sum())
        if self.prices is None:
            less = float(np.sort(self.saved(prices))[: self.free].sum())
            added = 0.0
        else:
            taken = self.cheapest(prices)
            less, added = float(self.saved(prices)[taken].sum()), float(self.prices[taken].sum())
        size = float(np.abs(prices).sum())
        return self.rest + paid + less + added - _ROUNDING * (size - less + added)


class PrefixBounds:
    """The bounds under one leader, or where no operation needs one.

    Parameters
    ----------
    demand
        Of one scenario.
    size, quorum
        |R| = |V|, and m.
    leader
        Site index; None where no operation needs a leader.
    pairs
        Two places in :attr:`waits` and a weight each (:mod:`placement.proof.sets.wait_pairs`).
    moves
        Prices of moves as those of replicas; None: there are none.

    Attributes
    ----------
    clients
        Those that issue operations, whom the prices are for.
    waits
        Waits for the nearest of all sites, by term: the votes of a leader first, then the waits in
        the order of `demand`, each of one leader or of every client that has it.

    Raises
    ------
    CertificateError
        For pairs that give no bound.
    """

    def __init__(
        self, demand: Demand, size: int, quorum: int, leader: int | None,
        pairs: Iterable[Sequence[Any]] = (), moves: ReplicaPrices | None = None,
    ) -> None:  # fmt: skip
        self._prices = None if moves is None else moves.by_site
        self.size, self.quorum, self.leader = size, quorum, leader
        self.clients: IntArray = np.nonzero(demand.counts[0].any(axis=1))[0]
        self._rtt = np.ascontiguousarray(demand.client_rtt[0][self.clients].T)
        self._between: FloatArray = demand.site_rtt[0]
        self._near = demand.near[0][self.clients] * self._rtt
        self._rest = demand.constant
        if moves is not None:
            self._rest += float(moves.constants[0 if leader is None else leader])
        terms = [term for term in demand.waits if term.weight[0].any()]
        self._terms = {
            origin: [term for term in terms if term.origin == origin]
            for origin in ("leader", "near", "client")
        }
        self._rounds = [float(term.weight[0].sum()) for term in self._terms["leader"]]
        self._votes = 0.0
        if leader is not None:
            to_leader = self._between[:, leader][:, np.newaxis]
            self._near = self._near + demand.relay[0][self.clients] * to_leader
            self._rest += float((demand.direct[0] * demand.client_rtt[0][:, leader]).sum())
            self._votes = float(demand.quorum[0])
        self.waits = tuple(self._paired(terms))
        self._pairs = WaitPairs(self.waits, pairs)

    def _paired(self, terms: Sequence[WaitTerm]) -> Iterator[PairedWait]:
        if self._votes > 0:
            assert self.leader is not None
            yield PairedWait(self._between[self.leader], self.quorum, self._votes)
        for term in terms:
            if term.origin == "near" or any(clause.scope for clause in term.clauses):
                continue
            need = max(
                int(needed(clause, self.size, self.quorum, np.array(self.size)))
                for clause in term.clauses
            )
            weight = term.weight[0][self.clients]
            if term.origin == "client":
                for client in np.nonzero(weight > 0)[0].tolist():
                    yield PairedWait(self._rtt[:, client], need, float(weight[client]))
            elif self.leader is not None:
                yield PairedWait(self._between[self.leader], need, float(term.weight[0].sum()))

    def beginning(
        self, chosen: Sequence[int], coming: Sequence[int], wanted: float = math.inf
    ) -> Beginning:
        """Return the bounds on sets of the chosen sites and of the remaining number of other sites.

        Pairs of waits count as far as the independent bound needs them to reach what is wanted.

        O(|S| · |S| log |S| + |C| · |S|), and O(|S|) for each pair of waits.
        """
        held, more = np.array(sorted(chosen), dtype=np.intp), np.array(coming, dtype=np.intp)
        free = self.size - len(held)
        rest = self._rest + self._of_leader(held, more, free)
        for term in self._terms["client"]:
            weight = term.weight[0][self.clients]
            shortest = self._wait(term, self._rtt[held].T, self._rtt[more].T, None, held, more)
            rest += float((weight * np.where(weight > 0, shortest, 0.0)).sum())
        cost = self._near[more]
        home = np.full(len(self.clients), np.inf)
        if len(held):
            nearest = held[self._rtt[held].argmin(axis=0)]
            home = self._near[nearest, np.arange(len(self.clients))]
        for term in self._terms["near"]:
            weight = term.weight[0][self.clients]
            sites = np.concatenate([held, more])
            shortest = np.zeros(len(self._between))
            shortest[sites] = self._wait(
                term, self._between[np.ix_(sites, held)], self._between[np.ix_(sites, more)],
                sites, held, more,
            )  # fmt: skip
            waited = np.where(weight > 0, shortest[more][:, np.newaxis], 0.0)
            cost = cost + weight * waited
            if len(held):
                home = home + weight * np.where(weight > 0, shortest[nearest], 0.0)
        if len(held):
            cost = np.where(self._rtt[more] > self._rtt[held].min(axis=0), np.inf, cost)
        coming_prices = None
        if self._prices is not None:
            rest += float(self._prices[held].sum())
            coming_prices = self._prices[more]
        found = Beginning(rest * (1 - _ROUNDING), home, cost, free, coming_prices)
        if len(self._pairs) and np.isfinite(rest):
            missing = (wanted - found.independent) * (1 + 2 * _ROUNDING)
            if missing > 0:
                enough = missing + 2 * _ROUNDING * abs(wanted) if math.isfinite(wanted) else missing
                rest += self._pairs.gain(held.tolist(), more.tolist(), free, enough)
                found = found._replace(rest=rest * (1 - _ROUNDING))
        return found

    def _of_leader(self, held: IntArray, more: IntArray, free: int) -> float:
        if self.leader is None:
            return 0.0
        origin = np.array([self.leader])
        to_held, to_more = self._between[origin][:, held], self._between[origin][:, more]
        total = 0.0
        if self._votes > 0:
            total = self._votes * float(_least(to_held, to_more, self.quorum, free)[0])
        for term, rounds in zip(self._terms["leader"], self._rounds, strict=True):
            total += rounds * float(self._wait(term, to_held, to_more, origin, held, more)[0])
        return total

    def _wait(
        self, term: WaitTerm, to_held: FloatArray, to_more: FloatArray, origins: IntArray | None,
        held: IntArray, more: IntArray,
    ) -> FloatArray:  # fmt: skip
        """Return the least wait of each origin; a row of distances for each."""
        free = self.size - len(held)
        latest = np.zeros(len(to_held))
        for clause, labels in zip(term.clauses, term.labels, strict=True):
            first, second = to_held, to_more
            inside = np.full(len(to_held), len(held))
            if labels is not None and origins is not None:
                asked = _asked(clause, labels, origins, held)
                inside = asked.sum(axis=1)
                first = np.where(asked, first, np.inf)
                second = np.where(_asked(clause, labels, origins, more), second, np.inf)
            if clause.need == "all" and clause.scope:
                found = np.where(np.isfinite(first), first, 0.0).max(axis=1, initial=0.0)
            else:
                members = inside if clause.scope else np.full_like(inside, self.size)
                need = needed(clause, self.size, self.quorum, members)
                found = _least(first, second, need, free)
            latest = np.maximum(latest, found)
        return latest


def _asked(clause: Clause, labels: IntArray, origins: IntArray, sites: IntArray) -> BoolArray:
    same = labels[origins][:, np.newaxis] == labels[sites]
    return np.asarray(same if clause.scope == "inside" else ~same)


def _least(held: FloatArray, more: FloatArray, need: int | IntArray, free: int) -> FloatArray:
    """Return the need-th smallest of each row of the held and the `free` least of the others."""
    both = np.concatenate([held, np.sort(more, axis=1)[:, :free]], axis=1)
    both.sort(axis=1)
    places = np.broadcast_to(need, len(both)) - 1
    reached = np.clip(places, 0, both.shape[1] - 1)
    found = np.take_along_axis(both, reached[:, np.newaxis], axis=1)[:, 0]
    return np.where(places < 0, 0.0, np.where(places >= both.shape[1], np.inf, found))

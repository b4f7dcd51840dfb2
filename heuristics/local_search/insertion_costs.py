"""Costs of every client once one more site joins, from the rank of its nearest replica alone.

A client whose nearest replica has place f in its order uses an added site x if x comes
before f, and stays otherwise:

    J_ℓ(c, f, x) = s_ℓ(c, x if rank_c(x) < f else the site at place f)

Searches ask for J of many sets at once, and again and again for the same leaders. For few sites J
is therefore computed once for each leader, for every f and x, and looked up: a copy of one row for
each client instead of a comparison and a choice for each pair of client and site. A table has C·S²
numbers for each leader. If this is too much, or if summands belong to no leader, J is computed when
needed. Both give the same numbers, to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from heuristics import tuning
from heuristics.objective_terms import ObjectiveTerms
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["DirectInsertionCosts", "InsertionCosts", "InsertionTables", "Ranks"]

Ranks = npt.NDArray[np.int32]


class InsertionCosts(Protocol):
    """J of B pairs."""

    def costs_after(self, near: Ranks) -> FloatArray:
        """J for nearest replicas at these places, shape (B, rows), as (B, rows, sites + 1).

        The last column, the added site "none", holds what the clients cost as it is. A client
        without a replica has its nearest at place S; the place costs nothing until a site joins.
        """
        ...

    def take(self, some: IntArray | BoolArray) -> InsertionCosts:
        """Only some of the pairs."""
        ...


@dataclass(frozen=True, eq=False)
class DirectInsertionCosts:
    """J on the spot: O(C·S) for each pair.

    Attributes
    ----------
    ranks
        Place of each site in the order of each row, shape (rows, sites + 1); "none" is last.
    order
        The inverse: site at each place, shape (rows, sites + 1).
    summands
        s(c, r) for each pair, shape (B, rows, sites + 1).
    """

    ranks: Ranks
    order: IntArray
    summands: FloatArray

    def costs_after(self, near: Ranks) -> FloatArray:
        """Return costs as :meth:`InsertionCosts.costs_after`."""
        pairs = np.arange(len(near))[:, np.newaxis]
        rows = np.arange(near.shape[1])
        kept = self.summands[pairs, rows, self.order[rows, near]]
        joins = self.ranks < near[:, :, np.newaxis]
        return np.where(joins, self.summands, kept[:, :, np.newaxis])

    def take(self, some: IntArray | BoolArray) -> DirectInsertionCosts:
        """Add a replica as :meth:`InsertionCosts.take`."""
        return DirectInsertionCosts(self.ranks, self.order, self.summands[some])


@dataclass(frozen=True, eq=False)
class _TabledInsertionCosts:
    """J from the tables of the leaders of B pairs.

    Attributes
    ----------
    table
        J of all leaders, shape (leaders · rows · (sites + 1), sites + 1).
    start
        Row of the table at which the places of each pair's rows begin, shape (B, rows).
    """

    table: FloatArray
    start: IntArray

    def costs_after(self, near: Ranks) -> FloatArray:
        """Return costs as :meth:`InsertionCosts.costs_after`; O(C·S) to copy."""
        return self.table.take(self.start + near, axis=0)

    def take(self, some: IntArray | BoolArray) -> _TabledInsertionCosts:
        """Add a replica as :meth:`InsertionCosts.take`."""
        return _TabledInsertionCosts(self.table, self.start[some])


@dataclass(frozen=True, eq=False)
class InsertionTables:
    """J of the leaders of a problem, kept where there are few sites.

    Attributes
    ----------
    terms
        Of the problem, or of another objective on its sites.
    cells
        Most numbers that the tables may hold together.
    """

    terms: ObjectiveTerms
    cells: int = tuning.INSERTION_CELLS

    @cached_property
    def ranks(self) -> Ranks:
        """Place of each site in the order of each row, shape (rows, sites + 1); "none" is last."""
        none = np.full((len(self.terms.rank), 1), self.terms.sites)
        return np.ascontiguousarray(np.hstack([self.terms.rank, none]), dtype=np.int32)

    @cached_property
    def order(self) -> IntArray:
        """Site at each place, shape (rows, sites + 1)."""
        none = np.full((len(self.terms.order), 1), self.terms.sites)
        return np.hstack([self.terms.order, none])

    @cached_property
    def _near_cost(self) -> FloatArray:
        """Cost of r for each row without its relay, shape (rows, sites + 1)."""
        cost = self.terms.served
        return np.hstack([cost, np.zeros((len(cost), 1))])

    @cached_property
    def _relay_rtt(self) -> FloatArray:
        """d(r, ℓ) in each scenario, shape (leaders, scenarios, sites + 1)."""
        rtt = self.terms.site_rtt.transpose(2, 0, 1)
        return np.concatenate([rtt, np.zeros((*rtt.shape[:2], 1))], axis=2)

    @cached_property
    def _kept(self) -> tuple[FloatArray, BoolArray] | None:
        """Room for the tables, and which leaders' are filled in; None: there is none."""
        rows, sites = self.terms.rank.shape
        if sites * rows * (sites + 1) ** 2 > self.cells:
            return None
        return np.empty((sites, rows, sites + 1, sites + 1)), np.zeros(sites, dtype=bool)

    def summands(self, leaders: IntArray) -> FloatArray:
        """s_ℓ(c, r) for each leader, shape (B, rows, sites + 1)."""
        relayed = self._relay_rtt[leaders][:, self.terms.scenario]
        return np.asarray(self._near_cost + relayed * self.terms.relay[:, np.newaxis])

    def of(self, leaders: IntArray) -> InsertionCosts:
        """J of pairs with the given leaders, shape (B,).

        Tables are filled in, O(C·S²) for each, for batches with several pairs of a leader.
        """
        if self._kept is None:
            return DirectInsertionCosts(self.ranks, self.order, self.summands(leaders))
        tables, filled = self._kept
        new = np.unique(leaders[~filled[leaders]])
        if tuning.INSERTION_PAIRS * len(new) > len(leaders):
            return DirectInsertionCosts(self.ranks, self.order, self.summands(leaders))
        for leader, joins in zip(new.tolist(), self.summands(new), strict=True):
            stays = np.take_along_axis(joins, self.order, axis=1)[:, :, np.newaxis]
            tables[leader] = joins[:, np.newaxis, :]
            np.copyto(tables[leader], stays, where=self._stays)
        filled[new] = True
        rows, places = tables.shape[1:3]
        start = (leaders[:, np.newaxis] * rows + np.arange(rows)) * places
        return _TabledInsertionCosts(tables.reshape(-1, places), start)

    @cached_property
    def _stays(self) -> BoolArray:
        """Return whether a client at place f does not turn to x, shape (rows, f, x)."""
        return self.ranks[:, np.newaxis, :] >= np.arange(self.terms.sites + 1)[:, np.newaxis]

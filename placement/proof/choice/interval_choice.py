r"""The sites that a bound adds to a state where RTTs vary by interval, with the waits themselves.

A leader ℓ with replicas R waits for voters V ⊆ R, and so at least

    W(R) = Σ_k q_k(R),    q_k(R) = m-th smallest D_k·d_k(ℓ, x) over x ∈ R that may vote.

The floors of :mod:`placement.evaluation.waits.wait_floors` put one order of the sites in the place
of the orders of all intervals. Here a search decides whether Σ ρ + W can be below a number over the
sets I ∪ Y, Y ⊆ F of a size that is asked for. A node of it holds sites P ⊆ F that are in Y and
sites X ⊆ F that are not; let A = (I ∪ F) \ X.

- **Bound.** R ⊆ A, so W(R) >= W(A); Σ ρ is at least that of P and of the cheapest completion from
  the other sites of F \ X.
- **Leaf.** Let U hold m sites of A with the smallest RTTs in interval k, for every k. If U ⊆ I ∪ P,
  then W(R) = W(A). If U has more than v sites, one of them, x, does not vote, and no voters wait
  less than Σ_k q_k(A \ {x}): W rises by the least of these differences. (This is Lemma 2 of
  :mod:`placement.evaluation.waits.wait_floors` for the sites of A.) U then has m + 1 sites of each
  interval, so that the difference is one of R: no order of branching changes the minimum.
- **Branching.** Otherwise on a site of U that is neither in I nor in P: put it into P, or into X.

Rules for sites are not heeded: the minimum over more sets is no larger. All numbers are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.model.constraints import Rules
from placement.proof.choice.sorted_sites import SortedSites

_MOST_NODES = 5_000
"""Nodes after which a search gives up; a search of the engine ends much sooner."""


class IntervalChoice:
    """Whether Σ ρ + W can be below a number, under one leader.

    Parameters
    ----------
    rules
        Of the problem.
    waits
        D_k·d_k(ℓ, ·) in whole numbers, shape (scenarios, sites).
    """

    def __init__(self, rules: Rules, waits: npt.NDArray[Any]) -> None:
        self._quorum, self._voters = rules.quorum, rules.voters
        voting = np.flatnonzero(rules.may_vote).tolist()
        self._rows: list[list[tuple[int, int]]] = [
            sorted(((s, row[s]) for s in voting), key=lambda pair: pair[1])
            for row in waits.tolist()
        ]

    def is_open(
        self, wanted: float, sites: SortedSites, sizes: range, take: Callable[[int], None]
    ) -> bool:
        """Return whether a set may be below `wanted`; True too where the search becomes too long.

        Parameters
        ----------
        wanted
            Whole number.
        sites
            I and the free sites with their ρ.
        sizes
            Numbers of sites to add; a range with steps of one.
        take
            Counts steps.
        """
        if not sizes:
            return False
        left = sites.inside.union(sites.order)
        rows = [[pair for pair in row if pair[0] in left] for row in self._rows]
        search = _NearSites(rows, sites, sizes, wanted, self._quorum, self._voters, take)
        return search.is_open([], set(), 0)


class _NearSites:
    """A search over (P, X)."""

    def __init__(
        self,
        rows: Sequence[Sequence[tuple[int, int]]],
        sites: SortedSites,
        sizes: range,
        wanted: float,
        quorum: int,
        voters: int,
        take: Callable[[int], None],
    ) -> None:
        self.rows, self.sites, self.sizes, self.wanted = rows, sites, sizes, wanted
        self.quorum, self.voters, self.take = quorum, voters, take
        self.nodes = 0

    def is_open(self, chosen: list[int], excluded: set[int], cost: int) -> bool:
        """Return whether a set that holds `chosen`, of ρ `cost`, and lacks `excluded` is below."""
        self.nodes += 1
        self.take(len(self.sites.order) + len(self.rows) * (self.quorum + len(excluded)))
        if self.nodes > _MOST_NODES:
            return True
        near = [self._nearest(row, excluded) for row in self.rows]
        if any(len(row) < self.quorum for row in near):
            return False
        filled = self._completion(chosen, excluded)
        if filled is None:
            return False
        value = cost + filled + sum(row[self.quorum - 1][1] for row in near)
        if value >= self.wanted:
            return False
        rho = self.sites.rho
        held = self.sites.inside.union(chosen)
        missing = {s for row in near for s, _ in row[: self.quorum]}.difference(held)
        if not missing:
            missed = self._missed(near)
            if missed is None:
                return True  # value < wanted
            if value + missed >= self.wanted:
                return False
            missing = {s for row in near for s, _ in row}.difference(held)
        if not missing:
            return True
        site = min(missing, key=lambda s: (rho[s], s))
        if len(chosen) < self.sizes[-1] and self.is_open(
            [*chosen, site], excluded, cost + rho[site]
        ):
            return True
        return self.is_open(chosen, excluded | {site}, cost)

    def _nearest(
        self, row: Sequence[tuple[int, int]], excluded: Collection[int]
    ) -> list[tuple[int, int]]:
        """Return the m nearest sites of an interval and the next one, with their waits."""
        found: list[tuple[int, int]] = []
        for pair in row:
            if pair[0] not in excluded:
                found.append(pair)
                if len(found) > self.quorum:
                    break
        return found

    def _completion(self, chosen: Collection[int], excluded: Collection[int]) -> int | None:
        """Return the least Σ ρ of the sites beside `chosen`; None: there are too few."""
        number, total, rho = len(chosen), 0, self.sites.rho
        for s in self.sites.order:
            if number == self.sizes[-1] or (number >= self.sizes[0] and rho[s] >= 0):
                break
            if s not in chosen and s not in excluded:
                number += 1
                total += rho[s]
        return total if number >= self.sizes[0] else None

    def _missed(self, near: Sequence[Sequence[tuple[int, int]]]) -> int | None:
        """Return the least rise of W where not all nearest sites can vote; None: they can."""
        rise: dict[int, int] = {}
        for row in near:
            longer = row[self.quorum][1] - row[self.quorum - 1][1] if row[self.quorum :] else 0
            for s, _ in row[: self.quorum]:
                rise[s] = rise.get(s, 0) + longer
        return min(rise.values()) if len(rise) > self.voters else None

"""Nearest sites of every client: the tables that enumeration shares over all keys of a store.

Sort the sites by RTT from client i (ties by index) and call a site's place in that order its
*position*. For some replica sets, :class:`SetBlock` holds for every client and k the position of
the k-th nearest replica. Then

    k-th smallest RTT <= T   ⟺   position < number of sites within T of i ,

one comparison of small integers per client and set, with no floating point involved. Sorting takes
O(n·N²) vector operations over the sets (a sorting network).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, LimitError
from placement.quorumstore import QuorumProblem, Redirect
from placement.support.checks import FloatArray, IntArray

__all__ = ["NearestSites", "SetBlock", "SetTables"]


@dataclass(frozen=True, eq=False)
class NearestSites:
    """Orders of sites around every client, and around where its requests go when its site is lost.

    Attributes
    ----------
    order, position
        Site at each place of client i's order, and the place of each site; shape (n, n).
    near
        RTTs in that order, shape (n, n).
    survivor
        c(f), site that serves the clients of f once f is lost; f itself without redirection.
    moved
        Latency of f's clients then, by position in the order of c(f); shape (n, n).
    grid
        All distinct values of `near` and `moved`: every threshold is one of them ("P1").
    near_rank, moved_rank
        Index into `grid` of each element of `near` and `moved`.
    """

    order: IntArray
    position: IntArray
    near: FloatArray
    survivor: IntArray
    moved: FloatArray
    grid: FloatArray
    near_rank: IntArray
    moved_rank: IntArray

    @classmethod
    def of(cls, problem: QuorumProblem) -> NearestSites:
        """Sort the RTTs of `problem`. O(n² log n)."""
        rtt, count = problem.rtt, len(problem.sites)
        order = np.argsort(rtt, axis=1, kind="stable")
        position = np.empty_like(order)
        np.put_along_axis(position, order, np.arange(count)[np.newaxis, :], axis=1)
        near = np.take_along_axis(rtt, order, axis=1)
        survivor = np.arange(count)
        if problem.redirects and count > 1:
            survivor = np.array([problem.closest_survivor(site, (site,)) for site in range(count)])
        hop = np.zeros(count)
        if problem.rules.redirect is Redirect.HOP:
            hop = np.where(survivor == np.arange(count), 0.0, rtt[np.arange(count), survivor])
        moved = hop[:, np.newaxis] + near[survivor]
        grid, ranks = np.unique(np.concatenate([near.ravel(), moved.ravel()]), return_inverse=True)
        near_rank, moved_rank = ranks.reshape(2, count, count)
        return cls(order, position, near, survivor, moved, grid, near_rank, moved_rank)

    @cached_property
    def redirected(self) -> bool:
        """Return whether clients of a lost site are served by another one."""
        return bool((self.survivor != np.arange(len(self.survivor))).any())

    @cached_property
    def moved_rtt(self) -> FloatArray:
        """Latency of the clients of each site, once it is lost, to each replica; shape (n, n)."""
        rtt: FloatArray = np.take_along_axis(self.moved, self.position[self.survivor], axis=1)
        return rtt

    @cached_property
    def steps(self) -> list[float]:
        """The grid as a list, for look-ups of single values."""
        return [float(value) for value in self.grid]

    @cached_property
    def small(self) -> npt.DTypeLike:
        """Integer type that holds a position."""
        return np.uint8 if len(self.order) <= 255 else np.uint16

    @cached_property
    def rank_type(self) -> npt.DTypeLike:
        """Integer type that holds a rank in the grid, and one more."""
        return np.uint16 if len(self.grid) < 2**16 - 1 else np.uint32

    @cached_property
    def near_rank_small(self) -> npt.NDArray[np.unsignedinteger]:
        """`near_rank` in its compact type."""
        return self.near_rank.astype(self.rank_type)

    @cached_property
    def moved_rank_small(self) -> npt.NDArray[np.unsignedinteger]:
        """`moved_rank` in its compact type."""
        return self.moved_rank.astype(self.rank_type)

    @cached_property
    def position_small(self) -> npt.NDArray[np.unsignedinteger]:
        """`position` in its compact type."""
        return self.position.astype(self.small)


@dataclass(frozen=True, eq=False)
class SetBlock:
    """Block of replica sets of one size, sorted for every client.

    Attributes
    ----------
    sets
        Rows of increasing site indices, shape (m, N).
    place
        place[k, i, s]: position of the (k + 1)-th nearest replica of set s in client i's order;
        shape (N, n, m).
    """

    sets: npt.NDArray[np.unsignedinteger]
    place: npt.NDArray[np.unsignedinteger]

    @property
    def size(self) -> int:
        """N."""
        return int(self.sets.shape[1])

    @classmethod
    def of(cls, geometry: NearestSites, sets: IntArray) -> SetBlock:
        """Sort every set for every client with a network of N(N−1)/2 compare-exchanges."""
        compact = geometry.position_small
        lanes = [compact.take(column, axis=1) for column in sets.T]
        for end in range(len(lanes) - 1, 0, -1):
            for low in range(end):
                first, second = lanes[low], lanes[low + 1]
                lanes[low], lanes[low + 1] = np.minimum(first, second), np.maximum(first, second)
        return cls(sets.astype(geometry.small), np.stack(lanes))


@dataclass(frozen=True, eq=False)
class SetTables:
    """Tables that all keys of one store share, built once for any number of keys.

    Attributes
    ----------
    problem
        Some key of the store; its demand does not matter.
    geometry
        Orders of the sites.
    """

    problem: QuorumProblem
    geometry: NearestSites

    @classmethod
    def of(cls, problem: QuorumProblem, *, most_sets: int = 50_000_000) -> SetTables:
        """Build the tables of a store.

        Parameters
        ----------
        problem
            Any key of the store; its demand is not used.
        most_sets
            Sets above which enumeration is refused.

        Raises
        ------
        LimitError
            When there are more sets than `most_sets`; bisection has no such limit.
        """
        count = len(problem.sites)
        sizes = sorted({total for total, _, _ in problem.pairs})
        sets = sum(comb(count, size) for size in sizes)
        if sets > most_sets:
            raise LimitError(
                f"enumeration would evaluate {sets:,} replica sets ({count} sites, N up to "
                f"{max(sizes)}), above the limit of {most_sets:,}; use bisection (cp-sat or milp), "
                "a smaller max_replicas, or a larger most_sets"
            )
        return cls(problem, NearestSites.of(problem))

    @classmethod
    def empty(cls, problem: QuorumProblem) -> SetTables:
        """Tables for problems whose rules leave no set at all."""
        return cls(problem, NearestSites.of(problem))

    def need(self, problem: QuorumProblem) -> None:
        """Check that these tables belong to the problem's store.

        Raises
        ------
        InputError
            When RTTs or redirection differ.
        """
        own = self.problem
        if own is problem:
            return
        same = own.rtt is problem.rtt or np.array_equal(own.rtt, problem.rtt)
        if not same or own.rules.redirect is not problem.rules.redirect:
            raise InputError(
                f"the tables were built for another store than that of key {problem.name!r}",
                field="tables",
                expected="the same RTTs and redirection",
            )

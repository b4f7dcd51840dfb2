"""What enumeration shares over all keys of one store: replica sets and who is nearest to whom.

Sort the sites by RTT from client i (ties by index) and call a site's place in that order its
*position*. The table of a block of replica sets holds, for every client and k, the position of the
k-th nearest replica. Then

    k-th smallest RTT <= T   ⟺   position < number of sites within T of i ,

one comparison of small integers per client and set, with no floating point and no sorting left to
do per key. Tables depend on RTTs only. Building one takes O(n·N²) vector operations over the sets
(a sorting network); 80,730 sets of five out of 27 sites take about 20 ms and 11 MB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, islice
from math import comb

import numpy as np
import numpy.typing as npt

from placement.checks import FloatArray, IntArray
from placement.errors import InputError, LimitError
from placement.quorumstore import QuorumProblem, Redirect

__all__ = ["Geometry", "SetBlock", "SetTables"]

_BLOCK = 100_000
"""Sets per block: positions of five replicas for 27 clients then take 13.5 MB."""


@dataclass(frozen=True, eq=False)
class Geometry:
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
    def of(cls, problem: QuorumProblem) -> Geometry:
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

    def within(self, limit: float) -> IntArray:
        """Return the number of sites within `limit` ms of each client, shape (n,)."""
        counts: IntArray = (self.near <= limit).sum(axis=1)
        return counts


@dataclass(frozen=True, eq=False)
class SetBlock:
    """A run of replica sets of one size, in lexicographic order.

    Attributes
    ----------
    sets
        Rows of increasing site indices, shape (M, N).
    place
        place[k, i, s]: position of the (k + 1)-th nearest replica of set s in client i's order;
        shape (N, n, M).
    """

    sets: npt.NDArray[np.unsignedinteger]
    place: npt.NDArray[np.unsignedinteger]

    @property
    def size(self) -> int:
        """N."""
        return int(self.sets.shape[1])

    @classmethod
    def of(cls, geometry: Geometry, sets: IntArray) -> SetBlock:
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
    """All replica sets a problem allows, in blocks, built once for any number of keys.

    Attributes
    ----------
    geometry
        Orders of the sites.
    kept
        The blocks by size, where they fit into `memory`; otherwise empty and built anew each time
        they are asked for.
    """

    problem: QuorumProblem
    geometry: Geometry
    kept: dict[int, tuple[SetBlock, ...]]

    @classmethod
    def of(
        cls, problem: QuorumProblem, *, memory: int = 2**29, most_sets: int = 50_000_000
    ) -> SetTables:
        """Build the tables of a store.

        Parameters
        ----------
        problem
            Any key of the store; its demand is not used.
        memory
            Bytes up to which tables are kept.
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
                f"enumeration would look at {sets:,} replica sets ({count} sites, N up to "
                f"{max(sizes)}), above the limit of {most_sets:,}; use bisection (cp-sat or milp), "
                "a smaller max_replicas, or a larger most_sets"
            )
        geometry = Geometry.of(problem)
        width = np.dtype(geometry.small).itemsize
        total = sum(comb(count, size) * size * (count + 1) * width for size in sizes)
        tables = cls(problem, geometry, {})
        if total <= memory:
            for size in sizes:
                tables.kept[size] = tuple(tables.build(size))
        return tables

    @classmethod
    def empty(cls, problem: QuorumProblem) -> SetTables:
        """Tables without any set, for problems whose rules leave none."""
        return cls(problem, Geometry.of(problem), {})

    def need(self, problem: QuorumProblem) -> None:
        """Check that these tables are those of the problem's store.

        Raises
        ------
        InputError
            When RTTs, redirection or the rule on regions differ.
        """
        own = self.problem
        apart = own.rules.distinct_regions
        same = (
            np.array_equal(own.rtt, problem.rtt)
            and own.rules.redirect is problem.rules.redirect
            and apart == problem.rules.distinct_regions
            and (not apart or own.regions == problem.regions)
        )
        if not same:
            raise InputError(
                f"the tables were built for another store than that of key {problem.name!r}",
                field="tables",
                expected="the same RTTs, redirection and rule on distinct regions",
            )

    def blocks(self, size: int) -> Iterator[SetBlock]:
        """Blocks of all allowed sets of `size` replicas, in lexicographic order."""
        yield from self.kept[size] if size in self.kept else self.build(size)

    def build(self, size: int) -> Iterator[SetBlock]:
        """Build the blocks of one size, one after the other."""
        every = combinations(range(len(self.problem.sites)), size)
        while True:
            flat = np.fromiter(chain.from_iterable(islice(every, _BLOCK)), dtype=np.intp)
            if not flat.size:
                return
            sets = flat.reshape(-1, size)
            # The rule on distinct regions does not depend on R and W; quorum 0 asks for it alone.
            sets = sets[self.problem.admissible(sets, 0)]
            if len(sets):
                yield SetBlock.of(self.geometry, sets)

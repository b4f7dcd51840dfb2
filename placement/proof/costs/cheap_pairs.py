"""Pairs of a client and a site that can lower ρ: those that cost less than the client's multiplier.

A bound needs Σ_c min(0, w'_cj + P_cj − u_c) for every free site j, over the clients c that prefer j
to their first site of I (:mod:`placement.proof.leader_proof`). P is not negative, so only pairs
with w'_cj < u_c count. In a good bound these are the sites at about the distance of the client's
replica, a tenth of all at 1,000 sites and 9 replicas. A proof has thousands of bounds with like
multipliers: the pairs are listed once, up to a limit somewhat above u, and used by all bounds whose
u stays below it.

Example: a client with costs 5, 9, 30 and u = 8 has one such pair, and lowers ρ of the first site by
3. With u = 9 it lowers ρ by 4, and the second site, at cost 9, does not count yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from placement.support.checks import BoolArray, IntArray

if TYPE_CHECKING:
    from placement.proof._pair_sums import _Pairs

Whole = npt.NDArray[np.int64]

_MARGIN = 3
"""Limits are above multipliers by 2^-3 of these: few lists are made again, and lists are short."""

_NARROW = 3
"""A list of a third of the pairs is made where no more of them count in a state."""


@dataclass(frozen=True, eq=False)
class SortedBetas:
    """Closest-assignment multipliers β > 0 on a grid, by client and then by the client's order.

    Ascending `keys` are client · (n + 1) + place of the site in the client's order. Client c has
    the entries start[c] to start[c + 1].
    """

    keys: IntArray
    clients: IntArray
    sites: IntArray
    places: IntArray
    values: Whole
    starts: IntArray

    @classmethod
    def sort(cls, clients: IntArray, sites: IntArray, values: Whole, rank: IntArray) -> Self:
        """Sort entries; `rank` has the place of each site for each client. O(entries · log)."""
        width = rank.shape[1] + 1
        places = rank[clients, sites].astype(np.int64)
        keys = clients * width + places
        order = keys.argsort()
        keys = keys[order]
        starts = keys.searchsorted(np.arange(len(rank) + 1) * width)
        return cls(keys, clients[order], sites[order], places[order], values[order], starts)

    def counted(self, is_free: BoolArray, first: IntArray) -> Whole:
        """Return β of the entries that count in a state, 0 for the others; `first` as of `sums`."""
        return self.values * (is_free.take(self.sites) & (self.places < first.take(self.clients)))


def limits_above(u: Whole) -> Whole:
    """Return limits for multipliers and those a little larger."""
    return np.asarray(u + (np.abs(u) >> _MARGIN) + 1)


@cache
def compiled_sums() -> ModuleType | None:
    """Return the compiled loops; None where no compiler was there at installation."""
    try:
        from placement.proof import _pair_sums
    except ImportError:
        return None
    return _pair_sums


class CompiledPairs:
    """List of pairs of a client and a site below a limit of the client, which serves some states.

    It is in memory of the compiled loops (``csrc/pair_sums.c``), which are the checker's own; no
    search uses them. No pair that costs less than the limit of its client, shape (clients,), is
    left out in the state of `inside` and `free`, nor in those that go on from it. Entries of the β
    `placed` before each pair are known to the list.
    """

    def __init__(
        self,
        pairs: _Pairs,
        limits: Whole,
        inside: frozenset[int],
        free: BoolArray,
        placed: SortedBetas | None = None,
    ) -> None:
        self.limits, self.inside, self.free = limits, inside, free
        self.pairs, self._placed = pairs, placed
        self._no_entries = np.zeros(len(limits) + 1, dtype=np.int64)

    def covers(self, u: Whole, inside: Collection[int], is_free: BoolArray) -> bool:
        """Return whether the pairs of a state and of multipliers are among these."""
        held = self.inside.issubset(inside) and not (is_free & ~self.free).any()
        return bool(held and (u <= self.limits).all())

    def sums(
        self,
        u: Whole,
        first: IntArray,
        inside: Collection[int],
        is_free: BoolArray,
        beta: SortedBetas | None,
        betas: Whole,
    ) -> tuple[Whole, CompiledPairs | None]:
        """Return Σ_c min(0, w'_cj + P_cj − u_c) of every free site, and a shorter list, or None.

        `first` is the place of each client's first site of I, and `betas` is what counts of `beta`
        in the state; None: all β are 0. The shorter list has the pairs that count in this state and
        those after it, where they are much fewer.
        """
        from placement.proof import _pair_sums

        starts = self._no_entries
        prefix = np.zeros(len(betas) + 1, dtype=np.int64)
        if beta is not None:
            starts = np.ascontiguousarray(beta.starts, dtype=np.int64)
            if self._placed is not beta:
                places = beta.places.astype(np.int32)
                _pair_sums.place_entries(self.pairs, len(betas), starts, places)
                self._placed = beta
            np.cumsum(betas, out=prefix[1:])
        totals = np.zeros(len(self.free), dtype=np.int64)
        before = np.ascontiguousarray(first, dtype=np.int32)
        counted = _pair_sums.savings(
            self.pairs, u, before, is_free, len(betas), starts, prefix, totals
        )
        if _NARROW * counted > _pair_sums.count(self.pairs):
            return totals, None
        pairs = _pair_sums.narrow(self.pairs, before, is_free)
        kept = frozenset(inside)
        return totals, CompiledPairs(pairs, self.limits, kept, is_free, self._placed)

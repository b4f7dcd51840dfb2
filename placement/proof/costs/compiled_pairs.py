"""The pairs of :mod:`placement.proof.costs.cheap_pairs`, listed and summed by compiled loops.

The loops (``csrc/pair_sums.c``) are the checker's own; no search uses them. They compute the same
whole numbers as NumPy does, in a tenth of the time, and are left out if they were not built.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from placement.proof.costs.cheap_pairs import PairList, SortedBetas, Whole, covers, few
from placement.support.checks import BoolArray, IntArray

if TYPE_CHECKING:
    from placement.proof._pair_sums import _Pairs


@cache
def compiled_sums() -> ModuleType | None:
    """Return the compiled loops; None where no compiler was there at installation."""
    try:
        from placement.proof import _pair_sums
    except ImportError:
        return None
    return _pair_sums


class CompiledPairs:
    """Pairs of a client and a site below a limit of the client, in memory of the compiled loops.

    Parameters
    ----------
    pairs
        The list.
    limits, inside, free
        As for :class:`~placement.proof.costs.cheap_pairs.CheapPairs`.
    placed
        β whose entries before each pair are known to the list.
    """

    def __init__(
        self,
        pairs: _Pairs,
        limits: Whole,
        inside: frozenset[int],
        free: BoolArray,
        placed: SortedBetas | None = None,
    ) -> None:
        self.pairs, self.limits, self.inside, self.free = pairs, limits, inside, free
        self._placed = placed
        self._no_entries = np.zeros(len(limits) + 1, dtype=np.int64)

    def covers(self, u: Whole, inside: Collection[int], is_free: BoolArray) -> bool:
        """Return whether the pairs of a state and of multipliers are among these."""
        return covers(self.limits, self.inside, self.free, u, inside, is_free)

    def sums(
        self,
        u: Whole,
        first: IntArray,
        inside: Collection[int],
        is_free: BoolArray,
        beta: SortedBetas | None,
        betas: Whole,
    ) -> tuple[Whole, PairList | None]:
        """Return what :meth:`~placement.proof.costs.cheap_pairs.PairList.sums` says."""
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
        if not few(counted, _pair_sums.count(self.pairs)):
            return totals, None
        pairs = _pair_sums.narrow(self.pairs, before, is_free)
        kept = frozenset(inside)
        return totals, CompiledPairs(pairs, self.limits, kept, is_free, self._placed)

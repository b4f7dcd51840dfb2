"""The free sites of a state in ascending order of ρ."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class _Near:
    """Sites of a state within a radius, or all: how many of I must vote, and others may.

    `places` are the first ones, in the order of ρ, of free sites that may vote, one more than
    wanted.
    """

    pinned: int
    others: int
    places: tuple[int, ...]


class SortedSites:
    """The free sites of a state in ascending order of ρ, ties as they are given; `inside` is I.

    `rho` is read of free sites alone; `negative` of them have ρ < 0. `place` of a site in the order
    is −1 where it is not free.
    """

    def __init__(self, inside: Iterable[int], free: Sequence[int], rho: Sequence[int]) -> None:
        self.inside, self.rho = frozenset(inside), rho
        values = np.array(rho)  # int64 unless a number is too large for it
        at = np.array(free, dtype=np.intp)
        if values.dtype == np.int64:
            of_free = values[at]
            order = at[of_free.argsort(kind="stable")]
            self.order: list[int] = order.tolist()
            self.negative = int(np.count_nonzero(of_free < 0))
        else:
            self.order = sorted(free, key=rho.__getitem__)
            self.negative = sum(rho[s] < 0 for s in free)
            order = np.array(self.order, dtype=np.intp)
        place = np.full(len(rho), -1)
        place[order] = np.arange(len(order))
        self.place: list[int] = place.tolist()
        self._sums = [0]
        self._near: list[_Near] = []
        self._all: _Near | None = None

    def sum_of_first(self, count: int) -> int:
        """Return the sum of ρ over so many sites of the order."""
        for site in self.order[len(self._sums) - 1 : count]:
            self._sums.append(self._sums[-1] + self.rho[site])
        return self._sums[count]

    def all_sites(self, may_vote: Sequence[bool], pinned: Collection[int], voters: int) -> _Near:
        """Sites at any distance, with the places of free voters; kept for later calls."""
        if self._all is None:
            voting = (at for at, s in enumerate(self.order) if may_vote[s])
            self._all = _Near(
                pinned=sum(s in self.inside for s in pinned),
                others=sum(may_vote[s] and s not in pinned for s in self.inside),
                places=tuple(itertools.islice(voting, voters + 1)),
            )
        return self._all

    def near(
        self,
        radius: int,
        rings: Sequence[Sequence[int]],
        may_vote: Sequence[bool],
        pinned: Collection[int],
        quorum: int,
    ) -> _Near:
        """Sites within a radius, of the rings of sites at the radii; kept for later calls."""
        while len(self._near) <= radius:
            last = self._near[-1] if self._near else _Near(0, 0, ())
            members = rings[len(self._near)]
            held = [s for s in members if s in self.inside]
            voting = [s for s in members if may_vote[s]]
            places = [*last.places, *(self.place[s] for s in voting if self.place[s] >= 0)]
            self._near.append(
                _Near(
                    pinned=last.pinned + sum(s in pinned for s in held),
                    others=last.others + sum(may_vote[s] and s not in pinned for s in held),
                    places=tuple(sorted(places)[: quorum + 1]),
                )
            )
        return self._near[radius]

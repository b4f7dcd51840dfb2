"""Lower bounds on the sum of two waits: of two clients, or of a client and the leader.

Let every wait be for the k nearest of all sites. Suppose that one wait ends at t and another at u.
Let n be the answers within t that the first wait still lacks from the chosen sites, and o the
answers within u that the second one lacks. Let *both* be the number of sites that may be added
and lie within t of the first and within u of the second. Then at least

    max(n, o, n + o − both)    sites are added,

because an added site answers one of the two waits, unless it is one of *both*. The least t + u that
needs no more sites than may be added is a lower bound on the sum of the two waits. For clients far
from each other this is more than the sum of the two separate bounds: any two majorities have a
site in common.

Let y_ij >= 0 be weights of pairs, with Σ_j y_ij <= D_i for every wait i. With the separate bounds
a_i, and the gains g_ij = min(t + u) − a_i − a_j >= 0 of the pairs,

    Σ_i D_i · t_i  >=  Σ_i D_i · a_i + Σ_ij y_ij · g_ij.

Three sites by hand: a, b and c lie on a line at 0, 10 and 30 ms. A client at a and a client at c
each wait for one answer, and one site is to be added. Each separate bound is 0, by a site at the
client. But one site answers both clients, so t + u is 30 at least. With y = 0.5 the gain is 15.
With two sites to be added there is no gain.

>>> import numpy as np
>>> rtts = np.array([[0.0, 10.0, 30.0], [30.0, 20.0, 0.0]])
>>> pairs = WaitPairs([PairedWait(rtt, need=1, rounds=1.0) for rtt in rtts], [(0, 1, 0.5)])
>>> pairs.gain([], [0, 1, 2], free=1), pairs.gain([], [0, 1, 2], free=2)
(15.0, 0.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from placement.errors import CertificateError
from placement.support.checks import FloatArray, IntArray

__all__ = ["PairedWait", "WaitPairs"]


class PairedWait(NamedTuple):
    """A wait for the `need` nearest of all sites, `rounds` times.

    Attributes
    ----------
    rtt
        From the client or leader to every site, ms, shape (sites,).
    """

    rtt: FloatArray
    need: int
    rounds: float


class WaitPairs:
    """Pairs of waits with weights.

    Parameters
    ----------
    waits
        Those that may be paired.
    pairs
        (first, second, weight): places in `waits`, and >= 0.

    Raises
    ------
    CertificateError
        For a pair of no two waits, or weights that add up to more than a wait has.
    """

    def __init__(self, waits: Sequence[PairedWait], pairs: Iterable[Sequence[Any]]) -> None:
        given: dict[int, list[float]] = {}
        self._pairs: list[tuple[int, int, float]] = []
        for first, second, weight in pairs:
            places = int(first), int(second)
            good = first in range(len(waits)) and second in range(len(waits)) and first != second
            if not good or not 0 <= weight < math.inf:
                raise CertificateError(f"{[first, second, weight]!r:.60} is no pair of waits")
            self._pairs.append((*places, float(weight)))
            for place in places:
                given.setdefault(place, []).append(float(weight))
        for place, weights in given.items():
            if not math.fsum(weights) < waits[place].rounds:  # the sum rounded to nearest
                raise CertificateError(f"the pairs of wait {place} weigh more than the wait")
        self._need = {place: waits[place].need for place in given}
        self._order: dict[int, list[int]] = {}
        self._reach: dict[int, list[float]] = {}
        for place in given:
            order: IntArray = np.argsort(waits[place].rtt, kind="stable")
            self._order[place] = order.tolist()
            self._reach[place] = waits[place].rtt[order].tolist()

    def __len__(self) -> int:
        return len(self._pairs)

    def gain(
        self, held: Sequence[int], coming: Sequence[int], free: int, enough: float = math.inf
    ) -> float:
        """Return Σ y·g for some chosen sites and those of which `free` more come.

        The pairs are added one by one until their sum is `enough`. Infinite where no sites that may
        come answer a wait. O(pairs · sites).
        """
        chosen, more = _bits(held), _bits(coming)
        sides: dict[int, _WaitReach] = {}
        total = 0.0
        for first, second, weight in self._pairs:
            if total >= enough:
                break
            for place in (first, second):
                if place not in sides:
                    side = self._side(place, chosen, more, free)
                    if side is None:
                        return math.inf
                    sides[place] = side
            total += weight * _least_together(sides[first], sides[second], free)
        return total

    def _side(self, place: int, chosen: int, more: int, free: int) -> _WaitReach | None:
        """Return a wait from its bound alone on; None where it cannot be met."""
        open_answers, reach, within = [], [], 0
        far: list[float] = []
        for site, rtt in zip(self._order[place], self._reach[place], strict=True):
            within |= 1 << site
            left = self._need[place] - (within & chosen).bit_count()
            if far or left <= min(free, (within & more).bit_count()):
                open_answers.append(max(0, left))
                reach.append(within & more)
                far.append(rtt)
        return _WaitReach(far, open_answers, reach) if far else None


class _WaitReach(NamedTuple):
    """State of one wait of a pair, by the number of sites within its radius.

    Attributes
    ----------
    far
        Distance of the last of them, ms; the first is the bound alone.
    open_answers, reach
        Answers that the chosen sites leave open, and the sites that may come, as bits.
    """

    far: list[float]
    open_answers: list[int]
    reach: list[int]


def _bits(sites: Sequence[int]) -> int:
    found = 0
    for site in sites:
        found |= 1 << site
    return found


def _least_together(one: _WaitReach, other: _WaitReach, free: int) -> float:
    """Return the least t + u of two waits beyond the sum of both alone."""
    best = math.inf
    last = len(other.far) - 1
    for t, n, f in zip(*one, strict=True):
        if t + other.far[0] >= best:
            break
        # the least place of the other beside t, which never moves up as t rises
        while last >= 0 and max(
            n, other.open_answers[last], n + other.open_answers[last]
            - (f & other.reach[last]).bit_count()
        ) <= free:  # fmt: skip
            best = min(best, t + other.far[last])
            last -= 1
        if last < 0:
            break
    return best - one.far[0] - other.far[0]

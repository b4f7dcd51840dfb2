"""The inner problem Z(ρ) of :mod:`formulations.exact.certificate_events`, for the NumPy kernel.

For one quorum radius it is a minimum-weight basis of a matroid, found greedily; the minimum over
the radii is exact without rules, and the largest of three relaxations with them.

The example of :mod:`formulations.exact.certificate_events`: three sites on a line at 0, 1 and 3 ms,
two replicas that both vote, D = 2, the leader in the middle. At reduced costs of 0 the second
voter is the near site (2 · 1 ms). Where the far site saves 3 it is the better one, at 2 · 2 − 3:

>>> import numpy as np
>>> rtt = np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]))
>>> weights = (np.ones(3), np.ones(3), np.zeros(3), 2.0)
>>> core = ReducedProblem.of_arrays(rtt, rtt, weights, replicas=(2, 2), voters=2)
>>> inner = InnerProblem(core, leader=1)
>>> for rho in ([0.0, 0.0], [0.0, -3.0]):
...     best = min(inner.solve([1], np.array([0, 2]), np.array(rho)), key=lambda one: one.value)
...     print(best.value, best.chosen)
2.0 (0,)
1.0 (2,)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formulations.exact.reduced_problem import ReducedProblem
from placement.model.site_families import FamilyCount, SiteFamily, family_counts
from placement.support.checks import FloatArray, IntArray

__all__ = ["InnerProblem", "RadiusMinimum", "Selection"]


@dataclass(frozen=True, slots=True)
class Selection:
    """A basis found greedily: free sites and the sum of their reduced costs.

    Attributes
    ----------
    value
        Sum of its reduced costs.
    chosen
        Free sites selected.
    top, least_left
        Largest reduced cost selected, smallest left out (−∞ and +∞ when there is none).
    """

    value: float
    chosen: tuple[int, ...]
    top: float
    least_left: float


@dataclass(frozen=True, slots=True)
class RadiusMinimum:
    """The relaxations of one radius: price of the radius, and a basis for each."""

    price: float
    parts: tuple[Selection, ...]

    @property
    def value(self) -> float:
        """Lower bound of all selections with this radius."""
        return self.price + max(part.value for part in self.parts)

    @property
    def chosen(self) -> tuple[int, ...]:
        """Free sites of the binding relaxation."""
        return max(self.parts, key=lambda part: part.value).chosen


class InnerProblem:
    """Solves the inner problem of one leader.

    Parameters
    ----------
    core
        The problem.
    leader
        Site index, or −1 when no leader matters.
    """

    def __init__(self, core: ReducedProblem, leader: int) -> None:
        rules = core.rules
        self.rules, self.leader = rules, leader
        self.least = max(rules.replicas_min, rules.voters)
        self.families = core.families
        self.given = set(np.nonzero(rules.must_vote)[0].tolist()) | ({leader} - {-1})
        self.may_vote = rules.may_vote.tolist()
        self.weight = core.quorum_weight if leader >= 0 and rules.quorum > 1 else 0.0
        self.distance: list[float] = core.site_rtt[leader].tolist() if leader >= 0 else []
        order = (
            np.argsort(core.site_rtt[leader], kind="stable") if leader >= 0 else np.zeros(0, int)
        )
        self.near_order: list[int] = order.tolist()
        self.simple = (
            not self.families["voters"]
            and not self.families["replicas"]
            and bool(rules.may_vote.all())
            and not rules.must_vote.any()
        )

    def sizes(self, held: int, free: int) -> tuple[int, int]:
        """Fewest and most sites still to be chosen."""
        return max(0, self.least - held), min(self.rules.replicas_max - held, free)

    def solve(self, held: Sequence[int], free: IntArray, rho: FloatArray) -> list[RadiusMinimum]:
        """Return the answers of all radii that can be best, or contain something nearly as good.

        Parameters
        ----------
        held
            Sites of the state that hold replicas.
        free
            Free sites.
        rho
            Their reduced costs.

        Returns
        -------
        list of Answer
            Empty when the state is infeasible; the least value among them is Z(ρ).
        """
        low, high = self.sizes(len(held), len(free))
        if high < 0 or low > high:
            return []
        order = np.argsort(rho, kind="stable")
        ranked = list(zip(rho[order].tolist(), free[order].tolist(), strict=True))
        common: tuple[Selection, ...] = ()
        if not self.simple:
            families = self.families["replicas"]
            counts = family_counts(families, low + len(held), high + len(held), held)
            if counts is None:
                return []
            ranked = [one for one in ranked if all(count.fits(one[1]) for count in counts)]
            ruled = [_ruled(count, ranked) for count in counts] or [_greedy(ranked, low, high)]
            voting = self._voting(held, ranked, low, high, self.rules.voters, None)
            if voting is None or not all(ruled):
                return []
            common = (*(one for one in ruled if one is not None), voting)
        if self.weight == 0:
            if not common:
                plain = _greedy(ranked, low, high)
                return [] if plain is None else [RadiusMinimum(0.0, (plain,))]
            return [RadiusMinimum(0.0, common)]
        answers = []
        loose = _greedy(ranked, low, high)
        inside: set[int] = set()
        at = 0
        while at < len(self.near_order):
            radius = self.distance[self.near_order[at]]
            while at < len(self.near_order) and self.distance[self.near_order[at]] == radius:
                inside.add(self.near_order[at])
                at += 1
            selection = self._voting(held, ranked, low, high, self.rules.quorum, inside)
            if selection is None:
                continue
            answers.append(RadiusMinimum(self.weight * radius, (*common, selection)))
            if self.simple and loose is not None and selection.chosen == loose.chosen:
                break
        return answers

    def _voting(
        self,
        held: Sequence[int],
        ranked: list[tuple[float, int]],
        low: int,
        high: int,
        wanted: int,
        inside: set[int] | None,
    ) -> Selection | None:
        """Cheapest sites with `wanted` voters among `inside` (None: anywhere)."""
        families = self.families["voters"] or (SiteFamily.of_blocks(len(self.may_vote), {}),)
        counts = family_counts(families, self.rules.voters, self.rules.voters, self.given)
        found: list[Selection] = []
        for count in counts or ():
            one = self._voting_of(count, held, ranked, low, high, wanted, inside)
            if one is None:
                return None
            found.append(one)
        return max(found, key=lambda one: one.value) if found else None

    def _voting_of(
        self,
        votes: FamilyCount,
        held: Sequence[int],
        ranked: list[tuple[float, int]],
        low: int,
        high: int,
        wanted: int,
        inside: set[int] | None,
    ) -> Selection | None:
        """Return the least selection for one family, with the forced voters counted."""
        given = self.given if inside is None else self.given & inside
        if wanted - len(given) > self.rules.voters - len(self.given):
            return None
        need = wanted - len(given)
        for site in held:
            if (
                site not in self.given
                and self.may_vote[site]
                and (inside is None or site in inside)
                and votes.take(site)
            ):
                need -= 1
        need = max(0, need)
        other_low, other_high, others = max(0, low - need), high - need, 0
        if other_high < 0:
            return None
        chosen: list[int] = []
        value, top, left = 0.0, -math.inf, math.inf
        for key, site in ranked:
            able = need > 0 and self.may_vote[site] and (inside is None or site in inside)
            if able and votes.take(site):
                need -= 1
            elif others < other_low or (key < 0 and others < other_high):
                others += 1
            else:
                left = min(left, key)
                continue
            chosen.append(site)
            value, top = value + key, max(top, key)
        if need > 0 or others < other_low:
            return None
        return Selection(value, tuple(chosen), top, left)


def _ruled(count: FamilyCount, ranked: list[tuple[float, int]]) -> Selection | None:
    """Cheapest sites that complete a family; None when none do."""
    chosen: list[int] = []
    value, top, left = 0.0, -math.inf, math.inf
    for key, site in ranked:
        if count.take(site) if key < 0 else count.missing > 0 and count.take_needed(site):
            chosen.append(site)
            value, top = value + key, max(top, key)
        else:
            left = min(left, key)
    return None if count.missing > 0 else Selection(value, tuple(chosen), top, left)


def _greedy(ranked: list[tuple[float, int]], low: int, high: int) -> Selection | None:
    """Cheapest sites of the right number, nothing else asked."""
    size = low
    while size < high and ranked[size][0] < 0:
        size += 1
    if size > len(ranked):
        return None
    keys = [key for key, _ in ranked]
    return Selection(
        float(sum(keys[:size])),
        tuple(site for _, site in ranked[:size]),
        keys[size - 1] if size else -math.inf,
        keys[size] if size < len(keys) else math.inf,
    )

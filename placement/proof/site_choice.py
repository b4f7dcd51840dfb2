"""The sites that a bound adds to a state: the least Σ ρ + D·q over the sets that the rules allow.

This is the inner problem Z(ρ) of :mod:`placement.proof.leader_proof`. All numbers are integers, be
they exact or rounded down, so that one form serves both.
"""

from __future__ import annotations

import itertools
from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from placement.checks import FloatArray
from placement.model.constraints import GroupRule, Rules

__all__ = ["CapUsage", "SiteChoice"]


class CapUsage:
    """Number of some sites that each domain holds, and the number its caps still let in."""

    def __init__(self, groups: Sequence[GroupRule], sites: Iterable[int]) -> None:
        self.caps = [(g.labels.tolist(), g.cap, [0] * len(g.names)) for g in groups]
        self.kept = True
        for site in sites:
            self.kept = self.take(site) and self.kept

    def take(self, site: int) -> bool:
        """Count a site if every cap has room for it; say whether it had."""
        if any(cap is not None and held[labels[site]] >= cap for labels, cap, held in self.caps):
            return False
        for labels, _, held in self.caps:
            held[labels[site]] += 1
        return True


class SiteChoice:
    """Sets of sites that the rules allow under one leader, and the least Σ ρ + D·q over them.

    Parameters
    ----------
    rules
        Of the problem.
    leader
        ℓ; None when the leader does not matter.
    waits
        d(ℓ, ·), shape (sites,); None when the quorum costs nothing.

    Attributes
    ----------
    radii
        Distinct waits in ascending order; one radius, 0, when the quorum costs nothing.
    """

    def __init__(self, rules: Rules, leader: int | None, waits: FloatArray | None) -> None:
        self.rules = rules
        sites = len(rules.may_hold)
        self.asks_quorum = waits is not None
        of_sites = np.zeros(sites) if waits is None else waits
        self.radii, numbers = np.unique(of_sites, return_inverse=True)
        self._radius: list[int] = numbers.tolist()  # of each site
        by_radius = np.argsort(numbers, kind="stable")
        self._rings: list[list[int]] = [
            ring.tolist() for ring in np.split(by_radius, np.cumsum(np.bincount(numbers))[:-1])
        ]
        self._pinned = {int(s) for s in np.nonzero(rules.must_vote)[0]}
        if leader is not None:
            self._pinned.add(leader)
        self._may_vote: list[bool] = rules.may_vote.tolist()
        self._caps_votes = any(group.cap is not None for group in rules.of("voters"))
        greedies = len(self.radii) if self._caps_votes else 1
        self.steps = sites * (3 + greedies) + len(self.radii)
        """Steps of one inner problem, at most."""

    # --- the inner problem ------------------------------------------------------------------

    def reaches(
        self,
        wanted: int,
        order: Sequence[int],
        rho: Sequence[int],
        inside: Collection[int],
        costs: Sequence[int],
    ) -> bool:
        """Whether Z(ρ) >= `wanted`; true when no set is allowed.

        Parameters
        ----------
        wanted
            The value to reach.
        order
            Free sites by ascending ρ.
        rho
            ρ of every site; only those of free sites are read.
        inside
            I, the sites that hold a replica.
        costs
            D·r of each radius, in ascending order.
        """
        held = set(inside)
        low, high = self._sizes(len(held))
        if low > high:
            return True
        caps = self._cheapest_under_caps(rho, order, held)
        voters = self._cheapest_with_voters(
            rho, order, held, len(self.radii) - 1, self.rules.voters
        )
        if caps is None or voters is None:
            return True
        floor = max(caps, voters)
        if not self.asks_quorum:
            return floor >= wanted
        # No term of a radius is below its cost plus `floor`, and the costs ascend.
        count = next((k for k, cost in enumerate(costs) if cost + floor >= wanted), len(costs))
        return all(
            near is None or cost + near >= wanted
            for cost, near in zip(costs, self._by_radius(rho, order, held, count), strict=False)
        )

    def _by_radius(
        self, rho: Sequence[int], order: Sequence[int], inside: set[int], count: int
    ) -> Iterator[int | None]:
        """Least Σ ρ with a quorum within each of the first `count` radii; None: impossible."""
        quorum = self.rules.quorum
        if self._caps_votes:
            for radius in range(count):
                yield self._cheapest_with_voters(rho, order, inside, radius, quorum)
            return
        # Without caps on voters the greedy takes the first sites of the order within the radius,
        # and fillers from what remains: positions and sums of prefixes say all.
        place = {site: at for at, site in enumerate(order)}
        sums = [0, *itertools.accumulate(rho[s] for s in order)]
        negative = sum(rho[s] < 0 for s in order)
        low, high = self._sizes(len(inside))
        spare = self.rules.voters - len(self._pinned)
        forbidden = spare < 0 or not all(self._may_vote[s] for s in self._pinned)
        pinned = others = 0
        near: list[int] = []  # places of the free sites within the radius that may vote
        for radius in range(count):
            for site in self._rings[radius]:
                if site in inside:
                    pinned += site in self._pinned
                    others += site not in self._pinned and self._may_vote[site]
                elif self._may_vote[site] and site in place:
                    insort(near, place[site])
                    del near[quorum:]
            if forbidden or quorum - pinned > spare:
                yield None
                continue
            need = max(0, quorum - pinned - others)
            chosen = near[:need]
            if len(chosen) < need or need > high:
                yield None
                continue
            yield self._with_fillers(rho, order, sums, chosen, negative, low, high)

    @staticmethod
    def _with_fillers(
        rho: Sequence[int],
        order: Sequence[int],
        sums: Sequence[int],
        chosen: Sequence[int],
        negative: int,
        low: int,
        high: int,
    ) -> int | None:
        """Σ ρ of the chosen places and of the fillers that sizes and signs ask for, or None."""
        need = len(chosen)
        saving = negative - sum(at < negative for at in chosen)
        fillers = min(high - need, max(low - need, saving))
        if fillers > len(order) - need:
            return None
        end = fillers
        total = 0
        for at in chosen:
            if at < end:
                end += 1
            else:
                total += rho[order[at]]
        return total + sums[end]

    def _voters(self, members: Collection[int], wanted: int) -> tuple[int, CapUsage] | None:
        """How many of `wanted` voters `members` give, pins among them first; None: forbidden."""
        load = CapUsage(self.rules.of("voters"), self._pinned)
        spare = self.rules.voters - len(self._pinned)
        found = len(self._pinned.intersection(members))
        if not load.kept or spare < 0 or wanted - found > spare:
            return None
        if not all(self._may_vote[s] for s in self._pinned):
            return None
        for s in sorted(set(members) - self._pinned):
            if found >= wanted:
                break
            found += self._may_vote[s] and load.take(s)
        return found, load

    def _sizes(self, held: int) -> tuple[int, int]:
        """Fewest and most sites to add to `held`."""
        least = max(self.rules.replicas_min, self.rules.voters) - held
        return max(least, 0), self.rules.replicas_max - held

    def _cheapest_with_voters(
        self, rho: Sequence[int], order: Sequence[int], inside: set[int], radius: int, wanted: int
    ) -> int | None:
        """Least Σ ρ over Y such that I ∪ Y has `wanted` voters within a radius; None: impossible.

        The greedy of an elongated laminar matroid: in order of ρ, take what adds a voter while
        voters are needed, and of the rest as many as sizes and signs ask for.
        """
        number = self._radius
        voters = self._voters([s for s in inside if number[s] <= radius], wanted)
        if voters is None:
            return None
        found, load = voters
        need = max(0, wanted - found)
        least, most = self._sizes(len(inside))
        if need > most or least > most:
            return None
        total = raising = others = 0
        for s in order:
            missing = raising < need
            if missing and number[s] <= radius and self._may_vote[s] and load.take(s):
                raising += 1
            elif others < most - need and (rho[s] < 0 or others < least - need):
                others += 1
            elif not missing:
                break  # fillers are complete, and stay so as ρ ascends
            else:
                continue
            total += rho[s]
        return total if raising == need and raising + others >= least else None

    def _cheapest_under_caps(
        self, rho: Sequence[int], order: Sequence[int], inside: set[int]
    ) -> int | None:
        """Least Σ ρ over Y such that I ∪ Y obeys the caps on replicas; None: impossible."""
        load = CapUsage(self.rules.of("replicas"), inside)
        least, most = self._sizes(len(inside))
        total = taken = 0
        for s in order:
            if taken >= most or (rho[s] >= 0 and taken >= least):
                break
            if load.take(s):
                taken += 1
                total += rho[s]
        return total if load.kept and least <= taken <= most else None

    # --- one set of replicas ------------------------------------------------------------------

    def sizes_of(self, held: int, free: int) -> range:
        """Numbers of free sites that a set of replicas may add to `held` sites."""
        least, most = self._sizes(held)
        return range(least, min(most, free) + 1)

    def radius_of(self, replicas: Collection[int]) -> int | None:
        """Number of the radius that a set of replicas waits for; None when it is not allowed."""
        voters = self._voters(replicas, self.rules.voters)
        if voters is None or voters[0] < self.rules.voters:
            return None
        if not CapUsage(self.rules.of("replicas"), replicas).kept:
            return None
        if not self.asks_quorum:
            return 0
        number = self._radius
        for radius in sorted({number[s] for s in replicas}):
            near = self._voters([s for s in replicas if number[s] <= radius], self.rules.quorum)
            if near is not None and near[0] >= self.rules.quorum:
                return radius
        return None  # not reached: all replicas are within the last radius

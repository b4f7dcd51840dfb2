r"""The sites that a bound adds to a state: the least Σ ρ + D·q over the sets that the rules allow.

This is the inner problem Z(ρ) of :mod:`placement.proof.leader_proof`. All numbers are integers, be
they exact or rounded down, so that one form serves both.

The sites that a bound adds to a state where RTTs vary by interval, with the waits themselves.

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

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.evaluation.waits.wait_cases import CaseGreedy, WaitCases
from placement.model.constraints import Rules
from placement.model.site_families import FamilyCount, SiteFamily, family_counts, site_families
from placement.proof.choice.sorted_sites import SortedSites
from placement.support.checks import FloatArray


@cache
def _unruled(sites: int) -> SiteFamily:
    return SiteFamily.of_blocks(sites, {})


class SiteChoice:
    """Sets of sites that the rules allow under one leader, and the least Σ ρ + D·q over them.

    `leader` is None when none matters; `waits` d(ℓ, ·), shape (sites,), is None when the quorum
    costs nothing. `cases` of a leader that waits for more than a quorum take the place of the
    radii: of the distinct waits in ascending order, or of one radius, 0, when the quorum costs
    nothing. With cases `radii` has those of each, shape (cases, waits).
    """

    def __init__(
        self,
        rules: Rules,
        leader: int | None,
        waits: FloatArray | None,
        cases: WaitCases | None = None,
    ) -> None:
        self.rules = rules
        sites = len(rules.may_hold)
        self.asks_quorum = waits is not None or cases is not None
        self._cases = None if cases is None else CaseGreedy(cases)
        of_sites = np.zeros(sites) if waits is None else waits
        self.radii, self._numbers = np.unique(of_sites, return_inverse=True)
        self._pinned = {int(s) for s in np.nonzero(rules.must_vote)[0]}
        if leader is not None:
            self._pinned.add(leader)
        self._may_vote: list[bool] = rules.may_vote.tolist()
        self._families = site_families(rules, "replicas")
        self._of_voters = site_families(rules, "voters")
        self._rules_votes = bool(self._of_voters)
        passes = len(self._families) + len(self._of_voters) * len(self.radii)
        if cases is not None:
            self.radii = cases.radii
            passes += len(self.radii)
        self.steps = sites * (2 + passes) + len(self.radii)
        """Steps of one inner problem, at most."""

    @cached_property
    def _radius(self) -> list[int]:
        return list(map(int, self._numbers))

    @cached_property
    def _rings(self) -> list[list[int]]:
        ends = np.cumsum(np.bincount(self._numbers))[:-1]
        return [x.tolist() for x in np.split(np.argsort(self._numbers, kind="stable"), ends)]

    def open_sites(self, inside: Collection[int], free: Iterable[int]) -> list[int]:
        """Free sites for which the rules for replicas leave room beside I.

        None are left where I breaks a rule. The other sites are in no configuration of the state.
        """
        if not self._families:
            return [*free]
        counts = self._replica_counts(inside)
        return [] if counts is None else [s for s in free if all(one.fits(s) for one in counts)]

    # --- the inner problem ------------------------------------------------------------------

    def open_radii(
        self,
        wanted: float,
        sites: SortedSites,
        costs: Sequence[int],
        *,
        put_in: int | None = None,
        left_out: int | None = None,
        radii: Iterable[int] | None = None,
    ) -> list[int]:
        """Numbers of the radii, of all or some, with a value below `wanted`; none: Z(ρ) reaches it.

        `costs` are D·r of each radius, in ascending order. One free site is added to I, `put_in`,
        or is not free, `left_out`; its ρ does not count. `wanted` is a whole number or infinite.
        """
        inside, skip = sites.inside, left_out
        if put_in is not None:
            inside, skip = inside | {put_in}, put_in
        low, high = self._sizes(len(inside))
        if low > high:
            return []
        floor = self._floor(sites, inside, put_in, skip)
        if not self.asks_quorum:
            return [0] if floor < wanted else []
        if self._cases is not None:
            order = [s for s in sites.order if s != skip]
            return [
                case
                for case in (range(len(costs)) if radii is None else radii)
                if costs[case] + floor < wanted
                and (least := self._cases.cheapest(case, inside, order, sites.rho, low, high))
                is not None
                and costs[case] + least < wanted
            ]
        below = []
        for radius in range(len(costs)) if radii is None else radii:
            if costs[radius] + floor >= wanted:
                break  # the costs ascend, and no value is below the cost plus `floor`
            if self._rules_votes:
                near = self._cheapest_with_voters(sites, inside, skip, radius, self.rules.quorum)
            else:
                near = self._cheapest_by_places(sites, inside, put_in, skip, radius)
            if near is not None and costs[radius] + near < wanted:
                below.append(radius)
        return below

    def open_with(
        self,
        wanted: float,
        sites: SortedSites,
        costs: Sequence[int],
        added: Iterable[int],
        radii: Sequence[int],
    ) -> list[int]:
        """Free sites for which one of the radii is below `wanted` less ρ of the site, put in.

        That of :meth:`open_radii` for each site; `radii` are below `wanted` without any of them.
        Without rules no value depends on which site is put in where it comes after all that are
        taken: these have one floor, or two, by votes.
        """
        if not radii:
            return []
        plain = not self._families and not self._rules_votes and self._cases is None
        last = self._end_of_taken(sites) if plain else len(sites.order)
        least_wait = costs[radii[0]] if self.asks_quorum else 0
        floors: dict[bool, float] = {}
        left = []
        for s in added:
            least = wanted - sites.rho[s]
            if sites.place[s] >= last:
                votes = self._may_vote[s]
                if votes not in floors:
                    floors[votes] = self._floor(sites, sites.inside | {s}, s, s)
                if least_wait + floors[votes] >= least:
                    continue
            if self.open_radii(least, sites, costs, put_in=s, radii=radii):
                left.append(s)
        return left

    def _end_of_taken(self, sites: SortedSites) -> int:
        """Place from which it does not matter which site is left out, where no rule says otherwise.

        No site from there on is taken. One with ρ < 0 would be only if those before it, which have
        ρ < 0 too, were not enough.
        """
        near = sites.all_sites(self._may_vote, self._pinned, self.rules.voters)
        last = near.places[-1] + 1 if near.places else 0
        return max(last, self.rules.replicas_max + self.rules.voters + 2)

    def _floor(
        self, sites: SortedSites, inside: Collection[int], put_in: int | None, skip: int | None
    ) -> float:
        """Least Σ ρ that obeys the rules for replicas and has all voters, whatever the radius.

        Infinite where there is none.
        """
        caps = self._cheapest_under_rules(sites, inside, skip)
        if self._rules_votes:
            last = len(self._rings) - 1
            voters = self._cheapest_with_voters(sites, inside, skip, last, self.rules.voters)
        else:
            voters = self._cheapest_by_places(sites, inside, put_in, skip, None)
        return math.inf if caps is None or voters is None else max(caps, voters)

    def _cheapest_by_places(
        self,
        sites: SortedSites,
        inside: Collection[int],
        put_in: int | None,
        skip: int | None,
        radius: int | None,
    ) -> int | None:
        """Least Σ ρ with a quorum within a radius where no rule is on voters; None: impossible.

        Without a radius: with all voters, at any distance. The greedy then takes the first sites of
        the order that are within the radius, and fillers from what remains: places in the order and
        sums of its prefixes say all.
        """
        may_vote, pinned, rules = self._may_vote, self._pinned, self.rules
        if radius is None:
            wanted, ring = rules.voters, sites.all_sites(may_vote, pinned, rules.voters)
        else:
            wanted = rules.quorum
            ring = sites.near(radius, self._rings, may_vote, pinned, wanted)
        others = ring.others
        if put_in is not None and (radius is None or self._radius[put_in] <= radius):
            others += may_vote[put_in]
        spare = rules.voters - len(pinned)
        missing = wanted - ring.pinned
        if spare < 0 or missing > spare or not all(may_vote[s] for s in pinned):
            return None
        need = max(0, missing - others)
        gone = None if skip is None else sites.place[skip]
        chosen = [at for at in ring.places if at != gone][:need]
        return self._with_fillers(sites, inside, chosen, gone) if len(chosen) == need else None

    def _with_fillers(
        self, sites: SortedSites, inside: Collection[int], chosen: list[int], gone: int | None
    ) -> int | None:
        """Least Σ ρ over the sets that hold the sites at some places, where no rule is on replicas.

        The site at the place `gone` is not free. None: no such set has the size that is asked for.
        """
        need = len(chosen)
        low, high = self._sizes(len(inside))
        if low > high or need > high:
            return None
        taken = chosen if gone is None else sorted([*chosen, gone])
        saving = sites.negative - sum(at < sites.negative for at in taken)
        fillers = min(high - need, max(low - need, saving))
        if fillers > len(sites.order) - len(taken):
            return None
        end, total = fillers, 0
        for at in taken:
            rho = sites.rho[sites.order[at]]
            if at < end:  # within the prefix that holds the fillers
                end += 1
                total -= rho if at == gone else 0
            elif at != gone:
                total += rho
        return total + sites.sum_of_first(end)

    def _voters(
        self, members: Collection[int], wanted: int, family: SiteFamily
    ) -> tuple[int, FamilyCount] | None:
        """Return how many of `wanted` voters `members` give, pins first; None: forbidden."""
        load = FamilyCount(family, self.rules.voters, self.rules.voters)
        spare = self.rules.voters - len(self._pinned)
        found = len(self._pinned.intersection(members))
        if not load.take_all(self._pinned) or spare < 0 or wanted - found > spare:
            return None
        if not all(self._may_vote[s] for s in self._pinned):
            return None
        others = sorted(set(members) - self._pinned) if found < wanted else ()
        for s in others:
            if found >= wanted:
                break
            found += self._may_vote[s] and load.take(s)
        return found, load

    def _replica_counts(self, inside: Collection[int]) -> list[FamilyCount] | None:
        """Return the count of I in every family; None when I breaks a rule, or leaves no room."""
        least = max(self.rules.replicas_min, self.rules.voters)
        return family_counts(self._families, least, self.rules.replicas_max, inside)

    def _sizes(self, held: int) -> tuple[int, int]:
        """Fewest and most sites to add to `held`."""
        least = max(self.rules.replicas_min, self.rules.voters) - held
        return max(least, 0), self.rules.replicas_max - held

    def _cheapest_with_voters(
        self, sites: SortedSites, inside: Collection[int], skip: int | None, radius: int,
        wanted: int,
    ) -> int | None:  # fmt: skip
        """Least Σ ρ over Y such that I ∪ Y has `wanted` voters within a radius; None: impossible.

        Of several families of rules the one that asks for most.
        """
        largest: int | None = None
        for family in self._of_voters:
            least = self._cheapest_with_family(sites, inside, skip, radius, wanted, family)
            if least is None:
                return None
            largest = least if largest is None else max(largest, least)
        return largest

    def _cheapest_with_family(
        self, sites: SortedSites, inside: Collection[int], skip: int | None, radius: int,
        wanted: int, family: SiteFamily,
    ) -> int | None:  # fmt: skip
        """Return the least sum of ρ under one family of rules for voters.

        The greedy of an elongated matroid: in order of ρ, take what adds a voter while voters are
        needed, and of the rest as many as sizes and signs ask for.
        """
        number, rho = self._radius, sites.rho
        voters = self._voters([s for s in inside if number[s] <= radius], wanted, family)
        if voters is None:
            return None
        found, load = voters
        need = max(0, wanted - found)
        least, most = self._sizes(len(inside))
        if need > most or least > most:
            return None
        total = raising = others = 0
        for s in sites.order:
            if s == skip:
                continue
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

    def _cheapest_under_rules(
        self, sites: SortedSites, inside: Collection[int], skip: int | None
    ) -> int | None:
        """Least Σ ρ over Y such that I ∪ Y obeys the rules for replicas; None: impossible.

        Of several families of rules the one that asks for most.
        """
        if not self._families:
            return self._with_fillers(
                sites, inside, [], None if skip is None else sites.place[skip]
            )
        counts = self._replica_counts(inside)
        if counts is None:
            return None
        rho, largest = sites.rho, None
        for count in counts:
            total = 0
            for s in sites.order:
                if s == skip:
                    continue
                if rho[s] >= 0 and count.missing <= 0:
                    break
                if count.take(s) if rho[s] < 0 else count.take_needed(s):
                    total += rho[s]
            if count.missing > 0:
                return None
            largest = total if largest is None else max(largest, total)
        return largest

    def least_sum(self, sites: SortedSites) -> int | None:
        """Least Σ ρ over the sets that the rules for replicas allow; None: there is none."""
        return self._cheapest_under_rules(sites, sites.inside, None)

    # --- one set of replicas ------------------------------------------------------------------

    def sizes_of(self, held: int, free: int) -> range:
        """Numbers of free sites that a set of replicas may add to `held` sites."""
        least, most = self._sizes(held)
        return range(least, min(most, free) + 1)

    def radius_cost(self, replicas: Collection[int], costs: Sequence[int]) -> int | None:
        """Cost of the radius, or case, that a set of replicas waits for; None: not allowed."""
        radius = self._radius_of(replicas)
        if radius is None:
            return None
        if self._cases is None:
            return costs[radius]
        return min((costs[case] for case in self._cases.met(replicas)), default=None)

    def _radius_of(self, replicas: Collection[int]) -> int | None:
        """Number of the radius that a set of replicas waits for; None when it is not allowed."""
        size = self.rules.voters
        if not all(group.satisfied([*replicas]) for group in self.rules.of("replicas")):
            return None
        if len(self._of_voters) > 1:
            return self._searched_radius(replicas)
        family = self._of_voters[0] if self._of_voters else _unruled(len(self._radius))
        voters = self._voters(replicas, size, family)
        if voters is None or voters[0] < size:
            return None
        if not self.asks_quorum or self._cases is not None:
            return 0
        number = self._radius
        for radius in sorted({number[s] for s in replicas}):
            near = self._voters(
                [s for s in replicas if number[s] <= radius], self.rules.quorum, family
            )
            if near is not None and near[0] >= self.rules.quorum:
                return radius
        return None  # not reached: all replicas are within the last radius

    def least_wait(
        self, replicas: Collection[int], waits: npt.NDArray[Any], take: Callable[[int], None]
    ) -> float:
        """Return the least Σ_k of the m-th smallest cost over the sets of voters; ∞: there is none.

        The leader and pins are among the replicas. `waits` has a row for each scenario; `take`
        counts the O(sets of voters · scenarios · voters) steps.
        """
        able = sorted(s for s in replicas if self._may_vote[s] and s not in self._pinned)
        spare, place = self.rules.voters - len(self._pinned), self.rules.quorum - 1
        best: float = math.inf
        for more in itertools.combinations(able, spare):
            voters = [*self._pinned, *more]
            take(len(waits) * len(voters))
            wait = sum(sorted(row)[place] for row in waits[:, voters].tolist())
            if wait < best and all(g.satisfied(voters) for g in self.rules.of("voters")):
                best = wait
        return best

    def _searched_radius(self, replicas: Collection[int]) -> int | None:
        """Return the radius where no greedy is exact: the least over all sets of voters."""
        able = sorted(s for s in replicas if self._may_vote[s] and s not in self._pinned)
        spare, best = self.rules.voters - len(self._pinned), None
        if spare < 0 or not all(s in replicas and self._may_vote[s] for s in self._pinned):
            return None
        for more in itertools.combinations(able, spare):
            voters = [*self._pinned, *more]
            waits = sorted(self._radius[s] for s in voters)
            radius = waits[self.rules.quorum - 1] if self.asks_quorum else 0
            if (best is None or radius < best) and all(
                group.satisfied(voters) for group in self.rules.of("voters")
            ):
                best = radius
        return best


_MOST_NODES = 5_000
"""Nodes after which a search gives up; a search of the engine ends much sooner."""


class IntervalChoice:
    """Whether Σ ρ + W can be below a number, under one leader.

    `waits` are D_k·d_k(ℓ, ·) in whole numbers, shape (scenarios, sites). Of equal waits, as all are
    where D_k = 0, the least d_k in `rtt` is the nearest, as in the search that is proved.
    """

    def __init__(self, rules: Rules, waits: npt.NDArray[Any], rtt: FloatArray) -> None:
        self._quorum, self._voters = rules.quorum, rules.voters
        voting = np.flatnonzero(rules.may_vote).tolist()
        self._rows: list[list[tuple[int, int]]] = [
            [(s, row[s]) for s in sorted(voting, key=list(zip(row, near, strict=True)).__getitem__)]
            for row, near in zip(waits.tolist(), rtt.tolist(), strict=True)
        ]

    def is_open(
        self, wanted: float, sites: SortedSites, sizes: range, take: Callable[[int], None]
    ) -> bool:
        """Return whether a set may be below `wanted`; True too where the search becomes too long.

        `sizes` are the numbers of sites to add to I, in steps of one; `take` counts steps.
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

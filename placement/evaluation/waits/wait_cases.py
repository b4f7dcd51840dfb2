"""Waits of a leader by cases: how long each lasts, and which replica sets wait no longer.

For a leader ℓ a *case* has one radius t_j for each distinct wait j, and says what a replica set
must hold so that no wait is longer: at least `least` sites of each of some *blocks*, and none of
the sites that it forbids ("all of" a role leaves no member beyond the radius). So

    Σ_j D_j · wait_j = min over the cases that the replica set meets of Σ_j D_j · t_j.

"m of v votes" alone has one case for each distance, with one block: the sites within that distance.
A wait for a majority of the voters inside the domain of ℓ has one case for each number of voters
there too.

Blocks of which any two are nested or disjoint form a *family*. For one family the cheapest sites
that meet it are the least basis of a matroid, which a greedy finds; where blocks cross, several
families each give a lower bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from placement.evaluation.waits.wait_latency import needed
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.model.operations import Clause
from placement.model.site_families import FamilyCount, SiteFamily
from placement.support.checks import BoolArray, FloatArray, IntArray

# The cases of each wait of the leaders alone, from which the engine makes those that it needs

MOST_BLOCKS = 7
"""Blocks of a case; more are not taken. Each is a bit of a byte, as in csrc/waits/wait_cases.c."""

FORBIDDEN = 1 << MOST_BLOCKS
"""Bit of a site that may hold no replica in a case."""

ClausesOfWait = tuple[tuple[Clause, IntArray | None], ...]
"""Clauses of a wait with the domain of every site at their level."""


@dataclass(frozen=True, eq=False)
class SingleWait:
    """The cases of one wait of some leaders: for each radius as many as `least` has rows."""

    rounds: float  #: D of the wait
    start: IntArray  #: first radius of each leader, shape (leaders + 1,)
    radius: FloatArray  #: ascending for each leader, ms, shape (radii,)
    #: bits of the blocks that may hold a site under a leader, and FORBIDDEN where no replica may
    #: lie beyond the radius, shape (leaders, sites)
    scope: npt.NDArray[np.uint8]
    near: BoolArray  #: whether a block holds only sites within the radius, shape (blocks,)
    #: sites that a replica set, the leader among them, must hold in a block: one row, or one for
    #: each number of voters inside a domain, shape (sizes, blocks)
    least: IntArray
    of_voters: BoolArray  #: whether a block is one of voters, shape (blocks,)

    @classmethod
    def of(
        cls,
        rules: Rules,
        leaders: IntArray,
        distance: FloatArray,
        ordered: FloatArray,
        wait: ClausesOfWait,
        rounds: float,
        implied: set[Clause],
    ) -> SingleWait:
        """Work out the cases of one wait; the blocks of implied clauses are left out.

        `ordered` are the distances of each leader, ascending. O(sites · log sites) for each leader.
        """
        everyone = rules.replicas_min == rules.replicas_max == rules.voters
        counted = any(c.need == "majority" and c.scope == "inside" for c, _ in wait)
        voting = np.arange(1, rules.voters + 1) if counted else np.zeros(1, dtype=np.intp)
        everywhere = np.ones((1, distance.shape[1]), dtype=bool)
        asked = np.zeros(distance.shape, dtype=bool)
        scope = np.zeros(distance.shape, dtype=np.uint8)
        near: list[bool] = []
        least: list[IntArray] = []
        of_voters: list[bool] = []
        for clause, labels in wait:
            votes = clause.role == "voters"
            able = rules.may_vote if votes else np.ones_like(rules.may_vote)
            inside = everywhere
            if labels is not None:
                inside = labels[leaders][:, np.newaxis] == labels
            domain = inside if clause.scope != "outside" else ~inside
            part = domain & able
            asked |= part & rules.may_hold
            if clause.need == "all" and (everyone or not votes):
                scope |= part.astype(np.uint8) << MOST_BLOCKS
                continue
            found: list[tuple[BoolArray, bool, IntArray]] = []
            if clause.need == "majority" and clause.scope == "inside":
                found.append((part, True, voting // 2 + 1))
                found.append((part, False, voting))
                found.append((~inside & able, False, rules.voters - voting))
            elif clause not in implied:
                size = np.full_like(voting, rules.voters)
                role = rules.voters if votes else rules.replicas_max
                count = size if clause.need == "all" else needed(clause, role, rules.quorum, size)
                found.append((part, True, count))
            for sites, ball, count in found:
                scope |= (sites & rules.may_hold).astype(np.uint8) << len(near)
                near.append(ball)
                least.append(count)
                of_voters.append(votes)
        asked[np.arange(len(leaders)), leaders] = True  # a radius of 0
        ascending = ordered
        if not asked.all():
            ascending = np.sort(np.where(asked, distance, np.inf), axis=1)
        new = np.isfinite(ascending)
        new[:, 1:] &= ascending[:, 1:] > ascending[:, :-1]
        start = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(new.sum(axis=1))])
        rows = np.stack(least, axis=1) if least else np.zeros((len(voting), 0), dtype=np.intp)
        return cls(
            rounds, start, ascending[new], scope, np.array(near, dtype=bool), rows,
            np.array(of_voters, dtype=bool),
        )  # fmt: skip

    def of_sites(self, leaders: IntArray) -> SingleWait:
        """Return the same cases with a row for every site; those of other sites are empty."""
        sites = self.scope.shape[1]
        if len(leaders) == sites:
            return self
        radii = np.zeros(sites, dtype=np.intp)
        radii[leaders] = np.diff(self.start)
        scope = np.zeros((sites, sites), dtype=np.uint8)
        scope[leaders] = self.scope
        start = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(radii)])
        return dataclasses.replace(self, start=start, scope=scope)

    def shortest(self, rules: Rules, distance: FloatArray, ordered: FloatArray) -> FloatArray:
        """Return the least radius of each leader whose blocks have enough sites, or infinity.

        `distance` and `ordered` as in :meth:`of`.
        """
        leaders, sites = distance.shape
        found = np.zeros((leaders, len(self.least)))
        if rules.must_hold.any():
            fixed = (self.scope & FORBIDDEN > 0) & rules.must_hold
            found += np.where(fixed, distance, 0.0).max(axis=1)[:, np.newaxis]
        found[:, (self.least > min(sites, rules.replicas_max)).any(axis=1)] = np.inf
        for block, near in enumerate(self.near.tolist()):
            member = self.scope >> block & 1
            need = np.minimum(self.least[:, block], sites)
            if not near:
                held = member.sum(axis=1)
                if need.max() > held.min():
                    found[held[:, np.newaxis] < need] = np.inf
                continue
            radius = np.zeros((leaders, need.max() + 1))  # at which so many sites are within it
            held = ordered
            if not member.all():
                held = np.sort(np.where(member, distance, np.inf), axis=1)
            radius[:, 1:] = held[:, : need.max()]
            np.maximum(found, radius.take(need, axis=1), out=found)
        return np.asarray(found.min(axis=1))


@dataclass(frozen=True, eq=False)
class SingleWaits:
    """The cases of each wait of some leaders alone."""

    rules: Rules
    #: RTTs from the leaders to all sites, 0 to themselves, shape (leaders, sites)
    distance: FloatArray
    ordered: FloatArray  #: the same, ascending for each leader
    waits: tuple[SingleWait, ...]  #: one or two
    #: wait whose clauses the other one has too, −1: none. The other one is never shorter, and its
    #: blocks come from its own clauses: a pair of cases counts where its radius is as long.
    shorter: int
    nested: bool  #: whether no two blocks of a case can cross

    @classmethod
    def of(cls, demand: Demand, rules: Rules, leaders: IntArray) -> SingleWaits:
        """Work out the cases of some leaders, site indices."""
        waits, rounds = waits_of(demand, rules)
        distance = demand.site_rtt[0, leaders]
        distance[np.arange(len(leaders)), leaders] = 0.0
        ordered = np.sort(distance, axis=1)
        clauses = [{clause for clause, _ in wait} for wait in waits]
        # a wait of some clauses of another is never the longer one, and met wherever that one is
        pair = (0, 1) if len(waits) > 1 else ()
        short = next((at for at in pair if clauses[at] <= clauses[1 - at]), -1)
        parts = tuple(
            SingleWait.of(
                rules, leaders, distance, ordered, wait, times,
                clauses[short] if short == 1 - at else set(),
            )
            for at, (wait, times) in enumerate(zip(waits, rounds.tolist(), strict=True))
        )  # fmt: skip
        return cls(rules, distance, ordered, parts, short, not _blocks_may_cross(rules, waits))

    def floors(self) -> FloatArray:
        """Return a lower bound of Σ_j D_j · wait_j of each leader; infinite: a wait never ends."""
        least = [one.shortest(self.rules, self.distance, self.ordered) for one in self.waits]
        if self.shorter >= 0:
            longer = 1 - self.shorter
            least[longer] = np.maximum(least[longer], least[self.shorter])
        total = np.zeros(len(self.distance))
        for one, radius in zip(self.waits, least, strict=True):
            total += one.rounds * radius
        return total


def waits_of(demand: Demand, rules: Rules) -> tuple[list[ClausesOfWait], FloatArray]:
    """Return the distinct waits of the leaders that count, and the rounds of each."""
    waits: list[ClausesOfWait] = []
    rounds: list[float] = []
    if demand.quorum.any() and rules.quorum > 1:
        waits.append(((Clause("quorum"), None),))
        rounds.append(float(demand.quorum[0]))
    for term in demand.waits:
        if term.origin == "leader" and term.weight.any():
            waits.append(tuple(zip(term.clauses, term.labels, strict=True)))
            rounds.append(float(term.weight[0].sum()))
    return waits, np.array(rounds)


def _blocks_may_cross(rules: Rules, waits: Sequence[ClausesOfWait]) -> bool:
    """Return whether two blocks of a case may cross, for all that the clauses tell.

    Balls around the leader are nested. So are, at one radius, those inside or outside its domains
    of one level; a number of voters in the domain at any distance crosses other blocks.
    """
    everyone = rules.replicas_min == rules.replicas_max == rules.voters
    clauses = [clause for wait in waits for clause, _ in wait]
    clauses = [c for c in clauses if c.need != "all" or not (everyone or c.role == "replicas")]
    scoped = [clause for clause in clauses if clause.scope]
    counted = any(clause.need == "majority" for clause in scoped)
    return (
        len({clause.role for clause in clauses}) > 1
        or len({clause.level for clause in scoped}) > 1
        or (bool(scoped) and len(waits) > 1)
        or (counted and len(clauses) > 1)
    )


_MOST_WAITS = 2
_MOST_CELLS = 1 << 21  # bytes of a leader's table of sites by case: S², or S³ for two waits
_CELLS_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class WaitCases:
    """The cases of some leaders, one leader after another, each from its shortest waits on."""

    start: IntArray  #: first case of each leader, shape (leaders + 1,)
    radii: FloatArray  #: t_j, ms, shape (cases, waits)
    price: FloatArray  #: Σ_j D_j · t_j, ascending for each leader, shape (cases,)
    #: bits of the blocks that hold a site, and FORBIDDEN, shape (cases, sites)
    member: npt.NDArray[np.uint8]
    count: IntArray  #: number of blocks of each case, shape (cases,)
    least: IntArray  #: sites that a replica set must hold in a block, shape (cases, MOST_BLOCKS)
    #: smallest block of the same family that holds a block, −1: none. It comes later.
    parent: IntArray
    family: IntArray  #: number of the family of each block

    @classmethod
    def of(cls, demand: Demand, rules: Rules, leaders: Sequence[int]) -> WaitCases:
        """Work out the cases of some leaders (site indices); :func:`no_cases` must be None.

        O(cases · sites) for each leader: one case per distance to a site that a clause is about,
        and with two distinct waits one per pair of them.
        """
        waits, rounds = waits_of(demand, rules)
        sites = len(rules.may_hold)
        per_leader = sites ** len(waits) * sites
        step = max(1, _CELLS_AT_ONCE // per_leader)
        parts = [
            _Draft.of(demand, rules, np.array(leaders[first : first + step], dtype=np.intp))
            for first in range(0, len(leaders), step)
        ]
        built = [part.ordered(rounds) for part in parts]
        counts = np.concatenate([np.zeros(1, dtype=np.intp), *(one[0] for one in built)])
        columns = [np.concatenate(column) for column in list(zip(*built, strict=True))[1:]]
        radii, price, member, count, least, parent, family = columns
        return cls(
            start=np.cumsum(counts), radii=radii, price=price, member=member,
            count=count, least=least, parent=parent, family=family,
        )  # fmt: skip

    def met(self, replicas: npt.ArrayLike) -> IntArray:
        """Return the cases that a replica set meets, ascending."""
        held = self.member[:, np.asarray(replicas, dtype=np.intp)]
        bits = (held[..., np.newaxis] >> np.arange(MOST_BLOCKS)) & 1
        good = (bits.sum(axis=1) >= self.least).all(axis=1) & ~(held & FORBIDDEN).any(axis=1)
        return np.nonzero(good)[0]


def case_wait(demand: Demand) -> bool:
    """Return whether a leader waits for more than δ rounds of m votes."""
    return any(term.origin == "leader" and term.weight.any() for term in demand.waits)


def case_rounds(demand: Demand, rules: Rules) -> FloatArray:
    """Return D_j of each distinct wait of the leaders, shape (waits,)."""
    return waits_of(demand, rules)[1]


@lru_cache(maxsize=4)  # both are compared by identity; methods and checkers ask again and again
def no_cases(demand: Demand, rules: Rules) -> str | None:
    """Return why the waits of the leaders are not taken by cases, or None."""
    if any(term.origin != "leader" and term.weight.any() for term in demand.waits):
        return "the nearest replica or the client waits"
    if not case_wait(demand):
        return None if demand.scenarios == 1 or not demand.has_waits else "RTTs vary by interval"
    if demand.scenarios > 1:
        return "RTTs vary by interval"
    waits, _ = waits_of(demand, rules)
    if len(waits) > _MOST_WAITS:
        return f"leaders have more than {_MOST_WAITS} waits that differ"
    if len(rules.may_hold) ** (len(waits) + 1) > _MOST_CELLS:
        return "there are too many sites for the waits of their leaders"
    everyone = rules.replicas_min == rules.replicas_max == rules.voters
    if not everyone and (rules.of("voters") or rules.must_vote.any() or not rules.may_vote.all()):
        return "there are rules for voters, and not all replicas vote"
    if not everyone and _may_cross(waits):
        return "not all replicas vote, and clauses of the waits may cross"
    blocks = 0
    for wait in waits:
        for clause, _ in wait:
            blocks += 3 if clause.need == "majority" and clause.scope == "inside" else 1
            of_all = clause.role == "replicas" and rules.replicas_min == rules.replicas_max
            if clause.need == "majority" and clause.role == "replicas" and not of_all:
                return "a majority of the replicas is of no fixed size"
            if clause.need == "all" and clause.scope and clause.role == "voters" and not everyone:
                return "all voters of a domain answer, and not all replicas vote"
    if blocks > MOST_BLOCKS:
        return "the waits have too many clauses"
    return None


def _may_cross(waits: Sequence[ClausesOfWait]) -> bool:
    """Return whether blocks of voters may cross: then a set of replicas does not tell the wait."""
    clauses = [clause for wait in waits for clause, _ in wait if clause.role == "voters"]
    levels = {clause.level for clause in clauses if clause.scope}
    counted = any(clause.need == "majority" and clause.scope == "inside" for clause in clauses)
    return bool(levels) and (len(waits) > 1 or len(levels) > 1 or (counted and len(clauses) > 1))


@dataclass(frozen=True, eq=False)
class _Draft:
    """Case whose blocks are not yet in order."""

    rules: Rules
    leaders: IntArray  #: the leaders, shape (leaders,)
    which: IntArray  #: place of the leader of each case, shape (cases,)
    radii: FloatArray  #: shape (cases, waits)
    blocks: BoolArray  #: sites of each block, shape (cases, blocks, sites)
    need: IntArray  #: sites that must be held in it, shape (cases, blocks)
    of_voters: BoolArray  #: whether a block is one of voters, shape (blocks,)
    barred: BoolArray  #: sites that may hold nothing, shape (cases, sites)

    @classmethod
    def of(cls, demand: Demand, rules: Rules, leaders: IntArray) -> _Draft:
        """Combine the cases of the waits, each wait's with each other's."""
        waits = SingleWaits.of(demand, rules, leaders)
        short = waits.shorter
        drafts = [cls.of_one(rules, leaders, waits.distance, one) for one in waits.waits]
        whole = drafts[0]
        for other in drafts[1:]:  # at most one
            pairs = whole.which[:, np.newaxis] == other.which
            if short >= 0:
                one, two = whole.radii, other.radii.T
                pairs &= one <= two if short == 0 else one >= two
            first, second = np.nonzero(pairs)
            whole = cls(
                rules,
                leaders,
                whole.which[first],
                np.concatenate([whole.radii[first], other.radii[second]], axis=1),
                np.concatenate([whole.blocks[first], other.blocks[second]], axis=1),
                np.concatenate([whole.need[first], other.need[second]], axis=1),
                np.append(whole.of_voters, other.of_voters),
                whole.barred[first] | other.barred[second],
            )
        return whole

    @classmethod
    def of_one(
        cls, rules: Rules, leaders: IntArray, distance: FloatArray, wait: SingleWait
    ) -> _Draft:
        """Return the cases of one wait."""
        sizes, number = wait.least.shape
        which = np.repeat(np.arange(len(leaders)), np.diff(wait.start) * sizes)
        radius = np.repeat(wait.radius, sizes)
        within = distance[which] <= radius[:, np.newaxis]
        scope = wait.scope[which]
        blocks = np.zeros((len(which), number, distance.shape[1]), dtype=bool)
        for block in range(number):
            blocks[:, block] = scope >> block & 1
            if wait.near[block]:
                blocks[:, block] &= within
        return cls(
            rules,
            leaders,
            which,
            radius[:, np.newaxis],
            blocks,
            np.tile(wait.least, (len(wait.radius), 1)),
            wait.of_voters,
            (scope & FORBIDDEN > 0) & ~within,
        )

    def ordered(self, rounds: FloatArray) -> tuple[npt.NDArray[Any], ...]:
        """Return cases per leader, radii, prices, members and blocks."""
        rules, led = self.rules, self.leaders[self.which]
        rows = np.arange(len(led))
        blocks = self.blocks & (rules.may_hold & ~self.barred)[:, np.newaxis, :]
        own = blocks[rows, :, led]
        need = np.where(self.need > own, self.need, 0)  # the leader is there
        size = blocks.sum(axis=2)
        good = (size >= need).all(axis=1) & (need <= rules.replicas_max).all(axis=1)
        good &= ~self.barred[:, rules.must_hold].any(axis=1) & ~self.barred[rows, led]
        price = self.radii @ rounds
        keep = np.lexsort((price, self.which))
        keep = keep[good[keep]]
        blocks, need, own, size = blocks[keep], need[keep], own[keep], size[keep]
        turn = np.zeros(need.shape, dtype=np.intp)
        if need.shape[1] > 1:  # smaller blocks first, and those that ask for nothing last
            turn = np.argsort(np.where(need > 0, size, blocks.shape[2] + 1), axis=1, kind="stable")
            blocks = np.take_along_axis(blocks, turn[..., np.newaxis], axis=1)
            need, own, size = (np.take_along_axis(one, turn, axis=1) for one in (need, own, size))
        count = (need > 0).sum(axis=1)
        forest = _Forest.of(blocks, need, size, self.of_voters[turn], rules)
        fits = forest.voters_needed(need - own) < rules.voters
        bits = np.zeros((len(keep), blocks.shape[2]), dtype=np.uint8)
        for block in range(blocks.shape[1]):
            bits |= (blocks[:, block] & (need[:, block] > 0)[:, np.newaxis]).astype(
                np.uint8
            ) << block
        bits[self.barred[keep]] = FORBIDDEN
        per_leader = np.bincount(self.which[keep][fits], minlength=len(self.leaders))
        columns = (
            self.radii[keep], price[keep], bits, count, _padded(need, 0),
            _padded(forest.parent, -1), _padded(forest.family, 0),
        )  # fmt: skip
        return per_leader, *(columns if fits.all() else (column[fits] for column in columns))


def _padded(numbers: IntArray, filler: int) -> IntArray:
    """Return the columns of blocks with as many more as there may be."""
    more = ((0, 0), (0, MOST_BLOCKS - numbers.shape[1]))
    return np.pad(numbers, more, constant_values=filler)


@dataclass(frozen=True, eq=False)
class _Forest:
    """Blocks as trees, family by family; shapes (cases, blocks)."""

    parent: IntArray
    family: IntArray
    of_voters: BoolArray

    @classmethod
    def of(
        cls, blocks: BoolArray, need: IntArray, size: IntArray, of_voters: BoolArray, rules: Rules
    ) -> _Forest:
        """Put each block, small ones first, into the first family that it does not cross."""
        cases, number = need.shape
        if number <= 1:
            nobody = np.full((cases, number), -1, dtype=np.intp)
            return cls(nobody, np.zeros_like(nobody), of_voters & (need > 0))
        weights = blocks.astype(np.float32)
        shared = np.matmul(weights, weights.transpose(0, 2, 1))
        inside = shared == size[:, :, np.newaxis]  # block a within block b
        crossing = (shared > 0) & ~inside & ~inside.transpose(0, 2, 1)
        if rules.voters < rules.replicas_max:  # two roles: who votes is chosen
            crossing |= of_voters[:, :, np.newaxis] != of_voters[:, np.newaxis, :]
        active = need > 0
        family = np.zeros((cases, number), dtype=np.intp)
        parent = np.full((cases, number), -1, dtype=np.intp)
        for b in range(number):
            for f in range(b + 1):
                clash = (crossing[:, b, :b] & (family[:, :b] == f) & active[:, :b]).any(axis=1)
                family[:, b] += (family[:, b] == f) & clash & active[:, b]
        for a in range(number):
            for b in reversed(range(a + 1, number)):
                over = inside[:, a, b] & (family[:, a] == family[:, b]) & active[:, b]
                parent[over, a] = b
        return cls(parent, family, of_voters & active)

    def voters_needed(self, missing: IntArray) -> IntArray:
        """Return how many voters beside the leader each case asks for, at least.

        Families are checked one by one: only within a family two blocks cannot share voters.
        """
        cases, number = missing.shape
        within = np.zeros((cases, number), dtype=np.intp)
        total = np.zeros((cases, number), dtype=np.intp)
        rows = np.arange(cases)
        for b in range(number):
            asked = np.where(self.of_voters[:, b], np.maximum(missing[:, b], within[:, b]), 0)
            up = self.parent[:, b]
            held = up >= 0
            within[rows[held], up[held]] += asked[held]
            total[rows[~held], self.family[~held, b]] += asked[~held]
        return np.asarray(total.max(axis=1, initial=0))


# The cheapest sites that meet a case of a leader's waits, by the greedy of its blocks


class CaseGreedy:
    """The cases of one leader, and the least sums of sites that meet them."""

    def __init__(self, cases: WaitCases) -> None:
        self._cases, self.number = cases, len(cases.price)
        self._member: list[list[int]] = cases.member.tolist()
        self._families: dict[int, list[SiteFamily]] = {}

    def met(self, replicas: Collection[int]) -> list[int]:
        """Return the numbers of the cases that a replica set meets."""
        found: list[int] = self._cases.met(list(replicas)).tolist()
        return found

    def _families_of(self, case: int) -> list[SiteFamily]:
        """Return the blocks of a case by family, at least one; smaller blocks have lower bits."""
        if case not in self._families:
            cases, member, found = self._cases, self._member[case], []
            number, least = int(cases.count[case]), cases.least[case].tolist()
            parent, of = cases.parent[case].tolist(), cases.family[case].tolist()[:number]
            for family in dict.fromkeys(of or [0]):
                chain = [block for block in range(number) if of[block] == family]
                place = {block: at for at, block in enumerate(chain)} | {-1: -1}
                mask = sum(1 << block for block in chain)
                bits = (held & mask for held in member)
                found.append(
                    SiteFamily(
                        tuple(place[(each & -each).bit_length() - 1] for each in bits),
                        tuple(place[parent[block]] for block in chain),
                        tuple(least[block] for block in chain),
                        (len(member),) * len(chain),
                        (False,) * len(chain),
                    )
                )
            self._families[case] = found
        return self._families[case]

    def cheapest(
        self, case: int, held: Collection[int], order: Iterable[int], rho: Sequence[int],
        least: int, most: int,
    ) -> int | None:  # fmt: skip
        """Least Σ ρ over `least`..`most` sites of `order` that, beside those held, meet a case.

        `order` ascends by ρ. A lower bound: the largest of the least sums for one family. None:
        impossible.
        """
        member, sums = self._member[case], []
        if any(member[s] & FORBIDDEN for s in held):
            return None
        able = [s for s in order if not member[s] & FORBIDDEN]
        for family in self._families_of(case):
            count, total = FamilyCount(family, 0, len(member)), 0
            count.take_all(held)
            lacking = count.missing
            fillers, wanted = most - lacking, max(least - lacking, 0)
            for s in able:
                if lacking and count.take_needed(s):
                    lacking, total = lacking - 1, total + rho[s]
                elif fillers > 0 and (rho[s] < 0 or wanted > 0):
                    fillers, wanted, total = fillers - 1, wanted - 1, total + rho[s]
                elif not lacking:
                    break
            if lacking or fillers < 0 or wanted > 0:
                return None
            sums.append(total)
        return max(sums)

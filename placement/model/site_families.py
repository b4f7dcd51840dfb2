"""Diversity rules as families of blocks, under which a greedy choice of sites is exact.

A *family* is a list of blocks of sites, any two of them nested or disjoint, each with a least and a
most number of chosen sites. It may also ask for sites in so many distinct outermost blocks. The
sets of one size that obey a family are the bases of a matroid. Blocks with bounds make a laminar
one (Schrijver 2003, section 39.4; a lower bound reserves places). A least number d of distinct
blocks in a set of n sites leaves n - d places for sites that are not the first of their block; a
bipartite graph between sites and places then induces the matroid (section 39.6). Where the size has
a range, empty places take the part of sites.
The cheapest set is therefore found by a greedy. It goes through the sites in ascending order of
cost, and takes each site that leaves room for the remaining needs of the family.

Rules whose blocks cross are several families; a set obeys the rules when it obeys every family.

Six sites in three pairs; at least two in the first pair, and sites in two pairs:

>>> pairs = [{0, 1}, {2, 3}, {4, 5}]
>>> family = SiteFamily.of_blocks(6, {frozenset({0, 1}): (2, 2)}, spread=pairs, distinct=2)
>>> count = FamilyCount(family, least=3, most=3)
>>> count.missing
3
>>> [count.take(site) for site in (2, 3, 4, 0, 1)]
[True, False, False, True, True]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from placement.errors import LimitError
from placement.model.constraints import GroupRule, Role, Rules
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import in_time

_Block = frozenset[int]

MOST_FAMILIES = 16
"""Most families of a role that the compiled searches take (MOST_FAMILIES of the C sources)."""


@dataclass(frozen=True, eq=False)
class SiteFamily:
    """Nested blocks of sites with bounds, and a least number of distinct ones."""

    innermost: tuple[int, ...]  #: smallest block of each site, shape (sites,); -1: none
    parent: tuple[int, ...]  #: smallest block that contains each block, later in the list; -1: none
    #: `least`, `most`: bounds of each block
    least: tuple[int, ...]
    most: tuple[int, ...]
    #: whether a block is one of those counted by `distinct`; these are outermost
    spread: tuple[bool, ...]
    distinct: int = 0  #: least number of `spread` blocks with a chosen site

    @classmethod
    def of_blocks(
        cls,
        sites: int,
        bounds: Mapping[_Block, tuple[int, int]],
        spread: Iterable[Collection[int]] = (),
        distinct: int = 0,
    ) -> SiteFamily:
        """Order nested blocks; blocks of `spread` without bounds get none."""
        counted = {frozenset(block) for block in spread}
        blocks = sorted({*bounds, *counted}, key=lambda block: (len(block), sorted(block)))
        limits = [bounds.get(block, (0, len(block))) for block in blocks]
        innermost, parent = [-1] * sites, [-1] * len(blocks)
        for number, block in reversed([*enumerate(blocks)]):
            if block:  # those that hold one of its sites are nested: the smallest holds all of it
                parent[number] = innermost[next(iter(block))]
            for site in block:
                innermost[site] = number
        return cls(
            tuple(innermost),
            tuple(parent),
            tuple(low for low, _ in limits),
            tuple(high for _, high in limits),
            tuple(block in counted for block in blocks),
            distinct,
        )


class FamilyCount:
    """Chosen sites by block, and how many more a family needs for `least`..`most` in all."""

    def __init__(self, family: SiteFamily, least: int, most: int) -> None:
        self.family, self._least, self._most = family, least, most
        self.size = self._outermost = self._present = 0
        blocks = len(family.parent)
        self._held, self._inner = [0] * blocks, [0] * blocks
        self._need = [0] * blocks
        self.feasible = True
        for block, parent in enumerate(family.parent):
            need = self._need[block] = max(family.least[block], self._inner[block])
            self.feasible &= need <= family.most[block]
            if parent >= 0:
                self._inner[parent] += need
            else:
                self._outermost += need
            self._present += family.spread[block] and need > 0
        self.feasible &= self.missing <= most

    @property
    def missing(self) -> int:
        """Fewest sites that are still needed, for the blocks and for the least size."""
        blocks = self._outermost + max(0, self.family.distinct - self._present)
        return max(blocks, self._least - self.size)

    def _shift(self, site: int, by: int) -> bool:
        """Count a site in or out; return whether no block on the way out is over-full."""
        family, change, fits = self.family, 0, True
        block = family.innermost[site]
        while block >= 0:
            before = self._held[block] > 0 or self._need[block] > 0
            self._held[block] += by
            self._inner[block] += change
            need = max(family.least[block] - self._held[block], self._inner[block])
            change, self._need[block] = need - self._need[block], need
            if family.spread[block]:
                self._present += (self._held[block] > 0 or need > 0) - before
            fits &= self._held[block] + need <= family.most[block]
            block = family.parent[block]
        self._outermost += change
        self.size += by
        return fits

    def take(self, site: int) -> bool:
        """Choose a site if the remaining minimums still fit; return whether it was chosen."""
        if self._shift(site, 1) and self.size + self.missing <= self._most:
            return True
        self._shift(site, -1)
        return False

    def take_needed(self, site: int) -> bool:
        """Choose a site if that lowers `missing`; return whether it was chosen."""
        before = self.missing
        fits = self._shift(site, 1)
        if fits and (missing := self.missing) < before and self.size + missing <= self._most:
            return True
        self._shift(site, -1)
        return False

    def take_all(self, sites: Iterable[int]) -> bool:
        """Choose sites that are given; return whether the family still can be obeyed."""
        for site in sites:
            self.feasible &= self._shift(site, 1)
        self.feasible &= self.size + self.missing <= self._most
        return self.feasible

    def fits(self, site: int) -> bool:
        """Return whether one more site could be chosen."""
        if not self.take(site):
            return False
        self._shift(site, -1)
        return True


def family_counts(
    families: Sequence[SiteFamily], least: int, most: int, chosen: Collection[int]
) -> list[FamilyCount] | None:
    """Return the counts of some chosen sites; None when they break a rule, or leave no room."""
    counts = [FamilyCount(family, least, most) for family in families]
    return counts if all(count.take_all(chosen) for count in counts) else None


@lru_cache(maxsize=16)  # rules are compared by identity; methods and refusals ask again and again
def site_families(rules: Rules, role: Role) -> tuple[SiteFamily, ...]:
    """Return families that together are equivalent to the diversity rules of a role.

    One family for each minimum number of domains, one for the other rules that are in none of
    these, and more where levels cross. A rule is in every family whose blocks it does not cross.
    O(domains · sites).
    """
    able: BoolArray = rules.may_vote if role == "voters" else rules.may_hold
    numbers = tuple(_numbers(group) for group in rules.of(role))
    return _families(able.tobytes(), numbers)


_Numbers = tuple[bytes, int, int | None, int | None, int, int]
"""A rule in numbers: labels of the sites, domains, cap, least domains, domain, least there."""


def _numbers(group: GroupRule) -> _Numbers:
    labels = group.labels.astype(np.intp).tobytes()
    domains = len(group.names)
    return labels, domains, group.cap, group.min_domains, group.domain, group.least


@lru_cache(maxsize=32)  # most problems on an instance have the same rules
def _families(able: bytes, numbers: tuple[_Numbers, ...]) -> tuple[SiteFamily, ...]:
    sites = len(able)
    bounds: dict[_Block, tuple[int, int]] = {}
    spreads: dict[frozenset[_Block], int] = {}
    for labels, count, cap, min_domains, domain, named in numbers:
        domains = _domains(np.frombuffer(labels, dtype=np.intp), count, able)
        for number, members in enumerate(domains):
            least = named if number == domain else 0
            most = len(members) if cap is None else min(cap, len(members))
            if least or most < len(members):
                block = frozenset(members)
                low, high = bounds.get(block, (0, len(block)))
                bounds[block] = max(low, least), min(high, most)
        if min_domains is not None and min_domains > 1:
            spread = frozenset(frozenset(members) for members in domains if members)
            spreads[spread] = max(spreads.get(spread, 0), min_domains)
    families, left = [], dict(bounds)
    for spread, distinct in spreads.items():
        inner = {
            block: limit
            for block, limit in bounds.items()
            if all(block <= outer or not block & outer for outer in spread)
        }
        inner = _nested(inner, {})
        families.append(SiteFamily.of_blocks(sites, inner, spread, distinct))
        left = {block: limit for block, limit in left.items() if block not in inner}
    while left:
        inner = _nested(left, bounds)
        families.append(SiteFamily.of_blocks(sites, inner))
        left = {block: limit for block, limit in left.items() if block not in inner}
    return tuple(families)


def _domains(labels: IntArray, count: int, able: bytes) -> list[list[int]]:
    """Return the sites of each domain that a rule counts."""
    domains: list[list[int]] = [[] for _ in range(count)]
    for site, label in enumerate(labels.tolist()):
        if able[site] and label >= 0:
            domains[label].append(site)
    return domains


def _nested(
    first: Mapping[_Block, tuple[int, int]], others: Mapping[_Block, tuple[int, int]]
) -> dict[_Block, tuple[int, int]]:
    """Return blocks none of which cross: of `first` what goes together, then of the others."""
    chosen: dict[_Block, tuple[int, int]] = {}
    of_site: defaultdict[int, list[_Block]] = defaultdict(list)
    for block, limit in (*first.items(), *others.items()):
        if block in chosen:
            chosen[block] = limit
            continue
        # blocks without a site of it are disjoint
        if all(block <= one or one <= block for site in block for one in of_site[site]):
            chosen[block] = limit
            for site in block:
                of_site[site].append(block)
    return chosen


# Complete search for sets of sites under counts, pins, caps, minimums and a budget

NODE_LIMIT = 2_000_000
"""Nodes after which a search gives up with a LimitError instead of running for days."""

_NODES = 512  # between looks at the clock


@dataclass
class SiteSubset:
    """A choice of `size` sites out of `order`, to be enumerated by :func:`subsets`."""

    order: Sequence[int]  #: candidate sites, the most wanted first
    size: int  #: how many to choose
    #: sites that must be chosen; all of them must be in `order`
    pinned: frozenset[int] = frozenset()
    groups: Sequence[GroupRule] = ()  #: caps and minimums that the chosen sites obey
    #: (b, m): at least m of the chosen sites are among the first b of `order`
    near: tuple[int, int] = (0, 0)
    #: `cost`, `budget`: price of each site, shape (sites,), and the most that the chosen ones may
    #: cost together
    cost: FloatArray | None = None
    budget: float = np.inf
    nodes: int = field(default=0)  #: nodes visited so far


def subsets(choice: SiteSubset) -> Iterator[tuple[int, ...]]:
    """Yield every set that a `SiteSubset` admits, in lexicographic order of positions in `order`.

    Depth-first over positions, take before skip. A branch ends in four cases. The remaining
    positions cannot fill the set, or the caps do not admit enough of it. A minimum lacks more than
    the picks left or the domains (sites of a named domain) left. The first b positions cannot give
    m. The cheapest completion breaks the budget. LimitError after `NODE_LIMIT` nodes, TimeoutError
    after the time limit of the method that runs.
    """
    order = [int(site) for site in choice.order]
    if not choice.pinned <= set(order) or len(choice.pinned) > choice.size:
        return
    labels = [group.labels[order].tolist() if order else [] for group in choice.groups]
    held = [[0] * len(group.names) for group in choice.groups]
    pins = [site in choice.pinned for site in order]
    pins_left = [0] * (len(order) + 1)
    for position in range(len(order) - 1, -1, -1):
        pins_left[position] = pins_left[position + 1] + pins[position]
    costs = [0.0] * len(order) if choice.cost is None else choice.cost[order].tolist()
    slack = 1e-9 * (1 + abs(choice.budget)) if np.isfinite(choice.budget) else 0.0

    taken: list[int] = []

    def hopeless(position: int, spent: float) -> bool:
        need = choice.size - len(taken)
        left = len(order) - position
        if need < pins_left[position] or need > left:
            return True
        first, wanted = choice.near
        inside = sum(1 for p in taken if p < first) + min(need, max(0, first - position))
        if inside < wanted:
            return True
        if choice.cost is not None:
            cheapest = sorted(costs[position:])[:need]
            if spent + sum(cheapest) > choice.budget + slack:
                return True
        for group, label, count in zip(choice.groups, labels, held, strict=True):
            room: dict[int, int] = {}
            for p in range(position, len(order)):
                room[label[p]] = room.get(label[p], 0) + 1
            if group.cap is not None:
                fits = sum(min(n, group.cap - count[d]) for d, n in room.items())
                if fits < need:
                    return True
            if group.min_domains is not None:
                missing = group.min_domains - sum(1 for n in count if n)
                if missing > min(need, sum(1 for d in room if not count[d])):
                    return True
            if group.least and group.least - count[group.domain] > min(
                need, room.get(group.domain, 0)
            ):
                return True
        return False

    def descend(position: int, spent: float) -> Iterator[tuple[int, ...]]:
        choice.nodes += 1
        if choice.nodes % _NODES == 0:
            in_time()
        if choice.nodes > NODE_LIMIT:
            raise LimitError(
                f"more than {NODE_LIMIT} nodes in the search for a set of sites that obeys all "
                "rules; methods 'milp' and 'cp-sat' decide such combinations"
            )
        if hopeless(position, spent):
            return
        if len(taken) == choice.size:
            yield tuple(order[p] for p in taken)
            return
        fits = all(
            group.cap is None or count[label[position]] < group.cap
            for group, label, count in zip(choice.groups, labels, held, strict=True)
        )
        if fits:
            taken.append(position)
            for label, count in zip(labels, held, strict=True):
                count[label[position]] += 1
            yield from descend(position + 1, spent + costs[position])
            taken.pop()
            for label, count in zip(labels, held, strict=True):
                count[label[position]] -= 1
        if not pins[position]:
            yield from descend(position + 1, spent)

    yield from descend(0, 0.0)

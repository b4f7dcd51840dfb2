"""Complete search for sets of sites under counts, pins, caps, minimums and a budget.

One generator serves all modules that choose sites under rules that no greedy can handle: voters
under crossing levels, completions of a heuristic's set, feasibility proofs. It is exact; its worst
case is exponential; with nested levels the pruning leaves next to no dead ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from placement.errors import LimitError
from placement.model.constraints import GroupRule
from placement.support.checks import FloatArray

__all__ = ["NODE_LIMIT", "SiteSubset", "subsets"]

NODE_LIMIT = 2_000_000
"""Nodes after which a search gives up with a LimitError instead of running for days."""


@dataclass
class SiteSubset:
    """A choice of `size` sites out of `order`, to be enumerated by :func:`subsets`.

    Attributes
    ----------
    order
        Candidate sites, the most wanted first.
    size
        How many to choose.
    pinned
        Sites that must be chosen; all of them must be in `order`.
    groups
        Caps and minimums that the chosen sites obey.
    near
        (b, m): at least m of the chosen sites are among the first b of `order`.
    cost, budget
        Price of each site, shape (sites,), and the most that the chosen ones may cost together.
    nodes
        Nodes visited so far.
    """

    order: Sequence[int]
    size: int
    pinned: frozenset[int] = frozenset()
    groups: Sequence[GroupRule] = ()
    near: tuple[int, int] = (0, 0)
    cost: FloatArray | None = None
    budget: float = np.inf
    nodes: int = field(default=0)


def subsets(choice: SiteSubset) -> Iterator[tuple[int, ...]]:
    """Yield every set that a `SiteSubset` admits, in lexicographic order of positions in `order`.

    Raises
    ------
    LimitError
        After `NODE_LIMIT` nodes.

    Notes
    -----
    Depth-first over positions, take before skip. A branch ends in four cases. The remaining
    positions cannot fill the set, or the caps do not admit enough of it. A minimum lacks more than
    the picks left or the domains (sites of a named domain) left. The first b positions cannot give
    m. The cheapest completion breaks the budget.
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

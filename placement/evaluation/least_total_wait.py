"""Voters of the least total wait where RTTs vary by interval, by branch and bound.

With one RTT matrix the best voters are the closest ones. With several, the voters V of a leader ℓ
minimise

    W(V) = Σ_k D_k · q_k(V),    q_k(V) = m-th smallest RTT of scenario k from ℓ to V.

A node of the search holds chosen sites I and excluded sites O. Let F be the candidates outside O.

- **Bound.** V ⊆ F, so q_k(V) >= q_k(F), and W(F) is a lower bound.
- **Closing.** The m sites of F closest to ℓ in scenario k attain q_k(F). Let U be the union of
  these sites over k. When a voter set with I ∪ U ⊆ V ⊆ F exists, its wait is W(F): the bound is
  attained and the node is closed.
- **Branching.** Otherwise on a site of U outside I: choose it, or exclude it. A site outside U
  never changes the bound, so no branch is spent on it.

Example: candidates a, b, c with RTTs (0, 1, 9) and (0, 9, 1) ms in two scenarios of weight 1, the
leader a, two voters, m = 2. W({a, b, c}) = 1 + 1 = 2 with U = {a, b, c}, which has three sites and
does not fit. Choosing b leaves c out: W({a, b}) = 1 + 9 = 10. Excluding b: W({a, c}) = 9 + 1 = 10.
The optimum is 10 with {a, b}, first in the order of answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.evaluation.score import TIE
from placement.model.constraints import GroupRule
from placement.model.site_families import SiteSubset, subsets
from placement.support.checks import FloatArray


def least_total_wait(
    waits: FloatArray,
    weights: FloatArray,
    quorum: int,
    choice: SiteSubset,
) -> tuple[int, ...] | None:
    """Return the voters of least total wait, the first in the order of the choice among ties.

    `waits` are the RTTs from the leader, ms, shape (scenarios, sites), `weights` D of each
    scenario. Of the choice, a budget or nearness is not heeded. None when no set obeys the rules.
    One search for the value, and at most one for each candidate to find the first of several
    optima: exponential in |U| at worst, a few nodes where the scenarios resemble each other.
    """
    search = _VoterSubsetSearch(waits, weights, quorum, choice)
    chosen = search.complete(frozenset(choice.pinned), frozenset())
    if chosen is None:
        return None
    least = search.minimum(frozenset(choice.pinned), frozenset(), np.inf)
    cutoff = least * (1 + TIE)
    fixed, excluded = frozenset(choice.pinned), frozenset[int]()
    for site in choice.order:
        if site in fixed or len(fixed) == choice.size:
            continue
        if search.minimum(fixed | {site}, excluded, cutoff, attain=True) <= cutoff:
            fixed |= {site}
        else:
            excluded |= {site}
    return search.complete(fixed, excluded)


class _VoterSubsetSearch:
    """Branch and bound over (chosen, excluded) sites, for one leader."""

    def __init__(
        self, waits: FloatArray, weights: FloatArray, quorum: int, choice: SiteSubset
    ) -> None:
        self.order = tuple(int(site) for site in choice.order)
        self.size = choice.size
        self.groups: Sequence[GroupRule] = choice.groups
        self.quorum = quorum
        self.weights = weights
        self.waits = waits
        candidates = np.array(self.order, dtype=np.intp)
        # the candidates of each scenario, closest first
        self.closest = [
            candidates[np.argsort(row[candidates], kind="stable")].tolist() for row in waits
        ]

    def complete(self, chosen: frozenset[int], excluded: frozenset[int]) -> tuple[int, ...] | None:
        """Return the first voter set that holds `chosen`, avoids `excluded` and obeys the rules."""
        order = [site for site in self.order if site not in excluded]
        return next(subsets(SiteSubset(order, self.size, chosen, self.groups)), None)

    def minimum(
        self,
        chosen: frozenset[int],
        excluded: frozenset[int],
        cutoff: float,
        *,
        attain: bool = False,
    ) -> float:
        """Return the least wait below `chosen` and `excluded`, infinite if no set is feasible.

        Sets above `cutoff` are not looked for; with `attain` the first value at or below `cutoff`
        ends the search.
        """
        best = np.inf
        stack = [(chosen, excluded)]
        while stack:
            chosen, excluded = stack.pop()
            bound, needed = self._bound(excluded)
            if not bound <= cutoff or not bound < best:
                continue
            missing = [site for site in needed if site not in chosen]
            if len(chosen) + len(missing) <= self.size and self.complete(
                chosen | frozenset(missing), excluded
            ):
                best = bound
                if attain:
                    return best
                continue
            feasible = self.complete(chosen, excluded)
            if feasible is None:
                continue
            value = self._bound(frozenset(self.order) - frozenset(feasible))[0]
            if value <= cutoff:
                best = min(best, value)
                if attain:
                    return best
            # a site is missing: a node without one was closed, or has no feasible completion
            site = missing[0]
            stack.append((chosen, excluded | {site}))
            if len(chosen) < self.size:
                stack.append((chosen | {site}, excluded))
        return best

    def _bound(self, excluded: frozenset[int]) -> tuple[float, list[int]]:
        """Return W(F) and the union U of the m closest sites of each scenario, in turn."""
        total, needed = 0.0, dict[int, None]()
        for row, weight, closest in zip(self.waits, self.weights, self.closest, strict=True):
            near = [site for site in closest if site not in excluded][: self.quorum]
            if len(near) < self.quorum:
                return np.inf, []
            total += float(weight) * float(row[near[-1]])
            needed.update(dict.fromkeys(near))
        return total, list(needed)

"""Replica sets grown one site at a time, for many leaders at once: starts for a local search.

The greedy heuristic of the p-median problem (Cornuéjols, Fisher and Nemhauser, Management Science
23(8), 1977) with the summand of Eq. 1: begin with the leader, or with the leader and its closest
quorum, and add the site after which the score is lowest until there are n replicas. Quorum waits
are left out, as a set is too small to have one for most of its growth.

With `among` > 1 each addition is drawn evenly from the best few: the construction phase of GRASP
(Feo and Resende, Journal of Global Optimization 6, 1995). Where relayed reads make replicas harm
each other, good sets have next to nothing in common, and such starts reach them where shaking a
local optimum does not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heuristics import tuning
from heuristics.local_search.swap_neighbourhood import Pairs, SwapNeighbourhood
from placement.support.checks import FloatArray, IntArray


def grow_sets(
    neighbourhood: SwapNeighbourhood,
    leaders: IntArray,
    size: int | IntArray,
    width: int,
    *,
    quorum: bool,
    among: int = 1,
    rng: np.random.Generator | None = None,
    stop: Callable[[], bool] | None = None,
) -> Pairs:
    """Grow B replica sets, one for each leader, in O(size·B·C·S).

    Only pins and forbidden sites are heeded, so that the problem should have no rules about voters,
    domains or money (:attr:`heuristics.admissible_sites.AdmissibleSites.free_of_rules`). `size` is
    |R|, one for all or shape (B,); sets are larger where leader and pins need more, smaller where
    too few sites may hold a replica. A set has `width` places, more than `size`. With `quorum` the
    m sites closest to each leader are taken first, as far as they fit. Each addition is drawn by
    `rng` from the `among` best ones. `stop` is asked between batches of leaders, which keep memory
    at O(C·S), and ends in TimeoutError.
    """
    terms = neighbourhood.terms
    sizes = np.broadcast_to(np.asarray(size, dtype=np.intp), leaders.shape).copy()
    step = max(1, tuning.STARTS_BLOCK // max(1, (terms.sites + 1) * len(terms.rank)))
    parts = []
    for first in range(0, max(1, len(leaders)), step):
        if stop is not None and stop():
            raise TimeoutError
        rows = slice(first, first + step)
        parts.append(_grow(neighbourhood, leaders[rows], sizes[rows], width, quorum, among, rng))
    return Pairs.join(parts)


def _grow(
    neighbourhood: SwapNeighbourhood,
    leaders: IntArray,
    sizes: IntArray,
    width: int,
    quorum: bool,
    among: int,
    rng: np.random.Generator | None,
) -> Pairs:
    """Grow the sets of one batch of leaders."""
    rules, terms = neighbourhood.rules, neighbourhood.terms
    none = terms.sites
    pairs = Pairs(leaders, np.full((len(leaders), width), none, dtype=np.intp))
    for row, leader in enumerate(leaders.tolist()):
        first = [leader, *np.nonzero(rules.must_hold)[0].tolist()]
        sizes[row] = max(sizes[row], len(set(first)))
        if quorum:
            waits = np.where(rules.may_vote, terms.site_rtt[0, leader], np.inf)
            first.extend(np.argsort(waits, kind="stable")[: rules.quorum].tolist())
        chosen = list(dict.fromkeys(first))[: int(sizes[row])]
        pairs.replicas[row, : len(chosen)] = chosen
    insertions = neighbourhood.insertions(leaders)
    open_rows = np.arange(len(leaders))
    while open_rows.size:
        count = (pairs.replicas[open_rows] < none).sum(axis=1)
        short = count < sizes[open_rows]
        open_rows, count = open_rows[short], count[short]
        if not open_rows.size:
            break
        some = pairs.take(open_rows)
        after = neighbourhood.additions(some, insertions.take(open_rows))
        site = _choose(after, among, rng)
        possible = np.isfinite(after[np.arange(len(open_rows)), site])
        pairs.replicas[open_rows[possible], count[possible]] = site[possible]
        open_rows = open_rows[possible]
    return pairs


def _choose(values: FloatArray, among: int, rng: np.random.Generator | None) -> IntArray:
    """Column of each row: the least value, or an even draw from the `among` least finite ones."""
    if among == 1 or rng is None:
        return np.asarray(values.argmin(axis=1))
    few = np.minimum(among, np.maximum(1, np.isfinite(values).sum(axis=1)))
    pick = rng.integers(0, few)
    order = np.argsort(values, axis=1, kind="stable")
    return np.asarray(order[np.arange(len(values)), pick])

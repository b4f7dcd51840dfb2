"""Replica sets grown one site at a time, for many leaders at once: starts for a local search.

The greedy heuristic of the p-median problem (Cornuéjols, Fisher and Nemhauser, Management Science
23(8), 1977) with the summand of Eq. 1: begin with the leader, or with the leader and its closest
quorum, and add the site after which the score is lowest until there are n replicas. Quorum waits
are left out while a set is too small to have one.
"""

from __future__ import annotations

import numpy as np

from heuristics.swaps import Neighbourhood, Pairs
from placement.checks import IntArray

__all__ = ["grown"]


def grown(
    neighbourhood: Neighbourhood, leaders: IntArray, size: int, width: int, *, quorum: bool
) -> Pairs:
    """Grow a replica set for every leader.

    Parameters
    ----------
    neighbourhood
        Values of moves; only pins and forbidden sites are heeded, so that the problem should have
        no rules about voters, domains or money (:attr:`heuristics.room.Room.free_of_rules`).
    leaders
        Site indices, shape (B,).
    size
        |R| to reach.
    width
        Places per set, more than `size`.
    quorum
        Whether the m sites closest to each leader are taken first, as far as they fit.

    Returns
    -------
    Pairs
        B sets; sets of fewer than `size` sites where there are too few that may hold a replica.

    Notes
    -----
    O(size·B·C·S).
    """
    rules, terms = neighbourhood.rules, neighbourhood.terms
    none = terms.sites
    pairs = Pairs(leaders, np.full((len(leaders), width), none, dtype=np.intp))
    for row, leader in enumerate(leaders.tolist()):
        first = [leader, *np.nonzero(rules.must_hold)[0].tolist()]
        if quorum:
            waits = np.where(rules.may_vote, terms.site_rtt[0, leader], np.inf)
            first.extend(np.argsort(waits, kind="stable")[: rules.quorum].tolist())
        chosen = list(dict.fromkeys(first))[:size]
        pairs.replicas[row, : len(chosen)] = chosen
    summands = neighbourhood.summands(leaders)
    open_rows = np.arange(len(leaders))
    while open_rows.size:
        count = (pairs.replicas[open_rows] < none).sum(axis=1)
        open_rows, count = open_rows[count < size], count[count < size]
        if not open_rows.size:
            break
        some = pairs.take(open_rows)
        _, table = neighbourhood.moves(some, summands[open_rows])
        after = table[np.arange(len(open_rows)), count, :none]
        site = after.argmin(axis=1)
        possible = np.isfinite(after[np.arange(len(open_rows)), site])
        pairs.replicas[open_rows[possible], count[possible]] = site[possible]
        open_rows = open_rows[possible]
    return pairs

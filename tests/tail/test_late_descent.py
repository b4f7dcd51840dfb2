"""Swaps that lower the number of late operations, against sums over clients by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from formulations.tail.late_descent import fewer_late


class _Votes:
    """A part of the voters that depends on the sites: each costs something."""

    def __init__(self, costs):
        self.costs = costs

    def of(self, voters):
        return min(self.costs[v] for v in voters)


def _late(chosen, table, rank, votes):
    near = [min(chosen, key=lambda r, c=c: rank[r, c]) for c in range(table.shape[1])]
    return sum(table[r, c] for c, r in enumerate(near)) + votes.of(chosen)


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(1, 5))
def test_swaps_keep_the_deadline_or_none_helps(seed, sites, clients):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (sites, clients)) / 8  # ties and zeros
    rank = np.argsort(np.argsort(rng.random((sites, clients)), axis=0), axis=0)
    votes = _Votes(rng.integers(0, 3, sites) / 4)
    movable = rng.random(sites) < 0.8
    start = sorted(rng.permutation(sites)[: rng.integers(1, sites + 1)].tolist())
    allowed = float(rng.integers(0, 12)) / 8
    here = _late(start, table, rank, votes)
    swaps = [
        sorted({*start, new} - {old})
        for old in start
        for new in range(sites)
        if movable[old] and movable[new] and new not in start and len(start) > 1
    ]
    best = min((_late(one, table, rank, votes) for one in swaps), default=np.inf)
    found = fewer_late(start, table, rank, votes, movable, allowed)
    if found is None:
        assert here > allowed
        assert best > allowed
        return
    assert _late(found, table, rank, votes) <= allowed
    assert len(found) == len(set(found)) == len(start)
    fixed = set(np.nonzero(~movable)[0].tolist())
    assert fixed & set(found) == fixed & set(start)

"""Waits under one cap after every move, against greedy voters on the set that the move leads to."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heuristics.local_search.swap_neighbourhood import capped_waits


def wait_of(
    rtt: list[float], leader: int, sites: set[int], labels: list[int], cap: int, m: int, v: int
) -> float:
    """Take the leader, then whoever is closest and fits; the m-th of v answers."""
    voters = [leader]
    for site in sorted(sites - {leader}, key=lambda s: (rtt[s], s)):
        if math.isfinite(rtt[site]) and len(voters) < v:
            alike = sum(labels[other] == labels[site] for other in voters)
            if alike < cap:
                voters.append(site)
    return sorted(rtt[s] for s in voters)[m - 1] if len(voters) == v else math.inf


@given(st.data())
def test_every_move_has_the_wait_of_greedy_voters(data: st.DataObject) -> None:
    """Ties, RTTs of zero, sites that may not vote, places that are empty, too few voters."""
    count = data.draw(st.integers(2, 8))
    sites = range(count)
    numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, 5.0, math.inf])
    labels = [data.draw(st.integers(0, 3)) for _ in sites]
    cap, m = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    v = data.draw(st.integers(m, 5))
    size = data.draw(st.integers(1, count))
    spare = data.draw(st.integers(1, 2))
    rows, sets, leaders = [], [], []
    for _ in range(data.draw(st.integers(1, 3))):
        chosen = data.draw(st.permutations(list(sites)))[:size]
        leader = data.draw(st.sampled_from(chosen))
        rtt = [data.draw(numbers) for _ in sites]
        rtt[leader] = 0.0
        rows.append([*rtt, math.inf])
        sets.append(data.draw(st.permutations([*chosen, *[count] * spare])))
        leaders.append(leader)
    now, table = capped_waits(np.array(rows), np.array(sets), np.array(labels), cap, m, v)
    for b, (rtt, held, leader) in enumerate(zip(rows, sets, leaders, strict=True)):
        present = set(held) - {count}
        assert now[b] == wait_of(rtt, leader, present, labels, cap, m, v)
        for place, out in enumerate(held):
            if out == leader:
                continue
            for into in [*set(sites) - present, count]:
                after = (present - {out} | {into}) - {count}
                expected = wait_of(rtt, leader, after, labels, cap, m, v)
                assert table[b, place, into] == expected

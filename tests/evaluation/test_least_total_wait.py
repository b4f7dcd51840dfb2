"""Voters under RTTs that vary by interval: branch and bound against enumeration."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.evaluation.least_total_wait import least_total_wait
from placement.evaluation.score import TIE
from placement.model.constraints import GroupRule
from placement.model.site_families import SiteSubset


def enumerated(waits, weights, quorum, choice):
    """The first set of least total wait, in the order of the choice."""
    best, found = math.inf, None
    for voters in combinations(choice.order, choice.size):
        if not choice.pinned <= set(voters):
            continue
        obeyed = True
        for group in choice.groups:
            held = np.bincount(group.labels[list(voters)], minlength=len(group.names))
            obeyed &= group.cap is None or held.max() <= group.cap
            obeyed &= group.min_domains is None or (held > 0).sum() >= group.min_domains
        if not obeyed:
            continue
        total = sum(
            w * sorted(row[list(voters)])[quorum - 1] for w, row in zip(weights, waits, strict=True)
        )
        if total < best * (1 - TIE) or found is None:
            best, found = total, voters
    return best, found


@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_it_equals_enumeration(data, seed):
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(1, 9))
    scenarios = int(rng.integers(2, 5))
    high = data.draw(st.sampled_from([2, 4, 100]))  # few values: many ties
    waits = rng.integers(0, high, (scenarios, sites)).astype(float)
    leader = int(rng.integers(sites))
    waits[:, leader] = 0
    weights = rng.integers(0, 4, scenarios).astype(float)
    if not weights.any():
        weights[:] = 1
    size = int(rng.integers(1, sites + 1))
    quorum = int(rng.integers(1, size + 1))
    groups = []
    if data.draw(st.booleans()):
        names = tuple("abc")[: int(rng.integers(1, 4))]
        labels = rng.integers(0, len(names), sites)
        cap = None if data.draw(st.booleans()) else int(rng.integers(1, 4))
        fewest = None if cap is not None and data.draw(st.booleans()) else 1
        groups = [GroupRule("voters", "level", labels, names, cap, fewest, "a rule")]
    pinned = {leader, *rng.choice(sites, int(rng.integers(0, 2)), replace=False).tolist()}
    order = sorted(range(sites), key=lambda s: (float(weights @ waits[:, s]), s))
    choice = SiteSubset(order, size, frozenset(pinned), groups)
    best, expected = enumerated(waits, weights, quorum, choice)
    found = least_total_wait(waits, weights, quorum, choice)
    if expected is None:
        assert found is None
        return
    assert found is not None
    value = sum(
        w * sorted(row[list(found)])[quorum - 1] for w, row in zip(weights, waits, strict=True)
    )
    assert value == pytest.approx(best, rel=1e-12, abs=1e-12)
    if high == 100:
        assert found == expected

"""Rules choose legal quorums, and what they claim to choose."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from heuristics.online.reads import (
    UniformQuorum,
)


def state(rule, nodes=5, leader=0, seed=0):
    return rule.start(nodes, leader, np.random.default_rng(seed))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_quorums_are_legal(share):
    """A majority of the others with the gateway, or L alone as often as the coin says."""
    rule = UniformQuorum(share)
    assert f"{share:.3g}" in rule.name
    at = state(rule)
    for gateway in range(5):
        chosen = [at(gateway) for _ in range(2000)]
        alone = sum(quorum == (0,) for quorum in chosen)
        expected = 1.0 if gateway == 0 else share
        assert alone / 2000 == pytest.approx(expected, abs=0.04)
        for quorum in chosen:
            if quorum != (0,):
                assert len(set(quorum)) == 3
                assert gateway in quorum
                assert 0 not in quorum


@pytest.mark.parametrize("nodes", [5, 25])
def test_uniform_is_uniform(nodes):
    """Listed (5 nodes) or drawn one by one (25): every node as often as P says."""
    at = state(UniformQuorum(0.0), nodes=nodes)
    draws = 6000
    counts = Counter(node for _ in range(draws) for node in at(1))
    assert counts.pop(1) == draws
    expected = (nodes // 2) / (nodes - 2)
    assert len(counts) == nodes - 2
    for count in counts.values():
        assert count / draws == pytest.approx(expected, abs=0.03)

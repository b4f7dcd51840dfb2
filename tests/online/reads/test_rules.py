"""Rules choose legal quorums, and what they claim to choose."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from formulations.online.reads import solve_compact
from heuristics.online.reads import (
    LeaseHolder,
    Local,
    UniformQuorum,
)
from placement.online.reads import (
    FromStrategy,
    RaftCluster,
    ReadGoal,
    ReadProblem,
    ReadWorkload,
    simulate,
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


def test_lease_holder_and_local():
    assert state(LeaseHolder(), leader=3)(1) == (3,)
    assert state(Local(), leader=3)(1) == (1,)


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


def test_the_optimum_beats_the_rules_where_gateways_differ():
    """With skewed gateways the least-load strategy outruns the paper's rule by a tenth or more."""
    workload = ReadWorkload(gateways=(0.1, 0.4, 0.3, 0.1, 0.1))
    cluster = RaftCluster()
    shares = workload.gateway_shares(5)
    rate = 14.0
    base = cluster.gateway_ms * shares + 0.05 * np.array([4 * cluster.write_ms, *[0.4] * 4])
    problem = ReadProblem(
        cluster.rtt,
        0.95 * rate * shares,
        0,
        capacity=np.full(5, cluster.cores / cluster.read_ms),
        base=rate * base / cluster.cores,
    )
    plan = solve_compact(problem, ReadGoal.least_load())
    assert plan.strategy is not None
    strategy = plan.strategy
    rules = [FromStrategy(strategy), UniformQuorum(2 / 7), LeaseHolder()]
    throughput = [
        simulate(cluster, workload, rule, operations=10_000, seed=1).throughput for rule in rules
    ]
    assert throughput[0] > 1.1 * max(throughput[1:])

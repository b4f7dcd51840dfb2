"""Rules choose legal quorums, and what they claim to choose."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from formulations.online.reads import solve_compact
from heuristics.online.reads import (
    C3Majority,
    LeaseHolder,
    LeastUtilised,
    Local,
    NearestMajority,
    TwoChoiceMajority,
    UniformQuorum,
)
from placement.errors import InputError
from placement.online.reads import (
    Answered,
    FromStrategy,
    RaftCluster,
    ReadGoal,
    ReadProblem,
    ReadRule,
    ReadWorkload,
    simulate,
)

RTT = np.abs(np.subtract.outer([0, 5, 6, 8, 20], [0, 5, 6, 8, 20])).astype(float)
RULES = [
    UniformQuorum,
    LeastUtilised,
    TwoChoiceMajority,
    C3Majority,
    lambda x: NearestMajority(x, rtt=RTT),
]


def state(rule, nodes=5, leader=0, seed=0):
    return rule.start(nodes, leader, np.random.default_rng(seed))


@pytest.mark.parametrize("make", RULES)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_quorums_are_legal(make, share):
    """A majority of the others with the gateway, or L alone as often as the coin says."""
    rule = make(share)
    assert f"{share:.3g}" in rule.name
    at = state(rule)
    for gateway in range(5):
        chosen = [at.choose(gateway) for _ in range(2000)]
        alone = sum(quorum == (0,) for quorum in chosen)
        expected = 1.0 if gateway == 0 else share
        assert alone / 2000 == pytest.approx(expected, abs=0.04)
        for quorum in chosen:
            if quorum != (0,):
                assert len(set(quorum)) == 3
                assert gateway in quorum
                assert 0 not in quorum


def test_lease_holder_and_local():
    assert state(LeaseHolder(), leader=3).choose(1) == (3,)
    assert state(Local(), leader=3).choose(1) == (1,)


@pytest.mark.parametrize("nodes", [5, 25])
def test_uniform_is_uniform(nodes):
    """Listed (5 nodes) or drawn one by one (25): every node as often as P says."""
    at = state(UniformQuorum(0.0), nodes=nodes)
    draws = 6000
    counts = Counter(node for _ in range(draws) for node in at.choose(1))
    assert counts.pop(1) == draws
    expected = (nodes // 2) / (nodes - 2)
    assert len(counts) == nodes - 2
    for count in counts.values():
        assert count / draws == pytest.approx(expected, abs=0.03)


def test_nearest():
    at = state(NearestMajority(rtt=RTT))
    assert sorted(at.choose(1)) == [1, 2, 3]
    assert sorted(at.choose(4)) == [2, 3, 4]
    with pytest.raises(InputError, match="rtt"):
        NearestMajority(rtt=RTT).start(4, 0, np.random.default_rng(0))


def tell(at, gateway, node, queue=0, service=1.0, response=2.0):
    at.answered(Answered(gateway, node, 10.0, response, service, queue))


def hear(at, gateway, queues, responses=None):
    """Let the gateway hear of every other node once, nothing outstanding afterwards."""
    at.known[gateway].outstanding = [1] * 5
    for node, queue in queues.items():
        tell(at, gateway, node, queue, response=(responses or {}).get(node, 2.0))
    at.known[gateway].outstanding = [0] * 5


def test_least_utilised_takes_the_least():
    at = state(LeastUtilised())
    hear(at, 1, {2: 9, 3: 1, 4: 2})
    assert sorted(at.choose(1)) == [1, 3, 4]
    for _ in range(9):  # own requests count too: 3 and 4 fill up
        at.choose(1)
    assert at.known[1].outstanding[2] > 0
    assert sorted(at.choose(2))[0] != 0  # what gateway 1 heard is its own knowledge


def test_two_choices_prefers_the_less_loaded():
    """Of three others, two are taken: the worst only when it meets itself twice."""
    at = state(TwoChoiceMajority())
    hear(at, 1, {2: 0, 3: 0, 4: 50})
    taken = Counter()
    for _ in range(4000):
        quorum = at.choose(1)
        taken.update(quorum)
        for node in quorum:
            at.known[1].outstanding[node] -= 1
    # First draw: the worst needs both draws (1/9); second: both again of two left (1/4).
    assert taken[4] / 4000 == pytest.approx(1 / 9 + 8 / 9 / 4, abs=0.03)


def test_c3_scores_by_hand():
    at = state(C3Majority())
    assert at.keys(1) == [0.0] * 5
    hear(at, 1, {2: 1, 3: 0, 4: 3})
    # (R − S) + (1 + outstanding·5 + queue)³·S
    assert at.keys(1) == [0.0, 0.0, 1 + 8.0, 1 + 1.0, 1 + 64.0]
    at.known[1].outstanding[3] = 1
    assert at.keys(1)[3] == 1 + 6.0**3
    assert sorted(at.choose(1))[:1] == [1]
    tell(at, 1, 2, queue=11, service=2.0, response=5.0)
    known = at.known[1]
    assert known.queue[2] == pytest.approx(0.9 * 11 + 0.1 * 1)
    assert known.service_ms[2] == pytest.approx(1.9)
    assert known.other_ms[2] == pytest.approx(0.9 * 3 + 0.1)


@pytest.mark.parametrize("make", [*RULES, lambda x: Local()])
def test_every_request_is_answered(make):
    """Adaptive rules end with nothing outstanding."""
    rule = make(0.2)
    kept = []

    class Watched(ReadRule):
        label, learns = rule.name, rule.learns

        def start(self, nodes, leader, rng):
            kept.append(rule.start(nodes, leader, rng))
            return kept[0]

    run = simulate(RaftCluster(), ReadWorkload(clients=20), Watched(), operations=2000)
    assert len(run.history) == 2000
    if rule.learns:
        assert all(known.outstanding == [0] * 5 for known in kept[0].known)


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

"""Reads of several groups at once: the checker by exhaustion, torn reads, and reading twice."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from heuristics.online.reads import C3Majority, LeaseHolder, UniformQuorum
from placement.errors import InputError
from placement.online.reads import (
    HistoryEntry,
    RaftCluster,
    ReadProblem,
    ReadStrategy,
    ReadWorkload,
    Visibility,
    bottleneck,
    check,
    simulate,
)
from placement.online.reads.snapshots import ReadTransaction, check_snapshots
from tests.effort import seeds

CONTENDED = ReadWorkload(clients=30, keys=20, read_share=0.6, span=3)


@pytest.mark.parametrize("seed", seeds(40, 600))
def test_torn_and_crossed_by_exhaustion(seed):
    """Try all moments for a transaction, and all pairs of transactions."""
    rng = np.random.default_rng([5, seed])
    writes, last = [], {}
    for key in range(3):
        at = 0
        for version in range(1, int(rng.integers(1, 4)) + 1):
            start = at + int(rng.integers(1, 4))
            at = start + int(rng.integers(1, 4))
            writes.append(HistoryEntry(key, False, float(start), float(at), version))
            last[key] = version
    transactions = []
    for _ in range(int(rng.integers(1, 5))):
        start = int(rng.integers(0, 12))
        seen = tuple((key, int(rng.integers(0, last[key] + 1))) for key in range(3))
        transactions.append(ReadTransaction(float(start), float(start + rng.integers(1, 6)), seen))
    spans = {(w.key, w.version): (w.start, w.end) for w in writes}

    def whole(each):
        return any(
            all(
                (not v or spans[k, v][0] <= moment)
                and moment <= spans.get((k, v + 1), (0, math.inf))[1]
                for k, v in each.seen
            )
            for moment in np.arange(each.start, each.end + 0.25, 0.5)
        )

    found = check_snapshots(writes, transactions)
    assert found.torn == sum(not whole(each) for each in transactions)
    crossing = any(
        a.seen[i][1] < b.seen[i][1] and a.seen[j][1] > b.seen[j][1]
        for a, b in product(transactions, repeat=2)
        for i, j in product(range(3), repeat=2)
    )
    assert (found.crossed > 0) is crossing
    assert found.transactions == len(transactions)


@pytest.mark.parametrize(("rule", "strong"), [(LeaseHolder(), False), (UniformQuorum(0.2), True)])
def test_reading_twice_makes_snapshots(rule, strong):
    """Single reads are linearizable; together they are torn unless two rounds agree."""
    cluster = RaftCluster(visibility=Visibility.LOG, groups=5, rtt=3.0)
    for snapshot in (False, True):
        run = simulate(
            cluster, CONTENDED, rule, strong=strong, snapshot=snapshot, operations=3000, seed=2
        )
        assert run.violations.linearizable
        assert check(run.history).reads == len(run.transactions)
        assert run.violations.reads == 3 * len(run.transactions)
        assert all(len({key % 5 for key, _ in each.seen}) == 3 for each in run.transactions)
        if snapshot:
            assert run.snapshots.torn == run.snapshots.crossed == 0
            assert run.collects > 0
        else:
            assert run.snapshots.torn + run.snapshots.crossed > 0
            assert run.collects == 0


@pytest.mark.parametrize("seed", seeds(3, 20))
def test_snapshots_on_random_clusters(seed):
    rng = np.random.default_rng([7, seed])
    nodes = int(rng.integers(3, 8))
    cluster = RaftCluster(
        nodes,
        cores=2,
        rtt=rng.uniform(0, 8, (nodes, nodes)),
        visibility=Visibility.LOG,
        groups=int(rng.integers(1, 6)),
        apply_lag_ms=float(rng.choice([0.0, 5.0])),
    )
    workload = ReadWorkload(clients=20, keys=12, read_share=0.7, span=int(rng.integers(2, 5)))
    run = simulate(
        cluster, workload, UniformQuorum(0.3), strong=True, snapshot=True, operations=1500,
        seed=seed,
    )  # fmt: skip
    assert run.violations.linearizable
    assert run.snapshots.torn == run.snapshots.crossed == 0


def test_leaders_of_several_groups_share_the_reads():
    """With a group led by each machine the leaseholders are as busy as each other."""
    workload = ReadWorkload(read_share=1.0)
    one, five = (
        simulate(RaftCluster(groups=groups), workload, LeaseHolder(), operations=8000, seed=1)
        for groups in (1, 5)
    )
    assert max(one.utilisation) > 2.5 * min(one.utilisation)
    assert max(five.utilisation) < 1.1 * min(five.utilisation)
    # Work in all is the same; five leaders divide what one had to do.
    law = bottleneck(RaftCluster(), workload, ReadStrategy.coin(ReadProblem.uniform(5), 1.0))
    assert sum(five.busy) / 8000 == pytest.approx(law.demand.sum(), rel=0.03)
    assert five.throughput > 1.5 * one.throughput


def test_a_transaction_waits_for_its_slowest_read():
    """One client: the longest of two reads at other machines, by hand."""
    cluster = RaftCluster(groups=2, gateway_ms=0.0, rtt=5.0)
    workload = ReadWorkload(
        clients=1, read_share=1.0, keys=10, span=2, gateways=(0.0, 0.0, 0.0, 1.0, 0.0)
    )
    run = simulate(cluster, workload, LeaseHolder(), operations=6000)
    # At two leaders that are idle: 5 ms, and the longer of two exponentials of 0.4 ms.
    assert run.read_latency.mean == pytest.approx(5.0 + 0.4 * 1.5, rel=0.01)
    twice = simulate(cluster, workload, LeaseHolder(), operations=6000, snapshot=True)
    assert twice.read_latency.mean == pytest.approx(2 * run.read_latency.mean, rel=0.01)
    assert twice.collects == 0


def test_rules_that_learn_have_a_state_for_each_group():
    cluster = RaftCluster(groups=3, visibility=Visibility.LOG)
    run = simulate(cluster, CONTENDED, C3Majority(0.2), strong=True, operations=1500)
    assert run.violations.linearizable


def test_more_keys_than_there_are():
    with pytest.raises(InputError, match="span"):
        simulate(RaftCluster(), ReadWorkload(keys=2, span=3), LeaseHolder(), operations=10)

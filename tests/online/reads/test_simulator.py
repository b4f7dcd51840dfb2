"""The simulator against queueing theory, hand-worked means, laws, and its own history checked."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest

from heuristics.online.reads import LeaseHolder, Local, UniformQuorum
from placement.errors import InputError
from placement.online.reads import (
    FromStrategy,
    RaftCluster,
    ReadProblem,
    ReadRule,
    ReadStrategy,
    ReadWorkload,
    Visibility,
    bottleneck,
    evaluate,
    simulate,
)
from placement.online.reads.read_simulator import Machine, Replicas
from tests.effort import seeds

X = 2 / 7


def gordon_newell(visits: list[float], service: float, cores: int, clients: int, delay: float):
    """Throughput (per ms) of a closed network of exponential multi-server stations: convolution."""

    def station(demand: float) -> np.ndarray:
        terms = np.ones(clients + 1)
        for k in range(1, clients + 1):
            terms[k] = terms[k - 1] * demand / min(k, cores)
        return terms

    constants = np.zeros(clients + 1)
    constants[0] = 1.0
    for visit in visits:
        constants = np.convolve(constants, station(visit * service))[: clients + 1]
    thinking = np.array([delay**k / math.factorial(k) for k in range(clients + 1)])
    constants = np.convolve(constants, thinking)[: clients + 1]
    return constants[clients - 1] / constants[clients]


@pytest.mark.parametrize("clients", [3, pytest.param(12, marks=pytest.mark.slow), 30])
@pytest.mark.parametrize("rule", [LeaseHolder(), Local()], ids=lambda rule: rule.name)
def test_product_form_networks(rule, clients):
    """Reads of one node with equal mean services are a Gordon–Newell network, solved exactly."""
    cluster = RaftCluster(cores=2, gateway_ms=0.6, read_ms=0.6, rtt=0.4)
    workload = ReadWorkload(clients=clients, read_share=1)
    run = simulate(cluster, workload, rule, operations=20_000, seed=3)
    alone = isinstance(rule, LeaseHolder)
    visits = [1.2, 0.2, 0.2, 0.2, 0.2] if alone else [0.4] * 5
    exact = 1000 * gordon_newell(visits, 0.6, 2, clients, 0.8 * 0.4 if alone else 0.0)
    assert run.throughput == pytest.approx(exact, rel=0.02)
    assert run.latency.mean == pytest.approx(1000 * clients / exact, rel=0.02)


def test_idle_latencies_by_hand():
    """One client meets nobody: means of exponentials, of the longest of three, of the second."""
    workload = ReadWorkload(clients=1, read_share=0.5)
    run = simulate(RaftCluster(), workload, LeaseHolder(), operations=12_000)
    assert run.read_latency.mean == pytest.approx(0.9 + 0.8 * 0.3 + 0.4, rel=0.025)
    second_of_four = 0.4 * (1 / 4 + 1 / 3)
    write = 0.9 + 0.8 * 0.3 + 4 * 0.5 + 0.3 + second_of_four
    assert run.write_latency.mean == pytest.approx(write, rel=0.02)
    rng = np.random.default_rng(1)
    longest = np.maximum(
        rng.exponential(0.4, 300_000), 0.3 + rng.exponential(0.4, (2, 300_000)).max(axis=0)
    ).mean()
    run = simulate(RaftCluster(), workload, UniformQuorum(0.0), operations=12_000)
    quorum = 0.9 + 0.8 * longest + 0.2 * 0.4
    assert run.read_latency.mean == pytest.approx(quorum, rel=0.02)


def test_busy_time_is_demand():
    """Work at every node equals the demand of the laws; throughput stays below their bound."""
    problem = ReadProblem.uniform(5)
    strategy = ReadStrategy.coin(problem, X)
    law = bottleneck(RaftCluster(), ReadWorkload(), strategy)
    assert law.throughput == pytest.approx(8000 / (0.18 + 0.95 * 0.4 * 3 / 7 + 0.05 * 2))
    run = simulate(RaftCluster(), ReadWorkload(), FromStrategy(strategy), operations=20_000, seed=2)
    demand = np.array(run.busy) / len(run.history)
    assert demand == pytest.approx(law.demand, rel=0.02)
    assert 0.95 * law.throughput < run.throughput < 1.02 * law.throughput
    assert run.latency.mean > 0.98 * law.latency
    few = bottleneck(RaftCluster(), ReadWorkload(clients=2), strategy)
    assert few.throughput == pytest.approx(2000 / few.idle_ms)


@pytest.mark.parametrize("gateway", range(5))
def test_the_simulator_waits_as_the_model_does(gateway):
    """Without work a read takes what the evaluator says: until the slowest node has answered."""
    rtt = np.full((5, 5), 0.8)
    rtt[:, 4] = rtt[4] = 60.0
    np.fill_diagonal(rtt, 0.0)
    reads = np.eye(5)[gateway]
    problem = ReadProblem(rtt, reads, 0)
    strategy = ReadStrategy.of(problem, [{problem.choices(g)[-1]: 1.0} for g in range(5)])
    cluster = RaftCluster(gateway_ms=0.0, read_ms=0.0, rtt=rtt)
    workload = ReadWorkload(clients=3, read_share=1, gateways=tuple(reads))
    run = simulate(cluster, workload, FromStrategy(strategy), operations=300)
    model = evaluate(problem, strategy).latency
    assert run.read_latency.mean == pytest.approx(model, rel=1e-9)
    assert model == (60.0 if gateway else 0.0)
    assert bottleneck(cluster, workload, strategy).idle_ms == pytest.approx(model)


def test_reference_shape():
    """The four strategies at 70 clients: within 6 % of the reference, in its order."""
    reference = [
        (LeaseHolder(), False, 11_836, 5.33, 17.0),
        (Local(), False, 21_563, 2.64, 14.7),
        (UniformQuorum(X), False, 17_266, 3.54, 13.6),
        (UniformQuorum(X), True, 17_044, 3.58, 13.9),
    ]
    for rule, strong, throughput, read, write in reference:
        run = simulate(
            RaftCluster(), ReadWorkload(), rule, strong=strong, operations=20_000, seed=1
        )
        assert run.throughput == pytest.approx(throughput, rel=0.06)
        assert run.read_latency.mean == pytest.approx(read, rel=0.06)
        assert run.write_latency.mean == pytest.approx(write, rel=0.08)


CONTENDED = ReadWorkload(clients=30, keys=50, read_share=0.7)
FAR = np.abs(np.subtract.outer([0, 1, 2, 6, 9], [0, 1, 2, 6, 9])) + 0.3


def random_cluster(seed: int, visibility: Visibility) -> RaftCluster:
    rng = np.random.default_rng([45, seed])
    nodes = int(rng.integers(3, 8))
    return RaftCluster(
        nodes=nodes,
        leader=int(rng.integers(nodes)),
        cores=int(rng.integers(1, 4)),
        rtt=rng.uniform(0, 8, (nodes, nodes)),
        visibility=visibility,
        apply_lag_ms=float(rng.choice([0, 1, 10])),
        intent_ms=float(rng.choice([0, 0, 20])),
    )


@pytest.mark.parametrize("seed", seeds(4, 10))
@pytest.mark.parametrize("visibility", list(Visibility))
def test_lease_holder_reads_are_linearizable(seed, visibility):
    run = simulate(
        random_cluster(seed, visibility), CONTENDED, LeaseHolder(), operations=3000, seed=seed
    )
    assert run.violations.linearizable
    assert len(run.history) == 3000


@pytest.mark.parametrize("seed", seeds(5, 20))
def test_strong_reads_from_the_log_are_linearizable(seed):
    """Intents seen in the log, and retries: no violation on any cluster, with any coin."""
    share = [0.0, X, 0.7][seed % 3]
    run = simulate(
        random_cluster(seed, Visibility.LOG),
        CONTENDED,
        UniformQuorum(share),
        strong=True,
        operations=3000,
        seed=seed,
    )
    assert run.violations.linearizable, run.violations.examples
    assert run.retries > 0


def test_strong_reads_of_applied_state_are_stale():
    """The claim of the paper does not hold for followers that answer from applied state.

    The write is on a majority of the logs, but only L has applied it, and L is in no quorum:
    neither the value nor the intent is seen.
    """
    cluster = RaftCluster(apply_lag_ms=5.0)
    run = simulate(cluster, CONTENDED, UniformQuorum(X), strong=True, operations=10_000, seed=8)
    assert run.violations.stale > 0
    example = next(v for v in run.violations.examples if v.kind == "stale")
    acked = [
        op
        for op in run.history
        if not op.read
        and op.key == example.operation.key
        and op.version == example.expected
        and op.end <= example.operation.start
    ]
    assert acked
    assert example.operation.version < example.expected


def test_plain_quorum_reads_go_backwards():
    """Even from the log: without write-back one read sees a write under way, a later one does not.

    L is far from all but one follower, which is near everyone: the write is on that log only while
    whole reads pass. None is stale, because an acknowledged write is on a log of every quorum.
    """
    rtt = np.full((5, 5), 0.5)
    rtt[0, 2:] = rtt[2:, 0] = 10.0
    cluster = RaftCluster(rtt=rtt, visibility=Visibility.LOG)
    run = simulate(cluster, CONTENDED, UniformQuorum(0.0), operations=10_000, seed=9)
    assert run.violations.stale == 0
    assert run.violations.backwards > 0


def test_long_intents_make_retries():
    """At one contention, retries come with the life of intents."""
    workload = ReadWorkload(clients=30, hot_share=0.8, hot_fraction=0.01, keys=20_000)
    attempts = [
        simulate(
            RaftCluster(intent_ms=life, visibility=Visibility.LOG),
            workload,
            UniformQuorum(X),
            strong=True,
            operations=6_000,
            seed=11,
        ).mean_attempts
        for life in (0.0, 50.0, 500.0)
    ]
    assert attempts[0] - 1 < 0.01
    assert attempts[0] < attempts[1] < attempts[2]
    assert attempts[2] - 1 > 10 * (attempts[0] - 1)


def test_machine_is_first_come_first_served():
    rng = np.random.default_rng(13)
    machine = Machine(3)
    arrivals = np.cumsum(rng.exponential(1, 500))
    work = rng.exponential(2.5, 500)
    free, ends = [0.0] * 3, []
    for now, need in zip(arrivals, work, strict=True):
        start = max(now, heapq.heappop(free))
        heapq.heappush(free, start + need)
        ends.append(start + need)
        assert machine.visit(now, need) == ends[-1]
    assert machine.busy == pytest.approx(work.sum())


def test_what_a_replica_shows():
    for strong, visibility, expected in (
        (False, Visibility.APPLIED, [(0, True), (0, True), (1, True)]),
        (False, Visibility.LOG, [(1, True), (1, True), (1, True)]),
        (True, Visibility.APPLIED, [(0, True), (1, False), (1, True)]),
        (True, Visibility.LOG, [(1, False), (1, False), (1, True)]),
    ):
        replicas = Replicas(3, 0, visibility, strong)
        entry = replicas.append(7, 1.0)
        entry.appended[1], entry.intent[1], entry.value[1], entry.applied = 2.0, 4.0, 6.0, 5.0
        assert [replicas.see(1, 7, t) for t in (3.0, 5.0, 7.0)] == expected
        assert [replicas.see(0, 7, t) for t in (4.9, 5.0)] == [(0, True), (1, True)]
        assert replicas.see(2, 7, 100.0) == (0, True)
        assert replicas.see(1, 8, 100.0) == (0, True)


def test_only_writes_only_reads_one_operation():
    writes = simulate(RaftCluster(), ReadWorkload(read_share=0), UniformQuorum(X), operations=500)
    assert writes.read_latency.n == 0
    assert math.isnan(writes.mean_attempts)
    reads = simulate(RaftCluster(), ReadWorkload(read_share=1), UniformQuorum(X), operations=500)
    assert math.isnan(reads.write_latency.mean)
    one = simulate(RaftCluster(), ReadWorkload(), UniformQuorum(X), operations=1, warm_up=0)
    assert len(one.history) == 1
    assert math.isnan(one.throughput)


class Nonsense(ReadRule):
    label = "nonsense"

    def start(self, nodes, leader, rng):
        return lambda gateway: (0, 1)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: simulate(RaftCluster(), ReadWorkload(), Nonsense(), operations=5), "rule"),
        (lambda: simulate(RaftCluster(), ReadWorkload(), Local(), warm_up=1.0), "warm_up"),
        (lambda: simulate(RaftCluster(), ReadWorkload(), Local(), operations=0), "operations"),
        (lambda: simulate(RaftCluster(), ReadWorkload(), Local(), seed=-1), "seed"),
        (lambda: RaftCluster(nodes=2), "nodes"),
        (lambda: RaftCluster(leader=5), "leader"),
        (lambda: RaftCluster(cores=0), "cores"),
        (lambda: RaftCluster(read_ms=float("nan")), "read_ms"),
        (lambda: RaftCluster(rtt=np.ones((4, 4))), "rtt"),
        (lambda: ReadWorkload(read_share=1.2), "read_share"),
        (lambda: ReadWorkload(hot_share=0.5), "hot_fraction"),
        (lambda: ReadWorkload(gateways=(0, 0, 0, 0, 0)).gateway_shares(5), "gateways"),
        (lambda: ReadWorkload(gateways=(1, 1)).gateway_shares(5), "gateways"),
    ],
)
def test_bad_input(call, field):
    with pytest.raises(InputError, match=field):
        call()

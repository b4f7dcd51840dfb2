"""The simulator and its elections against theory and hand work; the checker of histories."""

from __future__ import annotations

import dataclasses
import heapq
import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.online import reads as online_reads
from heuristics.online.reads import LeaseHolder, Local, UniformQuorum
from placement.errors import InputError
from placement.online.reads import (
    FromStrategy,
    HistoryEntry,
    RaftCluster,
    ReadProblem,
    ReadRule,
    ReadStrategy,
    ReadWorkload,
    Visibility,
    bottleneck,
    check,
    evaluate,
    simulate,
)
from placement.online.reads.elections import (
    ElectionSettings,
    ReadPath,
    _ElectionSimulation,
    simulate_elections,
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


CONTENDED = ReadWorkload(clients=30, keys=50, read_share=0.7)


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


def linearizable(history) -> bool:
    """Try every order that respects precedence; a register that counts its writes explains it."""
    for order in permutations(history):
        place = {id(op): i for i, op in enumerate(order)}
        if any(
            a.end <= b.start and place[id(a)] > place[id(b)]
            for a in history
            for b in history
            if a is not b
        ):
            continue
        value = 0
        for op in order:
            if op.read and op.version != value:
                break
            if not op.read:
                if op.version != value + 1:
                    break
                value += 1
        else:
            return True
    return False


@st.composite
def histories(draw):
    """Up to five operations; the writes carry 1, 2, … in some order of their starts or not."""
    count = draw(st.integers(1, 5))
    writes = draw(st.integers(0, min(3, count)))
    versions = draw(st.permutations(range(1, writes + 1)))
    made = []
    for i in range(count):
        start = draw(st.integers(0, 8))
        end = start + draw(st.integers(1, 5))
        read = i >= writes
        version = draw(st.integers(0, writes)) if read else versions[i]
        made.append(HistoryEntry(0, read, start, end, version))
    return made


@given(histories())
def test_equals_the_definition(history):
    assert check(history).linearizable == linearizable(history)


def test_kinds():
    write = HistoryEntry(1, False, 0, 2, 1)
    assert check([write, HistoryEntry(1, True, 2, 3, 0)]).stale == 1
    assert check([write, HistoryEntry(1, True, 1.9, 3, 0)]).linearizable
    assert check([write, HistoryEntry(2, True, 5, 6, 0)]).linearizable  # another key
    seen = [HistoryEntry(1, True, 0.2, 0.5, 1), HistoryEntry(1, True, 0.6, 0.9, 0)]
    found = check([write, *seen])
    assert (found.stale, found.backwards, found.total) == (0, 1, 1)
    assert found.examples[0].operation is seen[1]
    assert check([HistoryEntry(1, True, 0, 1, 1), HistoryEntry(1, False, 2, 3, 1)]).phantom == 1
    assert check([HistoryEntry(1, True, 0, 1, 7)]).phantom == 1
    late = HistoryEntry(1, False, 5, 6, 1)
    assert check([HistoryEntry(1, False, 0, 1, 2), late]).disorder == 1


def test_unanswered_operations():
    never = float("inf")
    write = HistoryEntry(0, False, 0, never, 1)
    assert check(
        [write, HistoryEntry(0, True, 5, 6, 0), HistoryEntry(0, True, 7, 8, 1)]
    ).linearizable
    assert (
        check([write, HistoryEntry(0, True, 5, 6, 1), HistoryEntry(0, True, 7, 8, 0)]).backwards
        == 1
    )
    assert check([HistoryEntry(0, True, 0, never, 9)]).reads == 0
    assert check([]).linearizable


def test_operations_without_duration():
    assert check([HistoryEntry(0, False, 1, 1, 1), HistoryEntry(0, True, 1, 1, 1)]).linearizable


@pytest.mark.parametrize("seed", range(5))
def test_long_histories_of_one_register(seed):
    """Operations that take effect at one instant within their span are never blamed."""
    rng = np.random.default_rng(seed)
    count = 3000
    instant = np.sort(rng.uniform(0, 1000, count))
    kinds, keys = rng.random(count) < 0.7, rng.integers(0, 5, count)
    before, after = rng.exponential(5, (2, count))
    value = [0] * 5
    history = []
    for t, read, key, early, late in zip(instant, kinds, keys, before, after, strict=True):
        value[key] += not read
        history.append(HistoryEntry(int(key), bool(read), t - early, t + late, value[key]))
    assert check(history).linearizable
    # Shift one read's answer back by two versions after its key was written long before.
    broken = max(range(count), key=lambda i: history[i].version if kinds[i] else -1)
    op = history[broken]
    history[broken] = HistoryEntry(op.key, True, op.start, op.end, op.version - 10)
    assert check(history).stale == 1


ADVERSE = ElectionSettings(duration_ms=3000.0, crashes=3.0, cuts=2.0, cut_ms=300.0, down_ms=50.0)
QUIET = ElectionSettings(
    duration_ms=60_000.0, crashes=0.0, slow=0.0, writes=20.0, heartbeat_ms=100.0
)


@pytest.mark.parametrize("path", [ReadPath.LEASEHOLDER, ReadPath.STRONG])
@pytest.mark.parametrize("seed", seeds(3, 30))
def test_strong_reads_stay_linearizable_across_elections(path, seed):
    rng = np.random.default_rng([19, seed])
    settings = dataclasses.replace(
        ADVERSE,
        path=path,
        nodes=int(rng.integers(3, 8)),
        keys=int(rng.integers(1, 4)),
        loss=float(rng.choice([0.0, 0.2])),
        drift=float(rng.choice([0.0, 0.1])),
        crash_any=bool(rng.integers(2)),
        lag_ms=float(rng.choice([0.0, 10.0])),
        heartbeat_ms=float(rng.choice([10.0, 60.0])),
    )
    assert settings.safe
    run = simulate_elections(settings, seed)
    assert run.terms > 1
    assert run.violations.reads > 100
    assert run.violations.linearizable, run.violations.examples


BUSY = {"nodes": 3, "down_ms": 5.0, "crash_any": True, "reads": 1000.0, "crashes": 20.0,
        "heartbeat_ms": 80.0, "writes": 40.0, "cuts": 3.0, "cut_ms": 200.0,
        "duration_ms": 4000.0}  # fmt: skip


@pytest.mark.parametrize(
    ("plain", "change", "seed"),
    [
        (ADVERSE, {"lease": False}, 3),
        (dataclasses.replace(ADVERSE, lag_ms=10.0), {"own_entry": False}, 0),
        (BUSY, {"patient": False}, 5),
        (ADVERSE, {"persist": False, "crash_any": True, "crashes": 20.0}, 0),
        ({"cuts": 3.0, "crashes": 0.0, "reads": 400.0, "duration_ms": 5000.0}, {"drift": 0.8}, 0),
        (ADVERSE, {"path": ReadPath.LOCAL}, 0),
        (ADVERSE, {"path": ReadPath.APPLIED}, 0),
        (dataclasses.replace(ADVERSE, duration_ms=8000.0), {"path": ReadPath.LOG}, 0),
    ],
)
def test_the_checker_finds_what_each_assumption_prevents(plain, change, seed):
    """Equal requests and faults without one of the safeguards give a violation."""
    safe = ElectionSettings(**plain) if isinstance(plain, dict) else plain
    assert simulate_elections(safe, seed).violations.linearizable
    unsafe = dataclasses.replace(safe, **change)
    assert unsafe.safe is (set(change) == {"path"})
    assert not simulate_elections(unsafe, seed).violations.linearizable


def test_latencies_without_faults_by_hand():
    """Without faults a read of the leader is one way and back, and none at the leader itself."""
    run = simulate_elections(QUIET, 1)
    assert run.terms == 1
    mean = {
        read: np.mean([o.end - o.start for o in run.history if o.read is read and o.start > 1000])
        for read in (True, False)
    }
    assert mean[True] == pytest.approx(0.8 * 2.0, rel=0.05)
    # A write: to the leader, the second of four answers, a lag, and back.
    rng = np.random.default_rng(1)
    trips = np.sort(rng.exponential(1.0, (4, 100_000, 2)).sum(axis=2), axis=0)[1].mean()
    assert mean[False] == pytest.approx(1.6 + trips + 1.0, rel=0.05)


@pytest.mark.parametrize("seed", seeds(4, 40))
def test_logs_of_all_nodes_agree_as_far_as_they_are_committed(seed):
    elected = []

    class Watched(_ElectionSimulation):
        def append(self, number, entry):
            if entry.key < 0:
                elected.append(entry.term)
            super().append(number, entry)

    settings = dataclasses.replace(ADVERSE, loss=0.2, crash_any=True, crashes=8.0, drift=0.5)
    run = Watched(settings, np.random.SeedSequence(seed))
    run.go()
    assert len(elected) == len(set(elected)) == run.terms > 2
    logs = [node.log[: node.commit] for node in run.nodes]
    longest = max(logs, key=len)
    assert len(longest) > 20
    for log, node in zip(logs, run.nodes, strict=True):
        assert all(mine is theirs for mine, theirs in zip(log, longest, strict=False))
        assert node.applied <= node.commit <= len(node.log)
        terms = [entry.term for entry in node.log]
        assert terms == sorted(terms)
    acked = {id(each) for each in run.requests if not each.read and math.isfinite(each.end)}
    assert acked <= {id(entry.write) for entry in longest}


def test_heartbeats_come_before_elections():
    with pytest.raises(InputError, match="heartbeat_ms"):
        ElectionSettings(heartbeat_ms=150.0)


@pytest.mark.parametrize("suite", sorted(online_reads.SUITES))
def test_a_cell_of_every_suite(suite):
    *_, cell = online_reads.SUITES[suite]()
    row = cell.run(0, 300)
    assert ("suite", *row) == online_reads.COLUMNS
    assert float(row["throughput"]) > 0


def test_common_random_numbers():
    first, second, *_ = online_reads.SUITES["clients"]()
    assert first.run(1, 300)["reads"] == second.run(1, 300)["reads"]

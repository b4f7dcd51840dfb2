"""The simulator: queueing theory, invariants, and both engines to the last bit."""

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heuristics.online.selection.blind_policies import RandomChoice
from heuristics.online.selection.c3 import C3
from heuristics.online.selection.dynamic_snitch import DynamicSnitch
from heuristics.online.selection.least_outstanding import LeastOutstanding
from heuristics.online.selection.oracle_policies import EarliestCompletion, Oracle
from heuristics.online.selection.response_times import WeightedResponseTime
from heuristics.online.selection.run_policy import compiled_available, described, run
from placement.errors import InputError, SolverError
from placement.online.selection import (
    Hedged,
    LimiterRules,
    LoadGenerators,
    ServerCluster,
    draw,
    server_load,
    simulate,
    time_line,
)
from tests.effort import examples
from tests.online.selection.worlds import ALL, COMPILED, paths, varied_paths

needs_kernel = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")


@needs_kernel
@settings(max_examples=examples(60))
@given(st.one_of(paths(), varied_paths()), st.sampled_from(COMPILED))
def test_both_engines_agree_to_the_last_bit(sample, policy):
    slow, fast = run(sample, policy, "python"), run(sample, policy, "compiled")
    for name in ("issued", "latency", "server", "start", "update"):
        assert np.array_equal(getattr(slow, name), getattr(fast, name)), name
    for name in ("policy", "end_ms", "tries", "refused", "events", "hedged"):
        assert getattr(slow, name) == getattr(fast, name), name


@needs_kernel
def test_both_engines_agree_when_the_limiter_is_busy():
    sample = draw(ServerCluster(clients=10, requests=15_000, arrivals="grid"), 4)
    for policy in (C3(), C3(limiter=LimiterRules(wake="strict"))):
        slow, fast = run(sample, policy, "python"), run(sample, policy, "compiled")
        assert fast.refused > 1000
        assert np.array_equal(slow.latency, fast.latency)


@needs_kernel
def test_both_engines_agree_on_snitching_with_full_samples_that_are_cleared():
    sample = draw(ServerCluster(9, 2, 3, 4, requests=6000, rtt_ms=((0.5, 1.0, 2.0) * 3,) * 4), 3)
    for policy in (
        DynamicSnitch(reset_ms=150.0, size=10),
        DynamicSnitch(badness=0.0, size=7, decay=20.0),
        Hedged(DynamicSnitch(update_ms=30.0)),
    ):
        slow, fast = run(sample, policy, "python"), run(sample, policy, "compiled")
        assert np.array_equal(slow.latency, fast.latency)
        assert np.array_equal(slow.server, fast.server)
        assert slow.events == fast.events


@pytest.mark.parametrize("engine", ["python", pytest.param("compiled", marks=needs_kernel)])
def test_a_wait_that_rounding_swallows_still_ends(engine):
    """After 1e9 ms the time to a token may be below the spacing of floats: both engines spun."""
    sample = draw(ServerCluster(3, clients=1, requests=400), 0)
    late = dataclasses.replace(sample, arrival=sample.arrival + 1e9)
    rules = LimiterRules(wake="strict", rate=0.3, tokens=1.0)
    assert np.isfinite(run(late, C3(tie="ring", limiter=rules), engine).latency).all()


INTERRUPTED = """
import os, signal, threading, time
from heuristics.online.selection.least_outstanding import LeastOutstanding
from heuristics.online.selection.run_policy import run
from placement.online.selection import ServerCluster, draw

signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent process ignores
path = draw(ServerCluster(requests=4_000_000), 1)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
began = time.process_time()
try:
    run(path, LeastOutstanding(), "compiled")
except KeyboardInterrupt:
    print("interrupted", time.process_time() - began)
"""


@needs_kernel
def test_the_kernel_answers_an_interrupt():
    """In a process of its own, so that a signal that came late would interrupt nothing else."""
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300, cwd=root
    )
    assert done.returncode == 0, done.stderr
    said, seconds = done.stdout.split()
    assert said == "interrupted"
    assert float(seconds) < 1.0  # the whole run takes 3 s or more


def replay(sample, outcome):
    """Independent of the event loop: serve every server's reads in the order of their starts.

    For runs whose operations go to one server each.
    """
    cluster = sample.cluster
    way = cluster.one_way
    for server in range(cluster.servers):
        reads = np.flatnonzero(outcome.server == server)
        free = [0.0] * cluster.slots
        for read in sorted(reads, key=lambda r: (outcome.start[r], r)):
            slot = free.index(min(free))
            begin = outcome.start[read]
            assert begin >= free[slot] - 1e-9, "more in service than slots"
            epoch = int(begin // cluster.epoch_ms) if math.isfinite(cluster.epoch_ms) else 0
            service = sample.work[read] * sample.means[epoch % len(sample.means), server]
            free[slot] = begin + service
            flow = begin + service + way[sample.client[read], server] - outcome.issued[read]
            assert outcome.latency[read] == pytest.approx(flow, rel=1e-9)


@settings(max_examples=examples(60))
@given(paths(), st.sampled_from(ALL))
def test_what_every_outcome_obeys(sample, policy):
    outcome = run(sample, policy)
    cluster = sample.cluster
    assert np.isfinite(outcome.latency).all()
    groups = cluster.groups[sample.group]
    assert (groups == outcome.server[:, np.newaxis]).any(axis=1).all()
    assert (outcome.start - sample.arrival >= cluster.one_way_ms - 1e-9).all()
    if outcome.hedged:  # a duplicate has work of its own
        return
    least = sample.work * cluster.fast_ms + 2 * cluster.one_way_ms
    assert (outcome.latency >= least * (1 - 1e-12) - 1e-9).all()
    assert 0 <= outcome.refused <= outcome.tries
    assert (outcome.tries == 0) == (policy.limiter is None or sample.size == 0)
    if not sample.shadowed.any():
        replay(sample, outcome)


@settings(max_examples=examples(60))
@given(varied_paths(), st.sampled_from(ALL))
def test_what_every_outcome_with_inputs_of_its_own_obeys(sample, policy):
    """Groups, RTTs, speeds, record sizes, updates, closed loops, duplicates."""
    outcome, cluster = run(sample, policy), sample.cluster
    assert np.isfinite(outcome.latency).all()
    groups = cluster.groups[sample.group]
    assert (groups == outcome.server[:, np.newaxis]).any(axis=1).all()
    assert (outcome.hedged > 0) <= isinstance(policy, Hedged)
    shares = np.array([each.update_share for each in cluster.closed] or [cluster.update_share])
    assert (outcome.update >= (sample.mix < shares.min())).all()
    assert (outcome.update <= (sample.mix < shares.max())).all()
    way = cluster.one_way[sample.client]
    least = 2 * np.take_along_axis(way, groups, axis=1).min(axis=1)
    assert (outcome.latency >= least - 1e-9).all()
    alone = ~outcome.update & ~sample.shadowed
    here = np.take_along_axis(way, outcome.server[:, np.newaxis], axis=1)[:, 0]
    assert (outcome.start - outcome.issued >= here - 1e-9).all()
    load = server_load(outcome, 10.0)
    assert load.sum() == (~outcome.update & (outcome.start < 10.0 * len(load))).sum()
    line = time_line(outcome, 10.0)
    assert line.count.sum() == (~outcome.update).sum()
    assert (line.median <= line.p99).sum() == (line.count > 0).sum()
    if alone.all() and not outcome.hedged:
        replay(sample, outcome)
    if cluster.closed:
        joined = sum(each.count for each in cluster.closed)
        ends = outcome.issued + outcome.latency
        for now in outcome.issued[:: max(1, sample.size // 7)]:
            busy = (outcome.issued <= now) & (ends > now)
            assert busy.sum() <= joined
    else:
        assert np.array_equal(outcome.issued, sample.arrival)


def test_a_geography_worked_by_hand():
    """A far client's read is overtaken on its way by one that was sent later from nearby."""
    cluster = ServerCluster(
        1, 1, 1, 2, requests=2, fluctuation=1.0, shadow=0.0, slow_ms=4.0, slowness=(2.0,),
        rtt_ms=((20.0,), (2.0,)),
    )  # fmt: skip
    sample = dataclasses.replace(
        draw(cluster, 0),
        arrival=np.array([0.0, 3.0]),
        client=np.array([0, 1]),
        work=np.array([1.0, 1.0]),
    )
    for engine in ("python", "auto"):
        outcome = run(sample, LeastOutstanding(tie="ring"), engine)
        # The second reaches the server at 4 and takes 8 ms; the first comes at 10 and waits to 12.
        assert outcome.start.tolist() == [12.0, 4.0]
        assert outcome.latency.tolist() == [30.0, 10.0]


def test_an_update_and_a_duplicate_worked_by_hand():
    cluster = ServerCluster(
        2, 1, 2, 1, requests=2, fluctuation=1.0, one_way_ms=1.0, shadow=0.0,
        update_share=0.5, update_work=0.5,
    )  # fmt: skip
    sample = dataclasses.replace(
        draw(cluster, 0),
        arrival=np.array([0.0, 0.0]),
        group=np.array([0, 0]),
        work=np.array([4.0, 1.0]),
        shadow_work=np.array([[2.0], [0.25]]),
        mix=np.array([0.1, 0.9]),
        means=np.array([[4.0, 4.0]]),
    )
    policy = Hedged(LeastOutstanding(tie="ring"), initial_ms=4.0)
    for engine in ("python", "auto"):
        outcome = run(sample, policy, engine)
        # The update takes 8 ms at server 0 and 4 ms at server 1, where it is done at 5 + 1. The
        # read waits at server 0 until 9; its duplicate leaves at 4, is served from 5 to 6 ...
        assert outcome.update.tolist() == [True, False]
        assert outcome.latency.tolist() == [6.0, 7.0]
        assert outcome.server.tolist() == [1, 1]
        assert outcome.hedged == 1


def test_a_closed_loop_of_one_generator_is_one_operation_after_the_other():
    cluster = ServerCluster(1, 1, 1, 1, requests=50, shadow=0.0, closed=(LoadGenerators(1),))
    outcome = run(draw(cluster, 3), LeastOutstanding())
    assert outcome.issued[1:] == pytest.approx((outcome.issued + outcome.latency)[:-1])
    assert outcome.throughput == pytest.approx(1000 / outcome.latency.mean())


@settings(max_examples=examples(40))
@given(paths())
def test_the_clairvoyant_books_are_what_happens(sample):
    """ECTF predicts every end; if a prediction were off, so would be its books."""
    policy = EarliestCompletion(future=True)
    predicted = {}

    class Spy:
        name, limiter = "spy", None

        def start(self, path, servers):
            selector = policy.start(path, servers)
            plain = selector.sent

            def sent(number, read, client, server, now):
                predicted[number] = selector.end(servers.work_of(number), client, server, now)
                plain(number, read, client, server, now)

            selector.sent = sent
            return selector

    outcome = simulate(sample, Spy())
    for read in range(sample.size):
        end = sample.arrival[read] + outcome.latency[read] - sample.cluster.one_way_ms
        assert predicted[read] == pytest.approx(end, rel=1e-9, abs=1e-9)


def erlang_wait(servers, load, mean):
    """Mean wait of M/M/c by Erlang's C formula; load = arrival rate·mean."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last) * mean / (servers - load)


def test_one_server_is_an_m_m_4_queue():
    waits = []
    requests = 250_000 if compiled_available() else 40_000
    for seed in range(8):
        cluster = ServerCluster(
            1, 4, 1, 1, fluctuation=1.0, shadow=0.0, requests=requests, one_way_ms=0.25
        )
        sample = draw(cluster, seed)
        outcome = run(sample, RandomChoice(limiter=None))
        waits.append(float(np.mean(outcome.start - sample.arrival - 0.25)))
    expected = erlang_wait(4, 4 * 0.7, 4.0)
    assert np.mean(waits) == pytest.approx(expected, rel=0.02)


def test_a_path_worked_by_hand():
    """Two servers of one slot, both replicas of everything; three reads at the same instant."""
    cluster = ServerCluster(2, 1, 2, 1, requests=3, fluctuation=1.0, one_way_ms=1.0, shadow=0.0)
    sample = dataclasses.replace(
        draw(cluster, 0),
        arrival=np.array([0.0, 0.0, 2.0]),
        group=np.array([0, 0, 0]),
        client=np.zeros(3, dtype=np.intp),
        work=np.array([1.0, 2.0, 0.5]),
        means=np.array([[4.0, 4.0]]),
    )
    outcome = simulate(sample, LeastOutstanding(tie="ring"))
    # Read 0 to server 0 (4 ms), read 1 to server 1 (8 ms), read 2 ties: to server 0, starts at 5.
    assert outcome.server.tolist() == [0, 1, 0]
    assert outcome.start.tolist() == [1.0, 1.0, 5.0]
    assert outcome.latency.tolist() == [6.0, 10.0, 6.0]
    blind = simulate(sample, Oracle(tie="ring"))  # sees nothing of what is on the network
    assert blind.server.tolist() == [0, 0, 1]
    seeing = simulate(sample, Oracle(tie="ring", in_flight=True))
    assert seeing.server.tolist() == [0, 1, 0]


def test_the_oracle_knows_no_clients():
    few, many = (
        ServerCluster(clients=10, requests=20_000),
        ServerCluster(clients=300, requests=20_000),
    )
    # On the same path but for who asks; random ties come from the path as well.
    one = draw(few, 3)
    other = dataclasses.replace(one, cluster=many, client=draw(many, 3).client)
    for policy in (Oracle(), Oracle(in_flight=True), EarliestCompletion()):
        assert np.array_equal(run(one, policy).latency, run(other, policy).latency)


def test_copies_are_not_measured_but_take_room():
    cluster = ServerCluster(requests=20_000, shadow=1.0, utilisation=0.2)
    alone = run(draw(dataclasses.replace(cluster, shadow=0.0), 1), RandomChoice())
    crowded = run(draw(cluster, 1), RandomChoice())
    assert len(crowded.latency) == 20_000
    assert crowded.latencies().p99 > alone.latencies().p99
    assert crowded.events > 2 * alone.events


def test_no_reads_at_all():
    outcome = run(draw(ServerCluster(requests=0), 1), C3())
    assert outcome.latencies().n == 0
    assert math.isnan(outcome.throughput)
    assert outcome.refused_share == 0.0


def test_the_record_is_one_line():
    outcome = run(draw(ServerCluster(requests=300), 5), C3())
    row = json.loads(outcome.record(wall_s=0.5).to_json())
    assert row["policy"] == "C3"
    assert row["seed"] == 5
    assert row["n"] == 300
    assert row["p99"] == outcome.latencies().p99
    assert row["params"]["servers"] == 50
    assert row["extra"]["tries"] == outcome.tries


def test_a_server_outside_the_group_is_refused():
    class Lost:
        name, limiter = "lost", None

        def start(self, path, servers):
            class Selector:
                def rank(self, read, client, replicas, now):
                    return [(replicas[0] + 3) % 50]

            return Selector()

    with pytest.raises(SolverError, match="lost sends read 0"):
        simulate(draw(ServerCluster(requests=5), 1), Lost())


def test_only_known_policies_are_compiled():
    class Mine(C3):
        pass

    assert described(Mine(), 3) is None
    assert described(WeightedResponseTime(), 3) is None
    with pytest.raises(InputError, match="engine"):
        run(draw(ServerCluster(requests=5), 1), Mine(), "compiled")
    with pytest.raises(InputError, match="engine"):
        run(draw(ServerCluster(requests=5), 1), C3(), "fortran")

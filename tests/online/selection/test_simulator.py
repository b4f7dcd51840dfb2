"""The simulator and its samples: queueing theory, paths by hand, streams, decisions."""

import dataclasses
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heuristics.online.selection import (
    C3,
    DynamicSnitch,
    Hedged,
    LeastOutstanding,
    LeastResponseTime,
    LimiterRules,
    Oracle,
    WeightedResponseTime,
    run,
)
from placement.errors import InputError, UnsupportedError
from placement.online.selection import ServerCluster, draw, serve_in_order, server_load, time_line
from tests.cli.command import output_of
from tests.effort import examples
from tests.online.selection.worlds import ALL, c3_score, cubic, inflection_ms, paths, varied_paths


def test_a_wait_that_rounding_swallows_still_ends():
    """After 1e9 ms the time to a token may be below the spacing of floats: the loop spun."""
    sample = draw(ServerCluster(3, clients=1, requests=400), 0)
    late = dataclasses.replace(sample, arrival=sample.arrival + 1e9)
    rules = LimiterRules(wake="strict", rate=0.3, tokens=1.0)
    assert np.isfinite(run(late, C3(tie="ring", limiter=rules)).latency).all()


INTERRUPTED = """
import os, signal, threading, time
from heuristics.online.selection import LeastOutstanding, run
from placement.online.selection import ServerCluster, draw

signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the parent process ignores
path = draw(ServerCluster(requests=4_000_000), 1)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
began = time.process_time()
try:
    run(path, LeastOutstanding())
except KeyboardInterrupt:
    print("interrupted", time.process_time() - began)
"""


def test_the_kernel_answers_an_interrupt():
    said, seconds = output_of(INTERRUPTED).split()
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
    assert line["reads"].sum() == (~outcome.update).sum()
    assert (line["median"] <= line["p99"]).sum() == (line["reads"] > 0).sum()
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
    outcome = run(sample, policy)
    # The update takes 8 ms at server 0 and 4 ms at server 1, where it is done at 5 + 1. The
    # read waits at server 0 until 9; its duplicate leaves at 4, is served from 5 to 6 ...
    assert outcome.update.tolist() == [True, False]
    assert outcome.latency.tolist() == [6.0, 7.0]
    assert outcome.server.tolist() == [1, 1]
    assert outcome.hedged == 1


@settings(max_examples=examples(40))
@given(paths(), st.sampled_from(ALL))
def test_times_are_those_of_first_come_first_served(sample, policy):
    """Every start, copies in the way included, as the independent replay of the choices has it."""
    if policy.limiter is not None or isinstance(policy, Hedged):
        policy = LeastOutstanding()
    outcome = run(sample, policy)
    for _, begin, end, read in serve_in_order(sample, outcome.server):
        if read >= 0:
            assert outcome.start[read] == begin
            back = end + sample.cluster.one_way_ms
            assert outcome.latency[read] == pytest.approx(back - sample.arrival[read], rel=1e-12)


def knowledge(sample, outcome):
    """Yield (read, what its client knows of each replica of its group): from the run alone.

    Known of a server: outstanding requests, and the averages of queue, service, network after the
    answers so far, and the last response; None before the first.
    """
    cluster, way = sample.cluster, sample.cluster.one_way
    served = serve_in_order(sample, outcome.server)
    reach = sample.arrival + way[sample.client, outcome.server]
    events = []
    for server, begin, end, read in served:
        left = sum(
            reach[r] <= end and b > end for s, b, _, r in served if s == server and r != read
        )
        # Of reads that end at the same time the first to be done starts the next in line.
        events.append((end + way[sample.client[read], server], read, end - begin, left))
    events.sort(key=lambda each: each[0])
    known = {}
    outstanding = np.zeros((cluster.clients, cluster.servers), dtype=int)
    place = 0
    for read in range(sample.size):
        client, now = int(sample.client[read]), sample.arrival[read]
        while place < len(events) and events[place][0] < now:
            time, done, service, left = events[place]
            pair = int(sample.client[done]), int(outcome.server[done])
            outstanding[pair] -= 1
            response = time - sample.arrival[done]
            new = np.array([left, service, response - service])
            old = known.get(pair)
            blend = new if old is None else 0.9 * new + 0.1 * old[0]
            known[pair] = blend, response
            place += 1
        group = cluster.groups[sample.group[read]].tolist()
        yield read, [(s, outstanding[client, s], known.get((client, s))) for s in group]
        outstanding[client, outcome.server[read]] += 1


@pytest.mark.parametrize("epoch_ms", [5.0, 100.0])
@pytest.mark.parametrize(
    "policy",
    [
        C3(tie="ring", limiter=None),
        C3(tie="ring", limiter=None, exponent=1.0, weight=0.5),
        LeastOutstanding(tie="ring"),
        LeastResponseTime(tie="ring"),
    ],
    ids=["C3", "C3, b = 1", "LOR", "LRT"],
)
def test_choices_follow_from_what_the_client_has_heard(policy, epoch_ms):
    cluster = ServerCluster(4, 1, 3, 3, requests=400, epoch_ms=epoch_ms, shadow=0.0, one_way_ms=0.5)
    sample = draw(cluster, 2)
    outcome = run(sample, policy)
    for read, replicas in knowledge(sample, outcome):
        keys = []
        for _, outstanding, heard in replicas:
            if isinstance(policy, LeastOutstanding):
                keys.append(outstanding)
            elif heard is None:
                keys.append(0.0)
            elif isinstance(policy, LeastResponseTime):
                keys.append(heard[1])
            else:
                (queue, service, network), _ = heard
                weight = 3.0 if policy.weight is None else policy.weight
                keys.append(c3_score(outstanding, queue, service, network, weight=weight,
                                     exponent=policy.exponent))  # fmt: skip
        taken = [server for server, _, _ in replicas].index(outcome.server[read])
        assert keys[taken] <= min(keys) * (1 + 1e-9) + 1e-9, read


def test_the_score_by_hand():
    # q̂ = 1 + 2·150 + 3 = 304; (7 − 4) + 304³·4
    assert c3_score(2, 3, 4.0, 3.0, weight=150) == 3.0 + 304.0**3 * 4.0


@pytest.mark.parametrize(("exponent", "queue"), [(1.0, 100.0), (3.0, 20 * 5 ** (1 / 3))])
def test_servers_of_4_and_20_ms(exponent, queue):
    """The talk: a queue of 20 at 20 ms is as good as 100 at 4 ms, with the cube as about 35."""
    fast = c3_score(0, queue - 1, 4.0, 0.0, weight=0, exponent=exponent)
    assert fast == pytest.approx(c3_score(0, 19, 20.0, 0.0, weight=0, exponent=exponent))


def steady(**changes):
    """Reads of one client at three idle servers of constant speed, in the order of the ring."""
    cluster = ServerCluster(
        3, 50, 3, 1, **{"requests": 600, "slowness": (4.0, 2.0, 1.0)} | changes, shadow=0.0,
        fluctuation=1.0, slow_ms=1.0, one_way_ms=0.0, group_servers=((0, 1, 2),), utilisation=0.01,
    )  # fmt: skip
    sample = draw(cluster, 1)
    return dataclasses.replace(sample, work=np.ones(sample.size))


def counts(sample, policy, *, after=0.0):
    outcome = run(sample, policy)
    late = sample.arrival >= after
    return [int((outcome.server[late] == server).sum()) for server in range(3)]


def test_dynamic_snitching_keeps_the_static_order_until_it_is_bad_enough():
    sample = steady()
    first = run(sample, DynamicSnitch()).server[sample.arrival < 100.0]
    assert (first == 0).all()  # nothing was scored yet: the first of the group
    assert counts(sample, DynamicSnitch(), after=300.0)[:2] == [0, 0]
    close = steady(slowness=(1.05, 1.0, 2.0))
    # Servers never heard from have score 0: all are tried, then 5 % is no reason to change.
    assert counts(close, DynamicSnitch(), after=400.0)[1:] == [0, 0]
    assert counts(close, DynamicSnitch(badness=0.0), after=400.0)[0] == 0


def test_dynamic_snitching_clears_its_samples():
    sample = steady()
    cleared = DynamicSnitch(update_ms=10.0, reset_ms=200.0)
    assert counts(sample, cleared, after=190.0)[0] > 0
    assert counts(sample, DynamicSnitch(update_ms=10.0), after=190.0)[0] == 0


def test_weighted_by_response_time_prefers_fast_replicas():
    sample = steady(requests=6000)
    shares = np.array(counts(sample, WeightedResponseTime())) / 6000
    assert shares == pytest.approx([1 / 7, 2 / 7, 4 / 7], abs=0.03)


RULES = LimiterRules()


def test_the_cubic_by_hand():
    assert inflection_ms(RULES, 10.0) == pytest.approx(79.37, abs=0.01)
    centre = inflection_ms(RULES, 20.0)
    assert centre == pytest.approx(100.0, abs=1e-9)
    for offset, inside in ((-50.0, True), (50.0, True), (-51.0, False), (51.0, False)):
        off = abs(cubic(RULES, 20.0, centre + offset) - 20.0)
        assert (off <= 0.5 + 1e-12) is inside
    assert cubic(RULES, 10.0, 0.0) == pytest.approx(8.0)  # the decrease goes to 2.0


def held_back(arrivals, rules, *, clients=None, answer_ms=1.0, shadowed=()):
    """When reads of one client to one server are sent, by the start of their service."""
    copies = 2 if len(shadowed) else 1
    cluster = ServerCluster(
        copies, 1000, copies, 1, requests=len(arrivals), fluctuation=1.0, one_way_ms=0.0,
        shadow=0.0, slow_ms=1.0, group_servers=(tuple(range(copies)),),
    )  # fmt: skip
    sample = draw(cluster, 0)
    n = len(arrivals)
    sample = dataclasses.replace(
        sample,
        arrival=np.array(arrivals, dtype=float),
        work=np.full(n, answer_ms),
        shadowed=np.isin(np.arange(n), list(shadowed)),
        shadow_work=np.full((n, copies - 1), 1e9),
    )
    outcome = run(sample, LeastOutstanding(tie="ring", limiter=rules))
    return outcome.start.tolist()


def test_the_bucket():
    """Two tokens at once, then one per 2 ms; a full bucket holds three."""
    rules = LimiterRules(rate=10.0, tokens=2.0, capacity=3.0, wake="strict")
    sent = held_back([0, 0, 0, 1000, 1000, 1000, 1000], rules, answer_ms=1e6)
    assert sent == pytest.approx([0, 0, 2, 1000, 1000, 1000, 1002], abs=1e-6)


def test_waking_sets_one_token_or_mints_none():
    """The waking backlog finds a token under both rules; after a mint the credit begins anew."""
    for wake in ("absim", "strict"):
        rules = LimiterRules(rate=10.0, tokens=0.0, wake=wake)
        assert held_back([0, 0, 0], rules, answer_ms=1e6) == pytest.approx([2, 4, 6], abs=1e-6)


def test_a_copy_is_charged_to_the_count_as_it_stands():
    """Without a refill and without a new start of the time that the next grant credits."""
    rules = LimiterRules(rate=10.0, tokens=2.0, capacity=10.0, wake="strict")
    # The read of 0 takes a token of server 0 and charges one of server 1 for its copy.
    sent = held_back([0, 0, 0, 0], rules, answer_ms=1e6, shadowed=(0,))
    assert sent == pytest.approx([0, 0, 0, 2], abs=1e-6)


def test_the_rate_falls_to_a_fifth_and_jumps_to_the_curve():
    """Three answers in the first window: 0.3 received, 0.27 at 50 ms, below the rate of 0.5."""
    rules = LimiterRules(rate=0.5, tokens=3.0, saddle=0.5, wake="strict")
    # 0.225 tokens are left at 49; the answer at 50 finds 40 ms without an increase: 0.1.
    fallen = held_back([0, 1, 2, 49, 60], rules)
    assert fallen[-1] == pytest.approx(49 + 0.775 * 20 / 0.1)
    # With one token more, an answer at 50.5 finds 0.1 < 0.27: up to the curve, 4/5 of R0 at least.
    rules = dataclasses.replace(rules, tokens=4.0)
    jumped = held_back([0, 1, 2, 49, 49.5, 60], rules)
    rate = cubic(rules, 0.5, 0.5)
    assert rate > 0.4
    assert jumped[-1] == pytest.approx(49.5 + 0.7625 * 20 / rate)
    # A step is at most s_max.
    slow = held_back([0, 1, 2, 49, 49.5, 60], dataclasses.replace(rules, step=0.1))
    assert slow[-1] == pytest.approx(49.5 + 0.7625 * 20 / 0.2)


def test_forced_reads_are_refused_where_they_cannot_be():
    sample = draw(ServerCluster(requests=5), 1)
    outside = (sample.cluster.groups[sample.group][:, 0] + 3) % 50
    for policy, forced in (
        (LeastOutstanding(), outside),
        (LeastOutstanding(), np.zeros(4, dtype=int)),
        (C3(), np.full(5, -1)),
    ):
        with pytest.raises(InputError, match="forced"):
            run(sample, policy, forced=forced)


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "heuristics.online.selection._kernel", None)
    with pytest.raises(UnsupportedError, match="compiler"):
        run(draw(ServerCluster(requests=5), 1), C3())


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
    outcome = run(sample, LeastOutstanding(tie="ring"))
    # Read 0 to server 0 (4 ms), read 1 to server 1 (8 ms), read 2 ties: to server 0, starts at 5.
    assert outcome.server.tolist() == [0, 1, 0]
    assert outcome.start.tolist() == [1.0, 1.0, 5.0]
    assert outcome.latency.tolist() == [6.0, 10.0, 6.0]
    blind = run(sample, Oracle(tie="ring"))  # sees nothing of what is on the network
    assert blind.server.tolist() == [0, 0, 1]
    seeing = run(sample, Oracle(tie="ring", in_flight=True))
    assert seeing.server.tolist() == [0, 1, 0]


def test_no_reads_at_all():
    outcome = run(draw(ServerCluster(requests=0), 1), C3())
    assert outcome.latencies().n == 0
    assert math.isnan(outcome.throughput)
    assert outcome.refused_share == 0.0


def test_the_rate_of_the_published_simulation():
    cluster = ServerCluster(utilisation=0.45)
    assert cluster.arrivals_per_ms == pytest.approx(45.0)  # 100·utilisation
    assert [round(0.01 * u * ServerCluster().offered_load / 0.7, 3) for u in (45, 70, 80)] == [
        0.54,
        0.84,
        0.96,
    ]


@pytest.mark.parametrize("arrivals", ["grid", "poisson"])
def test_arrivals_have_the_rate_asked_for(arrivals):
    sample = draw(ServerCluster(requests=200_000, arrivals=arrivals), 0)
    # The sources of grid arrivals make equally many each, so that the end thins out.
    assert (sample.arrival < 1000.0).sum() == pytest.approx(70_000, rel=0.02)
    assert (np.diff(sample.arrival) >= 0).all()
    assert sample.means.shape[0] * 100.0 > sample.arrival[-1]


def test_grid_arrivals_burst_at_whole_milliseconds():
    sample = draw(ServerCluster(requests=10_000, arrivals="grid"), 0)
    assert np.array_equal(sample.arrival, np.floor(sample.arrival))
    assert (sample.arrival[:200] == 0).all()


def test_speeds_are_two_sided_coins():
    sample = draw(ServerCluster(requests=100_000, epoch_ms=1.0), 0)
    assert set(np.unique(sample.means)) == {4.0, 4.0 / 3.0}
    assert (sample.means == 4.0).mean() == pytest.approx(0.5, abs=0.01)


def test_heavy_clients_make_heavy_demand():
    """Heavy means that few make much: 20 % of the clients make 80 %, not the other way round."""
    cluster = ServerCluster(clients=100, heavy_clients=0.2, heavy_demand=0.8, requests=100_000)
    weights = cluster.client_weights
    assert weights.sum() == pytest.approx(100.0)
    assert weights[:20].sum() == pytest.approx(80.0)
    assert (draw(cluster, 0).client < 20).mean() == pytest.approx(0.8, abs=0.01)


def test_settings_share_what_they_can():
    """Speeds, work and copies are the same when only who asks, or how often, changes."""
    one, other = (
        draw(ServerCluster(requests=1000), 5),
        draw(ServerCluster(requests=1000, clients=7), 5),
    )
    assert np.array_equal(one.work, other.work)
    assert np.array_equal(one.means, other.means)
    assert np.array_equal(one.arrival, other.arrival)
    assert np.array_equal(one.shadowed, other.shadowed)


def test_epochs_repeat_after_the_last_one_drawn():
    sample = draw(ServerCluster(requests=100, epoch_ms=10.0), 0)
    far = sample.epochs * 10.0 + 5.0
    assert sample.mean_at(3, far) == sample.mean_at(3, 5.0)


def test_the_first_reads_alone():
    sample = draw(ServerCluster(requests=100, shadow=1.0), 0)
    cut = sample.first(30, plain_from=10)
    assert cut.size == 30
    assert cut.shadowed.tolist() == [True] * 10 + [False] * 20
    assert sample.shadowed.all()
    with pytest.raises(InputError, match="count"):
        sample.first(101)


def test_the_grid_is_exact():
    sample = draw(ServerCluster(requests=500, epoch_ms=50.0), 0).on_grid(128)
    for times in (sample.arrival, sample.work, sample.work[:, None] * sample.means[:1, :20]):
        assert np.array_equal(times * 128, np.rint(times * 128))
    assert set(np.unique(sample.means)) == {1.0, 3.0}
    assert sample.work.min() > 0


@pytest.mark.parametrize(
    ("changes", "ticks", "field"),
    [
        ({}, 100, "ticks_per_ms"),
        ({"one_way_ms": 0.1}, 128, "one_way_ms"),
        ({"epoch_ms": 33.3}, 128, "epoch_ms"),
        ({"fluctuation": 3.14159265}, 128, "fluctuation"),
    ],
)
def test_what_does_not_fit_the_grid(changes, ticks, field):
    sample = draw(dataclasses.replace(ServerCluster(requests=50), **changes), 0)
    with pytest.raises(InputError, match=field):
        sample.on_grid(ticks)


@pytest.mark.parametrize(("field", "value"), [("replication", 51), ("heavy_demand", 0.8)])
def test_fields_that_do_not_fit_together(field, value):
    with pytest.raises(InputError, match=field):
        ServerCluster(**{field: value})

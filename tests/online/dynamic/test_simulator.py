"""The whole system: rounds, copies, clients that learn, writes."""

import numpy as np
import pytest

from placement.errors import InputError
from placement.online import spawn_streams
from placement.online.dynamic import Geography, hot_set_world, six_sites
from placement.online.dynamic.store_demand import CAUSES, RequestWorkload, requests
from placement.online.dynamic.vote_counting import most_voted, vote_rates
from placement.online.dynamic.vote_simulator import (
    VoteCluster,
    VoteSettings,
    WriteForwarding,
    simulate,
    write_rtt,
)

pytest.importorskip("rbloom")


def world_of(seed=1, keys=3000):
    return hot_set_world(six_sites(), keys, spawn_streams(seed, CAUSES))


@pytest.fixture(scope="module")
def calm():
    """A minute without restarts."""
    workload = RequestWorkload(seconds=60, rate=400, restart_every=0, write_share=0.05)
    return simulate(world_of(), workload, VoteSettings(k=100), 1)


@pytest.fixture(scope="module")
def restarting():
    workload = RequestWorkload(seconds=105, rate=400)
    return simulate(world_of(), workload, VoteSettings(k=100), 1)


def test_writes_to_other_keys_wait_for_static_copies_alone(calm):
    workload = RequestWorkload(
        seconds=60, rate=400, restart_every=0, write_share=0.05, write_keys="other"
    )
    other = simulate(world_of(), workload, VoteSettings(k=100), 1)
    assert np.array_equal(other.read_ms, calm.read_ms)
    before, after = slice(0, at(calm, 12)), slice(at(calm, 12), None)
    assert np.array_equal(other.write_ms[before], calm.write_ms[before])
    assert (other.write_ms[after] <= calm.write_ms[after]).all()
    assert other.write_ms[after].mean() < calm.write_ms[after].mean()


def at(trace, seconds):
    return int(np.searchsorted(trace.time, seconds))


def test_nothing_happens_before_it_is_due(calm):
    """Complete at t + gossip = 12 s, known to clients from 2t = 20 s on."""
    assert (calm.active[: at(calm, 12)] == 0).all()
    assert (calm.active[at(calm, 12) :] > 0).all()
    assert np.isnan(calm.identified[: at(calm, 12)]).all()
    assert (calm.false_negative[: at(calm, 20)] == 0).all()
    assert calm.false_negative[at(calm, 20)] > 0.2
    early, late = calm.read_ms[: at(calm, 20)].mean(), calm.read_ms[at(calm, 24) :].mean()
    assert late < 0.6 * early


def test_active_copies_stay_above_k(calm):
    """Figure 4: the top-k are always there, and those in their grace period besides."""
    assert (calm.active[at(calm, 12) :] >= 100).all()
    assert calm.active[-1] > 100
    assert (calm.correct <= calm.active).all()


def test_clients_refresh_and_errors_fall(calm):
    """Right for 20 s, then wrong in a share s of reads: 5 % of all after 20·0.05/(s − 0.05) s."""
    spike = calm.false_negative[at(calm, 20)]
    assert spike > 0.2
    due = 20 * 0.05 / (spike - 0.05)
    assert due < 5
    assert calm.false_negative[at(calm, 20 + 0.5 * due)] > 0.8 * spike
    assert calm.false_negative[at(calm, 28) : at(calm, 30)].max() < 0.05
    assert calm.refreshes >= 12


def test_without_grace_the_list_is_what_is_left():
    """With g = 1, k copies after each deletion, at 20 s, 30 s, …; 2 s later new ones join."""
    workload = RequestWorkload(seconds=50, rate=200, restart_every=0)
    trace = simulate(world_of(), workload, VoteSettings(k=50, grace=1), 1)
    for deletion in (20, 30, 40):
        assert (trace.active[at(trace, deletion) : at(trace, deletion + 2)] == 50).all()
        assert (trace.active[at(trace, deletion + 2) : at(trace, deletion + 10)] > 50).all()


def test_restarts_break_and_mend(restarting):
    assert restarting.restarts == (30.0, 60.0, 90.0)
    for restart in restarting.restarts[:3]:
        here = at(restarting, restart)
        assert restarting.identified[here] < restarting.identified[here - 1]
        assert restarting.correct[here] < restarting.correct[here - 1]
        # 12 s later the next full round is complete
        assert restarting.identified[at(restarting, restart + 12.5)] > restarting.identified[here]


def test_votes_of_a_round_are_those_expected():
    """Counts of the first round, over their expectation, are what Poisson noise allows."""
    world = world_of(keys=40)
    cluster_votes = {}

    class Watched(VoteCluster):
        def _close(self):
            found = super()._close()
            cluster_votes[self._round] = found
            return found

    import placement.online.dynamic.vote_simulator as module

    original, module.VoteCluster = module.VoteCluster, Watched
    try:
        simulate(
            world,
            RequestWorkload(seconds=12, rate=400, restart_every=0),
            VoteSettings(k=5, counters=100),
            1,
        )
    finally:
        module.VoteCluster = original
    popular, votes = cluster_votes[0]
    problem = world.problem(5)
    expected = vote_rates(problem, problem.none) * 400 * 12 * 10
    assert (np.abs(votes - expected) <= 5 * np.sqrt(expected) + 5).all()
    for site, row in enumerate(votes):
        assert set(np.flatnonzero(popular[site])) == set(most_voted(row, 5).tolist())


def test_only_reads_vote():
    world = world_of()
    trace = simulate(
        world, RequestWorkload(seconds=25, rate=100, write_share=1.0), VoteSettings(k=20), 1
    )
    assert (trace.active == 0).all()
    assert np.isnan(trace.read_ms).all()
    assert np.isfinite(trace.write_ms).all()


def test_exact_lists_and_filters_differ_by_false_positives_only():
    workload = RequestWorkload(seconds=30, rate=200, restart_every=0)
    exact = simulate(world_of(), workload, VoteSettings(k=60, bloom_error=0), 1)
    coarse = simulate(world_of(), workload, VoteSettings(k=60, bloom_error=0.2), 1)
    assert exact.false_positive[: at(exact, 30)].sum() == 0
    assert coarse.false_positive.sum() > 0


def test_a_false_positive_is_relayed():
    """Worked by hand: local hop plus the way from there to the static copy."""
    geography = Geography(("a", "b"), [[1.0, 50.0], [50.0, 1.0]], ((0,), (1,)))
    for seed in range(6):
        world = hot_set_world(
            geography, 1, spawn_streams(seed, CAUSES), generators_per_site=1, nodes_per_site=1,
            static_copies=1,
        )  # fmt: skip
        # k = 1: the only key is copied, then round 1 and 2 are empty of explicit votes.
        trace = simulate(
            world, RequestWorkload(seconds=40, rate=20, restart_every=0), VoteSettings(k=1), seed
        )
        assert set(trace.reads[0].tolist()) <= {1.0, 50.0, 51.0}


def test_more_copies_make_writes_slower(calm):
    """Figure 7b: writes of votes are slower than those of the store without dynamic copies."""
    assert calm.write_ms[at(calm, 12) :].mean() > calm.write_ms[: at(calm, 12)].mean()


def test_write_latency_by_hand():
    rtt = np.array([[1.0, 10.0, 30.0], [10.0, 1.0, 25.0], [30.0, 25.0, 1.0]])
    held = np.array([[False], [True], [True]])
    closest = np.array([[1], [1], [2]])
    home, key = np.array([0, 1, 2]), np.zeros(3, dtype=np.intp)
    by = {f: write_rtt(rtt, closest, held, home, key, f).tolist() for f in WriteForwarding}
    assert by[WriteForwarding.ALL] == [35, 26, 26]
    assert by[WriteForwarding.SITES] == [35, 26, 31]


def test_requests_are_the_same_for_all_who_ask():
    world = world_of(keys=100)
    workload = RequestWorkload(seconds=61, rate=10, write_share=0.3)
    ticks = list(requests(world, workload, 5))
    again = list(requests(world, workload, 5))
    assert len(ticks) == 122
    for one, two in zip(ticks, again, strict=True):
        assert np.array_equal(one.key, two.key)
        assert np.array_equal(one.write, two.write)
    assert [t.restarted for t in ticks if t.restarted] == [(0,), (1,)]
    share = np.mean(np.concatenate([t.write for t in ticks]))
    assert share == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize(
    "make",
    [
        lambda: VoteSettings(k=0),
        lambda: VoteSettings(k=5, grace=0),
        lambda: VoteSettings(k=5, gossip_s=10.0),
        lambda: VoteSettings(k=5, round_s=float("nan")),
        lambda: RequestWorkload(write_share=1.5),
        lambda: RequestWorkload(seconds=0),
        lambda: simulate(
            world_of(keys=9), RequestWorkload(seconds=1, tick=11), VoteSettings(k=5), 1
        ),
        lambda: hot_set_world(six_sites(), 5, spawn_streams(1, CAUSES), correlation=2.0),
    ],
)
def test_bad_parameters_are_named(make):
    with pytest.raises(InputError):
        make()

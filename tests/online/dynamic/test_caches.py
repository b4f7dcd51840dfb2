"""Caches: each rule by hand, Belady against brute force, Che's approximation against simulation."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.online.dynamic.belady_min import most_hits
from heuristics.online.dynamic.caches import NAMES, cache_maker
from placement.errors import InputError
from placement.online import spawn_streams
from placement.online.dynamic import Geography, hot_set_world, six_sites
from placement.online.dynamic.cache_simulator import accesses, simulate_caches
from placement.online.dynamic.store_demand import CAUSES, RequestWorkload
from placement.online.dynamic.vote_simulator import WriteForwarding
from placement.online.simulation import zipf

events = st.lists(st.integers(-4, 3), max_size=9).map(lambda x: np.array(x, dtype=np.intp))


def made(name, room, seed=0):
    return cache_maker(name, np.random.default_rng(seed))(room)


def replay(cache, stream):
    """Hits of a cache on a stream of keys, −key − 1 for a write."""
    hits = 0
    for event in stream:
        if event < 0:
            cache.evict(-event - 1)
        else:
            hits += cache.read(event)
    return hits


@pytest.mark.parametrize(
    ("name", "stream", "hits"),
    [
        ("LRU", [1, 2, 1, 3, 1, 2], 2),  # 3 evicts 2
        ("MRU", [1, 2, 1, 3, 2, 1], 2),  # 3 evicts 1, then 2 hits, then 1 evicts 2
        ("MRU", [1, 2, 3, 1, 3], 2),  # 3 evicts 2, 1 stays for ever
        ("LRU", [1, 2, 3, 1, 3], 1),
        ("ARC", [1, 1, 2, 3, 4, 1], 2),  # a scan does not evict what was read twice
        ("LRU", [1, 1, 2, 3, 4, 1], 1),
    ],
)
def test_rules_by_hand(name, stream, hits):
    assert replay(made(name, 2), stream) == hits


@pytest.mark.parametrize("name", NAMES)
def test_no_room_holds_nothing_and_a_write_evicts(name):
    assert replay(made(name, 0), [1, 1, 1, -2, 1]) == 0
    assert replay(made(name, 3), [1, 1, -2, 1, 1]) == 2
    with pytest.raises(InputError, match="LFU"):
        cache_maker("LFU", np.random.default_rng(0))


def slow_arc(stream, c):
    """ARC of the FAST paper's Figure 4 with lists, LRU end first; returns the hits as booleans."""
    t1, t2, b1, b2, p, result = [], [], [], [], 0, []

    def replace(x):
        nonlocal t1, t2
        if t1 and ((x in b2 and len(t1) == p) or len(t1) > p):
            b1.append(t1.pop(0))
        else:
            b2.append(t2.pop(0))

    for x in stream:
        result.append(x in t1 or x in t2)
        if x in t1:
            t1.remove(x)
            t2.append(x)
        elif x in t2:
            t2.remove(x)
            t2.append(x)
        elif x in b1:
            p = min(c, p + max(len(b2) / len(b1), 1))
            replace(x)
            b1.remove(x)
            t2.append(x)
        elif x in b2:
            p = max(0, p - max(len(b1) / len(b2), 1))
            replace(x)
            b2.remove(x)
            t2.append(x)
        else:
            if len(t1) + len(b1) == c:
                if len(t1) < c:
                    b1.pop(0)
                    replace(x)
                else:
                    t1.pop(0)
            elif len(t1) + len(t2) + len(b1) + len(b2) >= c:
                if len(t1) + len(t2) + len(b1) + len(b2) == 2 * c:
                    b2.pop(0)
                replace(x)
            t1.append(x)
    return result


@given(st.lists(st.integers(0, 9), max_size=80), st.integers(1, 5))
def test_arc_is_the_published_pseudocode(stream, room):
    cache = made("ARC", room)
    assert [cache.read(key) for key in stream] == slow_arc(stream, room)
    assert len(cache) <= room


@given(st.lists(st.integers(-8, 7), max_size=80), st.integers(1, 5))
def test_arc_survives_evictions_from_outside(stream, room):
    cache = made("ARC", room)
    for event in stream:
        if event < 0:
            cache.evict(-event - 1)
            assert -event - 1 not in cache
        else:
            cache.read(event)
            assert event in cache
        assert len(cache) <= room


def best_by_search(stream, room):
    """Most hits over every choice of what to hold, by dynamic programming over held sets."""
    states = {frozenset(): 0}
    for event in stream:
        after = {}
        for held, hits in states.items():
            if event < 0:
                options = [(held - {-event - 1}, hits)]
            else:
                gained = hits + (event in held)
                pool = held | {event}
                options = [
                    (frozenset(kept), gained)
                    for size in range(min(room, len(pool)) + 1)
                    for kept in itertools.combinations(sorted(pool), size)
                ]
            for kept, value in options:
                after[kept] = max(after.get(kept, -1), value)
        states = after
    return max(states.values())


@settings(deadline=None)
@given(events, st.integers(0, 3))
def test_belady_is_the_best_there_is(stream, room):
    assert most_hits(stream, room) == best_by_search(stream.tolist(), room)


@given(st.lists(st.integers(-3, 12), max_size=150), st.integers(1, 6), st.integers(0, 99))
def test_no_cache_beats_belady(stream, room, seed):
    best = most_hits(np.array(stream, dtype=np.intp), room)
    for name in NAMES:
        assert replay(made(name, room, seed), stream) <= best


@pytest.mark.parametrize(
    ("name", "held"), [("LRU", lambda p: -np.expm1(-p)), ("RR", lambda p: p / (1 + p))]
)
def test_che_predicts_what_caches_do(name, held):
    """An object of rate p is held for a share of time that depends on p·T (Che, Tung, Wang 2002).

    T is such that the cache is full.
    """
    chances = zipf(2000)
    low, high = 0.0, 1e9
    for _ in range(100):
        window = (low + high) / 2
        low, high = (window, high) if held(chances * window).sum() < 100 else (low, window)
    rng = np.random.default_rng(1)
    stream = rng.choice(2000, 40_000, p=chances).tolist()
    cache = made(name, 100)
    replay(cache, stream[:10_000])
    share = replay(cache, stream[10_000:]) / 30_000
    assert share == pytest.approx(held(chances * high) @ chances, abs=0.012)


def world_of(seed=1, keys=2000):
    return hot_set_world(six_sites(), keys, spawn_streams(seed, CAUSES))


@pytest.fixture(scope="module")
def traces():
    world = world_of()
    workload = RequestWorkload(seconds=30, rate=100, write_share=0.05, restart_every=0)
    rng = np.random.default_rng(0)
    made = {name: simulate_caches(world, workload, cache_maker(name, rng), 64, 1) for name in NAMES}
    none = simulate_caches(world, workload, None, 64, 1, forwarding=WriteForwarding.ALL)
    return world, workload, made, none


def test_all_policies_see_the_same_reads(traces):
    _, _, made, none = traces
    assert {int(t.reads[1].sum()) for t in made.values()} == {int(none.reads[1].sum())}


def test_caches_come_in_the_order_of_figure_6(traces):
    _, _, made, none = traces
    mean = {name: np.average(t.reads[0], weights=t.reads[1]) for name, t in made.items()}
    before = np.average(none.reads[0], weights=none.reads[1])
    assert before > mean["MRU"] > mean["RR"] > mean["LRU"]
    assert abs(mean["ARC"] - mean["LRU"]) < 0.15 * mean["LRU"]


def test_writes_to_other_keys_evict_nothing(traces):
    """Figure 6 of the paper: hits are those of the reads alone, and Belady sees no writes."""
    world, workload, made, none = traces
    calm = dataclasses.replace(workload, write_keys="other")
    reads = [each[each >= 0] for each in accesses(world, workload, 1)]
    for alone, other in zip(reads, accesses(world, calm, 1), strict=True):
        assert np.array_equal(alone, other)
    for name in NAMES:
        rng = np.random.default_rng(0)
        trace = simulate_caches(
            world, calm, cache_maker(name, rng), 64, 1, forwarding=WriteForwarding.ALL
        )
        assert trace.write_ms == pytest.approx(none.write_ms, nan_ok=True)
        if name == "LRU":
            caches = [cache_maker("LRU", rng)(4) for _ in reads]
            hits = sum(replay(c, alone.tolist()) for c, alone in zip(caches, reads, strict=True))
            assert trace.hits == pytest.approx(hits / sum(map(len, reads)))
            assert trace.hits > made["LRU"].hits


def test_replay_of_what_nodes_see_is_the_simulation(traces):
    world, workload, made, _ = traces
    streams = accesses(world, workload, 1)
    hits = sum(replay(made_lru, a.tolist()) for a, made_lru in
               ((a, cache_maker("LRU", np.random.default_rng(0))(4)) for a in streams))  # fmt: skip
    reads = sum(int((a >= 0).sum()) for a in streams)
    assert hits / reads == pytest.approx(made["LRU"].hits, abs=1e-12)
    best = sum(most_hits(a, 4) for a in streams)
    assert best / reads > made["ARC"].hits


def test_caches_must_spread_evenly():
    with pytest.raises(InputError, match="multiple of 16"):
        simulate_caches(
            world_of(),
            RequestWorkload(seconds=1),
            cache_maker("LRU", np.random.default_rng(0)),
            65,
            1,
        )


def test_latencies_of_a_cache_worked_by_hand():
    """One key that is static elsewhere: first read local hop and far RTT, then local."""
    geography = Geography(("a", "b"), [[1.0, 50.0], [50.0, 1.0]], ((0,), (1,)))
    for seed in range(20):
        world = hot_set_world(
            geography, 1, spawn_streams(seed, CAUSES), generators_per_site=1, nodes_per_site=1,
            static_copies=1,
        )  # fmt: skip
        workload = RequestWorkload(seconds=5, rate=5, restart_every=0, tick=1)
        trace = simulate_caches(
            world, workload, cache_maker("LRU", np.random.default_rng(0)), 1, seed
        )
        values, counts = trace.reads
        assert set(values.tolist()) <= {1.0, 51.0}
        assert counts[values == 51.0].sum() == 1

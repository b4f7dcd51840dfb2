"""Own traces, other metrics than RTT, object sizes, nodes that miss a summary, slow copying."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from formulations.online.dynamic.lagrangean_method import solve_lagrangean
from heuristics.online.dynamic.vote_rounds import run_votes
from placement.errors import InputError
from placement.online import read_trace, spawn_streams
from placement.online.dynamic import (
    Geography,
    ReplicationProblem,
    evaluate,
    hot_set_world,
    six_sites,
)
from placement.online.dynamic.cache_simulator import simulate_caches
from placement.online.dynamic.copy_lifecycle import CopySet
from placement.online.dynamic.request_traffic import CAUSES, RequestWorkload, requests
from placement.online.dynamic.simulator import simulate, simulate_trace
from placement.online.dynamic.trace_traffic import TraceClients, trace_ticks, trace_world
from placement.online.dynamic.vote_servers import VoteSettings
from placement.online.request_trace import RequestTrace
from tests.effort import seeds

pytest.importorskip("rbloom")

CALM = RequestWorkload(seconds=45, rate=200, restart_every=0, write_share=0.05)
SETTINGS = VoteSettings(k=40)


def world_of(seed=1, keys=700, geography=None):
    return hot_set_world(geography or six_sites(), keys, spawn_streams(seed, CAUSES))


def as_trace(world, workload, seed):
    """Write the generated requests down, each in the middle of its tick."""
    ticks = list(requests(world, workload, seed))
    time = np.concatenate([np.full(len(t.key), 1000 * (t.start + 0.25)) for t in ticks])
    generator, key, write = (
        np.concatenate([getattr(t, name) for t in ticks]) for name in ("generator", "key", "write")
    )
    clients = tuple(f"g{i}" for i in range(len(world.generators.site)))
    keys = tuple(map(str, range(len(world.keys))))
    size = np.ones(len(key))
    return RequestTrace("here", time, clients, generator, keys, key, None, size, write)


def test_a_trace_of_generated_requests_gives_the_same_run():
    world = world_of()
    trace = as_trace(world, CALM, 3)
    reads = np.zeros((6, 700))
    seen = ~trace.update
    np.add.at(reads, (world.generators.site[trace.client[seen]], trace.key[seen]), 1)
    own = dataclasses.replace(world, generators=TraceClients(world.generators.site, reads))
    generated = simulate(world, CALM, SETTINGS, 3)
    replayed = simulate_trace(own, trace, SETTINGS, 3)
    for name in ("time", "read_ms", "write_ms", "false_negative", "active", "recall"):
        np.testing.assert_array_equal(getattr(replayed, name), getattr(generated, name))
    assert replayed.created == generated.created
    # What is hot is known from the whole trace, and not from chances.
    assert replayed.correct[-1] > generated.correct[-1]


def test_a_trace_from_a_file(tmp_path):
    rng = np.random.default_rng(2)
    rows = [
        f"{time:.1f},{client},k{int(rng.zipf(1.5)) % 50},{rng.choice(['write'] + ['read'] * 9)}"
        for time, client in zip(
            np.sort(rng.uniform(0, 90_000, 6000)), rng.choice(["x", "y", "z"], 6000), strict=True
        )
    ]
    path = tmp_path / "trace.csv"
    path.write_text("time,client,key,op\n" + "\n".join(rows) + "\n")
    trace = read_trace(path)
    geography = Geography.within(("a", "b"), [[1, 50], [50, 1]], 100.0)
    world = trace_world(trace, geography, [0, 1, 1], np.random.default_rng(1), static_copies=1)
    ticks = list(trace_ticks(trace, world, tick=2.0))
    assert sum(len(each.key) for each in ticks) == 6000
    for each in ticks:
        low, high = np.searchsorted(trace.time, [1000 * each.start, 1000 * (each.start + 2)])
        np.testing.assert_array_equal(each.key, trace.key[low:high])
    run = simulate_trace(world, trace, VoteSettings(k=5), tick=2.0)
    assert run.active[-1] > 0
    assert np.nanmean(run.read_ms[-10:]) < np.nanmean(run.read_ms[:5])
    fast = list(trace_ticks(trace, world, tick=2.0, scale=0.5))
    assert len(fast) in (len(ticks) // 2, len(ticks) // 2 + 1)
    with pytest.raises(InputError, match="home"):
        trace_world(trace, geography, [0, 1, 2], np.random.default_rng(1))
    with pytest.raises(InputError, match="generators"):
        next(requests(world, CALM, 1))


def test_nodes_that_miss_summaries_create_and_delete_less():
    world = world_of()
    active = {}
    for missed in (0.0, 0.5, 1.0):
        run = simulate(world, CALM, dataclasses.replace(SETTINGS, missed=missed), 3)
        active[missed] = run.active[run.time >= 35].mean()
        assert run.created == 0 if missed == 1.0 else run.created > 0
    assert active[1.0] == 0
    # Half of the primaries create in each round; half of the holders keep what should go.
    short = dataclasses.replace(CALM, seconds=13)
    first = {
        missed: simulate(world, short, dataclasses.replace(SETTINGS, missed=missed), 3).created
        for missed in (0.0, 0.5)
    }
    assert 0.3 < first[0.5] / first[0.0] < 0.7


@pytest.mark.parametrize("seed", seeds(5, 100))
def test_absences_are_counted_by_holders_that_know(seed):
    """Copy by copy, with lists of what each holder has heard."""
    rng = np.random.default_rng([3, seed])
    grace, shape = int(rng.integers(1, 4)), (2, 6)
    copies = CopySet(np.zeros(shape, dtype=bool), grace)
    copies.create(np.ones(shape, dtype=bool))
    heard = {place: [] for place in np.ndindex(shape)}
    for _ in range(8):
        popular, known = rng.random(shape) < 0.4, rng.random(shape) < 0.6
        copies.judge(popular, known)
        for place, lists in heard.items():
            if known[place]:
                lists.append(popular[place])
    for place, lists in heard.items():
        runs = [lists[i : i + grace] for i in range(len(lists) - grace + 1)]
        gone = any(not any(run) for run in runs)
        assert copies.active[place] == (not gone)


def test_copies_arrive_at_the_rate_of_their_site():
    world = world_of()
    slow = simulate(world, CALM, dataclasses.replace(SETTINGS, copies_per_s=2.0), 3)
    quick = simulate(world, CALM, SETTINGS, 3)
    for second in (13, 16, 21):
        now = int(np.searchsorted(slow.time, second))
        assert slow.active[now] == 2.0 * (second - 12)
        assert quick.active[now] >= 38
    late = slow.time >= 25
    assert slow.read_ms[late].mean() > quick.read_ms[late].mean()
    many = simulate(world, CALM, dataclasses.replace(SETTINGS, copies_per_s=1e9), 3)
    assert many.active[-1] == pytest.approx(quick.active[-1], rel=0.05)


def random_geography(seed):
    rng = np.random.default_rng([9, seed])
    rtt = rng.uniform(5, 90, (4, 4))
    price = rng.integers(1, 4, (4, 4)).astype(float)
    np.fill_diagonal(rtt, 1.0)
    np.fill_diagonal(price, 0.0)
    return Geography.by_metric(tuple("abcd"), rtt, price, 2.0), rtt, price


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_copies_by_price_against_every_choice(seed):
    """The optimum and its latency, read by read: the cheapest copy, of equals the closest."""
    geography, rtt, price = random_geography(seed)
    rng = np.random.default_rng([10, seed])
    static = np.zeros((4, 2), dtype=bool)
    static[rng.integers(4), 0] = static[rng.integers(4), 1] = True
    reads = rng.integers(0, 9, (4, 2)).astype(float) + 0.5
    problem = ReplicationProblem(geography, static, reads, np.array(1))

    def cost_and_latency(copies):
        cost = latency = 0.0
        for i in range(4):
            for o in range(2):
                held = [
                    j
                    for j in range(4)
                    if static[j, o] or (copies[j, o] and j in geography.preferred[i])
                ]
                best = min((price[i, j], rtt[i, j]) for j in held)
                cost, latency = cost + reads[i, o] * best[0], latency + reads[i, o] * best[1]
        return cost, latency / reads.sum()

    values = {}
    for code in range(3**4):
        copies = np.zeros((4, 2), dtype=bool)
        for site in range(4):
            choice = code // 3**site % 3
            if choice:
                copies[site, choice - 1] = True
        if not (copies & static).any():
            found = evaluate(problem, copies)
            values[code] = cost_and_latency(copies)
            assert found.cost == pytest.approx(values[code][0])
            assert found.mean_latency == pytest.approx(values[code][1])
    plan = solve_lagrangean(problem)
    assert plan.cost == pytest.approx(min(cost for cost, _ in values.values()))
    assert plan.evaluation.mean_latency == pytest.approx(cost_and_latency(plan.copies)[1])
    assert run_votes(problem).mean_cost >= plan.cost * (1 - 1e-9)


def test_the_simulation_asks_by_price_and_waits_by_rtt():
    """Everyone prefers the cheap far site; without copies reads go to the cheapest static one."""
    rtt = [[1.0, 10.0, 80.0], [10.0, 1.0, 80.0], [80.0, 80.0, 1.0]]
    price = [[0.0, 9.0, 2.0], [9.0, 0.0, 2.0], [2.0, 2.0, 0.0]]
    geography = Geography.by_metric(tuple("abc"), rtt, price, 1.0)
    world = world_of(keys=50, geography=geography)
    static = world.problem(0).static
    run = simulate(world, dataclasses.replace(CALM, seconds=5), VoteSettings(k=5), 1)
    reads = world.generators.reads(3)
    expected = sum(
        reads[i, o] * min((price[i][j], rtt[i][j]) for j in range(3) if static[j, o])[1]
        for i in range(3) for o in range(50)
    )  # fmt: skip
    assert run.read_ms.mean() == pytest.approx(expected, rel=0.1)


def test_larger_objects_take_longer_and_leave_the_order():
    plain = six_sites()
    problem = world_of(keys=300).problem(10)
    costs = []
    for size in (1.0, 100.0, 10_000.0):
        sized = plain.with_objects_of(size, 100.0)
        assert sized.preferred == plain.preferred
        trips = (sized.rtt - 8 * size / 100.0) / plain.rtt
        assert np.allclose(trips, np.round(trips[0, 0]))
        assert np.array_equal(sized.hops, plain.rtt)
        costs.append(
            solve_lagrangean(dataclasses.replace(problem, geography=sized)).evaluation.mean_read_rtt
        )
    assert costs == sorted(costs)
    warm = plain.with_objects_of(10_000.0, 1e12, first_kilobytes=np.inf)
    assert np.allclose(warm.rtt, plain.rtt)


def test_a_miss_of_a_cache_brings_no_object_back():
    pytest.importorskip("cachetools")
    from heuristics.online.dynamic.cache_names import cache_maker

    sized = six_sites().with_objects_of(1000.0, 100.0)
    world = world_of(keys=200, geography=sized)
    workload = RequestWorkload(seconds=4, rate=200, restart_every=0)
    never = cache_maker("MRU", np.random.default_rng(1))
    found = simulate_caches(world, workload, never, 16, 1)
    own, hop = np.diag(sized.rtt), np.diag(sized.hops)
    after_miss = {round(hop[i] + sized.rtt[i, j], 6) for i in range(6) for j in range(6) if i != j}
    seen = {round(float(value), 6) for value in found.reads[0]}
    assert seen <= after_miss | {round(float(value), 6) for value in own}
    assert len(seen & after_miss) > 5


@pytest.mark.parametrize(("field", "value"), [("missed", 1.5), ("copies_per_s", 0.0)])
def test_settings_are_checked(field, value):
    with pytest.raises(InputError, match=field):
        VoteSettings(k=5, **{field: value})

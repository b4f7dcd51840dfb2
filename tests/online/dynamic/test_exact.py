"""Programs and prices against brute force; caches and sketches by hand and by simulation."""

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.online.dynamic.belady_min import most_hits
from formulations.online.dynamic.copy_prices import lagrangean_bound, solve_dual, solve_lagrangean
from formulations.online.dynamic.copy_programs import check_objective, relax, solve_milp
from formulations.solvers.highs import HighsResult
from formulations.solvers.statuses import Verdict
from heuristics.online.dynamic.caches import NAMES, cache_maker
from heuristics.online.dynamic.copy_choices import greedy, local_topk
from placement.errors import InputError, LimitError, SolverError
from placement.online import spawn_streams
from placement.online.dynamic import (
    Geography,
    ReplicationProblem,
    evaluate,
    hot_set_world,
    six_sites,
)
from placement.online.dynamic.cache_simulator import accesses, simulate_caches
from placement.online.dynamic.store_demand import CAUSES, RequestWorkload
from placement.online.dynamic.vote_counting import SpaceSaving, Summary, merge, summary_of, top
from placement.online.dynamic.vote_simulator import (
    BloomSummary,
    WriteForwarding,
    refresh_due,
    spread,
)
from placement.online.simulation import zipf
from tests.effort import examples
from tests.online.dynamic.worlds import brute_force, published_problem, small_problems, triangle


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_all_exact_methods_find_what_brute_force_finds(problem):
    best = brute_force(problem)
    for plan in (solve_milp(problem), solve_lagrangean(problem)):
        assert plan.cost == pytest.approx(best, rel=1e-9, abs=1e-9), plan.method
        assert plan.status == "optimal", plan


@settings(max_examples=examples(40), deadline=None)
@given(small_problems(objects=(3, 4)))
def test_objects_without_a_table_are_not_forgotten(problem):
    """With floors under the prices, as large problems have them, cold objects have no table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("formulations.online.dynamic.copy_prices._SMALL", 0)
        plan = solve_lagrangean(problem)
    assert plan.cost == pytest.approx(brute_force(problem), rel=1e-9, abs=1e-9)
    assert plan.status == "optimal"


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_every_bound_is_one(problem):
    best = brute_force(problem)
    slack = 1e-9 * max(1.0, best)
    relaxed, dual = relax(problem).bound, solve_dual(problem).bound
    assert max(relaxed, dual) <= best + slack
    # The relaxation over subsets is at least as tight as that of the program.
    assert dual >= relaxed - 1e-6 * max(1.0, abs(relaxed))
    rng = np.random.default_rng(0)
    for _ in range(5):
        prices = rng.exponential(50.0, problem.sites)
        assert lagrangean_bound(problem, prices) <= best + slack
    if (problem.capacity > 0).any():
        with pytest.raises(SolverError, match="negative"):
            lagrangean_bound(problem, np.full(problem.sites, -1.0))


@settings(max_examples=examples(40), deadline=None)
@given(small_problems(writes_too=False))
def test_greedy_saves_at_least_half(problem):
    base, best = evaluate(problem, problem.none).cost, brute_force(problem)
    plan = greedy(problem)
    assert base - plan.cost >= 0.5 * (base - best) - 1e-9 * base
    assert plan.bound <= best + 1e-9 * max(1.0, best)


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_greedy_with_writes_never_makes_it_worse(problem):
    assert greedy(problem).cost <= evaluate(problem, problem.none).cost * (1 + 1e-12) + 1e-9


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_without_sharing_each_site_decides_alone(problem):
    """Weighted top-k is optimal when every site prefers only itself."""
    count = problem.sites
    names = problem.geography.sites
    alone = Geography(names, problem.geography.rtt, tuple((i,) for i in range(count)))
    problem = dataclasses.replace(problem, geography=alone)
    assert local_topk(problem).cost == pytest.approx(brute_force(problem), rel=1e-12, abs=1e-9)


@settings(max_examples=examples(40), deadline=None)
@given(small_problems())
def test_without_capacity_each_object_decides_alone(problem):
    roomy = dataclasses.replace(problem, capacity=np.full(problem.sites, problem.objects))
    parts = [
        dataclasses.replace(
            problem,
            static=problem.static[:, [o]],
            reads=problem.reads[:, [o]],
            write_cost=problem.write_cost[:, [o]],
            capacity=np.ones(problem.sites),
        )
        for o in range(problem.objects)
    ]
    together = solve_lagrangean(roomy)
    assert together.cost == pytest.approx(sum(brute_force(p) for p in parts), rel=1e-9, abs=1e-9)


def test_the_relaxation_is_not_always_the_optimum():
    """Kept: an odd cycle of neighbours, where the relaxation is far off."""
    problem = triangle()
    relaxed = relax(problem)
    assert relaxed.value == pytest.approx(9.0)  # every read at 1 or 2 ms, half of each
    assert not relaxed.integral
    assert relaxed.bound < 10
    assert solve_milp(problem).cost == 107.0
    plan = solve_lagrangean(problem)
    assert (plan.cost, plan.status) == (107.0, "optimal")
    assert solve_dual(problem).bound < 107
    assert brute_force(problem) == 107.0


def test_nothing_to_gain():
    """No reads, no room, one site: the answer is no copies, and it is proven."""
    one = Geography(("only",), [[1.0]], ((0,),))
    nothing = ReplicationProblem(one, np.ones((1, 3)), np.ones((1, 3)), 5)
    static = np.zeros((6, 2), dtype=bool)
    static[0] = True
    unread = ReplicationProblem(six_sites(), static, np.zeros((6, 2)), 1)
    no_room = ReplicationProblem(six_sites(), static, np.ones((6, 2)), 0)
    for problem in (nothing, unread, no_room):
        for method in (solve_milp, solve_lagrangean, greedy, local_topk):
            plan = method(problem)
            assert not plan.copies.any()
            assert plan.cost == evaluate(problem, problem.none).cost
    assert solve_lagrangean(unread).status == "optimal"


def test_an_optimum_of_zero_is_proven():
    """Found by generation: free local reads, room at the only site without a static copy."""
    geography = Geography(("a", "b"), [[0.0, 33.0], [46.0, 0.0]], ((0,), (1,)))
    problem = ReplicationProblem(geography, [[False], [True]], [[3.0], [2.0]], [2, 0])
    for plan in (solve_lagrangean(problem), solve_milp(problem)):
        assert (plan.cost, plan.status) == (0.0, "optimal")


def test_too_many_sites_for_subsets_are_refused():
    count = 13
    geography = Geography.within([f"s{i}" for i in range(count)], 9 - 8 * np.eye(count), 20)
    static = np.eye(count, 2, dtype=bool)
    problem = ReplicationProblem(geography, static, np.ones((count, 2)), 1)
    with pytest.raises(LimitError, match="13 sites"):
        solve_lagrangean(problem)


def test_no_time_leaves_a_true_bound():
    problem = published_problem(1)
    best = solve_lagrangean(problem).cost
    for plan in (
        solve_milp(problem, time_limit=0.0),
        solve_lagrangean(problem, time_limit=0.0),
        solve_lagrangean(problem, close=False),
    ):
        assert plan.bound <= best * (1 + 1e-12)
        assert plan.cost >= best * (1 - 1e-12)
        assert (plan.status == "optimal") == (plan.gap <= 1e-9)


def test_an_objective_that_is_not_the_cost_is_an_error():
    cost, scale, one = 20.6, 7.0, np.zeros(1)

    def said(objective, verdict):
        return HighsResult(verdict, None, one, objective * scale, -np.inf, 0, 0, 0.0)

    for verdict in (Verdict.OPTIMAL, Verdict.STOPPED):
        check_objective(said(cost, verdict), scale, cost, 50.0)
        with pytest.raises(SolverError, match="not the cost"):
            check_objective(said(cost * 0.99, verdict), scale, cost, 50.0)
    check_objective(said(cost * 1.01, Verdict.STOPPED), scale, cost, 50.0)
    with pytest.raises(SolverError, match="not the cost"):
        check_objective(said(cost * 1.01, Verdict.OPTIMAL), scale, cost, 50.0)


def plain_greedy(problem):
    """Greedy by evaluating every possible addition anew; the same rule for ties."""
    copies, cost = problem.none.copy(), evaluate(problem, problem.none).cost
    while True:
        best = None
        for j, o in np.argwhere(~copies & ~problem.static).tolist():
            if copies[j].sum() < problem.capacity[j]:
                more = copies.copy()
                more[j, o] = True
                gain = cost - evaluate(problem, more).cost
                if gain > 1e-9:
                    best = min(best or (0, 0, 0), (-gain, o, j))
        if best is None:
            return copies
        copies[best[2], best[1]] = True
        cost = evaluate(problem, copies).cost


@settings(max_examples=examples(40), deadline=None)
@given(small_problems(sites=(2, 4), objects=(2, 5)))
def test_lazy_greedy_is_greedy(problem):
    assert (greedy(problem).copies == plain_greedy(problem)).all()


@pytest.mark.parametrize("hot", [1.0, 1e3, 1e6, 1e9])
def test_a_model_that_starts_at_rounding_alone(hot):
    """With a copy of each object no read costs anything: all that the first cut holds is slope."""
    rtt = np.array([[0.0, 90.0, 60.0], [90.0, 0.0, 80.0], [60.0, 80.0, 0.0]])
    objects, room = 2000, 60
    static = np.repeat([[True], [True], [False]], objects, axis=1)
    reads = np.ones((3, objects))
    reads[:, 0] = hot
    geography = Geography.within(("a", "b", "c"), rtt, 100.0)
    plan = solve_lagrangean(ReplicationProblem(geography, static, reads, [0, 0, room]))
    assert plan.status == "optimal"
    assert plan.cost == 60.0 * (objects - room)


streams = st.lists(st.integers(0, 9), max_size=60)


def sketch(stream, counters):
    made = SpaceSaving(counters)
    made.extend(stream)
    return made.summary()


def slow_space_saving(stream, counters):
    """The algorithm as published, with a list; the victim is the one longest at the least count."""
    held = []  # [key, count, error, since]
    for now, key in enumerate(stream):
        known = next((row for row in held if row[0] == key), None)
        if known:
            known[1], known[3] = known[1] + 1, now
        elif len(held) < counters:
            held.append([key, 1, 0, now])
        else:
            victim = min(held, key=lambda row: (row[1], row[3]))
            victim[:] = [key, victim[1] + 1, victim[1], now]
    return sorted((key, count, error) for key, count, error, _ in held)


@given(streams, st.integers(1, 6))
def test_space_saving_keeps_its_promises(stream, counters):
    result = sketch(stream, counters)
    true = Counter(stream)
    assert len(result.keys) <= counters
    assert result.floor <= len(stream) / counters
    for key, count, error in zip(result.keys, result.counts, result.errors, strict=True):
        assert true[key] <= count <= true[key] + error
        assert error <= result.floor or result.floor == 0 == error
    for key, frequency in true.items():
        if frequency > len(stream) / counters:
            assert key in result.keys
        if key not in result.keys:
            assert frequency <= result.floor
    assert result.counts.sum() == len(stream)


@given(streams, st.integers(1, 6))
def test_buckets_do_what_the_list_does(stream, counters):
    result = sketch(stream, counters)
    found = list(zip(result.keys.tolist(), result.counts.tolist(), result.errors.tolist(),
                     strict=True))  # fmt: skip
    assert found == slow_space_saving(stream, counters)


@given(streams, st.integers(1, 12))
def test_counting_is_space_saving_while_nothing_is_evicted(stream, counters):
    assert same(summary_of(np.array(stream, dtype=int), counters), sketch(stream, counters))


def same(a, b):
    return (
        np.array_equal(a.keys, b.keys)
        and np.array_equal(a.counts, b.counts)
        and np.array_equal(a.errors, b.errors)
        and a.floor == b.floor
    )


@given(st.lists(streams, min_size=1, max_size=5), st.integers(1, 6), st.randoms())
def test_the_merge_does_not_depend_on_order_and_bounds(parts, counters, shuffle):
    summaries = [sketch(part, counters) for part in parts]
    result = merge(summaries, counters)
    for _ in range(3):
        shuffle.shuffle(summaries)
        assert same(merge(summaries, counters), result)
    true = Counter(itertools.chain(*parts))
    for key, count, error in zip(result.keys, result.counts, result.errors, strict=True):
        assert count - error <= true[key] <= count
    for key, frequency in true.items():
        if key not in result.keys:
            assert frequency <= result.floor


def test_bounds_agree_with_datasketches():
    """Two estimators of one stream must have overlapping intervals for every key."""
    datasketches = pytest.importorskip("datasketches")
    rng = np.random.default_rng(5)
    stream = (rng.zipf(1.2, 20_000) % 5_000).tolist()
    mine = sketch(stream, 96)
    theirs = datasketches.frequent_strings_sketch(7)  # 0.75 · 2^7 = 96 counters
    for key in stream:
        theirs.update(str(key))
    true = Counter(stream)
    for key, count, error in zip(mine.keys.tolist(), mine.counts, mine.errors, strict=True):
        assert count - error <= true[key] <= count
        low, high = theirs.get_lower_bound(str(key)), theirs.get_upper_bound(str(key))
        assert low <= true[key] <= high
        assert max(low, count - error) <= min(high, count)
    heavy = {key for key, frequency in true.items() if frequency > len(stream) / 96}
    assert heavy <= set(mine.keys.tolist())
    assert heavy <= {int(row[0]) for row in theirs.get_frequent_items(
        datasketches.frequent_items_error_type.NO_FALSE_NEGATIVES)}  # fmt: skip


@settings(deadline=None)
@given(st.integers(0, 2**70), st.integers(0, 2**70))
def test_the_hash_is_the_same_everywhere_and_fits(a, b):
    assert 0 <= spread(a) < 2**127
    assert (spread(a) == spread(b)) == (a % 2**64 == b % 2**64)


def test_a_hash_worked_elsewhere():
    """SplitMix64's finaliser maps the golden-ratio increment to 0xE220A8397B1DCDAF."""
    assert spread(0) >> 64 == 0xE220A8397B1DCDAF >> 1


def test_bloom_size_and_error():
    """⌈n·ln(1/p)/(ln 2)²⌉ bits, which is under the published 18 KB."""
    pytest.importorskip("rbloom")
    filter_ = BloomSummary(range(10_000), 10_000, 0.001)
    assert filter_.bits == 143_776 < 18 * 8 * 1024
    assert filter_.among(np.arange(10_000)).all()
    wrong = filter_.among(np.arange(10_000, 110_000)).mean()
    assert 0.0006 < wrong < 0.0014
    assert 5 in filter_


def test_refresh_is_due_at_five_per_cent_and_not_before():
    requests, errors = np.array([99, 1000, 1019, 1000]), np.array([99, 49, 50, 50])
    assert refresh_due(requests, errors).tolist() == [False, False, False, True]


def test_merged_ties_go_to_the_smaller_key():
    one = Summary(np.array([3, 5]), np.array([4, 4]), np.zeros(2, dtype=np.int64), 0)
    two = Summary(np.array([1]), np.array([4]), np.zeros(1, dtype=np.int64), 0)
    assert top(merge([one, two], 3), 2).tolist() == [1, 3]
    assert merge([one, two], 2).keys.tolist() == [1, 3]
    assert merge([], 2).keys.tolist() == []


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
    """A key is static elsewhere: the first read is a local hop and a far RTT, the next is local."""
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

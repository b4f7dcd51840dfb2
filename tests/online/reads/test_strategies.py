"""Quorums and shares: programs, closed forms, exact fractions, and what rules claim."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from formulations.online.reads import solve_compact
from heuristics.online.reads import UniformQuorum
from placement.errors import InputError, SolverError
from placement.online.reads import (
    ReadGoal,
    ReadPlan,
    ReadProblem,
    ReadStrategy,
    evaluate,
    lower_bound,
    subsets_of,
)
from placement.online.reads.leader_share import (
    follower_load,
    inclusion_probability,
    leader_load,
    leader_served,
    majority,
    peak_reduction,
    slide_share,
    uniform_share,
)
from placement.support.status import Status
from tests.effort import seeds


def random_problem(seed: int, *, most: int = 7) -> ReadProblem:
    """Random geometry (every third with many ties), capacities and loads."""
    rng = np.random.default_rng([41, seed])
    n = int(rng.integers(3, most + 1))
    points = rng.uniform(0, 100, (n, 2))
    rtt = np.linalg.norm(points[:, None] - points[None], axis=2) + rng.uniform(0, 1, (n, n))
    if seed % 3 == 0:
        rtt = np.rint(rtt / 25)
    leader = int(rng.integers(n))
    reads = rng.uniform(0, 1, n) * (rng.random(n) < 0.8)
    reads[leader] += 0.1
    return ReadProblem(
        rtt, reads, leader, capacity=rng.uniform(3, 8, n), base=rng.uniform(0, 0.3, n)
    )


def reference(problem: ReadProblem, goal: ReadGoal) -> float:
    """Optimum by SciPy with a column for every gateway and set; infinite when infeasible."""
    choices = [(i, a) for i in range(problem.nodes) for a in problem.choices(i)]
    waits = np.array([max(problem.rtt[i, v] for v in a) * problem.shares[i] for i, a in choices])
    cost = np.append(goal.latency_weight * waits, goal.load_weight)
    rows = [
        [problem.reads[i] / problem.capacity[v] * (v in a) for i, a in choices] + [-1.0]
        for v in range(problem.nodes)
    ]
    limits = [*-problem.base]
    if math.isfinite(goal.latency_budget):
        rows.append([*waits, 0.0])
        limits.append(goal.latency_budget)
    one = np.array([[float(i == g) for i, _ in choices] + [0.0] for g in range(problem.nodes)])
    upper = None if math.isinf(goal.load_limit) else goal.load_limit
    bounds = [(0, None)] * len(choices) + [(0, upper)]
    found = linprog(cost, np.array(rows), limits, one, np.ones(problem.nodes), bounds)
    return float(found.fun) if found.status == 0 else math.inf


def goals(problem: ReadProblem) -> list[ReadGoal]:
    """Every kind of goal, with limits that bind, and some that nothing obeys."""
    least = solve_compact(problem, ReadGoal.least_load())
    assert least.figures is not None
    return [
        ReadGoal.least_load(),
        ReadGoal.least_latency(),
        ReadGoal.least_latency(1.1 * least.value),
        ReadGoal.least_latency(0.9 * least.value),
        ReadGoal.least_load(0.8 * least.figures.latency),
        ReadGoal(load_weight=1, latency_weight=0.02),
    ]


@pytest.mark.parametrize("seed", seeds(12, 200))
def test_the_optimum_is_that_of_all_sets(seed):
    problem = random_problem(seed)
    for goal in goals(problem):
        plan, expected = solve_compact(problem, goal), reference(problem, goal)
        if math.isinf(expected):
            assert plan.status is Status.INFEASIBLE
        else:
            assert plan.status is Status.OPTIMAL
            assert plan.value == pytest.approx(expected, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("short", [0.0, 1e-16, 1e-14, 1e-12, 5e-10, 1e-6])
def test_limits_at_the_edge(seed, short):
    """The least load as the limit: a strategy within the tolerance, or refuted; never an error."""
    problem = random_problem(seed)
    limit = solve_compact(problem, ReadGoal.least_load()).value - short
    plan = solve_compact(problem, ReadGoal.least_latency(limit))
    if short <= 1e-14:
        assert plan.figures is not None
        assert plan.gap < 1e-8
    if short >= 5e-10:
        assert plan.status is Status.INFEASIBLE


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_units_do_not_matter(scale):
    """Reads per day or microsecond, RTTs in seconds or ticks: the same optimum in other units."""
    rng = np.random.default_rng(9)
    rtt, reads = rng.uniform(0, 1, (5, 5)), rng.uniform(0, 1, 5)
    for goal, unit in ((ReadGoal.least_load(), scale), (ReadGoal.least_latency(), 1 / scale)):
        plain = solve_compact(ReadProblem(rtt, reads, 0), goal)
        other = solve_compact(ReadProblem(rtt / scale, reads * scale, 0), goal)
        assert other.status is Status.OPTIMAL
        assert other.value == pytest.approx(plain.value * unit, rel=1e-9)


def test_infeasible_says_why():
    problem = ReadProblem.uniform(5)
    (note,) = solve_compact(problem, ReadGoal.least_latency(0.4)).notes
    assert note == "the busiest node is used at least 0.428571, the limit is 0.4"
    (note,) = solve_compact(problem, ReadGoal.least_load(0.1)).notes
    assert note == "the mean latency is at least 0.8 ms, the budget is 0.1 ms"
    rtt = np.array([[0, 1, 9, 9, 9]] * 5) + 0.0
    clash = ReadProblem(rtt, np.full(5, 0.2), 0)
    least = solve_compact(clash, ReadGoal.least_load()).value
    both = ReadGoal(load_weight=1, load_limit=least * 1.01, latency_budget=0.5)
    assert solve_compact(clash, both).notes == ("no strategy obeys all limits at once",)


@pytest.mark.parametrize("nodes", [3, 4, 5, 6, 7, 9, 11, 21])
def test_least_load_is_the_closed_form(nodes):
    """The share of the slides is the load-optimal strategy: 3/7 at five nodes."""
    plan = solve_compact(ReadProblem.uniform(nodes), ReadGoal.least_load())
    assert plan.status is Status.OPTIMAL
    assert plan.value == pytest.approx(float(leader_served(nodes, uniform_share(nodes))), rel=1e-12)


@pytest.mark.parametrize("nodes", [3, 4, 5, 7])
@pytest.mark.parametrize(("writes", "leader", "follower"), [(5 / 95, 3, 1), (1, 2, 1), (0.2, 1, 4)])
def test_writes_by_closed_form_and_programme(nodes, writes, leader, follower):
    """X of the formula with writes evens out total load, or clips; the program agrees."""
    share = uniform_share(nodes, writes, leader - follower)
    problem = ReadProblem.uniform(
        nodes, leader_cost=writes * leader, follower_cost=writes * follower
    )
    plan = solve_compact(problem, ReadGoal.least_load())
    peak = max(
        leader_load(nodes, share) / nodes + Fraction(writes * leader),
        follower_load(nodes, share) / nodes + Fraction(writes * follower),
    )
    assert plan.value == pytest.approx(float(peak), rel=1e-12)
    coin = evaluate(problem, ReadStrategy.coin(problem, float(share)))
    assert coin.peak == pytest.approx(plan.value, rel=1e-12)


def test_quoracle_agrees():
    """quoracle, which knows neither gateways nor latencies per pair, finds the same loads."""
    quoracle = pytest.importorskip("quoracle")
    nodes = [quoracle.Node(name) for name in "Labcd"]
    reads = nodes[0] + quoracle.majority(nodes)
    system = quoracle.QuorumSystem(reads=reads)
    strategy = system.strategy(optimize="load", read_fraction=1)
    assert strategy.load(read_fraction=1) == pytest.approx(3 / 7, abs=1e-6)
    assert strategy.node_load(nodes[0], read_fraction=1) == pytest.approx(3 / 7, abs=1e-6)
    problem = ReadProblem(np.zeros((5, 5)), np.full(5, 0.2), 0)
    assert solve_compact(problem, ReadGoal.least_load()).value == pytest.approx(3 / 7)
    majorities = quoracle.QuorumSystem(reads=quoracle.majority(nodes))
    assert majorities.load(optimize="load", read_fraction=1) == pytest.approx(3 / 5, abs=1e-6)
    # 95 % reads: its writes are the smallest sets that meet every read, L and a majority each.
    mixed = system.strategy(optimize="load", read_fraction=0.95)
    assert mixed.load(read_fraction=0.95) == pytest.approx(0.442857, abs=1e-6)
    assert {"".join(sorted(map(str, w))) for w in system.write_quorums() if len(w) == 3} == {
        f"L{a}{b}" for a, b in combinations("abcd", 2)
    }
    # Writes of L and two others, drawn evenly: L does all of them, the others half of them.
    problem = ReadProblem(np.zeros((5, 5)), np.full(5, 0.95 / 5), 0, base=[0.05, *[0.025] * 4])
    assert solve_compact(problem, ReadGoal.least_load()).value == pytest.approx(
        mixed.load(read_fraction=0.95), abs=1e-6
    )


@pytest.mark.parametrize("seed", range(20))
def test_pricing_finds_the_cheapest(seed):
    rng = np.random.default_rng([43, seed])
    problem = random_problem(seed)
    prices, per_ms = rng.integers(0, 5, problem.nodes) / 2.0, float(rng.integers(0, 3))
    for gateway in range(problem.nodes):
        every = [
            prices[list(q)].sum() + per_ms * problem.latency(gateway, q)
            for q in problem.choices(gateway)
        ]
        assert len(every) == problem.count(gateway) + 1
        value, quorum = problem.cheapest(gateway, prices, per_ms)
        assert value == pytest.approx(min(every))
        assert problem.legal(gateway, quorum)


@pytest.mark.parametrize("seed", range(15))
def test_any_prices_bound_every_strategy(seed):
    problem = random_problem(seed, most=5)
    rng = np.random.default_rng([44, seed])
    for goal in goals(problem):
        optimum = reference(problem, goal)
        for scale in (0.01, 1, 100):
            prices = rng.uniform(0, scale, problem.nodes)
            bound = lower_bound(problem, goal, prices, float(rng.uniform(0, scale)))
            assert bound <= optimum * (1 + 1e-9)


@given(st.data())
def test_subsets_have_the_probabilities_asked_for(data):
    """Madow: exactly k members each, right inclusion probabilities, few subsets, whole prefixes."""
    n = data.draw(st.integers(1, 9))
    k = data.draw(st.integers(0, n))
    weights = np.array(data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))) + 1e-3
    p = np.zeros(n)
    for _ in range(n):  # scale up to k, capping at 1: what an LP would return
        free = p < 1
        if not free.any() or k - (~free).sum() <= 0:
            break
        p[free] = np.minimum(1.0, (k - (~free).sum()) * weights[free] / weights[free].sum())
    p *= k / p.sum() if p.sum() else 0
    members = data.draw(st.permutations(range(n)))
    found = subsets_of(members, p, k)
    assert sum(weight for _, weight in found) == pytest.approx(1)
    assert len(found) <= n + 1
    assert all(len(set(subset)) == k for subset, _ in found)
    for member, probability in zip(members, p, strict=True):
        total = sum(weight for subset, weight in found if member in subset)
        assert total == pytest.approx(probability, abs=1e-6)


def test_draw_follows_the_mixture():
    problem = ReadProblem.uniform(5)
    plan = solve_compact(problem, ReadGoal.least_load())
    assert plan.strategy is not None
    counts: dict[tuple[int, ...], int] = {}
    points = (np.arange(100_000) + 0.5) / 100_000
    for u in points:
        quorum = plan.strategy.draw(2, float(u))
        counts[quorum] = counts.get(quorum, 0) + 1
    for quorum, probability in plan.strategy.mixtures[2]:
        assert counts[quorum] / 100_000 == pytest.approx(probability, abs=2e-5)
    assert plan.strategy.draw(2, 1.0 - 1e-17) in counts


def test_a_false_claim_is_an_error():
    problem = ReadProblem.uniform(3)
    strategy = ReadStrategy.coin(problem, 0.25)
    with pytest.raises(SolverError, match="bound"):
        ReadPlan.of(problem, ReadGoal.least_load(), strategy, method="x", bound=0.6)
    with pytest.raises(SolverError, match="limit"):
        ReadPlan.of(problem, ReadGoal.least_latency(0.1), strategy, method="x")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"rtt": [[0, 1], [1, 0], [1, 1]]}, "rtt"),
        ({"rtt": [[0, float("nan"), 1], [1, 0, 1], [1, 1, 0]]}, "rtt"),
        ({"reads": [0, 0, 0]}, "reads"),
        ({"leader": 3}, "leader"),
        ({"capacity": [1, 0, 1]}, "capacity"),
        ({"base": [-1, 0, 0]}, "base"),
    ],
)
def test_bad_problems(change, field):
    good = {"rtt": np.ones((3, 3)), "reads": [1, 1, 1], "leader": 0}
    with pytest.raises(InputError, match=field):
        ReadProblem(**{**good, **change})


def test_illegal_strategies():
    problem = ReadProblem.uniform(3)
    for mixtures in (
        [{(0,): 1}] * 2,
        [{(0,): 1}, {(1,): 1}, {(0,): 1}],
        [{(0,): 1}, {(0,): 0.5}, {(0,): 1}],
        [{(0,): 1}, {(0,): 1.5, (1, 2): -0.5}, {(0,): 1}],
    ):
        with pytest.raises(InputError, match="mixtures"):
            ReadStrategy.of(problem, mixtures)


def state(rule, nodes=5, leader=0, seed=0):
    return rule.start(nodes, leader, np.random.default_rng(seed))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_quorums_are_legal(share):
    """A majority of the others with the gateway, or L alone as often as the coin says."""
    rule = UniformQuorum(share)
    assert f"{share:.3g}" in rule.name
    at = state(rule)
    for gateway in range(5):
        chosen = [at(gateway) for _ in range(2000)]
        alone = sum(quorum == (0,) for quorum in chosen)
        expected = 1.0 if gateway == 0 else share
        assert alone / 2000 == pytest.approx(expected, abs=0.04)
        for quorum in chosen:
            if quorum != (0,):
                assert len(set(quorum)) == 3
                assert gateway in quorum
                assert 0 not in quorum


@pytest.mark.parametrize("nodes", [5, 25])
def test_uniform_is_uniform(nodes):
    """Listed (5 nodes) or drawn one by one (25): every node as often as P says."""
    at = state(UniformQuorum(0.0), nodes=nodes)
    draws = 6000
    counts = Counter(node for _ in range(draws) for node in at(1))
    assert counts.pop(1) == draws
    expected = (nodes // 2) / (nodes - 2)
    assert len(counts) == nodes - 2
    for count in counts.values():
        assert count / draws == pytest.approx(expected, abs=0.03)


TABLE = [
    (3, "1", "1/4", "1/2", "2"),
    (4, "1", "1/3", "1/2", "2"),
    (5, "2/3", "2/7", "3/7", "7/3"),
    (6, "3/4", "1/3", "4/9", "9/4"),
    (7, "3/5", "3/10", "2/5", "5/2"),
    (9, "4/7", "4/13", "5/13", "13/5"),
    (11, "5/9", "5/16", "3/8", "8/3"),
]


@pytest.mark.parametrize(("nodes", "p", "x", "served", "reduction"), TABLE)
def test_table(nodes, p, x, served, reduction):
    share = uniform_share(nodes)
    assert inclusion_probability(nodes) == Fraction(p)
    assert share == slide_share(nodes) == Fraction(x)
    assert leader_served(nodes, share) == Fraction(served)
    assert peak_reduction(nodes, share) == Fraction(reduction)


def test_the_28_percent_of_the_talk_is_two_sevenths():
    assert int(100 * uniform_share(5)) == 28
    assert leader_load(5, Fraction(2, 7)) == follower_load(5, Fraction(2, 7)) == Fraction(15, 7)


@pytest.mark.parametrize("nodes", range(3, 10))
def test_loads_by_counting_every_quorum(nodes):
    m, share = nodes // 2, Fraction(1, 5)
    reads = [Fraction(0)] * nodes
    reads[0] += 1  # L reads its own copy
    for gateway in range(1, nodes):
        reads[0] += share
        quorums = list(combinations([v for v in range(1, nodes) if v != gateway], m))
        for quorum in quorums:
            for node in (gateway, *quorum):
                reads[node] += (1 - share) / len(quorums)
    assert reads[0] == leader_load(nodes, share)
    assert set(reads[1:]) == {follower_load(nodes, share)}


def test_with_writes():
    assert uniform_share(5, Fraction(5, 95), 2) == Fraction(4, 19)
    assert float(uniform_share(5, 5 / 95, 2)) == pytest.approx(0.2105, abs=5e-5)
    assert uniform_share(5, 10, 2) == 0  # writes alone load L more than all reads could
    assert uniform_share(5, 10, -2) == 1
    assert uniform_share(5, 0, 2) == uniform_share(5)


@pytest.mark.parametrize("nodes", [0, 2, 5.0, True, "5"])
def test_too_few_nodes(nodes):
    with pytest.raises(InputError, match="nodes"):
        majority(nodes)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), float("inf"), "a"])
def test_no_share(share):
    with pytest.raises(InputError, match="share"):
        leader_load(5, share)


def test_bad_writes():
    for writes in (-1, float("nan")):
        with pytest.raises(InputError, match="writes_per_read"):
            uniform_share(5, writes)

"""Heuristics: never better than the optimum, honest and close. The published EC2 case."""

from __future__ import annotations

import numpy as np
import pytest

from formulations.quorumstore.covering_model import CpSatCovering, HighsCovering
from formulations.quorumstore.enumeration import solve, tie_envelope
from formulations.quorumstore.threshold_bisection import solve as bisect
from heuristics.quorumstore import (
    busiest_sites,
    coverage_greedy,
    home_and_nearest,
    local_search,
    random_placement,
    weighted_medians,
)
from heuristics.quorumstore.baselines import heuristics
from placement.errors import InputError
from placement.quorumstore import (
    Goal,
    LossScope,
    QuorumProblem,
    Redirect,
    StoreRules,
    Target,
    evaluate,
    full_replication_bound,
)
from placement.quorumstore.latency import metrics
from placement.quorumstore.plan import swap_neighbours
from placement.support.status import Status, Termination
from tests.effort import examples, seeds
from tests.quorumstore.instances import random_problem, random_rules


def heuristic_plans(problem, rng):
    yield coverage_greedy(problem)
    yield local_search(problem, rng)


@pytest.mark.parametrize("seed", seeds(12, 60))
def test_never_better_than_the_optimum(seed):
    rng = np.random.default_rng([30, seed])
    rules = random_rules(rng)
    if seed % 5 == 0:
        rules = random_rules(rng, loss=LossScope.REGION, distinct_regions=bool(seed % 2))
    problem = random_problem(rng, sites=6, rules=rules)
    target = list(Target)[seed % 4]
    problem = problem.with_goal(Goal(target, read_weight=2.0))
    optimum = solve(problem)
    for plan in heuristic_plans(problem, rng):
        assert plan.bound <= optimum.value * (1 + 1e-12)
        if plan.configuration is not None:
            assert plan.value >= optimum.value * (1 - 1e-12)
        if optimum.status is Status.OPTIMAL and target is Target.THRESHOLD and seed % 5:
            assert plan.configuration is not None


def test_local_search_is_nearly_always_optimal_on_small_instances():
    """Six sites: single and double swaps from four starts miss the optimum rarely, greedy more."""
    rng = np.random.default_rng(31)
    local, greedy, total = 0, 0, examples(100)
    for _ in range(total):
        problem = random_problem(rng, sites=6)
        optimum = solve(problem).value
        greedy += coverage_greedy(problem).value == optimum
        local += local_search(problem, rng).value == optimum
    assert local >= 0.95 * total
    assert greedy >= 0.5 * total


def test_same_seed_same_answer():
    problem = random_problem(np.random.default_rng(32), sites=12, rules=StoreRules(True))
    plans = [
        local_search(problem, np.random.default_rng(1), starts=3, pair_swaps=100) for _ in range(2)
    ]
    assert plans[0].configuration == plans[1].configuration


def test_no_single_swap_improves():
    problem = random_problem(np.random.default_rng(33), sites=14, rules=StoreRules(True))
    plan = local_search(problem, np.random.default_rng(2), pair_swaps=0)
    found = plan.configuration
    around = metrics(problem, swap_neighbours(found.replicas, 14), found.read, found.write)
    assert plan.value <= problem.goal.values(around, True).min()


def test_time_limit_gives_the_best_so_far():
    """A limit of zero still returns the greedy configuration of the first (N, R, W)."""
    problem = random_problem(np.random.default_rng(34), sites=10, rules=StoreRules(True))
    plan = heuristics(0.0)["local-search"](problem)
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.status in (Status.FEASIBLE, Status.OPTIMAL)


def test_bounds_out_of_reach_give_no_plan():
    """A heuristic cannot prove that nothing exists: unknown, not infeasible."""
    problem = random_problem(np.random.default_rng(35), sites=6, rules=StoreRules())
    tight = problem.with_goal(Goal(read_bound=0.0, write_bound=0.0))
    plan = local_search(tight, np.random.default_rng(0))
    assert plan.configuration is None
    assert plan.status is Status.UNKNOWN
    assert "excess" in plan.notes[0]


def test_baselines():
    rtt = np.abs(np.subtract.outer([0, 10, 50, 51, 100], [0, 10, 50, 51, 100])) + 1.0
    problem = QuorumProblem(rtt, [5, 0, 9, 0, 6], [0, 0, 1, 0, 0], sites=list("abcde"))
    assert busiest_sites(problem).replicas == ("a", "c", "e")
    assert home_and_nearest(problem).replicas == ("b", "c", "d")
    assert weighted_medians(problem).replicas == ("a", "c", "e")
    drawn = [random_placement(problem, np.random.default_rng(s)).replicas for s in range(40)]
    assert len(set(drawn)) > 5
    assert {site for sites in drawn for site in sites} == set("abcde")
    with pytest.raises(InputError, match="no such quorums"):
        busiest_sites(problem, (9, 2, 2))
    optimum = solve(problem)
    for plan in (busiest_sites(problem), home_and_nearest(problem), weighted_medians(problem)):
        assert plan.value >= optimum.value
        assert plan.bound == full_replication_bound(problem)


# The published EC2 case: eight regions of June 2013, two zones each, the English Wikipedia.
# Shankaranarayanan et al., DSN 2014, section VIII.E: BA puts two replicas on the US west coast and
# one in Tokyo with R = W = 2, about 200 ms at the 90th percentile, 280 ms once a west coast site
# fails, little change when Tokyo fails; N-1C moves the third replica to US-West-1, about 200 ms
# throughout. RTTs: VM-to-VM medians of June 2013, github.com/halfprice/spanstore_formulation (MIT).
# Shares: the paper's; within a zone 0.5 ms, between zones of a region 1.5 ms, clients in the first
# zone, p = 0.9.
REGIONS = ("use", "usw2", "usw1", "euw", "sin", "tokyo", "sydney", "sae")
RTT = [
    [0, 84, 85, 101, 254, 187, 259, 141],
    [84, 1, 22, 164, 214, 139, 206, 205],
    [85, 22, 0, 165, 192, 129, 186, 198],
    [101, 164, 165, 0, 277, 283, 354, 223],
    [254, 214, 192, 277, 0, 90, 200, 363],
    [187, 139, 129, 283, 90, 0, 146, 295],
    [259, 206, 186, 354, 200, 146, 0, 340],
    [141, 205, 198, 223, 363, 295, 340, 0],
]
# Per 600 requests: US 50 % over three regions, Europe 23 %, Singapore 10 %, Sydney 5 %, and 6 %
# each for South America and Tokyo.
REQUESTS = (100, 100, 100, 138, 60, 36, 30, 36)
BA = ("usw2a", "usw1a", "tokyoa")
N1C = ("usw2a", "usw1a", "usw1b")


def store(**rules):
    zones = 2 * len(REGIONS)
    rtt = np.empty((zones, zones))
    for i in range(zones):
        for j in range(zones):
            rtt[i, j] = RTT[i // 2][j // 2] if i // 2 != j // 2 else (0.5 if i == j else 1.5)
    requests = [REQUESTS[i // 2] if i % 2 == 0 else 0 for i in range(zones)]
    names = tuple(region + zone for region in REGIONS for zone in "ab")
    return QuorumProblem(
        rtt,
        requests,
        requests,
        sites=names,
        regions=tuple(region for region in REGIONS for _ in range(2)),
        rules=StoreRules(**rules),
    )


@pytest.mark.parametrize("redirect", Redirect)
def test_the_papers_ba_set_is_optimal_and_breaks(redirect):
    """192 ms normally, 283 after the loss of either west coast site, 206 after Tokyo's."""
    problem = store(replicas=3, redirect=redirect)
    assert solve(problem).value == 192.0
    paper = evaluate(problem, BA, 2, 2)
    assert paper.value == 192.0
    after = {effect.lost: effect.threshold for effect in paper.losses}
    assert after[("usw1a",)] == 283.0
    assert after[("usw2a",)] == 283.0
    assert after[("tokyoa",)] == 206.0
    assert paper.most_critical_replica().lost == ("usw2a",)


@pytest.mark.parametrize("redirect", Redirect)
def test_the_papers_n1c_set_is_optimal(redirect):
    """The third replica moves to US-West-1: 192 ms normally, 206 in the worst case."""
    problem = store(replicas=3, contingency=True, redirect=redirect)
    plan = solve(problem)
    assert (plan.value, plan.normal.threshold) == (206.0, 192.0)
    assert plan.replicas == N1C
    paper = evaluate(problem, N1C, 2, 2)
    assert (paper.normal.threshold, paper.worst.threshold) == (192.0, 206.0)


def named_optima(problem):
    return {
        tuple(problem.sites[site] for site in row)
        for group in tie_envelope(problem).ties
        for row in group.sets.tolist()
    }


def test_only_the_hop_singles_out_the_papers_set():
    """With the extra hop the paper's set (US-West-2 in either zone) is the only optimum."""
    optima = {}
    for redirect in Redirect:
        optima[redirect] = named_optima(store(replicas=3, contingency=True, redirect=redirect))
    twin = ("usw2b", "usw1a", "usw1b")
    assert optima[Redirect.HOP] == {N1C, twin}
    for redirect in (Redirect.KEEP, Redirect.CLOSEST):
        assert {N1C, twin} < optima[redirect]


def test_ba_ties_hide_the_failure_latency():
    """All BA optima share 192 ms, but what a failure costs depends on the one that is picked."""
    envelope = tie_envelope(store(replicas=3))
    assert envelope.normal.best == envelope.normal.worst == envelope.value == 192.0
    assert envelope.failure.best == 206.0
    assert envelope.failure.worst >= 283.0
    assert envelope.count == len(named_optima(store(replicas=3)))
    assert BA in named_optima(store(replicas=3))


def test_distinct_regions_rule_out_the_papers_n1c_set():
    """With one replica per region the worst case is strictly worse than 206 ms."""
    apart = solve(store(replicas=3, contingency=True, distinct_regions=True))
    assert apart.value > 206.0
    assert len({site[:-1] for site in apart.replicas}) == 3


@pytest.mark.parametrize("covering", [HighsCovering, CpSatCovering])
@pytest.mark.parametrize("contingency", [False, True])
def test_bisection_agrees(covering, contingency):
    problem = store(contingency=contingency, max_replicas=4)
    plan = bisect(problem, covering())
    assert plan.value == solve(problem).value == (206.0 if contingency else 192.0)
    assert plan.normal.threshold == 192.0

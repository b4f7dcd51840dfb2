"""The exact search for a percentile: against every configuration, and its voters' bound."""

import itertools
import math
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from formulations.exact.late_voters import LateVoters, VoterOrder
from formulations.exact.threshold_search import missing
from formulations.tail import percentile_search
from formulations.tail.percentile_method import solve
from placement import Problem, Status
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.proof.certificate_check import check_certificate
from placement.tail import Distributions, Percentile
from placement.tail.histograms import of_family
from placement.tail.late_operations import LateOperations
from placement.testing import random_instance
from tests.effort import examples, seeds
from tests.strategies import ALL, problems
from tests.tail.worlds import drawn, drawn_by_interval

KINDS = ALL - {"varying_rtt", "cost_weight"}
PERCENTS = st.sampled_from([50, 90, 95, 99, 99.9])
COMPILED = missing() is None
EXACT, EXHAUSTIVE = load_method("exact"), load_method("exhaustive")


def agree(problem, plan):
    """Return whether a plan has the least percentile by enumeration, and the least mean at it."""
    best = run(EXHAUSTIVE, problem, Options())
    if best.status is Status.INFEASIBLE:
        assert plan.status is Status.INFEASIBLE
        return
    assert plan.status is Status.OPTIMAL
    assert plan.objective == plan.bound == best.objective
    assert plan.mean_latency == pytest.approx(best.mean_latency, rel=2e-9)


def question(seed, intervals=1, crowd=1):
    """Small worlds: ordered spreads, one per pair, and ones that have nothing to do with RTTs.

    `crowd` times the clients: with more than eight of them, a part of the search has only those
    that are still open in its arrays.
    """
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(5, 6 if intervals > 1 else 9))
    voters = int(rng.integers(1, 5 if intervals > 1 else 6))
    replicas = int(rng.integers(voters, min(sites, voters + 2) + 1))
    instance = random_instance(
        seed,
        sites=sites,
        clients=int(rng.integers(3, 12)) * crowd,
        intervals=intervals,
        varying=intervals > 1,
    )
    each, percents = [], [50, 90, 95, 99, 99.9]
    if intervals > 1:
        each = drawn_by_interval(instance, seed, bins=30)
        spread, percents = each[0], [30, 50, 70, 90]  # few are beyond the horizon
    elif seed % 3 == 0:
        spread = Distributions.parametric(instance, variation=0.2, width=4, bins=250)
    elif seed % 3 == 1:
        spread = Distributions.build(
            instance,
            lambda mean, a, b: of_family(
                mean, float(rng.choice([0.05, 0.2, 0.6])), "lognormal", width=4.0, bins=250
            ),
            width=4.0,
        )
    else:
        spread = drawn(instance, seed)
    return Problem(
        instance,
        replicas=replicas if rng.random() < 0.7 else (voters, replicas),
        voters=voters,
        objective=Percentile(float(rng.choice(percents)), spread, each),
    )


@settings(max_examples=25, deadline=None)
@given(problems(kinds=KINDS, max_sites=5, max_clients=4), st.integers(0, 2**32 - 1), PERCENTS)
def test_every_rule_and_operation(problem, seed, percent):
    problem = problem.replace(objective=Percentile(percent, drawn(problem.instance, seed)))
    agree(problem, run(EXACT, problem, Options()))


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_equal_to_enumeration(seed):
    problem = question(seed)
    agree(problem, run(EXACT, problem, Options()))


@pytest.mark.parametrize("block", seeds(1, 40))
def test_rtts_that_vary_by_interval(block, monkeypatch):
    """Five questions in every run; half of them without a start."""
    for seed in range(5 * block, 5 * block + 5):
        problem = question(seed, intervals=2 + seed // 2 % 2)
        with monkeypatch.context() as patched:
            if seed % 2:
                patched.setattr(percentile_search.PercentileProof, "_start", lambda self: None)
            plan = run(EXACT, problem, Options())
        agree(problem, plan)
        assert not plan.notes or not COMPILED


@pytest.mark.parametrize("block", seeds(1, 40))
@pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning")
def test_more_clients_than_are_open_in_a_part(block, monkeypatch):
    """Eight questions in every run; half of them without a start."""
    for seed in range(8 * block, 8 * block + 8):
        with monkeypatch.context() as patched:
            if seed % 2:
                patched.setattr(percentile_search.PercentileProof, "_start", lambda self: None)
            problem = question(seed, crowd=6)
            agree(problem, run(EXACT, problem, Options()))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(examples(4)))
@pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning")
def test_equal_to_enumeration_on_a_thousand_worlds(block, monkeypatch):
    """In every other one nothing is known at first, so that no lucky start hides a wrong bound.

    A hundred worlds in the thorough profile; the thousand in the long one.
    """
    from formulations.tail import percentile_search as module

    for seed in range(100 + 25 * block, 125 + 25 * block):
        with monkeypatch.context() as patched:
            if seed % 2:
                search = module.PercentileProof
                patched.setattr(search, "_start", lambda self: None)
            problem = question(seed)
            agree(problem, run(EXACT, problem, Options()))


@pytest.mark.parametrize("seed", [1, 3, 9])
def test_without_a_start(seed, monkeypatch):
    """A perfect start would hide parts that are closed wrongly."""
    from formulations.tail import percentile_search as module

    monkeypatch.setattr(module.PercentileProof, "_start", lambda self: None)
    agree(question(seed), run(EXACT, question(seed), Options()))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.data())
def test_bound_of_the_voters(seed, data):
    """Below every set of voters; equal to the best where RTTs are ordered; in C as in NumPy."""
    problem = question(data.draw(st.integers(0, 2)))
    late = LateOperations(problem, problem.objective.distributions)
    rng = np.random.default_rng(seed)
    sites, others = len(problem.instance.sites), problem.rules.voters - 1
    leader, deadline = int(rng.integers(sites)), int(rng.integers(late.distributions.bins + 20))
    order = VoterOrder.of(late, leader)
    voters = LateVoters(late, leader, deadline, order)
    inside = rng.random(sites) < 0.4
    inside[leader] = True
    free = (rng.random(sites) < 0.6) & ~inside
    room = int(rng.integers(sites))
    least = voters.least(inside, free, room)
    sets = [
        (leader, *chosen)
        for chosen in itertools.combinations(np.nonzero(inside | free)[0].tolist(), others)
        if leader not in chosen and sum(bool(free[v]) for v in chosen) <= room
    ]
    values = [late.led_late(leader, chosen, deadline, problem.rules.quorum) for chosen in sets]
    for chosen, value in zip(sets, values, strict=True):
        if COMPILED:
            assert voters.of(chosen) == pytest.approx(value, abs=1e-11)
    best = min(values, default=math.inf)
    assert least <= best + 1e-11
    if order.ordered:
        assert least == pytest.approx(best, abs=1e-11)
    if COMPILED:
        from formulations.exact import _scenarios

        state = np.where(inside, 1, np.where(free, 0, 2)).astype(np.uint8).tobytes()
        compiled = _scenarios.least_late(voters.compiled, state, room)
        assert min(compiled, 2.0) == pytest.approx(min(least, 2.0), abs=1e-12)


@pytest.mark.parametrize(("limit", "method"), [(20_000, "exhaustive"), (1, "local-search")])
def test_without_the_compiled_search(limit, method, monkeypatch):
    """Few replica sets are enumerated; of more the local search has a bound."""
    monkeypatch.setattr("formulations.tail.percentile_method._FEW_SETS", limit)
    problem = question(3)
    monkeypatch.setattr("formulations.tail.percentile_method.missing", lambda: "it was not built")
    plan = run(EXACT, problem, Options())
    best = run(EXHAUSTIVE, problem, Options())
    assert plan.notes[0].startswith(f"solved by '{method}': the search for percentiles was not")
    assert plan.bound <= best.objective <= plan.objective


def test_one_site_and_nobody_who_asks():
    instance = random_instance(1, sites=1, clients=3)
    spread = Distributions.parametric(instance, variation=0.3, bins=900)
    alone = Problem(instance, replicas=1, voters=1, objective=Percentile(99, spread))
    agree(alone, run(EXACT, alone, Options()))
    instance = random_instance(2, sites=6, clients=6)
    counts = instance.counts.copy()
    counts[:, ::2] = 0
    counts[:, :, 0] = 0
    instance = instance.replace(counts=counts)
    spread = Distributions.parametric(instance, variation=0.3, bins=900)
    some = Problem(instance, replicas=3, voters=2, objective=Percentile(95, spread))
    agree(some, run(EXACT, some, Options()))


def test_point_masses_tie():
    """RTTs that do not vary: every share of late operations is a multiple of few numbers."""
    instance = random_instance(5, sites=7, clients=5)
    counts = np.ones_like(instance.counts)
    instance = instance.replace(counts=counts)
    for percent in (50, 80, 96, 100):
        goal = Percentile(percent, Distributions.constant(instance, bins=900))
        problem = Problem(instance, replicas=3, voters=3, objective=goal)
        agree(problem, run(EXACT, problem, Options()))


def test_bounds_are_honest_at_any_time():
    problem = question(4)
    best = run(EXHAUSTIVE, problem, Options()).objective
    reports = []
    run(EXACT, problem, Options(progress=reports.append))
    for limit in (0.0, 0.005, 0.02):
        plan = run(EXACT, problem, Options(time_limit=limit))
        assert plan.bound <= best
        assert not plan.found or plan.objective >= best
    gap = run(EXACT, problem, Options(gap_limit=0.5))
    assert gap.bound <= best <= gap.objective
    assert gap.gap <= 0.5
    assert reports
    for report in reports:
        assert report.bound <= best <= report.incumbent
    begun = run(EXACT, problem, Options(start=gap.configuration, time_limit=0.0))
    assert begun.objective <= gap.objective


def test_ctrl_c_gives_the_best_so_far(monkeypatch):
    """The signal comes while the bisection is under way."""
    world = placement.load("world27")
    goal = Percentile(99, Distributions.parametric(world, variation=0.2, width=2, bins=600))
    problem = Problem(world, replicas=9, voters=5, objective=goal)

    def report(progress):
        if progress.bound > 0:
            signal.raise_signal(signal.SIGINT)

    assert threading.current_thread() is threading.main_thread()
    plan = run(EXACT, problem, Options(progress=report))
    assert plan.termination == "interrupted"
    assert plan.found
    assert 0 < plan.bound <= plan.objective


def test_no_plan_within_the_horizon():
    instance = random_instance(3, sites=5, clients=4)
    short = Distributions.parametric(instance, variation=0.5, bins=10)
    problem = Problem(instance, replicas=3, voters=3, objective=Percentile(99.9, short))
    plan = run(EXACT, problem, Options())
    assert plan.status is Status.INFEASIBLE
    assert "within the horizon" in plan.reasons[0]
    assert run(EXHAUSTIVE, problem, Options()).status is Status.INFEASIBLE


def test_rules_that_leave_no_plan():
    instance = random_instance(3, sites=5, clients=4)
    goal = Percentile(99, Distributions.parametric(instance, variation=0.2, bins=900))
    levels = {**instance.domains, "all": ["one"] * 5}
    instance = instance.replace(domains=levels)
    problem = Problem(
        instance,
        replicas=3,
        voters=2,
        diversity=[placement.Diversity("all", "replicas", cap=1)],
        objective=goal,
    )
    assert solve(problem, Options()).status is Status.INFEASIBLE


def test_large_worlds_are_proven():
    """Questions that local search leaves open: 48 regions, seven replicas."""
    world = placement.load("azure")
    goal = Percentile(99, Distributions.parametric(world, variation=0.2, width=4, bins=250))
    problem = Problem(world, replicas=7, voters=5, objective=goal)
    plan = run(EXACT, problem, Options())
    assert plan.status is Status.OPTIMAL
    assert plan.stats["least mean proven"]
    checked = check_certificate(plan)
    assert checked.bound == plan.bound
    assert checked.normal_bound == pytest.approx(plan.score, rel=1e-9)

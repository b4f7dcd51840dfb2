"""The engine and the method ``exact``: against enumeration, its ends, its proofs."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.enumeration.exhaustive import METHOD as EXHAUSTIVE
from formulations.exact import branch_and_bound as engine
from formulations.exact import tuning
from formulations.exact.branch_and_bound import SearchLimits, search
from formulations.exact.kernel import compiled_available, open_kernel
from formulations.exact.method import METHOD, solve
from formulations.exact.no_plan_proof import no_plan
from formulations.exact.reduced_problem import ReducedProblem
from placement import Diversity, Problem, load
from placement.errors import InputError, SolverError
from placement.methods.options import Options
from placement.methods.registry import available, run
from placement.proof.certificate_check import check_certificate
from placement.proof.no_plan_check import check_no_plan
from placement.support.status import Status, Termination
from placement.testing import random_instance
from tests import pmed
from tests.cli.command import output_of
from tests.effort import examples, seeds
from tests.exact.worlds import assert_proved, brute_force, drawn, random_core
from tests.protocols.worlds import world

_BUILT = pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
KERNELS = [
    pytest.param("compiled", marks=_BUILT),
    pytest.param("tight", marks=_BUILT),
    pytest.param("sparse", marks=_BUILT),
]

each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def assert_proven(core: ReducedProblem, kernel: str, *, inflated: bool) -> None:
    """The optimum is found and proven, and the proof holds.

    With an inflated start nothing is known of the optimum: a wrong pruning rule then loses it.
    """
    best = brute_force(core)
    pretend = best * 1.5 + 1 if inflated and math.isfinite(best) else None
    check_result(core, search(core, kernel=kernel, pretend=pretend), best)


def check_result(core: ReducedProblem, result: engine.Result, best: float) -> None:
    """Compare a search with the optimum, and check its proof."""
    if math.isinf(best):
        assert result.status is Status.INFEASIBLE
        assert result.bound == math.inf
        return
    assert result.status is Status.OPTIMAL
    assert result.score == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert result.bound <= result.score
    assert result.configuration is not None
    assert core.score(result.configuration) == result.score
    assert_proved(core, result.certificate)


@each_kernel
@given(st.integers(0, 10**9), st.booleans())
def test_equals_enumeration_under_every_rule(kernel, seed, inflated):
    assert_proven(random_core(seed), kernel, inflated=inflated)


@each_kernel
@settings(max_examples=examples(16))
@given(st.integers(0, 10**9), st.booleans())
def test_equals_enumeration_where_trees_grow(kernel, seed, inflated):
    # enough sites that leaves are closed by bounds and fixing, not by enumeration
    core = random_core(seed, max_sites=12, max_clients=40, plain=seed % 2 == 0)
    assert_proven(core, kernel, inflated=inflated)


@each_kernel
@pytest.mark.parametrize("seed", [100, 184, 266])
def test_worlds_that_once_failed(kernel, seed):
    # 100: scores near 3e12, where score − 1 is all that whole numbers leave between bound and
    # score, and where a bound that needs no multipliers was claimed without a proof
    assert_proven(
        random_core(seed, max_sites=12, max_clients=12, plain=True), kernel, inflated=False
    )
    assert_proven(random_core(seed), kernel, inflated=True)


def spread_out(sites: int, clients: int, seed: int, size: int, voters: int) -> ReducedProblem:
    """Modelled network with every kind of demand; relayed reads heavy enough to need branching."""
    rng = np.random.default_rng(seed)
    points, homes = rng.normal(size=(sites, 2)), rng.normal(size=(clients, 2))
    rtt = 5 + 60 * np.linalg.norm(homes[:, None] - points, axis=-1)
    between = 5 + 60 * np.linalg.norm(points[:, None] - points, axis=-1)
    rtt *= rng.lognormal(0, 0.2, rtt.shape)
    between *= rng.lognormal(0, 0.2, between.shape)
    np.fill_diagonal(between, 0)
    load = rng.lognormal(0, 1, clients)
    weights = (load, 0.9 * load, 0.5 * load, 0.2 * float(load.sum()))
    return ReducedProblem.of_arrays(rtt, between, weights, replicas=(size, size), voters=voters)


@each_kernel
def test_reports_never_pass_the_optimum(kernel, monkeypatch):
    core = spread_out(24, 30, seed=3, size=6, voters=3)
    optimum = search(core).score
    monkeypatch.setattr(tuning, "CHUNK_WORK", 1.0)
    monkeypatch.setattr(tuning, "REPORT_EVERY", 0.0)
    result = search(core, kernel=kernel, pretend=optimum * 1.2)
    assert len(result.trace) > 10
    for report in result.trace:
        assert report.bound <= optimum <= report.incumbent * (1 + 1e-12)
    for one, two in zip(result.trace, result.trace[1:], strict=False):
        assert one.bound <= two.bound
        assert one.incumbent >= two.incumbent
    assert result.score == pytest.approx(optimum, rel=1e-9)
    assert result.status is Status.OPTIMAL


INTERRUPTED = """
import json, os, signal, sys, threading
from formulations.exact.branch_and_bound import SearchLimits, search
from tests.exact.test_engine import spread_out

core = spread_out(300, 300, seed=7, size=12, voters=5)
reports = []

def listen(report):
    # The first report comes from the middle of the search.
    if not reports:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    reports.append(report)

result = search(core, limits=SearchLimits(seconds=120.0), listen=listen)
json.dump([result.termination, result.bound, result.score], sys.stdout)
"""


@_BUILT
def test_signal_reaches_the_compiled_kernel():
    termination, bound, score = json.loads(output_of(INTERRUPTED))
    assert termination == Termination.INTERRUPTED
    assert 0 < bound <= score < math.inf


@each_kernel
@settings(max_examples=examples(30))
@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_any_start_gives_the_same_optimum(kernel, seed, other):
    core = random_core(seed)
    cold = search(core, kernel=kernel)
    rng = np.random.default_rng(other)
    noise = {
        leader: rng.random(len(core.active)) * 10.0 ** rng.integers(-3, 5)
        for leader in range(-1, core.sites)
    }
    warm = search(core, kernel=kernel, multipliers=noise, start=cold.configuration)
    assert warm.status is cold.status
    assert warm.score == pytest.approx(cold.score, rel=1e-9, abs=0)


def uniform(value: float, sites: int = 9, clients: int = 9, **changes: object) -> ReducedProblem:
    rtt = np.full((clients, sites), value)
    between = np.where(np.eye(sites, dtype=bool), 0.0, value)
    ask: dict = {"replicas": (4, 4), "voters": 3}
    weights = changes.pop("weights", (np.ones(clients), np.ones(clients), np.ones(clients), 5.0))
    return ReducedProblem.of_arrays(rtt, between, weights, **(ask | changes))


DEGENERATE = {
    "all RTTs equal": uniform(7.0),
    "all RTTs zero": uniform(0.0),
    "one client": uniform(3.0, clients=1),
    "one site": uniform(3.0, sites=1, replicas=(1, 1), voters=1),
    "every site a replica": uniform(5.0, replicas=(9, 9)),
    "tiny RTTs, huge counts": uniform(1e-3, weights=(*(np.full(9, 1e12),) * 3, 9e12)),
    "idle clients": uniform(4.0, weights=(*(np.eye(9)[0],) * 3, 1.0)),
    "only quorum": uniform(4.0, weights=(*(np.zeros(9),) * 3, 1.0)),
    "only relays": uniform(4.0, weights=(np.zeros(9), np.ones(9), np.zeros(9), 0.0)),
    "only reads": uniform(4.0, weights=(np.ones(9), np.zeros(9), np.zeros(9), 0.0)),
    "only the leader": uniform(4.0, weights=(np.zeros(9), np.zeros(9), np.ones(9), 0.0)),
}


@each_kernel
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_worlds(kernel, name):
    assert_proven(DEGENERATE[name], kernel, inflated=False)


@cache
def p_median(nodes: int, medians: int) -> tuple[pmed.PMedian, float]:
    drawn = pmed.draw(nodes, medians, seed=nodes)
    return drawn, pmed.by_integer_program(drawn.distances, medians)


@each_kernel
@pytest.mark.parametrize(("nodes", "medians"), [(40, 4), (60, 12), (70, 5)])
def test_p_median(kernel, nodes, medians):
    drawn, least = p_median(nodes, medians)
    weights = (np.ones(nodes), np.zeros(nodes), np.zeros(nodes), 0.0)
    core = ReducedProblem.of_arrays(
        drawn.distances, drawn.distances, weights, replicas=(medians, medians), voters=1
    )
    result = search(core, kernel=kernel)
    assert result.status is Status.OPTIMAL
    assert result.score == result.bound == least


def test_whole_numbers_are_proven_without_tolerance():
    rng = np.random.default_rng(11)
    rtt = rng.integers(1, 50, (20, 15)).astype(float)
    between = rng.integers(1, 50, (15, 15)).astype(float)
    np.fill_diagonal(between, 0)
    weights = (*(rng.integers(0, 9, 20).astype(float) for _ in range(3)), 4.0)
    core = ReducedProblem.of_arrays(rtt, between, weights, replicas=(5, 5), voters=3)
    assert core.granularity == 1.0
    result = search(core)
    assert result.bound == result.score
    assert_proved(core, result.certificate)


def test_unknown_kernel():
    with pytest.raises(InputError, match="unknown kernel"):
        search(uniform(1.0), kernel="fortran")


@each_kernel
@given(st.integers(0, 10**9), st.sampled_from([1e-3, 0.05, 0.5, 2.0]))
def test_bound_and_gap_hold_under_every_rule(kernel, seed, gap):
    core = random_core(seed)
    best = brute_force(core)
    result = search(core, kernel=kernel, limits=SearchLimits(gap=gap))
    if math.isinf(best):
        assert result.status is Status.INFEASIBLE
        return
    assert result.bound <= best * (1 + 1e-12)
    assert best <= result.score * (1 + 1e-12)
    assert result.score - result.bound <= gap * result.score * (1 + 1e-12)
    if result.status is Status.FEASIBLE:
        assert result.termination is Termination.GAP_LIMIT
    if result.certificate is not None:
        assert result.certificate.bound == result.bound
        assert_proved(core, result.certificate)


def test_a_gap_of_one_search_is_not_that_of_the_next():
    core = spread_out(24, 30, seed=3, size=6, voters=3)
    kernel = open_kernel(core)
    search(core, kernel=kernel, limits=SearchLimits(gap=0.2))
    kernel.resize(core, 60.0)
    assert search(core, kernel=kernel).status is Status.OPTIMAL


def test_the_tree_of_the_relaxation_keeps_the_gap(monkeypatch):
    monkeypatch.setattr(tuning, "RELAX_EXPONENT", 0.5)  # the rival comes early
    core = drawn(60, 8, 3)
    proven, near = (search(core, limits=SearchLimits(gap=gap)) for gap in (0.0, 0.02))
    assert near.bound <= proven.score <= near.score
    assert near.score - near.bound <= 0.02 * near.score


def test_the_certificate_of_a_gap_is_checked_and_proves_no_more():
    problem = Problem(load("azure", mix="oltp"), replicas=7, voters=3)
    plan = run(METHOD, problem, Options(gap_limit=0.002))
    assert (plan.status, plan.termination) == ("feasible", "gap limit")
    assert plan.gap <= 0.002
    assert plan.certificate is not None
    checked = check_certificate(plan)
    assert checked.bound == plan.bound < plan.objective


@pytest.mark.parametrize("part", seeds(4, 40))
def test_sites_that_go_out_beyond_the_gap_are_bounded(part):
    """Waits too long for the cutoff are left out where sites are fixed, and may be the best."""
    for seed in range(12 * part, 12 * part + 12):
        rng = np.random.default_rng([seed, 5])
        one = world(seed, sites=int(rng.integers(4, 7)), clients=int(rng.integers(1, 5)))
        lopsided = one.site_rtt + rng.integers(0, 4, one.site_rtt.shape) * 30.0
        np.fill_diagonal(lopsided, 0)
        problem = Problem(
            one.replace(site_rtt=lopsided),
            replicas=4,
            voters=3,
            protocol=str(rng.choice(["leases", "leases", "raft"])),
        )
        best = run(METHOD, problem, Options()).objective
        for gap in (0.05, 0.2):
            plan = run(METHOD, problem, Options(gap_limit=gap))
            assert plan.bound <= best * (1 + 1e-12), seed
            assert plan.objective - plan.bound <= gap * plan.objective * (1 + 1e-9)
            assert check_certificate(plan).bound <= best * (1 + 1e-12)


needs_compiled = pytest.mark.skipif(not compiled_available(), reason="no compiled kernel")

LATE = 1.0
"""Seconds that a busy machine may be late; without a clock these searches take many times that."""


def between_sites(
    sites: int, replicas: tuple[int, int], voters: int, relayed: bool = True
) -> ReducedProblem:
    """Return a drawn problem whose clients sit between the sites."""
    rng = np.random.default_rng(sites)
    points, homes = rng.random((sites, 2)), rng.random((sites, 2))
    between = 100 * np.linalg.norm(points[:, None] - points, axis=-1)
    weight = rng.lognormal(0, 1, sites)
    zero = np.zeros(sites)
    return ReducedProblem.of_arrays(
        100 * np.linalg.norm(homes[:, None] - points, axis=-1),
        between,
        (weight, weight, weight, float(weight.sum())) if relayed else (weight, zero, zero, 0.0),
        replicas=replicas,
        voters=voters,
    )


@pytest.mark.parametrize("limit", [0.0, 0.05, pytest.param(0.5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("replicas", [(9, 9), (60, 60), (5, 40)])
@pytest.mark.parametrize("relayed", [True, False])
@needs_compiled
def test_a_search_ends_at_its_limit(relayed, replicas, limit):
    core = between_sites(400, replicas, 5 if relayed else 1, relayed)
    opened = open_kernel(core)
    began = time.perf_counter()
    result = search(core, limits=SearchLimits(seconds=limit), kernel=opened, certify=False)
    assert time.perf_counter() - began < limit + LATE
    assert result.status in (Status.FEASIBLE, Status.OPTIMAL)


@needs_compiled
def test_growing_to_another_size_ends_at_its_limit():
    core = between_sites(400, (5, 5), 3)
    opened = open_kernel(core)
    search(core, limits=SearchLimits(seconds=0.0), kernel=opened, certify=False)
    assert opened.incumbent() is not None
    began = time.perf_counter()
    opened.resize(between_sites(400, (300, 300), 3), 0.0)
    assert time.perf_counter() - began < LATE
    assert opened.incumbent() is None


def test_equals_enumeration():
    infeasible = 0
    for seed in range(examples(700, 200)):
        core = random_core(seed, max_clients=2)
        found = no_plan(core.rules)
        assert (found is not None) is math.isinf(brute_force(core)), seed
        if found is not None:
            infeasible += 1
            names = tuple(map(str, range(core.sites)))
            leaders, _ = check_no_plan(core.rules, names, found.to_json())
            assert leaders == core.rules.may_lead.sum()
    assert infeasible > examples(700, 200) / 10


def grid(size: int, voters: int, *, columns: int) -> ReducedProblem:
    """Sites on a grid; one voter in a row, one replica in a column, nothing below the diagonal.

    The last row has one site that may vote, the one before two, and so on: as many voters as rows
    are the sites of the diagonal and no others.
    """
    rows, column = np.divmod(np.arange(size * columns), columns)
    rng = np.random.default_rng(1)
    sites = size * columns
    return ReducedProblem.of_arrays(
        rng.random((3, sites)),
        1 - np.eye(sites),
        (np.ones(3), np.ones(3), np.ones(3), 1.0),
        replicas=(voters, voters),
        voters=voters,
        caps=(("voters", rows, 1), ("replicas", column, 1)),
        may_vote=rows + column < size,
    )


@pytest.mark.parametrize(("size", "columns"), [(4, 4), (5, 7), (6, 6), (9, 9)])
def test_voters_that_only_exchanges_find(size, columns):
    """A matching that gives the first columns to the first rows must move them to the last rows."""
    full = grid(size, size, columns=columns)
    assert no_plan(full.rules) is None
    # without one site of the diagonal
    may_vote = full.rules.may_vote & (np.arange(size * columns) != size - 1)
    rules = dataclasses.replace(full.rules, may_vote=may_vote, may_lead=may_vote)
    found = no_plan(rules)
    assert found is not None
    names = tuple(map(str, range(size * columns)))
    assert check_no_plan(rules, names, found.to_json())[0] == may_vote.sum()


@each_kernel
def test_what_trees_would_take_hours_for(kernel):
    """Voters in two domains of many with one replica each: no tree is begun."""
    sites, domains = 120, np.arange(120) // 4
    rng = np.random.default_rng(2)
    core = ReducedProblem.of_arrays(
        rng.random((40, sites)),
        rng.random((sites, sites)) * (1 - np.eye(sites)),
        (np.ones(40), np.ones(40), np.ones(40), 40.0),
        replicas=(9, 12),
        voters=3,
        caps=(("replicas", domains, 1),),
        may_vote=domains < 2,
    )
    result = search(core, kernel=kernel)
    assert result.status is Status.INFEASIBLE
    assert result.termination is Termination.FINISHED
    assert result.bound == math.inf
    assert result.counters.nodes == 0
    assert result.certificate is None
    assert result.none is not None
    assert result.none.to_json() == {
        "format": "replica-placement/no-plan/1",
        "proofs": [{"leaders": list(range(8)), "by_votes": []}],
    }


@each_kernel
def test_trees_and_counting_must_agree(kernel, monkeypatch):
    core = next(c for c in map(random_core, range(100)) if no_plan(c.rules) is not None)
    monkeypatch.setattr(engine, "no_plan", lambda rules: None)
    with pytest.raises(SolverError, match="the counting check shows that one exists"):
        search(core, kernel=kernel)


needs_milp = pytest.mark.skipif("milp" not in available(), reason="milp is not registered")


@settings(max_examples=examples(20))
@given(st.integers(0, 10**6))
def test_certificate_is_json(seed):
    problem = Problem(random_instance(seed), replicas=3, voters=2)
    plan = run(METHOD, problem, Options())
    text = json.dumps(plan.certificate)
    assert json.loads(text) == plan.certificate
    assert plan.certificate["bound"] == pytest.approx(plan.bound, rel=1e-12)


def test_certificate_can_be_left_out():
    problem = Problem(random_instance(1), replicas=3, voters=2)
    plan = run(METHOD, problem, Options(settings={"certificate": False}))
    assert plan.status is Status.OPTIMAL
    assert plan.certificate is None


@needs_milp
@pytest.mark.parametrize(
    ("instance", "question", "word"),
    [
        (
            random_instance(3, prices=True),
            {
                "replicas": 3,
                "voters": 2,
                "budget": 1e9,
                "diversity": [Diversity("region", "replicas", min_domains=2)],
            },
            "budget",
        ),
        (
            random_instance(3, prices=True, intervals=2, varying=True),
            {"replicas": 3, "voters": 2, "budget": 1e9},
            "budget",
        ),
        (
            random_instance(3, sites=20, clients=2, intervals=2, varying=True),
            {"replicas": 20, "voters": 9},
            "vary by interval",
        ),
    ],
)
def test_hands_on_what_the_engine_cannot_take_and_says_so(instance, question, word):
    problem = Problem(instance, **question)
    plan = run(METHOD, problem, Options())
    truth = run(EXHAUSTIVE, problem, Options())
    assert plan.status is truth.status
    assert plan.method == "exact"
    assert any("milp" in note and word in note for note in plan.notes)
    if truth.found:
        assert plan.objective == pytest.approx(truth.objective, rel=1e-9)


def test_infeasible_has_a_reason():
    instance = random_instance(5)
    domains = len(set(instance.labels("region")))
    problem = Problem(
        instance,
        replicas=domains + 1,
        voters=1,
        diversity=[Diversity("region", role="replicas", cap=1)],
    )
    options = Options(settings={"certificate": True})
    plan = solve(problem, options)  # without the check that `run` makes first
    assert plan.status is Status.INFEASIBLE
    assert plan.bound == math.inf
    assert plan.reasons
    assert plan.termination is Termination.FINISHED


def test_engine_imports_nothing_heavy():
    heavy = {"pandas", "pyomo", "ortools", "highspy", "matplotlib", "scipy", "numba"}
    loaded = output_of("import sys, formulations.exact.method\nprint(*sys.modules)").split()
    assert not heavy & set(loaded)


WITHOUT_KERNEL = """
import sys
sys.modules["formulations.exact._kernel"] = None
from formulations.exact.kernel import compiled_available
from formulations.exact.method import METHOD
from placement import Problem
from placement.methods import Options, run
from placement.testing import random_instance
assert not compiled_available()
plan = run(METHOD, Problem(random_instance(0), replicas=3, voters=2), Options())
print(plan.status, *plan.notes, sep="\\n")
"""


def test_works_without_the_compiled_kernel():
    """As on a machine where it could not be built: `milp` answers, and the plan says so."""
    status, note, *_ = output_of(WITHOUT_KERNEL).splitlines()
    assert status == "optimal"
    assert note.startswith("solved by 'milp': the compiled kernels")

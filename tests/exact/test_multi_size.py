"""Several numbers of replicas by one search: the same optima as each alone, at any point of it."""

from __future__ import annotations

import dataclasses
import math
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.exact import tuning
from formulations.exact.branch_and_bound import search
from formulations.exact.kernel import compiled_available, open_kernel
from formulations.exact.kernel_types import SizeBatch
from formulations.exact.method import METHOD, Session
from formulations.exact.multi_size import SizeResult, prove_sizes, take_shared
from formulations.exact.reduced_problem import ReducedProblem
from placement import Diversity, Problem, sweep
from placement.methods.options import Options
from placement.methods.registry import prepare_batch, run
from placement.support.status import Status, Termination
from placement.testing import random_instance
from tests.effort import examples
from tests.exact.worlds import brute_force, random_core

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")

UNCERTIFIED = {"certificate": False, "kernel": "auto"}


def of_sizes(core: ReducedProblem, sizes: list[int]) -> list[ReducedProblem]:
    """The problem with each number of replicas, without caps."""
    cores = []
    for size in sizes:
        rules = dataclasses.replace(core.rules, replicas_min=size, replicas_max=size, groups=())
        cores.append(ReducedProblem(core.demand, rules, core.price))
        take_shared(cores[-1], cores[0])
    return cores


def sizes_of(cores: list[ReducedProblem]) -> list[int]:
    return [core.rules.replicas_max for core in cores]


def plain(seed: int, **limits: int) -> ReducedProblem:
    """A generated problem without rules for voters: no search is for several of those."""
    core = random_core(seed, **limits)
    nobody = np.zeros(core.sites, dtype=np.bool_)
    rules = dataclasses.replace(
        core.rules,
        must_vote=nobody,
        may_vote=core.rules.may_hold,
        may_lead=core.rules.may_lead & core.rules.may_hold,
        groups=(),
    )
    return ReducedProblem(core.demand, rules, core.price)


def check_each(cores: list[ReducedProblem], found: list[SizeResult]) -> None:
    for core, one in zip(cores, found, strict=True):
        truth = brute_force(core)
        if one.proven:
            assert one.proposal.score == pytest.approx(truth, rel=1e-9, abs=1e-12)
        assert one.bound <= truth * (1 + 1e-12)
        best = core.configuration(one.proposal.leader, one.proposal.replicas)
        assert best is not None
        assert core.score(best) == pytest.approx(one.proposal.score, rel=1e-9, abs=1e-12)
        assert len(best.replicas) == core.rules.replicas_max


@settings(max_examples=examples(400))
@given(
    st.integers(0, 10**6),
    st.integers(0, 2**8 - 1),
    st.sampled_from(["compiled", "tight", "sparse"]),
)
def test_every_size_is_proven_as_by_enumeration(seed, chosen, kernel):
    core = plain(seed)
    least = max(core.rules.voters, int(core.rules.must_hold.sum()))
    sizes = [n for n in range(least, core.sites + 1) if chosen >> (n - 1) & 1]
    if len(sizes) < 2:
        return
    cores = of_sizes(core, sizes)
    found = prove_sizes(cores[0], sizes_of(cores), open_kernel(cores[0], kernel), math.inf)
    if found is None:  # some size has no configuration, or pins leave so few that none was found
        assert core.rules.must_hold.any() or any(math.isinf(brute_force(core)) for core in cores)
        return
    assert all(one.proven for one in found)
    check_each(cores, found)


@settings(max_examples=examples(100))
@given(st.integers(0, 10**6), st.floats(0, 3e5), st.sampled_from([0.0, math.inf]))
def test_what_is_proven_when_work_or_time_is_over_is_proven(seed, work, seconds):
    core = plain(seed, max_sites=9, max_clients=12)
    cores = of_sizes(core, list(range(core.rules.voters, core.sites + 1)))
    sizes = SizeBatch.of(sizes_of(cores), core.sites)
    kernel = open_kernel(cores[0])
    if not kernel.solve_sizes(sizes, cores[0].leaders.tolist(), 3, 2, work, seconds):
        return
    found = [
        SizeResult(sizes.proposal(at), 0.0, not sizes.open[at], False, kernel.counters())
        for at in range(len(cores))
    ]
    check_each(cores, found)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10**6), st.integers(10, 24), st.integers(1, 5))
def test_larger_worlds_are_worth_what_each_is_worth_alone(seed, sites, voters):
    """Trees: about half of these need some."""
    rng = np.random.default_rng(seed)
    points, homes = rng.random((sites, 2)), rng.random((sites + 5, 2))
    site_rtt = (
        100
        * np.linalg.norm(points[:, None] - points, axis=-1)
        * rng.uniform(0.6, 1.4, (sites, sites))
    )
    np.fill_diagonal(site_rtt, 0)
    core = ReducedProblem.of_arrays(
        100 * np.linalg.norm(homes[:, None] - points, axis=-1),
        site_rtt,
        (
            rng.integers(0, 100, len(homes)) * (rng.random() < 0.7),
            rng.integers(0, 100, len(homes)) * (rng.random() < 0.8),
            rng.integers(0, 100, len(homes)) * (rng.random() < 0.5),
            float(rng.integers(0, 3000)),
        ),
        replicas=(voters, voters),
        voters=voters,
        may_lead=rng.random(sites) < 0.7,
    )
    if not core.rules.may_lead.any():
        return
    cores = of_sizes(core, list(range(voters, min(sites, voters + 9))))
    found = prove_sizes(cores[0], sizes_of(cores), open_kernel(cores[0]), math.inf)
    assert found is not None
    for core, one in zip(cores, found, strict=True):
        alone = search(core, certify=False)
        assert one.proven
        assert one.proposal.score == pytest.approx(alone.score, rel=1e-9)
        assert one.bound == pytest.approx(alone.score, rel=1e-9)


def test_all_sizes_of_a_world_at_once():
    instance = random_instance(11, sites=11, clients=14)
    problems = [Problem(instance, replicas=n, voters=1) for n in range(1, 12)]
    cores = [ReducedProblem.of(problem) for problem in problems[:-1]]
    found = prove_sizes(cores[0], sizes_of(cores), open_kernel(cores[0]), math.inf)
    assert found is not None
    check_each(cores, found)


def test_refusals():
    instance = random_instance(2, sites=6, clients=5)
    base = [Problem(instance, replicas=n, voters=3) for n in (3, 4, 5)]
    cores = [ReducedProblem.of(problem) for problem in base]
    assert prove_sizes(cores[0], [3], open_kernel(cores[0]), math.inf) is None
    assert prove_sizes(cores[0], [3, 4], open_kernel(cores[0], "numpy"), math.inf) is None
    capped = [p.replace(diversity=[Diversity("region", cap=1)]) for p in base]
    cores = [ReducedProblem.of(problem) for problem in capped]
    assert prove_sizes(cores[0], sizes_of(cores), open_kernel(cores[0]), math.inf) is None


def test_the_binding_refuses_what_does_not_fit():
    core = of_sizes(plain(7, max_sites=8), [1])[0]
    kernel = open_kernel(core)
    for sizes in ([2, 2], [3, 2], [core.sites + 1], [0], []):
        with pytest.raises(ValueError, match=r"fit|ascending"):
            kernel.solve_sizes(SizeBatch.of(sizes, core.sites), [0], 20, 60, 1e9, 1.0)
    with pytest.raises(ValueError, match="fit"):
        kernel.solve_sizes(SizeBatch.of([1, 2], core.sites), [core.sites], 20, 60, 1e9, 1.0)


class TestSession:
    def problems(self, **rules: object) -> list[Problem]:
        instance = random_instance(8, sites=9, clients=9, prices=True)
        return [Problem(instance, replicas=n, voters=3, **rules) for n in (3, 4, 6, 7)]

    @pytest.mark.parametrize(
        "rules",
        [{}, {"cost_weight": 0.5}, {"quorum": 3}, {"diversity": [Diversity("region", cap=2)]}],
        ids=str,
    )
    def test_answers_are_those_of_each_alone(self, rules):
        session = METHOD.in_session()
        problems, options = self.problems(**rules), Options(settings=UNCERTIFIED)
        prepare_batch(session, problems, options)
        for problem in [*problems[::-1], problems[1]]:  # in any order, and again
            plan, alone = run(session, problem, options), run(METHOD, problem, options)
            assert plan.status is alone.status is Status.OPTIMAL
            assert plan.objective == pytest.approx(alone.objective, rel=1e-9)
            assert plan.stats.keys() == alone.stats.keys()

    @pytest.mark.parametrize(
        ("chosen", "gap", "known"),
        [
            (UNCERTIFIED, 0.0, 4),
            ({**UNCERTIFIED, "certificate": True}, 0.0, 0),
            (UNCERTIFIED, 0.01, 0),
            ({**UNCERTIFIED, "kernel": "numpy"}, 0.0, 0),
        ],
    )
    def test_only_what_asks_for_no_more_is_prepared(self, chosen, gap, known):
        session = Session()
        session.prepare(self.problems(), Options(gap_limit=gap, settings=chosen))
        assert len(session._prepared) == known

    def test_what_was_not_proven_is_proven_when_asked(self, monkeypatch):
        monkeypatch.setattr(tuning, "SIZES_WORK", 0.0)
        session, problems = METHOD.in_session(), self.problems()
        options = Options(settings=UNCERTIFIED)
        prepare_batch(session, problems, options)
        for problem in problems:
            plan = run(session, problem, options)
            assert plan.status is Status.OPTIMAL
            assert plan.objective == pytest.approx(run(METHOD, problem, options).objective)

    def test_after_an_interrupt_the_best_so_far_is_there(self, monkeypatch):
        class Interrupted:
            """A kernel in which Ctrl-C arrives when all sizes have a configuration."""

            def __init__(self, core: ReducedProblem) -> None:
                self.inner = open_kernel(core)

            def solve_sizes(self, sizes, leaders, steps, swaps, work, seconds):
                assert self.inner.solve_sizes(sizes, leaders, steps, swaps, 0.0, seconds)
                raise KeyboardInterrupt

            def counters(self):
                return self.inner.counters()

        session, problems = METHOD.in_session(), self.problems()
        options = Options(settings=UNCERTIFIED)
        truths = [run(METHOD, problem, options).objective for problem in problems]
        monkeypatch.setattr(
            "formulations.exact.method.open_kernel", lambda core, which: Interrupted(core)
        )
        prepare_batch(session, problems, options)
        for problem, truth in zip(problems, truths, strict=True):
            plan = run(session, problem, options)
            assert plan.found
            assert plan.bound <= truth * (1 + 1e-12)
            assert plan.termination in (Termination.INTERRUPTED, Termination.FINISHED)


def test_a_sweep_that_is_interrupted_at_once_says_so(monkeypatch):
    def raised(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("formulations.exact.method.prove_sizes", raised)
    table = sweep(random_instance(1, sites=6, clients=6), replicas=range(3, 6))
    assert set(table["status"]) == {"not run"}


def test_ctrl_c_reaches_the_search(monkeypatch):
    """The signal comes while the kernel works; what it has is kept."""
    rng = np.random.default_rng(3)
    sites, clients = 120, 300
    points, homes = rng.random((sites, 2)), rng.random((clients, 2))
    core = ReducedProblem.of_arrays(
        100 * np.linalg.norm(homes[:, None] - points, axis=-1),
        100 * np.linalg.norm(points[:, None] - points, axis=-1),
        (rng.integers(0, 100, clients), rng.integers(0, 100, clients), np.zeros(clients), 500.0),
        replicas=(3, 3),
        voters=3,
    )
    monkeypatch.setattr(tuning, "SIZES_WORK", 1e13)
    cores = of_sizes(core, list(range(5, 16)))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        found = prove_sizes(cores[0], sizes_of(cores), open_kernel(cores[0]), math.inf)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert found is not None
    assert all(one.interrupted for one in found)
    assert all(one.bound <= one.proposal.score for one in found)

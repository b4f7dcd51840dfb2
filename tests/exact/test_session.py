"""Problems one after another in a session: the same optimum as each alone, and proofs that hold."""

from __future__ import annotations

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.enumeration.exhaustive import METHOD as EXHAUSTIVE
from formulations.exact import tuning
from formulations.exact.branch_and_bound import search
from formulations.exact.kernel import compiled_available, open_kernel
from formulations.exact.method import METHOD, Session
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.warm_start import differ_in_size_only, take_shared
from placement import Diversity, Problem
from placement.methods.options import Options
from placement.methods.registry import available, run
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status, Termination
from placement.testing import random_instance
from tests.effort import examples
from tests.exact.worlds import assert_proved, brute_force, random_core

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")


def sized(core: ReducedProblem, least: int, most: int) -> ReducedProblem:
    rules = dataclasses.replace(core.rules, replicas_min=least, replicas_max=most)
    return ReducedProblem(core.demand, rules, core.price)


def led_by(core: ReducedProblem, leader: int) -> ReducedProblem:
    """The problem with one leader; as it is for −1, any."""
    if leader < 0:
        return core
    only = np.arange(core.sites) == leader
    return ReducedProblem(core.demand, dataclasses.replace(core.rules, may_lead=only), core.price)


@settings(max_examples=examples(60))
@given(
    st.integers(0, 10**6),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), max_size=4),
    st.booleans(),
)
def test_a_kernel_that_is_resized_proves_the_optimum_of_every_size(seed, steps, again):
    core = random_core(seed)
    opened = open_kernel(core)
    multipliers: dict[int, np.ndarray] = {}
    for size, span in [(core.rules.replicas_min, 0), *steps]:
        # sizes go up and down, past what is feasible too
        least = min(max(size, core.rules.voters), core.sites)
        next_core = sized(core, least, min(least + span, core.sites))
        assert differ_in_size_only(next_core, core)
        take_shared(next_core, core)
        opened.resize(next_core, 60.0)
        result = search(
            next_core, kernel=opened, multipliers=multipliers, continues=again and bool(multipliers)
        )
        truth = brute_force(next_core)
        assert result.termination is Termination.FINISHED
        if math.isinf(truth):
            assert result.status is Status.INFEASIBLE
        else:
            assert result.score == pytest.approx(truth, rel=1e-9, abs=1e-12)
            assert result.bound <= truth * (1 + 1e-12)
            assert_proved(next_core, result.certificate)
            for leader, bound in result.leader_bounds.items():
                alone = led_by(next_core, leader)  # what a tree has evaluated it does not bound
                assert min(bound, result.score) <= brute_force(alone) * (1 + 1e-12)
        multipliers = dict(result.multipliers)
        core = next_core


@settings(max_examples=examples(60))
@given(st.integers(0, 10**6), st.integers(0, 7), st.integers(0, 2), st.data())
def test_what_is_recalled_is_the_bound_at_the_multipliers_of_the_last_look(seed, size, span, data):
    core = random_core(seed)
    leaders = [leader for leader in core.leaders.tolist() if data.draw(st.booleans())]
    opened = open_kernel(core)
    u = {leader: np.zeros(len(core.active)) for leader in leaders}
    for leader in leaders:
        opened.bound_root(leader, u[leader], 5, 3, False, 60.0)
    least = min(max(size, core.rules.voters), core.sites)
    other = sized(core, least, min(least + span, core.sites))
    opened.resize(other, 60.0)
    warm_bounds = opened.bounds_from_memory(core.leaders.tolist(), 9, 60.0)
    truth = brute_force(other)
    fresh = open_kernel(other)
    for leader, bound in zip(core.leaders.tolist(), warm_bounds.tolist(), strict=True):
        if leader not in u:
            assert math.isnan(bound)
            continue
        expected = fresh.bound_root(leader, u[leader].copy(), 1, 0, True, 60.0)
        assert bound == pytest.approx(expected, rel=1e-12, abs=1e-12)
    found = opened.incumbent()
    if found is not None:
        assert found.score >= truth * (1 - 1e-12)
        configuration = other.configuration(found.leader, found.replicas)
        assert other.score(configuration) == pytest.approx(found.score, rel=1e-9)
    if leaders == core.leaders.tolist():
        assert min(warm_bounds, default=math.inf) <= truth * (1 + 1e-12)


@pytest.mark.parametrize("role", ["voters", "replicas"])
def test_a_session_answers_what_each_solve_answers(role):
    instance = random_instance(8, sites=8, clients=9, prices=True)
    rules: list[dict[str, object]] = [
        {},
        {"diversity": [Diversity("region", role=role, cap=2)]},
        {"pinned": instance.sites[:1], "cost_weight": 0.5},
        {"forbidden": instance.sites[2:4]},
    ]
    session = METHOD.in_session()
    options = Options()
    for rule in rules:
        for size in (3, 4, 6, 5, 8, 2):
            if size < 3 and rule:
                continue
            problem = Problem(instance, replicas=size, voters=min(size, 3), **rule)
            plan, alone = run(session, problem, options), run(METHOD, problem, options)
            truth = run(EXHAUSTIVE, problem, Options())
            assert plan.status is alone.status is truth.status
            if truth.found:
                assert plan.objective == pytest.approx(truth.objective, rel=1e-9)
                check_certificate(plan)


@pytest.mark.skipif("milp" not in available(), reason="milp is not registered")
def test_a_session_hands_on_and_goes_on():
    """A budget where RTTs vary by interval is a question for another method."""
    steady = random_instance(3, prices=True)
    varying = random_instance(3, intervals=2, varying=True, prices=True)
    session = METHOD.in_session()
    for size, instance in ((3, steady), (4, varying), (5, varying), (5, steady)):
        budget = 1e6 if instance is varying else None
        problem = Problem(instance, replicas=size, voters=2, budget=budget)
        plan = run(session, problem, Options())
        truth = run(EXHAUSTIVE, problem, Options())
        assert plan.objective == pytest.approx(truth.objective, rel=1e-9)
        assert bool(plan.notes) == (instance is varying)


def test_a_session_that_was_stopped_goes_on():
    instance = random_instance(4, sites=9, clients=9)
    session = Session()
    chosen = {"certificate": True}

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    for size in (3, 4, 5):
        problem = Problem(instance, replicas=size, voters=3)
        stopped = session(problem, Options(progress=stop, settings=chosen))
        assert stopped.termination in (Termination.INTERRUPTED, Termination.FINISHED)
        plan = session(problem, Options(settings=chosen))
        truth = run(EXHAUSTIVE, problem, Options())
        assert plan.status is Status.OPTIMAL
        assert plan.objective == pytest.approx(truth.objective, rel=1e-9)
        check_certificate(plan)


@pytest.mark.parametrize("reports", range(1, 5))
def test_what_was_not_noted_when_a_search_was_stopped_closes_nothing(monkeypatch, reports):
    """A quick bound that nobody has noted is in the memory of the kernel alone."""
    monkeypatch.setattr(tuning, "QUICK_BOUND_CELLS", 0)
    monkeypatch.setattr(tuning, "REPORT_EVERY", 0.0)
    instance = random_instance(3, sites=12, clients=9)
    session = Session()
    chosen = {"certificate": True}
    seen: list[object] = []

    def stop(report: object) -> None:
        seen.append(report)
        if len(seen) == reports:
            raise KeyboardInterrupt

    session(Problem(instance, replicas=3, voters=3), Options(progress=stop, settings=chosen))
    for size in (4, 5, 3):
        problem = Problem(instance, replicas=size, voters=3)
        plan = session(problem, Options(settings=chosen))
        assert plan.status is Status.OPTIMAL
        assert plan.objective == pytest.approx(
            run(EXHAUSTIVE, problem, Options()).objective, rel=1e-9
        )
        check_certificate(plan)


def test_cores_that_differ_in_more_than_their_size_are_not_alike():
    instance = random_instance(5, sites=6, clients=5, prices=True)
    site, other = instance.sites[:2]
    base = {"replicas": 4, "voters": 3}
    core = ReducedProblem.of(Problem(instance, **base))
    assert differ_in_size_only(
        core, ReducedProblem.of(Problem(instance, replicas=(3, 5), voters=3))
    )
    for change in (
        {"voters": 2},
        {"quorum": 3},
        {"leader": site},
        {"forbidden": [other]},
        {"pinned": [other]},
        {"pinned_voters": [other]},
        {"non_voters": [other]},
        {"cost_weight": 1.0},
        {"diversity": [Diversity("region", cap=2)]},
        {"replicas": 6},  # then every site must hold one
    ):
        assert not differ_in_size_only(
            core, ReducedProblem.of(Problem(instance, **{**base, **change}))
        ), change
    capped = [
        ReducedProblem.of(
            Problem(instance, **base, diversity=[Diversity("region", role=role, cap=cap)])
        )
        for role, cap in (("voters", 2), ("voters", 1), ("replicas", 2))
    ]
    assert not differ_in_size_only(capped[0], capped[1])
    assert not differ_in_size_only(capped[0], capped[2])
    doubled = instance.replace(counts=2 * instance.counts)
    assert not differ_in_size_only(core, ReducedProblem.of(Problem(doubled, **base)))


def test_a_certificate_is_decoded_when_it_is_read_and_not_before(monkeypatch):
    from formulations.exact import certificate_events as certificate

    decoded: list[int] = []
    decode = certificate.decode_trees

    def counting(*record):
        decoded.append(1)
        return decode(*record)

    monkeypatch.setattr(certificate, "decode_trees", counting)
    problem = Problem(random_instance(6), replicas=3, voters=2)
    plan = run(METHOD, problem, Options())
    assert plan.replace(seconds=1.0).found
    assert not decoded
    document = plan.certificate
    assert len(decoded) == 1
    assert plan.certificate is document
    twin = run(METHOD, problem, Options())
    assert pickle.loads(pickle.dumps(twin)).certificate == document
    assert twin.replace(seconds=1.0).certificate == document
    assert len(decoded) == 2

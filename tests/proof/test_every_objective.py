"""A cross-check over every constraint and objective: what is proven carries a proof that holds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import Operation
from placement.contingency.objective import Contingency
from placement.errors import InputError
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.proof.certificate_check import check_certificate
from placement.support.status import Status
from placement.tail import Distributions, Percentile
from placement.testing import random_instance
from tests.strategies import ALL, MONEY, problems
from tests.tail.worlds import drawn, drawn_by_interval

EXACT = load_method("exact")
PROVEN = (Status.OPTIMAL, Status.INFEASIBLE)


EXHAUSTIVE = load_method("exhaustive")
LEVELS = ("site", "site", "zone", "region", "continent", "provider")
KINDS = ("mean", "worst", "bounded", "weighted", "percentile", "percentile after losses")


def _percentile(draw, problem, *, after_losses):
    """A percentile, on drawn or parametric distributions; of each interval where RTTs vary."""
    instance, seed = problem.instance, draw(st.integers(0, 1000))
    varies = instance.client_rtt.ndim > 2 or instance.site_rtt.ndim > 2
    spread = (
        drawn_by_interval(instance, seed, bins=24)
        if varies
        else drawn(instance, seed, bins=30 if after_losses else 60)
        if draw(st.booleans())
        else Distributions.parametric(instance, variation=0.3, width=10, bins=60)
    )
    return Percentile(draw(st.sampled_from([50, 90, 99])), spread)


@st.composite
def questions(draw):
    """A problem with any constraints, and one of the objectives."""
    kind = draw(st.sampled_from(KINDS))
    without = frozenset() if kind == "mean" else MONEY - {"budget"}
    about_losses = kind not in ("mean", "percentile")
    most = 5 if kind == "percentile after losses" else 7
    problem = draw(
        problems(kinds=ALL - without, max_sites=most, max_clients=5, writes=about_losses)
    )
    sites = len(problem.instance.sites)
    try:
        goal = None
        if "percentile" in kind:
            goal = _percentile(draw, problem, after_losses=about_losses)
        if about_losses:
            goal_of_losses = kind
            if goal is not None:
                goal_of_losses = draw(st.sampled_from(["worst", "bounded"]))
            level = draw(st.sampled_from(LEVELS))
            goal = Contingency(
                level,
                goal_of_losses,
                together=draw(st.sampled_from([1, 1, 1, 2])) if sites > 1 else 1,
                limit=draw(st.floats(5, 900)) if goal_of_losses == "bounded" else None,
                probability=0.5 / sites**2 if kind == "weighted" else None,
                leader_may_move=draw(st.booleans()),
                clients_move=goal is None and draw(st.sampled_from([False, False, True])),
                percentile=goal,
            )
        return kind, problem if goal is None else problem.replace(objective=goal)
    except InputError:
        return kind, problem


@given(questions())
def test_what_is_proven_is_proved_again(question):
    """Every question of a small test network has the value of enumeration, and a proof."""
    _, problem = question
    plan = run(EXACT, problem, Options())
    assert plan.status in PROVEN
    checked = check_certificate(plan)
    if plan.found:
        assert plan.bound <= checked.bound * (1 + 1e-12) + 1e-300
        assert checked.bound <= plan.objective * (1 + 1e-12)
    else:
        assert checked.bound == math.inf
    if EXHAUSTIVE.refuses(problem) is None:
        every = run(EXHAUSTIVE, problem, Options())
        assert every.status is plan.status
        assert not plan.found or plan.objective == pytest.approx(every.objective, rel=2e-9)


def test_nothing_is_certified_where_it_was_not_asked_for():
    problem = placement.Problem(
        placement.load("world27"), replicas=3, voters=3, objective=Contingency()
    )
    plan = run(EXACT, problem, Options(settings={"certificate": False}))
    assert plan.status is Status.OPTIMAL
    assert not plan.certified
    assert plan.score == pytest.approx(run(EXACT, problem, Options()).score)
    assert np.isfinite(plan.bound)


def test_a_replica_that_cannot_lead_is_no_better_plan():
    """Where no operation asks the leader one proof does for all, and they still must be allowed."""
    instance = random_instance(3, sites=2, clients=1)
    weak = Operation("weak", near=1.0)
    instance = instance.replace(operations=(weak,), counts=np.ones((1, 1, 1)))
    for leader in instance.sites:
        problem = placement.Problem(instance, replicas=1, voters=1, leaders=(leader,))
        plan = run(EXACT, problem, Options())
        assert check_certificate(plan).score == plan.objective

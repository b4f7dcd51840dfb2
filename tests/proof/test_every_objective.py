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
from placement.methods import Options, load_method, run
from placement.proof.certificate_check import check_certificate
from placement.status import Status
from placement.tail import Distributions, Percentile
from placement.testing import random_instance
from tests.strategies import ALL, MONEY, problems
from tests.tail.worlds import drawn

EXACT = load_method("exact")
PROVEN = (Status.OPTIMAL, Status.INFEASIBLE)


@st.composite
def questions(draw):
    """A problem with any constraints, and one of the objectives."""
    kind = draw(st.sampled_from(["mean", "worst", "bounded", "weighted", "percentile"]))
    without = frozenset() if kind == "mean" else MONEY - {"budget"}
    if kind == "percentile":
        without |= {"varying_rtt"}
    about_losses = kind in ("worst", "bounded", "weighted")
    problem = draw(problems(kinds=ALL - without, max_sites=6, max_clients=5, writes=about_losses))
    sites = len(problem.instance.sites)
    if kind == "percentile":
        seed = draw(st.integers(0, 1000))
        spread = (
            drawn(problem.instance, seed)
            if draw(st.booleans())
            else Distributions.parametric(problem.instance, variation=0.3, width=10, bins=60)
        )
        goal = Percentile(draw(st.sampled_from([50, 90, 99])), spread)
    elif kind != "mean":
        goal = Contingency(
            "site",
            kind,
            together=draw(st.sampled_from([1, 1, 1, 2])) if sites > 1 else 1,
            limit=draw(st.floats(5, 200)) if kind == "bounded" else None,
            probability=0.5 / sites**2 if kind == "weighted" else None,
            leader_may_move=draw(st.booleans()),
            clients_move=draw(st.sampled_from([False, False, True])),
        )
    else:
        return kind, problem
    try:
        return kind, problem.replace(objective=goal)
    except InputError:
        return kind, problem


@given(questions())
def test_what_is_proven_is_proved_again(question):
    """Every "optimal" and "infeasible" of a small test network is proved again."""
    _, problem = question
    plan = run(EXACT, problem, Options())
    assert plan.status in PROVEN
    checked = check_certificate(plan)
    if plan.found:
        assert plan.bound <= checked.bound * (1 + 1e-12) + 1e-300
        assert checked.bound <= plan.objective * (1 + 1e-12)
    else:
        assert checked.bound == math.inf


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

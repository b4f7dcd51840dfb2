"""cp-sat against exhaustive search on generated instances with every kind of constraint."""

import math

import pytest
from hypothesis import given, settings

from placement.feasibility.feasible_plans import reasons_infeasible, violations
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.plan import objective_value
from placement.problem import Problem
from placement.support.status import Status
from placement.testing import random_instance
from tests.effort import examples
from tests.strategies import ALL, problems

CP_SAT, EXHAUSTIVE = load_method("cp-sat"), load_method("exhaustive")
COLD = Options(settings={"start": "none"})


def agrees(problem, options=COLD):
    """Assert equal and honest answers: status, bound, gap, feasibility, score."""
    plan = run(CP_SAT, problem, options)
    truth = run(EXHAUSTIVE, problem, Options())
    assert plan.status == truth.status
    if truth.status is Status.INFEASIBLE:
        assert plan.bound == math.inf
        assert plan.configuration is None
        return
    assert truth.status is Status.OPTIMAL
    assert not violations(problem, plan.configuration)
    assert plan.objective == objective_value(problem, plan.configuration)
    assert plan.objective == pytest.approx(truth.objective, rel=1e-9, abs=1e-9)
    assert plan.bound <= truth.objective * (1 + 1e-12)


@given(problems())
def test_agrees_with_exhaustive_from_nothing(problem):
    agrees(problem)


@given(problems())
def test_agrees_with_exhaustive_from_a_heuristic(problem):
    agrees(problem, Options())


@given(problems(tier=2))
@settings(max_examples=examples(60))
def test_agrees_with_exhaustive_when_replicas_are_given(problem):
    agrees(problem)


def _largest(problem):
    """Every client at its worst site, relayed and answered as slowly as can be."""
    d, rtt = problem.demand, problem.demand.site_rtt.max()
    return ((d.near + d.direct) * d.client_rtt.max() + d.relay * rtt).sum() + d.quorum.sum() * rtt


@given(problems(integral=True, max_kinds=0))
@settings(max_examples=examples(40))
def test_whole_numbers_cost_no_rounding(problem):
    plan = run(CP_SAT, problem, COLD)
    if plan.stats["models"]:
        # Not zero only because the evaluator itself rounds, by units in the last place.
        assert plan.stats["scale"] == 1000
        assert plan.stats["rounding_error"] <= 1e-14 * _largest(problem)
    assert plan.status is Status.OPTIMAL


@pytest.mark.slow
@given(problems(kinds=ALL, max_sites=8, max_kinds=6))
@settings(max_examples=examples(300))
def test_agrees_with_exhaustive_thousands_of_times(problem):
    agrees(problem)


@pytest.mark.slow
@given(problems(kinds=ALL, max_sites=8, max_kinds=6))
@settings(max_examples=examples(150))
def test_agrees_with_exhaustive_thousands_of_times_from_a_heuristic(problem):
    agrees(problem, Options())


@given(problems())
def test_infeasible_is_said_by_both_or_none(problem):
    """The numeric checks that answer before any method runs are held against both methods too."""
    if reasons_infeasible(problem):
        assert EXHAUSTIVE.call(problem, Options(settings={"limit": 20_000_000})).found is False
        assert CP_SAT.call(problem, COLD).found is False


@pytest.mark.parametrize("voters", [1, 2])
def test_too_few_sites_have_no_plan(voters):
    """Asked directly, as the numeric checks answer before in every other call."""
    problem = Problem(
        random_instance(1, sites=2, clients=1), replicas=2, voters=voters, forbidden=["site-0"]
    )
    assert CP_SAT.call(problem, COLD).status is Status.INFEASIBLE

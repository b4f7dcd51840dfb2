"""The method agrees with exhaustive search: value, status, feasibility, under every constraint."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.milp.recipes import Recipe
from placement import Status, solve
from placement.feasibility.feasible_plans import violations
from tests.effort import examples
from tests.strategies import CROSSING, problems

LEADERS = st.sampled_from(["together", "apart"])
RECIPES = st.sampled_from([recipe.value for recipe in Recipe])


def agree(problem, referee, **chosen):
    """Assert that `milp` says what the referee says, and return both plans."""
    truth = solve(problem, referee)
    plan = solve(problem, "milp", settings=chosen)
    assert plan.status == truth.status
    assert plan.status in (Status.OPTIMAL, Status.INFEASIBLE)
    if truth.found:
        assert math.isclose(plan.objective, truth.objective, rel_tol=1e-9, abs_tol=0)
        assert plan.bound <= plan.objective
        assert not violations(problem, plan.configuration)
    return plan, truth


@given(problems(), RECIPES, st.sampled_from(["auto", "none"]), st.booleans(), LEADERS)
def test_every_kind_of_constraint(problem, recipe, start, reduce, leaders):
    """Any recipe, any start, reduced or not, leaders together or apart: exhaustive's optimum."""
    agree(problem, "exhaustive", recipe=recipe, start=start, reduce=reduce, leaders=leaders)


@settings(max_examples=examples(60))
@given(problems(kinds={"varying_rtt", "quorum", "survive", "crossing", "range"}, max_kinds=3))
def test_varying_rtt(problem):
    """One configuration for RTTs that vary by interval, without help from a start."""
    agree(problem, "exhaustive", start="none", reduce=False)


@settings(max_examples=examples(60))
@given(problems(kinds={"budget", "cost_weight", "leader", "range"}, max_kinds=3), RECIPES, LEADERS)
def test_money(problem, recipe, leaders):
    """Budgets and weighted costs whose transfer part depends on the leader."""
    agree(problem, "exhaustive", recipe=recipe, start="none", reduce=False, leaders=leaders)


@given(problems(tier=2, kinds=CROSSING), RECIPES)
def test_tier_2(problem, recipe):
    """Replicas by name: the same program with pins agrees with Algorithm 1, crossing levels too."""
    agree(problem, "tier2-brute-force", recipe=recipe)


@settings(max_examples=examples(40))
@given(problems(tier=1, kinds={"decay", "quorum", "leaders", "crossing"}))
def test_tier_1(problem):
    """Voters by name as well: the program only chooses the leader."""
    plan, truth = agree(problem, "leader", start="none")
    if truth.found:
        assert set(plan.replicas) == set(truth.replicas)
        assert set(plan.voters) == set(truth.voters)


@settings(max_examples=examples(60))
@given(problems(integral=True, min_sites=4, max_sites=9, max_clients=10, max_kinds=3))
def test_ties(problem):
    """Whole numbers full of ties, on up to nine sites."""
    agree(problem, "exhaustive", start="none")


@pytest.mark.slow
@settings(max_examples=examples(300), derandomize=False)
@given(problems(max_sites=8), RECIPES, st.sampled_from(["auto", "none"]), st.booleans())
def test_thousands(problem, recipe, start, reduce):
    """Thousands of fresh instances."""
    agree(problem, "exhaustive", recipe=recipe, start=start, reduce=reduce)


@pytest.mark.slow
@settings(max_examples=examples(100), derandomize=False)
@given(problems(tier=2, max_sites=9), RECIPES)
def test_thousand_of_tier_2(problem, recipe):
    """Tier 2 with every constraint, varying RTTs and money included."""
    agree(problem, "tier2-brute-force", recipe=recipe)

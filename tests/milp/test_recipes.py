"""Recipes differ in strength and size, never in the optimum."""

import math

import pytest
from hypothesis import assume, given, settings

from formulations.milp.lp_strength import strength
from formulations.milp.recipes import Recipe
from placement import Problem, solve
from placement.feasibility.feasible_plans import reasons_infeasible
from tests.effort import examples
from tests.milp.worlds import sphere
from tests.strategies import problems

STRONGER = [
    (Recipe.PER_CLIENT, Recipe.PER_LEADER),
    (Recipe.PER_LEADER, Recipe.CHAIN),
    (Recipe.CHAIN, Recipe.TEXTBOOK),
    (Recipe.CHAIN, Recipe.ROJESKI_REVELLE),
    (Recipe.CHAIN, Recipe.PAIRWISE),
]
"""(a, b): the LP bound of a is at least that of b, as derived in formulations.milp.recipes."""


@settings(max_examples=examples(25))
@given(problems())
def test_order_of_strength(problem):
    """LP bounds are ordered as derived, and none exceeds the optimum."""
    assume(not reasons_infeasible(problem))
    best = solve(problem, "exhaustive")
    bound = {recipe: strength(problem, recipe).bound for recipe in Recipe}
    allowance = 1e-6 * (1 + abs(best.objective if best.found else 0))
    for strong, weak in STRONGER:
        if math.isfinite(bound[strong]):
            assert bound[strong] >= bound[weak] - allowance
    if best.found:
        assert all(value <= best.objective + allowance for value in bound.values())


@settings(max_examples=examples(20))
@given(problems(min_sites=4, max_sites=8))
def test_equal_optima(problem):
    """All recipes, on the same instance, against each other."""
    plans = [
        solve(problem, "milp", settings={"recipe": recipe.value, "reduce": False})
        for recipe in Recipe
    ]
    assert len({plan.status for plan in plans}) == 1
    if plans[0].found:
        least = min(plan.objective for plan in plans)
        assert all(math.isclose(plan.objective, least, rel_tol=1e-9) for plan in plans)


MIXES = {
    "transactions": (0.3, 0.3, 0.2, 0.15, 0.05),
    "bounded reads": (0.1, 0.8, 0.05, 0.03, 0.02),
}

# LP bound over optimum, and columns, rows and non-zeros, of ten sites on a globe, |R| = 6, |V| = 5.
RECORDED: dict[tuple[str, Recipe], tuple[float, int, int, int]] = {
    ("transactions", Recipe.CHAIN): (0.8058896, 220, 303, 1150),
    ("transactions", Recipe.TEXTBOOK): (0.8001287, 240, 198, 1040),
    ("transactions", Recipe.PER_CLIENT): (0.9999797, 620, 528, 2160),
    ("transactions", Recipe.PER_LEADER): (0.8120332, 320, 423, 1570),
    ("transactions", Recipe.ROJESKI_REVELLE): (0.8058896, 230, 238, 1010),
    ("transactions", Recipe.PAIRWISE): (0.8058896, 230, 263, 1010),
    ("transactions", Recipe.MEMBERSHIP): (0.5810514, 271, 288, 998),
    ("bounded reads", Recipe.CHAIN): (0.2929545, 220, 321, 1196),
    ("bounded reads", Recipe.TEXTBOOK): (0.2860515, 240, 211, 1076),
    ("bounded reads", Recipe.PER_CLIENT): (0.9965406, 620, 541, 2186),
    ("bounded reads", Recipe.PER_LEADER): (0.3000556, 320, 441, 1616),
    ("bounded reads", Recipe.ROJESKI_REVELLE): (0.2929545, 230, 251, 1046),
    ("bounded reads", Recipe.PAIRWISE): (0.2929545, 230, 305, 1094),
    ("bounded reads", Recipe.MEMBERSHIP): (0.2298170, 271, 301, 1024),
}


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("recipe", list(Recipe))
def test_recorded_strength(mix, recipe):
    """LP bound and size of every recipe on one world; a change here is a change of the model."""
    problem = Problem(sphere(10, seed=3, mix=MIXES[mix]), replicas=6, voters=5)
    best = solve(problem, "exhaustive")
    measured = strength(problem, recipe)
    ratio, *size = RECORDED[mix, recipe]
    assert measured.bound / best.objective == pytest.approx(ratio, rel=1e-6)
    assert [measured.variables, measured.rows, measured.nonzeros] == size

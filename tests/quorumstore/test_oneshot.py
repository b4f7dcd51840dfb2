"""The one-shot MILPs against exhaustive search, and the strength of their relaxations."""

from __future__ import annotations

import math

import numpy as np
import pyomo.environ as pyo
import pytest

from formulations.quorumstore.covering import one_shot_milp
from formulations.quorumstore.covering.one_shot_milp import (
    assignment_model,
    radius_model,
    solve_assignment,
    solve_radius,
)
from placement.errors import LimitError, UnsupportedError
from placement.quorumstore import Goal, QuorumProblem, StoreRules, Target
from placement.support.status import Status, Termination
from tests.effort import seeds
from tests.quorumstore.instances import random_problem, random_rules
from tests.quorumstore.referee import value_and_ties


@pytest.mark.parametrize("seed", seeds(8, 30))
def test_radius_equals_exhaustive(seed):
    """The unary threshold gives the optimum for BA and N-1C."""
    problem = random_problem(np.random.default_rng([20, seed]), sites=5)
    value, _ = value_and_ties(problem)
    plan = solve_radius(problem)
    assert plan.value == pytest.approx(value)
    assert plan.status is Status.OPTIMAL


@pytest.mark.parametrize("seed", seeds(8, 30))
def test_assignment_equals_exhaustive(seed):
    """The assignment form, with R and W as decisions, gives the optimum too."""
    rules = random_rules(np.random.default_rng([21, seed]), contingency=seed % 3 == 0)
    problem = random_problem(np.random.default_rng([22, seed]), sites=5, rules=rules)
    value, _ = value_and_ties(problem)
    plan = solve_assignment(problem)
    assert plan.value == pytest.approx(value)
    assert plan.status is Status.OPTIMAL


def relaxed(mip) -> float:
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(mip)
    pyo.SolverFactory("appsi_highs").solve(mip)
    return float(pyo.value(mip.objective))


def test_radius_relaxation_is_stronger():
    """On metric instances with one (R, W) the radius form never has the weaker LP bound."""
    rng = np.random.default_rng(23)
    stronger = 0
    for _ in range(5):
        points = rng.uniform(0, 100, (8, 2))
        rtt = np.linalg.norm(points[:, None] - points[None], axis=2) + 0.5
        problem = QuorumProblem(
            rtt, rng.integers(1, 9, 8), rng.integers(1, 9, 8), rules=StoreRules(replicas=3)
        )
        optimum = solve_radius(problem).value
        weak = relaxed(assignment_model(problem))
        strong = relaxed(radius_model(problem, 3, 2, 2))
        assert weak <= strong + 1e-6
        assert strong <= optimum + 1e-6
        stronger += strong > 1.5 * weak
    assert stronger >= 3


def test_refusals():
    """Other goals and large models are refused, and say who takes them."""
    problem = QuorumProblem(np.ones((6, 6)), [1] * 6, [1] * 6).with_goal(Goal(Target.READS))
    with pytest.raises(UnsupportedError, match="enumeration"):
        solve_radius(problem)
    large = QuorumProblem(np.ones((40, 40)), [1] * 40, [1] * 40, rules=StoreRules(True))
    with pytest.raises(LimitError, match="bisection"):
        solve_assignment(large)


@pytest.mark.parametrize("solve", [solve_assignment, solve_radius])
def test_no_time_is_no_failure_of_the_solver(solve):
    problem = QuorumProblem(np.ones((5, 5)), [1] * 5, [1] * 5)
    plan = solve(problem, time_limit=0.0)
    assert (plan.status, plan.termination) == (Status.UNKNOWN, Termination.TIME_LIMIT)
    assert plan.bound == -math.inf


def test_pairs_that_were_not_solved_leave_the_bound_open(monkeypatch):
    """Ctrl-C after the first (N, R, W): its configuration is kept, and not proven."""
    problem = QuorumProblem(np.arange(25.0).reshape(5, 5), [1] * 5, [1] * 5)
    assert len(problem.pairs) > 1
    answers, honest = [], one_shot_milp.run_model

    def interrupted(mip, seconds, *, presolve):
        if answers:
            raise KeyboardInterrupt
        answers.append(honest(mip, seconds, presolve=presolve))
        return answers[0]

    monkeypatch.setattr(one_shot_milp, "run_model", interrupted)
    plan = solve_radius(problem)
    monkeypatch.undo()
    assert (plan.status, plan.termination) == (Status.FEASIBLE, Termination.INTERRUPTED)
    assert plan.bound <= solve_radius(problem).value <= plan.value

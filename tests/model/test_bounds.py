"""A bound that is not a number proves nothing, wherever bounds are compared."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations.cpsat import method as cpsat
from formulations.enumeration import exhaustive
from formulations.enumeration.replica_sets import ReplicaSets, SetEvaluator, replica_sets
from formulations.exact.search_state import SearchState
from formulations.linear.leader_search import LeaderSearch
from formulations.milp import per_leader
from formulations.milp.program_data import program_data
from formulations.milp.program_model import build
from formulations.milp.recipes import Recipe
from formulations.quorumstore import enumeration
from formulations.solvers import safe_bounds
from placement import Configuration, Plan, Problem, Status, solve
from placement.analysis.compare_methods import MethodRun, best_bound
from placement.errors import CertificateError, SolverError
from placement.proof.certificate_check import check_certificate
from placement.quorumstore import QuorumPlan, StoreRules
from placement.support.status import OPTIMALITY_TOLERANCE, least_bound, relative_gap, status_of
from placement.testing import random_instance
from tests.quorumstore.instances import random_problem

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


def _problem() -> Problem:
    return Problem(random_instance(12), replicas=3, voters=3)


def _configuration() -> Configuration:
    return Configuration.of(0, (0, 1, 2), (0, 1, 2))


@given(NUMBERS, NUMBERS)
def test_optimal_takes_two_numbers_that_agree(value: float, bound: float) -> None:
    if status_of(True, value, bound) is Status.OPTIMAL:
        assert math.isfinite(value)
        assert bound >= value - OPTIMALITY_TOLERANCE * abs(value)


@pytest.mark.parametrize("value", [0.0, 5.0, -5.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("bound", [math.nan, -math.inf])
def test_nothing_is_proven_by_no_bound(value: float, bound: float) -> None:
    assert status_of(True, value, bound) is Status.FEASIBLE
    assert status_of(False, value, bound) is Status.UNKNOWN
    if value != bound:
        assert relative_gap(value, bound) == math.inf


def test_a_value_beyond_all_numbers_is_not_optimal() -> None:
    assert status_of(True, math.inf, math.inf) is Status.FEASIBLE
    assert status_of(True, math.nan, 3.0) is Status.FEASIBLE
    assert status_of(False, math.inf, math.inf) is Status.INFEASIBLE


@given(st.lists(NUMBERS, max_size=4))
def test_the_least_bound_is_below_all(bounds: list[float]) -> None:
    least = least_bound(*bounds)
    assert not math.isnan(least)
    assert all(least <= bound for bound in bounds if not math.isnan(bound))
    if any(map(math.isnan, bounds)):
        assert least == -math.inf


@pytest.mark.parametrize("configuration", [None, _configuration()])
def test_a_plan_with_a_bound_that_is_no_number(configuration: Configuration | None) -> None:
    plan = Plan.of(_problem(), configuration, method="m", bound=math.nan)
    assert plan.bound == -math.inf
    assert plan.gap == math.inf
    assert plan.status is (Status.UNKNOWN if configuration is None else Status.FEASIBLE)
    assert Plan.of(_problem(), configuration, method="m", bound=np.nan).bound == -math.inf


def test_an_infinite_bound_of_a_known_configuration_is_refused() -> None:
    with pytest.raises(SolverError, match="claims the bound inf"):
        Plan.of(_problem(), _configuration(), method="m", bound=math.inf)


def test_a_quorum_plan() -> None:
    problem = random_problem(np.random.default_rng(3), rules=StoreRules())
    found = enumeration.solve(problem).configuration
    plan = QuorumPlan.of(problem, found, method="m", bound=math.nan)
    assert (plan.status, plan.bound) == (Status.FEASIBLE, -math.inf)
    with pytest.raises(SolverError, match="claims the bound inf"):
        QuorumPlan.of(problem, found, method="m", bound=math.inf)


def test_the_comparison_of_methods_passes_over_it() -> None:
    plan = Plan.of(_problem(), _configuration(), method="m", bound=1.0)
    wrong = plan.replace(bound=math.nan)
    entries = [
        MethodRun("a", wrong, "feasible", "", 0.0),
        MethodRun("b", plan, "feasible", "", 0.0),
    ]
    assert best_bound(entries) == 1.0
    assert best_bound(entries[:1]) == -math.inf


def test_a_certificate_does_not_back_it() -> None:
    plan = solve(_problem())
    assert check_certificate(plan).bound == plan.bound
    with pytest.raises(CertificateError, match="claims the bound nan"):
        check_certificate(plan.replace(bound=math.nan))


BOUNDS = {0: 5.0, 1: math.nan, 2: 7.0}


def test_a_leader_whose_bound_is_no_number_is_not_passed_over() -> None:
    for search in (cpsat._LeaderByLeader, LeaderSearch):
        state: Any = SimpleNamespace(bounds=BOUNDS)
        assert search.bound.fget(state) == -math.inf  # type: ignore[attr-defined]
    state = SimpleNamespace(bounds=BOUNDS, opened=None, best_bound=0.0)
    assert SearchState.bound(state) == 0.0
    state = SimpleNamespace(bound=1.0, value=9.0)
    per_leader._conclude(state, dict(BOUNDS))
    assert state.bound == 1.0


def test_a_set_whose_score_is_no_number_is_not_passed_over() -> None:
    class Scores:
        def scores(self, sets: ReplicaSets) -> tuple[npt.NDArray[np.float64], ...]:
            return np.full((3, len(sets.members)), math.nan), np.zeros((3, len(sets.members)))

    problem = _problem()
    evaluator = SetEvaluator.of(problem)
    block = next(iter(replica_sets(evaluator, problem.rules.may_hold, problem.rules.must_hold, 3)))
    search = exhaustive._ExhaustiveSearch(problem)
    with pytest.raises(SolverError, match="not a number"):
        search.evaluate_sets(Scores(), block)  # type: ignore[arg-type]


def test_safe_bounds_that_are_no_numbers_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    program = build(program_data(_problem()), Recipe.PER_CLIENT.rows).program()
    value = solve(_problem()).objective
    honest = safe_bounds.prove_by_branching(program, value, lambda _: False, most=3)
    assert honest.bound < value
    monkeypatch.setattr(safe_bounds, "safe_bound", lambda *args, **named: math.nan)
    proof = safe_bounds.prove_by_branching(program, value, lambda _: False, most=3)
    assert proof.bound == -math.inf

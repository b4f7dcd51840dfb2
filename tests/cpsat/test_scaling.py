"""Whole numbers: what is exact, how fine the unit gets, and that the stated error holds."""

import itertools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings

import placement
from formulations.cpsat import integer_costs as scaling
from formulations.cpsat import leader_model as leader_model
from formulations.cpsat import method
from formulations.cpsat.integer_costs import LIMIT, leader_costs, to_integers
from formulations.solvers.cpsat import CpSatResult
from formulations.solvers.statuses import Verdict
from placement import Instance, Operation, Problem, Status
from placement.evaluation.cost_model import configuration_cost
from placement.feasibility.feasible_plans import reasons_infeasible
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.plan import objective_value
from placement.testing import random_instance
from tests.effort import examples
from tests.strategies import problems

WEAK = (Operation("weak", near=1),)
COLD = Options(settings={"start": "none"})


def line(positions, counts=None, **changes):
    """Clients at sites on a line."""
    at = np.asarray(positions, dtype=float)
    rtt = np.abs(at[:, None] - at)
    names = tuple(f"s{i}" for i in range(len(at)))
    counts = np.ones((len(at), 1)) if counts is None else np.asarray(counts, float)[:, None]
    return Instance(
        sites=names, clients=names, client_rtt=rtt, site_rtt=rtt, counts=counts, operations=WEAK
    ).replace(**changes)


def whole_objective(problem, costs, integers, configuration):
    """The integer objective of a configuration, from the definition of the terms."""
    total = integers.direct
    for chain, whole in zip(costs.chains, integers.chains, strict=True):
        total += next(
            int(w)
            for site, w in zip(chain.sites, whole, strict=True)
            if site in configuration.replicas
        )
    for wait, whole in zip(costs.waits, integers.waits, strict=True):
        inside = [len({*row.voters} & {*configuration.voters}) for (row,) in wait.rows]
        reached = [i for i, count in enumerate(inside) if count >= problem.rules.quorum]
        total += int(whole[reached[0] if reached else len(wait.rows)])
    return total + sum(int(integers.money[site]) for site in configuration.replicas)


@given(problems(max_sites=5, max_kinds=3))
def test_the_stated_error_is_never_exceeded(problem):
    rules = problem.rules
    sites = np.nonzero(rules.may_hold)[0].tolist()
    for leader in np.nonzero(rules.may_lead)[0].tolist():
        costs = leader_costs(problem, leader)
        integers = to_integers(costs)
        for size in range(rules.replicas_min, rules.replicas_max + 1):
            for replicas in itertools.combinations(sites, size):
                if leader not in replicas or not set(np.nonzero(rules.must_hold)[0]) <= set(
                    replicas
                ):
                    continue
                eligible = [s for s in replicas if rules.may_vote[s] and s != leader]
                for others in itertools.combinations(eligible, rules.voters - 1):
                    chosen = Configuration.of(leader, (leader, *others), replicas)
                    whole = whole_objective(problem, costs, integers, chosen)
                    value = objective_value(problem, chosen)
                    assert abs(whole / integers.scale - value) <= integers.error
                    assert costs.floor <= value * (1 + 1e-12)


def test_microseconds_and_whole_counts_are_exact():
    problem = Problem(line([0, 1.25, 7.125, 30]), replicas=2, voters=1)
    costs = leader_costs(problem, 0)
    integers = to_integers(costs)
    assert integers.scale == 1000
    assert integers.error <= 1e-12
    plan = placement.solve(problem, method="cp-sat", settings={"start": "none"})
    assert plan.status is Status.OPTIMAL


@pytest.mark.parametrize("weight", [1e-12, 1e-3, 1.0, 1e9, 1e15])
@pytest.mark.parametrize("unit", [1 / 3, math.pi, 90.33040026])
def test_any_magnitude_is_proven(weight, unit):
    """A digit that happens to be 0 must not end the refinement (90.33040026 once did)."""
    instance = line(np.array([0, 1, 5, 6, 20, 21.5]) * unit, weight * np.arange(1, 7))
    problem = Problem(instance, replicas=2, voters=1)
    truth = placement.solve(problem, method="exhaustive")
    for start in ("none", "best-of"):
        plan = placement.solve(problem, method="cp-sat", settings={"start": start})
        assert plan.status is Status.OPTIMAL
        assert plan.objective == pytest.approx(truth.objective, rel=1e-9)


@pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning")
def test_an_absurd_rtt_is_cut_to_the_incumbent():
    """1e17 ms beside 1 ms: without a cut all other terms would round to nothing."""
    far = 1e17
    instance = line([0, 1, 5, 6]).replace(
        client_rtt=np.array(
            [[0, 1, far, far], [1, 0, far, far], [far, far, 0, 1], [far, far, 1, 0]]
        )
    )
    problem = Problem(instance, replicas=2, voters=1)
    costs = leader_costs(problem, 3)
    coarse, fine = to_integers(costs), to_integers(costs, incumbent=2.0)
    assert coarse.error > 1
    assert fine.error < 1e-9
    truth = placement.solve(problem, method="exhaustive")
    warm = placement.solve(problem, method="cp-sat")
    cold = placement.solve(problem, method="cp-sat", settings={"start": "none"})
    assert warm.status is Status.OPTIMAL
    for plan in (warm, cold):  # from nothing it may not be able to prove it, but never lies
        assert plan.bound <= truth.objective <= plan.objective


@given(problems(max_sites=5))
@settings(max_examples=examples(50))
def test_coefficients_stay_below_the_limit(problem):
    assume(not reasons_infeasible(problem))  # no method is then asked
    for leader in np.nonzero(problem.rules.may_lead)[0].tolist():
        costs = leader_costs(problem, leader)
        for factor in (1.0, 1e40):
            scaled = costs.__class__(
                leader,
                costs.direct * factor,
                tuple(type(c)(c.sites, c.cost * factor) for c in costs.chains),
                tuple(type(w)(w.rows, w.cost * factor) for w in costs.waits),
                costs.money * factor,
                costs.floor * factor,
            )
            whole = to_integers(scaled)
            rows = (*whole.chains, *whole.waits)
            total = whole.direct + int(whole.money.sum())
            total += sum(int(row[0]) + int(np.abs(np.diff(row)).sum()) for row in rows)
            assert total < LIMIT


def test_money_is_part_of_the_objective():
    instance = line([0, 1, 5]).replace(prices=placement.Prices(np.array([3.0, 1.0, 0.5])))
    problem = Problem(instance, replicas=1, voters=1, cost_weight=10)
    costs = leader_costs(problem, 1)
    chosen = Configuration.of(1, (1,), (1,))
    assert configuration_cost(instance, chosen) == 1.0
    integers = to_integers(costs)
    assert whole_objective(problem, costs, integers, chosen) == 1000 * objective_value(
        problem, chosen
    )


def test_cutting_off_below_the_constant_needs_no_solver():
    problem = Problem(line([0, 1, 5, 6]), replicas=2, voters=1)
    model = leader_model.build(problem, leader_costs(problem, 0))
    assert not model.cut_off(-1.0, keep=False)
    assert model.cut_off(2.0, keep=True)


@given(problems(max_sites=5, integral=False))
@settings(max_examples=examples(60))
def test_bounds_stay_honest_when_rounding_is_coarse(problem):
    """With a tiny limit the integers are worth three digits; every bound must allow for it."""
    truth = placement.solve(problem, method="exhaustive").objective
    for start in ("none", "best-of"):
        with mock.patch.object(scaling, "LIMIT", 3000.0):
            plan = run(load_method("cp-sat"), problem, Options(settings={"start": start}))
        if plan.found:
            assert plan.bound <= truth * (1 + 1e-12)
            assert plan.objective >= truth * (1 - 1e-12)
            assert plan.objective - truth <= 3 * plan.stats["rounding_error"] + 1e-9 * truth
        else:
            assert truth == math.inf


def test_the_budget_is_a_constraint_of_the_model(monkeypatch):
    """Forbidding what breaks it, one set after another, is for rounding alone."""
    monkeypatch.setattr(
        "formulations.cpsat.method.forbid", lambda *_: pytest.fail("not within the budget")
    )
    instance = line([0, 1, 5, 6, 20]).replace(
        prices=placement.Prices(np.array([0.1, 0.2, 0.7, 0.4, 0.3]))
    )
    for budget in (0.3, 0.30000000001, 0.5, 0.7, 1.1):
        problem = Problem(instance, replicas=2, voters=1, budget=budget)
        plan = placement.solve(problem, method="cp-sat", settings={"start": "none"})
        truth = placement.solve(problem, method="exhaustive")
        assert plan.objective == pytest.approx(truth.objective)
        assert plan.cost <= budget * (1 + 1e-8)


def two_leaders():
    """Strong reads cost exactly 10 from leader s0 and a little less, unrounded, from s1."""
    strong = (Operation("strong", direct=1),)
    rtt = np.array([[10.0, 9.9996]])
    site_rtt = np.array([[0.0, 1.0], [1.0, 0.0]])
    instance = Instance(("s0", "s1"), ("c",), rtt, site_rtt, np.ones((1, 1)), strong)
    return Problem(instance, replicas=1, voters=1)


def test_a_leader_that_is_cut_off_keeps_its_rounding_error():
    """In whole microseconds s1 costs 10,000 too: not better, but its bound must not say 10 ms."""
    problem = two_leaders()
    options = Options(start=Configuration.of(0, (0,), (0,)))
    with mock.patch.object(scaling, "LIMIT", 20_000.0):
        plan = run(load_method("cp-sat"), problem, options)
    assert plan.bound <= 9.9996
    assert placement.solve(problem, method="cp-sat").objective == 9.9996


def test_a_leader_without_anything_better_keeps_its_rounding_error():
    problem = two_leaders()
    with mock.patch.object(scaling, "LIMIT", 20_000.0):
        model = leader_model.build(problem, leader_costs(problem, 1))
    state = method._LeaderByLeader(problem, Options(), 0.0, bounds={0: 10.0, 1: 0.0})
    state.offer(Configuration.of(0, (0,), (0,)))
    method._raise_bound(state, model, CpSatResult(Verdict.INFEASIBLE), None)
    assert 9.999 < state.bounds[1] <= 9.9996


def _largest(problem):
    """Every client at its worst site, relayed and answered as slowly as can be."""
    d, rtt = problem.demand, problem.demand.site_rtt.max()
    return ((d.near + d.direct) * d.client_rtt.max() + d.relay * rtt).sum() + d.quorum.sum() * rtt


@given(problems(integral=True, max_kinds=0))
@settings(max_examples=examples(40))
def test_whole_numbers_cost_no_rounding(problem):
    plan = run(load_method("cp-sat"), problem, COLD)
    if plan.stats["models"]:
        # Not zero only because the evaluator itself rounds, by units in the last place.
        assert plan.stats["scale"] == 1000
        assert plan.stats["rounding_error"] <= 1e-14 * _largest(problem)
    assert plan.status is Status.OPTIMAL


@pytest.mark.parametrize("voters", [1, 2])
def test_too_few_sites_have_no_plan(voters):
    """Asked directly, as the numeric checks answer before in every other call."""
    problem = Problem(
        random_instance(1, sites=2, clients=1), replicas=2, voters=voters, forbidden=["site-0"]
    )
    assert load_method("cp-sat").call(problem, COLD).status is Status.INFEASIBLE

"""Stopping early, solver mishaps, the one door, and keys from instances."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from formulations.quorumstore import QuorumMethod, one_key, place
from formulations.quorumstore.covering_model import (
    Cover,
    CoverDemand,
    CoveringModel,
    covering_model,
)
from formulations.quorumstore.covering_solvers import CpSatCovering, HighsCovering
from formulations.quorumstore.enumeration import CompiledSearch, solve
from formulations.quorumstore.keys import solve_batch
from formulations.quorumstore.threshold_bisection import Bisection
from formulations.quorumstore.threshold_bisection import solve as bisect
from placement.errors import InputError, LimitError, SolverError, UnsupportedError
from placement.quorumstore import (
    Goal,
    QuorumProblem,
    StoreRules,
    Target,
    ThresholdLimits,
    metrics,
)
from placement.support.status import Status, Termination


def key(seed=60, sites=8):
    rng = np.random.default_rng(seed)
    rtt = rng.uniform(5, 200, (sites, sites))
    return QuorumProblem(
        rtt, rng.integers(1, 9, sites), rng.integers(1, 9, sites), rules=StoreRules(True)
    )


class Interrupting(CpSatCovering):
    """Answers a few questions, then behaves like Ctrl-C or a clock that has run out."""

    def __init__(self, answers, error):
        super().__init__()
        self.answers, self.error = answers, error

    def __call__(self, model, seconds=math.inf):
        self.answers -= 1
        if self.answers < 0:
            raise self.error
        return super().__call__(model, seconds)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TimeoutError()])
def test_bound_is_honest_when_bisection_stops(error):
    """At any moment: bound <= optimum <= value, and the reason for stopping is kept."""
    problem = key()
    optimum = solve(problem).value
    for answers in range(12):
        plan = bisect(problem, Interrupting(answers, error))
        assert plan.bound <= optimum <= plan.value, answers
        assert plan.termination in (Termination.INTERRUPTED, Termination.TIME_LIMIT)
        if plan.configuration is None:
            assert plan.status is Status.UNKNOWN


def test_time_limit_of_zero():
    """Nothing found, nothing proven, nothing claimed."""
    plan = bisect(key(), CpSatCovering(), time_limit=0.0)
    assert (plan.status, plan.termination) == (Status.UNKNOWN, Termination.TIME_LIMIT)


def test_false_infeasible_is_confirmed(monkeypatch):
    """An "infeasible" of the presolved run does not stand when the other run finds a point."""
    problem = key()
    honest = HighsCovering._ask

    def lying(self, mip, model, presolve, seconds):
        return None if presolve else honest(self, mip, model, presolve, seconds)

    monkeypatch.setattr(HighsCovering, "_ask", lying)
    covering = HighsCovering()
    plan = solve(problem)
    pair = (plan.configuration.size, plan.read_quorum, plan.write_quorum)
    found = covering(covering_model(problem, *pair, ThresholdLimits(*[plan.value] * 4)))
    assert metrics(problem, [found], *pair[1:]).worst_read[0] <= plan.value
    assert "infeasible" in covering.notes[0]


def test_wrong_point_is_decided_by_cpsat(monkeypatch):
    """A point that fails the exact check is not believed."""
    model = CoveringModel(4, 2, (Cover((2, 3), 2),), (CoverDemand(((0, 5),), 5),), ())
    monkeypatch.setattr(HighsCovering, "_ask", lambda *_: (0, 1))
    covering = HighsCovering()
    assert covering(model) == (2, 3)
    assert "CP-SAT decided" in covering.notes[0]


def test_busy_keys_do_not_escape_the_tolerances():
    """Counts of 10^14: one request too few is too few, for HiGHS as well."""
    heavy = 10**14
    rtt = np.array([[1.0, 5, 9, 20], [5, 1, 9, 20], [9, 9, 1, 20], [20, 20, 20, 1]])
    problem = QuorumProblem(
        rtt, [9 * heavy // 10 - 1, heavy // 10 + 1, 0, 0], [0] * 4, rules=StoreRules(replicas=3)
    )
    assert problem.needed_reads == 9 * heavy // 10
    values = {bisect(problem, covering()).value for covering in (HighsCovering, CpSatCovering)}
    assert values == {solve(problem).value} == {5.0}


def test_infeasible_plans_carry_reasons():
    """The door explains bounds that cannot be met, whatever the method."""
    problem = key().with_goal(Goal(read_bound=1.0))
    for method in (QuorumMethod.ENUMERATION, QuorumMethod.CP_SAT, QuorumMethod.MILP):
        plan = place(problem, method)
        assert plan.status is Status.INFEASIBLE
        assert "the least any replica set reaches" in plan.reasons[0]


def test_bisection_refuses_wrong_answers():
    """A solver that returns a set beyond the limits is found out."""

    class Wrong(CpSatCovering):
        def __call__(self, model, seconds=math.inf):
            return tuple(range(model.replicas))

    problem = key()
    with pytest.raises(SolverError, match="does not meet its limits"):
        Bisection(problem, Wrong()).minimise(problem.goal)


def test_automatic_choice(monkeypatch):
    """Enumeration for few sets, CP-SAT beyond and where the compiled search was not built."""
    problem = key()
    assert place(problem).method == "enumeration"
    monkeypatch.setattr(one_key, "_ENUMERABLE", 10)
    assert place(problem).method == "cp-sat bisection"
    monkeypatch.setattr(one_key, "_ENUMERABLE", 1_000)
    pairs_lost = dataclasses.replace(problem, rules=StoreRules(True, failures=2))
    weighted = pairs_lost.with_goal(Goal(Target.WEIGHTED))
    assert place(pairs_lost).method == "enumeration"
    assert place(weighted).method == "cp-sat bisection"
    monkeypatch.setattr(one_key, "compiled_available", lambda: False)
    assert place(problem).method == "cp-sat bisection"
    everything = Goal(Target.WEIGHTED, normal_weight=1.0, worst_weight=1.0)
    with pytest.raises(UnsupportedError, match="enumeration"):
        place(dataclasses.replace(problem, goal=everything), QuorumMethod.MILP)
    with pytest.raises(InputError, match="unknown method"):
        place(problem, "radius")


@pytest.mark.parametrize("goal", [Goal(), Goal(Target.WEIGHTED, read_weight=2.0)])
def test_enumeration_interrupted(goal, monkeypatch):
    """Ctrl-C before any list or pass: the best so far, with a valid bound."""
    problem = key().with_goal(goal)
    optimum = solve(problem).value
    for name in ("run", "choose", "sets"):
        for allowed in range(4):
            honest, calls = getattr(CompiledSearch, name), [0]

            def interrupted(self, *arguments, honest=honest, calls=calls, allowed=allowed):
                calls[0] += 1
                if calls[0] > allowed:
                    raise KeyboardInterrupt
                return honest(self, *arguments)

            with monkeypatch.context() as patch:
                patch.setattr(CompiledSearch, name, interrupted)
                plan = solve(problem)
            assert plan.bound <= optimum <= plan.value
            if calls[0] > allowed:
                assert plan.termination is Termination.INTERRUPTED
            else:
                assert plan.value == optimum


def test_too_many_sets_are_refused():
    """The refusal gives the number and the way out."""
    large = QuorumProblem(np.ones((300, 300)), [1] * 300, [1] * 300)
    with pytest.raises(LimitError, match="bisection"):
        solve(large)


def test_interrupted_key_is_no_answer_for_a_table(monkeypatch):
    """Ctrl-C inside one key of a batch stops the batch; no half-solved row is written."""
    problem = key()

    def interrupted(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(CompiledSearch, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solve_batch(problem, problem.reads[np.newaxis], problem.writes[np.newaxis])

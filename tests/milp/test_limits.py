"""Limits of time and gap, interrupts, and reports on the way."""

import itertools
import time
from collections import Counter

import pytest

from formulations.milp import build_steps as steps_module
from formulations.milp import cutting_rounds as search_module
from formulations.milp import per_leader as apart_module
from formulations.milp import program_model as model_module
from placement import (
    Problem,
    Status,
    Termination,
    solve,
)
from placement.feasibility.feasible_plans import find_feasible, violations
from tests.milp.worlds import sphere

HARD = Problem(sphere(40, seed=5), replicas=6, voters=5)


SLOW_RECIPE = {"recipe": "membership", "reduce": False}


@pytest.mark.parametrize("limit", [0, 0.3])
def test_time_limit(limit):
    """The best plan so far and a bound that is one: no exception, no claim."""
    plan = solve(HARD, "milp", time_limit=limit, settings=SLOW_RECIPE)
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.status is Status.FEASIBLE
    assert 0 < plan.bound < plan.objective
    assert not violations(HARD, plan.configuration)
    assert plan.bound <= solve(HARD, "exact").objective <= plan.objective


def test_gap_limit():
    """Stops once the gap is small enough, and shows that gap."""
    plan = solve(HARD, "milp", gap_limit=0.5)
    assert plan.termination in (Termination.GAP_LIMIT, Termination.FINISHED)
    assert plan.gap <= 0.5
    assert plan.bound <= solve(HARD, "exact").objective <= plan.objective


def test_interrupt_gives_the_best_so_far():
    """Ctrl-C from a progress report, before and while HiGHS runs."""
    for patience in (1, 2):
        heard = []

        def press(progress, heard=heard, patience=patience):
            heard.append(progress)
            if len(heard) == patience:
                raise KeyboardInterrupt

        plan = solve(HARD, "milp", progress=press, settings=SLOW_RECIPE)
        assert plan.termination is Termination.INTERRUPTED
        assert plan.found
        assert plan.bound < plan.objective


def test_progress_only_improves():
    """Incumbents fall, bounds rise, and neither passes the other."""
    heard = []

    def listen(progress):
        heard.append(progress)
        if len(heard) == 5:
            raise KeyboardInterrupt

    solve(HARD, "milp", progress=listen, settings=SLOW_RECIPE)
    assert len(heard) >= 5
    for before, after in itertools.pairwise(heard):
        assert after.incumbent <= before.incumbent
        assert after.bound >= before.bound
        assert after.bound <= after.incumbent * (1 + 1e-9)


def test_a_value_of_highs_is_not_better_than_the_evaluators(monkeypatch):
    """HiGHS's objective may lie below the evaluator's by rounding: no report may take that back."""
    real, told = search_module.run_highs, []

    def rounding_down(program, guard, **kwargs):
        outcome = real(program, guard, **kwargs)
        told.append(outcome.objective)
        guard.report(outcome.objective * (1 - 1e-8), outcome.bound)
        return outcome

    monkeypatch.setattr(search_module, "run_highs", rounding_down)
    heard = []
    problem = Problem(sphere(9, seed=2), replicas=4, voters=3)
    plan = solve(
        problem, "milp", progress=heard.append, settings={"leaders": "together", "start": "none"}
    )
    assert told
    assert plan.objective <= min(progress.incumbent for progress in heard)


PARTS = ("add_roles", "add_nearest", "add_forwarding", "add_quorum", "compile_program")


def test_every_part_of_the_work_is_reported(monkeypatch):
    """In the heuristic, before each leader, between the parts of each program."""
    here, reports = [], Counter()
    for name in PARTS:
        real = getattr(model_module, name)

        def part(*args, name=name, real=real, **kwargs):
            here.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(model_module, name, part)
    heard = []

    def listen(progress):
        heard.append(progress)
        reports[here[-1] if here else "start"] += 1

    at_leader = []
    led_by = apart_module._led_by

    def next_leader(*args):
        at_leader.append(len(heard))
        return led_by(*args)

    monkeypatch.setattr(apart_module, "_led_by", next_leader)
    problem = Problem(sphere(20, seed=3), replicas=5, voters=3)
    plan = solve(problem, "milp", progress=listen, settings={"leaders": "apart"})
    assert plan.status is Status.OPTIMAL
    assert len(at_leader) >= plan.stats["leaders"] == 20
    assert at_leader == sorted(set(at_leader))  # a report before each
    assert reports["start"] >= 2
    for name in PARTS:
        assert reports[name] >= plan.stats["programs"] >= 2
    assert all(progress.bound > 0 for progress in heard)
    assert heard[-1].incumbent == plan.objective
    for before, after in itertools.pairwise(heard):
        assert after.incumbent <= before.incumbent
        assert after.bound >= before.bound


@pytest.mark.parametrize("leaders", ["together", "apart"])
@pytest.mark.parametrize("part", PARTS)
def test_the_limit_is_kept_while_a_program_is_built(monkeypatch, part, leaders):
    """On a clock that jumps while one part is built, nothing after that part is begun."""
    began, ahead, late = time.perf_counter(), [0.0], []
    real = getattr(model_module, part)

    def slow(*args, **kwargs):
        ahead[0] = 1000.0
        return real(*args, **kwargs)

    def solved(*args, **kwargs):
        late.append(args)
        raise AssertionError("HiGHS was called after the limit")

    def clock():
        return began + ahead[0]

    monkeypatch.setattr(model_module, part, slow)
    monkeypatch.setattr(search_module, "run_highs", solved)
    monkeypatch.setattr(search_module, "close_tree", solved)
    monkeypatch.setattr(steps_module.time, "perf_counter", clock)
    problem = Problem(sphere(12, seed=1), replicas=4, voters=3)
    start = find_feasible(problem)
    plan = solve(problem, "milp", time_limit=100, start=start, settings={"leaders": leaders})
    assert not late
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.found
    assert 0 < plan.bound <= plan.objective

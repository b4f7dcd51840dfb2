"""The guarded run of HiGHS, and proofs on safe LP bounds: nothing is taken on trust."""

import dataclasses
import math
import threading
import time
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations.milp import cutting_rounds as search_module
from formulations.milp.program_data import program_data
from formulations.milp.program_model import build
from formulations.milp.recipes import Recipe
from formulations.solvers import guarded_run, highs
from formulations.solvers import safe_bounds as proof_module
from formulations.solvers.highs import Guard, Relaxation, run_highs
from formulations.solvers.linear_program import Builder, compile_program
from formulations.solvers.safe_bounds import prove_by_branching, safe_bound
from formulations.solvers.statuses import StopReason, Verdict
from placement import Problem, SolverError, Status, solve
from placement.feasibility.feasible_plans import reasons_infeasible
from tests.effort import examples
from tests.expected import like_enumeration
from tests.milp.worlds import sphere, values_at
from tests.strategies import problems


@pytest.fixture(scope="module")
def small():
    problem = Problem(sphere(8), replicas=3, voters=3)
    milp = build(program_data(problem), Recipe.CHAIN.rows)
    return problem, milp, milp.program()


@pytest.fixture(scope="module")
def hard():
    """A program that takes HiGHS far longer than these tests wait."""
    problem = Problem(sphere(40, seed=5), replicas=6, voters=5)
    milp = build(program_data(problem), Recipe.MEMBERSHIP.rows, typical=1e9)
    program = milp.program()
    start = solve(problem, "best-of").configuration
    return problem, milp, program, values_at(milp, program, start)


def test_optimum(small):
    problem, milp, program = small
    best = solve(problem, "exhaustive")
    outcome = run_highs(program, Guard())
    assert outcome.verdict is Verdict.OPTIMAL
    assert outcome.objective == pytest.approx(best.objective, rel=1e-9)
    assert outcome.bound == pytest.approx(best.objective, rel=1e-9)
    assert milp.configuration(program, outcome.values).replicas == best.configuration.replicas


def test_infeasible():
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    model.x = pyo.Var([0, 1], domain=pyo.Binary)
    model.sum = pyo.Constraint(expr=2 * model.x[0] + 2 * model.x[1] == 1)
    model.cost = pyo.Objective(expr=model.x[0])
    program = compile_program(model)
    for presolve in (True, False):
        outcome = run_highs(program, Guard(), presolve=presolve)
        assert outcome.verdict is Verdict.INFEASIBLE
        assert outcome.values is None
        assert outcome.bound == math.inf


def test_deadline_keeps_the_start_and_an_honest_bound(hard):
    _, _, program, start = hard
    outcome = run_highs(program, Guard(deadline=time.perf_counter() + 0.2), start=start)
    assert (outcome.verdict, outcome.stop) == (Verdict.STOPPED, StopReason.TIME)
    if outcome.values is not None:
        assert outcome.objective <= program.objective(start) * (1 + 1e-9)
        assert program.violation(outcome.values) < 1e-5
    assert outcome.bound < outcome.objective


@pytest.mark.slow
def test_gap_limit(hard):
    _, _, program, start = hard
    guard = Guard(deadline=time.perf_counter() + 120, gap_limit=0.9)
    outcome = run_highs(program, guard, start=start)
    if outcome.verdict is Verdict.STOPPED:
        assert outcome.stop is StopReason.GAP
        assert outcome.objective - outcome.bound <= 0.9 * outcome.objective
        assert outcome.bound > -math.inf


def test_interrupt(hard):
    _, _, program, start = hard

    def press(incumbent, bound):
        raise KeyboardInterrupt

    outcome = run_highs(program, Guard(report=press), start=start)
    assert (outcome.verdict, outcome.stop) == (Verdict.STOPPED, StopReason.INTERRUPTED)
    assert outcome.bound < program.objective(start)


def test_progress_comes_from_the_callers_thread(hard):
    """A progress listener need not be thread-safe."""
    _, _, program, start = hard
    heard = []

    def listen(incumbent, bound):
        heard.append((threading.current_thread(), incumbent, bound))

    run_highs(program, Guard(deadline=time.perf_counter() + 0.6, report=listen), start=start)
    assert heard
    assert {thread for thread, _, _ in heard} == {threading.main_thread()}
    assert all(bound <= incumbent for _, incumbent, bound in heard)


class _Deaf:
    """A solver that hears neither its limits nor requests to stop, but has told of a solution."""

    def __init__(self, release):
        self.release = release
        self.listeners = {}
        for name in ("Improved", "Mip", "Simplex", "Ipm"):
            self.listeners[name] = []
        self.cbMipImprovingSolution = SimpleNamespace(subscribe=self.listeners["Improved"].append)
        self.cbMipInterrupt = SimpleNamespace(subscribe=self.listeners["Mip"].append)
        self.cbSimplexInterrupt = SimpleNamespace(subscribe=self.listeners["Simplex"].append)
        self.cbIpmInterrupt = SimpleNamespace(subscribe=self.listeners["Ipm"].append)

    def setOptionValue(self, name, value):
        return None

    def run(self):
        data = SimpleNamespace(
            mip_node_count=7,
            mip_dual_bound=3.0,
            objective_function_value=4.0,
            mip_solution=np.array([1.0, 0.0]),
        )
        event = SimpleNamespace(data_out=data, interrupt=lambda wanted: None)
        self.listeners["Improved"][0](event)
        self.release.wait(30)


def test_a_solver_that_does_not_stop_is_left_behind(monkeypatch, small):
    """The wall-time guard holds even then, and what the solver told before is not lost."""
    _, _, program = small
    release = threading.Event()
    monkeypatch.setattr(highs, "_load", lambda *args: _Deaf(release))
    try:
        outcome = run_highs(program, Guard(deadline=time.perf_counter() + 0.1, grace=0.1))
    finally:
        release.set()
    assert outcome.abandoned
    assert (outcome.verdict, outcome.stop) == (Verdict.STOPPED, StopReason.TIME)
    assert (outcome.objective, outcome.bound, outcome.nodes) == (4.0, 3.0, 7)
    assert outcome.values.tolist() == [1.0, 0.0]


def test_the_end_of_the_process_waits_for_what_was_left_behind(monkeypatch, small):
    """A thread that returns from C++ while the interpreter ends aborts the process."""
    _, _, program = small
    release = threading.Event()
    monkeypatch.setattr(highs, "_load", lambda *args: _Deaf(release))
    monkeypatch.setattr(guarded_run, "_LEFT_BEHIND", [])
    try:
        run_highs(program, Guard(deadline=time.perf_counter() + 0.05, grace=0.05))
        ((thread, _),) = guarded_run._LEFT_BEHIND
        assert thread.is_alive()
        threading.Timer(0.05, release.set).start()
        guarded_run.await_left_behind()
        assert not thread.is_alive()
    finally:
        release.set()


def test_the_thread_of_a_finished_run_has_ended(small):
    before = threading.enumerate()
    run_highs(small[2], Guard())
    assert set(threading.enumerate()) <= set(before)


def test_a_crash_in_the_worker_is_an_error(monkeypatch, small):
    _, _, program = small

    def crash(self):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(_Deaf, "run", crash)
    monkeypatch.setattr(highs, "_load", lambda *args: _Deaf(threading.Event()))
    with pytest.raises(SolverError, match="out of memory"):
        run_highs(program, Guard())


def test_an_unexpected_status_is_an_error(monkeypatch, small):
    """A run that stops at a limit nobody set is no result."""
    _, _, program = small
    load = highs._load

    def limited(*args):
        solver = load(*args)
        solver.setOptionValue("mip_max_improving_sols", 1)
        return solver

    monkeypatch.setattr(highs, "_load", limited)
    with pytest.raises(SolverError, match="status"):
        run_highs(program, Guard(), presolve=False)


def test_both_gaps_are_zero(small):
    """HiGHS would stop at 1e-4 by default."""
    _, _, program = small
    solver = highs._load(program, 1, 0, True, False)
    assert solver.getOptionValue("mip_rel_gap")[1] == 0
    assert solver.getOptionValue("mip_abs_gap")[1] == 0


def test_a_limit_of_nodes_gives_the_same_solution_in_every_run():
    """Both ways to stop are those of HiGHS: no clock takes part."""
    rng = np.random.default_rng(1)
    builder = Builder()
    columns = builder.add_columns(-rng.integers(20, 100, 30).astype(float), 1.0, integer=True)
    rows = builder.add_rows(-np.inf, np.full(5, 225.0), 5)
    builder.put(np.repeat(rows, 30), np.tile(columns, 5), rng.integers(5, 60, 150).astype(float))
    program = builder.program()
    runs = [run_highs(program, Guard(most_nodes=3)) for _ in range(2)]
    assert [each.stop for each in runs] == [StopReason.NODES, StopReason.NODES]
    assert (runs[0].values == runs[1].values).all()
    coarse = run_highs(program, Guard(own_gap=0.2))
    best = run_highs(program, Guard())
    assert coarse.nodes < best.nodes
    assert best.objective <= coarse.objective <= 0.8 * best.objective


TOGETHER = {"leaders": "together"}


def program_of(problem, recipe=Recipe.PER_CLIENT):
    milp = build(program_data(problem), recipe.rows)
    return milp.program(), milp


def exact_bound(program, lower, upper, dual):
    """Weak duality in rational arithmetic, for duals that fit their rows."""
    pi = [Fraction(float(value)) for value in dual]
    total = Fraction(program.offset)
    reduced = [Fraction(float(value)) for value in program.cost]
    for i, weight in enumerate(pi):
        if weight:
            side = program.row_lower[i] if weight > 0 else program.row_upper[i]
            total += weight * Fraction(float(side))
        for entry in range(program.start[i], program.start[i + 1]):
            value = Fraction(float(program.value[entry]))
            reduced[program.index[entry]] -= weight * value
    for j, price in enumerate(reduced):
        total += min(price * Fraction(float(lower[j])), price * Fraction(float(upper[j])))
    return total


@settings(max_examples=examples(50))
@given(problems(max_sites=5, max_clients=4), st.sampled_from(list(Recipe)))
def test_safe_bound_is_below_the_exact_one_and_close(problem, recipe):
    assume(not reasons_infeasible(problem))
    program, _ = program_of(problem, recipe)
    relaxation = Relaxation(program)
    relaxation.solve()
    dual = relaxation.duals
    assume(dual is not None)
    dual[(dual > 0) & ~np.isfinite(program.row_lower)] = 0
    dual[(dual < 0) & ~np.isfinite(program.row_upper)] = 0
    exact = exact_bound(program, program.lower, program.upper, dual)
    safe = safe_bound(program, program.lower, program.upper, dual)
    assert Fraction(safe) <= exact
    size = 1 + float(np.abs(program.cost).sum())
    assert float(exact) - safe <= 1e-11 * size


@settings(max_examples=examples(60))
@given(
    problems(max_sites=5, max_clients=4),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1e-3, 1.0, 1e6, 1e300]),
)
def test_any_duals_give_a_bound(problem, seed, size):
    """Random numbers for duals, NaN and infinity among them: weak bounds, never wrong ones."""
    best = solve(problem, "exhaustive")
    assume(best.found)
    program, _ = program_of(problem)
    rng = np.random.default_rng(seed)
    dual = rng.normal(size=len(program.row_lower)) * size
    dual[rng.random(len(dual)) < 0.1] = np.nan
    dual[rng.random(len(dual)) < 0.1] = np.inf
    with np.errstate(all="ignore"):
        bound = safe_bound(program, program.lower, program.upper, dual)
        empty = safe_bound(program, program.lower, program.upper, dual, cost=False)
    assert bound <= best.objective * (1 + 1e-12)
    assert empty <= 0  # a feasible program is never proven empty


@settings(max_examples=examples(40))
@given(problems(max_sites=5, max_clients=5), st.sampled_from(list(Recipe)))
def test_nothing_above_the_optimum_is_proven(problem, recipe):
    truth = solve(problem, "exhaustive")
    assume(truth.found and truth.objective > 0)
    program, _ = program_of(problem, recipe)
    told = []

    def judge(values):
        told.append(program.objective(values))
        return False

    proof = prove_by_branching(program, truth.objective * 1.05, judge)
    assert proof.bound <= truth.objective * (1 + 1e-12)
    assert proof.open > 0
    assert told


@pytest.mark.parametrize("recipe", [Recipe.PER_CLIENT, Recipe.CHAIN])
def test_infeasible_nodes_are_closed_by_rays(recipe):
    """A node without solutions is closed by a dual ray, checked like any other bound."""
    problem = Problem(sphere(5), replicas=2, voters=1)
    program, milp = program_of(problem, recipe)
    place = {var.name: j for j, var in enumerate(program.columns)}
    lower = program.lower.copy()
    for site in range(3):
        lower[place[f"x[{site}]"]] = 1  # three replicas where two are asked for
    relaxation = Relaxation(program)
    relaxation.set_bounds(lower, program.upper)
    verdict = relaxation.solve()
    bound = proof_module._bound_of(relaxation, verdict, program, lower, program.upper)[1]
    assert bound == math.inf
    assert milp.scale == 1.0


def test_solver_and_proof_agree_on_a_larger_world():
    """Twelve sites with relays: the same optimum, proven twice."""
    problem = Problem(sphere(12, seed=1, mix=(0.1, 0.8, 0.05, 0.03, 0.02)), replicas=5, voters=3)
    solver = solve(problem, "milp", settings=TOGETHER)
    safe = solve(problem, "milp", settings={**TOGETHER, "proof": "safe"})
    assert solver.status is safe.status is Status.OPTIMAL
    assert solver.objective == safe.objective
    assert safe.stats["proof_nodes"] >= 1


def test_a_bound_of_highs_is_not_used(monkeypatch):
    real = search_module.run_highs

    def overstated(*args, **kwargs):
        outcome = real(*args, **kwargs)
        return dataclasses.replace(outcome, bound=outcome.bound * 2)

    problem = Problem(sphere(7), replicas=3, voters=3)
    monkeypatch.setattr(search_module, "run_highs", overstated)
    like_enumeration(problem, "milp", settings={**TOGETHER, "proof": "safe"})


def test_a_wrong_optimum_of_highs_is_found_out(monkeypatch):
    """HiGHS stops at the start and calls it optimal: the proof finds what is better."""
    problem = Problem(sphere(7, seed=3), replicas=3, voters=3)
    truth = solve(problem, "exhaustive")
    real, calls = search_module.run_highs, []

    def lazy(program, guard, *, start=None, **kwargs):
        outcome = real(program, guard, start=start, **kwargs)
        calls.append(outcome)
        if len(calls) > 1:
            return outcome
        bounds = np.where(np.isnan(start), [program.lower, program.upper], start)
        there = real(dataclasses.replace(program, lower=bounds[0], upper=bounds[1]), guard)
        value = there.objective
        return dataclasses.replace(outcome, values=there.values, objective=value, bound=value)

    monkeypatch.setattr(search_module, "run_highs", lazy)
    wrong = solve(problem, "milp", settings={**TOGETHER, "start": "none"})
    assert wrong.objective > truth.objective  # believed, for want of a second look
    calls.clear()
    like_enumeration(problem, "milp", settings={**TOGETHER, "start": "none", "proof": "safe"})


def test_limits_of_the_proof():
    problem = Problem(sphere(15, seed=2), replicas=5, voters=5)
    program, milp = program_of(problem, Recipe.CHAIN)
    value = program.objective(values_at(milp, program, solve(problem, "exact").configuration))
    late = prove_by_branching(program, value, lambda values: True, deadline=0.0)
    assert late.nodes == 0
    assert late.open == 1
    assert late.bound < value

    def press(bound):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proof_module, "_REPORT", 0.0)
        stopped = prove_by_branching(program, value, lambda values: True, report=press)
    assert stopped.interrupted
    assert stopped.bound < value


def test_an_lp_hears_ctrl_c(monkeypatch):
    """Ctrl-C while HiGHS solves one long LP tells it to stop and ends the proof with its bound."""
    program, _ = program_of(Problem(sphere(5), replicas=2, voters=1), Recipe.CHAIN)
    real, told = highs._load, []

    class Pressed(threading.Event):
        def wait(self, timeout=None):
            if not told:
                told.append(False)
                raise KeyboardInterrupt
            return super().wait(timeout)

    def endless(*args, **kwargs):
        solver = real(*args, **kwargs)
        listeners = []

        def run():
            end = time.perf_counter() + 30
            while not any(told) and time.perf_counter() < end:
                time.sleep(0.01)
                for listener in listeners:
                    listener(SimpleNamespace(interrupt=told.append))

        heard = SimpleNamespace(subscribe=listeners.append)
        silent = SimpleNamespace(subscribe=lambda listener: None)
        return SimpleNamespace(
            run=run, cbSimplexInterrupt=heard, cbIpmInterrupt=silent, cbMipInterrupt=silent,
            cbMipImprovingSolution=silent, setOptionValue=solver.setOptionValue,
            changeColsBounds=solver.changeColsBounds,
        )  # fmt: skip

    shared = highs._Shared
    monkeypatch.setattr(highs, "_load", endless)
    monkeypatch.setattr(highs, "_Shared", lambda: shared(finished=Pressed()))
    proof = prove_by_branching(program, 1e9, lambda values: False)
    assert told[-1] is True
    assert proof.interrupted
    assert proof.nodes == 0

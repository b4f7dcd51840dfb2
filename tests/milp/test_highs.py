"""The guarded run: limits, Ctrl-C, threads, overruns, and a status that is never taken on trust."""

import math
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from formulations.milp.program_data import program_data
from formulations.milp.program_model import build
from formulations.milp.recipes import Recipe
from formulations.solvers import highs
from formulations.solvers.highs import Guard, run_highs
from formulations.solvers.linear_program import Builder, compile_program
from formulations.solvers.statuses import StopReason, Verdict
from placement import Problem, SolverError, solve
from tests.milp.worlds import sphere


@pytest.fixture(scope="module")
def small():
    """A program with its problem; solved in a moment."""
    problem = Problem(sphere(8), replicas=3, voters=3)
    milp = build(program_data(problem), Recipe.CHAIN.rows)
    return problem, milp, milp.program()


@pytest.fixture(scope="module")
def hard():
    """A program that takes HiGHS far longer than these tests wait."""
    problem = Problem(sphere(40, seed=5), replicas=6, voters=5)
    milp = build(program_data(problem), Recipe.MEMBERSHIP.rows, scale=1e-3)
    program = milp.program()
    start = solve(problem, "best-of").configuration
    return problem, milp, program, milp.values(program, start)


def test_optimum(small):
    """The optimum of exhaustive search, with a bound that meets it."""
    problem, milp, program = small
    best = solve(problem, "exhaustive")
    outcome = run_highs(program, Guard())
    assert outcome.verdict is Verdict.OPTIMAL
    assert outcome.objective == pytest.approx(best.objective, rel=1e-9)
    assert outcome.bound == pytest.approx(best.objective, rel=1e-9)
    assert milp.configuration(program, outcome.values).replicas == best.configuration.replicas


def test_another_number_of_threads_in_the_same_process(small):
    """A second run with other threads has been seen to fail with objective 0; every run counts."""
    _, _, program = small
    objectives = {run_highs(program, Guard(), threads=n).objective for n in (1, 2, 1, 2)}
    assert max(objectives) == pytest.approx(min(objectives), rel=1e-12)
    assert min(objectives) > 0


def test_infeasible():
    """An infeasible program has no values and an infinite bound, with presolve and without."""
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
    """Stopped by the clock: the start or better, and a bound below it."""
    _, _, program, start = hard
    outcome = run_highs(program, Guard(deadline=time.perf_counter() + 0.2), start=start)
    assert (outcome.verdict, outcome.stop) == (Verdict.STOPPED, StopReason.TIME)
    if outcome.values is not None:
        assert outcome.objective <= program.objective(start) * (1 + 1e-9)
        assert program.violation(outcome.values) < 1e-5
    assert outcome.bound < outcome.objective


@pytest.mark.slow
def test_gap_limit(hard):
    """Stopped by the gap that was asked for, which the bound then shows."""
    _, _, program, start = hard
    guard = Guard(deadline=time.perf_counter() + 120, gap_limit=0.9)
    outcome = run_highs(program, guard, start=start)
    if outcome.verdict is Verdict.STOPPED:
        assert outcome.stop is StopReason.GAP
        assert outcome.objective - outcome.bound <= 0.9 * outcome.objective
        assert outcome.bound > -math.inf


def test_interrupt(hard):
    """Ctrl-C while HiGHS runs ends the run with what it has."""
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
    monkeypatch.setattr(highs, "_LEFT_BEHIND", [])
    try:
        run_highs(program, Guard(deadline=time.perf_counter() + 0.05, grace=0.05))
        ((thread, _),) = highs._LEFT_BEHIND
        assert thread.is_alive()
        threading.Timer(0.05, release.set).start()
        highs._await_left_behind()
        assert not thread.is_alive()
    finally:
        release.set()


def test_the_thread_of_a_finished_run_has_ended(small):
    """The threads of HiGHS end with their run, not with the process."""
    before = threading.enumerate()
    run_highs(small[2], Guard())
    assert set(threading.enumerate()) <= set(before)


def test_a_crash_in_the_worker_is_an_error(monkeypatch, small):
    """An error inside HiGHS's thread reaches the caller."""
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

"""Time, gap, Ctrl-C and a solver that does not keep its limit: always the best so far, honestly."""

import _thread
import math
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from ortools.sat.python import cp_model

import placement
from formulations.solvers import cpsat as search
from formulations.solvers.statuses import Verdict
from placement import Diversity, Instance, Problem, Status, Termination
from placement.errors import SolverError
from placement.feasibility.feasible_plans import find_feasible, violations
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.plan import objective_value

CP_SAT = load_method("cp-sat")


def large(sites=40, clients=80, seed=3, **asked):
    """Points on a plane; heavy weak reads, so that every leader has to be searched."""
    rng = np.random.default_rng(seed)
    at, homes = rng.uniform(0, 200, (sites, 2)), rng.uniform(0, 200, (clients, 2))
    counts = rng.exponential(50, (clients, 5)) * [20, 5, 1, 1, 0]
    instance = Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"c{i}" for i in range(clients)),
        client_rtt=np.linalg.norm(homes[:, None] - at, axis=-1),
        site_rtt=np.linalg.norm(at[:, None] - at, axis=-1),
        counts=counts,
        domains={"side": tuple("west" if x < 100 else "east" for x in at[:, 0])},
    )
    return Problem(instance, **{"replicas": 8, "voters": 3, **asked})


def is_honest(plan, problem, optimum=None):
    assert plan.bound <= plan.objective
    if plan.found:
        assert not violations(problem, plan.configuration)
        assert plan.objective == objective_value(problem, plan.configuration)
    if optimum is not None:
        assert plan.bound <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("start", ["none", "best-of"])
def test_time_limit(seconds, start):
    problem = large()
    options = Options(time_limit=seconds, settings={"start": start})
    plan = run(CP_SAT, problem, options)
    assert plan.termination is Termination.TIME_LIMIT
    assert plan.status in (Status.FEASIBLE, Status.UNKNOWN)
    is_honest(plan, problem)


def test_a_given_start_survives_no_time_at_all():
    problem = large()
    start = find_feasible(problem)
    plan = run(CP_SAT, problem, Options(time_limit=0.0, start=start))
    assert plan.configuration == start
    assert plan.status is Status.FEASIBLE


def test_gap_limit():
    problem = large(sites=20, clients=30, replicas=4)
    best = run(CP_SAT, problem, Options())
    assert best.status is Status.OPTIMAL
    loose = run(CP_SAT, problem, Options(gap_limit=0.2, settings={"start": "none"}))
    assert loose.gap <= 0.2
    assert loose.stats["models"] <= best.stats["leaders"]
    is_honest(loose, problem, best.objective)
    if loose.status is Status.FEASIBLE:
        assert loose.termination is Termination.GAP_LIMIT


def test_progress_is_monotone_and_comes_from_the_callers_thread():
    problem = large(sites=25, clients=40, replicas=5)
    seen = []

    def listen(report):
        assert threading.current_thread() is threading.main_thread()
        seen.append(report)

    plan = run(CP_SAT, problem, Options(progress=listen, settings={"start": "none"}))
    assert plan.status is Status.OPTIMAL
    assert seen
    incumbents = [report.incumbent for report in seen]
    assert incumbents == sorted(incumbents, reverse=True)
    assert all(report.bound <= plan.objective * (1 + 1e-9) for report in seen)
    assert math.isclose(seen[-1].incumbent, plan.objective)


@pytest.mark.usefixtures("uncollected")
def test_ctrl_c_in_the_middle_of_a_solve():
    problem = large(sites=60, clients=200, replicas=12)
    reached = threading.Event()

    def press():
        reached.wait(60)
        time.sleep(0.3)
        _thread.interrupt_main()

    thread = threading.Thread(target=press)
    thread.start()
    try:
        plan = run(CP_SAT, problem, Options(progress=lambda _: reached.set(), time_limit=60))
    finally:
        reached.set()
        thread.join()
    assert plan.termination is Termination.INTERRUPTED
    assert plan.found
    is_honest(plan, problem)


def test_an_error_of_the_listener_is_not_swallowed():
    def listen(report):
        raise RuntimeError("listener")

    with pytest.raises(RuntimeError, match="listener"):
        run(CP_SAT, large(), Options(progress=listen))


def hard_model():
    model = cp_model.CpModel()
    literals = [model.new_bool_var(f"b{i}") for i in range(12)]
    model.minimize(sum(literals))
    return model


def test_a_solver_that_keeps_no_limit_is_left_alone(monkeypatch):
    """The solver finds a solution, then neither returns nor listens."""
    release = threading.Event()

    class Deaf(cp_model.CpSolver):
        def solve(self, model, solution_callback=None):
            status = super().solve(model, solution_callback)
            release.wait(30)
            return status

        def stop_search(self):
            pass

    monkeypatch.setattr(search, "_GRACE", 0.05)
    monkeypatch.setattr(search, "_TICK", 0.01)
    solver = Deaf()
    solver.parameters.catch_sigint_signal = False  # it would leave Ctrl-C without its handler
    answer = search.run_solver(solver, hard_model(), seconds=0.05)
    assert answer.verdict is Verdict.STOPPED
    assert answer.values == [0] * 12
    before = vars(answer).copy()
    release.set()
    time.sleep(0.1)
    assert vars(answer) == before  # what the late solver says changes nothing any more


AFTER_A_SOLVE = """
import signal
from ortools.sat.python import cp_model
from formulations.solvers.cpsat import solve_in_place
signal.signal(signal.SIGINT, signal.default_int_handler)
model = cp_model.CpModel()
model.maximize(model.new_bool_var("x"))
solve_in_place(cp_model.CpSolver(), model)
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("handled")
"""


def test_ctrl_c_after_a_solve_in_place_is_still_that_of_python():
    ended = subprocess.run(
        [sys.executable, "-c", AFTER_A_SOLVE], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "handled\n")


def test_a_failing_solver_is_a_solver_error():
    class Broken(cp_model.CpSolver):
        def solve(self, model, solution_callback=None):
            raise ValueError("out of cheese")

    with pytest.raises(SolverError, match="out of cheese"):
        search.run_solver(Broken(), hard_model())


def test_an_invalid_model_is_a_solver_error():
    model = cp_model.CpModel()
    x = model.new_int_var(0, 2**40, "x")
    model.minimize(2**40 * x)
    with pytest.raises(SolverError, match="invalid"):
        search.run_solver(search.new_solver(seconds=None, seed=0, threads=1), model)


def test_a_solver_that_denies_a_known_plan_is_caught(monkeypatch):
    monkeypatch.setattr(
        "formulations.cpsat.method.run_solver",
        lambda *args, **kwargs: search.CpSatResult(Verdict.INFEASIBLE),
    )
    with pytest.raises(SolverError, match="as good as the one known"):
        run(CP_SAT, large(sites=12, clients=9, replicas=3), Options())


def test_a_wrong_infeasible_is_caught(monkeypatch):
    monkeypatch.setattr(
        "formulations.cpsat.method.run_solver",
        lambda *args, **kwargs: search.CpSatResult(Verdict.INFEASIBLE),
    )
    with pytest.raises(SolverError, match="here is one"):
        run(
            CP_SAT,
            large(sites=12, clients=9, replicas=3),
            Options(settings={"start": "none"}),
        )


def test_a_wrong_objective_is_caught(monkeypatch):
    true_run = search.run_solver

    def lies(*args, **kwargs):
        answer = true_run(*args, **kwargs)
        if answer.objective is not None:
            answer.objective -= 10_000_000
            answer.bound = answer.objective
        return answer

    monkeypatch.setattr("formulations.cpsat.method.run_solver", lies)
    with pytest.raises(SolverError, match="the evaluator"):
        run(
            CP_SAT,
            large(sites=12, clients=9, replicas=3),
            Options(settings={"start": "none"}),
        )


def test_one_worker_is_deterministic():
    problem = large(sites=15, clients=20, replicas=4, diversity=Diversity("side", cap=2))
    one, two = (run(CP_SAT, problem, Options(seed=5)) for _ in range(2))
    assert one.configuration == two.configuration
    assert one.stats["conflicts"] == two.stats["conflicts"]


def test_more_threads_give_the_same_optimum():
    problem = large(sites=15, clients=20, replicas=4)
    one, two = (run(CP_SAT, problem, Options(threads=n)) for n in (1, 2))
    assert two.status is Status.OPTIMAL
    assert two.objective == pytest.approx(one.objective, rel=1e-9)


def test_an_unknown_start_is_no_start():
    problem = large(sites=10, clients=9, replicas=3)
    plan = placement.solve(problem, method="cp-sat", settings={"start": "no-such-method"})
    assert plan.status is Status.OPTIMAL


def test_the_start_may_be_worse_than_the_rest():
    """An inflated first incumbent must not hide a pruning mistake."""
    problem = large(sites=12, clients=20, replicas=4)
    truth = placement.solve(problem, method="exhaustive")
    bad = max(
        (Configuration.of(s, (s, *((s + 1) % 12, (s + 2) % 12)), [(s + i) % 12 for i in range(4)])
         for s in range(12)),
        key=lambda c: objective_value(problem, c),
    )  # fmt: skip
    plan = run(CP_SAT, problem, Options(start=bad))
    assert plan.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(truth.objective, rel=1e-9)


def agree(problem):
    plan = placement.solve(problem, method="cp-sat")
    truth = placement.solve(problem, method="exhaustive", settings={"limit": 10**9})
    assert plan.status is truth.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(truth.objective, rel=1e-9)


def test_world27_with_constraints_of_every_kind():
    instance = placement.load("world27")
    prices = placement.Prices(np.random.default_rng(4).uniform(20, 100, len(instance.sites)))
    agree(
        Problem(
            instance.replace(prices=prices),
            replicas=(4, 5),
            voters=3,
            survive="country",
            diversity=[Diversity("provider", cap=1), Diversity("continent", "replicas", cap=2)],
            pinned=["us-east-1"],
            forbidden=["UK South"],
            budget=230.0,
            cost_weight=1e4,
        )
    )

"""Running CP-SAT so that limits hold, Ctrl-C works and nothing found is lost.

The solver runs apart (:mod:`formulations.solvers.guarded_run`), and is stopped when the wall clock
says so, whether or not it keeps its own time limit.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formulations.solvers.guarded_run import run_apart
from formulations.solvers.statuses import StopReason, Verdict, cpsat_verdict

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Listener = Callable[[list[int] | None, int | None], None]
"""Told the values of the best solution and the bound; None: none so far."""

_TICK = 0.1  # seconds between two readings of the clock
_GRACE = 2.0  # seconds a solver may overrun before it is told, and again before it is left alone


@dataclass
class CpSatResult:
    """Result of one run."""

    verdict: Verdict = Verdict.STOPPED  #: how it ended; optimal and infeasible are proven
    #: value of every variable, by index, in the best solution; None: none found
    values: list[int] | None = None
    objective: int | None = None  #: of that solution, in the solver's integers
    bound: int | None = None  #: proven lower bound, in the solver's integers; None: none
    #: `conflicts`, `branches`: work done
    conflicts: int = 0
    branches: int = 0
    interrupted: bool = False  #: whether Ctrl-C stopped it


def new_solver(
    *, seconds: float | None, seed: int, threads: int, gap: float = 0.0
) -> cp_model.CpSolver:
    """Return a solver with this project's parameters; one worker is deterministic.

    Presolve is off. In OR-Tools 9.15 one of its steps returns wrong optima and certifies them
    (google/or-tools#5293, open in August 2026; an earlier model of ours met it), and it loses track
    of assumption literals (#5141). The gain here would be small: chains are cut at the leader and
    literals are shared while the model is built. The full linear relaxation is on from the start
    (linearization_level 2), because that of one leader's model is close to integral. Cuts and
    probing are off: after losses on world27 a model takes a sixth of the time without them. `gap`
    is the difference between value and bound, in the solver's integers, that ends the search.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.cp_model_presolve = False
    parameters.linearization_level = 2
    parameters.add_lp_constraints_lazily = False
    parameters.cut_level = parameters.cp_model_probing_level = 0
    parameters.num_workers = threads
    parameters.random_seed = seed % 2**31
    parameters.relative_gap_limit = 0.0
    parameters.absolute_gap_limit = gap
    parameters.catch_sigint_signal = False  # Ctrl-C belongs to the caller's thread
    if seconds is not None:
        parameters.max_time_in_seconds = max(seconds, 1e-3)
    return solver


def run_solver(
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    *,
    seconds: float | None = None,
    listen: Listener | None = None,
) -> CpSatResult:
    """Run a solver to the end, to its limit, or to Ctrl-C.

    It is stopped a little after `seconds` of wall time, at the latest. `listen` is called from the
    caller's thread with (values, bound) as they improve. SolverError when the model is rejected.
    """
    from ortools.sat.python import cp_model

    answer = CpSatResult()
    lock = threading.Lock()

    class Recorder(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]  # OR-Tools is untyped here
        """Keeps the best solution, so that it survives whatever happens to the solver."""

        def on_solution_callback(self) -> None:
            values = list(self.response_proto.solution)
            with lock:
                answer.values = values
                answer.objective = round(self.objective_value)

    def note_bound(bound: float) -> None:
        if math.isfinite(bound):
            with lock:
                answer.bound = math.ceil(bound - 1e-6)  # integers below 2^53: exact as doubles

    solver.best_bound_callback = note_bound

    def work() -> None:
        status = solver.solve(model, Recorder())
        with lock:
            _conclude(answer, solver, status)

    started = time.perf_counter()
    told: tuple[list[int] | None, int | None] = (None, None)

    def look() -> StopReason | None:
        nonlocal told
        with lock:
            now = (answer.values, answer.bound)
        if listen is not None and now != told:
            listen(*now)
            told = now
        late = seconds is not None and time.perf_counter() - started > seconds + _GRACE
        return StopReason.TIME if late else None

    stop = run_apart(
        "CP-SAT", work, solver.stop_search, look, threading.Event(), tick=_TICK, grace=_GRACE
    )
    answer.interrupted = stop is StopReason.INTERRUPTED
    with lock:  # a solver that was left alone must not change what is handed out
        return CpSatResult(**vars(answer))


def _conclude(answer: CpSatResult, solver: cp_model.CpSolver, status: object) -> None:
    from ortools.sat.python import cp_model

    answer.conflicts, answer.branches = solver.num_conflicts, solver.num_branches
    verdict = cpsat_verdict(solver, status)
    if verdict is Verdict.INFEASIBLE:
        answer.verdict = verdict
        return
    response = solver.response_proto
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        answer.values = list(response.solution)
        answer.objective = round(solver.objective_value)
        answer.bound = math.ceil(solver.best_objective_bound - 1e-6)
    if verdict is Verdict.OPTIMAL and answer.objective == answer.bound:
        answer.verdict = verdict  # else: it stopped within the gap it was allowed

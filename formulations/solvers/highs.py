"""Guarded run of HiGHS: limits that hold, Ctrl-C, incumbents as they come, the bound as it is.

HiGHS runs apart (:mod:`formulations.solvers.guarded_run`). Traps this module knows about:

* The defaults stop at a relative gap of 1e-4 and prune with it, after which the reported bound says
  nothing. Both gaps are always 0 here; a gap limit is kept by interrupting the run.
* The pool of worker threads belongs to the calling thread and keeps its first size: a second run
  with another number of threads fails, and its objective reads 0. A new thread per run gets a new
  pool.
* A status that is not one of the expected is an error, never a result.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formulations.solvers.guarded_run import run_apart
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.statuses import StopReason, Verdict, highs_verdict
from placement.errors import SolverError
from placement.support.checks import FloatArray, IntArray
from placement.support.status import relative_gap

_POLL = 0.02
"""Seconds between two looks at the clock."""

_REPORT = 0.25
"""Seconds between two progress reports."""


@dataclass(frozen=True, slots=True)
class Guard:
    """Limits and callbacks of a run."""

    deadline: float = math.inf  #: time.perf_counter() at which to stop; infinite: never
    gap_limit: float = 0.0  #: relative gap (incumbent − bound)/incumbent at which to stop; 0: never
    grace: float = 2.0  #: seconds after a stop is asked for until the run is left behind
    #: dual bound at which to stop, in units of the program: nothing below it is of interest
    enough: float = math.inf
    #: called from the caller's thread with (incumbent, bound) in units of the program
    report: Callable[[float, float], None] | None = None
    #: nodes of branch and bound after which HiGHS stops; None: no limit. Unlike a deadline it gives
    #: the same solution in every run.
    most_nodes: int | None = None
    #: relative gap at which HiGHS itself calls a solution optimal, at the same node in every run.
    #: The bound that it reports then proves nothing.
    own_gap: float = 0.0


@dataclass(frozen=True, eq=False)
class HighsResult:
    """Result of a run, in units of the program."""

    #: `verdict`, `stop`: how it ended, and why when stopped
    verdict: Verdict
    stop: StopReason | None
    values: FloatArray | None  #: best solution found, shape (columns,); None without one
    objective: float  #: of `values`; +∞ without one
    bound: float  #: HiGHS's dual bound as reported: −∞ when none, +∞ when infeasible
    #: `nodes`, `iterations`: branch-and-bound nodes and simplex iterations
    nodes: int
    iterations: int
    seconds: float  #: wall time of the run
    abandoned: bool = False  #: whether HiGHS did not stop when told to and was left behind


@dataclass
class _Shared:
    """Values that the two threads exchange; written by one side each, read by the other."""

    halt: bool = False
    values: FloatArray | None = None
    objective: float = math.inf
    bound: float = -math.inf
    nodes: int = 0
    finished: threading.Event = field(default_factory=threading.Event)


def run_highs(
    program: LinearProgram,
    guard: Guard,
    *,
    threads: int = 1,
    seed: int = 0,
    start: FloatArray | None = None,
    presolve: bool = True,
) -> HighsResult:
    """Minimise a program.

    SolverError when HiGHS fails, or stops for a reason that it was not given. `start` has values of
    columns to start from; NaN: HiGHS completes them.
    """
    began = time.perf_counter()
    solver = _load(program, threads, seed, presolve)
    if math.isfinite(guard.deadline):
        solver.setOptionValue("time_limit", max(0.0, guard.deadline - began))
    if guard.most_nodes is not None:
        solver.setOptionValue("mip_max_nodes", guard.most_nodes)
    if guard.own_gap > 0:
        solver.setOptionValue("mip_rel_gap", guard.own_gap)
    if start is not None:
        known = np.nonzero(~np.isnan(start))[0]
        solver.setSolution(len(known), known.astype(np.int32), start[known])
    shared = _Shared()
    _listen(solver, shared)
    stop = _run(solver, shared, guard)
    seconds = time.perf_counter() - began
    if not shared.finished.is_set():
        # Left behind: `solver` stays alive in the worker's frame until it returns.
        return HighsResult(
            Verdict.STOPPED,
            stop,
            shared.values,
            shared.objective,
            shared.bound,
            shared.nodes,
            0,
            seconds,
            abandoned=True,
        )
    own = {"kTimeLimit": StopReason.TIME}
    if guard.most_nodes is not None:
        own["kSolutionLimit"] = StopReason.NODES
    stop = stop or own.get(solver.getModelStatus().name)
    return _read(solver, program, shared, stop, seconds)


def _run(solver: Any, shared: _Shared, guard: Guard) -> StopReason | None:
    """Run HiGHS apart; return the reason of an early stop, if any."""
    reported = time.perf_counter()

    def look() -> StopReason | None:
        nonlocal reported
        now = time.perf_counter()
        if guard.report is not None and now - reported >= _REPORT:
            reported = now
            guard.report(shared.objective, shared.bound)
        if now > guard.deadline:
            return StopReason.TIME
        if 0 < guard.gap_limit >= relative_gap(shared.objective, shared.bound):
            return StopReason.GAP
        return StopReason.ENOUGH if shared.bound >= guard.enough else None

    def halt() -> None:
        shared.halt = True

    return run_apart(
        "HiGHS", solver.run, halt, look, shared.finished, tick=_POLL, grace=guard.grace
    )


def silent_highs() -> Any:
    """Return a HiGHS instance that prints nothing, its banner neither.

    highspy prints the banner on stdout where callbacks are enabled, in the constructor.
    """
    import highspy

    class Silent(highspy.Highs):  # type: ignore[misc]  # highspy has no types before 1.16
        def enableCallbacks(self) -> None:  # noqa: N802 - named there
            self.silent()
            super().enableCallbacks()

    return Silent()


def _load(
    program: LinearProgram, threads: int, seed: int, presolve: bool, relaxed: bool = False
) -> Any:
    """Return a HiGHS instance that holds the program, with its options set."""
    import highspy

    lp = highspy.HighsLp()
    lp.num_col_ = len(program.cost)
    lp.num_row_ = len(program.row_lower)
    lp.col_cost_ = program.cost
    lp.offset_ = program.offset
    lp.col_lower_ = program.lower
    lp.col_upper_ = program.upper
    lp.row_lower_ = program.row_lower
    lp.row_upper_ = program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.start.astype(np.int32)
    lp.a_matrix_.index_ = program.index.astype(np.int32)
    lp.a_matrix_.value_ = program.value
    if not relaxed:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        lp.integrality_ = [kinds[int(whole)] for whole in program.integer]
    solver = silent_highs()
    for name, value in (
        ("mip_rel_gap", 0.0),
        ("mip_abs_gap", 0.0),
        ("threads", threads),
        ("parallel", "on" if threads > 1 else "off"),
        ("random_seed", seed % 2**31),
        ("presolve", "on" if presolve else "off"),
    ):
        if solver.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS refused the option {name} = {value!r}")
    if solver.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS refused the model")
    return solver


class Relaxation:
    """LP relaxation of a program, to be solved under changing bounds of its columns.

    Presolve is off unless a call asks for it, so that every status comes with duals or a dual ray.
    HiGHS starts each LP from the basis of the one before. `tolerance` is the largest violation of a
    row or of a dual constraint; None: that of HiGHS.
    """

    def __init__(self, program: LinearProgram, *, tolerance: float | None = None) -> None:
        self._rows, self._columns = len(program.row_lower), len(program.cost)
        self._solver = _load(program, 1, 0, presolve=False, relaxed=True)
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            if tolerance is not None:
                self._solver.setOptionValue(name, tolerance)
        self._shared = _Shared()
        _listen(self._solver, self._shared)

    def set_bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Set the bounds of all columns, shape (columns,)."""
        columns = np.arange(self._columns, dtype=np.int32)
        self._solver.changeColsBounds(self._columns, columns, lower, upper)

    def add_columns(
        self, costs: FloatArray, starts: IntArray, rows: IntArray, values: FloatArray
    ) -> None:
        """Add columns within [0, ∞); the entries of each begin at its start. The basis stays."""
        count = len(costs)
        places = (len(rows), starts.astype(np.int32), rows.astype(np.int32))
        bounds = (np.zeros(count), np.full(count, np.inf))
        self._solver.addCols(count, costs, *bounds, *places, values)
        self._columns += count

    def solve(self, *, deadline: float = math.inf, presolve: bool = False) -> Verdict:
        """Solve the LP; KeyboardInterrupt when Ctrl-C was pressed: HiGHS has been told to stop.

        Presolve forgets the basis. An LP that it calls infeasible comes without a dual ray and is
        solved again without. SolverError when HiGHS fails, or stops for a reason that it was not
        given.
        """
        if math.isfinite(deadline):
            # HiGHS's clock runs on from one LP to the next
            left = deadline - time.perf_counter()
            self._solver.setOptionValue("time_limit", self._solver.getRunTime() + max(0.0, left))
        self._solver.setOptionValue("presolve", "on" if presolve else "off")
        self._shared.finished.clear()
        if _run(self._solver, self._shared, Guard()) is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        verdict = highs_verdict(self._solver)
        if presolve and verdict is Verdict.INFEASIBLE:
            self._solver.clearSolver()
            return self.solve(deadline=deadline)
        return verdict

    @property
    def values(self) -> FloatArray | None:
        """Values of the columns, shape (columns,); None without a solution."""
        values = np.array(self._solver.getSolution().col_value, dtype=np.float64)
        return values if len(values) == self._columns else None

    @property
    def objective(self) -> float:
        """Objective of the values that HiGHS reports."""
        return float(self._solver.getInfo().objective_function_value)

    @property
    def duals(self) -> FloatArray | None:
        """Duals of the rows, shape (rows,); None without a solution."""
        duals = np.array(self._solver.getSolution().row_dual, dtype=np.float64)
        return duals if len(duals) == self._rows else None

    @property
    def ray(self) -> FloatArray | None:
        """Dual ray of an infeasible LP, shape (rows,); None when HiGHS has none."""
        import highspy

        found, has_ray, ray = self._solver.getDualRay()
        if found != highspy.HighsStatus.kOk or not has_ray:
            return None
        return np.array(ray, dtype=np.float64)


def solve_linear(program: LinearProgram) -> tuple[float, FloatArray]:
    """Minimise a linear program, with presolve: (optimum, duals of the rows, shape (rows,))."""
    relaxation = Relaxation(program)
    verdict = relaxation.solve(presolve=True)
    duals = relaxation.duals
    if verdict is not Verdict.OPTIMAL or duals is None:
        raise SolverError(f"HiGHS ended a linear program with {verdict.value!r}")
    return relaxation.objective, duals


def _listen(solver: Any, shared: _Shared) -> None:
    """Subscribe to the messages of a running HiGHS; the same calls carry the request to halt."""

    def note(event: Any) -> None:
        data = event.data_out
        shared.nodes = max(shared.nodes, int(data.mip_node_count))
        if math.isfinite(data.mip_dual_bound):
            shared.bound = max(shared.bound, float(data.mip_dual_bound))
        event.interrupt(shared.halt)

    def improved(event: Any) -> None:
        data = event.data_out
        if data.objective_function_value < shared.objective:
            shared.values = np.array(data.mip_solution, dtype=np.float64)
            shared.objective = float(data.objective_function_value)
        note(event)

    def halted(event: Any) -> None:
        event.interrupt(shared.halt)

    solver.cbMipImprovingSolution.subscribe(improved)
    solver.cbMipInterrupt.subscribe(note)
    solver.cbSimplexInterrupt.subscribe(halted)
    solver.cbIpmInterrupt.subscribe(halted)


def _read(
    solver: Any,
    program: LinearProgram,
    shared: _Shared,
    stop: StopReason | None,
    seconds: float,
) -> HighsResult:
    """Turn HiGHS's status into an outcome; an unexpected status is an error."""
    verdict, info = highs_verdict(solver), solver.getInfo()
    nodes = max(shared.nodes, int(info.mip_node_count))
    iterations = max(0, int(info.simplex_iteration_count))
    if verdict is Verdict.INFEASIBLE:
        return HighsResult(verdict, None, None, math.inf, math.inf, nodes, iterations, seconds)
    values, value = shared.values, shared.objective
    solution = solver.getSolution()
    found = np.array(solution.col_value, dtype=np.float64)
    if info.primal_solution_status == 2 and len(found) == len(program.cost):
        reached = program.objective(found)
        if values is None or reached <= value:
            values, value = found, reached
    if verdict is Verdict.OPTIMAL:
        bound = float(info.mip_dual_bound)
        return HighsResult(verdict, None, values, value, bound, nodes, iterations, seconds)
    if stop is None:
        status = solver.modelStatusToString(solver.getModelStatus())
        raise SolverError(f"HiGHS stopped with the status {status!r}, for which it had no reason")
    bound = max(shared.bound, float(info.mip_dual_bound))
    bound = bound if math.isfinite(bound) else -math.inf
    return HighsResult(verdict, stop, values, value, bound, nodes, iterations, seconds)

"""The optimal replica choice for the reads of a window, by CP-SAT, with a proven bound.

Sets and data: reads r with release a_r and work e_r, replicas E_r, slots c, one-way delay l; a read
that starts on s in a segment of factor f takes e_r·f. Options o = (r, s, segment) with a window of
starts. Variables: x_o ∈ {0, 1}; S_r, the start of service.

    min  Σ_r (S_r + Σ_{o of r} d_o·x_o + l − a_r)
    Σ_{o of r} x_o = 1;   x_o ⇒ earliest_o <= S_r <= latest_o
    at any time at most c of the chosen intervals [S_r, S_r + d_o), fixed ones included, on a server
    first come, first served (order="fcfs" only): r before r' in arrival order, both on s
        ⇒ S_r <= S_r', and no read starts before one that was sent earlier

Order "any" admits every order and any idling. Its bound holds for every policy that does not
interrupt service, including policies that delay reads. Order "fcfs" is the best choice of replicas
at servers that serve first come, first served. While speeds do not change inside the window it is
exact. When they do, the model may idle a server until it is faster, which real servers do not. It
is then a relaxation: its bound holds, and the simulator evaluates the plan of the same choices.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from formulations.online.selection.price_bounds import Option, incumbent, latest_starts, options
from formulations.solvers.cpsat import CpSatResult, new_solver, run_solver
from formulations.solvers.statuses import Verdict
from placement.errors import InputError, SolverError
from placement.online.selection import Window
from placement.support.checks import FloatArray

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Order = Literal["any", "fcfs"]


@dataclass(frozen=True, eq=False)
class Optimum:
    """Best choice that was found, and the bound that is proven."""

    #: flow times in ms of the plan, by the simulator ("fcfs") or by the check of schedules ("any");
    #: shape (N,)
    flow: FloatArray
    servers: np.ndarray  #: who serves each read, shape (N,)
    bound: float  #: proven lower bound in ms on the mean flow time
    proven: bool  #: whether the plan meets the bound, up to half a tick per read
    status: str  #: of the solver: "optimal" or "stopped"
    wall_s: float  #: seconds

    @property
    def value(self) -> float:
        """Mean flow time of the plan in ms."""
        return float(self.flow.mean())


def solve(
    window: Window,
    order: Order = "any",
    *,
    seconds: float | None = 60.0,
    seed: int = 0,
    threads: int = 1,
) -> Optimum:
    """Minimise the mean flow time of a window's reads; Ctrl-C keeps what there is.

    Proofs close up to some twenty reads; beyond, take the bound of
    :func:`formulations.online.selection.linear_bounds.fluid_bound`. SolverError when CP-SAT fails,
    or the check of schedules refutes its plan.
    """
    if order not in get_args(Order):
        raise InputError(
            "unknown order", field="order", value=order, expected=" or ".join(get_args(Order))
        )
    began = time.perf_counter()
    model = _WindowModel(window, order)
    solver = new_solver(seconds=seconds, seed=seed, threads=threads)
    answer = run_solver(solver, model.model, seconds=seconds)
    servers, starts = model.plan(answer)
    bound = model.bound(answer)
    flow = window.assign(servers) if order == "fcfs" else window.schedule(servers, starts)
    value, slack = float(flow.mean()), 0.5 / window.ticks_per_ms / window.size
    if value < bound - slack:
        raise SolverError(f"CP-SAT proved {bound} ms, but the check finds {value} ms for its plan")
    if order == "any" and answer.objective is not None:
        claimed = model.in_ms(answer.objective)
        if not math.isclose(claimed, value, rel_tol=1e-9):
            raise SolverError(f"CP-SAT claims {claimed} ms, the check finds {value} ms")
    proven, wall_s = value <= bound + slack, time.perf_counter() - began
    return Optimum(flow, servers, bound, proven, answer.verdict.value, wall_s)


class _WindowModel:
    """The model and the way back from its values."""

    def __init__(self, window: Window, order: Order) -> None:
        from ortools.sat.python import cp_model

        self.window = window
        self.model = model = cp_model.CpModel()
        servers, starts, total = incumbent(window)
        self.fallback = servers, starts
        latest = latest_starts(window, total)
        self.options = options(window, latest)
        self.start = [
            model.new_int_var(int(window.release[r]) + window.delay, int(latest[r]), f"S{r}")
            for r in range(window.size)
        ]
        self.chosen: list[list[cp_model.IntVar]] = []
        on_server: dict[int, list[cp_model.IntervalVar]] = {}
        self.here: dict[tuple[int, int], list[cp_model.IntVar]] = {}
        for read, choices in enumerate(self.options):
            self.chosen.append([self._option(o, on_server) for o in choices])
            model.add_exactly_one(self.chosen[read])
        for server, begin, end in window.fixed.tolist():
            on_server.setdefault(server, []).append(
                model.new_fixed_size_interval_var(begin, end - begin, f"fixed{server}_{begin}")
            )
        slots = window.path.cluster.slots
        for intervals in on_server.values():
            if slots == 1:
                model.add_no_overlap(intervals)
            else:
                model.add_cumulative(intervals, [1] * len(intervals), slots)
        if order == "fcfs":
            self._first_come()
        model.minimize(sum(self._flow(read) for read in range(window.size)))
        self._hint(servers, starts)

    def _option(
        self, option: Option, on_server: dict[int, list[cp_model.IntervalVar]]
    ) -> cp_model.IntVar:
        model, start = self.model, self.start[option.read]
        x = model.new_bool_var(f"x{option.read}_{option.server}_{option.earliest}")
        model.add(start >= option.earliest).only_enforce_if(x)
        model.add(start <= option.latest).only_enforce_if(x)
        interval = model.new_optional_fixed_size_interval_var(start, option.duration, x, "")
        on_server.setdefault(option.server, []).append(interval)
        self.here.setdefault((option.read, option.server), []).append(x)
        return x

    def _first_come(self) -> None:
        model, window = self.model, self.window
        sent = {int(s): int(b) for s, b, _ in window.fixed.tolist()}  # the last start per server
        present: dict[int, list[tuple[int, cp_model.IntVar]]] = {}
        for (read, server), literals in self.here.items():
            here = literals[0]
            if len(literals) > 1:
                here = model.new_bool_var(f"z{read}_{server}")
                model.add(sum(literals) == here)
            if server in sent:
                model.add(self.start[read] >= sent[server]).only_enforce_if(here)
            present.setdefault(server, []).append((read, here))
        for reads in present.values():
            reads.sort(key=lambda pair: pair[0])
            for k, (one, z) in enumerate(reads):
                for other, y in reads[k + 1 :]:
                    model.add(self.start[one] <= self.start[other]).only_enforce_if([z, y])

    def _flow(self, read: int) -> cp_model.LinearExprT:
        durations = sum(
            o.duration * x for o, x in zip(self.options[read], self.chosen[read], strict=True)
        )
        return self.start[read] + durations + self.window.delay - int(self.window.release[read])

    def _hint(self, servers: np.ndarray, starts: np.ndarray) -> None:
        for read, choices in enumerate(self.options):
            self.model.add_hint(self.start[read], int(starts[read]))
            for option, x in zip(choices, self.chosen[read], strict=True):
                inside = option.earliest <= starts[read] <= option.latest
                self.model.add_hint(x, bool(option.server == servers[read] and inside))

    def in_ms(self, objective: float) -> float:
        """Turn a value of the objective into the mean in ms."""
        return objective / self.window.size / self.window.ticks_per_ms

    def bound(self, answer: CpSatResult) -> float:
        """Return the proven bound in ms; the trivial one when the solver gave none."""
        trivial = int(self.window.least.sum())
        if answer.verdict is Verdict.INFEASIBLE:
            raise SolverError("CP-SAT finds no schedule where there always is one")
        return self.in_ms(max(trivial, trivial if answer.bound is None else answer.bound))

    def plan(self, answer: CpSatResult) -> tuple[np.ndarray, np.ndarray]:
        """Return (servers, starts) of the best solution; the greedy one when there is none."""
        if answer.values is None:
            return self.fallback
        values = answer.values
        servers = [
            next(
                o.server for o, x in zip(choices, self.chosen[read], strict=True) if values[x.index]
            )
            for read, choices in enumerate(self.options)
        ]
        return np.array(servers), np.array([values[s.index] for s in self.start])

"""The fixed-threshold covering model: whether N replicas within given thresholds exist.

With x_j = 1 for a replica at j, B^f_i(T) = { j ≠ lost : E^f[i, j] <= T } and y_if = 1 for "client i
is within its threshold in scenario f",

    Σ_j x_j = N
    Σ_{j ∈ B^f_i(T_r)} x_j >= R · y_if          for every client i with reads, every scenario f
    Σ_i reads_i · y_if     >= needed reads      for every scenario f            (writes likewise)

is feasible iff some replica set obeys the thresholds under (R, W): y_if can be 1 iff at least R
surviving replicas are within T_r of i. x_f does not appear in scenario f, so nothing needs to be
conditioned on f holding a replica, and there is no big-M: R is the natural coefficient.

Where one site is lost at a time, clients need no copy for each scenario. A replica at f takes one
from every ball that holds f, so with y_i and z_i for "at least R" and "at least R + 1 replicas
within T_r of i in normal operation"

    Σ_{i: f ∉ B_i} reads_i · y_i + Σ_{i: f ∈ B_i} reads_i · z_i >= needed reads     if x_f = 1

is scenario f: 2n binaries in place of n². Clients that are moved when f is lost
have a separate ball and y in that row, and as they notice the loss of f even if it holds no
replica, there is one more row, with all the other y_i, whatever x_f is.

Rows with the same ball and quorum share their y; rows of percentiles that become equal are merged.

The model is only described here; :mod:`formulations.quorumstore.covering_model` hands it to a
solver.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formulations.solvers.cpsat import run_solver
from formulations.solvers.highs import Guard, run_highs
from formulations.solvers.linear_program import Builder, LinearProgram
from formulations.solvers.statuses import StopReason, Verdict
from placement.quorumstore import LossScope, QuorumProblem, ThresholdLimits
from placement.support.checks import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Cover:
    """y = 1 needs at least `quorum` replicas among the sites of `ball`."""

    ball: tuple[int, ...]
    quorum: int


@dataclass(frozen=True, slots=True)
class CoverDemand:
    """Σ count · y over `terms` (index of a cover, count) is at least `needed`.

    With `lost` only for replica sets that hold this site.
    """

    terms: tuple[tuple[int, int], ...]
    needed: int
    lost: int | None = None


@dataclass(frozen=True, slots=True)
class CoveringModel:
    """A yes-no question about replica sets, free of any solver."""

    sites: int  #: number of candidate sites
    replicas: int  #: N
    #: `covers`, `demands`: the rows
    covers: tuple[Cover, ...]
    demands: tuple[CoverDemand, ...]
    caps: tuple[tuple[tuple[int, ...], int], ...]  #: (sites, at most so many replicas among them)

    def holds(self, replicas: tuple[int, ...]) -> bool:
        """Check a replica set in exact arithmetic."""
        chosen = set(replicas)
        if len(chosen) != self.replicas:
            return False
        if any(len(chosen.intersection(members)) > cap for members, cap in self.caps):
            return False
        within = [len(chosen.intersection(cover.ball)) >= cover.quorum for cover in self.covers]
        return all(
            sum(count for index, count in demand.terms if within[index]) >= demand.needed
            for demand in self.demands
            if demand.lost is None or demand.lost in chosen
        )


def covering_model(
    problem: QuorumProblem,
    replicas: int,
    read: int,
    write: int,
    limits: ThresholdLimits,
) -> CoveringModel:
    """Describe "some set of `replicas` sites obeys `limits` under (R, W)".

    O(n²) where single sites are lost, O(n²) per scenario otherwise; the losses are those of the
    problem where its rules ask for contingency.
    """
    rules = problem.rules
    rows = _CoverRows()
    contingency = rules.contingency and bool(problem.losses)
    single = contingency and rules.loss is LossScope.SITE and rules.failures == 1
    for quorum, requests, needed, normal, worst in (
        (read, problem.reads, problem.needed_reads, limits.normal_read, limits.worst_read),
        (write, problem.writes, problem.needed_writes, limits.normal_write, limits.worst_write),
    ):
        if not needed:
            continue
        counts = {int(i): int(requests[i]) for i in np.flatnonzero(requests)}
        balls = _balls(problem.rtt, counts, min(normal, worst))
        rows.add([(balls[i], quorum, count) for i, count in counts.items()], needed)
        if not single:
            for lost in problem.losses if contingency else ():
                balls = _balls(problem.rtt_after(lost), counts, worst)
                rows.add([(balls[i], quorum, count) for i, count in counts.items()], needed)
            continue
        # The loss of any one site f: a replica at f takes one from every ball that holds f, whose
        # clients need quorum + 1 of them. Where f holds none, only its own clients notice, and only
        # if they are moved.
        balls = _balls(problem.rtt, counts, worst)
        moved = {
            i: _balls(problem.rtt_after((i,)), [i], worst)[i]
            for i in counts
            if problem.redirects and (i,) in problem.losses
        }
        for (f,) in problem.losses:
            own = [(moved[f], quorum, counts[f])] if f in moved else []
            others = {i: count for i, count in counts.items() if not (own and i == f)}
            after = [(balls[i], quorum + (f in balls[i]), count) for i, count in others.items()]
            rows.add(own + after, needed, f)
            if own:
                stay = [(balls[i], quorum, count) for i, count in others.items()]
                rows.add(own + stay, needed)
    # Regional rules: replicas apart, or enough of them left after a region is lost.
    cap, caps = problem.region_cap(replicas, max(read, write)), []
    for label in range(int(problem.region_index.max()) + 1 if cap < replicas else 0):
        members = tuple(np.flatnonzero(problem.region_index == label).tolist())
        if len(members) > cap:
            caps.append((members, cap))
    covers, demands = tuple(rows.covers), tuple(rows.demands)
    return CoveringModel(len(problem.sites), replicas, covers, demands, tuple(caps))


_Wanted = tuple[tuple[int, ...], int, int]
"""Ball, quorum and requests of a client."""


@dataclass(slots=True)
class _CoverRows:
    """Covers and demands, each once."""

    covers: dict[Cover, int] = field(default_factory=dict)
    demands: dict[CoverDemand, None] = field(default_factory=dict)

    def add(self, wanted: Iterable[_Wanted], needed: int, lost: int | None = None) -> None:
        """Add "at least `needed` requests of these are in time"."""
        terms: dict[int, int] = {}
        for ball, quorum, count in wanted:
            if len(ball) < quorum:
                continue  # y = 0
            index = self.covers.setdefault(Cover(ball, quorum), len(self.covers))
            terms[index] = terms.get(index, 0) + count
        self.demands[CoverDemand(tuple(sorted(terms.items())), needed, lost)] = None


def _balls(rtt: FloatArray, clients: Iterable[int], limit: float) -> dict[int, tuple[int, ...]]:
    """Sites within `limit` of each client, by client."""
    inside = (rtt <= limit) & np.isfinite(rtt)
    return {i: tuple(np.flatnonzero(inside[i]).tolist()) for i in clients}


class CpSatCovering:
    """Answers covering questions with CP-SAT, in one thread."""

    method = "cp-sat bisection"

    def __init__(self) -> None:
        self.notes: list[str] = []

    def __call__(self, model: CoveringModel, seconds: float = math.inf) -> tuple[int, ...] | None:
        """Return a replica set that answers `model`, or None: there is none; TimeoutError."""
        from ortools.sat.python import cp_model

        cp = cp_model.CpModel()
        x = [cp.new_bool_var(f"x{site}") for site in range(model.sites)]
        y = [cp.new_bool_var(f"y{index}") for index in range(len(model.covers))]
        cp.add(sum(x) == model.replicas)
        for members, cap in model.caps:
            cp.add(sum(x[site] for site in members) <= cap)
        for cover, within in zip(model.covers, y, strict=True):
            inside = sum(x[site] for site in cover.ball)
            cp.add(inside >= cover.quorum).only_enforce_if(within)
        for demand in model.demands:
            met = cp.add(sum(count * y[index] for index, count in demand.terms) >= demand.needed)
            if demand.lost is not None:
                met.only_enforce_if(x[demand.lost])
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.catch_sigint_signal = False  # Ctrl-C belongs to the caller's thread
        if math.isfinite(seconds):
            solver.parameters.max_time_in_seconds = max(0.0, seconds)
        answer = run_solver(solver, cp, seconds=seconds if math.isfinite(seconds) else None)
        if answer.interrupted:
            raise KeyboardInterrupt
        if answer.verdict is Verdict.INFEASIBLE:
            return None
        if answer.values is None:
            raise TimeoutError("CP-SAT ran out of time")
        return tuple(site for site in range(len(x)) if answer.values[site])


def build(model: CoveringModel) -> LinearProgram:
    """Return the integer program of a question: binary x for sites, then y for covers.

    Nothing is minimised.
    """
    builder = Builder()
    x = builder.add_columns(np.zeros(model.sites), integer=True)
    y = builder.add_columns(np.zeros(len(model.covers)), integer=True)

    def row(least: float, most: float, *terms: tuple[IntArray, npt.ArrayLike]) -> None:
        (place,) = builder.add_rows(least, most, 1)
        for columns, values in terms:
            builder.put(np.full(len(columns), place), columns, values)

    row(model.replicas, model.replicas, (x, 1.0))
    for members, cap in model.caps:
        row(-np.inf, cap, (x[list(members)], 1.0))
    for index, cover in enumerate(model.covers):
        row(0.0, np.inf, (x[list(cover.ball)], 1.0), (y[[index]], -float(cover.quorum)))
    for demand in model.demands:
        # Dividing by the total keeps the rows of busy keys within the solver's tolerances. Half a
        # request less than needed: sums are whole, and rounding must not cut any off.
        total = sum(count for _, count in demand.terms) or 1
        needed = (demand.needed - 0.5) / total
        terms = [(y[[index]], count / total) for index, count in demand.terms]
        if demand.lost is None:
            row(needed, np.inf, *terms)
        else:
            row(0.0, np.inf, *terms, (x[[demand.lost]], -needed))
    return builder.program()


class HighsCovering:
    """Answers covering questions with HiGHS; it confirms "there is none" without presolve."""

    method = "milp bisection"

    def __init__(self) -> None:
        self.notes: list[str] = []

    def __call__(self, model: CoveringModel, seconds: float = math.inf) -> tuple[int, ...] | None:
        """Return a replica set that answers `model`, or None: there is none; TimeoutError."""
        start = time.perf_counter()
        program = build(model)
        for presolve in (True, False):
            left = seconds - (time.perf_counter() - start)
            found = self._ask(program, model, presolve, left)
            if found is not None:
                if not presolve:
                    self.notes.append("HiGHS with presolve called a feasible model infeasible")
                if model.holds(found):
                    return found
                self.notes.append("a point of HiGHS failed the exact check; CP-SAT decided")
                return CpSatCovering()(model, left)
        return None

    def _ask(
        self, program: LinearProgram, model: CoveringModel, presolve: bool, seconds: float
    ) -> tuple[int, ...] | None:
        """Return the sites of a point, or None: infeasible, by the word of this one run."""
        if seconds <= 0:
            raise TimeoutError("no time left for HiGHS")
        result = run_highs(program, Guard(time.perf_counter() + seconds), presolve=presolve)
        if result.stop is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        if result.verdict is Verdict.INFEASIBLE:
            return None
        if result.verdict is Verdict.STOPPED or result.values is None:
            raise TimeoutError("HiGHS ran out of time")
        return tuple(np.flatnonzero(result.values[: model.sites] > 0.5).tolist())

"""Single MILPs of the whole question: documented cross-checks, not for production.

Each states in one model what bisection asks in about ten. Their relaxations are weak: on a 27-site
key with optimum 212 ms the assignment form bounds it by 9 ms, the radius form by 104 ms. They serve
as statements of the problem and as independent references on small instances.

- :func:`assignment_model`: R and W are decisions; answers are assigned to replicas. Products such
  as "client satisfied and pair k chosen" are exact because the pairs are one-hot, so there is no
  big-M: an unsatisfied client simply has no assigned answers.
- :func:`radius_model`: (R, W) fixed; the threshold is written in unary over its possible values,
  after Elloumi, Labbé, Pochet, "A New Formulation and Resolution Method for the p-Center Problem",
  INFORMS Journal on Computing 16(1), 2004.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from formulations.quorumstore import tuning
from formulations.quorumstore.covering.milp import run_model
from formulations.quorumstore.covering.model import covering_model, scenario_rtt
from formulations.quorumstore.covering.threshold_bisection import threshold_values
from placement.errors import LimitError, UnsupportedError
from placement.quorumstore import (
    Goal,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    ThresholdLimits,
    structural_reasons,
)
from placement.support.status import SearchEnd, Termination, end_early

__all__ = ["assignment_model", "radius_model", "solve_assignment", "solve_radius"]


def _checked(problem: QuorumProblem) -> None:
    if problem.goal != Goal():
        raise UnsupportedError("the one-shot models minimise the plain threshold; use enumeration")


def _scenarios(problem: QuorumProblem) -> tuple[tuple[int, ...], ...]:
    return ((), *(problem.losses if problem.rules.contingency else ()))


def assignment_model(problem: QuorumProblem) -> Any:
    """Return the assignment MILP over all (R, W), as a Pyomo model.

    Per scenario f, side (reads; writes likewise), client i with requests, surviving replica site j,
    and one-hot pair k = (N_k, R_k, W_k)::

        min T
        Σ_k rho_k = 1,   Σ_j x_j = Σ_k N_k rho_k
        v_ik <= rho_k                                   client i within T, and pair k chosen
        Σ_j u_ij >= Σ_k R_k v_ik                        a quorum answers
        u_ij <= x_j,   u_ij <= Σ_k v_ik                 only replicas answer
        T >= E^f_ij u_ij                                in time
        Σ_i reads_i Σ_k v_ik >= needed reads            percentile

    Binary: x, rho, u. O(scenarios · n²) columns and rows.

    Raises
    ------
    LimitError
        Beyond 60,000 binaries: the model is a cross-check for small instances.
    """
    import pyomo.environ as pyo

    _checked(problem)
    count, pairs = len(problem.sites), problem.pairs
    scenarios = _scenarios(problem)
    size = 2 * len(scenarios) * count * count
    if size > tuning.ONE_SHOT_COLUMNS:
        raise LimitError(
            f"the assignment model would have about {size:,} binaries, above "
            f"{tuning.ONE_SHOT_COLUMNS:,}; use enumeration or bisection"
        )
    mip = pyo.ConcreteModel(name="assignment")
    mip.T = pyo.Var(domain=pyo.NonNegativeReals)
    mip.x = pyo.Var(range(count), domain=pyo.Binary)
    mip.rho = pyo.Var(range(len(pairs)), domain=pyo.Binary)
    mip.one_pair = pyo.Constraint(expr=pyo.quicksum(mip.rho.values()) == 1)
    mip.cardinality = pyo.Constraint(
        expr=pyo.quicksum(mip.x.values()) == pyo.quicksum(pairs[k][0] * mip.rho[k] for k in mip.rho)
    )
    keys = [
        (f, side, i)
        for f in range(len(scenarios))
        for side, counts, needed in (
            (1, problem.reads, problem.needed_reads),
            (2, problem.writes, problem.needed_writes),
        )
        if needed
        for i in np.flatnonzero(counts).tolist()
    ]
    mip.v = pyo.Var(keys, range(len(pairs)), bounds=(0, 1))
    mip.u = pyo.Var(keys, range(count), domain=pyo.Binary)
    mip.rows = pyo.ConstraintList()
    for f, lost in enumerate(scenarios):
        matrix = scenario_rtt(problem, lost)
        for side, counts, needed in (
            (1, problem.reads, problem.needed_reads),
            (2, problem.writes, problem.needed_writes),
        ):
            if not needed:
                continue
            clients = np.flatnonzero(counts).tolist()
            for i in clients:
                key = (f, side, i)
                satisfied = pyo.quicksum(mip.v[key, k] for k in mip.rho)
                for k in mip.rho:
                    mip.rows.add(mip.v[key, k] <= mip.rho[k])
                mip.rows.add(
                    pyo.quicksum(mip.u[key, j] for j in range(count))
                    >= pyo.quicksum(pairs[k][side] * mip.v[key, k] for k in mip.rho)
                )
                for j in range(count):
                    if not math.isfinite(matrix[i, j]):
                        mip.u[key, j].fix(0)
                        continue
                    mip.rows.add(mip.u[key, j] <= mip.x[j])
                    mip.rows.add(mip.u[key, j] <= satisfied)
                    mip.rows.add(float(matrix[i, j]) * mip.u[key, j] <= mip.T)
            total = int(counts.sum())
            mip.rows.add(
                pyo.quicksum(
                    int(counts[i]) / total * mip.v[(f, side, i), k]
                    for i in clients
                    for k in mip.rho
                )
                >= needed / total
            )
    _add_caps(mip, problem)
    mip.objective = pyo.Objective(expr=mip.T)
    return mip


def radius_model(problem: QuorumProblem, replicas: int, read: int, write: int) -> Any:
    """Return the radius MILP for one (N, R, W), as a Pyomo model.

    tau_1 < … < tau_K are the possible thresholds and s_k = 1 iff T >= tau_k::

        min tau_1 + Σ_{k >= 2} (tau_k − tau_{k−1}) s_k,     s_{k−1} >= s_k
        Σ_{j: E^f_ij < tau_k} x_j + R s_k >= R y_if         for every scenario f, client i, step k
        Σ_i reads_i y_if >= needed reads                    (writes likewise, with W)

    that is, if T < tau_k a satisfied client has R replicas strictly closer than tau_k. One row per
    distinct value of a client's row suffices. The last row of each client says that R of its
    surviving sites hold a replica at all.
    """
    import pyomo.environ as pyo

    _checked(problem)
    count = len(problem.sites)
    values = threshold_values(problem)
    step = {float(value): k for k, value in enumerate(values)}
    mip = pyo.ConcreteModel(name="radius")
    mip.x = pyo.Var(range(count), domain=pyo.Binary)
    mip.s = pyo.Var(range(1, len(values)), domain=pyo.Binary)
    mip.cardinality = pyo.Constraint(expr=pyo.quicksum(mip.x.values()) == replicas)
    mip.rows = pyo.ConstraintList()
    for k in range(2, len(values)):
        mip.rows.add(mip.s[k - 1] >= mip.s[k])
    keys = []
    mip.y = pyo.Var(pyo.Any, dense=False, domain=pyo.Binary)
    for f, lost in enumerate(_scenarios(problem)):
        matrix = scenario_rtt(problem, lost)
        for side, quorum, counts, needed in (
            (1, read, problem.reads, problem.needed_reads),
            (2, write, problem.writes, problem.needed_writes),
        ):
            if not needed:
                continue
            terms = []
            for i in np.flatnonzero(counts).tolist():
                key = (f, side, i)
                keys.append(key)
                satisfied = mip.y[key]
                terms.append(int(counts[i]) * satisfied)
                finite = np.isfinite(matrix[i])
                for value in np.unique(matrix[i][finite]).tolist():
                    k = step[value]
                    closer = np.flatnonzero(matrix[i] < value).tolist()
                    # T >= tau_0 = 0 always holds: s_0 = 1 needs no variable.
                    if k:
                        mip.rows.add(
                            pyo.quicksum(mip.x[j] for j in closer) + quorum * mip.s[k]
                            >= quorum * satisfied
                        )
                mip.rows.add(
                    pyo.quicksum(mip.x[j] for j in np.flatnonzero(finite).tolist())
                    >= quorum * satisfied
                )
            mip.rows.add(pyo.quicksum(terms) / int(counts.sum()) >= needed / int(counts.sum()))
    _add_caps(mip, problem, (replicas, read, write))
    mip.objective = pyo.Objective(
        expr=float(values[0])
        + pyo.quicksum(float(values[k] - values[k - 1]) * mip.s[k] for k in mip.s)
    )
    return mip


def _add_caps(mip: Any, problem: QuorumProblem, pair: tuple[int, int, int] | None = None) -> None:
    """Add the regional rules: for one pair, or for the one the model chooses."""
    import pyomo.environ as pyo

    mip.caps = pyo.ConstraintList()
    pairs = problem.pairs if pair is None else (pair,)
    caps: dict[tuple[int, ...], dict[int, int]] = {}
    for k, (total, read, write) in enumerate(pairs):
        for members, cap in covering_model(problem, total, read, write, ThresholdLimits()).caps:
            caps.setdefault(members, {})[k] = cap
    for members, by_pair in caps.items():
        limit: Any = by_pair.get(0, len(members))
        if pair is None:
            limit = pyo.quicksum(
                by_pair.get(k, len(members)) * mip.rho[k] for k in range(len(pairs))
            )
        mip.caps.add(pyo.quicksum(mip.x[j] for j in members) <= limit)


def _optimise(mip: Any, deadline: float) -> tuple[float, tuple[int, ...] | None]:
    """Solve with HiGHS: (lower bound, sites); (∞, None) when infeasible, with presolve and without.

    Raises
    ------
    TimeoutError
        When HiGHS proves nothing before `deadline`, a time.perf_counter().
    """
    for presolve in (True, False):
        bound = run_model(mip, deadline - time.perf_counter(), presolve=presolve)
        if bound is not None:
            return bound, tuple(j for j in mip.x if mip.x[j].value > 0.5)
    return math.inf, None


def solve_assignment(problem: QuorumProblem, *, time_limit: float = math.inf) -> QuorumPlan:
    """Solve :func:`assignment_model` with HiGHS; nothing is found or proven before its end.

    Raises
    ------
    UnsupportedError, LimitError, SolverError
        For other goals, for large instances, and when HiGHS fails.
    """
    start, end = time.perf_counter(), SearchEnd()
    method = "one-shot assignment milp"
    reasons = structural_reasons(problem)
    if reasons:
        return QuorumPlan.of(problem, None, method=method, bound=math.inf, reasons=reasons)
    found, bound = None, -math.inf
    mip = assignment_model(problem)
    with end_early(end):
        bound, sites = _optimise(mip, start + time_limit)
        if sites is not None:
            pair = problem.pairs[max(mip.rho, key=lambda k: float(mip.rho[k].value))]
            found = QuorumConfiguration(sites, pair[1], pair[2])
    return _plan(problem, found, bound, method, start, end)


def solve_radius(problem: QuorumProblem, *, time_limit: float = math.inf) -> QuorumPlan:
    """Solve :func:`radius_model` with HiGHS for every (N, R, W) and keep the best.

    Nothing is proven before the last of them is solved.

    Raises
    ------
    UnsupportedError, SolverError
        For other goals, and when HiGHS fails.
    """
    start, end = time.perf_counter(), SearchEnd()
    method = "one-shot radius milp"
    reasons = structural_reasons(problem)
    if reasons:
        return QuorumPlan.of(problem, None, method=method, bound=math.inf, reasons=reasons)
    least, found = math.inf, None
    with end_early(end):
        for total, read, write in problem.pairs:
            mip = radius_model(problem, total, read, write)
            bound, sites = _optimise(mip, start + time_limit)
            if sites is not None and bound < least:
                least, found = bound, QuorumConfiguration(sites, read, write)
    proven = least if end.termination is Termination.FINISHED else -math.inf
    return _plan(problem, found, proven, method, start, end)


def _plan(
    problem: QuorumProblem,
    found: QuorumConfiguration | None,
    bound: float,
    method: str,
    start: float,
    end: SearchEnd,
) -> QuorumPlan:
    """Round the bound up to the next possible threshold: the optimum is one of them ("P1")."""
    if found is not None:
        values = threshold_values(problem)
        place = int(np.searchsorted(values, bound - 1e-6 * max(1.0, abs(bound))))
        bound = float(values[min(place, len(values) - 1)])
    return QuorumPlan.of(
        problem,
        found,
        method=method,
        bound=bound,
        termination=end.termination,
        seconds=time.perf_counter() - start,
    )

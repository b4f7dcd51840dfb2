"""Lease placement with read strategies (Q4b): one compact program per range, leases binary.

Sets: ranges r, gateways i, nodes v, l. Variables: λ_rv, binary, v holds the lease of r; a_riv, i
reads r at its leaseholder v alone; s_ril and y_rilv
of :mod:`formulations.online.reads.compact_program`, for every node that could be in a quorum; t.

    Σ_v λ_rv = 1                  a_riv <= λ_rv              Σ_v a_riv + Σ_l s_ril = 1
    Σ_{v before l} y_rilv = (m − [i before l])·s_ril          0 <= y_rilv <= s_ril
    s_riv + Σ_l y_rilv <= 1 − λ_rv                           the leaseholder is in no quorum
    load_v = Σ_r [ Σ_i g_ri (a_riv + s_riv + Σ_l y_rilv)
                   + w_r (c_L·λ_rv + c_F·(1 − λ_rv)) ]/capacity_v  <=  t  <=  load_limit
    mean latency = Σ_r [ Σ_i g_ri (Σ_v a_riv rtt_iv + Σ_l s_ril rtt_il)
                         + Σ_v λ_rv·(waits of the writes of r under v) ]/operations
    min load_weight·t + latency_weight·mean latency

a_riv <= λ_rv is the linearisation of the product λ·(share read at the leaseholder), exact because
Σ_v λ_rv = 1. For fixed λ the y of one (r, i, l) lie in a face of a hypersimplex, so that strategies
come out as mixtures. HiGHS finds leases,
:func:`formulations.solvers.safe_bounds.prove_by_branching` closes the tree.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formulations.online.reads.split_quorums import NOTHING, Part, spread
from formulations.solvers.highs import Guard, run_highs
from formulations.solvers.linear_program import LinearProgram, compile_program
from formulations.solvers.safe_bounds import prove_by_branching
from placement.errors import UnsupportedError
from placement.online.reads import Quorum, ReadGoal, ReadStrategy
from placement.online.reads.lease_problem import LeasePlan, LeaseProblem, evaluate_leases
from placement.support.checks import FloatArray
from placement.support.status import OPTIMALITY_TOLERANCE

__all__ = ["solve_leases"]

Found = tuple[tuple[int, ...], tuple[ReadStrategy | None, ...]]


def solve_leases(
    problem: LeaseProblem, goal: ReadGoal, *, time_limit: float = math.inf
) -> LeasePlan:
    """Return the best leases and strategies, proven, or infeasible.

    Parameters
    ----------
    problem
        Ranges and machines.
    goal
        Without a queueing term.
    time_limit
        Seconds; at the limit the best so far comes with its bound.
    """
    if goal.queue_weight:
        raise UnsupportedError("lease placement is linear; use a load limit in place of the queue")
    deadline = time.perf_counter() + time_limit
    model = _LeaseModel(problem, goal)
    program = compile_program(model.mip)
    best: Found | None = None
    value = math.inf

    def offer(values: FloatArray) -> None:
        nonlocal best, value
        found = model.read(program, values)
        figures = evaluate_leases(problem, *found)
        if not figures.broken(goal) and figures.objective(goal) < value:
            best, value = found, figures.objective(goal)

    outcome = run_highs(program, Guard(deadline))
    if outcome.values is not None:
        offer(outcome.values)
    while True:
        before = value
        target = value * (1 - OPTIMALITY_TOLERANCE / 2) if best else _above(program)

        def judge(values: FloatArray) -> bool:
            # Leases are fixed here and the rest is a linear program, so the bound of the node is
            # as good as the proof gets; its strategy may still be better than the incumbent.
            offer(values)
            return False

        proof = prove_by_branching(program, target, judge, deadline=deadline)
        late = proof.interrupted or time.perf_counter() >= deadline
        if value >= before or late:
            break
    if best is None:
        empty = proof.open == 0 and not late
        return LeasePlan.of(problem, goal, (), (), math.inf if empty else proof.bound)
    return LeasePlan.of(problem, goal, *best, bound=min(proof.bound, value))


def _above(program: LinearProgram) -> float:
    """More than any objective within the columns' bounds."""
    ends = np.maximum(program.cost * program.lower, program.cost * program.upper)
    return 1.0 + program.offset + float(ends.sum())


@dataclass(eq=False)
class _LeaseModel:
    """The Pyomo model, and how to read its values."""

    problem: LeaseProblem
    goal: ReadGoal
    mip: Any = field(init=False)
    visits: list[list[tuple[float, Any]]] = field(init=False)
    waits: list[tuple[float, Any]] = field(init=False)
    alone: dict[tuple[int, int, int], Any] = field(init=False)
    parts: dict[tuple[int, int], list[tuple[Any, tuple[int, ...], dict[int, Any], int]]] = field(
        init=False
    )

    def __post_init__(self) -> None:
        import pyomo.environ as pyo

        problem = self.problem
        self.mip = mip = pyo.ConcreteModel(name="leases")
        self.visits = [[] for _ in range(problem.nodes)]
        self.waits, self.alone, self.parts = [], {}, {}
        nodes, ranges = range(problem.nodes), range(problem.ranges)
        mip.lease = pyo.Var(ranges, nodes, domain=pyo.Binary, doc="v holds the lease of r")
        mip.share = pyo.VarList(domain=pyo.NonNegativeReals)
        mip.rows = pyo.ConstraintList()
        for r in ranges:
            mip.rows.add(pyo.quicksum(mip.lease[r, v] for v in nodes) == 1)
            for v in nodes:
                self.waits.append((problem.write_waits(v, r), mip.lease[r, v]))
                for u, load in enumerate(problem.write_load(v, r)):
                    self.visits[u].append((float(load), mip.lease[r, v]))
            for i in nodes:
                if problem.reads[r, i] > 0:
                    self._reads(r, i)
        self._goal()

    def _new(self) -> Any:
        var = self.mip.share.add()
        var.setub(1.0)
        return var

    def _reads(self, r: int, i: int) -> None:
        import pyomo.environ as pyo

        problem, mip = self.problem, self.mip
        n, m = problem.nodes, problem.nodes // 2
        rate = float(problem.reads[r, i])
        total, inside = [], [[] for _ in range(n)]  # type: tuple[list[Any], list[list[Any]]]
        for v in range(n):
            alone = self.alone[r, i, v] = self._new()
            mip.rows.add(alone <= mip.lease[r, v])
            total.append(alone)
            self.waits.append((rate * float(problem.rtt[i, v]), alone))
            self.visits[v].append((rate / float(problem.capacities[v]), alone))
        order = sorted(range(n), key=lambda v: (problem.rtt[i, v], v))
        self.parts[r, i] = []
        for place, last in enumerate(order):
            own = order.index(i)
            free = m - int(own < place)
            before = [v for v in order[:place] if v != i]
            if own > place or not 0 <= free <= len(before):
                continue
            whole = self._new()
            side = {v: self._new() for v in before} if free else {}
            if side:
                mip.rows.add(pyo.quicksum(side.values()) == free * whole)
            for var in side.values():
                mip.rows.add(var <= whole)
            forced = (last,) if own == place else (last, i)
            self.parts[r, i].append((whole, forced, side, free))
            total.append(whole)
            self.waits.append((rate * float(problem.rtt[i, last]), whole))
            for v in forced:
                inside[v].append(whole)
            for v, var in side.items():
                inside[v].append(var)
        mip.rows.add(pyo.quicksum(total) == 1)
        for v in range(n):
            if inside[v]:
                mip.rows.add(pyo.quicksum(inside[v]) <= 1 - mip.lease[r, v])
            for var in inside[v]:
                self.visits[v].append((rate / float(problem.capacities[v]), var))

    def _goal(self) -> None:
        import pyomo.environ as pyo

        problem, goal, mip = self.problem, self.goal, self.mip
        top = sum(a * (var.ub or 0.0) for row in self.visits for a, var in row)
        mip.t = pyo.Var(bounds=(0.0, min(goal.load_limit, max(top, 1e-9))))
        for row in self.visits:
            terms = [a * var for a, var in row if a]
            if terms:
                mip.rows.add(pyo.quicksum(terms) <= mip.t)
        latency = pyo.quicksum(a / problem.operations * var for a, var in self.waits if a)
        if math.isfinite(goal.latency_budget) and any(a for a, _ in self.waits):
            mip.rows.add(latency <= goal.latency_budget)
        mip.value = pyo.Objective(expr=goal.load_weight * mip.t + goal.latency_weight * latency)

    def read(self, program: LinearProgram, values: FloatArray) -> Found:
        """Leases and strategies from the values of all columns."""
        problem = self.problem
        column = {id(var): j for j, var in enumerate(program.columns)}
        leases, strategies = [], []  # type: tuple[list[int], list[ReadStrategy | None]]
        for r in range(problem.ranges):
            weights = [values[column[id(self.mip.lease[r, v])]] for v in range(problem.nodes)]
            leader = int(np.argmax(weights))
            leases.append(leader)
            reads = problem.read_problem(r, leader)
            if reads is None:
                strategies.append(None)
                continue
            mixtures: list[dict[Quorum, float]] = []
            for i in range(problem.nodes):
                mixture = self._mixture(r, i, leader, values, column)
                total = sum(mixture.values())
                # A gateway without reads of this range may do anything: it goes to L.
                mixtures.append(
                    {quorum: p / total for quorum, p in mixture.items()}
                    if total > NOTHING
                    else {(leader,): 1.0}
                )
            strategies.append(ReadStrategy.of(reads, mixtures))
        return tuple(leases), tuple(strategies)

    def _mixture(
        self, r: int, i: int, leader: int, values: FloatArray, column: dict[int, int]
    ) -> dict[Quorum, float]:
        mixture: dict[Quorum, float] = {}
        if (r, i, leader) in self.alone:
            alone = float(values[column[id(self.alone[r, i, leader])]])
            if alone > NOTHING:
                mixture[leader,] = alone
        for whole, forced, side, free in self.parts.get((r, i), []):
            places = {v: column[id(var)] for v, var in side.items()}
            part = Part(column[id(whole)], forced, ((places, free),))
            for quorum, p in spread(part, values, without=leader).items():
                mixture[quorum] = mixture.get(quorum, 0.0) + p
        return mixture

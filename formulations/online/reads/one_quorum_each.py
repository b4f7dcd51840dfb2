"""Single quorum per gateway (Q4a): the paper's "more intelligent" majority as a MILP.

Sets: gateways i, sets A that i may ask, nodes v, scenarios k. Variables: u_iA, binary, i asks A;
t_k, load of the busiest node.

    Σ_A u_iA = 1                                                    for every gateway
    t_k >= base_kv + volume_k/capacity_v·Σ_i g_i Σ_{A ∋ v} u_iA
    t_k <= load_limit,      Σ_i g_i/Σ g·Σ_A wait_i(A)·u_iA <= latency_budget
    min load_weight·Σ_k w_k t_k + latency_weight·mean latency

The relaxation is the optimal mixture of :mod:`formulations.online.reads.mixed_strategies`, the best
that a model which couples gateways through loads alone can have. A model with one binary per
gateway and node and one per gateway and last node is smaller (n² against C(n, m)·n) but relaxes a
gateway's choice itself: at seven nodes 24,000 nodes of its tree left a gap of 18 % where this one
takes few.

With `spare` = f a read completes when any f of the nodes it asks are down; the leaseholder alone
does not, so give a problem without one (leader=None) to ask for that everywhere.

HiGHS looks for a strategy; :func:`formulations.solvers.safe_bounds.prove_by_branching` closes the
tree on safe bounds, and the evaluator scores the remaining strategies. So neither rests on
tolerances.
"""

from __future__ import annotations

import math
import time
from typing import Any

from formulations.solvers.highs import Guard, run_highs
from formulations.solvers.linear_program import LinearProgram, compile_program
from formulations.solvers.safe_bounds import prove_by_branching
from formulations.solvers.statuses import Verdict
from placement.errors import LimitError, SolverError, UnsupportedError
from placement.online.reads import Quorum, ReadGoal, ReadPlan, ReadProblem, ReadStrategy, evaluate
from placement.support.checks import FloatArray
from placement.support.status import OPTIMALITY_TOLERANCE

__all__ = ["build", "solve_deterministic"]

_MOST_BINARIES = 20_000


def solve_deterministic(
    problem: ReadProblem, goal: ReadGoal, *, time_limit: float = math.inf
) -> ReadPlan:
    """Return the best strategy that asks one fixed set per gateway.

    Parameters
    ----------
    problem
        With at most 20,000 gateways and sets.
    goal
        Without a queueing term.
    time_limit
        Seconds; at the limit the best strategy so far comes with its bound.

    Raises
    ------
    LimitError
        Beyond that.
    UnsupportedError
        For a goal with a queueing term.
    """
    count = sum(problem.quorums.count(gateway) + 1 for gateway in range(problem.nodes))
    if count > _MOST_BINARIES:
        raise LimitError(
            f"{count:,} gateways and quorums, the limit of the deterministic program is "
            f"{_MOST_BINARIES:,}; solve_compact mixes quorums instead"
        )
    if goal.queue_weight:
        raise UnsupportedError(
            "the deterministic program is linear; solve_compact takes a queueing term"
        )
    deadline = time.perf_counter() + time_limit
    model = build(problem, goal)
    program = compile_program(model)
    outcome = run_highs(program, Guard(deadline))
    best: ReadStrategy | None = None
    value = math.inf
    if outcome.values is not None:
        offered = _strategy(problem, program, outcome.values)
        figures = evaluate(problem, offered)
        if not figures.broken(goal):
            best, value = offered, figures.objective(goal)
            _agree(value, outcome.objective, outcome.verdict is Verdict.OPTIMAL)
    found: list[tuple[float, ReadStrategy]] = []
    nodes = 0
    while True:
        # Without a strategy: above everything that the program can reach, to prove it empty.
        target = value * (1 - OPTIMALITY_TOLERANCE / 2) if best else 1.0 + _most(program)

        def judge(values: FloatArray, target: float = target) -> bool:
            strategy = _strategy(problem, program, values)
            figures = evaluate(problem, strategy)
            if figures.broken(goal) or figures.objective(goal) >= target:
                return True
            found.append((figures.objective(goal), strategy))
            return False

        proof = prove_by_branching(program, target, judge, deadline=deadline)
        nodes += proof.nodes
        if not found:
            break
        value, best = min(found, key=lambda pair: pair[0])
        found.clear()
    closed = proof.open == 0 and not proof.interrupted
    bound = math.inf if best is None and closed else min(proof.bound, value)
    return ReadPlan.of(
        problem, goal, best, method="deterministic", bound=bound, notes=[f"{nodes} nodes proven"]
    )


def build(problem: ReadProblem, goal: ReadGoal) -> Any:
    """Return the Pyomo model; the mathematics stand in the module."""
    import pyomo.environ as pyo

    nodes = range(problem.nodes)
    pairs = [(i, quorum) for i in nodes for quorum in problem.choices(i)]
    mip = pyo.ConcreteModel(name="deterministic reads")
    mip.u = pyo.Var(range(len(pairs)), domain=pyo.Binary, doc="gateway asks set")
    mip.choice = pyo.ConstraintList(doc="one set per gateway")
    for i in nodes:
        mine = [j for j, (gateway, _) in enumerate(pairs) if gateway == i]
        mip.choice.add(pyo.quicksum(mip.u[j] for j in mine) == 1)
    latency = pyo.quicksum(
        float(problem.shares[i]) * problem.latency(i, quorum) * mip.u[j]
        for j, (i, quorum) in enumerate(pairs)
    )
    scenarios = range(len(problem.volumes))
    mip.loads = pyo.ConstraintList(doc="the busiest node")
    mip.t = pyo.Var(scenarios, doc="its load")
    for k in scenarios:
        ceiling = 0.0
        for v in nodes:
            factor = float(problem.volumes[k] / problem.capacities[v])
            load = pyo.quicksum(
                factor * float(problem.reads[i]) * mip.u[j]
                for j, (i, quorum) in enumerate(pairs)
                if v in quorum
            )
            mip.loads.add(mip.t[k] >= load + float(problem.base_load[k, v]))
            most = float(problem.base_load[k, v]) + factor * float(problem.reads.sum())
            ceiling = max(ceiling, most)
        mip.t[k].setlb(0.0)
        mip.t[k].setub(min(goal.load_limit, ceiling))
    if math.isfinite(goal.latency_budget):
        mip.budget = pyo.Constraint(expr=latency <= goal.latency_budget)
    peak = pyo.quicksum(float(problem.scenario_weights[k]) * mip.t[k] for k in scenarios)
    mip.value = pyo.Objective(expr=goal.load_weight * peak + goal.latency_weight * latency)
    return mip


def _strategy(problem: ReadProblem, program: LinearProgram, values: FloatArray) -> ReadStrategy:
    """Read u."""
    pairs = [(i, quorum) for i in range(problem.nodes) for quorum in problem.choices(i)]
    mixtures: list[dict[Quorum, float]] = [{} for _ in range(problem.nodes)]
    for var, value in zip(program.columns, values, strict=True):
        if value > 0.5 and var.parent_component().local_name == "u":
            gateway, quorum = pairs[var.index()]
            mixtures[gateway][quorum] = 1.0
    return ReadStrategy.of(problem, mixtures)


def _most(program: LinearProgram) -> float:
    """Return an upper bound on the objective within the columns' bounds."""
    ends = (program.cost * program.lower, program.cost * program.upper)
    return program.offset + float(sum(max(a, b) for a, b in zip(*ends, strict=True)))


def _agree(value: float, objective: float, optimal: bool) -> None:
    """Raise when HiGHS called a strategy optimal at another value than the evaluator's."""
    if optimal and abs(value - objective) > 1e-5 * max(1.0, abs(value)):
        raise SolverError(f"HiGHS says {objective!r}, the evaluator {value!r}")

"""Several ranges on common machines: the leaseholder and the reads of each range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from placement.errors import InputError, SolverError
from placement.online.reads.problem import ReadGoal, ReadProblem, table_of
from placement.online.reads.quorum_mixture import ReadStrategy
from placement.online.reads.quorum_systems import ThresholdQuorums
from placement.online.reads.strategy_evaluator import ReadFigures, evaluate
from placement.support.checks import FloatArray, nonnegative, number
from placement.support.status import (
    OPTIMALITY_TOLERANCE,
    Status,
    least_bound,
    relative_gap,
    status_of,
)

__all__ = ["LeasePlan", "LeaseProblem", "evaluate_leases"]


@dataclass(frozen=True, eq=False)
class LeaseProblem:
    """Place the lease of every range, and choose its read strategy, for the sum of the loads.

    All n nodes hold all ranges. Given the leaseholder L of range r, reads are as in
    `ReadProblem` (majorities without L, the gateway in its own). A write from gateway i takes
    rtt[i, L] and then L's m-th smallest RTT to the others; it costs L `leader_cost` and every other
    node `follower_cost`, in reads. Latency is the mean over all reads and writes.

    Parameters
    ----------
    rtt
        Shape (n, n), ms, n >= 3.
    reads, writes
        Per unit of time, shape (ranges, n): range by gateway.
    leader_cost, follower_cost
        Of a write, in reads.
    capacity
        Reads per unit of time that a node can serve, shape (n,); default 1.

    Raises
    ------
    InputError
        Naming field, element, value and what was expected.
    """

    rtt: FloatArray
    reads: FloatArray
    writes: FloatArray
    _: KW_ONLY
    leader_cost: float = 1.0
    follower_cost: float = 1.0
    capacity: FloatArray | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        count = len(table_of(self.rtt, "rtt"))
        if count < 3:
            raise InputError("too few nodes", field="rtt", value=count, expected="at least 3 × 3")
        nodes = ("node", tuple(str(node) for node in range(count)))
        rows = len(table_of(self.reads, "reads"))
        ranges = ("range", tuple(str(row) for row in range(rows)))
        put(self, "rtt", nonnegative(self.rtt, "rtt", [nodes, nodes]))
        put(self, "reads", nonnegative(self.reads, "reads", [ranges, nodes]))
        put(self, "writes", nonnegative(self.writes, "writes", [ranges, nodes]))
        number(self.leader_cost, "leader_cost")
        number(self.follower_cost, "follower_cost")
        capacity = np.ones(count) if self.capacity is None else self.capacity
        put(self, "capacity", nonnegative(capacity, "capacity", [nodes]))
        if not (self.capacities > 0).all():
            raise InputError("a node can serve nothing", field="capacity", value=0.0,
                             expected="> 0")  # fmt: skip
        if not self.operations > 0:
            raise InputError(
                "no operations", field="reads", value=0.0, expected="a positive rate somewhere"
            )

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.rtt)

    @property
    def ranges(self) -> int:
        """Return the number of ranges."""
        return len(self.reads)

    @property
    def capacities(self) -> FloatArray:
        """Shape (n,)."""
        assert self.capacity is not None
        return self.capacity

    @property
    def operations(self) -> float:
        """Reads and writes per unit of time."""
        return float(self.reads.sum() + self.writes.sum())

    def commit(self, leader: int) -> float:
        """Return the time until L has m answers of the other nodes, ms."""
        others = sorted(float(self.rtt[leader, v]) for v in range(self.nodes) if v != leader)
        return others[self.nodes // 2 - 1]

    def write_waits(self, leader: int, r: int) -> float:
        """Σ over the writes of range r of their latency, ms per unit of time, under L."""
        waits = self.rtt[:, leader] + self.commit(leader)
        return float(self.writes[r] @ waits)

    def write_load(self, leader: int, r: int) -> FloatArray:
        """Utilisation that the writes of range r add under L, shape (n,)."""
        cost = np.full(self.nodes, self.follower_cost)
        cost[leader] = self.leader_cost
        load: FloatArray = float(self.writes[r].sum()) * cost / self.capacities
        return load

    def read_problem(self, r: int, leader: int) -> ReadProblem | None:
        """The reads of range r under L alone on the machines; None when it is never read."""
        if not self.reads[r].any():
            return None
        system = ThresholdQuorums(self.nodes, self.nodes // 2 + 1, without=leader)
        return ReadProblem(self.rtt, self.reads[r], leader, system=system, capacity=self.capacities)


def evaluate_leases(
    problem: LeaseProblem, leases: Sequence[int], strategies: Sequence[ReadStrategy | None]
) -> ReadFigures:
    """Figures of leases and strategies together, one scenario.

    Parameters
    ----------
    leases
        The leaseholder of each range.
    strategies
        Of each range; None for a range without reads.
    """
    if len(leases) != problem.ranges or len(strategies) != problem.ranges:
        raise InputError(
            "not one lease and strategy per range",
            field="leases",
            value=(len(leases), len(strategies)),
            expected=str(problem.ranges),
        )
    load = np.zeros((1, problem.nodes))
    waits, waited = 0.0, np.zeros(problem.nodes)
    alone = 0.0
    for r, (leader, strategy) in enumerate(zip(leases, strategies, strict=True)):
        load[0] += problem.write_load(leader, r)
        waits += problem.write_waits(leader, r)
        reads = problem.read_problem(r, leader)
        if reads is None:
            continue
        if strategy is None:
            raise InputError(
                f"range {r} is read but has no strategy", field="strategies", value=None,
                expected="a ReadStrategy",
            )  # fmt: skip
        figures = evaluate(reads, strategy)
        load += figures.load
        total = float(problem.reads[r].sum())
        waits += total * figures.latency
        waited += problem.reads[r] * figures.gateway_latency
        alone += total * figures.leader_served
    per_gateway = problem.reads.sum(axis=0)
    waited = np.divide(waited, per_gateway, out=np.zeros_like(waited), where=per_gateway > 0)
    queue = load / (1.0 - load) if float(load.max()) < 1.0 else np.array([[math.inf]])
    reads_total = float(problem.reads.sum())
    return ReadFigures(
        load,
        float(load.max()),
        waits / problem.operations,
        waited,
        float(queue.sum()),
        alone / reads_total if reads_total else 0.0,
    )


@dataclass(frozen=True, eq=False)
class LeasePlan:
    """Leases and strategies with figures and a proven bound; build one with :meth:`of`."""

    problem: LeaseProblem
    goal: ReadGoal
    leases: tuple[int, ...]
    strategies: tuple[ReadStrategy | None, ...]
    figures: ReadFigures | None
    value: float
    bound: float
    status: Status

    @classmethod
    def of(
        cls,
        problem: LeaseProblem,
        goal: ReadGoal,
        leases: Sequence[int],
        strategies: Sequence[ReadStrategy | None],
        bound: float = -math.inf,
    ) -> LeasePlan:
        """Return an evaluated plan; no leases: nothing was found.

        Raises
        ------
        SolverError
            When limits are broken or the value lies below the bound.
        """
        figures, value, bound = None, math.inf, least_bound(bound)
        if leases:
            figures = evaluate_leases(problem, leases, strategies)
            value = figures.objective(goal)
            broken = figures.broken(goal)
            if broken:
                raise SolverError(f"the leases break limits: {broken[0]}")
            if bound - value > 10 * OPTIMALITY_TOLERANCE * abs(value):
                raise SolverError(f"the bound {bound} lies above the value {value}")
        return cls(
            problem,
            goal,
            tuple(leases),
            tuple(strategies),
            figures,
            value,
            bound,
            status_of(bool(leases), value, bound),
        )

    @property
    def gap(self) -> float:
        """(value − bound)/value."""
        return relative_gap(self.value, self.bound)

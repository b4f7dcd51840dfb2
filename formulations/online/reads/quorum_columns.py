"""Program with a column for each gateway and quorum: all (Q1), or those that prices ask for (Q3).

Variables p_iA: probability that gateway i asks the set A.

    Σ_A p_iA = 1    for every gateway i,    p >= 0

with a_iA = g_i/Σ g·(time until A has answered) and g_i visits to each member of A, in the program
of :mod:`formulations.online.reads.load_program`. Q1 has C(n − 2, m)·(n − 1) + n columns for
majorities around a leaseholder. Q3 begins with the leaseholder alone and the nearest quorum per
gateway and adds, at the prices of the last program, the cheapest set of each gateway (exact
pricing by the quorum system: O(n² log n) for majorities) until no reduced cost is negative; the
Lagrangean bound of :mod:`placement.online.reads.load_bound` is computed by the same pricing and
proves it.
"""

from __future__ import annotations

import numpy as np

from formulations.online.reads.load_program import Master, optimise
from placement.errors import LimitError
from placement.online.reads import (
    NodePrices,
    Quorum,
    ReadGoal,
    ReadPlan,
    ReadProblem,
    ReadStrategy,
    cheapest_choice,
    node_prices,
)
from placement.support.checks import FloatArray

__all__ = ["solve_columns", "solve_enumerated"]

_MOST_COLUMNS = 200_000


class _QuorumColumns:
    """The columns there are, by gateway and set."""

    def __init__(self, problem: ReadProblem) -> None:
        self.problem = problem
        self.master = Master(problem)
        self.sets: list[tuple[int, Quorum]] = []
        self.known: set[tuple[int, Quorum]] = set()
        for _ in range(problem.nodes):
            self.master.row({}, 1.0, 1.0)

    def add(self, gateway: int, quorum: Quorum) -> bool:
        """Add p_iA; False when it is there."""
        if (gateway, quorum) in self.known:
            return False
        problem = self.problem
        wait = float(problem.shares[gateway]) * problem.latency(gateway, quorum)
        rate = float(problem.reads[gateway])
        j = self.master.column(wait, dict.fromkeys(quorum, rate))
        self.master.rows[gateway][0][j] = 1.0
        self.sets.append((gateway, quorum))
        self.known.add((gateway, quorum))
        return True

    def strategy(self, values: FloatArray) -> ReadStrategy:
        """Read the probabilities."""
        mixtures: list[dict[Quorum, float]] = [{} for _ in range(self.problem.nodes)]
        for (gateway, quorum), value in zip(self.sets, values, strict=True):
            if value > 1e-12:
                mixtures[gateway][quorum] = float(value)
        return ReadStrategy.of(self.problem, mixtures)

    def price(self, prices: NodePrices, per_ms: float) -> bool:
        """Add the cheapest set of every gateway at these prices; False when all were there."""
        problem = self.problem
        per_node = node_prices(problem, prices)
        total = float(problem.reads.sum())
        grew = False
        for gateway in range(problem.nodes):
            # Per read: a ms at this gateway counts g_i/Σ g of a ms of the mean, over g_i reads.
            _, quorum = cheapest_choice(problem, gateway, per_node, per_ms / total)
            grew = self.add(gateway, quorum) or grew
        return grew


def solve_enumerated(problem: ReadProblem, goal: ReadGoal) -> ReadPlan:
    """Q1: the optimal strategy from the program with every set of every gateway.

    Raises
    ------
    LimitError
        Beyond 200,000 columns.
    """
    count = sum(problem.quorums.count(gateway) + 1 for gateway in range(problem.nodes))
    if count > _MOST_COLUMNS:
        raise LimitError(
            f"{count:,} gateways and quorums, the limit of the enumerated program is "
            f"{_MOST_COLUMNS:,}; solve_columns or solve_compact take it"
        )
    columns = _QuorumColumns(problem)
    for gateway in range(problem.nodes):
        for quorum in problem.choices(gateway):
            columns.add(gateway, quorum)
    return optimise(
        columns.master,
        goal,
        method="enumerated",
        strategy_of=columns.strategy,
        extend=lambda prices, per_ms: False,
    )


def solve_columns(problem: ReadProblem, goal: ReadGoal) -> ReadPlan:
    """Q3: the same optimum with columns added as prices ask for them; any quorum system."""
    columns = _QuorumColumns(problem)
    nothing = np.zeros(problem.nodes)
    for gateway in range(problem.nodes):
        if problem.leader is not None:
            columns.add(gateway, (problem.leader,))
        nearest = problem.quorums.cheapest(gateway, problem.rtt[gateway], nothing, 1.0)
        if nearest is not None:
            columns.add(gateway, nearest[1])
    return optimise(
        columns.master,
        goal,
        method="column generation",
        strategy_of=columns.strategy,
        extend=columns.price,
    )

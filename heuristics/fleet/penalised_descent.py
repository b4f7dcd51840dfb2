"""Steepest descent for one database of a fleet, while the others stay where they are.

A configuration costs its objective, a penalty for each limit that the loads of the fleet would then
exceed, and one for each unit beyond it. Each limit that is exceeded costs more than any objective:
overloads remain only if there is no other choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from heuristics import tuning
from placement.feasibility.feasible_plans import find_feasible, violations
from placement.feasibility.neighbours import neighbours
from placement.fleet.fleet_problem import FleetMember, FleetProblem
from placement.fleet.shared_rows import SharedRows
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray

__all__ = ["PenalisedDescent"]


_IMPROVES = 1e-9
"""Part of the cost by which a neighbour must be better."""


class PenalisedDescent:
    """Loads of a fleet that is being placed, and descents against them.

    Parameters
    ----------
    fleet
        The question.

    Attributes
    ----------
    load
        Use of each shared limit by what is placed, shape (rows,).
    """

    def __init__(self, fleet: FleetProblem) -> None:
        self.rows = SharedRows(fleet)
        self.load = np.zeros(len(self.rows.capacity))
        self._limit = self.rows.capacity * (1.0 + 1e-10)
        self._starts: dict[str, Configuration | None] = {}
        worst = max(float(member.problem.demand.operations) for member in fleet.members)
        longest = max(float(member.problem.demand.client_rtt.max()) for member in fleet.members)
        self._least = tuning.OVERLOAD_PENALTY * (worst * longest + 1.0)
        self._penalty = self._least / np.maximum(self.rows.capacity, 1.0)

    def place(self, member: FleetMember, configuration: Configuration, copies: int) -> None:
        """Add copies of a database to the loads; a negative number takes them away."""
        self.load += copies * self.rows.use(member, configuration)

    def start(self, member: FleetMember) -> Configuration | None:
        """Return some configuration that obeys the rules of a database; None: there is none."""
        if member.name not in self._starts:
            self._starts[member.name] = find_feasible(member.problem)
        return self._starts[member.name]

    @property
    def overload(self) -> FloatArray:
        """Return by how much the loads are beyond each limit, shape (rows,), >= 0."""
        return np.maximum(self.load - self._limit, 0.0)

    def costs(
        self, member: FleetMember, choices: Sequence[Configuration], alone: bool = False
    ) -> FloatArray:
        """Return the cost of one more copy in each configuration, shape (n,).

        The penalties are those of all overloads together; `alone`: there are none.
        """
        values = member.problem.objective.values(member.problem, choices)
        if alone or not len(self.load):
            return np.asarray(values)
        uses = np.array([self.rows.use(member, one) for one in choices])
        beyond = np.maximum(self.load + uses - self._limit, 0.0)
        return np.asarray(values + beyond @ self._penalty + (beyond > 0).sum(axis=1) * self._least)

    def descend(
        self, member: FleetMember, start: Configuration, alone: bool = False
    ) -> tuple[Configuration, float]:
        """Return the end of a steepest descent from a configuration, and its cost.

        `alone`: as if there were no shared limits.

        Notes
        -----
        O(steps · |R|·S) configurations are evaluated.
        """
        best, cost = start, float(self.costs(member, [start], alone)[0])
        while True:
            around = _allowed(member, neighbours(member.problem, best))
            if not around:
                return best, cost
            costs = self.costs(member, around, alone)
            least = int(costs.argmin())
            if not costs[least] < cost - _IMPROVES * abs(cost):
                return best, cost
            best, cost = around[least], float(costs[least])

    def copies_that_fit(self, member: FleetMember, configuration: Configuration, most: int) -> int:
        """Return how many copies are within all limits in a configuration, between 1 and `most`."""
        use = self.rows.use(member, configuration)
        used = use > 0
        if not used.any():
            return most
        room = (self._limit[used] - self.load[used]) / use[used]
        return max(1, min(most, math.floor(float(room.min()))))


def _allowed(member: FleetMember, choices: Iterable[Configuration]) -> list[Configuration]:
    """Return the configurations that obey all rules; neighbours obey all but those on groups."""
    if not member.problem.rules.groups:
        return list(choices)
    return [one for one in choices if not violations(member.problem, one)]

"""Eq. 1 under one leader as a sum of literals with whole coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formulations.cpsat.integer_costs import Integers, LeaderCosts
from formulations.cpsat.variables import LeaderVariables

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["LeaderObjective", "create"]


@dataclass
class LeaderObjective:
    """Objective of the model, in units of 1/scale ms·operations.

    Attributes
    ----------
    constant
        Paid by every configuration with this leader; kept out of the solver.
    terms
        Coefficient of each literal, by the literal's index; clients that share one are added up.
    """

    constant: int
    terms: dict[int, tuple[cp_model.IntVar, int]]

    def expression(self) -> cp_model.LinearExpr:
        """Return the sum without the constant."""
        from ortools.sat.python import cp_model

        literals = [literal for literal, _ in self.terms.values()]
        return cp_model.LinearExpr.weighted_sum(literals, [c for _, c in self.terms.values()])

    def add(self, literal: cp_model.IntVar, coefficient: int) -> None:
        """Add a term; terms of one literal are put together."""
        if coefficient:
            old = self.terms.get(literal.index, (literal, 0))[1]
            self.terms[literal.index] = (literal, old + coefficient)


def create(variables: LeaderVariables, costs: LeaderCosts, integers: Integers) -> LeaderObjective:
    """Add up serving, waiting and money.

    A client at its nearest replica pays cost(o₁) + Σ_j (cost(o_{j+1}) − cost(o_j))·empty[o₁ … o_j]:
    the sum telescopes to the cost of the first site of the chain that holds a replica. A wait is
    ρ_0 + Σ_i (ρ_{i+1} − ρ_i)·slow[i] in the same way.
    """
    objective = LeaderObjective(integers.direct, {})
    for chain, cost in zip(costs.chains, integers.chains, strict=True):
        objective.constant += int(cost[0])
        prefix: frozenset[int] = frozenset()
        for site, step in zip(chain.sites[:-1].tolist(), np.diff(cost).tolist(), strict=True):
            prefix |= {site}
            objective.add(variables.chain(chain.leased)[1][prefix], step)
    for slow, cost in zip(variables.slow, integers.waits, strict=True):
        objective.constant += int(cost[0])
        for literal, step in zip(slow, np.diff(cost).tolist(), strict=True):
            objective.add(literal, step)
    for site, literal in variables.replica.items():
        objective.add(literal, int(integers.money[site]))
    return objective

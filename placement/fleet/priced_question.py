"""The question of one database at prices of the shared limits: what pricing and its proof ask."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from placement.evaluation.cost_model import LinearCost
from placement.fleet.fleet_problem import FleetMember
from placement.fleet.shared_rows import SharedRows
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.support.checks import FloatArray

__all__ = ["PricedQuestion"]


@dataclass(frozen=True, eq=False)
class PricedQuestion:
    """Demand, rules and prices of replicas; every plan of the fleet pays at least the least score.

    Attributes
    ----------
    demand
        With prices of reads as longer ways.
    rules
        Without the sites that cannot hold or lead the database alone: no plan of the fleet uses
        them.
    price
        Of a replica at each site under each leader, shape (sites, sites), row = leader.
    """

    demand: Demand
    rules: Rules
    price: FloatArray

    @classmethod
    def of(
        cls,
        rows: SharedRows,
        member: FleetMember,
        prices: FloatArray,
        room: FloatArray | None = None,
    ) -> PricedQuestion | None:
        """Return the question of one database; None where a site that it must have is too small.

        Parameters
        ----------
        rows
            The shared limits.
        member
            The database.
        prices
            Of each shared limit, shape (rows,).
        room
            Remaining capacity of each limit; None: all of it. Sites without room for the database
            are left out.
        """
        problem = member.problem
        price = rows.price(member, prices)
        if problem.rules.cost_weight:
            costs = [problem.site_costs(leader) for leader in range(len(price))]
            own = np.array([row for row in costs if row is not None])
            price = price + problem.rules.cost_weight * own
        hold, lead = rows.fitting_sites(member, room)
        rules = dataclasses.replace(
            problem.rules,
            may_hold=problem.rules.may_hold & hold,
            may_vote=problem.rules.may_vote & hold,
            may_lead=problem.rules.may_lead & lead,
        )
        if (rules.must_hold & ~rules.may_hold).any():
            return None
        return cls(rows.demand(member, prices), rules, price)

    def added_cost(self, leader: int) -> LinearCost:
        """Return the prices of replicas under a leader, in the form that proofs take."""
        return LinearCost(0.0, self.price[leader], None, None)

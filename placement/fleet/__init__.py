"""Fleets: many databases that share the capacity of the same sites.

Each database is a separate question (:class:`placement.Problem`). The fleet adds what they share:
storage, leader operations and outgoing traffic of each site, a number of moves, and groups of
databases that must not meet at a site. :mod:`placement.fleet.fleet_plan` is the one evaluator of
plans; ``formulations.fleet`` finds plans with a proven gap.
"""

from placement.fleet.fleet_plan import FleetPlan, FleetSearch, NoFleetPlan, Placed, Shortage
from placement.fleet.fleet_problem import FleetMember, FleetProblem, SharedLimits
from placement.fleet.shared_rows import SharedRows
from placement.fleet.synthetic_fleet import synthetic_fleet

__all__ = [
    "FleetMember",
    "FleetPlan",
    "FleetProblem",
    "FleetSearch",
    "NoFleetPlan",
    "Placed",
    "SharedLimits",
    "SharedRows",
    "Shortage",
    "synthetic_fleet",
]

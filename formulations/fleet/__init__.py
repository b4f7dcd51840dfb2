"""Plans of fleets with a proven gap, by column generation over the exact search."""

from formulations.fleet.column_generation import FleetSearch, solve_fleet
from formulations.fleet.price_bound import prove_fleet_bound

__all__ = ["FleetSearch", "prove_fleet_bound", "solve_fleet"]

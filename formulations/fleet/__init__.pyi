from formulations.fleet.column_generation import solve_fleet as solve_fleet
from placement.fleet.fleet_plan import FleetSearch as FleetSearch

"""Plans of fleets with a proven gap, by column generation over the exact search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.lazy import lazy_names

if TYPE_CHECKING:
    from formulations.fleet.column_generation import FleetSearch as FleetSearch
    from formulations.fleet.column_generation import solve_fleet as solve_fleet
    from formulations.fleet.price_bound import prove_fleet_bound as prove_fleet_bound

_HOME = {  # the verb of this room must not load the search for its help
    "FleetSearch": "formulations.fleet.column_generation",
    "prove_fleet_bound": "formulations.fleet.price_bound",
    "solve_fleet": "formulations.fleet.column_generation",
}

__all__ = sorted(_HOME)

__getattr__, __dir__ = lazy_names(__name__, _HOME)

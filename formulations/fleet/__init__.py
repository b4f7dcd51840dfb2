"""Plans of fleets with a proven gap, by column generation over the exact search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from formulations.fleet.column_generation import solve_fleet as solve_fleet
    from placement.fleet.fleet_plan import FleetSearch as FleetSearch

_HOME = {
    "formulations.fleet.column_generation": ("solve_fleet",),
    "placement.fleet.fleet_plan": ("FleetSearch",),
}

__all__ = ["FleetSearch", "solve_fleet"]

__getattr__, __dir__ = lazy_names(__name__, _HOME)

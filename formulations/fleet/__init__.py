"""Plans of fleets with a proven gap, by column generation over the exact search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from formulations.fleet.column_generation import FleetSearch as FleetSearch
    from formulations.fleet.column_generation import solve_fleet as solve_fleet

_HOME = {"formulations.fleet.column_generation": ("FleetSearch", "solve_fleet")}

__all__ = [*_HOME["formulations.fleet.column_generation"]]

__getattr__, __dir__ = lazy_names(__name__, _HOME)

"""Plans of fleets with a proven gap, by column generation over the exact search."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from formulations.fleet.column_generation import FleetSearch as FleetSearch
    from formulations.fleet.column_generation import solve_fleet as solve_fleet
    from formulations.fleet.price_bound import prove_fleet_bound as prove_fleet_bound

_HOME = {
    "formulations.fleet.column_generation": ("FleetSearch", "solve_fleet"),
    "formulations.fleet.price_bound": ("prove_fleet_bound",),
}

__all__ = [*chain.from_iterable(_HOME.values())]

__getattr__, __dir__ = lazy_names(__name__, _HOME)

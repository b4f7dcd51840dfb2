"""Fleets: many databases that share the capacity of the same sites.

Each database is a separate question (:class:`placement.Problem`). The fleet adds what they share:
storage, leader operations and outgoing traffic of each site, a number of moves, and groups of
databases that must not meet at a site. :mod:`placement.fleet.fleet_plan` is the one evaluator of
plans; ``formulations.fleet`` finds plans with a proven gap.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

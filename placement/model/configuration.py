"""A configuration on site indices, and what it costs in money."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.checks import FloatArray
from placement.model.instance import Instance

__all__ = ["Configuration", "configuration_cost", "site_costs"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration on site indices: ℓ ∈ V ⊆ R.

    Attributes
    ----------
    leader
        ℓ.
    voters
        V; in the order in which they answer the leader where a method cares.
    replicas
        R, ascending.
    """

    leader: int
    voters: tuple[int, ...]
    replicas: tuple[int, ...]

    @classmethod
    def of(cls, leader: int, voters: Sequence[int], replicas: Sequence[int]) -> Configuration:
        """Build one from any sequences of integers; replicas are put in site order."""
        return cls(int(leader), tuple(map(int, voters)), tuple(sorted(map(int, replicas))))


def site_costs(instance: Instance, leader: int) -> FloatArray | None:
    """Price of a replica at each site under a leader, shape (sites,); None without prices."""
    prices = instance.prices
    if prices is None:
        return None
    if prices.transfer is None:
        return prices.storage
    return np.asarray(prices.storage + prices.written_gb * prices.transfer[leader])


def configuration_cost(instance: Instance, configuration: Configuration) -> float:
    """cost(ℓ, R) = Σ_{r ∈ R} storage[r] + written_gb·transfer[ℓ, r]; 0 without prices."""
    costs = site_costs(instance, configuration.leader)
    return 0.0 if costs is None else float(costs[list(configuration.replicas)].sum())

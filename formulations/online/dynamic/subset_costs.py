"""Costs of every set of copies of every object: tables over subsets of sites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.errors import LimitError
from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["SubsetTable", "single_savings", "subset_table"]

_MOST_SITES = 12
_MOST_ENTRIES = 2**26
"""512 MB of costs."""


@dataclass(frozen=True, eq=False)
class SubsetTable:
    """Cost of each subset of sites as the dynamic copies of each of some objects.

    Attributes
    ----------
    objects
        The objects, increasing, shape (n,).
    masks
        Sites of each subset, shape (subsets, sites); row 0 is empty.
    cost
        Shape (subsets, n); infinite where a subset holds a static site of the object or one
        without room.
    """

    objects: IntArray
    masks: BoolArray
    cost: FloatArray

    def priced(self, prices: FloatArray) -> FloatArray:
        """Cost plus prices[j] for each copy at j, shape (subsets, n)."""
        return self.cost + (self.masks @ prices)[:, None]


def single_savings(problem: ReplicationProblem) -> FloatArray:
    """Return the savings of a single copy on reads, less the cost of forwarding, (sites, objects).

    An upper bound on what it adds to any set of copies, synchronous waits left out. −∞ beside a
    static copy and at sites without room.
    """
    result = -problem.forward_cost
    for site, row in enumerate(problem.geography.preferred):
        for j in row:
            saved = problem.static_rtt[site] - problem.geography.rtt[site, j]
            result[j] += problem.reads[site] * np.maximum(saved, 0.0)
    impossible = problem.static | (problem.capacity == 0)[:, None]
    return np.where(impossible, -np.inf, result)


def subset_table(problem: ReplicationProblem, objects: IntArray) -> SubsetTable:
    """Tabulate all 2^sites subsets for some objects. O(2^sites · Σ_i |preferred_i| · objects).

    Raises
    ------
    LimitError
        For more than 12 sites, or more entries than fit in memory.
    """
    if problem.sites > _MOST_SITES:
        raise LimitError(
            f"{problem.sites} sites have {2**problem.sites} subsets; the Lagrangean relaxation "
            f"takes at most {_MOST_SITES} sites"
        )
    numbers = np.arange(2**problem.sites)
    masks = (numbers[:, None] >> np.arange(problem.sites) & 1).astype(bool)
    masks = masks[~(masks & (problem.capacity == 0)).any(axis=1)]
    if len(masks) * len(objects) > _MOST_ENTRIES:
        raise LimitError(
            f"{len(objects)} objects may be worth a copy, which makes {len(masks) * len(objects)} "
            f"subsets; at most {_MOST_ENTRIES} fit"
        )
    rtt = problem.geography.rtt
    reads, static_rtt = problem.reads[:, objects], problem.static_rtt[:, objects]
    static, forward = problem.static[:, objects], problem.forward_cost[:, objects]
    writes = problem.write_rates[objects]
    cost = np.empty((len(masks), len(objects)))
    for number, mask in enumerate(masks):
        total = forward[mask].sum(axis=0)
        for site, row in enumerate(problem.geography.preferred):
            near = min((float(rtt[site, j]) for j in row if mask[j]), default=np.inf)
            total = total + reads[site] * np.minimum(static_rtt[site], near)
        if problem.wait is not None:
            held = static | mask[:, None]
            total = total + writes * np.where(held, problem.wait[:, objects], 0.0).max(axis=0)
        cost[number] = np.where((static & mask[:, None]).any(axis=0), np.inf, total)
    return SubsetTable(objects, masks, cost)

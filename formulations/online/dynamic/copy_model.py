"""Common parts of the two programs: binaries of copies, capacities, waits of synchronous writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.program_builder import Builder
from placement.online.dynamic.evaluator import base_cost
from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["CopyModel", "add_copies", "add_waits", "finished", "reach", "unit", "worthwhile"]


@dataclass(frozen=True, eq=False)
class CopyModel:
    """A program with the columns of its copies.

    Attributes
    ----------
    program
        Objective in cost · `scale`.
    column
        Column of y[j, o], shape (sites, objects); −1 where a copy saves nothing or has no room.
    scale
        The program's units per unit of cost.
    """

    program: LinearProgram
    column: IntArray
    scale: float

    def copies(self, values: FloatArray) -> BoolArray:
        """Return the copies of a solution, shape (sites, objects)."""
        placed = values[self.column] > 0.5
        return np.asarray(placed & (self.column >= 0), dtype=bool)

    def values(self, values: FloatArray) -> FloatArray:
        """Return y of a solution, fractional ones too, shape (sites, objects)."""
        return np.where(self.column >= 0, values[self.column], 0.0)


def reach(problem: ReplicationProblem) -> IntArray:
    """Return how many preferred sites are closer than any static copy, shape (sites, objects).

    They come first in the list of the client, since lists ascend in RTT.
    """
    result = np.zeros(problem.static.shape, dtype=np.intp)
    for site, row in enumerate(problem.geography.preferred):
        for j in row:
            result[site] += problem.geography.rtt[site, j] < problem.static_rtt[site]
    return result


def worthwhile(problem: ReplicationProblem) -> BoolArray:
    """Return whether a copy of o at j can save any read, and has room, shape (sites, objects)."""
    within = reach(problem)
    result = np.zeros(problem.static.shape, dtype=bool)
    for site, row in enumerate(problem.geography.preferred):
        for place, j in enumerate(row):
            result[j] |= (within[site] > place) & (problem.reads[site] > 0)
    return result & (problem.capacity > 0)[:, None]


def add_copies(
    problem: ReplicationProblem, builder: Builder, scale: float, useful: BoolArray
) -> IntArray:
    """Add y[j, o] ∈ {0, 1} where `useful`, with the cost of forwarding, and Σ_o y[j, o] <= C_j."""
    column = np.full(useful.shape, -1, dtype=np.intp)
    column[useful] = builder.add_columns(problem.forward_cost[useful] * scale, integer=True)
    for site, capacity in enumerate(problem.capacity.tolist()):
        mine = column[site][useful[site]]
        if len(mine) > capacity:  # a larger capacity cannot bind
            (row,) = builder.add_rows(-np.inf, capacity, 1)
            builder.put(np.full(len(mine), row), mine, 1.0)
    return column


def add_waits(
    problem: ReplicationProblem, builder: Builder, column: IntArray, scale: float
) -> None:
    """Add τ_o >= wait[j, o]·y[j, o] with cost writes[o], beyond what the static copies wait for."""
    if problem.wait is None:
        return
    held = np.where(problem.static, problem.wait, 0.0).max(axis=0)
    more = np.where(column >= 0, np.maximum(problem.wait - held, 0.0), 0.0)
    slow = np.flatnonzero((more.max(axis=0) > 0) & (problem.write_rates > 0))
    extra = builder.add_columns(problem.write_rates[slow] * scale, upper=more.max(axis=0)[slow])
    for site in range(problem.sites):
        some = np.flatnonzero(more[site, slow] > 0)
        rows = builder.add_rows(0.0, np.inf, len(some))
        builder.put(rows, extra[some], 1.0)
        builder.put(rows, column[site, slow[some]], -more[site, slow[some]])


def finished(
    problem: ReplicationProblem, builder: Builder, column: IntArray, scale: float
) -> CopyModel:
    """Return the model, its offset the cost without dynamic copies."""
    builder.offset = base_cost(problem) * scale
    return CopyModel(builder.program(), column, scale)


def unit(problem: ReplicationProblem) -> float:
    """Scale at which the mean object costs 1, which suits the solver's tolerances."""
    cost = base_cost(problem)
    return problem.objects / cost if cost > 0 else 1.0

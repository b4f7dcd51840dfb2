"""p-median problems on graphs, in the layout of the OR-Library, as placement problems.

A p-median is the placement with weak reads only and one voter: the score is then the sum over all
nodes of the distance to the nearest chosen one. The text holds a graph; the distances are shortest
paths. Graphs are drawn with a seed, as in Beasley, "A note on solving large p-median problems",
EJOR 21 (1985); a repeated edge counts with its last cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from placement import Instance, Problem
from placement.model.operations import WEAK_READ


@dataclass(frozen=True)
class PMedian:
    """Distances between all nodes, shape (n, n), and how many medians are asked for."""

    name: str
    distances: npt.NDArray[np.float64]
    medians: int

    def problem(self, medians: int | None = None, sites: int | None = None) -> Problem:
        """Return it as a placement problem, perhaps with other medians or only the first sites."""
        nodes = [f"n{i + 1}" for i in range(len(self.distances))]
        size = sites or len(nodes)
        instance = Instance(
            sites=nodes[:size],
            clients=[f"client {node}" for node in nodes],
            client_rtt=self.distances[:, :size],
            site_rtt=self.distances[:size, :size],
            counts=np.ones((len(nodes), 1)),
            operations=[WEAK_READ],
            name=self.name,
        )
        return Problem(instance, replicas=medians or self.medians, voters=1)


def parse(text: str, name: str = "pmed") -> PMedian:
    """Parse ``n edges p`` and ``i j cost`` lines, and run Floyd and Warshall, O(n³)."""
    numbers = np.array(text.split(), dtype=np.int64)
    count, edges, medians = numbers[:3].tolist()
    distances = np.full((count, count), np.inf)
    np.fill_diagonal(distances, 0)
    for i, j, cost in numbers[3 : 3 + 3 * edges].reshape(edges, 3).tolist():
        distances[i - 1, j - 1] = distances[j - 1, i - 1] = cost
    for k in range(count):
        np.minimum(distances, distances[:, k, None] + distances[k], out=distances)
    return PMedian(name, distances, medians)


def draw(nodes: int, medians: int, seed: int) -> PMedian:
    """Draw a connected graph as the library's: `nodes`²/50 edges or more, whole costs to 100."""
    rng = np.random.default_rng(seed)
    count = max(nodes * nodes // 50, 2 * nodes)
    chain = [(i, i + 1) for i in range(1, nodes)]
    more = [tuple(rng.choice(nodes, 2, replace=False) + 1) for _ in range(count - len(chain))]
    lines = [f"{i} {j} {rng.integers(1, 101)}" for i, j in (*chain, *more)]
    return parse(f"{nodes} {count} {medians}\n" + "\n".join(lines), f"drawn {nodes} {seed}")


def by_integer_program(d: np.ndarray, medians: int) -> float:
    """Min Σ d z with Σ_r z_cr = 1, z_cr <= x_r, Σ x = p, in scipy: value to the next integer."""
    clients, sites = d.shape
    pairs = clients * sites
    z = np.arange(pairs)
    assign = coo_array((np.ones(pairs), (z // sites, z)), shape=(clients, pairs + sites))
    ones = np.concatenate([np.ones(pairs), -np.ones(pairs)])
    columns = np.concatenate([z, pairs + z % sites])
    use = coo_array((ones, (np.concatenate([z, z]), columns)), shape=(pairs, pairs + sites))
    count = np.concatenate([np.zeros(pairs), np.ones(sites)])[np.newaxis]
    result = milp(
        np.concatenate([d.ravel(), np.zeros(sites)]),
        constraints=[
            LinearConstraint(assign, 1, 1),
            LinearConstraint(use, -np.inf, 0),
            LinearConstraint(count, medians, medians),
        ],
        integrality=np.concatenate([np.zeros(pairs), np.ones(sites)]),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0.0},
    )
    assert result.success
    assert result.fun == pytest.approx(round(result.fun), abs=1e-6)
    return float(round(result.fun))

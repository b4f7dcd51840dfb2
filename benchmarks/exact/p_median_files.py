"""Readers of p-median instances: graphs of the OR-Library and points of TSPLIB, named by the user.

A p-median is a placement with weak reads only and one voter. Clients and sites are the nodes, and
each client counts once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from formulations.exact.reduced_problem import ReducedProblem
from placement.errors import InputError
from placement.io.formats.document import read_text
from placement.support.checks import FloatArray

__all__ = ["Graph", "or_library", "p_median", "read_pmed", "read_tsplib"]

MOST_NODES = 20_000
"""Nodes of the largest file that is read; the matrix of distances has their square."""


@dataclass(frozen=True)
class Graph:
    """A file of the OR-Library: distances between nodes, shape (n, n), and how many to choose."""

    distances: FloatArray
    medians: int


def p_median(rtt: FloatArray, weight: FloatArray, size: int) -> ReducedProblem:
    """Return the problem of choosing `size` sites for the least Σ weight · distance.

    Parameters
    ----------
    rtt
        Distances, shape (clients, sites).
    weight
        Of each client.
    size
        Number of sites to choose.
    """
    zero = np.zeros(len(rtt))
    between = np.zeros((rtt.shape[1], rtt.shape[1]))
    return ReducedProblem.of_arrays(
        rtt, between, (weight, zero, zero, 0.0), replicas=(size, size), voters=1
    )


def read_pmed(path: Path) -> Graph:
    """Read a file of the OR-Library: ``n edges p``, then ``i j cost`` lines.

    Edges have no direction, and the last cost of a repeated edge counts. Distances are lengths of
    shortest paths. O(n³).

    Raises
    ------
    InputError
        For a row that is not three whole numbers in range, or a number of edges that differs.
    """
    rows = [
        (number, _whole_row(path, number, line))
        for number, line in enumerate(read_text(path).splitlines(), start=1)
        if line.strip()
    ]
    if not rows:
        raise InputError("an empty file", source=str(path), expected="'n edges p' in row 1")
    (_, (nodes, edges, medians)), *rest = rows
    if not 1 <= nodes <= MOST_NODES or not 1 <= medians <= nodes:
        raise InputError(
            "out of range",
            source=f"{path}, row 1",
            field="n edges p",
            value=(nodes, edges, medians),
            expected=f"1 <= p <= n <= {MOST_NODES}",
        )
    if len(rest) != edges:
        raise InputError(
            "another number of edges", source=str(path), value=len(rest), expected=str(edges)
        )
    distance = np.full((nodes, nodes), np.inf)
    for number, (i, j, cost) in rest:
        if not (1 <= i <= nodes and 1 <= j <= nodes and cost >= 0):
            raise InputError(
                "no such edge",
                source=f"{path}, row {number}",
                value=(i, j, cost),
                expected=f"nodes from 1 to {nodes} and a cost >= 0",
            )
        distance[i - 1, j - 1] = distance[j - 1, i - 1] = cost
    np.fill_diagonal(distance, 0)
    for k in range(nodes):
        np.minimum(distance, distance[:, k : k + 1] + distance[k], out=distance)
    if np.isinf(distance).any():
        raise InputError("a graph in several parts", source=str(path), expected="a connected graph")
    return Graph(distance, medians)


def _whole_row(path: Path, number: int, line: str) -> tuple[int, int, int]:
    try:
        first, second, third = map(int, line.split())
    except ValueError:
        raise InputError(
            "not a row of the OR-Library",
            source=f"{path}, row {number}",
            value=line,
            expected="three whole numbers",
        ) from None
    return first, second, third


def read_tsplib(path: Path) -> FloatArray:
    """Read points of TSPLIB (``EUC_2D``) and return their distances, rounded down, shape (n, n).

    TSPLIB itself rounds to the nearest whole number. The literature on p-medians rounds down, and
    so do the published optima.

    Raises
    ------
    InputError
        For another kind of distances, a number of points that differs from ``DIMENSION``, or a
        row that is not a number and two coordinates.
    """
    keys: dict[str, str] = {}
    points: list[tuple[float, float]] = []
    inside = False
    for number, raw in enumerate(read_text(path).splitlines(), start=1):
        line = raw.strip()
        if not line:
            continue
        if line == "EOF":
            break
        if inside:
            points.append(_point(path, number, line, len(points) + 1))
            continue
        if line == "NODE_COORD_SECTION":
            inside = True
            continue
        key, separator, value = line.partition(":")
        if not separator:
            raise InputError(
                "not a row of a TSPLIB head",
                source=f"{path}, row {number}",
                value=line,
                expected="'KEY : VALUE' or NODE_COORD_SECTION",
            )
        keys[key.strip()] = value.strip()
    kind, count = keys.get("EDGE_WEIGHT_TYPE"), keys.get("DIMENSION")
    if kind != "EUC_2D":
        raise InputError(
            "unknown distances",
            source=str(path),
            field="EDGE_WEIGHT_TYPE",
            value=kind,
            expected="EUC_2D",
        )
    if count != str(len(points)) or not 1 <= len(points) <= MOST_NODES:
        raise InputError(
            "another number of points",
            source=str(path),
            field="DIMENSION",
            value=count,
            expected=f"the number of rows of NODE_COORD_SECTION, {len(points)}, from 1 to "
            f"{MOST_NODES}",
        )
    at = np.array(points)
    squares = (at[:, :1] - at[:, 0]) ** 2 + (at[:, 1:] - at[:, 1]) ** 2
    return np.asarray(np.floor(np.sqrt(squares)))


def _point(path: Path, number: int, line: str, expected: int) -> tuple[float, float]:
    try:
        name, x, y = line.split()
        point = (float(x), float(y))
        right = int(name) == expected and all(np.isfinite(point))
    except ValueError:
        right = False
    if not right:
        raise InputError(
            "not a point",
            source=f"{path}, row {number}",
            value=line,
            expected=f"the number {expected} and two coordinates",
        )
    return point


def or_library(here: Path | None) -> Iterator[tuple[str, ReducedProblem]]:
    """Yield name and problem of pmed1 to pmed40 of the OR-Library (Beasley 1985), as far as there.

    All-pairs shortest paths are found while the file is read.
    """
    if here is None:
        print("no --pmed DIR: the graphs of the OR-Library are left out", file=sys.stderr)
        return
    for number in range(1, 41):
        if (path := here / f"pmed{number}.txt").exists():
            graph = read_pmed(path)
            nodes, size = len(graph.distances), graph.medians
            core = p_median(graph.distances, np.ones(nodes), size)
            yield f"pmed{number} n={nodes} p={size}", core

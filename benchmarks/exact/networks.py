"""Networks, demand and p-medians for the studies of ``exact``: drawn, or from the user's folders.

Hard networks have detours that break triangles; hard demand has heavy tails or one large client. A
p-median is a placement with weak reads only and one voter. Clients and sites are the nodes.
"""

from __future__ import annotations

import copy
import re
import sys
import zipfile
from collections.abc import Callable, Container, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from benchmarks.harness.tier3_worlds import demand, read_matrix, spread_demand
from formulations.exact.reduced_problem import ReducedProblem
from placement import Instance, datasets
from placement.datasets.distance_rtt import RouteModel, modelled_rtt
from placement.errors import InputError
from placement.io.formats.files import read_text
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.workloads import mix_shares

DEMANDS = ("pareto", "half", "unit")
"""Demand of the clients: Pareto with exponent 1.2; one client issues half; all issue the same."""

MODELLED = {"modelled-120": 120, "modelled-490": 490}
"""Hard networks without files, by name: number of sites."""

MEASURED = {
    "sky-42": "multicloud_skyplane_2022-04_aws_azure.csv",
    "wonder-238": "wonderproxy_2020-07_avg_clean.csv",
    "planetlab-490": "planetlab_median.npz",
}
"""Measured networks by name: file in the folder of latencies."""

MOST_NODES = 20_000
"""Nodes of the largest file that is read; the matrix of distances has their square."""

_PARETO = 1.2
_ROUTES = RouteModel(spread=0.4, detours=1.0)
_Number = TypeVar("_Number", int, float)


class Network(NamedTuple):
    """RTTs in ms between sites that are the clients; the diagonal is the figure within a site."""

    name: str
    rtt: FloatArray


# --- instances ----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _strewn(
    sites: int, clients: int, seed: int
) -> tuple[FloatArray, FloatArray, np.random.Generator]:
    """RTTs from clients and between sites, strewn around the cities, and the draws that follow."""
    rng = np.random.default_rng([seed, sites, clients])
    places = [_near_cities(count, rng) for count in (sites, clients)]
    for each in places:
        each[:, 1] = (each[:, 1] + 180) % 360 - 180
    return *modelled_rtt(places[0], places[1], rng), rng


def _near_cities(count: int, rng: np.random.Generator) -> FloatArray:
    cities = np.array([(city.lat, city.lon) for city in datasets.cities()])
    near = cities[rng.integers(len(cities), size=count)] + rng.normal(0, 2, (count, 2))
    near[:, 0] = near[:, 0].clip(-80, 80)
    return np.asarray(near)


def scattered(sites: int, clients: int, mix: str, seed: int) -> Instance:
    """Strew sites and clients around the bundled cities, RTTs modelled from distance."""
    rtt, between, draws = _strewn(sites, clients, seed)
    rng = copy.deepcopy(draws)  # every mix on the same network
    counts = demand(mix_shares(mix), clients, rng)
    return _instance(rtt, between, counts, f"{sites} x {clients}")


def _instance(rtt: FloatArray, between: FloatArray, counts: FloatArray, name: str) -> Instance:
    return Instance(
        sites=tuple(f"s{i}" for i in range(len(between))),
        clients=tuple(f"c{i}" for i in range(len(rtt))),
        client_rtt=rtt,
        site_rtt=between,
        counts=counts,
        operations=STANDARD_OPERATIONS,
        name=name,
    )


def networks(
    wanted: Container[str] | None = None, latency: Path | None = None
) -> Iterator[Network]:
    """Yield the modelled networks, and the measured ones whose files are in a folder."""
    for name, sites in MODELLED.items():
        if wanted is None or name in wanted:
            yield _modelled(name, sites)
    for name, file in MEASURED.items():
        there = latency is not None and (latency / file).exists()
        if latency is not None and there and (wanted is None or name in wanted):
            path = latency / file
            yield Network(name, read_npz(path) if path.suffix == ".npz" else read_matrix(path)[1])


def read_npz(path: Path) -> FloatArray:
    """Read the square array ``rtt`` (ms) of a NumPy archive.

    InputError when the file is no archive, or the array is not square, finite and >= 0.
    """
    expected = "a square array 'rtt' of finite numbers >= 0"
    try:
        with np.load(path, allow_pickle=False) as archive:
            rtt = np.array(archive["rtt"], dtype=np.float64)
    except (ValueError, KeyError, zipfile.BadZipFile, AttributeError) as error:
        raise InputError(
            "not a NumPy archive of RTTs", source=str(path), value=str(error), expected=expected
        ) from None
    square = rtt.ndim == 2 and rtt.shape[0] == rtt.shape[1]
    if not (square and np.isfinite(rtt).all() and (rtt >= 0).all()):
        raise InputError(
            "not RTTs", source=str(path), field="rtt", value=rtt.shape, expected=expected
        )
    return rtt


def _modelled(name: str, sites: int) -> Network:
    """Sites near the bundled cities; no pair is relayed, so that many triangles are violated."""
    rng = np.random.default_rng([1, sites])
    places = _near_cities(sites, rng)
    _, rtt = modelled_rtt(places, places[:1], rng, _ROUTES)
    np.fill_diagonal(rtt, 1.0)
    return Network(name, rtt)


def weights(kind: str, clients: int, rng: np.random.Generator) -> FloatArray:
    """Return the demand of each client up to a factor; `kind` is one of :data:`DEMANDS`."""
    if kind == "pareto":
        return np.asarray(1.0 + rng.pareto(_PARETO, clients))
    weight = np.ones(clients)
    if kind == "half":
        weight[int(rng.integers(clients))] = max(1, clients - 1)
    return weight


def hard_instance(network: Network, mix: str, kind: str, seed: int) -> Instance:
    """Put the demand of a mix and a kind of :data:`DEMANDS` on a network."""
    sites = len(network.rtt)
    rng = np.random.default_rng([seed, sites, DEMANDS.index(kind)])
    weight = weights(kind, sites, rng)
    between = network.rtt.copy()
    np.fill_diagonal(between, 0.0)
    counts = spread_demand(mix_shares(mix), weight, rng)
    return _instance(network.rtt, between, counts, f"{network.name} {mix} {kind}")


# --- p-medians ----------------------------------------------------------------------------------

LIBRARY_SIZES = [
    *(
        (n, p)
        for n in (100, 200, 300, 400, 500, 600)
        for p in (5, 10, n // 10, n // 5, round(n / 3))
    ),
    *((700, p) for p in (5, 10, 70, 140)),
    *((n, p) for n in (800, 900) for p in (5, 10, n // 10)),
]
"""n and p of pmed1 to pmed40 of the OR-Library."""


def p_median(rtt: FloatArray, size: int, weight: FloatArray | None = None) -> ReducedProblem:
    """Return the problem of choosing `size` sites for the least Σ weight · distance.

    Distances have the shape (clients, sites); without weights all are 1.
    """
    zero = np.zeros(len(rtt))
    between = np.zeros((rtt.shape[1], rtt.shape[1]))
    near = np.ones(len(rtt)) if weight is None else weight
    return ReducedProblem.of_arrays(
        rtt, between, (near, zero, zero, 0.0), replicas=(size, size), voters=1
    )


def _shortest(distance: FloatArray) -> FloatArray:
    """Return lengths of shortest paths from lengths of edges, in place. O(n³)."""
    np.fill_diagonal(distance, 0)
    for k in range(len(distance)):
        np.minimum(distance, distance[:, k : k + 1] + distance[k], out=distance)
    return distance


def drawn_medians() -> Iterator[tuple[str, ReducedProblem]]:
    """Yield forty networks drawn by the rule of the OR-Library's, with its sizes.

    n²/50 edges between random nodes, a random tree among them, whole lengths from 1 to 100.
    """
    for number, (nodes, size) in enumerate(LIBRARY_SIZES, start=1):
        rng = np.random.default_rng([1985, number])
        edges = nodes * nodes // 50
        tree = [(int(rng.integers(0, i)), i) for i in range(1, nodes)]
        others = rng.integers(0, nodes, (max(0, edges - len(tree)), 2))
        distance = np.full((nodes, nodes), np.inf)
        for i, j in [*tree, *((int(i), int(j)) for i, j in others)]:
            distance[i, j] = distance[j, i] = float(rng.integers(1, 101))
        yield f"drawn {number} n={nodes} p={size}", p_median(_shortest(distance), size)


def plane(sites: int, clients: int, sizes: Sequence[int]) -> Iterator[tuple[str, ReducedProblem]]:
    """Yield points in a square; whole distances and unit weights where sites are the clients."""
    rng = np.random.default_rng(sites + clients)
    points = 1000 * rng.random((sites, 2))
    homes = points if sites == clients else 1000 * rng.random((clients, 2))
    distance = np.sqrt((homes[:, :1] - points[:, 0]) ** 2 + (homes[:, 1:] - points[:, 1]) ** 2)
    weight = None
    if sites == clients:
        distance = np.floor(distance)
    else:
        weight = rng.lognormal(0, 1, clients)
    for size in sizes:
        yield f"plane {sites} x {clients} p={size}", p_median(distance, size, weight)


def or_library(here: Path | None) -> Iterator[tuple[str, ReducedProblem]]:
    """Yield pmed1 to pmed40 of the OR-Library (Beasley 1985), as far as the folder has them."""
    if here is None:
        print("no --pmed DIR: the graphs of the OR-Library are left out", file=sys.stderr)
        return
    for number in range(1, 41):
        if (path := here / f"pmed{number}.txt").exists():
            distance, size = read_pmed(path)
            yield f"pmed{number} n={len(distance)} p={size}", p_median(distance, size)


def _row(path: Path, number: int, line: str, kind: Callable[[str], _Number]) -> list[_Number]:
    """Return the three numbers of a row of a file."""
    try:
        found = [kind(cell) for cell in line.split()]
    except ValueError:
        found = []
    if len(found) != 3 or not np.isfinite(found).all():
        raise InputError(
            "not a row of three numbers", source=f"{path}, row {number}", value=line,
            expected=f"three numbers ({kind.__name__})",
        )  # fmt: skip
    return found


def read_pmed(path: Path) -> tuple[FloatArray, int]:
    """Read distances and p of a file of the OR-Library: ``n edges p``, then ``i j cost`` lines.

    Edges have no direction, and the last cost of a repeated edge counts. Distances are lengths of
    shortest paths. InputError for another number of edges, or a graph in several parts.
    """
    lines = enumerate(read_text(path).splitlines(), start=1)
    rows = [(number, _row(path, number, line, int)) for number, line in lines if line.strip()]
    (_, (nodes, edges, size)), *rest = rows or [(1, [0, 0, 0])]
    if not 1 <= size <= nodes <= MOST_NODES or len(rest) != edges:
        raise InputError(
            "not a graph of the OR-Library", source=f"{path}, row 1", field="n edges p",
            value=(nodes, edges, size),
            expected=f"1 <= p <= n <= {MOST_NODES}, and {len(rest)} edges as there are rows",
        )  # fmt: skip
    distance = np.full((nodes, nodes), np.inf)
    for number, (i, j, cost) in rest:
        if not (1 <= i <= nodes and 1 <= j <= nodes and cost >= 0):
            raise InputError(
                "no such edge", source=f"{path}, row {number}", value=(i, j, cost),
                expected=f"nodes from 1 to {nodes} and a cost >= 0",
            )  # fmt: skip
        distance[i - 1, j - 1] = distance[j - 1, i - 1] = cost
    if np.isinf(_shortest(distance)).any():
        raise InputError("a graph in several parts", source=str(path), expected="a connected graph")
    return distance, size


def read_tsplib(path: Path) -> FloatArray:
    """Read points of TSPLIB (``EUC_2D``) and return their distances, rounded down, shape (n, n).

    TSPLIB itself rounds to the nearest whole number. The literature on p-medians rounds down, and
    so do the published optima. InputError for other distances, or other points than ``DIMENSION``.
    """
    lines = read_text(path).splitlines()
    words = [line.strip() for line in lines]
    start = words.index("NODE_COORD_SECTION") + 1 if "NODE_COORD_SECTION" in words else len(words)
    end = words.index("EOF") if "EOF" in words else len(words)
    keys = dict(re.findall(r"^\s*(\w+)\s*:\s*(.*?)\s*$", "\n".join(words[:start]), re.MULTILINE))
    points = [_row(path, at + 1, words[at], float) for at in range(start, end) if words[at]]
    for field, known in (("EDGE_WEIGHT_TYPE", "EUC_2D"), ("DIMENSION", str(len(points)))):
        if keys.get(field) != known or len(points) > MOST_NODES:
            raise InputError(
                "not points of TSPLIB", source=str(path), field=field, value=keys.get(field),
                expected=f"{known}, and at most {MOST_NODES} points",
            )  # fmt: skip
    if [point[0] for point in points] != list(range(1, len(points) + 1)):
        raise InputError("not in order", source=str(path), expected="points 1, 2, 3, …")
    at = np.array(points)[:, 1:]
    squares = (at[:, :1] - at[:, 0]) ** 2 + (at[:, 1:] - at[:, 1]) ** 2
    return np.asarray(np.floor(np.sqrt(squares)))

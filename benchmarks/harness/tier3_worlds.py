"""Instances of the tier 3 benchmarks: 27 sites with measured or modelled RTTs, all nine mixes.

An instance has its sites as clients; those on ``world27`` have the 60 cities of that data set.
Demand per client is log-normal. The default sigma of 1.2 gives about half of the operations to the
heaviest tenth of many clients; a larger sigma concentrates them more. The operation mix of each
client is drawn around one of the nine mixes of `MIXES`. Everything follows from a seed. Instances
that differ in sigma alone have the same sites and the same order of clients.

Measured matrices are read from the folder that ``--latency DIR`` names, the argument `latency`;
without it the measured instances are left out and the benchmarks say so.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placement import Instance, datasets
from placement.datasets.distance_rtt import modelled_rtt
from placement.errors import InputError
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.workloads import CONCENTRATION, MIXES, mix_shares

__all__ = [
    "BUNDLED",
    "LEVELS",
    "MATRICES",
    "NETWORKS",
    "SIGMA",
    "Tier3Instance",
    "demand",
    "instance_on",
    "measured_network",
    "modelled_network",
    "number_of",
    "read_matrix",
    "region_domains",
    "spread_demand",
    "world",
    "worlds",
]

MATRICES = {
    "aws-2025": "aws_cloudping_2025-05_p50.csv",
    "azure-2025": "azure_2025-06_p50_clean.csv",
    "aws-2024": "aws_cloudping_2024-04_p50.csv",
    "gcp-2019": "gcp_fantoch_2019-09_avg.csv",
}
"""Measured matrices by name; the two smaller ones have 21 and 20 regions."""

NETWORKS = ("modelled", *MATRICES)
"""Networks whose sites are the clients."""

BUNDLED = ("world27",)
"""Data sets of the package with clients of their own; the demand is still generated here."""

LEVELS = ("country", "continent")
"""Failure-domain levels of the worlds, one within the other."""

SITES = 27
SIGMA = 1.2
OPERATIONS = 1e6


@dataclass(frozen=True)
class Tier3Instance:
    """An instance with its network, mix and seed."""

    network: str
    mix: str
    seed: int
    instance: Instance


def read_matrix(path: Path) -> tuple[tuple[str, ...], FloatArray]:
    """Read a CSV of RTTs: a row of names, then for each name a row of ms; cells may be empty.

    A pair that was measured in one direction has that RTT in both. A pair that was measured in
    none has the RTT of the quickest path over one other site. An empty diagonal becomes 1 ms.

    Raises
    ------
    InputError
        For a table that is not square, a cell that is not an RTT, or a pair without any path.
    """
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row]
    names = tuple(rows[0][1:]) if rows else ()
    if not names or [row[0] for row in rows[1:]] != list(names):
        raise InputError(
            "not a square table", source=str(path), expected="the same names in row and column 1"
        )
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(names) + 1:
            raise InputError(
                "another number of cells",
                source=f"{path}, row {number}",
                value=len(row),
                expected=str(len(names) + 1),
            )
    cells = [[_rtt(path, row[0], cell) for cell in row[1:]] for row in rows[1:]]
    matrix = np.array(cells, dtype=np.float64)
    matrix = np.where(np.isnan(matrix), matrix.T, matrix)
    diagonal = np.diag(matrix).copy()
    np.fill_diagonal(matrix, 0.0)
    for i, j in np.argwhere(np.isnan(matrix)).tolist():
        paths = matrix[i] + matrix[:, j]
        paths = np.where(np.isin(np.arange(len(names)), [i, j]), np.nan, paths)
        if np.isnan(paths).all():
            raise InputError(
                "no path between two sites",
                source=str(path),
                value=f"{names[i]} to {names[j]}",
                expected="an RTT in either direction, or over another site",
            )
        matrix[i, j] = np.nanmin(paths)
    np.fill_diagonal(matrix, np.where(np.isnan(diagonal), 1.0, diagonal))
    return names, matrix


def _rtt(path: Path, site: str, cell: str) -> float:
    try:
        value = float(cell) if cell else np.nan
    except ValueError:
        value = -1.0
    if cell and not (np.isfinite(value) and value >= 0):
        raise InputError(
            "not an RTT", source=str(path), field=site, value=cell, expected="ms >= 0, or nothing"
        )
    return float(value)


def measured_network(
    name: str, rng: np.random.Generator, latency: Path | None, sites: int = SITES
) -> tuple[tuple[str, ...], FloatArray] | None:
    """Read a measured matrix and take `sites` of its regions; None when the file is absent.

    Parameters
    ----------
    name
        A key of :data:`MATRICES`.
    rng
        Source of the choice of regions.
    latency
        Folder of measured latencies; None: there is none.
    sites
        How many regions, at most.

    Returns
    -------
    tuple of str, ndarray
        Region names and RTTs in ms, shape (n, n), with the intra-region figure on the diagonal.
    """
    if latency is None or not (path := latency / MATRICES[name]).exists():
        return None
    names, matrix = read_matrix(path)
    keep = np.sort(rng.permutation(len(names))[:sites])
    return tuple(names[i] for i in keep), matrix[np.ix_(keep, keep)]


def modelled_network(
    rng: np.random.Generator, sites: int = SITES
) -> tuple[tuple[str, ...], FloatArray]:
    """Take `sites` regions of the bundled clouds and model their RTTs from distance.

    Returns
    -------
    tuple of str, ndarray
        As :func:`measured_network`, with 1 ms on the diagonal.
    """
    regions = [
        region for provider in ("aws", "gcp", "azure") for region in datasets.regions(provider)
    ]
    keep = sorted(rng.permutation(len(regions))[:sites].tolist())
    points = np.array([(regions[i].lat, regions[i].lon) for i in keep])
    _, rtt = modelled_rtt(points, points[:1], rng)
    np.fill_diagonal(rtt, 1.0)
    return tuple(regions[i].id for i in keep), rtt


def region_domains(names: Sequence[str]) -> dict[str, tuple[str | None, ...]]:
    """Return country and continent of regions by name; nothing when one is not in the package."""
    known = {
        region.id: region
        for provider in ("aws", "gcp", "azure")
        for region in datasets.regions(provider)
    }
    if not known.keys() >= set(names):
        return {}
    found = [known[name] for name in names]
    return {
        "country": tuple(region.country for region in found),
        "continent": tuple(region.continent for region in found),
    }


def number_of(network: str) -> int:
    """Return the number of a network, a part of the seeds of its instances."""
    return (*NETWORKS, *BUNDLED).index(network)


def demand(
    shares: FloatArray, clients: int, rng: np.random.Generator, sigma: float = SIGMA
) -> FloatArray:
    """Draw counts, shape (clients, operations): log-normal weights, each client near the shares.

    Parameters
    ----------
    shares
        Share of each standard operation, shape (5,), summing to 1. A client's own shares come from
        Dirichlet(100 · shares); an operation without a share is issued by no client.
    clients
        How many.
    rng
        Source of all draws.
    sigma
        Standard deviation of the logarithm of a client's demand.
    """
    return spread_demand(shares, np.exp(sigma * rng.standard_normal(clients)), rng)


def spread_demand(shares: FloatArray, weight: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw counts, shape (clients, operations), for clients of given weights.

    Parameters
    ----------
    shares, rng
        As :func:`demand` takes them.
    weight
        Operations of each client, up to a factor.
    """
    clients = len(weight)
    present = shares > 0
    drawn = np.zeros((clients, len(shares)))
    drawn[:, present] = rng.dirichlet(CONCENTRATION * shares[present], size=clients)
    return np.asarray(np.round(OPERATIONS * weight[:, np.newaxis] / weight.sum() * drawn))


def instance_on(
    network: str,
    shares: FloatArray,
    rng: np.random.Generator,
    name: str,
    sites: int = SITES,
    sigma: float = SIGMA,
    latency: Path | None = None,
) -> Instance | None:
    """Build an instance on a network; None when its matrix is absent.

    Parameters
    ----------
    network
        ``modelled``, a key of :data:`MATRICES`, or one of :data:`BUNDLED`.
    shares
        Share of each standard operation, shape (5,).
    rng
        Source of the choice of sites, of the modelled RTTs and of the demand.
    name
        Of the instance.
    sites
        How many sites, at most; a bundled data set keeps its own.
    sigma
        As :func:`demand` takes it.
    latency
        As :func:`measured_network` takes it.
    """
    if network in BUNDLED:
        bundled = datasets.load(network)
        return Instance(
            sites=bundled.sites,
            clients=bundled.clients,
            client_rtt=bundled.client_rtt,
            site_rtt=bundled.site_rtt,
            counts=demand(shares, len(bundled.clients), rng, sigma),
            operations=STANDARD_OPERATIONS,
            domains={level: bundled.domains[level] for level in LEVELS},
            name=name,
        )
    if network == "modelled":
        names, client_rtt = modelled_network(rng, sites)
    else:
        found = measured_network(network, rng, latency, sites)
        if found is None:
            return None
        names, client_rtt = found
    site_rtt = client_rtt.copy()
    np.fill_diagonal(site_rtt, 0.0)
    return Instance(
        sites=names,
        clients=names,
        client_rtt=client_rtt,
        site_rtt=site_rtt,
        counts=demand(shares, len(names), rng, sigma),
        operations=STANDARD_OPERATIONS,
        domains=region_domains(names),
        name=name,
    )


def world(
    network: str,
    mix: str,
    seed: int,
    sites: int = SITES,
    sigma: float = SIGMA,
    latency: Path | None = None,
) -> Tier3Instance | None:
    """Build the instance of a network, a mix (a key of ``MIXES``) and a seed; None: no matrix."""
    numbers = [seed, sorted(MIXES).index(mix), number_of(network)]
    rng = np.random.default_rng(numbers)
    name = f"{network}, {mix}, seed {seed}"
    instance = instance_on(network, mix_shares(mix), rng, name, sites, sigma, latency)
    return None if instance is None else Tier3Instance(network, mix, seed, instance)


def worlds(
    seeds: Sequence[int],
    networks: Sequence[str] = ("modelled", "aws-2025", "azure-2025"),
    mixes: Sequence[str] = tuple(MIXES),
    sigma: float = SIGMA,
    latency: Path | None = None,
) -> Iterator[Tier3Instance]:
    """Yield every combination of seed, network and mix whose matrix is there."""
    for seed in seeds:
        for network in networks:
            for mix in mixes:
                found = world(network, mix, seed, sigma=sigma, latency=latency)
                if found is not None:
                    yield found

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

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from placement import Instance, datasets
from placement.datasets.cloud_regions import Region
from placement.datasets.distance_rtt import modelled_rtt
from placement.errors import InputError
from placement.io import read_rtt
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.workloads import CONCENTRATION, MIXES, mix_shares

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


def read_matrix(path: Path) -> tuple[tuple[str, ...], FloatArray]:
    """Read a square table of RTTs in ms, in which cells may be empty.

    A pair that was measured in one direction has that RTT in both. A pair that was measured in none
    has the RTT of the quickest path over one other site; InputError without one. An empty diagonal
    becomes 1 ms.
    """
    table = read_rtt(path, "square")
    names, matrix = table.sources, table.values
    if names != table.destinations:
        raise InputError(
            "not a square table", source=str(path), expected="the same names in row and column 1"
        )
    matrix = np.where(np.isnan(matrix), matrix.T, matrix)
    diagonal = np.diag(matrix).copy()
    np.fill_diagonal(matrix, 0.0)
    for i, j in np.argwhere(np.isnan(matrix)).tolist():
        paths = matrix[i] + matrix[:, j]
        paths[[i, j]] = np.nan
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


def modelled_network(
    rng: np.random.Generator, sites: int = SITES
) -> tuple[tuple[str, ...], FloatArray]:
    """Take `sites` regions of the bundled clouds and model their RTTs from distance, in ms.

    The diagonal of the RTTs, shape (n, n), is 1 ms.
    """
    regions = list(_regions().values())
    keep = sorted(rng.permutation(len(regions))[:sites].tolist())
    points = np.array([(regions[i].lat, regions[i].lon) for i in keep])
    _, rtt = modelled_rtt(points, points[:1], rng)
    np.fill_diagonal(rtt, 1.0)
    return tuple(regions[i].id for i in keep), rtt


def _network(
    name: str, rng: np.random.Generator, latency: Path | None, sites: int
) -> tuple[tuple[str, ...], FloatArray] | None:
    """Return regions and RTTs of a network; None for a measured one without its file."""
    if name == "modelled":
        return modelled_network(rng, sites)
    if latency is None or not (path := latency / MATRICES[name]).exists():
        return None
    names, matrix = read_matrix(path)
    keep = np.sort(rng.permutation(len(names))[:sites])
    return tuple(names[i] for i in keep), matrix[np.ix_(keep, keep)]


def _regions() -> dict[str, Region]:
    return {
        f"{provider} {region.id}": region
        for provider in ("aws", "gcp", "azure")
        for region in datasets.regions(provider)
    }


def _domains(names: Sequence[str]) -> dict[str, tuple[str | None, ...]]:
    """Return country and continent of regions by name; nothing when one is not in the package."""
    known = {region.id: region for region in _regions().values()}
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

    `sigma` is the standard deviation of the logarithm of a client's demand. A client's own shares
    come from Dirichlet(100 · shares); an operation without a share is issued by no client.
    """
    return spread_demand(shares, np.exp(sigma * rng.standard_normal(clients)), rng)


def spread_demand(shares: FloatArray, weight: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw counts as :func:`demand`, for clients whose operations are `weight`, up to a factor."""
    present = shares > 0
    drawn = np.zeros((len(weight), len(shares)))
    drawn[:, present] = rng.dirichlet(CONCENTRATION * shares[present], size=len(weight))
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

    A network is ``modelled``, a key of :data:`MATRICES`, or one of :data:`BUNDLED`, which keeps its
    own sites. The shares of the five standard operations sum to 1. `rng` chooses the sites, models
    RTTs and draws the demand.
    """
    if network in BUNDLED:
        bundled = datasets.load(network)
        return bundled.replace(
            counts=demand(shares, len(bundled.clients), rng, sigma),
            operations=STANDARD_OPERATIONS,
            domains={level: bundled.domains[level] for level in LEVELS},
            intervals=(),
            name=name,
        )
    found = _network(network, rng, latency, sites)
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
        domains=_domains(names),
        name=name,
    )


def world(
    network: str,
    mix: str,
    seed: int,
    sites: int = SITES,
    sigma: float = SIGMA,
    latency: Path | None = None,
) -> Instance | None:
    """Build the instance of a network, a mix (a key of ``MIXES``) and a seed; None: no matrix."""
    numbers = [seed, sorted(MIXES).index(mix), number_of(network)]
    rng = np.random.default_rng(numbers)
    name = f"{network}, {mix}, seed {seed}"
    return instance_on(network, mix_shares(mix), rng, name, sites, sigma, latency)


def worlds(
    seeds: Sequence[int],
    networks: Sequence[str] = ("modelled", "aws-2025", "azure-2025"),
    mixes: Sequence[str] = tuple(MIXES),
    sigma: float = SIGMA,
    latency: Path | None = None,
) -> Iterator[tuple[tuple[str, str, int], Instance]]:
    """Yield (network, mix, seed) and instance of every combination whose matrix is there."""
    for seed in seeds:
        for network in networks:
            for mix in mixes:
                found = world(network, mix, seed, sigma=sigma, latency=latency)
                if found is not None:
                    yield (network, mix, seed), found

"""Networks and demand that are hard for exact search: detours, heavy tails, one large client.

Modelled networks need no file. Measured ones are read from the folder that ``--latency DIR`` names.
"""

from __future__ import annotations

import zipfile
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness.tier3_worlds import read_matrix, spread_demand
from placement import Instance, datasets
from placement.datasets.distance_rtt import RouteModel, modelled_rtt
from placement.errors import InputError
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.workloads import mix_shares

__all__ = [
    "DEMANDS",
    "MEASURED",
    "MODELLED",
    "Network",
    "hard_instance",
    "networks",
    "read_npz",
    "weights",
]

DEMANDS = ("pareto", "half", "unit")
"""Demand of the clients: Pareto with exponent 1.2; one client issues half; all issue the same."""

MODELLED = {"modelled-120": 120, "modelled-490": 490}
"""Networks without files, by name: number of sites."""

MEASURED = {
    "sky-42": "multicloud_skyplane_2022-04_aws_azure.csv",
    "wonder-238": "wonderproxy_2020-07_avg_clean.csv",
    "planetlab-490": "planetlab_median.npz",
}
"""Measured networks by name: file in the folder of latencies."""

_PARETO = 1.2
_ROUTES = RouteModel(spread=0.4, detours=1.0)


@dataclass(frozen=True)
class Network:
    """RTTs in ms between sites that are the clients; the diagonal is the figure within a site."""

    name: str
    rtt: FloatArray


def networks(
    wanted: Container[str] | None = None, latency: Path | None = None
) -> Iterator[Network]:
    """Yield the modelled networks, and the measured ones whose files are there.

    Parameters
    ----------
    wanted
        Names; None: all.
    latency
        Folder of measured latencies; None: there is none.

    Raises
    ------
    InputError
        For a file that cannot be read.
    """
    for name, sites in MODELLED.items():
        if wanted is None or name in wanted:
            yield _modelled(name, sites)
    for name, file in MEASURED.items():
        if wanted is not None and name not in wanted:
            continue
        if latency is not None and (path := latency / file).exists():
            rtt = read_npz(path) if path.suffix == ".npz" else read_matrix(path)[1]
            yield Network(name, rtt)


def read_npz(path: Path) -> FloatArray:
    """Read the square array ``rtt`` (ms) of a NumPy archive.

    Raises
    ------
    InputError
        When the file is no archive, has no such array, or the array is not square, finite and >= 0.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            rtt = np.array(archive["rtt"], dtype=np.float64)
    except (ValueError, KeyError, zipfile.BadZipFile, AttributeError) as error:
        raise InputError(
            "not a NumPy archive of RTTs",
            source=str(path),
            value=str(error),
            expected="an array 'rtt'",
        ) from None
    square = rtt.ndim == 2 and rtt.shape[0] == rtt.shape[1]
    if not (square and np.isfinite(rtt).all() and (rtt >= 0).all()):
        raise InputError(
            "not RTTs",
            source=str(path),
            field="rtt",
            value=f"an array of the shape {rtt.shape}",
            expected="a square array of finite numbers >= 0",
        )
    return rtt


def _modelled(name: str, sites: int) -> Network:
    """Sites near the bundled cities; no pair is relayed, so that many triangles are violated."""
    rng = np.random.default_rng([1, sites])
    cities = np.array([(city.lat, city.lon) for city in datasets.cities()])
    places = cities[rng.integers(len(cities), size=sites)] + rng.normal(0, 2, (sites, 2))
    places[:, 0] = places[:, 0].clip(-80, 80)
    _, rtt = modelled_rtt(places, places[:1], rng, _ROUTES)
    np.fill_diagonal(rtt, 1.0)
    return Network(name, rtt)


def weights(kind: str, clients: int, rng: np.random.Generator) -> FloatArray:
    """Return the demand of each client up to a factor.

    Parameters
    ----------
    kind
        One of :data:`DEMANDS`.
    clients
        How many.
    rng
        Source of all draws.
    """
    if kind == "pareto":
        return np.asarray(1.0 + rng.pareto(_PARETO, clients))
    weight = np.ones(clients)
    if kind == "half":
        weight[int(rng.integers(clients))] = max(1, clients - 1)
    return weight


def hard_instance(network: Network, mix: str, kind: str, seed: int) -> Instance:
    """Put demand on a network.

    Parameters
    ----------
    network
        Whose sites are the clients.
    mix
        An operation mix, a key of ``MIXES``.
    kind
        One of :data:`DEMANDS`.
    seed
        Of all draws.
    """
    sites = len(network.rtt)
    rng = np.random.default_rng([seed, sites, DEMANDS.index(kind)])
    weight = weights(kind, sites, rng)
    between = network.rtt.copy()
    np.fill_diagonal(between, 0.0)
    return Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"c{i}" for i in range(sites)),
        client_rtt=network.rtt,
        site_rtt=between,
        counts=spread_demand(mix_shares(mix), weight, rng),
        operations=STANDARD_OPERATIONS,
        name=f"{network.name} {mix} {kind}",
    )

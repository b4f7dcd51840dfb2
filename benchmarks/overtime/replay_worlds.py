"""Networks and tenants that :mod:`benchmarks.overtime.replay` runs on."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

import placement
from placement import Instance
from placement.datasets import regions
from placement.errors import MissingDependencyError
from placement.overtime.replay.generated_fleets import ClientGround
from placement.support.checks import FloatArray
from placement.workloads import Clients, Consumer, Curve, Database, Office, everywhere, mix_shares

__all__ = ["CLASSES", "NETWORKS", "POLES", "Tenant", "network", "poles", "tenants"]

_AWS = "aws_cloudping_2025-05_p50.csv"

NETWORKS = ("aws-2025", "azure", "aws", "gcp", "world27")
"""Measured AWS (from the folder that --latency names) and Azure, then three with modelled RTTs."""

POLES = ("New York", "Los Angeles", "Sao Paulo", "London", "Mumbai", "Tokyo")
"""Cities that tenants with two or three poles are at home in."""

CLASSES = (
    "world-wide consumers",
    "two poles, evening",
    "three poles, evening",
    "two poles, office",
    "three poles, office",
)
"""Tenants whose demand moves with the sun."""


@dataclass(frozen=True)
class Tenant:
    """A database and its class."""

    kind: str
    database: Database


def network(name: str, latency: Path | None = None) -> Instance | None:
    """Return a network as an instance whose own demand plays no part; None when it is not there.

    Parameters
    ----------
    name
        One of :data:`NETWORKS`.
    latency
        Folder of measured latencies; None: there is none.
    """
    if name == "aws-2025":
        return None if latency is None else _measured_aws(latency / _AWS)
    try:
        return placement.load(name)
    except MissingDependencyError:
        return None


def _measured_aws(path: Path) -> Instance | None:
    """32 AWS regions, measured medians of May 2025; a client in each."""
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    names = rows[0][1:]
    rtt = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    known = {region.id: region for region in regions("aws")}
    points = np.array([(known[name].lat, known[name].lon) for name in names])
    between = rtt.copy()
    np.fill_diagonal(between, 0.0)
    return Instance(
        sites=tuple(names),
        clients=tuple(names),
        client_rtt=rtt,
        site_rtt=between,
        counts=np.ones((len(names), 5)),
        site_coordinates=points,
        client_coordinates=points,
        name="aws-2025",
    )


def poles(clients: Clients, cities: tuple[str, ...], share: float = 0.9) -> FloatArray:
    """Return weights with equal parts of `share` at some cities and a global tail."""
    at = np.array([name in cities for name in clients.names])
    tail = np.where(at, 0.0, everywhere(clients))
    return np.where(at, share / len(cities), (1.0 - share) * tail / tail.sum())


def tenants(ground: ClientGround, mix: str) -> Iterator[Tenant]:
    """Yield the tenants of all classes: 3 global, and every pair and triple of `POLES`.

    Global consumers have peaks 2.5, 3.5 and 5 times their troughs; tenants at poles have
    the default curves (evening 3.5, office 8).
    """
    clients = ground.clients
    shapes: list[tuple[str, FloatArray, Curve]] = [
        (CLASSES[0], everywhere(clients), Consumer(ratio=ratio)) for ratio in (2.5, 3.5, 5.0)
    ]
    curves: tuple[tuple[Curve, str], ...] = ((Consumer(), "evening"), (Office(), "office"))
    for daily, words in curves:
        for count, word in ((2, "two"), (3, "three")):
            shapes += [
                (f"{word} poles, {words}", poles(clients, cities), daily)
                for cities in combinations(POLES, count)
            ]
    for index, (kind, weights, curve) in enumerate(shapes):
        yield Tenant(
            kind,
            Database(
                index=index,
                name=f"{kind} {index}",
                rate=1e5,
                weights=weights,
                mix=mix_shares(mix),
                curve=curve,
            ),
        )

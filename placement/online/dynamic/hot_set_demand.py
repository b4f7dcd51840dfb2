"""Demand with a hot set per generator: Zipf ranks on shuffled keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from placement.errors import InputError
from placement.online.dynamic.hash_ring import Ring, random_ring
from placement.online.dynamic.problem import ReplicationProblem
from placement.online.dynamic.site_geography import Geography
from placement.support.checks import (
    FloatArray,
    IntArray,
    instance_of,
    mapping,
    number,
    numbers_of,
    whole,
)

__all__ = ["Generators", "HotSetWorld", "RequestSource", "hot_set_world", "zipf"]


def zipf(keys: int, exponent: float = 0.99) -> FloatArray:
    """Probabilities of ranks 1 to `keys`, proportional to rank^(−exponent), shape (keys,)."""
    keys = whole(keys, "keys", minimum=1)
    exponent = number(exponent, "exponent")
    weights: FloatArray = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    weights /= weights.sum()
    return weights


@runtime_checkable
class RequestSource(Protocol):
    """Clients that ask, each at a site."""

    @property
    def site(self) -> IntArray:
        """Site of each client, shape (clients,)."""

    def reads(self, sites: int) -> FloatArray:
        """Share of all requests by site and key, shape (sites, keys); sums to 1."""


@dataclass(frozen=True, eq=False)
class Generators:
    """Generators of requests, each at a site and with its own order of popularity.

    Attributes
    ----------
    site
        Site of each generator, shape (generators,).
    order
        order[g, r] is the key of rank r for generator g, shape (generators, keys).
    common
        The order of the hot set that all share, shape (keys,).
    correlation
        Share of each generator's requests that follow `common`.
    popularity
        Probabilities of the ranks, shape (keys,).
    """

    site: IntArray
    order: IntArray
    common: IntArray
    correlation: float
    popularity: FloatArray

    def probabilities(self) -> FloatArray:
        """Probability of each key in the requests of each generator, shape (generators, keys)."""
        result = np.zeros(self.order.shape)
        for row, order in zip(result, self.order, strict=True):
            row[order] += (1 - self.correlation) * self.popularity
            row[self.common] += self.correlation * self.popularity
        return result

    def reads(self, sites: int) -> FloatArray:
        """Share of all requests by site and key, shape (sites, keys); sums to 1."""
        result = np.zeros((sites, len(self.common)))
        np.add.at(result, self.site, self.probabilities())
        return result / len(self.site)

    def restarted(self, generator: int, rng: np.random.Generator) -> Generators:
        """Return the generators after one of them was restarted with a new hot set."""
        order = self.order.copy()
        order[generator] = rng.permutation(order.shape[1])
        return Generators(self.site, order, self.common, self.correlation, self.popularity)


@dataclass(frozen=True, eq=False)
class HotSetWorld:
    """A store on a ring, and who asks it.

    Attributes
    ----------
    geography, ring
        Sites and nodes.
    keys
        Position of each key on the ring, shape (keys,).
    generators
        Who asks: :class:`Generators`, or the clients of a trace.
    static_copies
        Static copies of each object.
    """

    geography: Geography
    ring: Ring
    keys: FloatArray
    generators: RequestSource
    static_copies: int = 3

    def __post_init__(self) -> None:
        instance_of(self.geography, Geography, "geography", "a Geography")
        instance_of(self.ring, Ring, "ring", "a Ring")
        if not isinstance(self.generators, RequestSource):
            raise InputError(
                "no source of requests", field="generators", value=self.generators,
                expected="Generators, or the clients of a trace",
            )  # fmt: skip
        keys = numbers_of(self.keys, "keys")
        if keys.ndim != 1 or not ((keys >= 0) & (keys < 1)).all():
            raise InputError("not on the ring", field="keys", expected="positions from 0 to < 1")
        copies = whole(self.static_copies, "static_copies", minimum=1)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "static_copies", copies)

    def problem(self, capacity: int) -> ReplicationProblem:
        """Return the placement of `capacity` dynamic copies per site, with expected read rates."""
        return ReplicationProblem(
            self.geography,
            self.ring.static_sites(self.keys, self.static_copies),
            self.generators.reads(self.geography.count),
            np.array(capacity),
        )


def hot_set_world(
    geography: Geography,
    keys: int,
    streams: dict[str, np.random.Generator],
    *,
    correlation: float = 0.0,
    generators_per_site: int = 2,
    nodes_per_site: int = 16,
    static_copies: int = 3,
    exponent: float = 0.99,
) -> HotSetWorld:
    """Draw a store with its objects and preferences.

    Parameters
    ----------
    geography
        Sites.
    keys
        Number of objects that are asked for.
    streams
        Generators of randomness named "ring" and "demand".
    correlation
        Share of demand on a hot set common to all generators, 0 to 1.
    generators_per_site, nodes_per_site, static_copies
        2, 16 and 3 in the paper.
    exponent
        Of the Zipf distribution.
    """
    instance_of(geography, Geography, "geography", "a Geography")
    for cause in ("ring", "demand"):
        known = mapping(streams, "streams", "generators named 'ring' and 'demand'").get(cause)
        instance_of(known, np.random.Generator, f"streams[{cause!r}]", "a NumPy generator")
    number(correlation, "correlation", maximum=1.0)
    keys = whole(keys, "keys", minimum=1)
    generators_per_site = whole(generators_per_site, "generators_per_site", minimum=1)
    sites = geography.count
    ring = random_ring(streams["ring"], sites, nodes_per_site)
    position = streams["ring"].random(keys)
    demand = streams["demand"]
    owner = np.repeat(np.arange(sites), generators_per_site).astype(np.intp)
    common = demand.permutation(keys)
    order = np.stack([demand.permutation(keys) for _ in owner])
    generators = Generators(owner, order, common, correlation, zipf(keys, exponent))
    return HotSetWorld(geography, ring, position, generators, static_copies)

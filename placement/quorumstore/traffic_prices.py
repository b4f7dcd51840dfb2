"""Prices of traffic between sites and of stored copies.

The pattern is Cassandra's with nearest-first routing: a read fetches the object from the nearest
replica and digests from the R − 1 next nearest ones; a write is sent to all N replicas. With the
prices g[j, k] per GB from j to k, replica set S, Q_i the R replicas nearest to site i and m_i the
nearest of them,

    C = Σ_i reads_i · ( object · g[m_i, i] + digest · Σ_{j ∈ Q_i, j ≠ m_i} g[j, i] )
      + Σ_i writes_i · object · Σ_{j ∈ S} g[i, j]  +  Σ_{j ∈ S} storage_j .

Nearest replicas are by RTT, ties to the lower site index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from placement.errors import InputError
from placement.support.checks import FloatArray, nonnegative, number, whole

__all__ = ["TrafficPrices", "message_prices"]


@dataclass(frozen=True, eq=False)
class TrafficPrices:
    """Prices of inter-site traffic and of storage for one key.

    Parameters
    ----------
    traffic
        g[j, k], price per GB sent from site j to site k, shape (sites, sites). A zero diagonal
        makes local traffic free.
    storage
        Price of one replica at each site over the time the counts cover, shape (sites,); None:
        free.
    object_gb, digest_gb
        Size of the object and of a digest in GB.
    """

    traffic: FloatArray
    storage: FloatArray | None = None
    _: KW_ONLY
    object_gb: float = 1.0
    digest_gb: float = 0.0

    def __post_init__(self) -> None:
        for field in ("traffic", "storage"):
            values = getattr(self, field)
            absent = values is None and field == "storage"
            if not absent and (isinstance(values, (str, bytes)) or not np.iterable(values)):
                raise InputError(
                    "not a table of prices",
                    field=f"prices.{field}",
                    value=values,
                    expected="an array of numbers",
                )
        number(self.object_gb, "prices.object_gb")
        number(self.digest_gb, "prices.digest_gb")

    def checked(self, sites: Sequence[str]) -> TrafficPrices:
        """Return the prices validated against the sites, read-only."""
        storage = np.zeros(len(sites)) if self.storage is None else self.storage
        return TrafficPrices(
            nonnegative(self.traffic, "prices.traffic", [("site", sites), ("site", sites)]),
            nonnegative(storage, "prices.storage", [("site", sites)]),
            object_gb=number(self.object_gb, "prices.object_gb"),
            digest_gb=number(self.digest_gb, "prices.digest_gb"),
        )

    def fixed(self, writes: FloatArray) -> FloatArray:
        """Price of holding a replica at each site: its copies of all writes, and its storage.

        This part of C is linear in the replica set: Σ_{j ∈ S} fixed_j. Shape (sites,).
        """
        storage = np.zeros(len(self.traffic)) if self.storage is None else self.storage
        total = storage.astype(np.float64)
        for client, count in enumerate(writes):
            if count > 0:
                total = total + count * self.object_gb * self.traffic[client]
        return total


def message_prices(sites: int) -> TrafficPrices:
    """Prices that make C the number of inter-site messages: every read reply and write copy is 1.

    Examples
    --------
    >>> message_prices(2).traffic.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    sites = whole(sites, "sites", minimum=1, maximum=10_000)
    traffic = np.ones((sites, sites)) - np.eye(sites)
    traffic.flags.writeable = False
    return TrafficPrices(traffic, object_gb=1.0, digest_gb=1.0)

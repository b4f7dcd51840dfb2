"""Small random worlds for protocols: ties are frequent, every site has a region."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement import STANDARD_OPERATIONS, Instance, Operation

__all__ = ["REGIONS", "world"]

REGIONS = ("east", "west", "south")


def world(
    seed: int,
    sites: int = 7,
    clients: int = 4,
    operations: Sequence[Operation] = STANDARD_OPERATIONS,
    *,
    ties: bool = True,
) -> Instance:
    """Return a world of symmetric RTTs between sites; with `ties` they are few whole numbers."""
    rng = np.random.default_rng(seed)
    if ties:
        between = rng.integers(2, 9, (sites, sites)).astype(float) * 10
        client = rng.integers(0, 9, (clients, sites)).astype(float) * 10
    else:
        between = rng.uniform(10, 200, (sites, sites))
        client = rng.uniform(1, 200, (clients, sites))
    between = (between + between.T) / 2
    np.fill_diagonal(between, 0)
    counts = rng.integers(0, 5, (clients, len(operations))).astype(float)
    counts[0] += 1
    return Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"c{i}" for i in range(clients)),
        client_rtt=client,
        site_rtt=between,
        counts=counts,
        operations=tuple(operations),
        domains={"region": tuple(REGIONS[i % 3] for i in range(sites))},
        name=f"world {seed}",
    )

"""Replica sets next to a given one: the steps of every local search on quorum stores."""

from __future__ import annotations

import numpy as np

from placement.support.checks import IntArray

__all__ = ["swap_neighbours"]


def swap_neighbours(replicas: tuple[int, ...], sites: int) -> IntArray:
    """All sets that differ from `replicas` in one member; shape (N·(sites − N), N), rows sorted."""
    outside = [site for site in range(sites) if site not in replicas]
    rows = np.array(
        [
            [*replicas[:place], site, *replicas[place + 1 :]]
            for place in range(len(replicas))
            for site in outside
        ],
        dtype=np.intp,
    ).reshape(-1, len(replicas))
    rows.sort(axis=1)
    return rows

"""Waiting time of a write."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["WriteForwarding", "write_rtt"]


class WriteForwarding(StrEnum):
    """Moment at which a write is done. The paper does not say; the store's own protocol decides."""

    ONE = "one"
    """When the static copy that was asked has it; the others get it later."""
    ALL = "all"
    """When every copy has it, static and dynamic."""
    SITES = "sites"
    """When every site has answered: evictions from caches, broadcast and acknowledged."""


def write_rtt(
    rtt: FloatArray,
    coordinator: IntArray,
    held: BoolArray,
    home: IntArray,
    key: IntArray,
    forwarding: WriteForwarding,
) -> FloatArray:
    """Latency in ms of writes of `key` from `home`, shape (writes,).

    rtt[i, a] + max over the other sites j that must answer of rtt[a, j], a the coordinator: the
    closest static site. Another copy within a's site is not waited for.

    Parameters
    ----------
    rtt
        RTTs, shape (sites, sites).
    coordinator
        Closest static site, shape (sites, objects).
    held
        Copies, static and dynamic, shape (sites, objects).
    home, key
        Per write.
    forwarding
        Who must answer.
    """
    first = coordinator[home, key]
    result: FloatArray = rtt[home, first].copy()
    if forwarding is WriteForwarding.ONE:
        return result
    slowest = np.zeros(len(key))
    for site in range(len(rtt)):
        waited = (first != site) & ((forwarding is WriteForwarding.SITES) | held[site, key])
        np.maximum(slowest, np.where(waited, rtt[first, site], 0.0), out=slowest)
    return result + slowest

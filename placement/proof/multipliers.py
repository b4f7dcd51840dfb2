"""Multipliers β of closest assignment, as a certificate lists them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from placement.checks import FloatArray, IntArray

__all__ = ["Betas"]


class Betas:
    """β_cj >= 0 by client and site; those not listed are 0.

    Attributes
    ----------
    clients
        The clients with an entry, ascending, shape (k,).
    rows
        Which of them each entry belongs to, shape (entries,).
    sites
        Site of each entry, shape (entries,).
    values
        β of each entry, shape (entries,).
    """

    def __init__(self, entries: Iterable[tuple[int, int, float]] = ()) -> None:
        by_pair = {(client, site): value for site, client, value in entries}
        owners = np.array([client for client, _ in by_pair], dtype=np.intp)
        self.clients: IntArray
        self.clients, self.rows = np.unique(owners, return_inverse=True)
        self.sites: IntArray = np.array([site for _, site in by_pair], dtype=np.intp)
        self.values: FloatArray = np.array(list(by_pair.values()), dtype=np.float64)

    @classmethod
    def read(cls, entries: Sequence[Sequence[Any]], sites: int, clients: int) -> Betas:
        """Read the entries (site, client, value) of an event.

        Raises
        ------
        ValueError
            With the flaw: a value that is negative or not finite, or no such site or client.
        """
        found: list[tuple[int, int, float]] = []
        for site, client, value in entries:
            if not (value >= 0 and math.isfinite(value)):
                raise ValueError("a closest-assignment multiplier is negative")
            if not (0 <= site < sites and 0 <= client < clients):
                raise ValueError("a multiplier belongs to no site or client")
            found.append((index(site), index(client), float(value)))
        return cls(found)

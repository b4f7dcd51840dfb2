"""Requests of a quorum store's key from the counts of an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.quorumstore.problem import CountArray

__all__ = ["site_requests"]

_SCALE = 1_000_000
"""Requests in all where an instance counts in fractions: a rounding below a millionth each."""


def site_requests(instance: Instance) -> tuple[CountArray, CountArray]:
    """Return the reads and writes that enter at each site, shape (sites,) each.

    Requests of a client enter at the site closest to it (ties: the first). Transactions are writes,
    all other operations reads. Where the counts are not whole numbers they are scaled to a million
    requests in all and rounded, because percentiles count requests.

    Parameters
    ----------
    instance
        Its counts are added over all intervals; RTTs that vary by interval are averaged.

    Raises
    ------
    InputError
        When no client reads.
    """
    from placement.model.read_write_counts import reads_and_writes

    table = instance.client_rtt
    nearest = (table.mean(axis=0) if table.ndim == 3 else table).argmin(axis=1)
    counts = [
        np.bincount(nearest, weights=issued, minlength=len(instance.sites))
        for issued in reads_and_writes(instance)
    ]
    total = sum(float(side.sum()) for side in counts)
    if any((side != np.floor(side)).any() for side in counts):
        counts = [np.rint(side * (_SCALE / total)) for side in counts]
    return counts[0].astype(np.int64), counts[1].astype(np.int64)

"""Multipliers for one leader from those of another: what a glance at many leaders starts from."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from formulations.exact.reduced_problem import Core
from placement.checks import FloatArray

__all__ = ["adapted"]

_BITS = 16
"""Of the largest multiplier: certificates are as short as those of the scan, bounds no worse."""


def adapted(
    core: Core, u: FloatArray, leader: int, replicas: Sequence[int], others: Sequence[int]
) -> FloatArray:
    """Guess good multipliers of other leaders.

    A multiplier is about what its client costs. When the leader changes, the relay from the
    client's replica does: u_c + B_c (d(r, ℓ') − d(r, ℓ)), r the nearest of the replicas.

    Parameters
    ----------
    core
        The problem.
    u
        Good multipliers under `leader`, in ms times operations, shape (active clients,).
    leader
        Site index.
    replicas
        Good replica sites for it; at least one.
    others
        Leaders to guess for.

    Returns
    -------
    FloatArray
        Multipliers >= 0, shape (others, active clients); any numbers give valid bounds. O(others
        · clients) time.
    """
    rtt = core.client_rtt[core.active][:, list(replicas)]
    nearest = np.asarray(replicas, dtype=np.intp)[rtt.argmin(axis=1)]
    relay, between = core.demand.relay[0][core.active], core.site_rtt
    base = u - relay * between[nearest, leader]
    out = np.empty((len(others), len(u)))
    for row, other in zip(out, others, strict=True):
        np.maximum(base + relay * between[nearest, other], 0.0, out=row)
    largest = float(out.max(initial=0.0))
    if largest > 0:
        grain = math.ldexp(1.0, math.frexp(largest)[1] - _BITS)
        np.rint(out / grain, out=out)
        out *= grain
    return out

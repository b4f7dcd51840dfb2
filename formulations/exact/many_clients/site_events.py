"""Events of a proof on some of the sites, written on all of them."""

from __future__ import annotations

import numpy as np

from placement.support.checks import FloatArray, IntArray

__all__ = ["events_on_sites"]

_FIX, _CLOSE, _ENUMERATE, _BRANCH, _BETA, _PART, _EVENTS_OF, _TRANSFER = range(1, 9)
"""Kinds of events, as in certificate_events."""


def events_on_sites(flat: FloatArray, keep: IntArray, clients: int, first: int = 0) -> FloatArray:
    """Return recorded events with other numbers of sites.

    Parameters
    ----------
    flat
        Numbers as a kernel recorded them; whole events.
    keep
        The number of each site that the kernel knows, shape (its sites,).
    clients
        Number of active clients.
    first
        Added to the numbers of parts.
    """
    out = flat.copy()
    number = keep.astype(np.float64)
    at = 0
    while at < len(out):
        kind, value = int(out[at]), out[at + 1]
        at += 2
        if kind == _BRANCH:
            out[at - 1] = number[int(value)]
        elif kind in (_PART, _EVENTS_OF):
            out[at - 1] += first
        elif kind == _BETA:
            sites = out[at : at + 3 * int(value) : 3]
            sites[:] = number[sites.astype(np.intp)]
            at += 3 * int(value)
        elif kind == _TRANSFER:
            sites = out[at + 1 : at + 4 * int(value) : 4]
            sites[:] = number[sites.astype(np.intp)]
            at += 4 * int(value)
        elif kind in (_FIX, _CLOSE):
            at += clients
            for _ in range(2 if kind == _FIX else 0):
                count = int(out[at])
                sites = out[at + 1 : at + 1 + count]
                sites[:] = number[sites.astype(np.intp)]
                at += 1 + count
        elif kind != _ENUMERATE:
            raise AssertionError(f"a kernel recorded an unknown event {kind}")
    return out

"""Units of RTTs that come without one: seconds and microseconds are recognised by size."""

from __future__ import annotations

import numpy as np

from placement.io.rtt_table import RttTable

__all__ = ["likely_unit"]

_LEAST_LARGEST = 1.0
_MOST_MEDIAN = 10_000.0


def likely_unit(table: RttTable) -> tuple[str, float] | None:
    """Return the unit that RTTs seem to have, and the largest of them; None for milliseconds.

    Sites whose RTTs are all below 1 ms, or with a median above 10 s, are not what a planner of
    sites measures.
    """
    same = np.array([[a == b for b in table.destinations] for a in table.sources])
    values = table.values[..., ~same]
    values = values[np.isfinite(values) & (values > 0)]
    if not values.size:
        return None
    largest = float(values.max())
    if largest < _LEAST_LARGEST:
        return "s", largest
    if float(np.median(values)) > _MOST_MEDIAN:
        return ("ns" if largest > 1000 * _MOST_MEDIAN else "us"), largest
    return None

"""Shared parts of simulators: independent random streams, one per cause, and latencies summed up.

Common random numbers: random events of a system (speeds, arrivals, work) are drawn from streams
that no policy touches. Two policies compared under one seed therefore differ only by their
decisions. Without this, ratios between policies are not comparable: the same policy under
another seed moves by up to a third of its value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.errors import InputError

__all__ = ["CAUSES", "Latencies", "checked_seed", "spawn_streams", "summarise"]

CAUSES = ("speeds", "arrivals", "work", "shadow", "policy")
"""Server speeds; arrivals with their client and key; work per request; extra reads; what a policy
draws for itself."""


def checked_seed(seed: object) -> int:
    """Check a seed, a whole number >= 0 of any size, and return it as an int."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError("no seed", field="seed", value=seed, expected="a whole number >= 0")
    return int(seed)


def spawn_streams(seed: int, causes: Sequence[str] = CAUSES) -> dict[str, np.random.Generator]:
    """Return one independent generator per cause.

    The k-th cause gets the k-th child of ``numpy.random.SeedSequence(seed)``: appending a cause
    leaves the streams of the others as they were.

    Parameters
    ----------
    seed
        A whole number >= 0.
    causes
        Distinct names.

    Raises
    ------
    InputError
        For a negative seed, one that is no whole number, or causes that are not distinct.

    Examples
    --------
    >>> streams = spawn_streams(7)
    >>> list(streams)
    ['speeds', 'arrivals', 'work', 'shadow', 'policy']
    >>> float(streams["work"].random()) == float(spawn_streams(7)["work"].random())
    True
    """
    root = np.random.SeedSequence(checked_seed(seed))
    if len(set(causes)) != len(causes):
        raise InputError(
            "a cause is named twice", field="causes", value=tuple(causes), expected="unique names"
        )
    children = root.spawn(len(causes))
    return {
        cause: np.random.default_rng(child) for cause, child in zip(causes, children, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Latencies:
    """Summary of end-to-end latencies, in ms.

    Attributes
    ----------
    n
        How many requests count.
    mean, p50, p95, p99, p999
        Mean and percentiles, by linear interpolation between order statistics
        (``numpy.percentile(..., method="linear")``); NaN when n = 0.
    """

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    p999: float


def summarise(latency_ms: npt.ArrayLike) -> Latencies:
    """Summarise latencies in ms; an empty array gives n = 0 and NaN.

    Raises
    ------
    InputError
        When a latency is NaN, infinite or negative, which no simulator may return.

    Examples
    --------
    >>> summarise([1.0, 2.0, 3.0, 4.0]).p50
    2.5
    """
    values = np.asarray(latency_ms, dtype=np.float64).ravel()
    if not values.size:
        return Latencies(0, math.nan, math.nan, math.nan, math.nan, math.nan)
    if not np.isfinite(values).all() or values.min() < 0:
        worst = values[~np.isfinite(values) | (values < 0)][0]
        raise InputError(
            "not a latency",
            field="latency_ms",
            value=float(worst),
            expected="finite milliseconds >= 0",
        )
    p50, p95, p99, p999 = np.percentile(values, [50.0, 95.0, 99.0, 99.9], method="linear")
    return Latencies(
        int(values.size), float(values.mean()), float(p50), float(p95), float(p99), float(p999)
    )

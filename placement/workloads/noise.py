"""Noise: first-order autoregressive processes, on the log of demand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placement.errors import InputError
from placement.support.checks import FloatArray, number

__all__ = ["AR1", "autoregress"]


@dataclass(frozen=True, slots=True)
class AR1:
    """A stationary process x(t) = φ·x(t−1) + e(t) with standard deviation `sd`.

    Parameters
    ----------
    lag1
        φ, the autocorrelation at lag 1, in (−1, 1).
    sd
        Standard deviation of x, not of its innovations e.
    """

    lag1: float
    sd: float

    def __post_init__(self) -> None:
        number(self.sd, "sd")
        if not -1.0 < number(self.lag1, "lag1", minimum=-math.inf) < 1.0:
            raise InputError(
                "not stationary", field="lag1", value=self.lag1, expected="between -1 and 1"
            )


def autoregress(normals: FloatArray, lag1: FloatArray, sd: FloatArray) -> FloatArray:
    """Turn independent standard normals into stationary AR(1) series, many at once.

    x(0) = sd·z(0),    x(t) = φ·x(t−1) + sd·√(1 − φ²)·z(t)

    Parameters
    ----------
    normals
        Standard normals z, shape (T, …).
    lag1, sd
        φ and standard deviation; broadcast against the trailing axes of `normals`.

    Returns
    -------
    FloatArray
        Series of the shape of `normals`, which is not changed. O(size), T steps in Python.
    """
    series = normals * (sd * np.sqrt(1.0 - lag1 * lag1))
    if len(series):
        series[0] = normals[0] * sd  # starts in its stationary law: no warm-up to throw away
    for t in range(1, len(series)):
        series[t] += lag1 * series[t - 1]
    return series

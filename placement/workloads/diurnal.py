"""Diurnal curves: how demand follows the local clock, with a mean of 1 over a week."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from placement.support.checks import BoolArray, FloatArray, number

__all__ = ["Consumer", "Curve", "Flat", "Office"]


class Curve(Protocol):
    """A factor on demand by local hour and day of rest."""

    def __call__(self, hour: FloatArray, weekend: BoolArray) -> FloatArray:
        """Return the factor at each local hour; its mean over a week of real days is 1."""
        ...


@dataclass(frozen=True, slots=True)
class Consumer:
    """People at home: quietest before dawn, busiest in the evening.

    From the trough up to the peak, and down again, along half a cosine each:

        f(h) = 1 + (ratio − 1) · (1 − cos πu)/2,    u = share of the way from trough to peak

    Parameters
    ----------
    ratio
        Peak over trough; 2.5 to 5 is usual.
    peak, trough
        Local hours; peaks between 20 and 22 h are usual.
    weekend
        Mean of a day of rest over that of a working day; 1.0 to 1.1 is usual.
    """

    ratio: float = 3.5
    peak: float = 21.0
    trough: float = 4.5
    weekend: float = 1.05

    def __post_init__(self) -> None:
        number(self.ratio, "ratio", minimum=1.0)
        number(self.weekend, "weekend")
        number(self.trough, "trough")
        number(self.peak, "peak", minimum=self.trough, above=True)
        number(24.0 - self.peak, "24 h - peak", above=True)

    def __call__(self, hour: FloatArray, weekend: BoolArray) -> FloatArray:
        """Return the factor at each local hour."""
        rise = self.peak - self.trough
        since = np.mod(hour - self.trough, 24.0)
        way = np.where(since <= rise, since / rise, (24.0 - since) / (24.0 - rise))
        shape = 1.0 + (self.ratio - 1.0) * 0.5 * (1.0 - np.cos(np.pi * way))
        mean = 1.0 + (self.ratio - 1.0) * 0.5  # half a cosine has mean 1/2, however stretched
        return _week(shape / mean, weekend, self.weekend)


@dataclass(frozen=True, slots=True)
class Office:
    """People at work: a plateau in office hours, with an hour's slope at either end.

    Parameters
    ----------
    ratio
        Plateau over night; 3 to 15 is usual.
    begin, end
        Local hours at which half the plateau is reached.
    weekend
        Mean of a day of rest over that of a working day; 0.45 to 0.65 is usual.
    """

    ratio: float = 8.0
    begin: float = 9.0
    end: float = 17.0
    weekend: float = 0.55

    def __post_init__(self) -> None:
        number(self.ratio, "ratio", minimum=1.0)
        number(self.weekend, "weekend")
        number(self.begin, "begin", minimum=0.5)
        number(self.end, "end", minimum=self.begin + 1.0)
        number(23.5 - self.end, "23.5 h - end")

    def __call__(self, hour: FloatArray, weekend: BoolArray) -> FloatArray:
        """Return the factor at each local hour."""
        window = _smooth(hour - self.begin + 0.5) - _smooth(hour - self.end + 0.5)
        shape = 1.0 + (self.ratio - 1.0) * window
        mean = 1.0 + (self.ratio - 1.0) * (self.end - self.begin) / 24.0
        return _week(shape / mean, weekend, self.weekend)


@dataclass(frozen=True, slots=True)
class Flat:
    """Machines: the same at all hours."""

    def __call__(self, hour: FloatArray, weekend: BoolArray) -> FloatArray:
        """Return ones."""
        return np.ones(np.broadcast(hour, weekend).shape)


def _smooth(x: FloatArray) -> FloatArray:
    """Smooth step 3x² − 2x³ from 0 at x <= 0 to 1 at x >= 1; its mean over [0, 1] is 1/2."""
    clipped = np.clip(x, 0.0, 1.0)
    return clipped * clipped * (3.0 - 2.0 * clipped)


def _week(factor: FloatArray, weekend: BoolArray, ratio: float) -> FloatArray:
    """Scale days of rest by `ratio`, and all days so that five and two of rest average 1."""
    result: FloatArray = factor * np.where(weekend, ratio, 1.0) * (7.0 / (5.0 + 2.0 * ratio))
    return result

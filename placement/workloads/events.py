"""Events: what happens to demand besides the time of day.

An event takes the expected rates of one database, shape (intervals, clients), in operations per
interval, and returns them changed. Times are hours from the start of the timeline, except where a
date or the local clock is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Protocol, runtime_checkable

import numpy as np

from placement.errors import InputError
from placement.support.checks import FloatArray, number
from placement.workloads.calendar import LocalTime, Timeline
from placement.workloads.footprints import Clients

__all__ = [
    "Event",
    "FlashCrowd",
    "Holiday",
    "Launch",
    "Migration",
    "NightlyBatch",
    "Outage",
    "Scene",
]


@dataclass(frozen=True, eq=False)
class Scene:
    """Time and place of all events.

    Attributes
    ----------
    timeline
        The intervals.
    clients
        The client clusters.
    local
        The local clock at each client.
    """

    timeline: Timeline
    clients: Clients
    local: LocalTime


@runtime_checkable
class Event(Protocol):
    """Something that changes rates."""

    def apply(self, rates: FloatArray, scene: Scene) -> FloatArray:
        """Return the changed rates, shape (intervals, clients); the argument is left alone."""
        ...


@dataclass(frozen=True, slots=True)
class FlashCrowd:
    """Event in one country: a ramp of an interval or two, then an exponential decay.

        factor(t) = 1 + (peak − 1)·(t − at)/ramp                     while at <= t < at + ramp
        factor(t) = 1 + (peak − 1)·2^(−(t − at − ramp)/half_life)    after that

    Parameters
    ----------
    country
        ISO 3166-1 alpha-2.
    at
        Begin, h.
    peak
        Greatest factor; 3 to 20 is usual.
    ramp, half_life
        Hours; 0.5 to 1, and 1 to 4, are usual.
    """

    country: str
    at: float
    peak: float = 10.0
    ramp: float = 1.0
    half_life: float = 2.0

    def __post_init__(self) -> None:
        number(self.peak, "peak", minimum=1.0)
        number(self.ramp, "ramp", above=True)
        number(self.half_life, "half_life", above=True)

    def factor(self, hours: FloatArray) -> FloatArray:
        """Return the factor at each time (h since the start of the timeline)."""
        since = hours - self.at
        up = np.clip(since / self.ramp, 0.0, 1.0)
        down = np.exp2(-np.maximum(since - self.ramp, 0.0) / self.half_life)
        return 1.0 + (self.peak - 1.0) * up * down

    def apply(self, rates: FloatArray, scene: Scene) -> FloatArray:
        """Multiply the country's rates by the factor."""
        there = scene.clients.where(scene.clients.countries, self.country, "country")
        factor = self.factor(scene.timeline.middle_hours)
        return rates * np.where(there, factor[:, np.newaxis], 1.0)


@dataclass(frozen=True, slots=True)
class Holiday:
    """A day off in one country, from local midnight to local midnight.

    Parameters
    ----------
    country
        ISO 3166-1 alpha-2.
    day
        The date there.
    factor
        On all demand of that day: about 0.3 for office tenants, 1.1 for consumers.
    """

    country: str
    day: date
    factor: float = 0.3

    def __post_init__(self) -> None:
        number(self.factor, "factor")

    def apply(self, rates: FloatArray, scene: Scene) -> FloatArray:
        """Multiply the country's rates of that date by the factor."""
        there = scene.clients.where(scene.clients.countries, self.country, "country")
        off = there & (scene.local.ordinal == self.day.toordinal())
        return rates * np.where(off, self.factor, 1.0)


@dataclass(frozen=True, slots=True)
class Outage:
    """A client cluster that is down for a while.

    Parameters
    ----------
    client
        Index of the cluster.
    at, hours
        Begin and length, h.
    redirect
        Index of the cluster that its users are sent to meanwhile; None: they wait.
    """

    client: int
    at: float
    hours: float
    redirect: int | None = None

    def __post_init__(self) -> None:
        number(self.hours, "hours", above=True)
        if self.redirect == self.client:
            raise InputError(
                "a cluster that is down takes no traffic",
                field="redirect",
                value=self.redirect,
                expected="another client",
            )

    def apply(self, rates: FloatArray, scene: Scene) -> FloatArray:
        """Set the cluster's rates to 0 during the outage, and add them to those of `redirect`."""
        time = scene.timeline.middle_hours
        down = (time >= self.at) & (time < self.at + self.hours)
        changed = rates.copy()
        changed[down, self.client] = 0.0
        if self.redirect is not None:
            changed[down, self.redirect] += rates[down, self.client]
        return changed


@dataclass(frozen=True, slots=True)
class Launch:
    """A continent on which the service starts: nothing before, then a linear ramp to full demand.

    Parameters
    ----------
    continent
        Label, as the clients carry it.
    at
        Begin, h.
    days
        Length of the ramp; 0: at once.
    """

    continent: str
    at: float
    days: float = 7.0

    def __post_init__(self) -> None:
        number(self.days, "days")

    def apply(self, rates: FloatArray, scene: Scene) -> FloatArray:
        """Multiply the continent's rates by the ramp."""
        there = scene.clients.where(scene.clients.continents, self.continent, "continent")
        ramp = _ramp(scene.timeline.middle_hours - self.at, 24.0 * self.days)
        return rates * np.where(there, ramp[:, np.newaxis], 1.0)


@dataclass(frozen=True, slots=True)
class Migration:
    """A tenant that moves from one cluster to another over days; the sum of demand is kept.

    Parameters
    ----------
    source, target
        Indices of the clusters.
    at
        Begin, h.
    days
        Time over which the moved share grows, linearly, to all; 0: at once.
    """

    source: int
    target: int
    at: float
    days: float = 3.0

    def __post_init__(self) -> None:
        number(self.days, "days")
        if self.source == self.target:
            raise InputError(
                "a migration to where it came from",
                field="target",
                value=self.target,
                expected="another client",
            )

    def apply(self, rates: FloatArray, scene: Scene) -> FloatArray:
        """Move a growing share of the source's rates to the target."""
        moved = rates[:, self.source] * _ramp(
            scene.timeline.middle_hours - self.at, 24.0 * self.days
        )
        changed = rates.copy()
        changed[:, self.source] -= moved
        changed[:, self.target] += moved
        return changed


@dataclass(frozen=True, slots=True)
class NightlyBatch:
    """A job that writes from one cluster at the same local hours every night.

    Its operations are single-group transactions on top of the database's own mix, so it is no
    :class:`Event`: a database lists its batches apart.

    Parameters
    ----------
    client
        Index of the cluster.
    rate
        Operations per interval while it runs.
    begin, hours
        Local hour it starts at, and how long it runs, h (it may run past midnight).
    """

    client: int
    rate: float
    begin: float = 1.0
    hours: float = 3.0

    def __post_init__(self) -> None:
        number(self.rate, "rate")
        number(self.begin, "begin")
        number(24.0 - self.begin, "24 h - begin", above=True)
        number(self.hours, "hours", above=True)
        number(24.0 - self.hours, "24 h - hours")

    def written(self, scene: Scene) -> FloatArray:
        """Return the expected transactions of the job per interval, shape (intervals,)."""
        since = np.mod(scene.local.hour[:, self.client] - self.begin, 24.0)
        return np.where(since < self.hours, self.rate, 0.0)


def _ramp(since: FloatArray, length: float) -> FloatArray:
    """0 before time 0, 1 from `length` on, linear between."""
    if length == 0.0:
        return (since >= 0.0).astype(np.float64)
    return np.clip(since / length, 0.0, 1.0)

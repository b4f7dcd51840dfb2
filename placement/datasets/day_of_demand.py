"""The default workload of the bundled data sets: one global service on one real day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TypedDict

import numpy as np

from placement.datasets.cloud_regions import City
from placement.model.operations import Operation
from placement.support.checks import FloatArray, IntArray

__all__ = [
    "DAY",
    "DEFAULT_MIX",
    "RATE",
    "DayOfDemand",
    "InstanceArguments",
    "day_of_demand",
    "default_day",
    "gather",
]

DAY = date(2026, 3, 18)
"""A Wednesday, from midnight to midnight UTC; America is on summer time already, Europe is not."""

DEFAULT_MIX = "social"
"""Operation mix when none is asked for; a name of :data:`placement.workloads.MIXES`."""

RATE = 1_000_000.0
"""Mean operations per half hour, over all clients."""


class InstanceArguments(TypedDict):
    """Keyword arguments of :class:`placement.Instance`."""

    name: str
    sites: tuple[str, ...]
    clients: tuple[str, ...]
    operations: tuple[Operation, ...]
    client_rtt: FloatArray
    site_rtt: FloatArray
    counts: FloatArray
    intervals: tuple[str, ...]
    domains: dict[str, tuple[str, ...]]
    site_coordinates: FloatArray
    client_coordinates: FloatArray
    provenance: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class DayOfDemand:
    """Counts of one day, drawn.

    Attributes
    ----------
    counts
        Operations, shape (48, cities, 5).
    intervals
        Begin of each half hour, UTC.
    sentence
        Where the numbers come from.
    """

    counts: FloatArray
    intervals: tuple[str, ...]
    sentence: str


def day_of_demand(
    cities: tuple[City, ...], *, mix: str | None = None, seed: int = 0, day: date = DAY
) -> DayOfDemand:
    """Draw the demand of some cities for one global service in 48 half hours.

    Demand goes with internet users ^ 0.7 and follows the consumers' evening at each city's own
    clock, with daily and half-hourly noise; counts are Poisson.

    Raises
    ------
    InputError
        For an unknown mix.
    """
    from placement.workloads import Clients, Timeline, generate, standard_database

    name = DEFAULT_MIX if mix is None else mix
    clients = Clients.from_cities(cities)
    timeline = Timeline.of_day(day)
    database = standard_database(clients, name, RATE)
    (block,) = generate([database], clients, timeline, seed=seed)
    return DayOfDemand(
        counts=block.counts[0].astype(np.float64),
        intervals=timeline.labels,
        sentence=_sentence(name, day, len(cities), seed),
    )


def default_day(counts: FloatArray) -> DayOfDemand:
    """Return the default day, whose counts have been drawn before by :func:`day_of_demand`.

    Parameters
    ----------
    counts
        Operations, shape (48, cities, 5), drawn with the default mix, seed 0 and :data:`DAY`.
    """
    moments = (divmod(30 * half, 60) for half in range(counts.shape[0]))
    return DayOfDemand(
        counts=counts,
        intervals=tuple(f"{DAY:%Y-%m-%d}T{hour:02}:{minute:02}Z" for hour, minute in moments),
        sentence=_sentence(DEFAULT_MIX, DAY, counts.shape[1], 0),
    )


def _sentence(mix: str, day: date, cities: int, seed: int) -> str:
    return (
        f"Demand is synthetic: one world-wide consumer service with the operation mix {mix!r}, "
        f"about {RATE:,.0f} operations per half hour, over the 24 hours of {day:%Y-%m-%d} (UTC), "
        f"spread over {cities} metropolitan areas by internet users ^ 0.7; Poisson counts, "
        f"seed {seed}."
    )


def gather(counts: FloatArray, owner: IntArray, owners: int) -> FloatArray:
    """Add up the counts of cities by the client that serves each city.

    Parameters
    ----------
    counts
        Shape (intervals, cities, operations).
    owner
        Index of each city's owner, shape (cities,).
    owners
        How many there are.

    Returns
    -------
    FloatArray
        Shape (intervals, owners, operations).
    """
    total = np.zeros((counts.shape[0], owners, counts.shape[2]))
    for city, index in enumerate(owner):
        total[:, index] += counts[:, city]
    return total

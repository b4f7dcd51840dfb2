"""Real dates: intervals of a timeline, and what the clock on the wall says at each client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from placement.errors import InputError
from placement.support.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    elements,
    instance_of,
    text,
    whole,
)

__all__ = ["FRIDAY_SATURDAY", "LocalTime", "Timeline", "local_time"]

FRIDAY_SATURDAY = frozenset(
    {
        "AF",
        "BD",
        "BH",
        "DZ",
        "EG",
        "IL",
        "IQ",
        "IR",
        "JO",
        "KW",
        "LY",
        "OM",
        "QA",
        "SA",
        "SD",
        "SY",
        "YE",
    }
)
"""Countries taken to rest on Friday and Saturday (2025; in AF and IR, Friday is the fixed day); the
others rest on Saturday and Sunday."""


_MOST = 10**8
"""Most intervals, and most minutes of an interval: dates end in the year 9999."""


@dataclass(frozen=True)
class Timeline:
    """Consecutive intervals of equal length.

    Parameters
    ----------
    start
        Begin of the first interval, with a time zone; kept in UTC.
    intervals
        How many.
    minutes
        Length of each.

    Raises
    ------
    InputError
        For a start without a zone, no interval, or a length that is not positive.
    """

    start: datetime
    intervals: int = 48
    minutes: int = 30

    def __post_init__(self) -> None:
        instance_of(self.start, datetime, "start", "an aware datetime")
        if self.start.tzinfo is None:
            raise InputError(
                "a start without a time zone",
                field="start",
                value=self.start,
                expected="an aware datetime, e.g. datetime(2026, 3, 18, tzinfo=UTC)",
            )
        for field, value in (("intervals", self.intervals), ("minutes", self.minutes)):
            whole(value, field, minimum=1, maximum=_MOST)
        object.__setattr__(self, "start", self.start.astimezone(UTC))

    @classmethod
    def of_day(cls, day: date, intervals: int = 48, minutes: int = 30) -> Timeline:
        """Return the timeline that starts at midnight UTC of a date."""
        instance_of(day, date, "day", "a datetime.date")
        return cls(datetime(day.year, day.month, day.day, tzinfo=UTC), intervals, minutes)

    @property
    def per_day(self) -> float:
        """Intervals in 24 hours."""
        return 24 * 60 / self.minutes

    @cached_property
    def starts(self) -> tuple[datetime, ...]:
        """Begin of each interval, UTC."""
        step = timedelta(minutes=self.minutes)
        return tuple(self.start + k * step for k in range(self.intervals))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Begin of each interval as text, e.g. ``2026-03-18T00:30Z``."""
        return tuple(f"{moment:%Y-%m-%dT%H:%M}Z" for moment in self.starts)

    @cached_property
    def middle_hours(self) -> FloatArray:
        """Hours from the start of the timeline to the middle of each interval, shape (T,)."""
        steps = np.arange(self.intervals, dtype=np.float64)
        return (steps + 0.5) * (self.minutes / 60)

    @cached_property
    def day(self) -> IntArray:
        """Number of 24-hour days since the start, for each interval, shape (T,)."""
        return np.floor(self.middle_hours / 24).astype(np.intp)

    @property
    def days(self) -> int:
        """Days begun."""
        return math.ceil(self.intervals / self.per_day)


@dataclass(frozen=True, eq=False)
class LocalTime:
    """The clock on the wall in the middle of each interval; arrays of shape (intervals, clients).

    Attributes
    ----------
    hour
        Local hour of the day, in [0, 24).
    ordinal
        Local date, as its proleptic Gregorian ordinal (``date.toordinal``).
    weekend
        Whether that date is a day of rest there.
    """

    hour: FloatArray
    ordinal: IntArray
    weekend: BoolArray


def local_time(timeline: Timeline, timezones: Sequence[str], countries: Sequence[str]) -> LocalTime:
    """Return the local clock of clients, by the zone rules (summer time included) of those dates.

    Parameters
    ----------
    timeline
        The intervals.
    timezones, countries
        IANA zone and ISO 3166-1 alpha-2 country of each client.

    Raises
    ------
    InputError
        For a zone that the system's zone data does not know.

    Notes
    -----
    O(intervals · distinct zones) conversions; clients of one zone share them.
    """
    instance_of(timeline, Timeline, "timeline", "a Timeline")
    timezones = tuple(
        text(zone, "timezones") for zone in elements(timezones, "timezones", "names of zones")
    )
    countries = tuple(
        instance_of(country, str, "countries", "a code of two letters")
        for country in elements(countries, "countries", "codes of countries")
    )
    if len(timezones) != len(countries) or not timezones:
        raise InputError(
            "one country and one zone per client are needed",
            field="timezones" if not timezones else "countries",
            value=len(countries),
            expected=f"as many as zones ({len(timezones)}), at least one",
        )
    half = timedelta(minutes=timeline.minutes / 2)
    middles = [begin + half for begin in timeline.starts]
    zones = sorted(set(timezones))
    hour = np.empty((timeline.intervals, len(zones)))
    ordinal = np.empty((timeline.intervals, len(zones)), dtype=np.intp)
    for column, name in enumerate(zones):
        try:
            zone = ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError):
            raise InputError(
                "unknown time zone", field="timezone", value=name, expected="an IANA zone"
            ) from None
        for row, moment in enumerate(middles):
            local = moment.astimezone(zone)
            hour[row, column] = local.hour + local.minute / 60 + local.second / 3600
            ordinal[row, column] = local.toordinal()
    place = [zones.index(name) for name in timezones]
    dates = ordinal[:, place]
    rest = np.array(
        [4 if country in FRIDAY_SATURDAY else 5 for country in countries], dtype=np.intp
    )
    weekday = (dates - 1) % 7  # ordinal 1, 0001-01-01, is a Monday
    weekend = (weekday == rest) | (weekday == rest + 1)
    return LocalTime(hour[:, place], dates, weekend)

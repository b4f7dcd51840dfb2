"""Where and when operations are issued: shares of clients, time zones, hours, days, and events.

A `Timeline` cuts a period into intervals. A curve weighs the hours of the local time. The events
(holidays, launches, outages, ...) change the rates or the places of a period.

Demand of a cluster goes with internet users ^ 0.7: large metros are served by more than one
cluster, and a user of a small one is not worth less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Protocol, runtime_checkable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from placement.datasets.cloud_regions import City
from placement.errors import InputError, require
from placement.support.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    elements,
    instance_of,
    nonnegative,
    number,
    text,
    unique_names,
    whole,
)

# Footprints: which share of a database's demand comes from which client cluster

USER_EXPONENT = 0.7
"""Power of internet users to which demand is proportional."""


@dataclass(frozen=True, eq=False)
class Clients:
    """Data of the client clusters that a workload needs.

    Parameters
    ----------
    names
        Unique.
    countries, continents, timezones
        One label each per client.
    users
        Internet users, any unit, > 0 for at least one client; shape (clients,).

    Raises
    ------
    InputError
        For lists of different lengths, duplicate names, or bad users.
    """

    names: tuple[str, ...]
    countries: tuple[str, ...]
    continents: tuple[str, ...]
    timezones: tuple[str, ...]
    users: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", unique_names(self.names, "clients"))
        known = {"countries": self.countries, "continents": self.continents}
        for field, labels in {**known, "timezones": self.timezones}.items():
            words, expected = "as many labels as clients are needed", f"{len(self.names)} labels"
            fits = len(labels) == len(self.names)
            require(fits, field, words, len(labels), expected)
        users = nonnegative(self.users, "users", [("client", self.names)])
        require(users.any(), "users", "no users at all", expected="one client with users")
        object.__setattr__(self, "users", users)

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_cities(cls, cities: Iterable[City]) -> Clients:
        """Return clients that are metropolitan areas of the bundled table."""
        rows = tuple(cities)
        return cls(
            names=tuple(row.city for row in rows),
            countries=tuple(row.country for row in rows),
            continents=tuple(row.continent for row in rows),
            timezones=tuple(row.timezone for row in rows),
            users=np.array([row.users for row in rows]),
        )

    def where(self, labels: Iterable[str], label: str, field: str) -> BoolArray:
        """Return which clients carry `label`; InputError when none does."""
        mask = np.array([each == label for each in labels], dtype=np.bool_)
        expected = "one of " + ", ".join(sorted(set(labels)))
        require(mask.any(), field, "no client there", label, expected)
        return mask


def everywhere(clients: Clients) -> FloatArray:
    """Return weights of a global database: users ^ 0.7, shape (clients,), summing to 1."""
    instance_of(clients, Clients, "clients", "workloads.Clients")
    weights: FloatArray = clients.users**USER_EXPONENT
    weights /= weights.sum()
    return weights


def regional(clients: Clients, continent: str) -> FloatArray:
    """Return weights of a database with 90 % of its demand on one continent."""
    instance_of(clients, Clients, "clients", "workloads.Clients")
    return _split(clients, clients.where(clients.continents, continent, "continent"), 0.9)


def national(clients: Clients, country: str) -> FloatArray:
    """Return weights of a database with 97 % of its demand in one country."""
    instance_of(clients, Clients, "clients", "workloads.Clients")
    return _split(clients, clients.where(clients.countries, country, "country"), 0.97)


def home_and_tail(clients: Clients, home: int) -> FloatArray:
    """Return weights of a database with 85 % at one cluster and a global tail."""
    return _split(clients, _only(clients, home), 0.85)


def two_poles(clients: Clients, first: int, second: int) -> FloatArray:
    """Return weights of a database with 45 % at each of two clusters and a tail of the rest."""
    instance_of(clients, Clients, "clients", "workloads.Clients")
    if whole(first, "first", minimum=None) == whole(second, "second", minimum=None):
        raise InputError(
            "two poles at one place", field="second", value=second, expected="another client"
        )
    poles = _only(clients, first) | _only(clients, second)
    weights = _split(clients, poles, 0.9)
    weights[poles] = weights[poles].sum() / 2.0
    return weights


def _only(clients: Clients, index: int) -> BoolArray:
    instance_of(clients, Clients, "clients", "workloads.Clients")
    index = whole(index, "client", minimum=None)
    expected = f"an index from 0 to {len(clients) - 1}"
    require(0 <= index < len(clients), "client", "no such client", index, expected)
    mask = np.zeros(len(clients), dtype=np.bool_)
    mask[index] = True
    return mask


def _split(clients: Clients, inside: BoolArray, share: float) -> FloatArray:
    """Give `share` of the demand to the clients inside, the rest to the others; the sum is 1."""
    weights = np.zeros(len(clients))
    parts = [(inside, share), (~inside, 1.0 - share)]
    for mask, part in parts:
        if mask.any():
            base = clients.users[mask] ** USER_EXPONENT
            total = base.sum()
            # a part where no user is counted online still gets its share, evenly
            weights[mask] = part * (base / total if total > 0 else 1.0 / mask.sum())
    weights /= weights.sum()  # where there is no outside, the inside is everything
    return weights


FRIDAY_SATURDAY = frozenset({
    "AF", "BD", "BH", "DZ", "EG", "IL", "IQ", "IR", "JO", "KW", "LY", "OM", "QA",
    "SA", "SD", "SY", "YE",
})  # fmt: skip
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
            words = "a start without a time zone"
            expected = "an aware datetime, e.g. datetime(2026, 3, 18, tzinfo=UTC)"
            raise InputError(words, field="start", value=self.start, expected=expected)
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
    """The clock on the wall in the middle of each interval; each of shape (intervals, clients)."""

    hour: FloatArray  #: local hour of the day, in [0, 24)
    ordinal: IntArray  #: local date, as its proleptic Gregorian ordinal (`date.toordinal`)
    weekend: BoolArray  #: whether that date is a day of rest there


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
    each = elements(timezones, "timezones", "names of zones")
    timezones = tuple(text(zone, "timezones") for zone in each)
    each = elements(countries, "countries", "codes of countries")
    countries = [instance_of(one, str, "countries", "a code of two letters") for one in each]
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
    rest = np.array([4 if country in FRIDAY_SATURDAY else 5 for country in countries])
    weekday = (dates - 1) % 7  # ordinal 1, 0001-01-01, is a Monday
    weekend = (weekday == rest) | (weekday == rest + 1)
    return LocalTime(hour[:, place], dates, weekend)


# Diurnal curves: how demand follows the local clock, with a mean of 1 over a week


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


# Events: what happens to demand besides the time of day


@dataclass(frozen=True, eq=False)
class Scene:
    """Time and place of all events."""

    timeline: Timeline  #: the intervals
    clients: Clients  #: the client clusters
    local: LocalTime  #: the local clock at each client


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
        words = "a cluster that is down takes no traffic"
        expected = "another client"
        require(self.redirect != self.client, "redirect", words, self.redirect, expected)

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
        words = "a migration to where it came from"
        require(self.source != self.target, "target", words, self.target, "another client")

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

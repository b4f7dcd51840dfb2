"""Fleets: hundreds of databases of all sizes, each with its own footprint, curve, mix and noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

import numpy as np

from placement.errors import InputError
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import (
    FloatArray,
    elements,
    instance_of,
    mapping,
    nonnegative,
    number,
    text,
    whole,
)
from placement.workloads.calendar import Timeline
from placement.workloads.diurnal import Consumer, Curve, Flat, Office
from placement.workloads.events import (
    Event,
    FlashCrowd,
    Holiday,
    Launch,
    Migration,
    NightlyBatch,
    Outage,
)
from placement.workloads.footprints import (
    Clients,
    everywhere,
    home_and_tail,
    national,
    regional,
    two_poles,
)
from placement.workloads.mixes import MIXES, mix_shares, sample_mix
from placement.workloads.noise import AR1

__all__ = ["FOOTPRINTS", "TENANTS", "Database", "fleet", "standard_database"]

FOOTPRINTS = MappingProxyType(
    {"global": 0.25, "regional": 0.25, "national": 0.25, "home": 0.15, "two-pole": 0.10}
)
"""Share of a fleet's databases with each footprint, by default."""

TENANTS = MappingProxyType(
    {
        "cache": "consumer",
        "social": "consumer",
        "sessions": "consumer",
        "oltp": "office",
        "configuration": "office",
        "ledger": "office",
        "logging": "batch",
        "ycsb-a": "batch",
        "ycsb-b": "batch",
    }
)
"""Daily rhythm of the databases of each mix."""

_DAILY_LAG = 0.5
_DAILY = AR1(_DAILY_LAG, 0.15)
_CLUSTER = AR1(0.7, 0.15)


@dataclass(frozen=True, eq=False)
class Database:
    """Database and the law of its demand.

    Parameters
    ----------
    index
        Number of the random stream its demand is drawn from; unique within a fleet.
    name
        What people call it.
    rate
        Mean operations per interval over a week, events and batches aside.
    weights
        Share of each client cluster, shape (clients,), summing to 1.
    mix
        Share of each standard operation, shape (5,), summing to 1.
    curve
        Diurnal curve.
    daily
        Noise common to all clusters, one step a day.
    cluster
        Noise of each cluster, one step per interval.
    events, batches
        What happens to this database.
    preferred_leader
        Site that its owner wants the leader at; None: no wish.
    kind, footprint
        Mix and footprint it was drawn from, for display.
    """

    index: int
    name: str
    rate: float
    weights: FloatArray
    mix: FloatArray
    curve: Curve = field(default_factory=Consumer)
    daily: AR1 = _DAILY
    cluster: AR1 = _CLUSTER
    events: tuple[Event, ...] = ()
    batches: tuple[NightlyBatch, ...] = ()
    preferred_leader: str | None = None
    kind: str = ""
    footprint: str = ""

    def __post_init__(self) -> None:
        number(self.rate, "rate")
        columns = [str(i) for i in range(np.size(self.weights))]
        operations = [operation.name for operation in STANDARD_OPERATIONS]
        for name, values, axis in (
            ("weights", self.weights, ("client", columns)),
            ("mix", self.mix, ("operation", operations)),
        ):
            checked = nonnegative(values, name, [axis])
            if abs(checked.sum() - 1.0) > 1e-9:
                raise InputError(
                    "shares that do not add up", field=name, value=checked.sum(), expected="sum 1"
                )
            object.__setattr__(self, name, checked)


_MOST_DATABASES = 10**7


def fleet(
    clients: Clients,
    databases: int = 1000,
    *,
    seed: int,
    timeline: Timeline | None = None,
    median_rate: float = 2000.0,
    sigma: float = 2.0,
    mixes: Mapping[str, float] | None = None,
    footprints: Mapping[str, float] = FOOTPRINTS,
    eventful: float = 0.2,
    nearest_sites: Sequence[str] | None = None,
    preferring: float = 0.25,
) -> tuple[Database, ...]:
    """Draw a fleet.

    Parameters
    ----------
    clients
        The client clusters.
    databases
        How many; 100 to 1,000 is usual.
    seed
        The same seed gives the same fleet, bit for bit, and the first n databases of a larger one.
    timeline
        Where events fall; None: no events.
    median_rate, sigma
        Sizes are log-normal: median in operations per interval, standard deviation of the log.
    mixes
        Relative frequency of each mix of :data:`placement.workloads.mixes.MIXES`; None: all equal.
    footprints
        Relative frequency of each footprint.
    eventful
        Share of databases to which one event happens.
    nearest_sites
        For each client, the site closest to it: gives `preferring` of the databases a preferred
        leader, next to their heaviest client. None: no preferences.
    preferring
        Share of databases with a preferred leader, where `nearest_sites` are given.

    Raises
    ------
    InputError
        For unknown mixes or footprints, frequencies that are all zero, or shares outside 0 to 1.
    """
    instance_of(clients, Clients, "clients", "workloads.Clients")
    databases = whole(databases, "databases", minimum=1, maximum=_MOST_DATABASES)
    seed = whole(seed, "seed")
    if timeline is not None:
        instance_of(timeline, Timeline, "timeline", "a Timeline")
    number(median_rate, "median_rate", above=True)
    number(sigma, "sigma")
    for name, share in (("eventful", eventful), ("preferring", preferring)):
        number(share, name, maximum=1)
    if nearest_sites is not None:
        nearest_sites = tuple(
            text(site, "nearest_sites")
            for site in elements(nearest_sites, "nearest_sites", "one site per client")
        )
    if nearest_sites is not None and len(nearest_sites) != len(clients):
        raise InputError(
            "one site per client is needed",
            field="nearest_sites",
            value=len(nearest_sites),
            expected=f"{len(clients)} names",
        )
    kinds, kind_odds = _odds(dict.fromkeys(MIXES, 1.0) if mixes is None else mixes, MIXES, "mixes")
    shapes, shape_odds = _odds(footprints, FOOTPRINTS, "footprints")

    result = []
    for index in range(databases):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, index)))
        rate = median_rate * float(np.exp(sigma * rng.standard_normal()))
        kind = kinds[rng.choice(len(kinds), p=kind_odds)]
        shape = shapes[rng.choice(len(shapes), p=shape_odds)]
        weights = _weights(shape, clients, rng)
        mix = sample_mix(kind, rng)
        curve = _curve(TENANTS[kind], rng)
        daily = AR1(_DAILY_LAG, rng.uniform(0.12, 0.22))
        cluster = AR1(rng.uniform(0.60, 0.75), rng.uniform(0.10, 0.25))
        wish, happens = rng.random(2)
        heaviest = int(np.argmax(weights))
        events: tuple[Event, ...] = ()
        batches: tuple[NightlyBatch, ...] = ()
        if timeline is not None and happens < eventful:
            events, batches = _happening(clients, weights, rate, TENANTS[kind], timeline, rng)
        result.append(
            Database(
                index=index,
                name=f"{kind}-{index:04d}",
                rate=rate,
                weights=weights,
                mix=mix,
                curve=curve,
                daily=daily,
                cluster=cluster,
                events=events,
                batches=batches,
                preferred_leader=(
                    nearest_sites[heaviest]
                    if nearest_sites is not None and wish < preferring
                    else None
                ),
                kind=kind,
                footprint=shape,
            )
        )
    return tuple(result)


def standard_database(clients: Clients, mix: str = "social", rate: float = 1_000_000.0) -> Database:
    """Return the one database of the bundled data sets: global, consumers, a mix by name."""
    return Database(
        index=0,
        name=mix,
        rate=rate,
        weights=everywhere(clients),
        mix=mix_shares(mix),
        kind=mix,
        footprint="global",
    )


def _odds(
    frequencies: Mapping[str, float], known: Mapping[str, object], name: str
) -> tuple[tuple[str, ...], FloatArray]:
    mapping(frequencies, name, "name -> frequency")
    for key in frequencies:
        if key not in known:
            raise InputError(
                "unknown", field=name, value=key, expected="one of " + ", ".join(known)
            )
    keys = tuple(frequencies)
    values = nonnegative([frequencies[key] for key in keys], name, [("entry", keys)])
    if not values.sum() > 0:
        raise InputError("nothing to draw from", field=name, expected="one frequency > 0")
    return keys, values / values.sum()


def _weights(shape: str, clients: Clients, rng: np.random.Generator) -> FloatArray:
    world = everywhere(clients)
    home = int(rng.choice(len(clients), p=world))
    if shape == "regional":
        return regional(clients, clients.continents[home])
    if shape == "national":
        return national(clients, clients.countries[home])
    if shape == "home":
        return home_and_tail(clients, home)
    if shape == "two-pole" and np.count_nonzero(world) > 1:
        others = world.copy()
        others[home] = 0.0
        return two_poles(clients, home, int(rng.choice(len(clients), p=others / others.sum())))
    return world


def _curve(tenant: str, rng: np.random.Generator) -> Curve:
    if tenant == "consumer":
        return Consumer(
            ratio=rng.uniform(2.5, 5.0), peak=rng.uniform(20.0, 22.0), weekend=rng.uniform(1.0, 1.1)
        )
    if tenant == "office":
        return Office(ratio=rng.uniform(3.0, 15.0), weekend=rng.uniform(0.45, 0.65))
    return Flat()


def _happening(
    clients: Clients,
    weights: FloatArray,
    rate: float,
    tenant: str,
    timeline: Timeline,
    rng: np.random.Generator,
) -> tuple[tuple[Event, ...], tuple[NightlyBatch, ...]]:
    """Draw one event, at a place that matters to the database."""
    length = timeline.intervals * timeline.minutes / 60
    at = float(rng.uniform(0.0, 0.8 * length))
    place = int(rng.choice(len(clients), p=weights))
    other = int(rng.integers(len(clients) - 1)) if len(clients) > 1 else None
    if other is not None and other >= place:
        other += 1
    which = int(rng.integers(6))
    if which == 0:
        crowd = FlashCrowd(
            clients.countries[place],
            at,
            peak=rng.uniform(3.0, 20.0),
            ramp=rng.uniform(1.0, 2.0) * timeline.minutes / 60,
            half_life=rng.uniform(1.0, 4.0),
        )
        return (crowd,), ()
    if which == 1:
        day = (timeline.start + timedelta(hours=at)).date()
        factor = {"consumer": 1.1, "office": 0.3}.get(tenant, 1.0)
        return (Holiday(clients.countries[place], day, factor),), ()
    if which == 2:
        return (Outage(place, at, hours=rng.uniform(1.0, 12.0), redirect=other),), ()
    if which == 3:
        return (Launch(clients.continents[place], at, days=rng.uniform(1.0, 7.0)),), ()
    if which == 4 and other is not None:
        return (Migration(place, other, at, days=rng.uniform(1.0, 5.0)),), ()
    return (), (
        NightlyBatch(
            place, rate * rng.uniform(0.5, 2.0), begin=rng.uniform(0, 4), hours=rng.uniform(1, 4)
        ),
    )

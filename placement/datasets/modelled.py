"""Data sets whose RTTs are modelled from distance: ``world27``, ``aws``, ``gcp``."""

from __future__ import annotations

import io
from collections import Counter
from datetime import date

import numpy as np

from placement.datasets import distance_rtt as geo
from placement.datasets.cloud_regions import PROVIDERS, City, Region, bundled, cities, regions
from placement.datasets.day_of_demand import (
    DAY,
    DEFAULT_MIX,
    DayOfDemand,
    InstanceArguments,
    day_of_demand,
    default_day,
)
from placement.errors import InputError
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray

__all__ = [
    "COUNTS_FILE",
    "ROUTE_SEED",
    "RTT_FILE",
    "WORLD27",
    "aws",
    "gcp",
    "modelled",
    "world27",
    "world27_cities",
    "world27_sites",
]

ROUTE_SEED = 2015
"""Seed of the route inflation: apart from the workload's, so that another day of demand is served
by the same network."""

WORLD27 = (
    "us-east-1",
    "us-west-2",
    "us-central1",
    "South Central US",
    "northamerica-northeast1",
    "Mexico Central",
    "sa-east-1",
    "southamerica-west1",
    "eu-west-1",
    "UK South",
    "europe-west4",
    "eu-central-1",
    "europe-southwest1",
    "Poland Central",
    "Israel Central",
    "UAE North",
    "ap-south-1",
    "South India",
    "ap-southeast-1",
    "asia-southeast2",
    "East Asia",
    "asia-northeast3",
    "ap-northeast-1",
    "australia-southeast1",
    "New Zealand North",
    "af-south-1",
    "africa-south1",
)
"""The 27 regions of ``world27``: nine of each provider, at least two on every continent."""

RTT_FILE = "world27_rtt.npy"
"""RTTs of ``world27``: one row per client and below them one per site, one column per site."""

COUNTS_FILE = "world27_counts.npy"
"""Operations of the default day of ``world27``, by half hour, client and kind."""

_WORLD27_CITIES = 60
_WORLD27_PER_CONTINENT = 8
_WORLD27_PER_COUNTRY = 4
_WORLD27_LEAST_USERS = 1.0  # millions


def world27(*, mix: str | None = None, seed: int = 0, day: date = DAY) -> InstanceArguments:
    """Return 27 regions of three providers on six continents, and 60 metropolitan areas.

    Failure domains: country, continent, provider. Country and continent are nested; provider
    crosses both.

    Parameters
    ----------
    mix
        Operation mix, see :data:`placement.workloads.MIXES`; None: ``social``.
    seed
        Seed of the demand.
    day
        Date of the demand, UTC.
    """
    rtt = _stored(RTT_FILE)
    demand = None
    if mix in (None, DEFAULT_MIX) and seed == 0 and day == DAY:
        demand = default_day(_stored(COUNTS_FILE))
    return modelled(
        "world27",
        world27_sites(),
        world27_cities(),
        levels=_PROVIDERS_CROSS,
        mix=mix,
        seed=seed,
        day=day,
        rtt=(rtt[: -len(WORLD27)], rtt[-len(WORLD27) :]),
        demand=demand,
    )


def aws(*, mix: str | None = None, seed: int = 0, day: date = DAY) -> InstanceArguments:
    """Return all bundled AWS regions, and all bundled cities as clients; see :func:`world27`."""
    return modelled("aws", regions("aws"), cities(), mix=mix, seed=seed, day=day)


def gcp(*, mix: str | None = None, seed: int = 0, day: date = DAY) -> InstanceArguments:
    """Return all bundled Google Cloud regions, and all bundled cities; see :func:`world27`."""
    return modelled("gcp", regions("gcp"), cities(), mix=mix, seed=seed, day=day)


_NESTED = ("country", "continent")
_PROVIDERS_CROSS = (*_NESTED, "provider")


def world27_sites() -> tuple[Region, ...]:
    """Return the regions of :data:`WORLD27`."""
    known = {each.id: each for name in PROVIDERS for each in regions(name)}
    return tuple(known[name] for name in WORLD27)


def _stored(name: str) -> FloatArray:
    stored: FloatArray = np.load(io.BytesIO(bundled(name))).astype(np.float64)
    return stored


def world27_cities() -> tuple[City, ...]:
    """Return the 60 metropolitan areas of ``world27``, most people online first.

    The eight cities with most people online of every continent, as far as it has eight with a
    million online, then the largest of the other cities. Never more than four cities of a country:
    otherwise half of all would be in two countries.
    """
    ranked = sorted(cities(), key=lambda city: (-city.users, city.city))
    in_country, on_continent = Counter[str](), Counter[str]()
    first: list[City] = []
    rest: list[City] = []
    for city in ranked:
        in_country[city.country] += 1
        if in_country[city.country] > _WORLD27_PER_COUNTRY:
            continue
        on_continent[city.continent] += 1
        many = city.users >= _WORLD27_LEAST_USERS
        early = on_continent[city.continent] <= _WORLD27_PER_CONTINENT
        (first if many and early else rest).append(city)
    chosen = {city.city for city in first + rest[: _WORLD27_CITIES - len(first)]}
    return tuple(city for city in ranked if city.city in chosen)


def modelled(
    name: str,
    sites: tuple[Region, ...],
    clients: tuple[City, ...],
    *,
    levels: tuple[str, ...] = _NESTED,
    mix: str | None = None,
    seed: int = 0,
    day: date = DAY,
    route: geo.RouteModel | None = None,
    route_seed: int = ROUTE_SEED,
    rtt: tuple[FloatArray, FloatArray] | None = None,
    demand: DayOfDemand | None = None,
) -> InstanceArguments:
    """Return an instance's arguments for any regions and cities, with modelled RTTs.

    Parameters
    ----------
    name
        Of the instance.
    sites, clients
        Regions that may hold replicas, and cities, which are separate clients.
    levels
        Failure-domain levels: some of country, continent, provider, geography.
    mix, seed, day
        Of the demand.
    route, route_seed
        How distance becomes an RTT; see :mod:`placement.datasets.distance_rtt`.
    rtt
        RTTs of clients and of sites, when they have been modelled before from the same `route` and
        `route_seed`.
    demand
        The day of demand, when it has been drawn before from the same `mix`, `seed` and `day`.

    Raises
    ------
    InputError
        For an unknown level or mix.
    """
    model = geo.RouteModel() if route is None else route
    site_points = np.array([(each.lat, each.lon) for each in sites])
    client_points = np.array([(each.lat, each.lon) for each in clients])
    if rtt is None:
        draws = np.random.default_rng(route_seed)
        rtt = geo.modelled_rtt(site_points, client_points, draws, model)
    client_rtt, site_rtt = rtt
    if demand is None:
        demand = day_of_demand(clients, mix=mix, seed=seed, day=day)
    return InstanceArguments(
        name=name,
        sites=tuple(each.id for each in sites),
        clients=tuple(each.city for each in clients),
        operations=STANDARD_OPERATIONS,
        client_rtt=client_rtt,
        site_rtt=site_rtt,
        counts=demand.counts,
        intervals=demand.intervals,
        domains=domains_of(sites, levels),
        site_coordinates=site_points,
        client_coordinates=client_points,
        provenance=(
            f"RTTs are modelled, not measured: {model.fit.intercept_ms:g} ms + "
            f"{model.fit.slope_ms_per_1000_km:g} ms per 1,000 km of great circle (fitted to "
            f"{model.fit.source}), less below about 2,500 km, times a seeded lognormal route "
            f"inflation (seed {route_seed}); expect a median error of 20 % against real networks.",
            "Sites are regions of cloud providers as announced up to the end of 2025.",
            demand.sentence,
        ),
    )


def domains_of(sites: tuple[Region, ...], levels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the labels of regions at the given failure-domain levels.

    Raises
    ------
    InputError
        For a level that regions have no label for.
    """
    labels = {
        "country": tuple(each.country for each in sites),
        "continent": tuple(each.continent for each in sites),
        "provider": tuple(each.provider for each in sites),
        "geography": tuple(each.geography for each in sites),
    }
    for level in levels:
        if level not in labels:
            raise InputError(
                "unknown failure-domain level",
                field="levels",
                value=level,
                expected="some of " + ", ".join(labels),
            )
    return {level: labels[level] for level in levels}

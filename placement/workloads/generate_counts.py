"""Counts from databases, streamed block by block.

For one database, client cluster c and interval t,

    rate(c, t)      = R · w(c) · curve(local hour, day of rest) · exp(x(day) + y(c, t))
    expected(c, t)  = rate(c, t), changed by events
    counts(c, t, o) ~ Poisson or negative binomial, mean expected(c, t) · mix(o) plus batches

with x and y stationary AR(1) processes, each exponential divided by its mean, so that noise leaves
the mean demand alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from placement.errors import InputError
from placement.model.operations import SINGLE_GROUP, STANDARD_OPERATIONS
from placement.support.checks import FloatArray, elements, instance_of, instances_of, number, whole
from placement.workloads.calendar import Timeline, local_time
from placement.workloads.events import Event, Scene
from placement.workloads.fleets import Database
from placement.workloads.footprints import Clients
from placement.workloads.noise import autoregress

__all__ = ["Block", "Law", "generate"]

Law = Literal["poisson", "negative-binomial", "expected"]
"""Draw of counts from rates; ``expected`` draws nothing and gives the means themselves."""

_WRITE = STANDARD_OPERATIONS.index(SINGLE_GROUP)


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive databases of a fleet with all their counts.

    Attributes
    ----------
    databases
        The databases, B of them.
    counts
        Operations, shape (B, intervals, clients, operations): int64 where they are drawn, float64
        for the law ``expected``.
    """

    databases: tuple[Database, ...]
    counts: npt.NDArray[np.int64] | FloatArray


def generate(
    databases: Sequence[Database],
    clients: Clients,
    timeline: Timeline,
    *,
    seed: int,
    law: Law = "poisson",
    dispersion: float = 20.0,
    events: Sequence[Event] = (),
    block: int = 16,
) -> Iterator[Block]:
    """Draw the demand of databases, a block at a time.

    Parameters
    ----------
    databases
        A fleet, or any part of one.
    clients
        The client clusters the databases' weights speak of.
    timeline
        The intervals.
    seed
        Every database draws from a separate stream, made of `seed` and its index: neither
        the size of the blocks nor which other databases are drawn changes what comes out.
    law
        ``poisson``; ``negative-binomial``, where a gamma factor of mean 1 and variance
        1/`dispersion` on each cell gives counts of variance λ + λ²/dispersion (the operations of
        a cell share the factor: a busy half hour is busy for all of them); ``expected``.
    dispersion
        Shape of that gamma law.
    events
        What happens to all databases alike (a holiday, an outage), after their own events.
    block
        Databases per block: bounds the memory, 8 · block · intervals · clients · 5 bytes.

    Yields
    ------
    Block

    Raises
    ------
    InputError
        At once, before the first block: an unknown law, a database whose weights are not those of
        `clients`, two databases on one stream.

    Notes
    -----
    Vectorised over intervals, clients, operations: 200 million counts (1,000 databases, 14 days
    of half hours, 60 clusters, 5 operations) take seconds to tens of seconds on one core.
    """
    instance_of(clients, Clients, "clients", "workloads.Clients")
    instance_of(timeline, Timeline, "timeline", "a Timeline")
    databases = instances_of(databases, Database, "databases", "a workloads.Database")
    seed = whole(seed, "seed")
    events = tuple(events) if isinstance(events, (list, tuple)) else elements(events, "events")  # type: ignore[assignment]  # checked next
    for event in events:
        if not isinstance(event, Event):
            raise InputError(
                "not an event", field="events", value=event, expected="a workloads.Event"
            )
    if not isinstance(law, str) or law not in get_args(Law):
        raise InputError(
            "unknown law", field="law", value=law, expected="one of " + ", ".join(get_args(Law))
        )
    number(dispersion, "dispersion", above=True)
    block = whole(block, "block", minimum=1)
    streams = set()
    for database in databases:
        if len(database.weights) != len(clients):
            raise InputError(
                f"database {database.name!r} has other clients",
                field="weights",
                value=len(database.weights),
                expected=f"{len(clients)} weights",
            )
        if database.index in streams:
            raise InputError(
                f"database {database.name!r} has the random stream of another database",
                field="index",
                value=database.index,
                expected="unique indices",
            )
        streams.add(database.index)
    scene = Scene(timeline, clients, local_time(timeline, clients.timezones, clients.countries))
    return _blocks(tuple(databases), scene, seed, law, dispersion, tuple(events), block)


def _blocks(
    databases: tuple[Database, ...],
    scene: Scene,
    seed: int,
    law: Law,
    dispersion: float,
    events: tuple[Event, ...],
    block: int,
) -> Iterator[Block]:
    shape = (scene.timeline.intervals, len(scene.clients), len(STANDARD_OPERATIONS))
    for first in range(0, len(databases), block):
        part = databases[first : first + block]
        streams = [
            np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, database.index)))
            for database in part
        ]
        noise = _noise(part, streams, scene.timeline, len(scene.clients))
        drawn = law != "expected"
        counts: npt.NDArray[np.int64] | FloatArray
        if drawn:
            counts = np.empty((len(part), *shape), dtype=np.int64)
        else:
            counts = np.empty((len(part), *shape))
        for i, (database, rng) in enumerate(zip(part, streams, strict=True)):
            rates = _rates(database, noise[:, i, :], scene, events)
            if law == "negative-binomial":
                rates = rates * rng.gamma(dispersion, 1.0 / dispersion, rates.shape)
            means = rates[:, :, np.newaxis] * database.mix
            for batch in database.batches:
                means[:, batch.client, _WRITE] += batch.written(scene)
            counts[i] = rng.poisson(means) if drawn else means
        yield Block(part, counts)


def _noise(
    databases: tuple[Database, ...],
    streams: list[np.random.Generator],
    timeline: Timeline,
    clients: int,
) -> FloatArray:
    """Return the noise factor, mean 1, of shape (intervals, databases, clients)."""
    days = np.stack([rng.standard_normal(timeline.days) for rng in streams], axis=1)
    steps = np.empty((timeline.intervals, len(databases), clients))
    for i, rng in enumerate(streams):
        steps[:, i, :] = rng.standard_normal((timeline.intervals, clients))
    daily_lag, daily_sd, lag, sd = (
        np.array(column)
        for column in zip(
            *((d.daily.lag1, d.daily.sd, d.cluster.lag1, d.cluster.sd) for d in databases),
            strict=True,
        )
    )
    daily = autoregress(days, daily_lag, daily_sd)
    total = autoregress(steps, lag[:, np.newaxis], sd[:, np.newaxis])
    # E exp(x) = exp(sd²/2) for normal x: taken off, so that the factor has mean 1
    total += (daily - 0.5 * (daily_sd**2 + sd**2))[timeline.day][:, :, np.newaxis]
    return np.exp(total, out=total)


def _rates(
    database: Database, noise: FloatArray, scene: Scene, events: tuple[Event, ...]
) -> FloatArray:
    """Return the expected operations of a database, shape (intervals, clients)."""
    factor = database.curve(scene.local.hour, scene.local.weekend)
    rates: FloatArray = database.rate * database.weights * factor * noise
    for event in (*database.events, *events):
        rates = event.apply(rates, scene)
    return rates

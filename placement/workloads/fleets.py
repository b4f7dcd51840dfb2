"""Fleets: hundreds of databases of all sizes, each with its own footprint, curve, mix and noise."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, MissingDependencyError, require
from placement.io.formats.files import writing
from placement.model.operations import SINGLE_GROUP, STANDARD_OPERATIONS
from placement.support.checks import (
    FloatArray,
    elements,
    instance_of,
    instances_of,
    nonnegative,
    number,
    text,
    whole,
)
from placement.workloads.activity import (
    Clients,
    Consumer,
    Curve,
    Event,
    FlashCrowd,
    Flat,
    Holiday,
    Launch,
    Migration,
    NightlyBatch,
    Office,
    Outage,
    Scene,
    Timeline,
    everywhere,
    home_and_tail,
    local_time,
    national,
    regional,
    two_poles,
)

if TYPE_CHECKING:
    import pyarrow as pa

# Noise: first-order autoregressive processes, on the log of demand


@dataclass(frozen=True, slots=True)
class AR1:
    """A stationary process x(t) = φ·x(t−1) + e(t) with standard deviation `sd`.

    Parameters
    ----------
    lag1
        φ, the autocorrelation at lag 1, in (−1, 1).
    sd
        Standard deviation of x, not of its innovations e.
    """

    lag1: float
    sd: float

    def __post_init__(self) -> None:
        number(self.sd, "sd")
        if not -1.0 < number(self.lag1, "lag1", minimum=-math.inf) < 1.0:
            raise InputError(
                "not stationary", field="lag1", value=self.lag1, expected="between -1 and 1"
            )


def autoregress(normals: FloatArray, lag1: FloatArray, sd: FloatArray) -> FloatArray:
    """Turn independent standard normals into stationary AR(1) series, many at once.

    x(0) = sd·z(0),    x(t) = φ·x(t−1) + sd·√(1 − φ²)·z(t)

    Parameters
    ----------
    normals
        Standard normals z, shape (T, …).
    lag1, sd
        φ and standard deviation; broadcast against the trailing axes of `normals`.

    Returns
    -------
    FloatArray
        Series of the shape of `normals`, which is not changed. O(size), T steps in Python.
    """
    series = normals * (sd * np.sqrt(1.0 - lag1 * lag1))
    if len(series):
        series[0] = normals[0] * sd  # starts in its stationary law: no warm-up to throw away
    for t in range(1, len(series)):
        series[t] += lag1 * series[t - 1]
    return series


Law = Literal["poisson", "expected"]
"""Draw of counts from rates; ``expected`` draws nothing and gives the means themselves."""

_WRITE = STANDARD_OPERATIONS.index(SINGLE_GROUP)


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive databases of a fleet with all their counts."""

    databases: tuple[Database, ...]  #: the databases, B of them
    #: operations, shape (B, intervals, clients, operations): int64 where they are drawn, float64
    #: for the law `expected`
    counts: npt.NDArray[np.int64] | FloatArray


def generate(
    databases: Sequence[Database],
    clients: Clients,
    timeline: Timeline,
    *,
    seed: int,
    law: Law = "poisson",
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
        ``poisson`` or ``expected``.
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
    text(law, "law", choices=get_args(Law))
    block = whole(block, "block", minimum=1)
    streams = set()
    for database in databases:
        count, words = len(database.weights), f"database {database.name!r} has other clients"
        require(count == len(clients), "weights", words, count, f"{len(clients)} weights")
        words = f"database {database.name!r} has the random stream of another database"
        own = database.index not in streams
        require(own, "index", words, database.index, "unique indices")
        streams.add(database.index)
    scene = Scene(timeline, clients, local_time(timeline, clients.timezones, clients.countries))
    return _blocks(tuple(databases), scene, seed, law, block)


def _blocks(
    databases: tuple[Database, ...], scene: Scene, seed: int, law: Law, block: int
) -> Iterator[Block]:
    shape = (scene.timeline.intervals, len(scene.clients), len(STANDARD_OPERATIONS))
    drawn = law != "expected"
    kind: type[np.number] = np.int64 if drawn else np.float64
    for first in range(0, len(databases), block):
        part = databases[first : first + block]
        streams = [
            np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, database.index)))
            for database in part
        ]
        noise = _noise(part, streams, scene.timeline, len(scene.clients))
        counts = np.empty((len(part), *shape), dtype=kind)
        for i, (database, rng) in enumerate(zip(part, streams, strict=True)):
            rates = _rates(database, noise[:, i, :], scene)
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
    laws = ((one.daily.lag1, one.daily.sd, one.cluster.lag1, one.cluster.sd) for one in databases)
    daily_lag, daily_sd, lag, sd = np.array([*laws]).T
    daily = autoregress(days, daily_lag, daily_sd)
    total = autoregress(steps, lag[:, np.newaxis], sd[:, np.newaxis])
    # E exp(x) = exp(sd²/2) for normal x: taken off, so that the factor has mean 1
    total += (daily - 0.5 * (daily_sd**2 + sd**2))[timeline.day][:, :, np.newaxis]
    return np.exp(total, out=total)


def _rates(database: Database, noise: FloatArray, scene: Scene) -> FloatArray:
    """Return the expected operations of a database, shape (intervals, clients)."""
    factor = database.curve(scene.local.hour, scene.local.weekend)
    rates: FloatArray = database.rate * database.weights * factor * noise
    for event in database.events:
        rates = event.apply(rates, scene)
    return rates


# Operation mixes: the share of each kind of operation in a database

MIXES = MappingProxyType(
    {
        # weak, bounded, strong reads; single-group, multi-group transactions; per cent
        "cache": (94.0, 5.0, 0.8, 0.2, 0.0),
        "social": (60.0, 25.0, 12.0, 2.7, 0.3),
        "oltp": (0.0, 60.0, 39.7, 0.15, 0.15),
        "sessions": (10.0, 10.0, 45.0, 34.0, 1.0),
        "configuration": (80.0, 10.0, 9.8, 0.2, 0.0),
        "ledger": (0.0, 5.0, 45.0, 35.0, 15.0),
        "logging": (0.0, 2.0, 3.0, 93.0, 2.0),
        "ycsb-a": (0.0, 0.0, 50.0, 50.0, 0.0),
        "ycsb-b": (0.0, 0.0, 95.0, 5.0, 0.0),
    }
)
"""Per cent of weak, bounded and strong reads, single-group and multi-group transactions."""

CONCENTRATION = 100.0
"""Concentration of the Dirichlet law from which databases of one kind draw their own mix."""


def mix_shares(name: str) -> FloatArray:
    """Return the shares of the standard operations in a named mix, shape (5,), summing to 1.

    Raises
    ------
    InputError
        For a name that is not in :data:`MIXES`.
    """
    if not isinstance(name, str) or name not in MIXES:
        words = "unknown operation mix"
        raise InputError(words, field="mix", value=name, expected="one of " + ", ".join(MIXES))
    shares = np.array(MIXES[name], dtype=np.float64)
    shares /= shares.sum()
    return shares


def sample_mix(name: str, rng: np.random.Generator) -> FloatArray:
    """Draw one database's own mix from Dirichlet(:data:`CONCENTRATION` · mix), shape (5,).

    An operation that the named mix does not have, the drawn one does not have either.
    """
    instance_of(rng, np.random.Generator, "rng", "a numpy.random.Generator")
    shares = mix_shares(name)
    present = shares > 0
    drawn = np.zeros_like(shares)
    drawn[present] = rng.dirichlet(CONCENTRATION * shares[present])
    return drawn


# Writing a generated workload to Parquet, block by block


def write_parquet(
    path: str | os.PathLike[str],
    blocks: Iterable[Block],
    clients: Clients,
    timeline: Timeline,
    *,
    force: bool = False,
) -> int:
    """Write blocks as one table: database, interval, client, and a column per operation.

    A row per database, interval and client in which anything was issued; rows of zeros are left
    out. `interval` is the begin of the interval, UTC. One row group per block, so the memory
    is that of one block. The file appears whole or not at all.

    Parameters
    ----------
    path
        Where; the folder must exist.
    blocks
        From :func:`placement.workloads.fleets`, of one law.
    clients, timeline
        Those the blocks were generated with.
    force
        Replace an existing file; it stays as it is until the new one is complete.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    MissingDependencyError
        Without pyarrow (the extra `parquet`).
    InputError
        When the file exists and `force` is false, the folder does not exist, there is no block,
        or a block's shape is not that of `clients` and `timeline`. Nothing is written then.
    """
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError.of("writing Parquet needs pyarrow", "parquet") from error

    rows = 0
    with writing(path, force=force) as sink:
        writer = None
        try:
            for block in blocks:
                table = _table(block, clients, timeline)
                if writer is None:
                    writer = pq.ParquetWriter(sink, table.schema)
                writer.write_table(table)
                rows += table.num_rows
            if writer is None:
                raise InputError("nothing to write", field="blocks", expected="at least one block")
        finally:
            if writer is not None:
                writer.close()
    return rows


def _table(block: Block, clients: Clients, timeline: Timeline) -> pa.Table:
    """Return the rows of a block in which anything was issued."""
    import pyarrow as pa

    names = [operation.name for operation in STANDARD_OPERATIONS]
    expected = (len(block.databases), timeline.intervals, len(clients), len(names))
    fits, words = block.counts.shape == expected, "a block of another workload"
    require(fits, "counts", words, block.counts.shape, str(expected))
    naive = [moment.replace(tzinfo=None) for moment in timeline.starts]
    moments = np.array(naive, dtype="datetime64[s]")
    text = pa.dictionary(pa.int32(), pa.string())
    when = pa.timestamp("s", tz="UTC")
    kind = pa.from_numpy_dtype(block.counts.dtype)
    schema = pa.schema(
        [("database", text), ("interval", when), ("client", text), *((n, kind) for n in names)]
    )
    database, interval, client = np.nonzero(block.counts.any(axis=-1))
    issued = block.counts[database, interval, client]
    labels = [each.name for each in block.databases]
    columns = [
        pa.DictionaryArray.from_arrays(database.astype(np.int32), labels),
        pa.array(moments[interval], type=when),
        pa.DictionaryArray.from_arrays(client.astype(np.int32), list(clients.names)),
        *(pa.array(np.ascontiguousarray(column)) for column in issued.T),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


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
_EVENTFUL, _PREFERRING = 0.2, 0.25


def fleet(
    clients: Clients,
    databases: int = 1000,
    *,
    seed: int,
    timeline: Timeline | None = None,
    median_rate: float = 2000.0,
    sigma: float = 2.0,
    nearest_sites: Sequence[str] | None = None,
) -> tuple[Database, ...]:
    """Draw a fleet: all of :data:`MIXES` alike, footprints as :data:`FOOTPRINTS` says.

    Parameters
    ----------
    clients
        The client clusters.
    databases
        How many; 100 to 1,000 is usual.
    seed
        The same seed gives the same fleet, bit for bit, and the first n databases of a larger one.
    timeline
        Where events fall, one each to a fifth of the databases; None: no events.
    median_rate, sigma
        Sizes are log-normal: median in operations per interval, standard deviation of the log.
    nearest_sites
        For each client, the site closest to it: gives a quarter of the databases a preferred
        leader, next to their heaviest client. None: no preferences.

    Raises
    ------
    InputError
        For numbers out of range, and for another number of nearest sites than of clients.
    """
    instance_of(clients, Clients, "clients", "workloads.Clients")
    databases = whole(databases, "databases", minimum=1, maximum=_MOST_DATABASES)
    seed = whole(seed, "seed")
    if timeline is not None:
        instance_of(timeline, Timeline, "timeline", "a Timeline")
    number(median_rate, "median_rate", above=True)
    number(sigma, "sigma")
    near: tuple[str, ...] = ()
    if nearest_sites is not None:
        given = elements(nearest_sites, "nearest_sites", "one site per client")
        near = tuple(text(site, "nearest_sites") for site in given)
        fits, words = len(near) == len(clients), "one site per client is needed"
        require(fits, "nearest_sites", words, len(near), f"{len(clients)} names")
    kinds, kind_odds = tuple(MIXES), np.ones(len(MIXES)) / len(MIXES)
    shapes, shape_odds = tuple(FOOTPRINTS), np.array(list(FOOTPRINTS.values()))

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
        if timeline is not None and happens < _EVENTFUL:
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
                preferred_leader=near[heaviest] if near and wish < _PREFERRING else None,
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


# Numbers of a fleet whose databases share sites: sizes, demand by the local clock, groups

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
    words, expected = "too few databases for the groups", f"at most {len(names) // each} groups"
    require(count * each <= len(names), "groups", words, count, f"{expected} of {each}")
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

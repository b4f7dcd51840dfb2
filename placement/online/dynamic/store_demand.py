"""A store on a ring, its hot sets, and the requests that every policy meets.

The ring says where an object's static copies and its dynamic copy of each site live (Matri et al.
2018, sections 4 and 7.1; Karger et al., STOC 1997). Demand has a hot set per generator, Zipf ranks
on shuffled keys. Generators restart in the course of the requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from placement.errors import InputError
from placement.online.dynamic.replication_problem import Geography, ReplicationProblem
from placement.online.simulation import check_fields, spawn_streams, zipf
from placement.support.checks import (
    BoolArray,
    FloatArray,
    IntArray,
    instance_of,
    mapping,
    number,
    numbers_of,
    text,
    whole,
)


@dataclass(frozen=True, eq=False)
class Ring:
    """Nodes at positions on [0, 1), each in a site."""

    position: FloatArray  #: position of each node, increasing, shape (nodes,)
    site: IntArray  #: site of each node, shape (nodes,)
    sites: int  #: number of sites; each has a node

    def __post_init__(self) -> None:
        sites = whole(self.sites, "sites", minimum=1)
        position, site = numbers_of(self.position, "position"), numbers_of(self.site, "site")
        if position.ndim != 1 or position.shape != site.shape:
            expected = f"that of position, {position.shape}, with one axis"
            raise InputError("wrong shape", field="site", value=site.shape, expected=expected)
        if not ((position >= 0) & (position < 1)).all() or (np.diff(position) < 0).any():
            raise InputError(
                "not positions on the ring", field="position", expected="increasing, 0 to < 1"
            )
        if set(site.tolist()) != set(range(sites)):
            found, expected = sorted(set(site.tolist())), f"each of 0 to {sites - 1}"
            raise InputError("not the sites of nodes", field="site", value=found, expected=expected)
        position.flags.writeable = False
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "site", site.astype(np.intp))
        object.__setattr__(self, "sites", sites)

    def static_nodes(self, keys: FloatArray, copies: int = 3) -> IntArray:
        """Nodes with the static copies of keys at the given positions, shape (keys, copies).

        The primary is the first node at or after the key. The other copies are on the next nodes:
        two of them may share a site.
        """
        copies = whole(copies, "copies", minimum=1, maximum=len(self.position))
        first = np.searchsorted(self.position, keys)
        return ((first[:, None] + np.arange(copies)) % len(self.position)).astype(np.intp)

    def static_sites(self, keys: FloatArray, copies: int = 3) -> BoolArray:
        """Return whether each site has a static copy, shape (sites, keys)."""
        nodes = self.static_nodes(keys, copies)
        result = np.zeros((self.sites, len(keys)), dtype=bool)
        for column in nodes.T:
            result[self.site[column], np.arange(len(keys))] = True
        return result

    def holders(self, keys: FloatArray) -> IntArray:
        """Node that would hold the dynamic copy of each key at each site, shape (sites, keys).

        The first node of the site on a walk of the ring from the key on. O(sites · keys · log).
        """
        result = np.empty((self.sites, len(keys)), dtype=np.intp)
        for site in range(self.sites):
            mine = np.flatnonzero(self.site == site)
            result[site] = mine[np.searchsorted(self.position[mine], keys) % len(mine)]
        return result

    def contacts(self, keys: FloatArray, copies: int = 3) -> IntArray:
        """Node of each site that is asked for each key, shape (sites, keys).

        Where the site has a static copy, the first of its nodes that holds one; elsewhere the
        holder of the dynamic copy.
        """
        result = self.holders(keys)
        for column in self.static_nodes(keys, copies).T[::-1]:
            result[self.site[column], np.arange(len(keys))] = column
        return result


def random_ring(rng: np.random.Generator, sites: int, nodes_per_site: int = 16) -> Ring:
    """Put `nodes_per_site` nodes of each site at random positions."""
    sites = whole(sites, "sites", minimum=1)
    nodes_per_site = whole(nodes_per_site, "nodes_per_site", minimum=1)
    count = sites * nodes_per_site
    owner = rng.permutation(np.repeat(np.arange(sites), nodes_per_site))
    return Ring(np.sort(rng.random(count)), owner.astype(np.intp), sites)


@dataclass(frozen=True, eq=False)
class Generators:
    """Generators of requests, each at a site and with its own order of popularity."""

    site: IntArray  #: site of each generator, shape (generators,)
    order: IntArray  #: order[g, r] is the key of rank r for generator g, shape (generators, keys)
    common: IntArray  #: the order of the hot set that all share, shape (keys,)
    correlation: float  #: share of each generator's requests that follow `common`
    popularity: FloatArray  #: probabilities of the ranks, shape (keys,)

    def probabilities(self) -> FloatArray:
        """Probability of each key in the requests of each generator, shape (generators, keys)."""
        result = np.zeros(self.order.shape)
        for row, order in zip(result, self.order, strict=True):
            row[order] += (1 - self.correlation) * self.popularity
            row[self.common] += self.correlation * self.popularity
        return result

    def reads(self, sites: int) -> FloatArray:
        """Share of all requests by site and key, shape (sites, keys); sums to 1."""
        result = np.zeros((sites, len(self.common)))
        np.add.at(result, self.site, self.probabilities())
        return result / len(self.site)

    def restarted(self, generator: int, rng: np.random.Generator) -> Generators:
        """Return the generators after one of them was restarted with a new hot set."""
        order = self.order.copy()
        order[generator] = rng.permutation(order.shape[1])
        return Generators(self.site, order, self.common, self.correlation, self.popularity)


@dataclass(frozen=True, eq=False)
class HotSetWorld:
    """A store on a ring, and who asks it.

    Attributes
    ----------
    geography, ring
        Sites and nodes.
    keys
        Position of each key on the ring, shape (keys,).
    generators
        Who asks.
    static_copies
        Static copies of each object.
    """

    geography: Geography
    ring: Ring
    keys: FloatArray
    generators: Generators
    static_copies: int = 3

    def __post_init__(self) -> None:
        instance_of(self.geography, Geography, "geography", "a Geography")
        instance_of(self.ring, Ring, "ring", "a Ring")
        instance_of(self.generators, Generators, "generators", "Generators")
        keys = numbers_of(self.keys, "keys")
        if keys.ndim != 1 or not ((keys >= 0) & (keys < 1)).all():
            raise InputError("not on the ring", field="keys", expected="positions from 0 to < 1")
        copies = whole(self.static_copies, "static_copies", minimum=1)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "static_copies", copies)

    def problem(self, capacity: int) -> ReplicationProblem:
        """Return the placement of `capacity` dynamic copies per site, with expected read rates."""
        return ReplicationProblem(
            self.geography,
            self.ring.static_sites(self.keys, self.static_copies),
            self.generators.reads(self.geography.count),
            np.array(capacity),
        )


def hot_set_world(
    geography: Geography,
    keys: int,
    streams: dict[str, np.random.Generator],
    *,
    correlation: float = 0.0,
    generators_per_site: int = 2,
    nodes_per_site: int = 16,
    static_copies: int = 3,
    exponent: float = 0.99,
) -> HotSetWorld:
    """Draw a store with its objects and preferences.

    Parameters
    ----------
    geography
        Sites.
    keys
        Number of objects that are asked for.
    streams
        Generators of randomness named "ring" and "demand".
    correlation
        Share of demand on a hot set common to all generators, 0 to 1.
    generators_per_site, nodes_per_site, static_copies
        2, 16 and 3 in the paper.
    exponent
        Of the Zipf distribution.
    """
    instance_of(geography, Geography, "geography", "a Geography")
    for cause in ("ring", "demand"):
        known = mapping(streams, "streams", "generators named 'ring' and 'demand'").get(cause)
        instance_of(known, np.random.Generator, f"streams[{cause!r}]", "a NumPy generator")
    number(correlation, "correlation", maximum=1.0)
    keys = whole(keys, "keys", minimum=1)
    generators_per_site = whole(generators_per_site, "generators_per_site", minimum=1)
    sites = geography.count
    ring = random_ring(streams["ring"], sites, nodes_per_site)
    position = streams["ring"].random(keys)
    demand = streams["demand"]
    owner = np.repeat(np.arange(sites), generators_per_site).astype(np.intp)
    common = demand.permutation(keys)
    order = np.stack([demand.permutation(keys) for _ in owner])
    generators = Generators(owner, order, common, correlation, zipf(keys, exponent))
    return HotSetWorld(geography, ring, position, generators, static_copies)


WriteKeys = Literal["read", "other"]

CAUSES = ("ring", "demand", "restarts", "arrivals", "policy")
"""Streams of a run: where things are; what is popular; new hot sets; requests; a policy's draws."""


@dataclass(frozen=True, slots=True)
class RequestWorkload:
    """Volume of requests, and times at which hot sets change.

    Writes of "other" keys go each to a separate key that is never read and lies at the same place
    on the ring, as in Figure 6 of the paper; such keys have static copies alone. Writes of "read"
    keys evict objects from caches and wait for dynamic copies.
    """

    seconds: float = 300.0  #: length of the run
    rate: float = 1000.0  #: requests per second of each generator, a Poisson process
    write_share: float = 0.0
    #: seconds between restarts, which go through the generators in turn; 0: never
    restart_every: float = 30.0
    tick: float = 0.5  #: seconds that are simulated at once
    write_keys: WriteKeys = "read"

    def __post_init__(self) -> None:
        check_fields(
            self,
            least={"rate": 0.0, "restart_every": 0.0},
            positive=("seconds", "tick"),
            shares=["write_share"],
        )
        text(self.write_keys, "write_keys", choices=get_args(WriteKeys))


@dataclass(frozen=True, eq=False, slots=True)
class Tick:
    """Requests of one tick, in the order of their arrival."""

    start: float  #: second at which the tick begins
    restarted: tuple[int, ...]  #: generators that restarted at its beginning
    generators: Generators  #: who asks, as of now
    #: `generator`, `key`, `write`: per request: who, for what, and whether it writes
    generator: IntArray
    key: IntArray
    write: BoolArray


def requests(world: HotSetWorld, workload: RequestWorkload, seed: int) -> Iterator[Tick]:
    """Yield the ticks of a run; the same for the same world, workload and seed."""
    instance_of(world, HotSetWorld, "world", "a HotSetWorld of placement.online.dynamic")
    instance_of(
        workload, RequestWorkload, "workload", "a RequestWorkload of placement.online.dynamic"
    )
    streams = spawn_streams(seed, CAUSES)
    arrivals, restarts = streams["arrivals"], streams["restarts"]
    generators = world.generators
    count, keys = len(generators.site), len(generators.common)
    # A table of cumulative chances turns uniform numbers into ranks by bisection.
    cumulative = np.cumsum(generators.popularity)
    cumulative /= cumulative[-1]
    ticks = int(np.ceil(workload.seconds / workload.tick - 1e-9))
    done = 0
    for number_ in range(ticks):
        start = number_ * workload.tick
        restarted = []
        while workload.restart_every and start >= (done + 1) * workload.restart_every - 1e-9:
            restarted.append(done % count)
            generators = generators.restarted(done % count, restarts)
            done += 1
        size = int(arrivals.poisson(workload.rate * workload.tick * count))
        who = arrivals.integers(0, count, size)
        rank = np.minimum(np.searchsorted(cumulative, arrivals.random(size), "right"), keys - 1)
        shared = arrivals.random(size) < generators.correlation
        key = np.where(shared, generators.common[rank], generators.order[who, rank])
        write = arrivals.random(size) < workload.write_share
        yield Tick(
            start, tuple(restarted), generators, who.astype(np.intp), key.astype(np.intp), write
        )


class TickLog:
    """Means of each tick of a run, and all latencies of reads counted."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []
        self._latencies: Counter[float] = Counter()

    def add(self, start: float, reads: FloatArray, *more: FloatArray | BoolArray | float) -> None:
        """Add a tick: latencies of its reads in ms; of arrays the mean is kept, NaN of none."""
        values, counts = np.unique(reads, return_counts=True)
        self._latencies.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        self._rows.append((start, *(_mean(each) for each in (reads, *more))))

    def columns(self) -> FloatArray:
        """Return starts of the ticks, mean latencies, and the further columns, a row for each."""
        return np.array(self._rows).T

    def reads(self) -> tuple[FloatArray, IntArray]:
        """Return latencies of all reads in ms, increasing, with their number."""
        values = sorted(self._latencies)
        numbers = np.array([self._latencies[value] for value in values], dtype=np.intp)
        return np.array(values), numbers


def _mean(values: FloatArray | BoolArray | float) -> float:
    array = np.asarray(values)
    return float(array.mean()) if array.size else float("nan")

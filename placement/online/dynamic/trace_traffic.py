"""A user's own requests in the simulation of votes, in place of generators with hot sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from placement.errors import InputError
from placement.online.dynamic.hash_ring import random_ring
from placement.online.dynamic.hot_set_demand import HotSetWorld
from placement.online.dynamic.request_traffic import Tick
from placement.online.dynamic.site_geography import Geography
from placement.online.request_trace import RequestTrace
from placement.support.checks import FloatArray, IntArray, instance_of, number, numbers_of, whole

__all__ = ["TraceClients", "trace_ticks", "trace_world"]


@dataclass(frozen=True, eq=False)
class TraceClients:
    """Clients of a trace, each at a site, with their numbers of reads.

    Attributes
    ----------
    site
        Site of each client, shape (clients,).
    counts
        Reads of each key by the clients of each site in the whole trace, shape (sites, keys).
    """

    site: IntArray
    counts: FloatArray

    def reads(self, sites: int) -> FloatArray:
        """Share of all reads by site and key, shape (sites, keys); sums to 1."""
        if len(self.counts) != sites:
            known = str(len(self.counts))
            raise InputError("other sites", field="sites", value=sites, expected=known)
        return np.asarray(self.counts / self.counts.sum())


def trace_world(
    trace: RequestTrace,
    geography: Geography,
    home: Sequence[int],
    rng: np.random.Generator,
    *,
    nodes_per_site: int = 16,
    static_copies: int = 3,
) -> HotSetWorld:
    """Return a store with the keys of a trace, at random positions of a ring.

    Parameters
    ----------
    trace
        Of :func:`placement.online.read_trace`.
    geography
        Sites.
    home
        Site of each client of the trace.
    rng
        Draws the positions of nodes and keys.
    nodes_per_site, static_copies
        As of :func:`placement.online.dynamic.hot_set_world`.

    Raises
    ------
    InputError
        For a client without a site, or a trace without reads.
    """
    instance_of(trace, RequestTrace, "trace", "a RequestTrace of placement.online")
    instance_of(geography, Geography, "geography", "a Geography")
    site = numbers_of(home, "home").astype(np.intp)
    if site.shape != (len(trace.clients),) or not ((site >= 0) & (site < geography.count)).all():
        raise InputError(
            "not a site for each client", field="home", value=site.shape,
            expected=f"{len(trace.clients)} indices below {geography.count}",
        )  # fmt: skip
    if trace.update.all():
        raise InputError("no reads", source=trace.source, field="op", expected="a read")
    counts = np.zeros((geography.count, len(trace.keys)))
    reads = ~trace.update
    np.add.at(counts, (site[trace.client[reads]], trace.key[reads]), 1.0)
    ring = random_ring(rng, geography.count, whole(nodes_per_site, "nodes_per_site", minimum=1))
    return HotSetWorld(
        geography, ring, rng.random(len(trace.keys)), TraceClients(site, counts), static_copies
    )


def trace_ticks(
    trace: RequestTrace, world: HotSetWorld, *, tick: float = 0.5, scale: float = 1.0
) -> Iterator[Tick]:
    """Yield the requests of a trace, `tick` seconds at a time.

    Parameters
    ----------
    trace, world
        As of :func:`trace_world`.
    tick
        Seconds that are simulated at once.
    scale
        Factor on the times of the trace: below 1 it runs faster.
    """
    length = number(tick, "tick", above=True)
    seconds = trace.time / 1000.0 * number(scale, "scale", above=True)
    many = int(seconds[-1] // length) + 1
    edges = np.searchsorted(seconds, length * np.arange(many + 1))
    edges[-1] = trace.count
    for start, (low, high) in enumerate(pairwise(edges.tolist())):
        here = slice(low, high)
        yield Tick(
            start * length, (), world.generators, trace.client[here], trace.key[here],
            trace.update[here],
        )  # fmt: skip

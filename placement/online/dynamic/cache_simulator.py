"""A cache at every site in place of dynamic copies: what the paper compares with.

The k objects of a site's cache are spread over its nodes by the ring. A client whose site has no
static copy asks the node at its site that would hold the object. A hit costs the local RTT; on a
miss the local hop is lost, the closest static copy answers, and the object is cached. A write
evicts the object from the caches of all sites, unless the workload writes to other keys than are
read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from placement.errors import require
from placement.online.dynamic.store_demand import HotSetWorld, RequestWorkload, TickLog, requests
from placement.online.dynamic.vote_simulator import WriteForwarding, write_rtt
from placement.support.checks import FloatArray, IntArray


class Cache(Protocol):
    """Objects of one node; uniform size."""

    def read(self, key: int) -> bool:
        """Return whether `key` is held; where not, it is put in, perhaps in place of another."""
        ...

    def evict(self, key: int) -> None:
        """Drop a key; nothing happens if the cache does not hold `key`."""
        ...


@dataclass(frozen=True, eq=False)
class CacheTrace:
    """Figures of a run per tick; NaN where a tick has no reads or no writes."""

    time: FloatArray  #: start of each tick in s
    #: `read_ms`, `write_ms`: mean latency
    read_ms: FloatArray
    write_ms: FloatArray
    #: share of the reads without a local static copy that found the object cached, whole run
    hits: float
    #: latencies of all reads in ms with their number, as (values, counts)
    reads: tuple[FloatArray, IntArray]


def simulate_caches(
    world: HotSetWorld,
    workload: RequestWorkload,
    make: Callable[[int], Cache] | None,
    k: int,
    seed: int,
    *,
    forwarding: WriteForwarding = WriteForwarding.SITES,
) -> CacheTrace:
    """Simulate caches under the requests that :func:`~…simulator.simulate` sees for this seed.

    `make` makes the cache of one node, given its room; None: the unmodified store without caches.
    `k` objects are cached at each site, spread over its nodes; a multiple of their number.
    O(requests), one call of Python per read.
    """
    rtt = world.geography.rtt
    problem = world.problem(0)
    static, static_rtt = problem.static, problem.static_rtt
    closest = problem.closest_static
    holder = world.ring.holders(world.keys)
    per_site = np.bincount(world.ring.site, minlength=world.geography.count)
    words = "cannot be spread evenly over the nodes of a site"
    expected = f"a multiple of {int(per_site[0])}"
    require(make is None or not (k % per_site).any(), "k", words, k, expected)
    rooms = (k // per_site[world.ring.site]).tolist()
    caches = None if make is None else [make(room) for room in rooms]
    log = TickLog()
    hits = misses = 0
    evicting = workload.write_keys == "read"
    for tick in requests(world, workload, seed):
        home = world.generators.site[tick.generator]
        local = static[home, tick.key]
        latency = static_rtt[home, tick.key].copy()
        if caches is not None:
            nodes = holder[home, tick.key]
            found = np.zeros(len(home), dtype=bool)
            seen = np.flatnonzero((~local & ~tick.write) | (tick.write & evicting))
            for index, write, node, key in zip(
                seen.tolist(),
                tick.write[seen].tolist(),
                nodes[seen].tolist(),
                tick.key[seen].tolist(),
                strict=True,
            ):
                if write:
                    for site in range(len(holder)):
                        caches[holder[site, key]].evict(key)
                else:
                    found[index] = caches[node].read(key)
            asked = ~local & ~tick.write
            own = np.diag(rtt)[home]
            # A miss has gone to its own site in vain first.
            latency = np.where(asked, np.where(found, own, own + latency), latency)
            hits += int(found.sum())
            misses += int((asked & ~found).sum())
        writes = write_rtt(rtt, closest, static, home[tick.write], tick.key[tick.write], forwarding)
        log.add(tick.start, latency[~tick.write], writes)
    share = hits / (hits + misses) if hits + misses else float("nan")
    return CacheTrace(*(*log.columns(), share, log.reads()))


class _Recorder:
    """A cache that holds nothing and keeps what it is asked."""

    def __init__(self) -> None:
        self.events: list[int] = []

    def read(self, key: int) -> bool:
        self.events.append(key)
        return False

    def evict(self, key: int) -> None:
        self.events.append(-key - 1)


def accesses(world: HotSetWorld, workload: RequestWorkload, seed: int) -> list[IntArray]:
    """Return the accesses to the cache of each node in a run, nodes in order.

    Keys in the order of requests, −key − 1 for a write: reads of objects without a static copy at
    the reader's site, and all writes of objects that the node would hold, unless the workload
    writes to other keys than are read.
    """
    recorders: list[_Recorder] = []

    def make(room: int) -> Cache:
        recorders.append(_Recorder())
        return recorders[-1]

    per_site = np.bincount(world.ring.site, minlength=world.geography.count)
    simulate_caches(world, workload, make, int(np.lcm.reduce(per_site)), seed)
    return [np.array(recorder.events, dtype=np.intp) for recorder in recorders]

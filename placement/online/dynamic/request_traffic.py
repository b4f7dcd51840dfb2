"""Requests over time, with generators that restart: the same for every policy under one seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from placement.online.dynamic.hot_set_demand import Generators, HotSetWorld, RequestSource
from placement.online.random_streams import spawn_streams
from placement.support.checks import BoolArray, IntArray, instance_of, number, text

__all__ = ["CAUSES", "RequestWorkload", "Tick", "WriteKeys", "requests"]

WriteKeys = Literal["read", "other"]

CAUSES = ("ring", "demand", "restarts", "arrivals", "policy")
"""Streams of a run: where things are; what is popular; new hot sets; requests; a policy's draws."""


@dataclass(frozen=True, slots=True)
class RequestWorkload:
    """Volume of requests, and times at which hot sets change.

    Parameters
    ----------
    seconds
        Length of the run.
    rate
        Requests per second of each generator, a Poisson process.
    write_share
        Share of requests that are writes.
    write_keys
        "read": writes go to keys drawn like those of reads, so that they evict objects from caches
        and wait for dynamic copies. "other": each goes to a separate key that is never read and
        lies at the same place on the ring, as in Figure 6 of the paper; such keys have static
        copies alone.
    restart_every
        Seconds between restarts, which go through the generators in turn; 0: never.
    tick
        Seconds that are simulated at once.
    """

    seconds: float = 300.0
    rate: float = 1000.0
    write_share: float = 0.0
    restart_every: float = 30.0
    tick: float = 0.5
    write_keys: WriteKeys = "read"

    def __post_init__(self) -> None:
        number(self.seconds, "seconds", above=True)
        number(self.rate, "rate")
        number(self.restart_every, "restart_every")
        number(self.tick, "tick", above=True)
        number(self.write_share, "write_share", maximum=1.0)
        text(self.write_keys, "write_keys", choices=get_args(WriteKeys))


@dataclass(frozen=True, eq=False, slots=True)
class Tick:
    """Requests of one tick, in the order of their arrival.

    Attributes
    ----------
    start
        Second at which the tick begins.
    restarted
        Generators that restarted at its beginning.
    generators
        Who asks, as of now.
    generator, key, write
        Per request: who, for what, and whether it writes.
    """

    start: float
    restarted: tuple[int, ...]
    generators: RequestSource
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
    instance_of(generators, Generators, "world.generators", "Generators: hot sets, not a trace")
    assert isinstance(generators, Generators)
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

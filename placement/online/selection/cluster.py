"""The cluster that reads are sent to: sizes, speeds that fluctuate, load and who makes it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from placement.checks import FloatArray, IntArray, number, text, whole
from placement.errors import InputError

__all__ = ["Arrivals", "ServerCluster"]

Arrivals = Literal["grid", "poisson"]

_MOST_REPLICAS = 127
"""A sample path stores the order of a group's replicas in bytes."""


@dataclass(frozen=True)
class ServerCluster:
    """Servers on a ring, clients, and the load; defaults are those of the published simulation.

    Group g of keys is replicated on servers g, g + 1, …, g + replication − 1 (modulo `servers`). A
    server runs `slots` requests at a time and serves the rest first come, first served. Its mean
    service time is slow_ms or slow_ms/fluctuation, each with probability 1/2, drawn anew by every
    server at 0, T, 2T, … A request of work e (unit mean) that starts while the mean is m takes
    e·m ms.

    Parameters
    ----------
    servers, slots, replication, clients
        Numbers of each; replication <= servers, and at most 127.
    utilisation
        Offered load over mean capacity, shadow reads not counted: with a probability `shadow` of
        reading the other replicas too, the true load is utilisation·(1 + shadow·(replication − 1)).
    epoch_ms
        T, ms between two draws of the speeds; infinite: drawn once.
    requests
        How many reads arrive.
    slow_ms
        Mean service time of a slow server.
    fluctuation
        D >= 1: how much faster a fast server is; 1: all are alike.
    one_way_ms
        Network delay from client to server, and back.
    arrivals
        "poisson": exponential gaps. "grid": as in the authors' simulator, `generators` sources
        that start at 0 together and have whole-millisecond Poisson gaps, so that requests come in
        bursts.
    generators
        Sources of "grid" arrivals.
    shadow
        Probability that a read also goes to the other replicas of its group ("read repair").
    heavy_clients, heavy_demand
        This fraction of the clients makes this fraction of the demand; equal: all are alike.

    Raises
    ------
    InputError
        Naming the field, its value and what was expected.

    Examples
    --------
    >>> cluster = ServerCluster(utilisation=0.7)
    >>> round(cluster.arrivals_per_ms, 9), round(cluster.offered_load, 9)
    (70.0, 0.84)
    """

    servers: int = 50
    slots: int = 4
    replication: int = 3
    clients: int = 150
    _: KW_ONLY
    utilisation: float = 0.7
    epoch_ms: float = 100.0
    requests: int = 600_000
    slow_ms: float = 4.0
    fluctuation: float = 3.0
    one_way_ms: float = 0.25
    arrivals: Arrivals = "poisson"
    generators: int = 200
    shadow: float = 0.1
    heavy_clients: float = 1.0
    heavy_demand: float = 1.0

    def __post_init__(self) -> None:
        counts = ("servers", "slots", "replication", "clients", "generators", "requests")
        for name in counts:
            most = _MOST_REPLICAS if name == "replication" else None
            least = 0 if name == "requests" else 1
            value = whole(getattr(self, name), name, minimum=least, maximum=most)
            object.__setattr__(self, name, value)
        if self.replication > self.servers:
            raise InputError(
                "more replicas than servers",
                field="replication",
                value=self.replication,
                expected=f"at most servers = {self.servers}",
            )
        number(self.utilisation, "utilisation", above=True)
        number(self.slow_ms, "slow_ms", above=True)
        number(self.fluctuation, "fluctuation", minimum=1.0)
        number(self.one_way_ms, "one_way_ms")
        number(self.epoch_ms, "epoch_ms", above=True, infinite=True)
        text(self.arrivals, "arrivals", choices=get_args(Arrivals))
        for name in ("shadow", "heavy_clients", "heavy_demand"):
            number(getattr(self, name), name, maximum=1.0)
        if self.heavy_clients == 0 or (self.heavy_clients == 1) != (self.heavy_demand == 1):
            raise InputError(
                "demand that nobody makes",
                field="heavy_demand",
                value=(self.heavy_clients, self.heavy_demand),
                expected="heavy_clients > 0, and both 1 or neither",
            )

    @property
    def fast_ms(self) -> float:
        """Mean service time of a fast server."""
        return self.slow_ms / self.fluctuation

    @property
    def arrivals_per_ms(self) -> float:
        """Reads per ms: utilisation times the mean capacity of all slots."""
        capacity = self.servers * self.slots * (1 / self.slow_ms + 1 / self.fast_ms) / 2
        return self.utilisation * capacity

    @property
    def offered_load(self) -> float:
        """Load over capacity with shadow reads."""
        return self.utilisation * (1 + self.shadow * (self.replication - 1))

    @cached_property
    def groups(self) -> IntArray:
        """Servers of every group in ring order, shape (servers, replication)."""
        first = np.arange(self.servers, dtype=np.intp)[:, np.newaxis]
        table = (first + np.arange(self.replication, dtype=np.intp)) % self.servers
        table.flags.writeable = False
        return table

    @cached_property
    def client_weights(self) -> FloatArray:
        """Share of each client in the demand, times the number of clients; shape (clients,).

        The first round(heavy_clients·clients) clients, at least one, share heavy_demand equally;
        the others share the rest. Sums to `clients`.
        """
        if self.heavy_clients == 1:
            weights = np.ones(self.clients)
        else:
            heavy = max(1, round(self.heavy_clients * self.clients))
            if heavy == self.clients:
                raise InputError(
                    "too few clients to tell heavy from light",
                    field="clients",
                    value=self.clients,
                    expected=f"more, or heavy_clients below {self.heavy_clients:g}",
                )
            weights = np.empty(self.clients)
            weights[:heavy] = self.heavy_demand * self.clients / heavy
            weights[heavy:] = (1 - self.heavy_demand) * self.clients / (self.clients - heavy)
        weights.flags.writeable = False
        return weights

"""The cluster that operations are sent to: servers, groups of replicas, RTTs, load."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from placement.errors import InputError, require
from placement.online.simulation import check_fields, zipf
from placement.support.checks import (
    FloatArray,
    IntArray,
    elements,
    frozen,
    instances_of,
    nonnegative,
    number,
    read_only,
    text,
    whole,
)

Arrivals = Literal["grid", "poisson"]

_MOST_REPLICAS = 127
"""A sample path stores the order of a group's replicas in bytes."""


@dataclass(frozen=True, slots=True)
class LoadGenerators:
    """Generators that join a run together.

    Parameters
    ----------
    count
        Number of generators.
    update_share
        Part of their operations that are updates, 0 to 1.
    joins_ms
        Time at which they join, ms.

    Examples
    --------
    The load step of the paper: 40 update-heavy generators join 80 read-heavy ones.

    >>> step = (LoadGenerators(80, 0.05), LoadGenerators(40, 0.5, 10_000.0))
    """

    count: int
    update_share: float = 0.0
    joins_ms: float = 0.0

    def __post_init__(self) -> None:
        check_fields(self, counts={"count": 1}, least={"joins_ms": 0.0}, shares=["update_share"])


@dataclass(frozen=True)
class ServerCluster:
    """Servers, clients, and the load; the defaults are the published simulation.

    Group g of keys is replicated on servers g, g + 1, …, g + replication − 1 (modulo `servers`),
    or where `group_servers` says. A server runs `slots` requests at a time and serves the others
    first come, first served. Its mean service time is slow_ms or slow_ms/fluctuation, each with
    probability 1/2, drawn again by every server at 0, T, 2T, … A request of work e (unit mean) that
    starts while the mean is m takes e·m ms.

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
    client_demand
        Share of each client in the demand, shape (clients,), in any unit, in place of
        `heavy_clients`; empty: those.
    group_servers
        The servers of each group, `replication` distinct ones, best first where ties go by the
        "ring"; empty: the ring.
    group_zipf
        Exponent of the popularity of the groups, group 0 the most popular; 0: all alike.
    rtt_ms
        RTT of each client to each server, shape (clients, servers), half each way; empty:
        2·`one_way_ms` for all.
    slowness
        Factor on the mean service time of each server, shape (servers,), > 0; empty: 1.
    largest_record, record_zipf
        The work of a read is proportional to the size of its record, a whole number s from 1 to
        `largest_record` with a chance proportional to s^(−record_zipf), over the mean size. 1: all
        records are alike.
    update_share
        Part of the operations that are updates. An update goes to all replicas of its group, asks
        no policy and no rate control, and is done at the first answer.
    update_work
        Mean work of an update at each replica, in reads.
    closed
        Generators in a closed loop in place of `arrivals` at a rate; `utilisation` and
        `update_share` are then not used.

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
    client_demand: tuple[float, ...] = ()
    group_servers: tuple[tuple[int, ...], ...] = ()
    group_zipf: float = 0.0
    rtt_ms: tuple[tuple[float, ...], ...] = ()
    slowness: tuple[float, ...] = ()
    largest_record: int = 1
    record_zipf: float = 0.99
    update_share: float = 0.0
    update_work: float = 1.0
    closed: tuple[LoadGenerators, ...] = ()

    def __post_init__(self) -> None:
        counts = ("servers", "slots", "replication", "clients", "generators", "largest_record")
        delays = ("one_way_ms", "group_zipf", "record_zipf")
        check_fields(
            self,
            counts={**dict.fromkeys(counts, 1), "requests": 0},
            least={**dict.fromkeys(delays, 0.0), "fluctuation": 1.0},
            positive=("utilisation", "slow_ms", "update_work"),
            shares=("shadow", "heavy_clients", "heavy_demand", "update_share"),
        )
        most = min(self.servers, _MOST_REPLICAS)
        words = "more replicas than servers"
        require(self.replication <= most, "replication", words, self.replication, f"at most {most}")
        number(self.epoch_ms, "epoch_ms", above=True, infinite=True)
        text(self.arrivals, "arrivals", choices=get_args(Arrivals))
        if self.heavy_clients == 0 or (self.heavy_clients == 1) != (self.heavy_demand == 1):
            raise InputError(
                "demand without a client", field="heavy_demand",
                value=(self.heavy_clients, self.heavy_demand),
                expected="heavy_clients > 0, and both 1 or neither",
            )  # fmt: skip
        self._check_places()
        closed = instances_of(self.closed, LoadGenerators, "closed", "LoadGenerators")
        object.__setattr__(self, "closed", closed)

    def _check_places(self) -> None:
        """Check groups, RTTs and slowness, and store them as tuples."""
        put = object.__setattr__
        groups = []
        for place, given in enumerate(elements(self.group_servers, "group_servers", "groups")):
            field = f"group_servers[{place}]"
            listed = elements(given, field, "a list of servers")
            group = tuple(whole(server, field, maximum=self.servers - 1) for server in listed)
            if len(group) != self.replication or len(set(group)) != len(group):
                expected = f"replication = {self.replication} different servers"
                raise InputError("not a group", field=field, value=group, expected=expected)
            groups.append(group)
        put(self, "group_servers", tuple(groups))
        servers = ("server", tuple(map(str, range(self.servers))))
        clients = ("client", tuple(map(str, range(self.clients))))
        if elements(self.client_demand, "client_demand", "a list of shares"):
            demand = nonnegative(self.client_demand, "client_demand", [clients])
            require(demand.any(), "client_demand", "demand without a client", 0.0, "a share > 0")
            put(self, "client_demand", tuple(demand.tolist()))
        if elements(self.rtt_ms, "rtt_ms", "a row of RTTs for each client"):
            table = nonnegative(self.rtt_ms, "rtt_ms", [clients, servers])
            put(self, "rtt_ms", tuple(map(tuple, table.tolist())))
        if elements(self.slowness, "slowness", "a list of factors"):
            row = nonnegative(self.slowness, "slowness", [servers]).tolist()
            for server, value in enumerate(row):
                number(value, f"slowness[{server}]", above=True)
            put(self, "slowness", tuple(row))

    def at_sites(self, rtt: FloatArray, demand: FloatArray) -> ServerCluster:
        """Return the cluster with its servers at the sites of `replication` replicas.

        Server s·m + j is the j-th of m at site s; group j is replicated on the j-th of every site.

        Parameters
        ----------
        rtt
            RTTs of clients to sites, ms, shape (clients, replication).
        demand
            Share of each client in the demand, in any unit, shape (clients,).
        """
        each = self.servers // self.replication
        groups = np.arange(each)[:, np.newaxis] + each * np.arange(self.replication)
        return replace(
            self,
            clients=len(rtt),
            client_demand=tuple(demand.tolist()),
            group_servers=tuple(map(tuple, groups.tolist())),
            rtt_ms=tuple(map(tuple, np.repeat(rtt, each, axis=1).tolist())),
        )

    @property
    def fast_ms(self) -> float:
        """Mean service time of a fast server of slowness 1."""
        return self.slow_ms / self.fluctuation

    @property
    def capacity_per_ms(self) -> float:
        """Mean number of reads that all slots can serve in a ms."""
        speeds = sum(1 / factor for factor in self.slowness) if self.slowness else self.servers
        return speeds * self.slots * (1 / self.slow_ms + 1 / self.fast_ms) / 2

    @property
    def arrivals_per_ms(self) -> float:
        """Operations per ms: utilisation times the mean capacity of all slots."""
        return self.utilisation * self.capacity_per_ms

    @property
    def offered_load(self) -> float:
        """Load over capacity with shadow reads and updates, all servers together."""
        read = 1 + self.shadow * (self.replication - 1)
        if not self.update_share:
            return self.utilisation * read
        write = self.replication * self.update_work
        return self.utilisation * ((1 - self.update_share) * read + self.update_share * write)

    @cached_property
    def one_way(self) -> FloatArray:
        """Network delay in ms from each client to each server; shape (clients, servers)."""
        if self.rtt_ms:
            return frozen(np.array(self.rtt_ms) / 2.0)
        return frozen(np.full((self.clients, self.servers), self.one_way_ms))

    @cached_property
    def group_chances(self) -> FloatArray:
        """Chance of each group in the operations, shape (groups,)."""
        return frozen(zipf(len(self.groups), self.group_zipf))

    @cached_property
    def groups(self) -> IntArray:
        """Servers of every group, shape (groups, replication)."""
        if self.group_servers:
            return read_only(np.array(self.group_servers, dtype=np.intp))
        first = np.arange(self.servers, dtype=np.intp)[:, np.newaxis]
        return read_only((first + np.arange(self.replication, dtype=np.intp)) % self.servers)

    @cached_property
    def client_weights(self) -> FloatArray:
        """Share of each client in the demand, times the number of clients; shape (clients,).

        The first round(heavy_clients·clients) clients, at least one, share heavy_demand equally;
        the others share the rest; or as `client_demand` says. Sums to `clients`.
        """
        if self.client_demand:
            given = np.array(self.client_demand)
            return frozen(given * (self.clients / given.sum()))
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
        return read_only(weights)

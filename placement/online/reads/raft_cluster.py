"""The simulated database, and the laws that bound what it can do."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from placement.errors import InputError, require
from placement.online.reads.read_problem import ReadStrategy
from placement.online.simulation import check_fields
from placement.support.checks import (
    FloatArray,
    elements,
    frozen,
    nonnegative,
    number,
    numbers_of,
    text,
)


class Visibility(StrEnum):
    """State of the log from which a follower answers a read."""

    APPLIED = "applied"
    """The state machine: entries whose commit the follower has heard of. So the authors' code."""
    LOG = "log"
    """The log too: an entry counts from the moment the follower has appended it."""


def back_off(retry: int, uniform: float) -> float:
    """Wait in ms before retry j = 0, 1, …: U[0.85, 1.15]·min(50·2^j, 5000).

    As the authors' branch of CockroachDB, which retries without limit.
    """
    return min(50.0 * 2.0 ** min(retry, 1000), 5000.0) * (1.0 + 0.15 * (2.0 * uniform - 1.0))


@dataclass(frozen=True, eq=False)
class RaftCluster:
    """n machines with all data on each; one of them, L, holds the lease.

    All work is exponential with the means given, in ms; every machine serves requests first come,
    first served on `cores` cores. The defaults are those of the reference shape and are not
    calibrated to any database.

    Parameters
    ----------
    nodes
        n >= 3.
    leader
        L.
    cores
        Per machine.
    gateway_ms
        Work of the gateway on every operation.
    read_ms
        Work of a read at each node it asks.
    write_ms
        Work of each of the four visits a write pays to L, one after the other: propose, commit,
        apply, resolve. It is acknowledged after the fourth.
    append_ms
        Work of a write at each follower.
    rtt
        Round trips in ms, half each way: one number for all pairs of machines, or a matrix of shape
        (n, n). A machine reaches itself in no time.
    visibility
        See :class:`Visibility`.
    apply_lag_ms
        Mean (exponential) of how long a follower takes to apply what L tells it was committed or
        resolved, after the message has arrived. Takes no core.
    intent_ms
        Mean (exponential) of how long followers wait for L's word that an intent is resolved,
        beyond the write's acknowledgement; 0: it is sent at once. Long ones stand for asynchronous
        resolution under load.
    """

    nodes: int = 5
    leader: int = 0
    cores: int = 8
    gateway_ms: float = 0.9
    read_ms: float = 0.4
    write_ms: float = 0.5
    append_ms: float = 0.4
    rtt: FloatArray = field(default_factory=lambda: np.array(0.3))
    visibility: Visibility = Visibility.APPLIED
    apply_lag_ms: float = 1.0
    intent_ms: float = 0.0

    def __post_init__(self) -> None:
        times = ("gateway_ms", "read_ms", "write_ms", "append_ms", "apply_lag_ms", "intent_ms")
        check_fields(
            self, counts={"nodes": 3, "cores": 1, "leader": 0}, least=dict.fromkeys(times, 0.0)
        )
        expected = f"below {self.nodes}"
        require(self.leader < self.nodes, "leader", "no such node", self.leader, expected)
        matrix = numbers_of(self.rtt, "rtt")
        if matrix.ndim == 0:
            matrix = np.full((self.nodes, self.nodes), number(float(matrix), "rtt"))
        if matrix.shape == (self.nodes, self.nodes):
            np.fill_diagonal(matrix, 0.0)
        axis = ("node", tuple(map(str, range(self.nodes))))
        object.__setattr__(self, "rtt", nonnegative(matrix, "rtt", [axis, axis]))
        known = text(self.visibility, "visibility", choices=[each.value for each in Visibility])
        object.__setattr__(self, "visibility", Visibility(known))

    @property
    def followers_needed(self) -> int:
        """M = ⌊n/2⌋: with L they are a majority."""
        return self.nodes // 2


@dataclass(frozen=True, eq=False)
class ReadWorkload:
    """Clients that each issue one operation after the other, without a pause.

    Parameters
    ----------
    clients
        How many.
    read_share
        Part of the operations that read, 0 to 1.
    keys
        How many there are.
    hot_share, hot_fraction
        `hot_share` of the operations go to `hot_fraction` of the keys, the others to the rest; both
        0: all keys alike.
    gateways
        Weight of each node as the gateway of an operation; empty: all alike.
    """

    clients: int = 70
    read_share: float = 0.95
    keys: int = 100_000
    hot_share: float = 0.0
    hot_fraction: float = 0.0
    gateways: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        shares = ("read_share", "hot_share", "hot_fraction")
        check_fields(self, counts={"clients": 1, "keys": 1}, shares=shares)
        weights = elements(self.gateways, "gateways", "a list of weights")
        weights = tuple(number(weight, f"gateways[{k}]") for k, weight in enumerate(weights))
        object.__setattr__(self, "gateways", weights)
        if (self.hot_share > 0) != (self.hot_fraction > 0):
            raise InputError(
                "hot requests need hot keys, and hot keys hot requests",
                field="hot_fraction",
                value=self.hot_fraction,
                expected="both > 0 or both 0",
            )

    @property
    def hot_keys(self) -> int:
        """Return the number of hot keys: hot_fraction·keys, at least one with hot requests."""
        return max(1, round(self.hot_fraction * self.keys)) if self.hot_fraction else 0

    def gateway_shares(self, nodes: int) -> FloatArray:
        """Part of the operations that enters at each of `nodes` nodes, shape (nodes,)."""
        if not self.gateways:
            return frozen(np.full(nodes, 1.0 / nodes))
        names = tuple(str(node) for node in range(nodes))
        weights = nonnegative(self.gateways, "gateways", [("node", names)])
        if not weights.any():
            raise InputError("no gateway", field="gateways", value=0.0, expected="a weight > 0")
        return frozen(weights / weights.sum())


@dataclass(frozen=True, eq=False)
class Bottleneck:
    """Bounds on a closed loop."""

    #: core-milliseconds that an operation costs each node on average, shape (n,)
    demand: FloatArray
    idle_ms: float  #: at most the mean latency of an operation that meets no other operation
    #: operations per second: at most cores/max demand (utilisation law) and clients/idle latency
    throughput: float
    latency: float  #: least mean latency in ms, clients/throughput (Little)


def bottleneck(cluster: RaftCluster, workload: ReadWorkload, strategy: ReadStrategy) -> Bottleneck:
    """Apply the laws to reads that follow a fixed strategy, and are not retried.

    Parameters
    ----------
    cluster, workload
        What runs where, and what is asked of it.
    strategy
        Per gateway the sets read from, with probabilities.

    Notes
    -----
    The bounds hold for long-run means. The idle latency takes, of a quorum, the longest of the mean
    answers; of a write's followers the way to the m-th nearest without work, since the fastest of
    several need not be the nearest.
    """
    n, leader = cluster.nodes, cluster.leader
    words = "not one mixture per gateway"
    require(len(strategy.mixtures) == n, "strategy", words, len(strategy.mixtures), str(n))
    shares, reads = workload.gateway_shares(n), workload.read_share
    rtt = cluster.rtt
    demand = cluster.gateway_ms * shares
    demand = demand + (1.0 - reads) * np.where(
        np.arange(n) == leader, 4.0 * cluster.write_ms, cluster.append_ms
    )
    way = sorted(float(rtt[leader, v]) for v in range(n) if v != leader)
    commit = way[cluster.followers_needed - 1]
    idle = float(cluster.gateway_ms * float(shares.sum()))
    for gateway, mixture in enumerate(strategy.mixtures):
        write = float(rtt[gateway, leader]) + 4.0 * cluster.write_ms + commit
        idle += shares[gateway] * (1.0 - reads) * write
        for quorum, probability in mixture:
            weight = float(shares[gateway]) * reads * probability
            members = list(quorum)
            demand[members] += weight * cluster.read_ms
            idle += weight * float((rtt[gateway, members] + cluster.read_ms).max())
    most = workload.clients / idle if idle > 0 else np.inf
    busiest = float(demand.max())
    if busiest > 0:
        most = min(most, cluster.cores / busiest)
    return Bottleneck(demand, float(idle), 1000.0 * float(most), workload.clients / float(most))

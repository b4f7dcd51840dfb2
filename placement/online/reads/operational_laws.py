"""Operational laws of the closed loop: what no run of a strategy can exceed in the long run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.checks import FloatArray
from placement.errors import InputError
from placement.online.reads.cluster import Cluster, Workload
from placement.online.reads.quorum_systems import Quorum

__all__ = ["Bottleneck", "bottleneck"]

Mixture = tuple[tuple[Quorum, float], ...]


@dataclass(frozen=True, eq=False)
class Bottleneck:
    """Bounds on a closed loop.

    Attributes
    ----------
    demand
        Core-milliseconds that an operation costs each node on average, shape (n,).
    idle_ms
        At most the mean latency of an operation that meets nobody else.
    throughput
        Operations per second: at most cores/max demand (utilisation law) and clients/idle latency.
    latency
        Least mean latency in ms, clients/throughput (Little).
    """

    demand: FloatArray
    idle_ms: float
    throughput: float
    latency: float


def bottleneck(cluster: Cluster, workload: Workload, mixtures: tuple[Mixture, ...]) -> Bottleneck:
    """Apply the laws to reads that follow fixed mixtures, and are not retried.

    Parameters
    ----------
    mixtures
        Per gateway the sets read from, with probabilities; see
        :class:`placement.online.reads.ReadStrategy`.

    Notes
    -----
    The bounds hold for long-run means. The idle latency takes, of a quorum, the longest of the mean
    answers, and of a write's followers no work but the way to the m-th nearest.
    """
    n, leader = cluster.nodes, cluster.leader
    if len(mixtures) != n:
        raise InputError(
            "not one mixture per gateway",
            field="mixtures",
            value=len(mixtures),
            expected=str(n),
        )
    shares, reads = workload.gateway_shares(n), workload.read_share
    rtt = cluster.rtts
    demand = cluster.gateway_ms * shares
    demand = demand + (1.0 - reads) * np.where(
        np.arange(n) == leader, 4.0 * cluster.write_ms, cluster.append_ms
    )
    way = sorted(float(rtt[leader, v]) for v in range(n) if v != leader)
    commit = way[cluster.followers_needed - 1]
    idle = cluster.gateway_ms
    for gateway, mixture in enumerate(mixtures):
        write = float(rtt[gateway, leader]) + 4.0 * cluster.write_ms + commit
        idle += shares[gateway] * (1.0 - reads) * write
        for quorum, probability in mixture:
            weight = float(shares[gateway]) * reads * probability
            demand[list(quorum)] += weight * cluster.read_ms
            idle += weight * (max(float(rtt[gateway, v]) for v in quorum) + cluster.read_ms)
    most = workload.clients / idle if idle > 0 else np.inf
    busiest = float(demand.max())
    if busiest > 0:
        most = min(most, cluster.cores / busiest)
    return Bottleneck(demand, float(idle), 1000.0 * float(most), workload.clients / float(most))

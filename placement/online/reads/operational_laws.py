"""Operational laws of the closed loop: what no run of a strategy can exceed in the long run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.errors import InputError
from placement.online.reads.cluster import RaftCluster, ReadWorkload
from placement.online.reads.quorum_mixture import ReadStrategy
from placement.online.reads.read_rules import answers_needed
from placement.support.checks import FloatArray

__all__ = ["Bottleneck", "bottleneck"]


@dataclass(frozen=True, eq=False)
class Bottleneck:
    """Bounds on a closed loop.

    Attributes
    ----------
    demand
        Core-milliseconds that an operation costs each node on average, shape (n,).
    idle_ms
        At most the mean latency of an operation that meets no other operation.
    throughput
        Operations per second: at most cores/max demand (utilisation law) and clients/idle latency.
    latency
        Least mean latency in ms, clients/throughput (Little).
    """

    demand: FloatArray
    idle_ms: float
    throughput: float
    latency: float


def bottleneck(cluster: RaftCluster, workload: ReadWorkload, strategy: ReadStrategy) -> Bottleneck:
    """Apply the laws to reads that follow a fixed strategy, and are not retried.

    Parameters
    ----------
    cluster, workload
        What runs where, and what is asked of it.
    strategy
        Per gateway the sets read from, with probabilities, and the answers not waited for.

    Notes
    -----
    The bounds hold for long-run means. The idle latency takes, of a quorum, the longest of the mean
    answers. Of a quorum with spare answers it takes the way to the last node waited for without
    work, since the fastest of several need not be the nearest; of a write's followers likewise the
    way to the m-th nearest.
    """
    n, leader = cluster.nodes, cluster.leader
    if len(strategy.mixtures) != n:
        raise InputError(
            "not one mixture per gateway",
            field="strategy",
            value=len(strategy.mixtures),
            expected=str(n),
        )
    shares, reads = workload.gateway_shares(n), workload.read_share
    rtt = cluster.rtts
    speed = cluster.speeds
    demand = cluster.gateway_ms / speed * shares
    demand = demand + (1.0 - reads) * np.where(
        np.arange(n) == leader, 4.0 * cluster.write_ms / speed, cluster.append_ms / speed
    )
    way = sorted(float(rtt[leader, v]) for v in range(n) if v != leader)
    commit = way[cluster.followers_needed - 1]
    idle = float(cluster.gateway_ms / speed @ shares)
    for gateway, mixture in enumerate(strategy.mixtures):
        write = float(rtt[gateway, leader]) + 4.0 * cluster.write_ms / speed[leader] + commit
        idle += shares[gateway] * (1.0 - reads) * write
        for quorum, probability in mixture:
            weight = float(shares[gateway]) * reads * probability
            members = list(quorum)
            demand[members] += weight * cluster.read_ms / speed[members]
            needed = answers_needed(quorum, strategy.spare)
            if needed == len(quorum):
                last = float((rtt[gateway, members] + cluster.read_ms / speed[members]).max())
            else:
                last = sorted(float(rtt[gateway, v]) for v in quorum)[needed - 1]
            idle += weight * last
    most = workload.clients / idle if idle > 0 else np.inf
    busiest = float(demand.max())
    if busiest > 0:
        most = min(most, cluster.cores / busiest)
    return Bottleneck(demand, float(idle), 1000.0 * float(most), workload.clients / float(most))

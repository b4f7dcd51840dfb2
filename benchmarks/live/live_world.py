"""Questions whose answers are tried: an instance, the network of its nodes, what the model says.

Clients are separate nodes, beside the sites, so that the RTT within a region is that of the
instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.live.delay_proxy import DelayProxy
from benchmarks.live.emulated_wan import EmulatedWan, Jitter, RttSample
from placement import Instance, Operation, Problem
from placement.evaluation.objective import quorum_size
from placement.evaluation.score import operation_latency
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray
from placement.tail import Distributions, Percentile
from placement.tail.histograms import of_samples

__all__ = [
    "LOCAL",
    "OPERATIONS",
    "PUT",
    "READ",
    "client_node",
    "configured",
    "live_instance",
    "measured_distributions",
    "network",
    "predicted",
    "predicted_after_loss",
    "predicted_percentile",
    "proxied",
]

PUT = Operation("put", direct=1, quorum=1, kind="write")
READ = Operation("read", direct=1, quorum=1, kind="read")
"""Linearizable read of etcd: the leader asks a quorum whether it still leads."""

LOCAL = Operation("local", near=1, kind="read")
"""Serializable read: the closest replica answers from what it has."""

OPERATIONS = (PUT, READ, LOCAL)


def live_instance(
    world: Instance,
    sites: Sequence[str],
    clients: Sequence[str],
    operations: Sequence[Operation] = OPERATIONS,
) -> Instance:
    """Return a part of an instance with RTTs that a network can have, and one operation each.

    Parameters
    ----------
    world
        An instance with one RTT matrix.
    sites, clients
        Names of the sites and clients to keep.
    operations
        Each client issues one of each kind.

    Returns
    -------
    Instance
        The RTT between two sites is the mean of both directions.
    """
    rows = world.site_indices(sites)
    columns = np.array([world.client_index(name) for name in clients])
    between = world.site_rtt[np.ix_(rows, rows)]
    return Instance(
        sites=tuple(sites),
        clients=tuple(clients),
        client_rtt=world.client_rtt[np.ix_(columns, rows)],
        site_rtt=(between + between.T) / 2,
        counts=np.ones((len(clients), len(operations))),
        operations=tuple(operations),
        domains={level: tuple(world.labels(level)[row] for row in rows) for level in world.levels},
        name=f"{len(sites)} sites of {world.name}",
        provenance=world.provenance,
    )


def client_node(client: str) -> str:
    """Return the name of a client's node in the network."""
    return f"client {client}"


def network(instance: Instance, jitter: Jitter | None = None) -> EmulatedWan:
    """Return the network of an instance: its sites, then its clients."""
    return EmulatedWan(*_nodes(instance), jitter)


def proxied(instance: Instance, ports: Sequence[int]) -> DelayProxy:
    """Return the network of an instance on the loopback device, for servers at some ports."""
    return DelayProxy(*_nodes(instance), ports)


def _nodes(instance: Instance) -> tuple[list[str], FloatArray]:
    sites, clients = len(instance.sites), len(instance.clients)
    rtt = np.ones((sites + clients, sites + clients))  # no client talks to another
    rtt[:sites, :sites] = instance.site_rtt
    rtt[sites:, :sites] = instance.client_rtt
    rtt[:sites, sites:] = instance.client_rtt.T
    return [*instance.sites, *map(client_node, instance.clients)], rtt


def configured(
    instance: Instance, leader: str, voters: Sequence[str], replicas: Sequence[str]
) -> tuple[Problem, Configuration]:
    """Return a configuration with its problem."""
    problem = Problem(instance, replicas=len(replicas), voters=len(voters))
    place = {name: i for i, name in enumerate(instance.sites)}
    return problem, Configuration(
        place[leader],
        tuple(sorted(place[name] for name in voters)),
        tuple(sorted(place[name] for name in replicas)),
    )


def predicted(
    instance: Instance, leader: str, voters: Sequence[str], replicas: Sequence[str]
) -> dict[tuple[str, str], float]:
    """Return the mean latency in ms by (client, operation), as the evaluator gives it."""
    problem, plan = configured(instance, leader, voters, replicas)
    latency = operation_latency(
        problem.demand, plan.leader, plan.voters, plan.replicas, quorum_size(problem, plan)
    )
    return {
        (client, operation.name): float(latency[0, c, o])
        for c, client in enumerate(instance.clients)
        for o, operation in enumerate(instance.operations)
    }


def predicted_after_loss(
    instance: Instance, lost: str, leader: str, voters: Sequence[str], replicas: Sequence[str]
) -> dict[str, float]:
    """Return the latency of the first operation by client after the loss of a site, in ms.

    Voters and replicas are those before the loss; the quorum has as many votes as before.
    """
    problem, plan = configured(instance, voters[0], voters, replicas)
    gone = instance.sites.index(lost)
    latency = operation_latency(
        problem.demand,
        instance.sites.index(leader),
        [v for v in plan.voters if v != gone],
        [r for r in plan.replicas if r != gone],
        quorum_size(problem, plan),
    )
    return {client: float(latency[0, c, 0]) for c, client in enumerate(instance.clients)}


def measured_distributions(
    instance: Instance, samples: Sequence[RttSample], *, width: float, bins: int
) -> Distributions:
    """Return the distributions of RTTs that were measured in the network of an instance."""
    found: Mapping[tuple[str, str], FloatArray] = {
        pair: np.asarray(sample.ms)
        for sample in samples
        for pair in ((sample.source, sample.target), (sample.target, sample.source))
    }
    known = {client_node(client) for client in instance.clients}

    def histogram(_mean: float, source: str, target: str) -> FloatArray:
        node = client_node(source) if (client_node(source), target) in found else source
        if source == target and node not in known:
            return of_samples([0.0], width=width, bins=bins)
        return of_samples(found[node, target].tolist(), width=width, bins=bins)

    return Distributions.build(instance, histogram, width=width)


def predicted_percentile(
    instance: Instance,
    percent: float,
    distributions: Distributions,
    leader: str,
    voters: Sequence[str],
    replicas: Sequence[str],
) -> dict[tuple[str, str], float]:
    """Return a percentile in ms by (client, operation), each as if it were the only demand."""
    found = {}
    goal = Percentile(percent, distributions)
    for c, client in enumerate(instance.clients):
        for o, operation in enumerate(instance.operations):
            counts = np.zeros((len(instance.clients), len(instance.operations)))
            counts[c, o] = 1
            problem, plan = configured(instance.replace(counts=counts), leader, voters, replicas)
            found[client, operation.name] = goal.value(problem, plan)
    return found

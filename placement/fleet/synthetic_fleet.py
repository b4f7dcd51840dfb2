"""Seeded fleets for tests and benchmarks: databases of :mod:`placement.workloads`, with limits."""

from __future__ import annotations

import numpy as np

from placement.checks import IntArray, instance_of, number, whole
from placement.errors import InputError
from placement.fleet.fleet_problem import FleetMember, FleetProblem, SharedLimits
from placement.model.instance import Instance
from placement.model.operations import STANDARD_OPERATIONS
from placement.problem import Problem
from placement.workloads import Clients, fleet

__all__ = ["synthetic_fleet"]

_LARGEST = 50.0
"""Largest size and rate of a database, in multiples of the median: larger ones need a site each."""

_MEDIAN_GB = 10.0


def synthetic_fleet(
    instance: Instance,
    clients: Clients,
    databases: int = 1000,
    *,
    seed: int,
    groups: int | None = None,
    owner: IntArray | None = None,
    replicas: int = 3,
    voters: int = 3,
    slack: float = 1.3,
) -> FleetProblem:
    """Draw a fleet on the sites of an instance, with limits on storage and leader load.

    Parameters
    ----------
    instance
        Sites, clients and RTTs; its operations are the standard ones, its counts are replaced.
    clients
        The places whose people issue the demand, for the footprints of the databases.
    databases
        How many.
    seed
        The same seed gives the same fleet.
    groups
        Number of different databases; the others are copies of them. None: all are different.
    owner
        Index of the client of the instance that serves each place, shape (places,), as
        :func:`placement.overtime.replay.generated_fleets.client_ground` finds it. None: the places
        are the clients of the instance, in the same order.
    replicas, voters
        |R| and |V| of every database.
    slack
        Capacity of all sites together over the least use of all databases together, >= 1. Every
        site has between half and one and a half of an equal share.

    Raises
    ------
    InputError
        When the clients are not those of the instance, or its operations are not the standard ones.
    """
    instance_of(instance, Instance, "instance", "a placement.Instance")
    instance_of(clients, Clients, "clients", "workloads.Clients")
    databases = whole(databases, "databases", minimum=1)
    number(slack, "slack", minimum=1.0)
    mine = np.arange(len(instance.clients)) if owner is None else np.asarray(owner)
    if len(clients) != len(mine):
        raise InputError(
            "the clients are not those of the instance",
            field="clients",
            value=len(clients),
            expected=f"{len(mine)} clients",
        )
    names = [operation.name for operation in STANDARD_OPERATIONS]
    if [operation.name for operation in instance.operations] != names:
        raise InputError(
            "the operations of the instance are not the standard ones",
            field="instance",
            value=instance.name,
            expected=", ".join(names),
        )
    rng = np.random.default_rng(np.random.SeedSequence(whole(seed, "seed"), spawn_key=(2,)))
    groups = databases if groups is None else whole(groups, "groups", minimum=1, maximum=databases)
    drawn = fleet(clients, groups, seed=seed)
    rates = np.array([one.rate for one in drawn])
    rates = np.minimum(rates, _LARGEST * float(np.median(rates)))
    sizes = np.minimum(np.exp(rng.standard_normal(groups)), _LARGEST) * _MEDIAN_GB
    copies = np.diff(np.linspace(0, databases, len(drawn) + 1).round().astype(int)).tolist()
    members = []
    for one, rate, gb, count in zip(drawn, rates.tolist(), sizes.tolist(), copies, strict=True):
        weights = np.bincount(mine, one.weights, len(instance.clients))
        counts = (rate * np.outer(weights, one.mix))[np.newaxis]
        problem = Problem(
            instance.replace(counts=counts, intervals=("all",)), replicas=replicas, voters=voters
        )
        members.append(
            FleetMember(one.name, problem, storage_gb=gb, leader_operations=rate, copies=count)
        )
    share = rng.uniform(0.5, 1.5, (2, len(instance.sites)))
    share /= share.sum(axis=1, keepdims=True)
    stored = replicas * float(sizes @ copies)
    return FleetProblem(
        members,
        SharedLimits(
            storage_gb=np.maximum(slack * stored * share[0], sizes.max()),
            leader_operations=np.maximum(slack * float(rates @ copies) * share[1], rates.max()),
        ),
    )

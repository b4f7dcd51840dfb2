"""Seeded fleets for tests and benchmarks: databases of :mod:`placement.workloads`, with limits."""

from __future__ import annotations

import numpy as np

from placement.errors import require
from placement.fleet.fleet_problem import FleetMember, FleetProblem, SharedLimits
from placement.model.instance import Instance
from placement.model.operations import STANDARD_OPERATIONS
from placement.problem import Problem
from placement.support.checks import IntArray, instance_of, number, whole
from placement.workloads import (
    Clients,
    Timeline,
    apart_groups,
    database_sizes,
    expected_demand,
    fleet,
)

_LARGEST = 50.0
"""Largest size and rate of a database, in multiples of the median: larger ones need a site each."""


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
    timeline: Timeline | None = None,
    apart: int = 0,
) -> FleetProblem:
    """Draw a fleet on the sites of an instance, with limits on storage and leader load.

    Parameters
    ----------
    instance
        Sites, clients and RTTs; its operations are the standard ones, its counts are replaced.
    clients
        Places of the users that issue the demand, for the footprints of the databases.
    databases
        Number of databases.
    seed
        The same seed gives the same fleet.
    groups
        Number of different databases; the other databases are copies of them. None: all are
        different.
    owner
        Index of the client of the instance that serves each place, shape (places,), as
        :func:`placement.overtime.replay.generated_fleets.client_ground` finds it. None: the places
        are the clients of the instance, in the same order.
    replicas, voters
        |R| and |V| of every database.
    slack
        Capacity of all sites together over the least use of all databases together, >= 1. Every
        site has between half and one and a half of an equal share.
    timeline
        Intervals whose mean is the demand, by the clock of each client's time zone: an hour of
        one's own makes the databases of one continent busy together. None: the mean of a week.
    apart
        Groups of three databases that must not share a site.

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
    words, expected = "the clients are not those of the instance", f"{len(mine)} clients"
    require(len(clients) == len(mine), "clients", words, len(clients), expected)
    names = [operation.name for operation in STANDARD_OPERATIONS]
    standard = [operation.name for operation in instance.operations] == names
    words = "the operations of the instance are not the standard ones"
    require(standard, "instance", words, instance.name, ", ".join(names))
    rng = np.random.default_rng(np.random.SeedSequence(whole(seed, "seed"), spawn_key=(2,)))
    groups = databases if groups is None else whole(groups, "groups", minimum=1, maximum=databases)
    drawn = fleet(clients, groups, seed=seed)
    demand = expected_demand(drawn, clients, timeline)
    rates = demand.sum(axis=(1, 2))
    capped = np.minimum(rates, _LARGEST * float(np.median(rates)))
    demand *= np.divide(capped, rates, out=np.zeros_like(rates), where=rates > 0)[:, None, None]
    rates = capped
    sizes = database_sizes(groups, seed=seed, largest=_LARGEST)
    rng.standard_normal(groups)  # numbers of the sizes: the limits come after them
    copies = np.diff(np.linspace(0, databases, len(drawn) + 1).round().astype(int)).tolist()
    members = []
    for number_, one in enumerate(drawn):
        counts = np.zeros((1, len(instance.clients), len(names)))
        np.add.at(counts[0], mine, demand[number_])
        problem = Problem(
            instance.replace(counts=counts, intervals=("all",)), replicas=replicas, voters=voters
        )
        members.append(
            FleetMember(
                one.name,
                problem,
                storage_gb=float(sizes[number_]),
                leader_operations=float(rates[number_]),
                copies=copies[number_],
            )
        )
    single = [member.name for member in members if member.copies == 1]
    share = rng.uniform(0.5, 1.5, (2, len(instance.sites)))
    share /= share.sum(axis=1, keepdims=True)
    stored = replicas * float(sizes @ copies)
    return FleetProblem(
        members,
        SharedLimits(
            storage_gb=np.maximum(slack * stored * share[0], sizes.max()),
            leader_operations=np.maximum(slack * float(rates @ copies) * share[1], rates.max()),
            apart=apart_groups(single, apart, seed=seed),
        ),
    )

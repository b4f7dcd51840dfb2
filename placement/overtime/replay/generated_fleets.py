"""Generated fleets on an instance: demand of many databases where the instance has none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placement.datasets import City, cities
from placement.errors import refused, require
from placement.model.distances import great_circle_km
from placement.model.instance import Instance
from placement.model.operations import STANDARD_OPERATIONS
from placement.overtime.replay.deployments import Trace
from placement.support.checks import FloatArray, IntArray
from placement.workloads import Clients, Database, Law, Timeline, fleet, generate


@dataclass(frozen=True, eq=False)
class ClientGround:
    """Cities of an instance, and where their people live."""

    clients: Clients  #: the cities whose people issue the demand
    owner: IntArray  #: index of the client of the instance that serves each city, shape (cities,)
    nearest_sites: tuple[str, ...]  #: the site closest to each city's client, by RTT


def client_ground(instance: Instance) -> ClientGround:
    """Return the cities behind the clients of an instance.

    Clients that are cities of the bundled table are themselves. Otherwise each of the bundled
    cities belongs to the client closest to it (great circle).

    Refused are clients that are no cities and have no coordinates, and other operations than the
    five standard ones.
    """
    words, standard = "fleets are generated for the five standard operations", STANDARD_OPERATIONS
    asked = (instance.operations, standard)
    given, expected = (", ".join(one.name for one in kinds) for kinds in asked)
    require(instance.operations == standard, "operations", words, given, expected)
    known = {city.city: city for city in cities()}
    places: Sequence[City]
    if all(client in known for client in instance.clients):
        places = [known[client] for client in instance.clients]
        owner = np.arange(len(places))
    else:
        at = instance.client_coordinates
        if at is None or np.isnan(at).any():
            words = "the places of the clients are unknown"
            expected = "bundled cities, or coordinates for every client"
            raise refused("", "clients", words, instance.clients[0], expected)
        places = cities()
        owner = great_circle_km([(city.lat, city.lon) for city in places], at).argmin(axis=1)
    rtt = instance.client_rtt if instance.client_rtt.ndim == 2 else instance.client_rtt[0]
    nearest = rtt.argmin(axis=1)[owner]
    return ClientGround(
        Clients.from_cities(places), owner, tuple(instance.sites[site] for site in nearest.tolist())
    )


def trace_of(
    ground: ClientGround,
    instance: Instance,
    databases: Iterable[Database],
    timeline: Timeline,
    *,
    seed: int,
    law: Law = "poisson",
) -> Trace:
    """Return the operations of databases, each city's demand at the client that serves the city."""
    wanted = tuple(databases)
    shape = (len(wanted), timeline.intervals, len(instance.clients), len(STANDARD_OPERATIONS))
    counts: FloatArray = np.zeros(shape)
    same = len(ground.owner) == shape[2] and (ground.owner == np.arange(shape[2])).all()
    row = 0
    for block in generate(wanted, ground.clients, timeline, seed=seed, law=law):
        rows = slice(row, row + len(block.databases))
        if same:
            counts[rows] = block.counts
        else:
            for city, client in enumerate(ground.owner.tolist()):
                counts[rows, :, client] += block.counts[:, :, city]
        row = rows.stop
    return Trace(tuple(database.name for database in wanted), timeline.labels, counts)


def fleet_trace(
    instance: Instance, databases: int, timeline: Timeline, *, seed: int
) -> tuple[Trace, tuple[str | None, ...]]:
    """Draw a fleet (:func:`placement.workloads.fleets`) on an instance, whose clients ask.

    Also returns the leader that each owner prefers, None for three in four. Fewer databases of the
    same seed are the first of more.
    """
    ground = client_ground(instance)
    drawn = fleet(
        ground.clients, databases, seed=seed, timeline=timeline, nearest_sites=ground.nearest_sites
    )
    return (
        trace_of(ground, instance, drawn, timeline, seed=seed),
        tuple(database.preferred_leader for database in drawn),
    )

"""Load of the sites by service: who leads and who answers reads, normally and after a loss.

After the loss of a site, a database goes on as :mod:`placement.evaluation.losses` says. The
remaining replicas serve, and the number of votes stays. The best of the remaining voters follows
a lost leader, among equal voters the first in the order of the sites. Reads go to the closest
remaining replica. No replica is recreated, so the storage of a site does not grow. A
database with too few voters stops, and uses no capacity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.evaluation.losses import score_after, survivors
from placement.evaluation.score import nearest
from placement.fleet.fleet_problem import FleetMember
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray

__all__ = ["Service", "goes_on_without_any_voter", "service_after", "service_of"]


@dataclass(frozen=True, eq=False)
class Service:
    """Load of each site by one copy of a database.

    Attributes
    ----------
    leader_operations, egress_gb, reads_served
        Shape (sites,), as the limits of the same names.
    """

    leader_operations: FloatArray
    egress_gb: FloatArray
    reads_served: FloatArray


def service_of(
    member: FleetMember, leader: int, replicas: tuple[int, ...], *, reads: bool = True
) -> Service:
    """Return the load of a database by its leader and its replicas; without reads if told so.

    O(clients · replicas) with reads.
    """
    sites = len(member.problem.instance.sites)
    leading, shipped, served = (np.zeros(sites) for _ in range(3))
    leading[leader] = member.leader_load
    shipped[leader] = member.written_gb * (len(replicas) - 1)
    if reads:
        closest = nearest(member.problem.demand.client_rtt, replicas)
        np.add.at(served, closest.ravel(), member.reads.ravel())
    return Service(leading, shipped, served)


def service_after(
    member: FleetMember, configuration: Configuration, lost: int, *, reads: bool = True
) -> Service | None:
    """Return the load of a database after the loss of a site; None where it stops."""
    left = survivors(member.problem, configuration, (lost,))
    if left is None:
        return None
    leader = left.leaders[0]
    if len(left.leaders) > 1:
        scores = score_after(member.problem, configuration, (lost,))
        leader = min(left.leaders, key=lambda site: (scores[site], site))
    return service_of(member, leader, left.replicas, reads=reads)


def goes_on_without_any_voter(member: FleetMember) -> bool:
    """Return whether every configuration of a database has enough voters after a loss."""
    rules = member.problem.rules
    return bool(rules.voters - 1 >= rules.quorum)

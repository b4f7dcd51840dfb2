"""Servers by name, for systems whose configuration names servers instead of counting replicas.

The servers of a site are the rows of the table of localities with that site, in their order; a site
without a row has one server with the name of the site. Servers that run already keep their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from placement.databases.deployment import Deployment, Member
from placement.databases.localities import Localities, Locality
from placement.databases.server_moves import MovePath, Replica
from placement.errors import InputError

__all__ = ["Server", "missing_servers", "servers_of", "servers_on_path", "servers_there"]


@dataclass(frozen=True, slots=True)
class Server:
    """A server that holds a replica, or will.

    Attributes
    ----------
    name, site
        Name in the database and name of the site.
    voter
        Whether it votes in the end.
    facts
        Columns of its row in the table of localities.
    identity, address
        Of the running server; empty where not known.
    """

    name: str
    site: str
    voter: bool
    facts: Mapping[str, str]
    identity: str = ""
    address: str = ""


def missing_servers(deployment: Deployment, localities: Localities) -> tuple[str, ...]:
    """Return why the table has too few servers for a deployment; empty where it has enough."""
    return tuple(
        f"{one.site} holds {one.replicas} replicas and the table of localities names "
        f"{len(localities.of_site(one.site))} servers there: add a row for each server"
        for one in deployment.held
        if len(localities.of_site(one.site)) < one.replicas
    )


def servers_of(deployment: Deployment, localities: Localities) -> tuple[Server, ...]:
    """Return the servers of a deployment: by site the voters first, in the order of the table."""
    found = []
    for one in deployment.held:
        rows = localities.of_site(one.site)
        for number, row in enumerate(rows[: one.replicas]):
            found.append(Server(row.name, one.site, number < one.voters, row.facts))
    return tuple(found)


def servers_there(servers: Mapping[Replica, Server], deployment: Deployment) -> tuple[Server, ...]:
    """Return the servers on a path that the deployment keeps."""
    held = {one.site: one.replicas for one in deployment.held}
    return tuple(
        server for slot, server in servers.items() if slot.number <= held.get(slot.site, 0)
    )


def servers_on_path(
    path: MovePath, deployment: Deployment, localities: Localities
) -> dict[Replica, Server]:
    """Return the server of every replica before, on the way and after.

    Raises
    ------
    InputError
        When the present deployment does not name its servers, or the table has too few.
    """
    present = path.present
    found: dict[Replica, Server] = {}
    wanted = {one.site: one for one in deployment.held}
    for site in dict.fromkeys((*(one.site for one in present.held), *wanted)):
        here = [member for member in present.members if member.site == site]
        ordered = sorted(here, key=lambda member: not member.voter)
        taken = {member.name for member in present.members}
        held = next((one.replicas for one in present.held if one.site == site), 0)
        if len(ordered) != held:
            raise InputError(
                f"the present deployment does not name its servers at {site}",
                field="members",
                value=len(ordered),
                expected=f"{held} servers (read it with placement deployment read)",
            )
        facts = {row.name: row for row in localities.of_site(site)}
        rows = [_row(member, facts) for member in ordered]
        rows += [(row, None) for row in facts.values() if row.name not in taken]
        after = wanted[site].replicas if site in wanted else 0
        votes = wanted[site].voters if site in wanted else 0
        if len(rows) < after:
            raise InputError(
                f"{site} should hold {after} replicas",
                field="locality",
                value=[row.name for row, _ in rows],
                expected=f"{after} servers in the table of localities",
            )
        for number, (row, member) in enumerate(rows[: max(held, after)]):
            found[Replica(site, number + 1)] = Server(
                row.name,
                site,
                number < votes,
                row.facts,
                "" if member is None else member.identity,
                "" if member is None else member.address,
            )
    return found


def _row(member: Member, facts: Mapping[str, Locality]) -> tuple[Locality, Member | None]:
    return facts.get(member.name, Locality(member.name, member.site)), member

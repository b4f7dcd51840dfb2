"""Servers by name, for systems whose configuration names servers instead of counting replicas.

A deployment that was read names its servers. Else the servers of a site are the rows of the table
of localities with that site, in their order; a site without a row has one server with the name of
the site. Servers that run already keep their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from placement.databases.deployment import ROLES, Deployment, Member
from placement.databases.localities import Localities, Locality
from placement.databases.server_moves import MovePath, Replica, ServerMove
from placement.errors import InputError

__all__ = [
    "Server",
    "missing_servers",
    "named_servers",
    "numbered_steps",
    "unfit_names",
    "written_servers",
]


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
    identity, address, role, kept
        As in :class:`placement.databases.deployment.Member`; of the running server.
    """

    name: str
    site: str
    voter: bool
    facts: Mapping[str, str]
    identity: str = ""
    address: str = ""
    role: str = ""
    kept: Mapping[str, object] = field(default_factory=dict)


def missing_servers(deployment: Deployment, localities: Localities) -> tuple[str, ...]:
    """Return why the table has too few servers for a deployment; empty where it has enough."""
    if deployment.members:
        return ()
    return tuple(
        f"{one.site} holds {one.replicas} replicas and the table of localities names "
        f"{len(localities.of_site(one.site))} servers there: add a row for each server"
        for one in deployment.held
        if len(localities.of_site(one.site)) < one.replicas
    )


def named_servers(deployment: Deployment, localities: Localities) -> tuple[Locality, ...]:
    """Return the rows of the servers that a deployment needs, as far as the table has them."""
    rows = {row.name: row for row in localities.rows}
    if deployment.members:
        return tuple(_row(member, rows) for member in deployment.members)
    return tuple(
        row for one in deployment.held for row in localities.of_site(one.site)[: one.replicas]
    )


def unfit_names(
    deployment: Deployment, localities: Localities, fits: Callable[[str], object], kind: str
) -> tuple[str, ...]:
    """Return one reason, with the list, for the servers whose names a configuration cannot hold.

    Parameters
    ----------
    deployment, localities
        As for :func:`named_servers`.
    fits
        Name -> whether the configuration can hold it.
    kind
        What a name has to be: "a host name".
    """
    names = (row.name for row in named_servers(deployment, localities))
    bad = ", ".join(repr(name) for name in dict.fromkeys(names) if not fits(name))
    return (f"not {kind}: {bad}; name the servers of these sites with --localities",) if bad else ()


def numbered_steps(
    path: MovePath | None,
    servers: Mapping[Replica, Server],
    words: Callable[[ServerMove, Server | None], str],
) -> list[str]:
    """Return the steps of a path as text, with what is broken at each; a step without words goes.

    Parameters
    ----------
    path, servers
        As :func:`written_servers` returns the servers; no path, no steps.
    words
        Move and server -> what to do.
    """
    steps: list[str] = []
    for move in () if path is None else path.steps:
        text = words(move, None if move.replica is None else servers[move.replica])
        if text:
            broken = "".join(f" [{what}]" for what in move.broken)
            steps.append(f"step {len(steps) + 1}: {text}{broken}")
    return steps


def _row(member: Member, rows: Mapping[str, Locality]) -> Locality:
    return rows.get(member.name, Locality(member.name, member.site))


def _server(row: Locality, site: str, voter: bool, role: str, member: Member | None) -> Server:
    if member is None:
        return Server(row.name, site, voter, row.facts, role=role)
    kept = (member.identity, member.address, role, member.kept)
    return Server(row.name, site, voter, row.facts, *kept)


def written_servers(
    deployment: Deployment, localities: Localities, path: MovePath | None
) -> tuple[tuple[Server, ...], dict[Replica, Server]]:
    """Return the servers of a deployment, and the servers before, on the way and after by replica.

    Without a path the second are none, and the first are by site the voters first, in the order of
    the table. A running voter keeps its special role while it votes.

    Raises
    ------
    InputError
        When the present deployment does not name its servers, or the table has too few.
    """
    wanted = {one.site: one for one in deployment.held}
    asked = {member.name: member for member in deployment.members}
    table = {row.name: row for row in localities.rows}
    if path is None:
        if asked:
            servers = [
                _server(_row(one, table), one.site, one.voter, one.role, one)
                for one in asked.values()
            ]
        else:
            servers = [
                _server(row, one.site, number < one.voters, role, None)
                for one in deployment.held
                for number, (row, role) in enumerate(
                    zip(localities.of_site(one.site), one.role_names, strict=False)
                )
            ]
        return tuple(servers), {}
    present = path.present
    found: dict[Replica, Server] = {}
    for site in dict.fromkeys((*(one.site for one in present.held), *wanted)):
        here = [member for member in present.members if member.site == site]
        ordered = sorted(here, key=lambda member: (not member.voter, member.role != ""))
        taken = {member.name for member in present.members}
        held = next((one.replicas for one in present.held if one.site == site), 0)
        if len(ordered) != held:
            raise InputError(
                f"the present deployment does not name its servers at {site}",
                field="members",
                value=len(ordered),
                expected=f"{held} servers (read it with placement deployment read)",
            )
        rows = [(_row(member, table), member) for member in ordered]
        free = [row for row in localities.of_site(site) if row.name not in taken]
        free.sort(key=lambda row: row.name not in asked)
        new: list[tuple[Locality, Member | None]] = [*rows, *((row, None) for row in free)]
        after = wanted[site].replicas if site in wanted else 0
        votes = wanted[site].voters if site in wanted else 0
        if len(new) < after:
            raise InputError(
                f"{site} should hold {after} replicas",
                field="locality",
                value=[row.name for row, _ in new],
                expected=f"{after} servers in the table of localities",
            )
        for number, (row, member) in enumerate(new[: max(held, after)]):
            role = asked[row.name].role if row.name in asked else member.role if member else ""
            if role and number < after and ROLES[role].votes != (number < votes):
                role = ""
            found[Replica(site, number + 1)] = _server(row, site, number < votes, role, member)
    kept = {site: one.replicas for site, one in wanted.items()}
    there = (server for slot, server in found.items() if slot.number <= kept.get(slot.site, 0))
    return tuple(there), found

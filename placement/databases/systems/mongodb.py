"""MongoDB: the configuration of a replica set, as a document for rs.reconfig().

The text is a document, never a statement of the shell, so that no name can leave its quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from placement.databases.deployment import Deployment, Member
from placement.databases.findings import Finding
from placement.databases.server_moves import MovePath
from placement.databases.server_names import (
    Server,
    missing_servers,
    servers_of,
    servers_on_path,
    servers_there,
)
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.systems.json_texts import json_text, json_values, one_document
from placement.errors import InputError
from placement.io.formats.document import Document

__all__ = ["SYSTEM"]

_INPUT = "the document of rs.conf() as JSON: EJSON.stringify(rs.conf()) in mongosh"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:[0-9]{1,5})?")
_MOST_MEMBERS, _MOST_VOTES, _MOST_PRIORITY = 50, 7, 1000


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    if len(texts) != 1:
        raise InputError("several files", source=texts[1][0], expected=f"one: {_INPUT}")
    source, value = json_values(texts)[0]
    document = one_document(source, value, _INPUT)
    if document.has("config"):  # written by export, or the answer of replSetGetConfig
        document = document.table("config")
    if not document.tables("members"):
        raise document.refuse("members", "no members", _INPUT)
    findings: list[Finding] = []
    members: list[Member] = []
    priorities: dict[str, float] = {}
    identities: set[int] = set()
    for table in document.tables("members"):
        votes, priority = _votes(table), _number(table, "priority", 1)
        identity = table.whole("_id") if table.has("_id") else len(identities)
        if identity in identities:
            raise table.refuse("_id", "given twice", "one number for each member")
        identities.add(identity)
        member = _member(table, votes, identity, request)
        members.append(member)
        findings += _findings(table, member, votes, priority)
        if votes and priority > 1:
            priorities[member.site] = max(priorities.get(member.site, 0), priority)
    voting = sum(member.voter for member in members)
    for count, most, what in (
        (voting, _MOST_VOTES, "members that vote"),
        (len(members), _MOST_MEMBERS, "members"),
    ):
        if count > most:
            findings.append(
                Finding("too-many-members", "error", f"{count} {what}", f"at most {most} {what}")
            )
    return Reading(
        Deployment.of_members(
            "mongodb",
            members,
            leaders=tuple(sorted(priorities, key=lambda site: -priorities[site])),
            name=document.text("_id", ""),
        ),
        tuple(findings),
    )


def _number(table: Document, key: str, default: float) -> float:
    value = table.number(key, default)
    if not 0 <= value <= _MOST_PRIORITY:
        raise table.refuse(key, "out of range", f"0 to {_MOST_PRIORITY}")
    return value


def _votes(table: Document) -> bool:
    value = table.number("votes", 1)
    if value not in (0, 1):
        raise table.refuse("votes", "out of range", "0 or 1")
    return value == 1


def _member(table: Document, votes: bool, identity: int, request: Request) -> Member:
    host = table.text("host")
    names = {row.name for row in request.localities.rows}
    name = host if host in names or ":" not in host else host.rpartition(":")[0]
    site = request.localities.site_of(name, table.source, table.key("host"))
    return Member(name, site, votes, str(identity), host)


def _findings(table: Document, member: Member, votes: bool, priority: float) -> list[Finding]:
    found = []
    if not votes and priority > 0:
        found.append(
            Finding(
                "priority-without-vote",
                "error",
                f"{member.name} has no vote and the priority {priority:g}: the server refuses that",
                "priority: 0",
            )
        )
    if table.values.get("arbiterOnly") is True:
        found.append(
            Finding(
                "arbiter",
                "note",
                f"{member.name} is an arbiter: it votes on elections and holds no data, so that "
                "majority writes wait for the others",
                "a member with data instead, where majority writes must survive a loss",
            )
        )
    if votes and priority == 0 and table.values.get("arbiterOnly") is not True:
        found.append(
            Finding(
                "never-leads", "note", f"{member.name} votes and never leads", "priority above 0"
            )
        )
    return found


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    if deployment.read is not None:
        return ("a replica set has a primary, and the placement is of a store without one",)
    reasons = list(missing_servers(deployment, request.localities))
    if deployment.commit is not None:
        reasons.append(
            f"elections and majority writes wait for a majority, not for {deployment.commit} of "
            f"{deployment.voters}"
        )
    if deployment.voters > _MOST_VOTES:
        reasons.append(f"a replica set has at most {_MOST_VOTES} voting members")
    if deployment.replicas > _MOST_MEMBERS:
        reasons.append(f"a replica set has at most {_MOST_MEMBERS} members")
    if not request.name:
        reasons.append("no replica set is named (--database)")
    for one in deployment.held:
        for row in request.localities.of_site(one.site)[: one.replicas]:
            if not _HOST.fullmatch(row.name):
                reasons.append(f"{row.name!r} is no host name; map it (--localities)")
    return tuple(reasons)


def _host(server: Server) -> str:
    return server.address or (server.name if ":" in server.name else f"{server.name}:27017")


def _members(
    servers: Sequence[Server], voting: set[str], rank: dict[str, int], numbers: dict[str, int]
) -> list[dict[str, object]]:
    return [
        {
            "_id": numbers[server.name],
            "host": _host(server),
            "votes": int(server.name in voting),
            "priority": rank.get(server.site, 1) if server.name in voting else 0,
        }
        for server in servers
    ]


def _numbered(servers: Sequence[Server]) -> dict[str, int]:
    """Return the number of each member: its number in the running set, else the next free one."""
    found = {server.name: int(server.identity) for server in servers if server.identity}
    free = (number for number in range(1000) if number not in set(found.values()))
    for server in servers:
        if server.name not in found:
            found[server.name] = next(free)
    return found


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    order = deployment.leaders
    rank = {site: len(order) - i + 1 for i, site in enumerate(order)}
    steps: list[dict[str, object]] = []
    if path is None:
        servers = servers_of(deployment, request.localities)
        numbers = _numbered(servers)
    else:
        by_replica = servers_on_path(path, deployment, request.localities)
        servers = servers_there(by_replica, deployment)
        numbers = _numbered(tuple(by_replica.values()))
        present = {one.site: one.replicas for one in path.present.held}
        running = {slot for slot in by_replica if slot.number <= present.get(slot.site, 0)}
        voting = {
            slot
            for one in path.present.held
            for slot in running
            if slot.site == one.site and slot.number <= one.voters
        }
        now = path.present.leaders
        before = {site: len(now) - i + 1 for i, site in enumerate(now)}
        for move in path.steps:
            slot = move.replica
            if slot is None or move.kind in ("catch-up", "set-quorums"):
                if slot is not None:
                    steps.append({"text": f"wait until {by_replica[slot].name} is SECONDARY"})
                continue
            if move.kind == "add-learner":
                running.add(slot)
            elif move.kind == "remove":
                running.remove(slot)
            elif move.kind == "move-leader":
                before = {by_replica[slot].site: 2}
            voting = set(move.voting)
            chosen = [server for one, server in by_replica.items() if one in running]
            names = {by_replica[one].name for one in voting}
            steps.append(
                {
                    "text": f"{move.kind} {by_replica[slot].name}: rs.reconfig with these members"
                    + "".join(f" [{words}]" for words in move.broken),
                    "members": _members(chosen, names, before, numbers),
                }
            )
    final = {server.name for server in servers if server.voter}
    document: dict[str, object] = {
        "system": "mongodb",
        "config": {"_id": request.name, "members": _members(servers, final, rank, numbers)},
    }
    if path is not None:
        document["steps"] = steps
    notes = (
        "take version and settings from rs.conf(), raise the version by one, and pass the document "
        "to rs.reconfig(); it changes one vote at a time, and a priority can start an election",
        'majority writes need the write concern { w: "majority" }',
    )
    return Script(json_text(document), notes)


SYSTEM = DatabaseSystem(
    name="mongodb",
    title="MongoDB",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    names_servers=True,
    says="voting and other members, the order of primaries as priorities",
    cannot="more than 7 voters, a quorum other than the majority; arbiters are read, not written",
    validated="syntax only, not run against a server",
    operations={
        "read preference nearest, secondary": "weak read",
        "read preference primary, read concern local or majority": "strong read",
        "read concern linearizable": "read with γ = δ = 1",
        'write concern { w: "majority" }': "single-group transaction",
        "write concern { w: 1 }": "γ = 1, and no vote",
        "transaction over several shards": "multi-group transaction",
    },
)

"""ZooKeeper: participants and observers of an ensemble, as zoo.cfg.

ZooKeeper elects its leader by itself and has no preference for one. A participant of weight 0
counts for no quorum.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from placement.databases.deployment import Deployment, Member
from placement.databases.findings import Finding
from placement.databases.server_moves import MovePath, ServerMove
from placement.databases.server_names import (
    Server,
    missing_servers,
    named_servers,
    numbered_steps,
    unfit_names,
    written_servers,
)
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.systems.json_texts import check_keys
from placement.errors import InputError
from placement.io.formats.document import Document
from placement.methods.options import Setting

__all__ = ["SYSTEM"]

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_ADDRESS = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:;|\[\]\s]+)(?P<ports>:\d+:\d+)"
    r"(?::(?P<role>(?i:observer|participant)))?"
)
_MOST_ID = 255
_WITHOUT_EFFECT = {"leaderServes": ("yes",), "oraclePath": (), "peerType": ("participant",)}
"""Keys that change who serves and who counts; all other keys set up one server."""


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    servers: dict[int, Member] = {}
    weights: dict[int, int] = {}
    groups: list[tuple[str, str, str]] = []
    seen = False
    for source, text in texts:
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{source}, row {number}"
            key, equals, value = (part.strip() for part in line.partition("="))
            if not equals or key.startswith("#"):
                continue
            check_keys(Document(where, "", {key: value}), (key,), (), _WITHOUT_EFFECT)
            kind, _, identity = key.partition(".")
            if kind == "group" and identity.isdecimal():
                groups.append((where, key, value))
                continue
            if kind not in ("server", "weight") or not identity.isdecimal():
                continue
            seen = True
            if len(identity) > 3 or not 0 <= int(identity) <= _MOST_ID:
                raise InputError("not a server", source=where, field=key, expected="1 to 255")
            if kind == "weight":
                weights[int(identity)] = _weight(value, where, key)
                continue
            if int(identity) in servers:
                raise InputError("given twice", source=where, field=key, expected="once")
            found = _member(identity, value, where, key, request)
            if found.name in [one.name for one in servers.values()]:  # by its port, then
                found = replace(found, name=str(found.kept["addresses"]).partition("|")[0])
            servers[int(identity)] = found
    if not seen or not servers:
        raise InputError("no servers", source=texts[0][0], field="server.N", expected=_INPUT)
    _check_groups(groups, {str(number) for number, one in servers.items() if one.voter})
    return _reading(servers, weights)


def _check_groups(groups: Sequence[tuple[str, str, str]], voting: set[str]) -> None:
    """Refuse groups, but for one of all participants: weights need it, and it is a majority."""
    for where, key, value in groups:
        if len(groups) > 1 or {part.strip() for part in value.split(":")} != voting:
            raise InputError(
                "groups of servers, a quorum of quorums",
                source=where,
                field=key,
                value=value,
                expected="no groups, or one of all participants: others have no counterpart here",
            )


def _weight(value: str, source: str, field: str) -> int:
    if value not in ("0", "1"):
        raise InputError(
            "a weight",
            source=source,
            field=field,
            value=value,
            expected="0 or 1: votes that count for more have no counterpart here",
        )
    return int(value)


def _member(identity: str, value: str, source: str, field: str, request: Request) -> Member:
    """Return a server: since 3.6 it may have several addresses, of one role.

    As apache/zookeeper 667128b4 reads them, QuorumPeer.java, initializeWithAddressString.
    """
    listed, mark, client = value.partition(";")
    found = [_ADDRESS.fullmatch(one.strip()) for one in listed.split("|")]
    each = [one for one in found if one is not None]

    def refuse(message: str, expected: str) -> InputError:
        return InputError(message, source=source, field=field, value=value, expected=expected)

    if len(each) < len(found):
        form = "host:port:port, several with | between, and :observer or ;port behind it"
        raise refuse("not a server", form)
    roles = {(one["role"] or "participant").lower() for one in each}
    if len(roles) > 1:
        raise refuse("two roles of one server", "the same role behind each address")
    hosts = [one["host"].strip("[]") for one in each]
    rows = {row.name: row.site for row in request.localities.rows}
    named = [host for host in hosts if host in rows or host in request.localities.sites]
    sites = {request.localities.site_of(host, source, field) for host in named or hosts[:1]}
    if len(sites) > 1:
        raise refuse(
            f"one server at {len(sites)} sites ({', '.join(sorted(sites))})",
            "addresses of one place: a server holds one replica",
        )
    kept = {
        "addresses": "|".join(one["host"] + one["ports"] for one in each),
        "client": mark + client,
    }
    name = (named or hosts)[0]
    return Member(name, sites.pop(), roles == {"participant"}, identity, kept=kept)


def _reading(servers: dict[int, Member], weights: dict[int, int]) -> Reading:
    findings = []
    several = [f"server.{n}" for n, one in servers.items() if "|" in str(one.kept["addresses"])]
    if several:
        findings.append(
            Finding(
                "several-addresses",
                "note",
                f"{', '.join(several)} have several addresses, which servers refuse unless "
                "multiAddress.enabled is true",
                "multiAddress.enabled=true on every server",
            )
        )
    for identity, member in servers.items():
        if member.voter and weights.get(identity, 1) == 0:
            findings.append(
                Finding(
                    "weight-zero",
                    "note",
                    f"server.{identity} ({member.name}) is a participant of weight 0: it counts "
                    "for no quorum, and is read as a replica without a vote",
                    "make it an observer, which costs the leader less",
                )
            )
            kept = {**member.kept, "weight": 0}
            servers[identity] = replace(member, voter=False, kept=kept)
    return Reading(Deployment.of_members("zookeeper", servers.values()), tuple(findings))


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    reasons = list(missing_servers(deployment, request.localities))
    kind = "a host name (zoo.cfg has no escape)"
    known = {member.name for member in deployment.members if member.kept.get("addresses")}

    def fits(name: str) -> bool:
        return name in known or _HOST.fullmatch(name) is not None

    reasons += unfit_names(deployment, request.localities, fits, kind)
    for row in named_servers(deployment, request.localities):
        own = row.facts.get("client_port", "")
        if own and not (own.isdecimal() and len(own) <= 5):
            reasons.append(f"the client_port {own!r} of {row.name} is no port")
    if deployment.replicas > _MOST_ID:
        reasons.append(f"an ensemble has at most {_MOST_ID} servers")
    return tuple(reasons)


def _said(deployment: Deployment) -> Deployment:
    """Return the part of a deployment that zoo.cfg stores: no leader."""
    return replace(deployment, leaders=())


def _numbered(servers: Sequence[Server]) -> dict[str, int]:
    """Return the number of each server: its own, else from the table, else the next free one."""
    found: dict[str, int] = {}
    for server in servers:
        text = server.identity or server.facts.get("id", "")
        if text:
            if not text.isdecimal() or len(text) > 3 or not 1 <= int(text) <= _MOST_ID:
                raise InputError(
                    "not the number of a server", field="id", value=text, expected="1 to 255"
                )
            if int(text) in found.values():
                raise InputError(
                    "the number of two servers", field="id", value=text, expected="one each"
                )
            found[server.name] = int(text)
    free = (number for number in range(1, _MOST_ID + 1) if number not in set(found.values()))
    for server in servers:
        if server.name not in found:
            found[server.name] = next(free)
    return found


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    port = request.text("client_port")

    def spec(server: Server, number: int, role: str) -> str:
        client = server.kept.get("client", f";{server.facts.get('client_port', port)}")
        addresses = str(server.kept.get("addresses", f"{server.name}:2888:3888"))
        each = "|".join(f"{one}:{role}" for one in addresses.split("|"))
        return f"server.{number}={each}{client}"

    servers, by_replica = written_servers(deployment, request.localities, path)
    numbers = _numbered(tuple(by_replica.values()) or servers)

    def words(move: ServerMove, server: Server | None) -> str:
        if server is None or move.kind in ("move-leader", "set-quorums"):
            return ""
        number = numbers[server.name]
        return {
            "add-learner": f"start {server.name}, then: reconfig -add "
            f"{spec(server, number, 'observer')}",
            "catch-up": f"wait until {server.name} answers 'srvr' with Mode: observer",
            "promote": f"reconfig -add {spec(server, number, 'participant')}",
            "demote": f"reconfig -add {spec(server, number, 'observer')}",
            "remove": f"reconfig -remove {number}",
        }[move.kind]

    steps = [f"# {step}" for step in numbered_steps(path, by_replica, words)]
    lines = ["# participants vote, observers do not; the file is the same on every server"]
    if steps:
        lines += [
            "# steps in zkCli.sh while the ensemble runs (reconfigEnabled=true), then zoo.cfg:",
            *steps,
        ]
    ordered = sorted(servers, key=lambda server: numbers[server.name])
    for server in ordered:
        role = "participant" if server.voter else "observer"
        lines.append(spec(server, numbers[server.name], role))
    notes = ["write the number of each server into its file myid"]
    silent = [server.name for server in servers if "weight" in server.kept]
    if silent:
        notes.append(f"participants of weight 0 become observers: {', '.join(silent)}")
    if deployment.leaders:
        notes.append(
            "ZooKeeper elects its leader by itself, and no setting prefers one; the plan's order "
            f"is {', '.join(deployment.leaders)}. With equal logs the highest number wins"
        )
    return Script("\n".join(lines) + "\n", tuple(notes))


_INPUT = "zoo.cfg, or the dynamic configuration (zkCli.sh: config)"

SYSTEM = DatabaseSystem(
    name="zookeeper",
    title="ZooKeeper",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    said=_said,
    names_servers=True,
    commits="majority",
    says="participants and observers",
    cannot="a leader or a failover order, a quorum other than the majority; weights and groups are "
    "not written",
    validated="ZooKeeper 3.9.4, an ensemble of four to five servers on loopback",
    settings={
        "client_port": Setting(2181, "port for clients, where the table has none", minimum=1)
    },
)

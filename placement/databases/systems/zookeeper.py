"""ZooKeeper: participants and observers of an ensemble, as zoo.cfg.

ZooKeeper elects its leader by itself and has no preference for one. A participant of weight 0
counts for no quorum.
"""

from __future__ import annotations

import re
from dataclasses import replace

from placement.databases.deployment import Deployment, Member
from placement.databases.findings import Findings
from placement.databases.servers import (
    MovePath,
    Server,
    ServerMove,
    numbered_steps,
    written_servers,
)
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.texts import check_keys
from placement.errors import InputError, refused, require
from placement.io.formats.document import Document
from placement.methods.options import Setting

_INPUT = "zoo.cfg, or the dynamic configuration (zkCli.sh: config)"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:\d+){0,2}")
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
    weights: dict[int, str] = {}
    groups: list[tuple[str, str, str]] = []
    for source, text in texts:
        dynamic = ""
        for number, line in enumerate(text.splitlines(), 1):
            where = f"{source}, row {number}"
            key, equals, value = (part.strip() for part in line.partition("="))
            if not equals or key.startswith("#"):
                continue
            check_keys(Document(where, "", {key: value}), (key,), (), _WITHOUT_EFFECT)
            if key == "dynamicConfigFile":
                dynamic = where
            kind, _, text_id = key.partition(".")
            if kind not in ("server", "weight", "group") or not text_id.isdecimal():
                continue
            if kind == "group":
                groups.append((where, key, value))
                continue
            if len(text_id) > 3 or int(text_id) > _MOST_ID:
                raise refused(where, key, "not a server", value, "1 to 255")
            identity = int(text_id)
            if kind == "weight":
                hint = "0 or 1: votes that count for more have no counterpart here"
                require(value in ("0", "1"), key, "a weight", value, hint, source=where)
                weights[identity] = value
                continue
            require(identity not in servers, key, "given twice", value, "once", source=where)
            member = _member(text_id, value, where, key, request)
            if member.name in [one.name for one in servers.values()]:  # by its port, then
                member = replace(member, name=str(member.kept["addresses"]).partition("|")[0])
            servers[identity] = member
            hint = f"the servers in that file, not beside the key ({dynamic}): servers refuse it"
            require(
                not dynamic, key, "a server beside dynamicConfigFile", value, hint, source=where
            )
    if not servers:
        raise InputError("no servers", source=texts[0][0], field="server.N", expected=_INPUT)
    voting = {str(number) for number, one in servers.items() if one.voter}
    for where, key, value in groups:  # weights need one of all participants, a majority
        if len(groups) > 1 or {part.strip() for part in value.split(":")} != voting:
            hint = "no groups, or one of all participants: others have no counterpart here"
            raise refused(where, key, "groups of servers, a quorum of quorums", value, hint)
    findings = Findings("zookeeper")
    several = [f"server.{n}" for n, one in servers.items() if "|" in str(one.kept["addresses"])]
    if several:
        findings.add("several-addresses", servers=", ".join(several))
    for identity, member in servers.items():
        if member.voter and weights.get(identity) == "0":
            findings.add("weight-zero", identity=identity, name=member.name)
            servers[identity] = replace(member, voter=False, kept={**member.kept, "weight": 0})
    return Reading(Deployment.of_members("zookeeper", servers.values()), tuple(findings))


def _member(identity: str, value: str, source: str, field: str, request: Request) -> Member:
    """Return a server: since 3.6 it may have several addresses, of one role.

    As apache/zookeeper 667128b4 reads them, QuorumPeer.java, initializeWithAddressString.
    """
    listed, mark, client = value.partition(";")
    found = [_ADDRESS.fullmatch(one.strip()) for one in listed.split("|")]
    each = [one for one in found if one is not None]
    form = "host:port:port, several with | between, and :observer or ;port behind it"
    require(len(each) >= len(found), field, "not a server", value, form, source=source)
    roles = {(one["role"] or "participant").lower() for one in each}
    same = "the same role behind each address"
    require(len(roles) <= 1, field, "two roles of one server", value, same, source=source)
    hosts = [one["host"].strip("[]") for one in each]
    known = {*request.localities.sites, *(row.name for row in request.localities.rows)}
    named = [host for host in hosts if host in known] or hosts[:1]
    sites = {request.localities.site_of(host, source, field) for host in named}
    words = f"one server at {len(sites)} sites ({', '.join(sorted(sites))})"
    one_place = "addresses of one place: a server holds one replica"
    require(len(sites) <= 1, field, words, value, one_place, source=source)
    kept = {
        "addresses": "|".join(one["host"] + one["ports"] for one in each),
        "client": mark + client,
    }
    return Member(named[0], sites.pop(), roles == {"participant"}, identity, kept=kept)


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> list[str]:
    names = {one.name for one in deployment.members} or {*deployment.sites}
    reasons = [
        f"the client_port {port!r} of {row.name} is no port"
        for row in request.localities.rows
        if row.name in names or row.site in names
        if (port := row.facts.get("client_port", "")) and not (port.isdecimal() and len(port) <= 5)
    ]
    if deployment.replicas > _MOST_ID:
        reasons.append(f"an ensemble has at most {_MOST_ID} servers")
    return reasons


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    port = request.text("client_port")

    def spec(server: Server, role: str) -> str:
        client = server.kept.get("client", f";{server.facts.get('client_port', port)}")
        addresses = str(server.kept.get("addresses", f"{server.name}:2888:3888"))
        each = "|".join(f"{one}:{role}" for one in addresses.split("|"))
        return f"server.{numbers[server.name]}={each}{client}"

    def words(move: ServerMove, server: Server | None) -> str:
        if server is None or move.kind in ("move-leader", "set-quorums"):
            return ""
        return {
            "add-learner": f"start {server.name}, then: reconfig -add {spec(server, 'observer')}",
            "catch-up": f"wait until {server.name} answers 'srvr' with Mode: observer",
            "promote": f"reconfig -add {spec(server, 'participant')}",
            "demote": f"reconfig -add {spec(server, 'observer')}",
            "remove": f"reconfig -remove {numbers[server.name]}",
        }[move.kind]

    servers, by_replica = written_servers(deployment, request.localities, path)
    every, found = tuple(by_replica.values()) or servers, dict[str, int]()
    for server in every:
        text = server.identity or server.facts.get("id", "")
        if not text:
            continue
        if not text.isdecimal() or len(text) > 3 or not 1 <= int(text) <= _MOST_ID:
            raise refused("", "id", "not the number of a server", text, "1 to 255")
        if int(text) in found.values():
            raise refused("", "id", "the number of two servers", text, "one each")
        found[server.name] = int(text)
    free = (number for number in range(1, _MOST_ID + 1) if number not in {*found.values()})
    numbers = found | {one.name: next(free) for one in every if one.name not in found}
    steps = [f"# {step}" for step in numbered_steps(path, by_replica, words)]
    head = "# steps in zkCli.sh while the ensemble runs (reconfigEnabled=true), then zoo.cfg:"
    lines = [
        "# participants vote, observers do not; the file is the same on every server",
        *([head] if steps else []),
        *steps,
        *(
            spec(server, "participant" if server.voter else "observer")
            for server in sorted(servers, key=lambda server: numbers[server.name])
        ),
    ]
    notes = ["write the number of each server into its file myid"]
    silent = [server.name for server in servers if "weight" in server.kept]
    if silent:
        notes.append(f"participants of weight 0 become observers: {', '.join(silent)}")
    if deployment.leaders:
        notes.append("the ensemble elects its leader: with equal logs the highest number wins")
    return Script("\n".join(lines) + "\n", tuple(notes))


SYSTEM = DatabaseSystem(
    name="zookeeper",
    title="ZooKeeper",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    order="none",
    servers=("a host name (zoo.cfg has no escape)", _HOST.fullmatch),
    says="participants and observers",
    cannot="a leader or a failover order, a quorum other than the majority; weights and groups are "
    "not written",
    validated="ZooKeeper 3.9.4, an ensemble of four to five servers on loopback",
    settings={
        "client_port": Setting(2181, "port for clients, where the table has none", minimum=1)
    },
)

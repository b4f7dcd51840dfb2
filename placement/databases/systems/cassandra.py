"""Cassandra and ScyllaDB: replicas per datacentre of a keyspace, and consistency levels.

A keyspace says how many replicas each datacentre holds. How many of them a read or a write waits
for is the consistency level of the request; the text holds both levels in a comment. A read at a
level between ONE and ALL asks the replicas that the snitch prefers, which need not be the nearest:
it may be slower than the model of a quorum store says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from placement.databases.deployment import Deployment
from placement.databases.findings import Finding
from placement.databases.localities import name_refusal
from placement.databases.server_moves import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.systems.remarks import later, remark, remarked, with_later
from placement.errors import InputError
from placement.languages.sql_text import (
    TokenStream,
    comment,
    sql_name,
    sql_string,
)
from placement.methods.options import Setting
from placement.model.constraints import majority

__all__ = ["SCYLLA", "SYSTEM"]

_KEYSPACE = re.compile(r"[A-Za-z0-9_]+")
_LEVELS = ("ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_ONE", "LOCAL_QUORUM", "EACH_QUORUM")
_CLASS = "NetworkTopologyStrategy"


# --- reading ---------------------------------------------------------------------------------


def _reader(system: str, racks: bool) -> Callable[[Texts, Request], Reading]:
    def read(texts: Texts, request: Request) -> Reading:
        keyspaces: dict[str, tuple[str, dict[str, str | int]]] = {}
        levels: dict[str, str] = {}
        for source, text in texts:
            keyspaces |= _keyspaces(text, source, racks)
            said = remarked(text, source)
            for field in ("read_level", "write_level"):
                if said.has(field):
                    levels[field] = said.text(field)
        kinds = ("keyspace", "keyspaces")
        name = request.choose(keyspaces, kinds, "CREATE KEYSPACE", texts[0][0])
        source, options = keyspaces[name]
        deployment, findings = _roles(system, name, options, source, request)
        for field, role in (("read_level", "read"), ("write_level", "commit")):
            level = request.text(field) or levels.get(field, "QUORUM")
            if level not in _LEVELS:
                raise InputError(
                    "unknown consistency level",
                    source=source,
                    field=field,
                    value=level,
                    expected="one of " + ", ".join(_LEVELS),
                )
            votes, word = _votes(level, deployment)
            deployment = replace(
                deployment,
                read=votes if role == "read" else deployment.read,
                commit=votes if role == "commit" else deployment.commit,
            )
            findings += word
        return Reading(deployment, tuple(findings))

    return read


def _keyspaces(text: str, source: str, racks: bool) -> dict[str, tuple[str, dict[str, str | int]]]:
    """Return source and replication options by keyspace; the last statement of each counts."""
    stream = TokenStream(with_later(text), source)
    found: dict[str, tuple[str, dict[str, str | int]]] = {}
    while stream.next is not None:
        if stream.accept("CREATE", "KEYSPACE") or stream.accept("ALTER", "KEYSPACE"):
            where = stream.where()
            stream.accept("IF", "NOT", "EXISTS")
            stream.accept("IF", "EXISTS")
            token = stream.take("the name of a keyspace")
            # bare names are folded to lower case
            name = token.value if token.kind == "name" else token.value.lower()
            stream.expect("WITH")
            while not stream.accept("REPLICATION"):
                stream.take("replication")
            stream.expect("=")
            found[name] = (where, _options(stream, racks))
            stream.skip_statement()
        else:
            stream.skip_statement()
    return found


def _options(stream: TokenStream, racks: bool) -> dict[str, str | int]:
    stream.expect("{")
    found: dict[str, str | int] = {}
    while not stream.accept("}"):
        key = stream.take("an option in quotes").value
        stream.expect(":")
        sign = "-" if stream.accept("-") else ""
        value: str | int = sign + stream.take("a value").value
        if value == "[":
            value = _rack_list(stream, racks)
        if key in found:
            raise InputError("given twice", source=stream.where(), field=key, expected="once")
        found[key] = value
        if not stream.accept(","):
            stream.expect("}")
            break
    return found


def _rack_list(stream: TokenStream, racks: bool) -> int:
    """Return how many racks a list of ScyllaDB has: one replica in each."""
    if not racks:
        raise InputError(
            "a list of racks",
            source=stream.where(),
            expected="a number of replicas (lists of racks are ScyllaDB's)",
        )
    count = 0
    while not stream.accept("]"):
        stream.take("a rack")
        count += 1
        if not stream.accept(","):
            stream.expect("]")
            break
    return count


def _roles(
    system: str, name: str, options: dict[str, str | int], source: str, request: Request
) -> tuple[Deployment, list[Finding]]:
    given = dict(options)
    strategy = str(given.pop("class", "")).rpartition(".")[2]
    if strategy == "SimpleStrategy":
        total = _number(given.get("replication_factor", ""), source, "replication_factor")
        return (
            Deployment.of(system, {}, name=name, free_voters=total),
            [
                Finding(
                    "simple-strategy",
                    "warning",
                    f"{name} uses SimpleStrategy, which knows no datacentres: {total} replicas go "
                    "to the next nodes of the ring",
                    f"use {_CLASS} with a number for each datacentre",
                )
            ],
        )
    if strategy != _CLASS:
        raise InputError(
            "unknown strategy", source=source, field="class", value=strategy, expected=_CLASS
        )
    voters: dict[str, int] = {}
    for place, value in given.items():
        if place == "replication_factor":
            raise InputError(
                "a number for all datacentres, which the server expands",
                source=source,
                field=place,
                value=value,
                expected="the text of DESCRIBE KEYSPACE, with a number for each datacentre",
            )
        count = _number(value, source, place)
        if count:
            site = request.localities.site_of(place, source, "datacentre")
            voters[site] = voters.get(site, 0) + count
    return Deployment.of(system, voters, name=name), []


def _number(value: str | int, source: str, field: str) -> int:
    text = str(value)
    if not text.isdecimal() or len(text) > 4:
        raise InputError(
            "not a replication factor",
            source=source,
            field=field,
            value=value,
            expected="a whole number (transient replicas, as in '3/1', have no counterpart)",
        )
    return int(text)


def _votes(level: str, deployment: Deployment) -> tuple[int, list[Finding]]:
    """Return how many replicas a level waits for."""
    total = max(1, deployment.voters)
    fixed = {"ONE": 1, "LOCAL_ONE": 1, "TWO": 2, "THREE": 3, "ALL": total}
    if level in fixed:
        return fixed[level], []
    if level == "QUORUM":
        return majority(total), []
    each = [majority(count) for count in deployment.voters_at.values()] or [majority(total)]
    if level == "EACH_QUORUM":
        return sum(each), []
    words: list[Finding] = []
    if len(set(each)) > 1 or len(each) > 1:
        words = [
            Finding(
                "local-quorum",
                "note",
                "LOCAL_QUORUM waits for a majority of the coordinator's datacentre: "
                f"{min(each)} to {max(each)} replicas; {min(each)} is taken",
                "none needed; requests of two datacentres do not see each other's last write",
            )
        ]
    return min(each), words


# --- writing ---------------------------------------------------------------------------------


def _level(votes: int, total: int) -> str | None:
    if votes == majority(total):
        return "QUORUM"
    if votes == total:
        return "ALL"
    return {1: "ONE", 2: "TWO", 3: "THREE"}.get(votes)


def _refuser(title: str, longest: int) -> Callable[[Deployment, Request], tuple[str, ...]]:
    def refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
        if deployment.read is None:
            return (
                f"{title} has no leader that orders writes, and the placement has one; read and "
                "write quorums are those of `placement contingency quorum`",
            )
        reasons = []
        if deployment.leaders:
            reasons.append(f"{title} has no leader to prefer")
        if deployment.non_voters_at:
            reasons.append("every replica counts for consistency levels, so none is without a vote")
        if not _KEYSPACE.fullmatch(request.name) or len(request.name) > longest:
            reasons.append(
                f"the keyspace {request.name!r} (--database) is not 1 to {longest} letters, digits "
                "and '_'"
            )
        for role, votes in (("read", deployment.read), ("write", deployment.quorum)):
            if _level(votes, deployment.voters) is None:
                reasons.append(
                    f"no consistency level waits for {votes} of {deployment.voters} replicas on a "
                    f"{role}: ONE, TWO, THREE, QUORUM ({majority(deployment.voters)}) and ALL do"
                )
        for one in deployment.held:
            reason = name_refusal(request.localities.only(one.site).name, title)
            if reason is not None:
                reasons.append(reason)
            elif request.localities.only(one.site).name in ("class", "replication_factor"):
                reasons.append("a datacentre may not have the name of an option")
        return tuple(reasons)

    return refuses


def _alter(deployment: Deployment, request: Request, counts: dict[str, int], verb: str) -> str:
    places = {request.localities.only(site).name: n for site, n in sorted(counts.items())}
    options = [f"'class': '{_CLASS}'", *(f"{sql_string(k)}: {n}" for k, n in places.items())]
    return f"{verb} {sql_name(request.name)} WITH replication = {{{', '.join(options)}}};"


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    assert deployment.read is not None
    levels = {
        "read_level": _level(deployment.read, deployment.voters),
        "write_level": _level(deployment.quorum, deployment.voters),
    }
    goal = deployment.voters_at
    lines = [
        comment("a keyspace holds replicas per datacentre; consistency levels belong to requests"),
        remark(levels),
    ]
    if path is None:
        lines.append(_alter(deployment, request, goal, "CREATE KEYSPACE IF NOT EXISTS"))
    else:
        now = path.present.voters_at
        both = {site: max(now.get(site, 0), goal.get(site, 0)) for site in {*now, *goal}}
        grown = sorted(site for site in both if both[site] > now.get(site, 0))
        if grown:
            names = ", ".join(request.localities.only(site).name for site in grown)
            lines += [
                comment("1. add replicas; keep the present consistency levels"),
                _alter(deployment, request, both, "ALTER KEYSPACE"),
                comment(
                    f"2. on every node of {names}: nodetool repair --full {request.name} (nodetool "
                    "rebuild in a datacentre that held nothing); until it ends, reads at a low "
                    "level may miss data"
                ),
            ]
        if both != goal or not grown:
            lines += [
                comment("3. then take replicas away, once no request counts on them"),
                later(_alter(deployment, request, goal, "ALTER KEYSPACE")),
                comment(f"4. on the nodes that keep data: nodetool cleanup {request.name}"),
            ]
    lines.append(
        comment(f"then: reads at {levels['read_level']}, writes at {levels['write_level']}")
    )
    notes = [
        f"the application sets the consistency levels: reads {levels['read_level']}, writes "
        f"{levels['write_level']}",
        "replicas of a datacentre go to different racks where it has several",
    ]
    if deployment.read == 1:
        notes.append(
            "with ONE a read may go to a distant datacentre; use LOCAL_ONE where the client's "
            "datacentre holds a replica"
        )
    return Script("\n".join(lines) + "\n", tuple(notes))


_OPERATIONS = {
    "read or write at ONE, LOCAL_ONE": "R = 1 or W = 1 of a store without a leader",
    "TWO, THREE": "R or W = 2, 3",
    "QUORUM": "R or W = ⌊N/2⌋ + 1 over all datacentres",
    "LOCAL_QUORUM": "majority of the replicas in the coordinator's datacentre",
    "EACH_QUORUM": "majority in every datacentre: the slowest of them",
    "ALL": "R or W = N",
    "lightweight transaction (SERIAL)": "several rounds of a quorum; not modelled",
}
_SETTINGS = {
    "read_level": Setting("", "consistency level of reads, if not in the text (default QUORUM)"),
    "write_level": Setting("", "consistency level of writes, if not in the text (default QUORUM)"),
}
_INPUTS = "DESCRIBE KEYSPACE, or CREATE and ALTER KEYSPACE statements"
_CANNOT = "leaders, replicas without a vote, R or W other than 1, 2, 3, a majority and all"

SYSTEM = DatabaseSystem(
    name="cassandra",
    title="Cassandra",
    inputs=_INPUTS,
    read=_reader("cassandra", racks=False),
    refuses=_refuser("Cassandra", 48),
    write=_write,
    says="replicas per datacentre; R and W as consistency levels in a comment",
    cannot=_CANNOT,
    validated="Cassandra 5.0.9, four nodes in three datacentres on loopback",
    operations=_OPERATIONS,
    settings=_SETTINGS,
)

SCYLLA = DatabaseSystem(
    name="scylla",
    title="ScyllaDB",
    inputs=f"{_INPUTS}; a list of racks counts one replica each",
    read=_reader("scylla", racks=True),
    refuses=_refuser("ScyllaDB", 192),
    write=_write,
    says="replicas per datacentre; R and W as consistency levels in a comment",
    cannot=f"{_CANNOT}; lists of racks are read and not written",
    validated="syntax only, not run against a server",
    operations=_OPERATIONS,
    settings=_SETTINGS,
)

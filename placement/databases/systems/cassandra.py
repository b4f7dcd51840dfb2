"""Cassandra and ScyllaDB: replicas per datacentre of a keyspace, and consistency levels.

A keyspace says how many replicas each datacentre holds. How many of them a read or a write waits
for is the consistency level of the request; the text holds both levels in a comment. A read at a
level between ONE and ALL asks the replicas that the snitch prefers, which need not be the nearest:
it may be slower than the model of a quorum store says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as of_instance

from placement.databases.deployment import Deployment
from placement.databases.findings import Finding
from placement.databases.localities import name_refusals
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
from placement.support.checks import unique_names

__all__ = ["SCYLLA", "SYSTEM"]

_KEYSPACE = re.compile(r"[A-Za-z0-9_]+")
_LEVELS = ("ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_ONE", "LOCAL_QUORUM", "EACH_QUORUM")
_CLASS = "NetworkTopologyStrategy"
_OTHERS = ("durable_writes", "tablets", "storage", "fast_path")
"""Options of a keyspace that place nothing; they are kept."""


# --- reading ---------------------------------------------------------------------------------


@dataclass
class _Keyspace:
    """Options of a keyspace as they are written."""

    source: str
    replication: dict[str, str | tuple[str, ...]]
    others: dict[str, str] = of_instance(default_factory=dict)


def _reader(system: str, scylla: bool) -> Callable[[Texts, Request], Reading]:
    def read(texts: Texts, request: Request) -> Reading:
        keyspaces: dict[str, _Keyspace] = {}
        levels: dict[str, str] = {}
        for source, text in texts:
            _take_keyspaces(text, source, scylla, keyspaces)
            said = remarked(text, source)
            for field in ("read_level", "write_level"):
                if said.has(field):
                    levels[field] = said.text(field)
        kinds = ("keyspace", "keyspaces")
        name = request.choose(keyspaces, kinds, "CREATE KEYSPACE", texts[0][0])
        keyspace = keyspaces[name]
        deployment, findings = _roles(system, name, keyspace, request)
        if keyspace.others.get("durable_writes") == "false":
            findings.append(
                Finding(
                    "writes-not-durable",
                    "warning",
                    f"{name} has durable_writes = false: its writes skip the commit log, and those "
                    "that a quorum has acknowledged are lost with the memory of its nodes",
                    "durable_writes = true",
                )
            )
        votes: dict[str, int] = {}
        for field in ("read_level", "write_level"):
            level = request.text(field) or levels.get(field, "QUORUM")
            if level not in _LEVELS:
                raise InputError(
                    "unknown consistency level",
                    source=keyspace.source,
                    field=field,
                    value=level,
                    expected="one of " + ", ".join(_LEVELS),
                )
            levels[field] = level
            votes[field], words = _votes(level, deployment)
            findings += [word for word in words if word not in findings]
        every = {"reads": levels["read_level"], "writes": levels["write_level"]}
        deployment = replace(
            deployment,
            read=votes["read_level"],
            commit=votes["write_level"],
            everywhere=tuple(what for what, level in every.items() if level == "EACH_QUORUM"),
            kept=f"{remark(levels)}\n{_create(name, keyspace)}\n",
        )
        return Reading(deployment, tuple(findings))

    return read


def _create(name: str, keyspace: _Keyspace) -> str:
    options = (f"{sql_string(key)}: {_value(value)}" for key, value in keyspace.replication.items())
    text = f"CREATE KEYSPACE IF NOT EXISTS {sql_name(name)} WITH replication = "
    text += "{" + ", ".join(options) + "}"
    return text + "".join(f" AND {key} = {value}" for key, value in keyspace.others.items()) + ";"


def _value(value: str | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(sql_string, value)) + "]"
    return value if value.isdecimal() else sql_string(value)


def _take_keyspaces(text: str, source: str, scylla: bool, keyspaces: dict[str, _Keyspace]) -> None:
    """Take the keyspaces of statements.

    An ALTER of Cassandra replaces the replication; in ScyllaDB datacentres that it leaves out stay.
    """
    stream = TokenStream(with_later(text), source)
    while stream.next is not None:
        alter = stream.accept("ALTER", "KEYSPACE")
        drop = stream.accept("DROP", "KEYSPACE")
        if stream.accept("CONSISTENCY"):
            raise InputError(
                "a consistency level belongs to requests, and this text states one",
                source=stream.where(),
                field="CONSISTENCY",
                value=stream.name("a level") if stream.next is not None else "",
                expected="--set read_level=LEVEL --set write_level=LEVEL, and no such statement",
            )
        if not (alter or drop or stream.accept("CREATE", "KEYSPACE")):
            stream.skip_statement()
            continue
        where = stream.where()
        only_new = stream.accept("IF", "NOT", "EXISTS")
        stream.accept("IF", "EXISTS")
        name = stream.folded_name("the name of a keyspace")
        if drop:
            keyspaces.pop(name, None)
            stream.skip_statement()
            continue
        before = keyspaces.get(name)
        found = _Keyspace(where, {}, dict(before.others) if before else {})
        stream.expect("WITH")
        while stream.next is not None:
            option = stream.name("an option of a keyspace").lower()
            stream.expect("=")
            if option == "replication":
                found.replication = _options(stream, scylla)
            elif option not in _OTHERS:
                raise InputError(
                    "unknown option of a keyspace",
                    source=stream.where(),
                    field=option,
                    expected="one of replication, " + ", ".join(_OTHERS),
                )
            elif stream.next is not None and stream.next.value == "{":
                words = (
                    f"{sql_string(k)}: {_bare(str(v))}" for k, v in _options(stream, False).items()
                )
                found.others[option] = "{" + ", ".join(words) + "}"
            else:
                found.others[option] = _bare(stream.take("a value").value.lower())
            if not stream.accept("AND") and stream.next is not None:
                stream.expect(";")
                break
        if not found.replication and before is None:
            raise InputError("no replication", source=where, value=name, expected="replication =")
        if before is not None and (scylla or not found.replication):
            found.replication = {**before.replication, **found.replication}
        if not (only_new and before):
            keyspaces[name] = found


def _bare(value: str) -> str:
    return value if value.isdecimal() or value in ("true", "false") else sql_string(value)


def _options(stream: TokenStream, racks: bool) -> dict[str, str | tuple[str, ...]]:
    stream.expect("{")
    found: dict[str, str | tuple[str, ...]] = {}
    while not stream.accept("}"):
        key = stream.take("an option in quotes").value
        stream.expect(":")
        sign = "-" if stream.accept("-") else ""
        value: str | tuple[str, ...] = sign + stream.take("a value").value
        if value == "[":
            value = _rack_list(stream, racks)
        if key in found:
            raise InputError("given twice", source=stream.where(), field=key, expected="once")
        found[key] = value
        if not stream.accept(","):
            stream.expect("}")
            break
    return found


def _rack_list(stream: TokenStream, racks: bool) -> tuple[str, ...]:
    """Return the racks of a list of ScyllaDB: one replica in each."""
    if not racks:
        raise InputError(
            "a list of racks",
            source=stream.where(),
            expected="a number of replicas (lists of racks are ScyllaDB's)",
        )
    found = []
    while not stream.accept("]"):
        found.append(stream.take("a rack").value)
        if not stream.accept(","):
            stream.expect("]")
            break
    return tuple(unique_names(found, "racks"))


def _roles(
    system: str, name: str, keyspace: _Keyspace, request: Request
) -> tuple[Deployment, list[Finding]]:
    given, source = dict(keyspace.replication), keyspace.source
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


def _number(value: str | tuple[str, ...], source: str, field: str) -> int:
    if isinstance(value, tuple):
        return len(value)
    text = value
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
        each = _votes("EACH_QUORUM", deployment)[0]
        for role, votes in (("read", deployment.read), ("write", deployment.quorum)):
            if f"{role}s" in deployment.everywhere:
                if votes != each:
                    reasons.append(f"a {role} at EACH_QUORUM waits for {each} replicas here")
            elif _level(votes, deployment.voters) is None:
                reasons.append(
                    f"no consistency level waits for {votes} of {deployment.voters} replicas on a "
                    f"{role}: ONE, TWO, THREE, QUORUM ({majority(deployment.voters)}) and ALL do"
                )
        reasons += name_refusals(request.localities, deployment.sites, title)
        for one in deployment.held:
            if request.localities.only(one.site).name in ("class", "replication_factor"):
                reasons.append("a datacentre may not have the name of an option")
        return tuple(reasons)

    return refuses


def _levels(deployment: Deployment) -> dict[str, str]:
    """Return the consistency levels: those that were read where they still are as many votes."""
    assert deployment.read is not None
    said = remarked(deployment.kept, "kept")
    found = {}
    for field, what, votes in (
        ("read_level", "reads", deployment.read),
        ("write_level", "writes", deployment.quorum),
    ):
        level = said.text(field, "")
        if level not in _LEVELS or _votes(level, deployment)[0] != votes:
            level = _level(votes, deployment.voters) or ""
        found[field] = "EACH_QUORUM" if what in deployment.everywhere else level
    return found


def _steps(now: dict[str, int], goal: dict[str, int], scylla: bool) -> list[dict[str, int]]:
    """Return the replicas by site after each statement: some are added before others go.

    Cassandra takes one statement for each of the two. In ScyllaDB a statement changes the number
    of one datacentre by one, because tablets demand it, and a datacentre goes by the number 0.
    """
    both = {site: max(now.get(site, 0), goal.get(site, 0)) for site in sorted({*now, *goal})}
    if not scylla:
        return [both] * any(both[site] > now.get(site, 0) for site in both) + [goal] * (
            both != goal
        )
    held = {site: now.get(site, 0) for site in both}
    stages = []
    for target, step in ((both, 1), ({site: goal.get(site, 0) for site in both}, -1)):
        for site in both:
            while held[site] != target[site]:
                held[site] += step
                stages.append(dict(held))
    return stages


def _value_at(site: str, count: int, keyspace: _Keyspace | None, request: Request) -> str:
    """Return the number of a datacentre as CQL, or its racks if it is placed by racks.

    Raises
    ------
    InputError
        When a rack is to be added and the table of localities names none.
    """
    row = request.localities.only(site)
    racks = keyspace.replication.get(row.name) if keyspace else None
    if not isinstance(racks, tuple) or not count:
        return str(count)
    more = [rack for rack in row.facts.get("racks", "").split() if rack not in racks]
    known = (*racks, *more)
    if len(known) < count:
        raise InputError(
            f"{row.name} is placed by racks, and {count - len(known)} more are needed",
            field="racks",
            value=list(racks),
            expected="a column racks of the table of localities with all racks, blanks between",
        )
    return _value(known[:count])


def _writer(scylla: bool) -> Callable[[Deployment, Request, MovePath | None], Script]:
    def write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
        levels = _levels(deployment)
        kept: dict[str, _Keyspace] = {}
        present = path.present if path else deployment
        if scylla and present.system == "scylla" and present.kept:
            _take_keyspaces(present.kept, "kept", True, kept)
        keyspace = next(iter(kept.values()), None)

        def statement(verb: str, held: Mapping[str, int]) -> str:
            places = [
                (request.localities.only(site).name, _value_at(site, n, keyspace, request))
                for site, n in sorted(held.items())
            ]
            options = [f"'class': '{_CLASS}'", *(f"{sql_string(k)}: {n}" for k, n in places)]
            name = sql_name(request.name)
            return f"{verb} {name} WITH replication = {{{', '.join(options)}}};"

        words = "a keyspace holds replicas per datacentre; consistency levels belong to requests"
        lines = [comment(words), remark(levels)]
        if path is None:
            make = "CREATE KEYSPACE IF NOT EXISTS"
            lines.append(statement(make, deployment.voters_at))
        before = present.voters_at
        stages = _steps(before, deployment.voters_at, scylla) if path else []
        if path is not None and not stages:
            lines.append(statement("ALTER KEYSPACE", before))
        for number, held in enumerate(stages):
            text = statement("ALTER KEYSPACE", held)
            grown = [site for site in held if held[site] > before.get(site, 0)]
            if grown:
                names = ", ".join(request.localities.only(site).name for site in grown)
                wait = ", once the step before has ended" if number else ""
                lines += [
                    comment(f"add replicas in {names}{wait}; keep the present consistency levels"),
                    later(text) if number else text,
                    comment(
                        f"then on every node of {names}: nodetool repair --full {request.name} "
                        "(nodetool rebuild in a datacentre that held nothing); until it ends, "
                        "reads at a low level may miss data" + " (tablets need none of it)" * scylla
                    ),
                ]
            else:
                lines += [
                    comment("then take replicas away, once no request counts on them"),
                    later(text),
                    comment(f"on the nodes that keep data: nodetool cleanup {request.name}"),
                ]
            before = dict(held)
        said = f"reads at {levels['read_level']}, writes at {levels['write_level']}"
        lines.append(comment(f"then: {said}"))
        notes = [
            f"the application sets the consistency levels: {said}",
            "replicas of a datacentre go to different racks where it has several",
        ]
        if deployment.read == 1:
            notes.append(
                "with ONE a read may go to a distant datacentre; use LOCAL_ONE where the client's "
                "datacentre holds a replica"
            )
        return Script("\n".join(lines) + "\n", tuple(notes))

    return write


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
    read=_reader("cassandra", scylla=False),
    refuses=_refuser("Cassandra", 48),
    write=_writer(scylla=False),
    says="replicas per datacentre; R and W as consistency levels in a comment",
    cannot=_CANNOT,
    validated="Cassandra 5.0.9, four nodes in three datacentres on loopback",
    keeps_text=True,
    settings=_SETTINGS,
)

SCYLLA = DatabaseSystem(
    name="scylla",
    title="ScyllaDB",
    inputs=f"{_INPUTS}; a list of racks counts one replica each",
    read=_reader("scylla", scylla=True),
    refuses=_refuser("ScyllaDB", 192),
    write=_writer(scylla=True),
    says="replicas per datacentre; R and W as consistency levels in a comment",
    cannot=f"{_CANNOT}; racks of a datacentre that is not placed by racks yet",
    validated="syntax only, not run against a server",
    keeps_text=True,
    settings=_SETTINGS,
)

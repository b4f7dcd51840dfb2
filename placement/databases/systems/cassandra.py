"""Cassandra and ScyllaDB: replicas per datacentre of a keyspace, and consistency levels.

A keyspace says how many replicas each datacentre holds. How many of them a read or a write waits
for is the consistency level of the request; the text holds both levels in a comment. A read at a
level between ONE and ALL asks the replicas that the snitch prefers, which need not be the nearest:
it may be slower than the model of a quorum store says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from placement.databases.deployment import Deployment
from placement.databases.findings import Findings
from placement.databases.servers import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.texts import later, remark, remarked, with_later
from placement.errors import InputError, refused, require
from placement.languages import TokenStream, comment, sql_name, sql_string
from placement.methods.options import Setting
from placement.model.constraints import majority

_LEVELS = ("ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_ONE", "LOCAL_QUORUM", "EACH_QUORUM")
_OPERATIONS = {"read_level": "reads", "write_level": "writes"}
_CLASS = "NetworkTopologyStrategy"
_OTHERS = ("durable_writes", "tablets", "storage", "fast_path", "graph_engine")
"""Options of a keyspace that place nothing; they are kept."""

_Value = str | tuple[str, ...]
"""A number of replicas, or ScyllaDB's list of racks with one replica in each."""


@dataclass
class _Keyspace:
    """Options of a keyspace as they are written."""

    source: str
    replication: dict[str, _Value]
    others: dict[str, str] = field(default_factory=dict)


# --- reading ---------------------------------------------------------------------------------


def read_keyspace(texts: Texts, request: Request, *, scylla: bool) -> Reading:
    """Return the roles of a keyspace, in the language of Cassandra or of ScyllaDB."""
    keyspaces: dict[str, _Keyspace] = {}
    levels: dict[str, str] = {}
    for source, text in texts:
        _take_keyspaces(text, source, scylla, keyspaces)
        said = remarked(text, source)
        levels |= {name: said.text(name) for name in _OPERATIONS if said.has(name)}
    kinds = ("keyspace", "keyspaces")
    name = request.choose(keyspaces, kinds, "CREATE KEYSPACE", texts[0][0])
    keyspace = keyspaces[name]
    findings = Findings("cassandra")
    deployment = _roles("scylla" if scylla else "cassandra", name, keyspace, request, findings)
    if keyspace.others.get("durable_writes") == "false":
        findings.add("writes-not-durable", keyspace=name)
    for setting in _OPERATIONS:
        level = levels[setting] = request.text(setting) or levels.get(setting, "QUORUM")
        if level not in _LEVELS:
            known = "one of " + ", ".join(_LEVELS)
            raise refused(keyspace.source, setting, "unknown consistency level", level, known)
    each = [majority(count) for count in deployment.voters_at.values()]
    if "LOCAL_QUORUM" in levels.values() and len(each) > 1:
        findings.add("local-quorum", least=min(each), most=max(each))
    deployment = replace(
        deployment,
        read=_votes(levels["read_level"], deployment),
        commit=_votes(levels["write_level"], deployment),
        everywhere=tuple(_OPERATIONS[s] for s in _OPERATIONS if levels[s] == "EACH_QUORUM"),
        kept=f"{remark(levels)}\n{_statement('CREATE', name, keyspace)}\n",
    )
    return Reading(deployment, tuple(findings))


def _take_keyspaces(text: str, source: str, scylla: bool, keyspaces: dict[str, _Keyspace]) -> None:
    """Take the keyspaces of statements.

    An ALTER of Cassandra replaces the replication; in ScyllaDB datacentres that it leaves out stay.
    """
    stream = TokenStream(with_later(text), source)
    while stream.next is not None:
        drop = stream.accept("DROP", "KEYSPACE")
        if stream.accept("CONSISTENCY"):
            level = stream.name("a level") if stream.next is not None else ""
            message = "a consistency level belongs to requests, and this text states one"
            hint = "--set read_level=LEVEL --set write_level=LEVEL, and no such statement"
            raise stream.refuse(message, "CONSISTENCY", hint, level)
        alter = stream.accept("ALTER", "KEYSPACE")
        if not (drop or alter or stream.accept("CREATE", "KEYSPACE")):
            stream.skip_statement()
            continue
        where = stream.where()
        only_new = stream.accept("IF", "NOT", "EXISTS")
        stream.accept("IF", "EXISTS")
        name = stream.folded_name("the name of a keyspace")
        before = keyspaces.get(name)
        if drop:
            keyspaces.pop(name, None)
            stream.skip_statement()
            continue
        found = _Keyspace("", {}, dict(before.others) if before else {})
        stream.expect("WITH")
        while stream.next is not None:
            option = stream.name("an option of a keyspace").lower()
            stream.expect("=")
            if option == "replication":
                found.replication = _table(stream, scylla)
            elif option not in _OTHERS:
                known = "one of replication, " + ", ".join(_OTHERS)
                raise stream.refuse("unknown option of a keyspace", option, known)
            elif stream.next is not None and stream.next.value == "{":
                words = {key: _bare(str(value)) for key, value in _table(stream, False).items()}
                inner = ", ".join(f"{sql_string(key)}: {value}" for key, value in words.items())
                found.others[option] = "{" + inner + "}"
            else:
                found.others[option] = _bare(stream.take("a value").value.lower())
            if not stream.accept("AND"):
                if stream.next is not None:
                    stream.expect(";")
                break
        found.source = where
        if not found.replication and before is None:
            raise InputError("no replication", source=where, value=name, expected="replication =")
        if before is not None and (scylla or not found.replication):
            found.replication = {**before.replication, **found.replication}
        if not (only_new and before):
            keyspaces[name] = found


def _bare(value: str) -> str:
    return value if value.isdecimal() or value in ("true", "false") else sql_string(value)


def _table(stream: TokenStream, racks: bool) -> dict[str, _Value]:
    stream.expect("{")
    found: dict[str, _Value] = {}
    while not stream.accept("}"):
        key = stream.take("an option in quotes").value
        stream.expect(":")
        sign = "-" if stream.accept("-") else ""
        value: _Value = sign + stream.take("a value").value
        if value == "[" and not racks:
            hint = "a number of replicas (lists of racks are ScyllaDB's)"
            raise InputError("a list of racks", source=stream.where(), expected=hint)
        if value == "[":
            listed = []
            while not stream.accept("]"):
                listed.append(stream.take("a rack").value)
                if not stream.accept(","):
                    stream.expect("]")
                    break
            if len({*listed}) < len(listed):
                raise stream.refuse("a rack twice", key, "one replica in each rack")
            value = tuple(listed)
        if key in found:
            raise stream.refuse("given twice", key, "once")
        found[key] = value
        if not stream.accept(","):
            stream.expect("}")
            break
    return found


def _roles(
    system: str, name: str, keyspace: _Keyspace, request: Request, findings: Findings
) -> Deployment:
    given, source = dict(keyspace.replication), keyspace.source
    strategy = str(given.pop("class", "")).rpartition(".")[2]
    if strategy == "SimpleStrategy":
        total = _number(given.get("replication_factor", ""), source, "replication_factor")
        findings.add("simple-strategy", keyspace=name, total=total)
        return Deployment.of(system, {}, name=name, free_voters=total)
    require(strategy == _CLASS, "class", "unknown strategy", strategy, _CLASS, source=source)
    if "replication_factor" in given:
        message = "a number for all datacentres, which the server expands"
        hint = "the text of DESCRIBE KEYSPACE, with a number for each datacentre"
        value = given["replication_factor"]
        raise refused(source, "replication_factor", message, value, hint)
    voters: dict[str, int] = {}
    for place, value in given.items():
        if count := _number(value, source, place):
            site = request.localities.site_of(place, source, "datacentre")
            voters[site] = voters.get(site, 0) + count
    return Deployment.of(system, voters, name=name)


def _number(value: _Value, source: str, field: str) -> int:
    if isinstance(value, tuple):
        return len(value)
    if not value.isdecimal() or len(value) > 4:
        hint = "a whole number (transient replicas, as in '3/1', have no counterpart)"
        raise refused(source, field, "not a replication factor", value, hint)
    return int(value)


def _votes(level: str, deployment: Deployment) -> int:
    """Return how many replicas a level waits for."""
    total = max(1, deployment.voters)
    each = [majority(count) for count in deployment.voters_at.values()] or [majority(total)]
    return {
        "ONE": 1, "LOCAL_ONE": 1, "TWO": 2, "THREE": 3, "ALL": total, "QUORUM": majority(total),
        "EACH_QUORUM": sum(each), "LOCAL_QUORUM": min(each),
    }[level]  # fmt: skip


# --- writing ---------------------------------------------------------------------------------


def _level(votes: int, total: int) -> str | None:
    named = {majority(total): "QUORUM", total: "ALL"}
    return named.get(votes, {1: "ONE", 2: "TWO", 3: "THREE"}.get(votes))


def refuse_keyspace(deployment: Deployment, request: Request, *, title: str) -> list[str]:
    """Return why a keyspace cannot say a deployment."""
    if deployment.read is None:
        return [
            f"{title} has no leader that orders writes, and the placement has one; read and write "
            "quorums are those of `placement lab quorum`"
        ]
    reasons = []
    if deployment.leaders:
        reasons.append(f"{title} has no leader to prefer")
    if deployment.non_voters_at:
        reasons.append("every replica counts for consistency levels, so none is without a vote")
    each, total = _votes("EACH_QUORUM", deployment), deployment.voters
    for role, votes in (("read", deployment.read), ("write", deployment.quorum)):
        if f"{role}s" in deployment.everywhere:
            if votes != each:
                reasons.append(f"a {role} at EACH_QUORUM waits for {each} replicas here")
        elif _level(votes, total) is None:
            reasons.append(
                f"no consistency level waits for {votes} of {total} replicas on a {role}: ONE, "
                f"TWO, THREE, QUORUM ({majority(total)}) and ALL do"
            )
    places = {row.name for site in deployment.sites for row in request.localities.of_site(site)}
    if places & {"class", "replication_factor"}:
        reasons.append("a datacentre may not have the name of an option")
    return reasons


def _statement(verb: str, name: str, keyspace: _Keyspace) -> str:
    def value(one: _Value) -> str:
        if isinstance(one, tuple):
            return "[" + ", ".join(map(sql_string, one)) + "]"
        return one if one.isdecimal() else sql_string(one)

    options = (f"{sql_string(key)}: {value(one)}" for key, one in keyspace.replication.items())
    only_new = "IF NOT EXISTS " * (verb == "CREATE")
    text = f"{verb} KEYSPACE {only_new}{sql_name(name)} WITH replication = "
    others = (f" AND {key} = {one}" for key, one in keyspace.others.items())
    return f"{text}{{{', '.join(options)}}}{''.join(others)};"


def _steps(now: dict[str, int], goal: dict[str, int], scylla: bool) -> list[dict[str, int]]:
    """Return the replicas by site after each statement: some are added before others go.

    Cassandra takes one statement for each of the two. In ScyllaDB a statement changes the number
    of one datacentre by one, because tablets demand it, and a datacentre goes by the number 0.
    """
    both = {site: max(now.get(site, 0), goal.get(site, 0)) for site in sorted({*now, *goal})}
    if not scylla:
        return [both] * any(n > now.get(site, 0) for site, n in both.items()) + [goal] * (
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


def _value_at(site: str, count: int, before: Mapping[str, _Value], request: Request) -> _Value:
    """Return the number of a datacentre, or its racks if it is placed by racks."""
    row = request.localities.only(site)
    racks = before.get(row.name)
    if not isinstance(racks, tuple) or not count:
        return str(count)
    known = (*racks, *(rack for rack in row.facts.get("racks", "").split() if rack not in racks))
    message = f"{row.name} is placed by racks, and {count - len(known)} more are needed"
    hint = "a column racks of the table of localities with all racks, blanks between"
    require(len(known) >= count, "racks", message, list(racks), hint)
    return known[:count]


def write_keyspace(
    deployment: Deployment, request: Request, path: MovePath | None, *, scylla: bool
) -> Script:
    """Return the statements for a deployment, in the language of Cassandra or of ScyllaDB."""
    as_read, levels = remarked(deployment.kept, "kept"), dict[str, str]()
    for setting, votes in (
        ("read_level", deployment.read or 0),
        ("write_level", deployment.quorum),
    ):
        level = as_read.text(setting, "")
        if level not in _LEVELS or _votes(level, deployment) != votes:
            level = _level(votes, deployment.voters) or ""
        if _OPERATIONS[setting] in deployment.everywhere:
            level = "EACH_QUORUM"
        levels[setting] = level
    kept: dict[str, _Keyspace] = {}
    present = path.present if path else deployment
    if scylla and present.system == "scylla" and present.kept:
        _take_keyspaces(present.kept, "kept", True, kept)
    racks = next(iter(kept.values()), _Keyspace("", {})).replication

    def statement(verb: str, held: Mapping[str, int]) -> str:
        options: dict[str, _Value] = {"class": _CLASS}
        for site, count in sorted(held.items()):
            options[request.localities.only(site).name] = _value_at(site, count, racks, request)
        return _statement(verb, request.name, _Keyspace("", options))

    words = "a keyspace holds replicas per datacentre; consistency levels belong to requests"
    lines, before = [comment(words), remark(levels)], present.voters_at
    stages = _steps(before, deployment.voters_at, scylla) if path else []
    if not stages:
        verb = "CREATE" if path is None else "ALTER"
        lines.append(statement(verb, deployment.voters_at if path is None else before))
    for number, held in enumerate(stages):
        text = statement("ALTER", held)
        grown = [site for site in held if held[site] > before.get(site, 0)]
        if grown:
            names = ", ".join(request.localities.only(site).name for site in grown)
            wait = ", once the step before has ended" if number else ""
            lines += [
                comment(f"add replicas in {names}{wait}; keep the present consistency levels"),
                later(text) if number else text,
                comment(
                    f"then on every node of {names}: nodetool repair --full {request.name} "
                    "(nodetool rebuild in a datacentre that held nothing); until it ends, reads at "
                    "a low level may miss data" + " (tablets need none of it)" * scylla
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


SYSTEM = DatabaseSystem(
    name="cassandra",
    title="Cassandra",
    inputs="DESCRIBE KEYSPACE, or CREATE and ALTER KEYSPACE statements",
    read=partial(read_keyspace, scylla=False),
    refuses=partial(refuse_keyspace, title="Cassandra"),
    write=partial(write_keyspace, scylla=False),
    commits="any",
    named=("keyspace: 1 to 48 letters, digits and '_'", r"[A-Za-z0-9_]{1,48}"),
    says="replicas per datacentre; R and W as consistency levels in a comment",
    cannot="leaders, replicas without a vote, R or W other than 1, 2, 3, a majority and all",
    validated="Cassandra 5.0.9, four nodes in three datacentres on loopback",
    keeps_text=True,
    settings={
        f"{what}_level": Setting(
            "", f"consistency level of {what}s, if not in the text (default QUORUM)"
        )
        for what in ("read", "write")
    },
)

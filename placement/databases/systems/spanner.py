"""Spanner: instance configurations, whose voters are chosen from a catalogue.

The voters of a base configuration are fixed. There are three kinds: three replicas of one region;
two regions with two replicas and a witness each; two regions with two replicas each and a witness
in a third region. A custom configuration adds read-only replicas. A database may choose the leader
among the regions of the read-write replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from placement.databases.deployment import Deployment
from placement.databases.findings import Findings
from placement.databases.localities import name_refusals
from placement.databases.servers import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.texts import json_text, one_document
from placement.errors import InputError, refused
from placement.io.formats.document import Document, parse_json
from placement.languages import TokenStream, mysql_name, mysql_string
from placement.methods.options import Setting

_INPUT = (
    "the answer of `gcloud spanner instance-configs describe NAME --format=json`, and for the "
    "leader the statements of `gcloud spanner databases ddl describe`"
)
_TYPES = ("READ_WRITE", "READ_ONLY", "WITNESS")
_LEADER_OPTION = "default_leader"


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    documents = [one for one in texts if one[1].lstrip().startswith(("{", "["))]
    if len(documents) != 1:
        what = "several configurations" if documents else "no configuration"
        raise InputError(what, source=(documents or texts)[-1][0], expected=f"one: {_INPUT}")
    source, text = documents[0]
    document = one_document(source, parse_json(text, source), _INPUT)
    statements = [one for one in texts if one != documents[0]]
    if document.values.get("system") == "spanner":  # written by export
        statements += [(source, words) for words in document.names("statements", ())]
        document = document.table("config")
    held, leader = _replicas(document, request)
    database = request.name
    for name, words in statements:
        chosen = _default_leader(words, name, request, database)
        if chosen is not None:
            database, leader = chosen
            if leader not in held["READ_WRITE"]:
                hint = "one of " + ", ".join(held["READ_WRITE"])
                raise refused(name, _LEADER_OPTION, "no read-write replica there", leader, hint)
    config = {"config": document.values, "statements": [words for _, words in statements]}
    deployment = Deployment.of(
        "spanner",
        held["READ_WRITE"] + held["WITNESS"],
        held["READ_ONLY"],
        leaders=_leaders(leader, held["READ_WRITE"]),
        name=database,
        kept=json_text({"system": "spanner", **config}),
    )
    findings = Findings("spanner")
    for site, count in sorted(held["WITNESS"].items()):
        if site not in held["READ_WRITE"]:
            findings.add("witness", site=site, count=count)
    return Reading(deployment, tuple(findings))


def _replicas(document: Document, request: Request) -> tuple[dict[str, Counter[str]], str]:
    """Return the number of replicas by type and site, and the site that leads by default."""
    held: dict[str, Counter[str]] = {kind: Counter() for kind in _TYPES}
    leader = ""
    for table in document.tables("replicas"):
        location, kind = table.text("location"), table.text("type")
        table.need(kind in _TYPES, "type", "unknown type of replica", "one of " + ", ".join(_TYPES))
        site = request.localities.site_of(location, table.source, table.key("location"))
        held[kind][site] += 1
        if table.values.get("defaultLeaderLocation") is True:
            if kind != "READ_WRITE":
                raise table.refuse("defaultLeaderLocation", "cannot lead", "a READ_WRITE replica")
            leader = site
    document.need(held["READ_WRITE"], "replicas", "no read-write replica", _INPUT)
    if not leader and len(held["READ_WRITE"]) > 1:
        message = "no replica has defaultLeaderLocation"
        raise document.refuse("replicas", message, "one that is true")
    return held, leader or next(iter(held["READ_WRITE"]))


def _default_leader(
    text: str, source: str, request: Request, database: str
) -> tuple[str, str] | None:
    """Return the database and the site of its leader, where the statements choose one."""
    stream, found = TokenStream(text, source, backslash=True), None
    while stream.next is not None:
        if not stream.accept("ALTER", "DATABASE"):
            stream.skip_statement()
            continue
        name = stream.name("the name of a database")
        stream.expect("SET")
        postgres = stream.accept("SPANNER", ".")  # the dialect of PostgreSQL: one option, no list
        if not postgres:
            stream.expect("OPTIONS", "(")
        while not stream.accept(")"):
            option = stream.name("an option")
            stream.expect("=")
            value = stream.take("a value")
            chosen = option == _LEADER_OPTION and value.kind == "string" and value.value
            if chosen and name == (database or name):
                found = name, request.localities.site_of(str(chosen), source, _LEADER_OPTION)
            stream.accept(",")
            if postgres:
                stream.skip_statement()
                break
    return found


def _leaders(first: str, writers: Mapping[str, int]) -> tuple[str, ...]:
    """Return the regions that may lead: the preferred one, then the other."""
    return tuple(sorted(writers, key=lambda site: (site != first, site)))


# --- writing ---------------------------------------------------------------------------------


def _shape(deployment: Deployment) -> tuple[Counter[str], Counter[str]] | None:
    """Return read-write and witness replicas by site; None where no configuration has them."""
    voters = deployment.voters_at
    counts = sorted(voters.values())
    if counts == [3]:
        return Counter(voters), Counter()
    if counts == [3, 3]:
        return Counter(dict.fromkeys(voters, 2)), Counter(dict.fromkeys(voters, 1))
    if counts == [1, 2, 2]:
        witness = Counter(site for site, count in voters.items() if count == 1)
        return Counter(voters) - witness, witness
    return None


def _refuses(deployment: Deployment, request: Request) -> list[str]:
    shape, reasons = _shape(deployment), []
    if shape is None:
        counts = ", ".join(f"{site} {count}" for site, count in deployment.voters_at.items())
        reasons.append(
            f"no configuration has these voters ({counts}): there are 3 in one region, 3 in each "
            "of two regions, or 2, 2 and 1 in three regions"
        )
    elif deployment.leaders and deployment.leaders[0] not in shape[0]:
        reasons.append(f"{deployment.leaders[0]} holds a witness, which cannot lead")
    base = [request.text("base_config")] if request.text("base_config") else []
    return [*reasons, *name_refusals(request.localities, (), "Spanner", *base)]


def _said(deployment: Deployment) -> Deployment:
    """Return the deployment with the order of leaders that Spanner follows."""
    shape = _shape(deployment)
    if shape is None:
        return deployment
    leaders = _leaders(next(iter(deployment.leaders), min(shape[0])), shape[0])
    return Deployment("spanner", deployment.held, leaders, name=deployment.name)


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    shape, said = _shape(deployment), _said(deployment)
    assert shape is not None  # such a deployment is refused
    writers, witnesses = shape
    leader = said.leaders[0]

    def location(site: str) -> str:
        return request.localities.only(site).name

    replicas: list[dict[str, object]] = []
    for kind, counts in zip(_TYPES, (writers, deployment.non_voters_at, witnesses), strict=True):
        for site, count in sorted(counts.items()):
            entry: dict[str, object] = {"location": location(site), "type": kind}
            if kind == "READ_WRITE" and site == leader:
                entry["defaultLeaderLocation"] = True
            replicas += [entry] * count
    base = request.text("base_config")
    if not base and len(writers) == 1:
        base = f"regional-{location(leader)}"
    name, commands = base, []
    if deployment.non_voters_at:
        name = f"custom-{request.name.replace('_', '-')}"
        places = (one["location"] for one in replicas if one["type"] == "READ_ONLY")
        added = ":".join(f"location={place},type=READ_ONLY" for place in places)
        create = ["gcloud", "spanner", "instance-configs", "create", name]
        commands = [[*create, f"--clone-config={base}", f"--add-replicas={added}"]] if base else []
    document: dict[str, object] = {
        "system": "spanner",
        "config": {"name": name, "baseConfig": base, "replicas": replicas},
        "commands": commands,
        "statements": [
            f"ALTER DATABASE {mysql_name(request.name)} "
            f"SET OPTIONS ({_LEADER_OPTION} = {mysql_string(location(leader))})"
        ],
    }
    if path is not None:
        document["changes"] = list(path.present.differences(said))
    notes = ["`gcloud spanner instances move` brings an instance to the configuration"]
    describe = "`gcloud spanner instance-configs"
    if base:
        notes.append(
            f"check that {base} has these voters and offers the read-only replicas: {describe} "
            f"describe {base}`"
        )
    else:
        notes.append(
            "name the base configuration that has these voters (--set base_config=NAME; "
            f"{describe} list` shows them all): without it there is no command"
        )
    if deployment.leaders != said.leaders:
        notes.append(
            "another region leads only while the default leader's region is lost: the order of "
            f"leaders is {', '.join(said.leaders)}"
        )
    if len(deployment.voters_at) > 1:
        notes.append("the witness votes, holds no data and serves no reads")
    return Script(json_text(document), tuple(notes))


SYSTEM = DatabaseSystem(
    name="spanner",
    title="Spanner",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    said=_said,
    named=("database", r"[a-z][a-z0-9_-]{0,28}[a-z0-9]"),
    says="voters of a base configuration, read-only replicas, the region that leads",
    cannot="voters other than 3 in one region, 3 in each of two, or 2, 2 and 1 in three; a "
    "failover order; another quorum",
    validated="the statement: memefish 0.8.1; the document: syntax only, no server was run",
    keeps_text=True,
    settings={"base_config": Setting("", "base configuration of Spanner that has the voters")},
)

"""Patroni: quorum commit and failover priorities of a PostgreSQL cluster.

Patroni owns `synchronous_standby_names`. The dynamic configuration says how many standbys a commit
waits for; tags of the servers say which are never synchronous, and who takes over first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from placement.databases.deployment import Deployment, Member
from placement.databases.findings import Finding
from placement.databases.server_moves import MovePath
from placement.databases.server_names import written_servers
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.systems.block_yaml import yaml_documents
from placement.databases.systems.postgresql import SYSTEM as POSTGRESQL
from placement.databases.systems.sql_text import comment
from placement.errors import InputError
from placement.io.formats.document import Document, parse_json

__all__ = ["SYSTEM"]

_INPUT = "`patronictl show-config`, and `patronictl list -f json` or the patroni.yml of each server"
_TRUE, _FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


@dataclass
class _Cluster:
    """Configuration and servers, as text of the file."""

    source: str
    settings: dict[str, str] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    leader: str = ""

    def number(self, key: str, default: int) -> int:
        text = self.settings.get(key)
        return default if text is None else _number(text, self.source, key)


def _number(text: str, source: str, key: str) -> int:
    if not text.isdecimal() or len(text) > 4:
        raise InputError(
            "not a number", source=source, field=key, value=text, expected="a whole number"
        )
    return int(text)


def _flag(text: str, source: str, key: str) -> bool:
    word = text.lower()
    if word not in (*_TRUE, *_FALSE):
        raise InputError(
            "not a truth value", source=source, field=key, value=text, expected="true or false"
        )
    return word in _TRUE


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    cluster = _Cluster(texts[0][0])
    for source, text in texts:
        if text.lstrip()[:1] in ("[", "{"):
            _take_list(cluster, parse_json(text, source), source)
            continue
        for number, table in enumerate(yaml_documents(text, source), 1):
            _take_document(cluster, Document(f"{source}, document {number}", "", table))
    if not cluster.tags:
        raise InputError("no servers", source=cluster.source, field="name", expected=_INPUT)
    return _reading(cluster, request)


def _take_list(cluster: _Cluster, value: object, source: str) -> None:
    """Take the members of `patronictl list -f json`."""
    rows = value if isinstance(value, list) else [value]
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            raise InputError("not a member", source=source, value=row, expected=_INPUT)
        document = Document(f"{source}, entry {i + 1}", "", row)
        name = document.text("Member")
        tags = document.table("Tags").values
        cluster.tags[name] = {key: _word(value) for key, value in tags.items()}
        if document.text("Role", "").lower() in ("leader", "master", "primary"):
            cluster.leader = name


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _take_document(cluster: _Cluster, document: Document) -> None:
    """Take a dynamic configuration, or the file of one server."""
    dynamic = document.table("bootstrap").table("dcs") if document.has("bootstrap") else document
    for key in ("synchronous_mode", "synchronous_node_count", "synchronous_mode_strict"):
        if dynamic.has(key):
            cluster.settings[key] = dynamic.text(key)
    if document.has("name"):
        tags = document.table("tags")
        name = document.text("name")
        if name in cluster.tags:
            raise document.refuse("name", "a server twice", "one document for each server")
        cluster.tags[name] = {key: tags.text(key) for key in tags.values}


def _reading(cluster: _Cluster, request: Request) -> Reading:
    findings: list[Finding] = []
    members: list[Member] = []
    order: dict[str, int] = {}
    for name, tags in cluster.tags.items():
        findings += _tag_findings(name, tags, cluster.source)
        voter = not _flag(tags.get("nosync", "false"), cluster.source, f"{name}.nosync")
        site = request.localities.site_of(name, cluster.source, "name")
        members.append(Member(name, site, voter))
        priority = _number(tags.get("failover_priority", "1"), cluster.source, name)
        if voter and priority > 1:
            order[site] = max(order.get(site, 0), priority)
    leaders = sorted(order, key=lambda site: -order[site])
    if cluster.leader:
        here = next(member.site for member in members if member.name == cluster.leader)
        leaders = [here, *(site for site in leaders if site != here)]
    mode = cluster.settings.get("synchronous_mode", "off").lower()
    if mode not in ("quorum", *_TRUE, *_FALSE):
        raise InputError(
            "unknown mode",
            source=cluster.source,
            field="synchronous_mode",
            value=mode,
            expected="quorum, on or off",
        )
    standbys = sum(member.voter for member in members) - 1
    count = 0 if mode in _FALSE else cluster.number("synchronous_node_count", 1)
    findings += _mode_findings(cluster, mode, count, standbys)
    deployment = Deployment.of_members("patroni", members, leaders=leaders, commit=count + 1)
    return Reading(deployment, tuple(findings))


def _tag_findings(name: str, tags: Mapping[str, str], source: str) -> list[Finding]:
    found = []
    for one, other in (("failover_priority", "nofailover"), ("sync_priority", "nosync")):
        if one in tags and other in tags:
            found.append(
                Finding(
                    "tags-exclude-each-other",
                    "error",
                    f"{name} has the tags {one} and {other}, of which Patroni takes one",
                    f"remove {other} or {one}",
                )
            )
    never = _flag(tags.get("nofailover", "false"), source, f"{name}.nofailover")
    voter = not _flag(tags.get("nosync", "false"), source, f"{name}.nosync")
    if voter and (never or tags.get("failover_priority") == "0"):
        found.append(
            Finding(
                "never-leads",
                "note",
                f"{name} may be synchronous and never leads",
                "none needed, if that is meant",
            )
        )
    return found


def _mode_findings(cluster: _Cluster, mode: str, count: int, standbys: int) -> list[Finding]:
    found = []
    if mode in _FALSE and standbys:
        found.append(
            Finding(
                "asynchronous",
                "warning",
                "synchronous_mode is off: a failover may lose commits",
                "synchronous_mode: quorum",
            )
        )
    if mode in _TRUE and standbys > count:
        found.append(
            Finding(
                "priority-standbys",
                "warning",
                f"synchronous_mode: on waits for {count} chosen standbys, not for the quickest; "
                "the latency shown is that of a quorum",
                "synchronous_mode: quorum",
            )
        )
    if count > standbys:
        strict = _flag(
            cluster.settings.get("synchronous_mode_strict", "false"),
            cluster.source,
            "synchronous_mode_strict",
        )
        found.append(
            Finding(
                "too-few-standbys",
                "error" if strict else "warning",
                f"commits wait for {count} standbys and {standbys} may be synchronous",
                f"synchronous_node_count: {max(1, standbys)}, or more servers without nosync",
            )
        )
    return found


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    reasons = list(POSTGRESQL.refuses(deployment, request))
    return tuple(reason for reason in reasons if "name the leader" not in reason)


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    steps: list[str] = []
    servers, by_replica = written_servers(deployment, request.localities, path)
    for move in () if path is None else path.steps:
        server = None if move.replica is None else by_replica[move.replica]
        name = "" if server is None else server.name
        words = {
            "add-learner": f"start Patroni on {name} with the tags nosync and nofailover",
            "catch-up": f"wait until `patronictl list` shows {name} as streaming without lag",
            "promote": f"take nosync and nofailover from {name}, `patronictl reload`",
            "demote": f"give {name} the tags nosync and nofailover, `patronictl reload`",
            "set-quorums": f"synchronous_node_count: {move.commit - 1}",
            "move-leader": f"patronictl switchover --candidate {name}",
            "remove": f"stop Patroni on {name}",
        }[move.kind]
        if move.kind in ("promote", "demote"):
            words += f", then synchronous_node_count: {max(1, move.commit - 1)}"
        broken = "".join(f" [{text}]" for text in move.broken)
        steps.append(_remark(f"step {len(steps) + 1}: {words}{broken}"))
    rank = {site: len(deployment.leaders) - i + 1 for i, site in enumerate(deployment.leaders)}
    lines = [
        *steps,
        "# dynamic configuration: patronictl edit-config",
    ]
    if deployment.quorum > 1:
        lines += ["synchronous_mode: quorum", f"synchronous_node_count: {deployment.quorum - 1}"]
    else:
        lines.append("synchronous_mode: false")
    for server in servers:
        lines += ["---", "# patroni.yml of one server", f"name: {json.dumps(server.name)}"]
        if not server.voter:
            lines += ["tags:", "  nosync: true", "  nofailover: true"]
        elif server.site in rank:
            lines += ["tags:", f"  failover_priority: {rank[server.site]}"]
        else:
            lines.append("tags: {}")
    notes = (
        "a priority decides between standbys that are equally far; Patroni never moves the leader "
        "back by itself (patronictl switchover does)",
    )
    return Script("\n".join(lines) + "\n", notes)


def _remark(text: str) -> str:
    return "#" + comment(text)[2:]


SYSTEM = DatabaseSystem(
    name="patroni",
    title="Patroni",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    names_servers=True,
    says="synchronous and asynchronous servers, acknowledgements of a commit, the failover order",
    cannot="more than one voter with commits of the primary alone",
    validated="patroni 4.1.5 --validate-config; not run against a server",
    operations={"statements": "as for PostgreSQL"},
    settings={},
)

"""Patroni: synchronous standbys, tags and failover priorities of a PostgreSQL cluster.

Patroni owns `synchronous_standby_names`. The dynamic configuration says how many standbys a commit
waits for; tags of the servers say which are never synchronous, and who takes over. Patroni waits
for fewer standbys by itself when some are lost: for none, unless the mode is strict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from placement.databases.systems.postgresql import COMMIT_WAITS, SERVERS, leader_refusals
from placement.databases.texts import check_keys, one_document, remark, remarked
from placement.errors import refused, require
from placement.io.formats.document import Document, parse_json
from placement.languages import comment, yaml_documents
from placement.methods.options import Setting

_INPUT = "`patronictl show-config`, and `patronictl list -f json` or the patroni.yml of each server"
_TRUE, _FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")
_SETTINGS = ("synchronous_mode", "synchronous_node_count", "synchronous_mode_strict", "pause")
_DYNAMIC = (*_SETTINGS, "postgresql", "standby_cluster")
_IGNORED = (
    "ttl", "loop_wait", "retry_timeout", "maximum_lag_on_failover", "maximum_lag_on_syncnode",
    "max_timelines_history", "primary_start_timeout", "primary_stop_timeout", "failsafe_mode",
    "master_start_timeout", "master_stop_timeout", "slots", "ignore_slots", "check_timeline",
    "member_slots_ttl",
)  # fmt: skip
"""Of the dynamic configuration: times, slots, and how far a standby may be behind."""
_IGNORED_OF_A_SERVER = (
    "scope", "namespace", "restapi", "ctl", "watchdog", "log", "etcd", "etcd3", "consul",
    "zookeeper", "exhibitor", "kubernetes", "raft", "postgresql", "bootstrap",
)  # fmt: skip
_IGNORED_OF_A_ROW = (
    "Cluster", "Host", "TL", "Lag in MB", "Pending restart", "Pending restart reason",
    "Scheduled restart", "Receive LSN", "Receive Lag", "Replay LSN", "Replay Lag",
)  # fmt: skip
_NEVER_SYNCHRONOUS = ("nosync", "nostream", "sync_priority", "replicatefrom")
_SYNCHRONOUS_ROLES = ("sync standby", "quorum standby")


@dataclass
class _Listed:
    """Server with its tags, and its role and state where a list says them."""

    tags: Mapping[str, str]
    role: str = ""
    state: str = ""

    @property
    def down(self) -> bool:
        """Return whether the list says that the server does not run, or not with the log."""
        return self.state.lower() not in ("", "running", "streaming", "in archive recovery")


@dataclass
class _Cluster:
    """Configuration and servers, as text of the file."""

    source: str
    settings: dict[str, str] = field(default_factory=dict)
    servers: dict[str, _Listed] = field(default_factory=dict)
    leader: str = ""

    def number(self, values: Mapping[str, object], key: str, default: int) -> int:
        text = str(values.get(key, default))
        if not text.removeprefix("-").isdecimal() or len(text) > 4:
            raise refused(self.source, key, "not a number", text, "a whole number")
        return int(text)

    def priority(self, values: Mapping[str, object]) -> int:
        return self.number(values, "failover_priority", 1)

    def flag(self, values: Mapping[str, str], key: str) -> bool:
        word = values.get(key, "false")
        if word.lower() not in (*_TRUE, *_FALSE):
            raise refused(self.source, key, "not a truth value", word, "true or false")
        return word.lower() in _TRUE

    def synchronous(self, name: str) -> bool:
        """Return whether the tags of a server let it be synchronous: it gets the log directly."""
        tags = self.servers[name].tags
        source = tags.get("replicatefrom", self.leader)
        cascades = source in self.servers and source != self.leader and self.leader != ""
        never = self.flag(tags, "nosync") or self.flag(tags, "nostream") or cascades
        return not never and self.number(tags, "sync_priority", 1) > 0

    def leads(self, name: str) -> bool:
        """Return whether the tags of a server let it take over."""
        tags = self.servers[name].tags
        return not self.flag(tags, "nofailover") and self.priority(tags) > 0


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    cluster = _Cluster(texts[0][0])
    chosen: list[str] = []
    for source, text in texts:
        if text.lstrip()[:1] in ("[", "{"):
            _take_list(cluster, parse_json(text, source), source)
            continue
        for number, table in enumerate(yaml_documents(text, source), 1):
            _take_document(cluster, Document(f"{source}, document {number}", "", table))
        said = remarked(text, source)
        check_keys(said, ("leader", "synchronous"))
        cluster.leader = said.text("leader", cluster.leader)
        chosen += said.names("synchronous", ())
    require(cluster.servers, "name", "no servers", expected=_INPUT, source=cluster.source)
    for name in chosen:
        if name in cluster.servers:
            cluster.servers[name].role = "sync standby"
    return _reading(cluster, request)


def _take_list(cluster: _Cluster, value: object, source: str) -> None:
    """Take the members of `patronictl list -f json`."""
    for i, row in enumerate(value if isinstance(value, list) else [value], 1):
        document = one_document(f"{source}, entry {i}", row, _INPUT)
        name = document.text("Member")
        check_keys(document, ("Member", "Role", "State", "Tags"), _IGNORED_OF_A_ROW, {"Group": ()})
        given = document.table("Tags").values.items()
        tags = {key: str(one).lower() if isinstance(one, bool) else str(one) for key, one in given}
        role = document.text("Role", "").lower().replace("_", " ")
        if role == "standby leader":
            raise document.refuse("Role", "a standby cluster takes no writes", "Leader")
        if role in ("leader", "master", "primary"):
            cluster.leader = name
        known = cluster.servers.get(name, _Listed({}))
        document.need(not known.role, "Member", "a server twice", "one row for each server")
        state = document.text("State", "running")
        cluster.servers[name] = _Listed(tags or dict(known.tags), role or "?", state)


def _take_document(cluster: _Cluster, document: Document) -> None:
    """Take a dynamic configuration, or the file of one server."""
    dynamic = document.table("bootstrap").table("dcs") if document.has("bootstrap") else document
    server = ("name", "tags", *_IGNORED_OF_A_SERVER) if document.has("name") else ()
    for one in (document, dynamic) if server else (dynamic,):
        check_keys(one, (*_DYNAMIC, *server), _IGNORED)
    if dynamic.has("standby_cluster") and dynamic.values["standby_cluster"] != "":
        raise dynamic.refuse("standby_cluster", "a standby cluster takes no writes", "no such key")
    cluster.settings |= {key: dynamic.text(key) for key in _SETTINGS if dynamic.has(key)}
    parameters = dynamic.table("postgresql").table("parameters")
    check_keys(parameters, parameters.values, (), {"synchronous_commit": COMMIT_WAITS})
    if server:
        tags, name = document.table("tags"), document.text("name")
        given = cluster.servers.get(name)
        if given is not None and not given.role:
            raise document.refuse("name", "a server twice", "one document for each server")
        words = {key: tags.text(key) for key in tags.values}
        cluster.servers[name] = replace(given, tags=words) if given else _Listed(words)


def _reading(cluster: _Cluster, request: Request) -> Reading:
    roles = {server.role for server in cluster.servers.values()}
    shown = "quorum" if "quorum standby" in roles else "on" if "sync standby" in roles else "off"
    mode = cluster.settings.get("synchronous_mode", shown).lower()
    if mode not in ("quorum", *_TRUE, *_FALSE):
        hint = "quorum, on or off"
        raise refused(cluster.source, "synchronous_mode", "unknown mode", mode, hint)
    mode, listed = "on" if mode in _TRUE else "off" if mode in _FALSE else mode, cluster.servers
    if cluster.leader and cluster.leader not in listed:
        hint = "the name of a server"
        raise refused(cluster.source, "leader", "no such server", cluster.leader, hint)
    standbys = [name for name in listed if name != cluster.leader and cluster.synchronous(name)]
    asked = cluster.number(cluster.settings, "synchronous_node_count", 1)
    if asked < 1:
        raise refused(cluster.source, "synchronous_node_count", "out of range", str(asked), ">= 1")
    able = len(standbys) - (not cluster.leader)
    chosen = [one for one in standbys if listed[one].role in _SYNCHRONOUS_ROLES and mode != "off"]
    chosen = chosen or standbys  # no list says which acknowledge now: any may
    least = 2 if cluster.flag(cluster.settings, "synchronous_mode_strict") else 1
    count = 0 if mode == "off" else max(least - 1, min(asked, able, len(chosen)))

    def member(name: str) -> Member:
        site = request.localities.site_of(name, cluster.source, "name")
        voter = name == cluster.leader or name in standbys
        role = "" if cluster.leads(name) or name == cluster.leader else "follower"
        if mode == "off":  # any server may be promoted, synchronous or not
            voter = role != "follower"
        elif voter and name not in (*chosen, cluster.leader):
            role = "spare"
        if listed[name].down and name != cluster.leader:
            role = "down"
        return Member(name, site, voter, role=role if voter else "", kept=dict(listed[name].tags))

    members = [member(name) for name in listed]
    leaders, ranks = _order(cluster, mode, members)
    deployment = Deployment.of_members(
        "patroni",
        members,
        leaders=leaders,
        ranks=ranks,
        order_void=mode == "quorum" and len(leaders) > 1,
        commit=count + 1,
        elect=1 if mode == "off" else None,
        least=None if mode == "off" else least,
        kept=json.dumps({"synchronous_mode": mode}),
    )
    findings = Findings("patroni")
    _judge_tags(cluster, findings)
    _judge_roles(cluster, mode, members, findings)
    _judge_mode(cluster, mode, asked, able, len(standbys) > len(chosen), findings)
    return Reading(deployment, tuple(findings))


def _order(
    cluster: _Cluster, mode: str, members: Sequence[Member]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the leader's site, then those of servers with a failover priority, and their ranks."""
    first = [member.site for member in members if member.name == cluster.leader]
    best: dict[str, int] = {}
    for member in members:
        if member.voter and not member.role and member.name != cluster.leader:
            best[member.site] = max(best.get(member.site, 0), cluster.priority(member.kept))
    rest = sorted((s for s in best if best[s] > 1 and s not in first), key=lambda s: -best[s])
    if mode == "quorum" and not first:  # the order is void, and the first is not known
        return (), ()
    levels = sorted({best[site] for site in rest}, reverse=True)
    return (*first, *rest), (*[1] * len(first), *(levels.index(best[s]) + 2 for s in rest))


def _judge_tags(cluster: _Cluster, findings: Findings) -> None:
    for name, server in cluster.servers.items():
        for one, other in (("failover_priority", "nofailover"), ("sync_priority", "nosync")):
            if one in server.tags and other in server.tags:
                findings.add("tags-exclude-each-other", name=name, one=one, other=other)
        if cluster.synchronous(name) and not cluster.leads(name):
            findings.add("never-leads", name=name)
        if server.down:
            findings.add("server-down", name=name, state=server.state)


def _judge_roles(
    cluster: _Cluster, mode: str, members: Sequence[Member], findings: Findings
) -> None:
    """Add what is to be said of who takes over."""
    if cluster.flag(cluster.settings, "pause"):
        findings.add("paused")
    voters = [member for member in members if member.voter]
    others = [member for member in voters if member.name != cluster.leader]
    able = [member for member in others if not member.role]
    chosen = [member for member in others if member.role not in ("spare", "down")]
    if mode != "off" and len(members) > 1 and not able:
        reason = "no standby is synchronous, and commits are on one server alone"
        remedy = "take nosync from a standby, or set its sync_priority above 0"
        if chosen:
            names = ", ".join(member.name for member in chosen)
            reason = f"of the synchronous standbys ({names}) none may lead"
            remedy = "a synchronous standby without nofailover"
        findings.add("nobody-takes-over", reason=reason, remedy=remedy)
    priority = {member.name: cluster.priority(member.kept) for member in voters}
    given = [name for name, number in priority.items() if number > 1]
    if mode == "quorum" and given:
        findings.add("priority-without-effect", given=", ".join(given))
    before = max((priority[member.name] for member in able), default=0)
    over = [one.name for one in voters if one.role == "spare" and priority[one.name] > before]
    if mode == "on" and able and over:
        names = ", ".join(member.name for member in able)
        findings.add("priority-of-a-spare", over=", ".join(over), able=names)


def _judge_mode(
    cluster: _Cluster, mode: str, asked: int, standbys: int, known: bool, findings: Findings
) -> None:
    strict = cluster.flag(cluster.settings, "synchronous_mode_strict")
    if mode == "off" and len(cluster.servers) > 1:
        findings.add("asynchronous")
    if mode == "on" and standbys > asked:
        which = "" if known else "; which ones is not known here, so that the latency is a quorum's"
        findings.add("priority-standbys", asked=asked, which=which)
    if mode != "off" and asked > standbys:
        lowered = f"commits wait for {standbys}"
        if not standbys:
            lowered = "commits wait for none, on the primary alone"
        dead = strict and not standbys
        findings.add(
            "too-few-standbys",
            "error" if dead else "",
            asked=asked,
            standbys=standbys,
            lowered="no commit ends" if dead else lowered,
            less=f", or synchronous_node_count: {standbys}" if standbys else "",
        )


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> list[str]:
    reasons = leader_refusals(deployment, [member.name for member in deployment.members])
    own = deployment.system == "patroni"
    return [reason for reason in reasons if not (own and "no standby is" in reason)]


def _mode(deployment: Deployment, present: Deployment | None, request: Request) -> str:
    """Return the mode of a deployment that was read, of the present one, or of the setting."""
    for one in (deployment, present):
        if one is not None and one.system == "patroni" and one.kept:
            kept = one_document("kept", parse_json(one.kept, "kept"), "settings of Patroni")
            mode = kept.text("synchronous_mode")
            if one is deployment or (mode != "off" and deployment.quorum > 1):
                return mode
    return request.text("synchronous_mode") if deployment.quorum > 1 else "off"


def _said(deployment: Deployment) -> Deployment:
    """Return the part that the configuration stores: an order only where the mode obeys one."""
    if deployment.system == "patroni":
        return deployment
    least, elect = (1, None) if deployment.quorum > 1 else (None, 1)
    return replace(deployment, leaders=deployment.leaders[:1], ranks=(), least=least, elect=elect)


def _words(move: ServerMove, server: Server | None) -> str:
    name, count = "" if server is None else server.name, max(1, move.commit - 1)
    nodes = f"`patronictl reload`, then synchronous_node_count: {count}"
    return {
        "add-learner": f"start Patroni on {name} with the tags nosync and nofailover",
        "catch-up": f"wait until `patronictl list` shows {name} as streaming without lag",
        "promote": f"take nosync and nofailover from {name}, {nodes}",
        "demote": f"give {name} the tags nosync and nofailover, {nodes}",
        "set-quorums": f"synchronous_node_count: {move.commit - 1}",
        "move-leader": f"patronictl switchover --candidate {name}",
        "remove": f"stop Patroni on {name}",
    }[move.kind]


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    present = None if path is None else path.present
    mode = _mode(deployment, present, request)
    servers, by_replica = written_servers(deployment, request.localities, path)
    lines = [f"#{comment(step)[2:]}" for step in numbered_steps(path, by_replica, _words)]
    lines.append("# dynamic configuration: patronictl edit-config")
    strict = False
    if mode == "off":
        lines.append("synchronous_mode: false")
    else:
        count = max(1, deployment.quorum - 1)
        lines += [f"synchronous_mode: {mode}", f"synchronous_node_count: {count}"]
        running = deployment if deployment.system == "patroni" else present
        strict = running is not None and running.system == "patroni" and running.least == 2
        lines += ["synchronous_mode_strict: true"] * strict
    first = [one for one in servers if one.voter and (one.site,) == deployment.leaders[:1]]
    if first:
        state: dict[str, object] = {"leader": first[0].name}
        if any(server.role == "spare" for server in servers):
            chosen = [one for one in servers if one.voter and one.role not in ("spare", "down")]
            state["synchronous"] = [one.name for one in chosen]
        lines.append(remark(state, "#"))
    tiers = deployment.tiers
    rank = {site: len(tiers) - i + 1 for i, tier in enumerate(tiers) for site in tier}
    own = deployment.system == "patroni" and bool(deployment.members)
    for server in servers:
        tags = _tags(server, mode, rank.get(server.site, 0) * (len(tiers) > 1), own)
        lines += ["---", "# patroni.yml of one server", f"name: {json.dumps(server.name)}"]
        lines += ["tags:" if tags else "tags: {}"]
        lines += [f"  {key}: {_scalar(text)}" for key, text in tags.items()]
    notes = ["Patroni never moves the leader back by itself (patronictl switchover does)"]
    if mode == "quorum" and len(deployment.leaders) > 1:
        notes.append(
            "with synchronous_mode: quorum any synchronous standby may take over, so that no "
            f"failover_priority is written; the plan's order is {', '.join(deployment.leaders)}"
        )
    elif mode == "on":
        notes.append(
            "synchronous_mode: on waits for chosen standbys, and one of these takes over; a "
            "failover_priority decides between them"
        )
    if mode != "off" and not strict:
        notes.append("without synchronous_mode_strict the primary goes on alone after losses")
    return Script("\n".join(lines) + "\n", tuple(notes))


def _tags(server: Server, mode: str, rank: int, own: bool) -> dict[str, str]:
    """Return the tags of a server: its own ones, and those that a new role needs."""
    tags = {key: str(value) for key, value in server.kept.items()}
    cluster = _Cluster("", servers={server.name: _Listed(tags)})
    if mode == "quorum" and cluster.priority(tags) > 1:
        del tags["failover_priority"]  # without effect
    if own:
        return tags
    synchronous = cluster.synchronous(server.name)
    if not server.voter:
        if tags and not (synchronous and "replicatefrom" not in tags):
            return tags
        gone = ("sync_priority", "failover_priority")
        return _without(tags, gone) | {"nosync": "true", "nofailover": "true"}
    if mode != "off" and not synchronous:
        tags = _without(tags, (*_NEVER_SYNCHRONOUS, "nofailover"))
    if server.role == "follower" and cluster.leads(server.name):
        tags["nofailover"] = "true"
    if mode != "quorum" and rank and cluster.leads(server.name):
        tags["failover_priority"] = str(rank)
    return tags


def _without(tags: Mapping[str, str], gone: Sequence[str]) -> dict[str, str]:
    return {key: text for key, text in tags.items() if key not in gone}


def _scalar(text: str) -> str:
    """Return a tag as YAML: words that are no text stay bare."""
    return text if re.fullmatch(r"true|false|-?\d+", text) else json.dumps(text)


SYSTEM = DatabaseSystem(
    name="patroni",
    title="Patroni",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    said=_said,
    commits="leader",
    servers=SERVERS,
    expresses=frozenset({"spare", "down", "follower", "adapts", "elect", "ties"}),
    says="synchronous and asynchronous servers, acknowledgements of a commit; the failover order "
    "where synchronous_mode is on",
    cannot="a failover order with synchronous_mode: quorum; more than one voter with commits of "
    "the primary alone",
    validated="patroni 4.1.5 --validate-config; not run against a server",
    settings={
        "synchronous_mode": Setting(
            "quorum", "mode to write, where none is known: on has an order", ("quorum", "on")
        )
    },
)

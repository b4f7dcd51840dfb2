"""etcd: members and learners, as a runbook of commands.

etcd stores voters and learners, and not which member should lead. The written text is therefore a
list of commands, each a list of arguments that no shell needs to take apart, with the members that
``etcdctl member list`` shows at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from placement.databases.deployment import Deployment, Member
from placement.databases.findings import Findings
from placement.databases.servers import MovePath, Replica, Server, ServerMove, written_servers
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.texts import check_keys, json_text, json_values, one_document
from placement.errors import require
from placement.io.formats.document import Document
from placement.methods.options import Setting

_INPUT = "`etcdctl member list -w json`, and `etcdctl endpoint status --cluster -w json`"
_NAME = re.compile(r"[^\s,=\x00-\x1f\x7f]+")
_HEX = re.compile(r"[0-9a-f]{1,16}")


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    members: list[Member] = []
    findings = Findings("etcd")
    leader, source = "", texts[0][0]
    free = {True: 0, False: 0}  # members without a place, by whether they are learners
    lists = 0
    for source, value in json_values(texts):
        if isinstance(value, list):
            leader = _leader_of_status(source, value) or leader
            continue
        document = one_document(source, value, _INPUT)
        document.need("members" in document.values, "members", "no members", _INPUT)
        lists += 1
        check_keys(document, ("members", "leader"), ("header", "system", "notes", "steps"))
        for table in document.tables("members"):
            learner = table.truth("isLearner", False)
            if not table.text("name", ""):
                where = ", ".join(table.names("peerURLs", ())) or table.place
                role, end = "member", ", yet it counts for the quorum"
                role, end, how = ("learner", "", "warning") if learner else (role, end, "")
                findings.add("member-not-started", how, role=role, where=where, end=end)
            if (member := _member(table, learner, request)) is not None:
                members.append(member)
            else:
                free[learner] += 1
        if document.has("leader"):  # of a runbook
            name = document.text("leader")
            leader = next((m.identity or m.name for m in members if m.name == name), "")
            document.need(leader, "leader", "no such member", "the name of a member")
    require(lists == 1, "members", "member lists given", lists, "one", source=source)
    at = {member.identity or member.name: member.site for member in members}
    if leader not in at:
        findings.add("no-leader-preference")
    learners, most = (
        sum(not one.voter for one in members) + free[True],
        request.text("max_learners"),
    )
    if learners > int(most):
        findings.add("too-many-learners", learners=learners, most=most)
    deployment = Deployment.of_members(
        "etcd",
        members,
        leaders=(at[leader],) if leader in at else (),
        free_voters=free[False],
        free_non_voters=free[True],
    )
    return Reading(deployment, tuple(findings))


def _leader_of_status(source: str, value: Sequence[object]) -> str:
    """Return the identity of the leader that most endpoints name."""
    entries = (
        one_document(f"{source}, entry {i}", item, "Endpoint and Status").table("Status")
        for i, item in enumerate(value, 1)
    )
    named = [_identity(status, "leader") for status in entries if status.has("leader")]
    return max(named, key=named.count, default="")


def _identity(table: Document, key: str) -> str:
    """Return the number of a member in hexadecimal, as the commands take it."""
    number = table.values.get(key)
    if isinstance(number, str) and _HEX.fullmatch(number):  # etcdctl --hex
        return number.lstrip("0") or "0"
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**64:
        raise table.refuse(key, "not the number of a member", "a whole number of 64 bits")
    return format(number, "x")


def _member(table: Document, learner: bool, request: Request) -> Member | None:
    """Return a member; one that has never started has no name, and its peer URL is its place."""
    check_keys(table, ("ID", "name", "peerURLs", "clientURLs", "isLearner"))
    name, peers = table.text("name", ""), table.names("peerURLs", ())
    role = "" if name else "unread" if learner else "down"
    if name:
        site = request.localities.site_of(name, table.source, table.key("name"))
    else:
        rows = (row for row in request.localities.rows if row.facts.get("peer_url") in peers)
        row = next(rows, None)
        if row is None:
            return None
        name, site = row.name, row.site
    identity = _identity(table, "ID") if table.has("ID") else ""
    clients, kept = ",".join(table.names("clientURLs", ())), {"peer_url": ",".join(peers)}
    return Member(name, site, not learner, identity, clients, role, kept if peers else {})


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    learners, most = sum(deployment.non_voters_at.values()), int(request.text("max_learners"))
    if learners <= most:
        return ()
    return (
        f"it has {learners} non-voting replicas, and etcd allows {most} as learners (from 3.6 on "
        "--max-learners raises that: start the servers with it and --set max_learners=N)",
    )


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    servers, by_replica = written_servers(deployment, request.localities, path)
    commands, allowed = _Commands(request), int(request.text("max_learners"))
    lead = deployment.leaders[0] if deployment.leaders else None
    leader = next((server for server in servers if server.site == lead and server.voter), None)
    if path is None:
        most = sum(not server.voter for server in servers)
        commands.first_start(servers, leader)
    else:
        most = _runbook(path, by_replica, deployment, commands, allowed)
    notes = [
        "etcd stores no preferred leader: after every failover, run the step move-leader again"
    ]
    if most > allowed:
        notes.append(
            f"the steps need {most} learners at once: start etcd with --max-learners={most}"
        )
    document = {
        "system": "etcd",
        "members": [
            {
                "name": server.name,
                "peerURLs": [commands.peer(server)],
                "clientURLs": [commands.client(server)],
                "isLearner": not server.voter,
            }
            for server in servers
        ],
        "leader": None if leader is None else leader.name,
        "notes": notes,
        "steps": commands.steps,
    }
    return Script(json_text(document), tuple(notes))


class _Commands:
    """Commands for servers, in the order in which they are run."""

    def __init__(self, request: Request) -> None:
        self.scheme = request.text("scheme")
        self.steps: list[dict[str, object]] = []

    def peer(self, server: Server) -> str:
        host = server.facts.get("host", server.name)
        default = str(server.kept.get("peer_url", f"{self.scheme}://{host}:2380")).split(",")[0]
        return server.facts.get("peer_url", default)

    def client(self, server: Server) -> str:
        host = server.facts.get("host", server.name)
        default = server.address.split(",")[0] or f"{self.scheme}://{host}:2379"
        return server.facts.get("client_url", default)

    def _etcdctl(self, text: str, to: Sequence[Server], *argv: str) -> None:
        endpoints = "--endpoints=" + ",".join(map(self.client, to))
        self.steps.append({"text": text, "argv": ["etcdctl", endpoints, *argv]})

    def start(self, server: Server, cluster: Sequence[Server], state: str) -> None:
        again = " (again if it ends at once: a peer has not heard of it yet)"
        text = f"start {server.name} with an empty data directory, beside your own options"
        argv = [
            "etcd",
            f"--name={server.name}",
            f"--initial-advertise-peer-urls={self.peer(server)}",
            f"--advertise-client-urls={self.client(server)}",
            f"--initial-cluster-state={state}",
            "--initial-cluster=" + ",".join(f"{one.name}={self.peer(one)}" for one in cluster),
        ]
        text += again * (state == "existing")
        self.steps.append({"text": text, "on": server.name, "argv": argv})

    def add_learner(self, server: Server, contact: Server) -> None:
        text = f"add {server.name} as a learner (repeat while the answer is 'unhealthy cluster')"
        peer = f"--peer-urls={self.peer(server)}"
        self._etcdctl(text, [contact], "member", "add", server.name, "--learner", peer)

    def member(self, verb: str, server: Server, contact: Server, text: str) -> None:
        self._etcdctl(text, [contact], "member", verb, self._id(server))

    def move_leader(self, server: Server, cluster: Sequence[Server]) -> None:
        text = f"hand the leadership over to {server.name} (the command goes to the present leader)"
        self._etcdctl(text, cluster, "move-leader", self._id(server))

    def _id(self, server: Server) -> str:
        return server.identity or f"<ID of {server.name}>"

    def first_start(self, servers: Sequence[Server], leader: Server | None) -> None:
        """Start a new cluster: the voters, then each learner."""
        voters = [server for server in servers if server.voter]
        for server in voters:
            self.start(server, voters, "new")
        cluster = list(voters)
        for server in servers:
            if not server.voter:
                self.add_learner(server, voters[0])
                cluster.append(server)
                self.start(server, cluster, "existing")
        if leader is not None:
            self.move_leader(leader, voters)


def _runbook(
    path: MovePath,
    servers: dict[Replica, Server],
    after: Deployment,
    commands: _Commands,
    allowed: int,
) -> int:
    """Add the commands of a move, and return the most learners that there are at once.

    etcd has few learners at once, so a learner is added just before its promotion; and no voter
    becomes a learner: it is removed, and added again where it should stay.
    """
    present = {one.site: one for one in path.present.held}
    there = [slot for slot in servers if slot.site in present]
    running = [slot for slot in there if slot.number <= present[slot.site].replicas]
    voting = [slot for slot in there if slot.number <= present[slot.site].voters]
    held = {one.site: one.replicas for one in after.held}
    most = len(running) - len(voting)

    def add(slot: Replica) -> int:
        commands.add_learner(servers[slot], servers[voting[0]])
        running.append(slot)
        commands.start(servers[slot], [servers[one] for one in running], "existing")
        return max(most, len(running) - len(voting))

    adds = {move.replica: move for move in path.steps if move.kind == "add-learner"}
    moves: list[ServerMove] = []
    for move in path.steps:
        if move.kind not in ("add-learner", "catch-up"):
            if move.kind == "promote" and move.replica in adds:
                moves.append(adds.pop(move.replica))
            moves.append(move)
    moves += adds.values()
    if most >= allowed and any(move.kind == "add-learner" for move in moves):
        # learners that go make room for new ones
        voted = {voter for move in moves for voter in move.voting} | {*voting}
        gone = [move for move in moves if move.kind == "remove" and move.replica not in voted]
        moves = [*gone, *(move for move in moves if move not in gone)]
    again = []
    for move in moves:
        slot = move.replica
        if slot is None or move.kind == "catch-up":
            continue
        server = servers[slot]
        votes = f"{len(move.voting)} voters, commits wait for {move.commit}{move.broken_words}"
        if move.kind == "add-learner":
            most = add(slot)
        elif move.kind == "promote":
            voting.append(slot)
            words = f"promote {server.name} (repeat while the learner is not in sync): {votes}"
            commands.member("promote", server, servers[voting[0]], words)
        elif move.kind == "move-leader":
            commands.move_leader(server, [servers[one] for one in voting])
        elif move.kind == "demote" or slot in running:
            running.remove(slot)
            words = f"remove the learner {server.name}{move.broken_words}"
            if slot in voting:
                voting.remove(slot)
                words = f"remove {server.name}: {votes}"
            commands.member("remove", server, servers[voting[0]], words)
            again += [slot] * (slot.number <= held.get(slot.site, 0))
    for slot in again:  # last, when the learners that go have gone
        servers[slot] = replace(servers[slot], identity="")
        most = add(slot)
    return most


SYSTEM = DatabaseSystem(
    name="etcd",
    title="etcd",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    order="first",
    servers=(
        "a member name (--initial-cluster takes blanks, ',' and '=' for separators)",
        _NAME.fullmatch,
    ),
    expresses=frozenset({"down", "unread"}),
    says="which members vote, which are learners; the leader as a step of the runbook",
    cannot="a preferred leader that lasts, a failover order, flexible quorums, many learners",
    validated="etcd 3.7.3: the commands of the runbook, on a cluster of five voters and a learner",
    settings={
        "scheme": Setting("https", "of the URLs, where the table has none", ("http", "https")),
        "max_learners": Setting(1, "value of --max-learners of the servers", minimum=0),
    },
)

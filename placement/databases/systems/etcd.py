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
from placement.databases.findings import Finding
from placement.databases.server_moves import MovePath, Replica, ServerMove
from placement.databases.server_names import (
    Server,
    missing_servers,
    unfit_names,
    written_servers,
)
from placement.databases.system import (
    DatabaseSystem,
    Reading,
    Request,
    Script,
    Texts,
    order_note,
    present_leader_only,
)
from placement.databases.systems.json_texts import check_keys, json_text, json_values, one_document
from placement.errors import InputError
from placement.io.formats.document import Document
from placement.methods.options import Setting

__all__ = ["SYSTEM"]

_INPUT = "`etcdctl member list -w json`, and `etcdctl endpoint status --cluster -w json`"
_NAME = re.compile(r"[^\s,=\x00-\x1f\x7f]+")
_HEX = re.compile(r"[0-9a-f]{1,16}")
_IGNORED = ("header", "system", "notes", "steps")


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    members: list[Member] = []
    findings: list[Finding] = []
    leader = ""
    free = free_learners = lists = 0
    for source, value in json_values(texts):
        if isinstance(value, list):
            leader = _leader_of_status(source, value) or leader
            continue
        document = one_document(source, value, _INPUT)
        if not isinstance(value, dict) or "members" not in value:
            raise InputError("no members", source=source, field="members", expected=_INPUT)
        lists += 1
        check_keys(document, ("members", "leader"), _IGNORED)
        for table in document.tables("members"):
            found = _member(table, request)
            learner = table.truth("isLearner", False)
            if not table.text("name", ""):
                findings.append(_unstarted(table, learner))
            if found is not None:
                members.append(found)
            elif learner:
                free_learners += 1
            else:
                free += 1
        if document.has("leader"):  # of a runbook
            name = document.text("leader")
            leader = next((m.identity or m.name for m in members if m.name == name), "")
            if not leader:
                raise document.refuse("leader", "no such member", "the name of a member")
    if lists != 1:
        raise InputError(
            "member lists given", source=texts[0][0], field="members", value=lists, expected="one"
        )
    at = {member.identity or member.name: member.site for member in members}
    if not leader:
        findings.append(
            Finding(
                "no-leader-preference",
                "note",
                "etcd stores no preferred leader, and no endpoint status was given that names the "
                "present one",
                "give the output of `etcdctl endpoint status --cluster -w json` as a second file",
            )
        )
    learners = sum(not member.voter for member in members) + free_learners
    if learners > int(request.text("max_learners")):
        findings.append(
            Finding(
                "too-many-learners",
                "warning",
                f"{learners} learners, and --max-learners is "
                f"{request.text('max_learners')} unless the servers were started with more",
                "say how many with --set max_learners=N, or remove learners",
            )
        )
    return Reading(
        Deployment.of_members(
            "etcd",
            members,
            leaders=(at[leader],) if leader in at else (),
            free_voters=free,
            free_non_voters=free_learners,
        ),
        tuple(findings),
    )


def _leader_of_status(source: str, value: Sequence[object]) -> str:
    """Return the identity of the leader that most endpoints name."""
    named: list[str] = []
    for i, item in enumerate(value):
        entry = one_document(f"{source}, entry {i + 1}", item, "Endpoint and Status")
        status = entry.table("Status")
        if status.has("leader"):
            named.append(_identity(status, "leader"))
    return max(named, key=named.count, default="")


def _identity(table: Document, key: str) -> str:
    """Return the number of a member in hexadecimal, as the commands take it."""
    number = table.values.get(key)
    if isinstance(number, str) and _HEX.fullmatch(number):  # etcdctl --hex
        return number.lstrip("0") or "0"
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**64:
        raise table.refuse(key, "not the number of a member", "a whole number of 64 bits")
    return format(number, "x")


def _member(table: Document, request: Request) -> Member | None:
    """Return a member; one that has never started has no name, and its peer URL is its place."""
    check_keys(table, ("ID", "name", "peerURLs", "clientURLs", "isLearner"))
    name, peers = table.text("name", ""), table.names("peerURLs", ())
    rows = (row for row in request.localities.rows if row.facts.get("peer_url") in peers)
    row = None if name else next(rows, None)
    if not name and row is None:
        return None
    site = request.localities.site_of(name, table.source, table.key("name")) if name else ""
    voter = not table.truth("isLearner", False)
    return Member(
        name if row is None else row.name,
        site if row is None else row.site,
        voter,
        _identity(table, "ID") if table.has("ID") else "",
        ",".join(table.names("clientURLs", ())),
        "" if name else "down" if voter else "unread",
    )


def _unstarted(table: Document, learner: bool) -> Finding:
    where = ", ".join(table.names("peerURLs", ())) or table.place
    return Finding(
        "member-not-started",
        "warning" if learner else "error",
        f"the {'learner' if learner else 'member'} {where} has no name: it was added and has "
        f"never started{'' if learner else ', yet it counts for the quorum'}",
        "start it, or remove it (etcdctl member remove)",
    )


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    reasons = list(missing_servers(deployment, request.localities))
    learners, most = sum(deployment.non_voters_at.values()), int(request.text("max_learners"))
    if learners > most:
        reasons.append(
            f"it has {learners} non-voting replicas, and etcd allows {most} learners (from 3.6 on "
            "--max-learners raises that: start the servers with it and --set max_learners=N)"
        )
    kind = "a member name (--initial-cluster takes blanks, ',' and '=' for separators)"
    return (*reasons, *unfit_names(deployment, request.localities, _NAME.fullmatch, kind))


def _peer(server: Server, request: Request) -> str:
    host = server.facts.get("host", server.name)
    return server.facts.get("peer_url", f"{request.text('scheme')}://{host}:2380")


def _client(server: Server, request: Request) -> str:
    host = server.facts.get("host", server.name)
    default = server.address.split(",")[0] or f"{request.text('scheme')}://{host}:2379"
    return server.facts.get("client_url", default)


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    servers, by_replica = written_servers(deployment, request.localities, path)
    if path is None:
        most = sum(not server.voter for server in servers)
        steps = _first_start(servers, deployment, request)
    else:
        steps, most = _Runbook(path, by_replica, deployment, request).commands()
    lead = deployment.leaders[0] if deployment.leaders else None
    leader = next((s.name for s in servers if s.site == lead and s.voter), None)
    notes = [
        "etcd stores no preferred leader: after every failover, run the step move-leader again",
        *order_note("etcd", deployment),
    ]
    if most > int(request.text("max_learners")):
        notes.append(
            f"the steps need {most} learners at once: start etcd with --max-learners={most}"
        )
    document = {
        "system": "etcd",
        "members": [
            {
                "name": server.name,
                "peerURLs": [_peer(server, request)],
                "clientURLs": [_client(server, request)],
                "isLearner": not server.voter,
            }
            for server in servers
        ],
        "leader": leader,
        "notes": notes,
        "steps": steps,
    }
    return Script(json_text(document), tuple(notes))


def _step(text: str, *argv: str, on: str = "") -> dict[str, object]:
    step: dict[str, object] = {"text": text}
    if on:
        step["on"] = on
    if argv:
        step["argv"] = list(argv)
    return step


def _id(server: Server) -> str:
    return server.identity or f"<ID of {server.name}>"


def _start(
    server: Server, cluster: Sequence[Server], request: Request, state: str
) -> dict[str, object]:
    members = ",".join(f"{one.name}={_peer(one, request)}" for one in cluster)
    again = " (again if it ends at once: a peer has not heard of it yet)"
    return _step(
        f"start {server.name} with an empty data directory, beside your own options"
        + again * (state == "existing"),
        "etcd",
        f"--name={server.name}",
        f"--initial-advertise-peer-urls={_peer(server, request)}",
        f"--advertise-client-urls={_client(server, request)}",
        f"--initial-cluster-state={state}",
        f"--initial-cluster={members}",
        on=server.name,
    )


def _add_learner(server: Server, contact: Server, request: Request) -> dict[str, object]:
    return _step(
        f"add {server.name} as a learner (repeat while the answer is 'unhealthy cluster')",
        "etcdctl",
        f"--endpoints={_client(contact, request)}",
        "member",
        "add",
        server.name,
        "--learner",
        f"--peer-urls={_peer(server, request)}",
    )


def _move_leader(server: Server, cluster: Sequence[Server], request: Request) -> dict[str, object]:
    return _step(
        f"hand the leadership over to {server.name} (the command goes to the present leader)",
        "etcdctl",
        "--endpoints=" + ",".join(_client(one, request) for one in cluster),
        "move-leader",
        _id(server),
    )


def _first_start(
    servers: Sequence[Server], deployment: Deployment, request: Request
) -> list[dict[str, object]]:
    """Return the commands that start a new cluster."""
    voters = [server for server in servers if server.voter]
    steps = [_start(server, voters, request, "new") for server in voters]
    lead = deployment.leaders[0] if deployment.leaders else None
    chosen = next((server for server in voters if server.site == lead), None)
    cluster = list(voters)
    for server in servers:
        if not server.voter:
            steps.append(_add_learner(server, voters[0], request))
            cluster.append(server)
            steps.append(_start(server, cluster, request, "existing"))
    if chosen is not None:
        steps.append(_move_leader(chosen, voters, request))
    return steps


class _Runbook:
    """Commands for the steps of a move.

    etcd has few learners at once, so a learner is added just before its promotion; and no voter
    becomes a learner: it is removed, and added again where it should stay.
    """

    def __init__(
        self,
        path: MovePath,
        servers: dict[Replica, Server],
        deployment: Deployment,
        request: Request,
    ) -> None:
        self.path, self.servers, self.request = path, servers, request
        kept = {one.site: one.replicas for one in deployment.held}
        self.kept = {slot for slot in servers if slot.number <= kept.get(slot.site, 0)}
        present = {one.site: one for one in path.present.held}
        self.running = [
            slot
            for slot in servers
            if slot.site in present and slot.number <= present[slot.site].replicas
        ]
        self.voting = [s for s in self.running if s.number <= present[s.site].voters]
        self.most = len(self.running) - len(self.voting)
        self.later: list[Replica] = []
        self.steps: list[dict[str, object]] = []

    def commands(self) -> tuple[list[dict[str, object]], int]:
        """Return the commands, and the most learners that there are at once."""
        moves = _learners_late(self.path.steps)
        adds = any(move.kind == "add-learner" for move in moves)
        if adds and self.most >= int(self.request.text("max_learners")):
            moves = self._old_learners_first(moves)
        for move in moves:
            slot = move.replica
            if slot is None or move.kind == "catch-up":
                continue
            server = self.servers[slot]
            if move.kind == "add-learner":
                self._add(slot, server)
            elif move.kind == "promote":
                self._promote(slot, server, move)
            elif move.kind == "move-leader":
                others = [self.servers[one] for one in self.voting]
                self.steps.append(_move_leader(server, others, self.request))
            elif move.kind == "demote" or slot in self.running:
                self._remove(slot, server, move)
        for slot in self.later:  # last, when the learners that go have gone
            self.servers[slot] = replace(self.servers[slot], identity="")
            self._add(slot, self.servers[slot])
        return self.steps, self.most

    def _old_learners_first(self, moves: Sequence[ServerMove]) -> list[ServerMove]:
        """Put the removal of learners that go before everything, to make room for new ones."""
        voted = {voter for move in moves for voter in move.voting} | set(self.voting)
        gone = [move for move in moves if move.kind == "remove" and move.replica not in voted]
        return [*gone, *(move for move in moves if move not in gone)]

    def _contact(self) -> Server:
        return self.servers[self.voting[0]]

    def _add(self, slot: Replica, server: Server) -> None:
        self.steps.append(_add_learner(server, self._contact(), self.request))
        self.running.append(slot)
        self.most = max(self.most, len(self.running) - len(self.voting))
        cluster = [self.servers[one] for one in self.running]
        self.steps.append(_start(server, cluster, self.request, "existing"))

    def _promote(self, slot: Replica, server: Server, move: ServerMove) -> None:
        self.voting.append(slot)
        self.steps.append(
            _step(
                f"promote {server.name} (repeat while the learner is not in sync): "
                f"{move.voters} voters, commits wait for {move.commit}"
                + "".join(f" [{words}]" for words in move.broken),
                "etcdctl",
                f"--endpoints={_client(self._contact(), self.request)}",
                "member",
                "promote",
                _id(server),
            )
        )

    def _remove(self, slot: Replica, server: Server, move: ServerMove) -> None:
        self.running.remove(slot)
        words = f"remove the learner {server.name}"
        if slot in self.voting:
            self.voting.remove(slot)
            words = f"remove {server.name}: {move.voters} voters, commits wait for {move.commit}"
        self.steps.append(
            _step(
                words + "".join(f" [{text}]" for text in move.broken),
                "etcdctl",
                f"--endpoints={_client(self._contact(), self.request)}",
                "member",
                "remove",
                _id(server),
            )
        )
        if slot in self.kept:
            self.later.append(slot)


def _learners_late(moves: Sequence[ServerMove]) -> list[ServerMove]:
    """Put the addition of each learner just before its promotion; those that stay come last."""
    adds = {move.replica: move for move in moves if move.kind == "add-learner"}
    ordered: list[ServerMove] = []
    for move in moves:
        if move.kind in ("add-learner", "catch-up"):
            continue
        if move.kind == "promote" and move.replica in adds:
            ordered.append(adds.pop(move.replica))
        ordered.append(move)
    return [*ordered, *adds.values()]


SYSTEM = DatabaseSystem(
    name="etcd",
    title="etcd",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    said=present_leader_only,
    names_servers=True,
    commits="majority",
    expresses=frozenset({"down", "unread"}),
    says="which members vote, which are learners; the leader as a step of the runbook",
    cannot="a preferred leader that lasts, a failover order, flexible quorums, many learners",
    validated="etcd 3.7.3: the commands of the runbook, on a cluster of five voters and a learner",
    settings={
        "scheme": Setting("https", "of the URLs, where the table has none", ("http", "https")),
        "max_learners": Setting(1, "value of --max-learners of the servers", minimum=0),
    },
)

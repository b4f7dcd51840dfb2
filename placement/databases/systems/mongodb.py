"""MongoDB: the configuration of a replica set, as a document for rs.reconfig().

The text is a document, never a statement of the shell, so that no name can leave its quotes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from placement.databases.deployment import Deployment, Member
from placement.databases.findings import Findings
from placement.databases.servers import MovePath, Server, path_between, written_servers
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.texts import check_keys, json_text, json_values, one_document
from placement.errors import InputError, require
from placement.io.formats.document import Document, parse_json
from placement.model.constraints import majority

_INPUT = "the document of rs.conf() as JSON: EJSON.stringify(rs.conf()) in mongosh"
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?(:[0-9]{1,5})?")
_NUMBER = re.compile(r"-?[0-9]{1,18}([.][0-9]{1,18})?")
_MOST_MEMBERS, _MOST_VOTES, _MOST_PRIORITY = 50, 7, 1000
_SETTINGS = (
    "version", "term", "protocolVersion", "configsvr", "settings",
    "writeConcernMajorityJournalDefault",
)  # fmt: skip
"""Of the set, ignored: durability and times; the write concern is a matter of the requests."""
_DELAYS = ("secondaryDelaySecs", "slaveDelay")
_OF_A_MEMBER = ("_id", "host", "votes", "priority", "arbiterOnly", "hidden", *_DELAYS)
_IGNORED_OF_A_MEMBER = ("buildIndexes", "tags", "horizons")


# --- reading ---------------------------------------------------------------------------------


def _plain(value: object) -> object:
    """Return canonical extended JSON, {"$numberInt": "1"}, with plain numbers."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    for name, number in (("$numberInt", int), ("$numberLong", int), ("$numberDouble", float)):
        text = value.get(name)
        if len(value) == 1 and isinstance(text, str) and _NUMBER.fullmatch(text):
            return number(float(text))
    return {key: _plain(each) for key, each in value.items()}


def _read(texts: Texts, request: Request) -> Reading:
    if len(texts) != 1:
        raise InputError("several files", source=texts[1][0], expected=f"one: {_INPUT}")
    source, value = json_values(texts)[0]
    document = one_document(source, _plain(value), _INPUT)
    if document.has("config"):  # written by export, or the answer of replSetGetConfig
        document = document.table("config")
    document.need(document.tables("members"), "members", "no members", _INPUT)
    check_keys(document, ("_id", "members"), _SETTINGS)
    findings, members = Findings("mongodb"), list[Member]()
    for table in document.tables("members"):
        check_keys(table, _OF_A_MEMBER, _IGNORED_OF_A_MEMBER)
        identity = str(table.whole("_id") if table.has("_id") else len(members))
        if identity in [one.identity for one in members]:
            raise table.refuse("_id", "given twice", "one number for each member")
        host = table.text("host")
        names = {row.name for row in request.localities.rows}
        name = host if host in names or ":" not in host else host.rpartition(":")[0]
        site = request.localities.site_of(name, table.source, table.key("host"))
        votes = table.number("votes", 1)
        table.need(votes in (0, 1), "votes", "out of range", "0 or 1")
        arbiter, hidden = table.truth("arbiterOnly", False), table.truth("hidden", False)
        if not votes:
            role = "unread" if arbiter or hidden or _delay(table) else ""
        elif arbiter or _delay(table):
            role = "arbiter" if arbiter else "delayed"
        else:
            role = "hidden" if hidden else "" if _priority(table) else "follower"
        member = Member(name, site, votes == 1, identity, host, role, dict(table.values))
        if member.name in [one.name for one in members]:  # by its port, then
            member = replace(member, name=member.address)
        members.append(member)
        _judge(table, member, findings)
    voting = sum(member.voter for member in members)
    for count, most, what in (
        (voting, _MOST_VOTES, "members that vote"),
        (len(members), _MOST_MEMBERS, "members"),
    ):
        if count > most:
            findings.add("too-many-members", count=count, what=what, most=most)
    given = document.table("settings").values.get("getLastErrorDefaults")
    wanted = given.get("w", 1) if isinstance(given, dict) else 1
    if wanted not in (1, "majority"):
        findings.add("default-write-concern", wanted=wanted)
    leaders, ranks = _order(members)
    arbiters = sum(member.role == "arbiter" for member in members)
    kept = {key: value for key, value in document.values.items() if key in _SETTINGS}
    deployment = Deployment.of_members(
        "mongodb",
        members,
        leaders=leaders,
        ranks=ranks,
        commit=_majority_write(voting, arbiters),
        elect=max(1, majority(voting)),
        name=document.text("_id", ""),
        kept=json.dumps(kept) if kept else "",
    )
    return Reading(deployment, tuple(findings))


def _priority(table: Document) -> float:
    value = table.number("priority", 1)
    table.need(0 <= value <= _MOST_PRIORITY, "priority", "out of range", f"0 to {_MOST_PRIORITY}")
    return value


def _delay(table: Document) -> float:
    return max(table.number(key, 0.0) for key in _DELAYS)


def _order(members: Sequence[Member]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the sites by the priority of members that may lead, and their ranks.

    The least preferred sites, of priority 1 or less, are left out: they come last anyway.
    """
    best: dict[str, float] = {}
    for member in members:
        if member.voter and not member.role:
            given = member.kept.get("priority")
            priority = float(given) if isinstance(given, (int, float)) else 1.0
            best[member.site] = max(best.get(member.site, 0.0), priority)
    levels = sorted({*best.values()}, reverse=True)
    if levels and levels[-1] <= 1:
        del levels[-1]
    leaders = [site for level in levels for site in best if best[site] == level]
    return tuple(leaders), tuple(levels.index(best[site]) + 1 for site in leaders)


def _judge(table: Document, member: Member, findings: Findings) -> None:
    """Add what the server refuses of a member, and what its role means."""
    name, priority, delay = member.name, _priority(table), _delay(table)
    aside = f"answers {delay:g} s late" if delay else "is hidden" * table.truth("hidden", False)
    if table.truth("arbiterOnly", False) and not member.voter:
        findings.add("arbiter-without-vote", name=name)
    elif not member.voter and priority > 0:
        findings.add("priority-without-vote", name=name, priority=priority)
    elif aside and priority > 0:
        findings.add("priority-of-a-hidden-member", name=name, aside=aside, priority=priority)
    if member.role == "arbiter":
        findings.add("arbiter", name=name)
    elif member.role == "delayed":
        findings.add("delayed-voter", name=name, delay=delay)
    elif member.role == "follower":
        findings.add("never-leads", name=name)


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> list[str]:
    roles = [role for one in deployment.held for role in one.role_names]
    needed = _majority_write(deployment.voters, roles.count("arbiter"))
    reasons = []
    if deployment.read is None and deployment.quorum != needed:
        reasons.append(
            f"elections and majority writes wait for a majority, not for {deployment.commit} of "
            f"{deployment.voters}"
        )
    if "delayed" in roles and not deployment.members:
        reasons.append("the delay of its delayed members is not known")
    if deployment.voters > _MOST_VOTES:
        reasons.append(f"a replica set has at most {_MOST_VOTES} voting members")
    if deployment.replicas > _MOST_MEMBERS:
        reasons.append(f"a replica set has at most {_MOST_MEMBERS} members")
    return reasons


def _majority_write(voting: int, arbiters: int) -> int:
    """Return the votes of a majority write, as the server counts: no more than hold data."""
    return max(1, min(majority(voting), voting - arbiters))


def _members(
    servers: Sequence[Server], voting: set[str], priorities: Mapping[str, object]
) -> list[dict[str, object]]:
    """Return the members: rs.reconfig replaces them whole, so all that was said of one is kept."""
    found = []
    for server in servers:
        votes = server.name in voting
        never = server.role or any(map(server.kept.get, ("arbiterOnly", "hidden", *_DELAYS)))
        host = server.address or (server.name if ":" in server.name else f"{server.name}:27017")
        number, expected = server.identity, "the number of a member"
        require(number.isdecimal() and len(number) < 10, "identity", "no _id", number, expected)
        member: dict[str, object] = {"_id": int(number), "host": host}
        member |= server.kept
        member["votes"] = int(votes)
        member["priority"] = priorities[server.name] if votes and not never else 0
        if server.role in ("arbiter", "hidden", "unread"):
            member["arbiterOnly" if server.role == "arbiter" else "hidden"] = True
        found.append(member)
    return found


def _priorities(
    servers: Sequence[Server], leaders: Sequence[str], ranks: Sequence[int]
) -> dict[str, object]:
    """Return a priority for each server: that of today where it gives the order."""
    given = {server.name: server.kept.get("priority", 1) for server in servers}
    now = [replace(one, kept={"priority": given[one.name]}) for one in servers if one.voter]
    levels = ranks or range(1, len(leaders) + 1)
    if {*zip(*_order(now), strict=True)} == {*zip(leaders, levels, strict=True)}:
        return {name: priority or 1 for name, priority in given.items()}
    worth = {site: max(levels) - rank + 2 for site, rank in zip(leaders, levels, strict=True)}
    return {server.name: worth.get(server.site, 1) for server in servers}


def _numbered(servers: Sequence[Server], taken: Collection[str]) -> list[Server]:
    """Give a number to each new member: the next one that was not in the set."""
    used = {*taken, *(server.identity for server in servers)}
    free = (str(number) for number in range(1000) if str(number) not in used)
    return [one if one.identity else replace(one, identity=next(free)) for one in servers]


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    steps: list[dict[str, object]] = []
    removed: list[Member] = []
    if path is not None:
        path, removed = _without_arbiters(path, deployment)
    servers, by_replica = written_servers(deployment, request.localities, path)
    numbered = _numbered(tuple(by_replica.values()) or servers, [one.identity for one in removed])
    by_replica = dict(zip(by_replica, numbered, strict=False))
    by_name = {server.name: server for server in numbered}
    servers = tuple(by_name[server.name] for server in servers)
    if path is not None:
        present = {one.site: one for one in path.present.held}
        there = [slot for slot in by_replica if slot.site in present]
        running = {slot for slot in there if slot.number <= present[slot.site].replicas}
        voting = {slot for slot in there if slot.number <= present[slot.site].voters}
        before = [by_replica[slot] for slot in voting]
        now = _priorities(before, path.present.leaders, path.present.ranks)
        priorities = {name: now.get(name, 1) for name in by_name}

        def step(words: str) -> None:
            chosen = [server for slot, server in by_replica.items() if slot in running]
            names = {by_replica[slot].name for slot in voting}
            members = _members(chosen, names, priorities)
            steps.append({"text": f"{words}: rs.reconfig with these members", "members": members})

        for member in removed:
            step(f"remove the arbiter {member.name}, which cannot become a member with data")
        for move in path.steps:
            slot = move.replica
            if slot is None or move.kind == "set-quorums":
                continue
            server = by_replica[slot]
            if move.kind == "catch-up":
                steps.append({"text": f"wait until {server.name} is SECONDARY"})
                continue
            if move.kind == "demote" and server.role == "arbiter":
                continue  # it has a vote until it goes
            if move.kind == "add-learner":
                running.add(slot)
            elif move.kind == "remove":
                running.remove(slot)
            elif move.kind == "move-leader":
                priorities = {s.name: 1 + (s.site == server.site) for s in by_replica.values()}
            voting = {*move.voting} & running
            step(f"{move.kind} {server.name}{move.broken_words}")
    final = _priorities(servers, deployment.leaders, deployment.ranks)
    kept = (deployment if path is None or deployment.kept else path.present).kept
    settings = one_document("kept", parse_json(kept or "{}", "kept"), "settings").values
    members = _members(servers, {server.name for server in servers if server.voter}, final)
    config = {"_id": request.name, **settings, "members": members}
    document: dict[str, object] = {"system": "mongodb", "config": config}
    if path is not None:
        document["steps"] = steps
    notes = [
        "take version and settings from rs.conf(), raise the version by one, and pass the document "
        "to rs.reconfig(); it changes one vote at a time, and a priority can start an election",
        'majority writes need the write concern { w: "majority" }',
    ]
    special = [f"{server.name} ({server.role})" for server in servers if server.role]
    if special:
        notes.append(f"members keep their roles, and do not lead: {', '.join(special)}")
    return Script(json_text(document), tuple(notes))


def _without_arbiters(path: MovePath, wanted: Deployment) -> tuple[MovePath, list[Member]]:
    """Return the path without the arbiters that the new deployment replaces, and these."""
    kept = {one.site: dict(one.special).get("arbiter", 0) for one in wanted.held}
    removed: list[Member] = []
    for member in path.present.members:
        if member.role == "arbiter" and member.site in kept:
            if not kept[member.site]:
                removed.append(member)
            kept[member.site] = max(0, kept[member.site] - 1)
    if not removed:
        return path, removed
    left = [member for member in path.present.members if member not in removed]
    now = path.present
    order = {"leaders": now.leaders, "ranks": now.ranks, "kept": now.kept}
    return path_between(Deployment.of_members("mongodb", left, **order), wanted), removed


SYSTEM = DatabaseSystem(
    name="mongodb",
    title="MongoDB",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    commits="leader",
    named=("replica set", ""),
    servers=("a host name", _HOST.fullmatch),
    expresses=frozenset({"arbiter", "hidden", "follower", "delayed", "unread", "ties", "elect"}),
    says="voting and other members, the order of primaries as priorities; hidden and delayed "
    "members and arbiters that are there",
    cannot="more than 7 voters, a quorum other than the majority",
    validated="syntax only, not run against a server",
)

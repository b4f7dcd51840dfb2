"""PostgreSQL: synchronous standbys by quorum.

A commit of the primary waits for k of the listed standbys: with the primary itself that is k + 1 of
the voters. PostgreSQL has no elections; the primary is where it was promoted. The setting names
neither the primary nor the asynchronous standbys, so the text holds both in a comment.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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
from placement.databases.texts import check_keys, later, remark, remarked, with_later
from placement.errors import InputError, refused, require
from placement.io.formats.document import Document
from placement.languages import comment, sql_name, sql_string
from placement.methods.options import Setting

COMMIT_WAITS = ("on", "true", "yes", "1", "remote_write", "remote_apply")
"""Values of synchronous_commit under which commits wait for standbys."""

_FIELD = "synchronous_standby_names"
_INPUT = f"the setting {_FIELD}: of postgresql.conf, ALTER SYSTEM or SHOW"
_MULTILINE = re.MULTILINE | re.IGNORECASE
_SET = re.compile(
    rf"^[ \t]*(?:ALTER\s+SYSTEM\s+SET\s+)?{_FIELD}\s*(?:=|TO\b)?\s*'((?:[^']|'')*)'", _MULTILINE
)
_OPEN = re.compile(rf"^[ \t]*{_FIELD}[ \t]*=?[ \t]*('.*)$", re.MULTILINE)
_SHOWN = re.compile(rf"^[ \t]*{_FIELD}[ \t]*\n[ \t]*-+[ \t]*\n(.*)$", re.MULTILINE)
_COMMIT = re.compile(
    r"^[ \t]*(?:ALTER\s+SYSTEM\s+SET\s+)?synchronous_commit\s*(?:=|TO\b)?\s*'?(\w+)", _MULTILINE
)
_VALUE = re.compile(
    r"\s*(?:(?:(ANY|FIRST)\s+)?(\d+)\s*\((.*)\)|(.*?))\s*", re.IGNORECASE | re.DOTALL
)
_COMMA = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_QUOTED = re.compile(r'"(?:[^"]|"")+"')
_RULE = re.compile(r"[-+ ]+|\(\d+ rows?\)")
_RECEIVER = "pg_receivewal"
_STATES = ("quorum", "sync", "potential", "async")
_NAME = re.compile(r"(?!\*$)[ -~]{1,63}")
SERVERS = (
    "an application_name (1 to 63 printable ASCII letters, and not the wildcard *)",
    _NAME.fullmatch,
)
"""Form of a server's name, and its check; the server cuts longer names at 63 bytes."""


@dataclass(frozen=True, slots=True)
class _Standbys:
    """Value of the setting: the method, the number of acknowledgements, the names."""

    method: str
    acknowledgements: int
    names: tuple[str, ...]

    def answers(self, states: Sequence[str]) -> list[bool]:
        """Return whether each connection of a name can acknowledge, by its sync_state.

        PostgreSQL counts connections, not names (its source: SyncRepGetCandidateStandbys): each
        that streams and has flushed. One that never flushed shows `async`, listed or not.
        """
        good = ("quorum",) if self.method == "ANY" else ("sync", "potential", "quorum")
        return [state in good for state in states]


# --- reading ---------------------------------------------------------------------------------


def _standbys(value: str, source: str) -> _Standbys:
    """Return the standbys in a value; what the server refuses and the wildcard are errors."""
    if not value.strip():
        return _Standbys("ANY", 0, ())
    found = _VALUE.fullmatch(value)
    assert found is not None  # the last form takes any text
    method, number, listed = found[1] or "FIRST", found[2] or "1", found[3]
    if len(number) > 4 or not 1 <= int(number) <= 9999:
        raise refused(source, _FIELD, "not a number of standbys", number, ">= 1")
    names: list[str] = []
    for piece in _COMMA.split(found[4] if listed is None else listed):
        text = piece.strip()
        if not _WORD.fullmatch(text) and not _QUOTED.fullmatch(text):
            hint = f"{sql_name(text)}, in double quotes, if that is one name; or ANY k (a, b)"
            if text in ("", "*"):
                hint = "names of standbys (the wildcard * names none)"
            raise refused(source, _FIELD, "not the name of a standby", text, hint)
        name = text[1:-1].replace('""', '"') if text[0] == '"' else text
        if name.lower() in map(str.lower, names):
            message = "a standby twice (letters are compared without case)"
            raise refused(source, _FIELD, message, name, "once")
        names.append(name)
    return _Standbys(method.upper(), int(number), tuple(names))


def _setting(text: str, source: str) -> _Standbys | None:
    """Return the last value of the setting in a text."""
    if found := _SET.findall(with_later(text)):
        return _standbys(found[-1].replace("''", "'"), source)
    if shown := _SHOWN.search(text):
        return _standbys(shown[1], source)
    if opened := _OPEN.search(text):
        raise refused(source, _FIELD, "a value without its closing quote", opened[1], _INPUT)
    return None


def _read(texts: Texts, request: Request) -> Reading:
    standbys: _Standbys | None = None
    primary = request.text("primary")
    asynchronous: list[str] = []
    rows: tuple[str, str] | None = None
    for source, text in texts:
        if "application_name" in text.lstrip().split("\n", 1)[0]:
            rows = text, source
            continue
        standbys = _setting(text, source) or standbys
        for value in _COMMIT.findall(text):
            given = Document(source, "", {"synchronous_commit": value.lower()})
            check_keys(given, (), (), {"synchronous_commit": COMMIT_WAITS})
        said = remarked(text, source)
        check_keys(said, ("primary", "asynchronous"))
        primary = primary or said.text("primary", "")
        asynchronous += said.names("asynchronous", ())
    where = texts[0][0]
    if standbys is None:
        raise InputError("not set", source=where, field=_FIELD, expected=_INPUT)
    hint = "--set primary=NAME of the server"
    require(primary, "primary", "not known", expected=hint, source=where)
    states = _states(*rows, standbys.names) if rows else {}
    asynchronous += [name for name, each in states.items() if {*each} == {"async"}]
    asynchronous += [name for name in states if name not in standbys.names]
    chosen = [name for name in standbys.names if name not in (primary, *asynchronous)]
    unseen = "async" if rows else "quorum"  # without rows each listed one acknowledges
    shown = {primary: ["quorum"]} | {name: states.get(name, [unseen]) for name in chosen}
    waited = [(name, k) for name, each in shown.items() for k in range(len(each))]
    able = sum(sum(standbys.answers(each)) for each in shown.values()) - 1
    findings = _findings(standbys, primary, len(waited) - 1, able)
    if standbys.method == "FIRST":  # of connections, not of names; a sync one is waited for
        waited.sort(key=lambda one: _STATES.index(shown[one[0]][one[1]]))
        waited = waited[: standbys.acknowledgements + 1]
    members = []
    for name in dict.fromkeys((primary, *standbys.names, *asynchronous)):
        kept = {"listed": True} if name in standbys.names and name not in chosen else {}
        site = request.localities.site_of(name, where, _FIELD)
        for k, answers in enumerate(standbys.answers(shown.get(name, [""]))):
            role = "witness" if name == _RECEIVER else "" if (name, k) in waited else "spare"
            own = "" if name not in shown else role if answers else "down"
            called = f"{name} (connection {k + 1})" if k else name
            again = {"connection_of": name} if k else kept
            members.append(Member(called, site, name in shown, role=own, kept=again))
    count = standbys.acknowledgements
    leaders = (members[0].site,)
    deployment = Deployment.of_members("postgresql", members, leaders=leaders, commit=count + 1)
    for name in standbys.names:
        if rows and name != primary:
            _judge(name, standbys, states.get(name, []), findings)
    return Reading(deployment, tuple(findings))


def _findings(standbys: _Standbys, primary: str, chosen: int, able: int) -> Findings:
    found, count, method = Findings("postgresql"), standbys.acknowledgements, standbys.method
    if count > able:
        found.add("too-few-standbys", count=count, able=able, method=method, most=max(1, able))
    if method == "FIRST" and chosen > count:
        found.add("priority-standbys", count=count)
    if primary in standbys.names:
        found.add("primary-listed", primary=primary)
    if _RECEIVER in standbys.names:
        found.add("receiver-listed")
    return found


def _judge(name: str, standbys: _Standbys, each: Sequence[str], findings: Findings) -> None:
    """Add what pg_stat_replication says of a listed standby."""
    if len(each) > 1:
        findings.add("standby-twice", count=len(each), name=name)
    if not all(standbys.answers(each) or [False]):
        what = "is not connected" if not each else "is asynchronous now"
        what = "does not stream yet" if "potential" in each else what
        what = "is in another setting than ANY" if "sync" in each else what
        findings.add("listed-and-not-synchronous", name=name, what=what)


def _states(text: str, source: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the states of pg_stat_replication by name (without case, as the server compares)."""
    spelled = {name.lower(): name for name in names}
    lines = [line for line in text.strip().splitlines() if not _RULE.fullmatch(line)]
    mark = "|" if "|" in lines[0] else ","
    found: dict[str, list[str]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines)), delimiter=mark):
        cells = {(key or "").strip(): (value or "").strip() for key, value in row.items() if key}
        if "sync_state" not in cells or "application_name" not in cells:
            hint = "CSV of SELECT application_name, sync_state FROM pg_stat_replication"
            raise InputError("no such column", source=source, field="sync_state", expected=hint)
        state = cells["sync_state"]
        if state not in _STATES:
            raise refused(source, "sync_state", "unknown state", state, " or ".join(_STATES))
        name = cells["application_name"]
        found.setdefault(spelled.get(name.lower(), name), []).append(state)
    return found


# --- writing ---------------------------------------------------------------------------------


def leader_refusals(deployment: Deployment, names: Iterable[str]) -> list[str]:
    """Return why servers of these names cannot have the roles."""
    reasons = []
    if deployment.voters > 1 and deployment.quorum < 2:
        reasons.append(
            f"with {deployment.voters} voters and commits that wait for the primary alone, no "
            "standby is synchronous: make the other voters non-voters"
        )
    seen: dict[str, str] = {}
    for name in names:
        if seen.setdefault(name.lower(), name) != name:
            reasons.append(f"{name!r} and {seen[name.lower()]!r} are one name")
    return reasons


def _refuses(deployment: Deployment, request: Request) -> list[str]:
    names = [member.name for member in deployment.members] or [
        row.name
        for one in deployment.held
        for row in request.localities.of_site(one.site)[: one.replicas]
    ]
    lacking = [] if deployment.leaders else ["one server is the primary: name the leader"]
    return [*lacking, *leader_refusals(deployment, names)]


def _name(server: Server) -> str:
    return str(server.kept.get("connection_of", server.name))


def _alter(voting: Iterable[str], primary: str, commit: int, method: str = "ANY") -> str:
    names = [sql_name(name) for name in dict.fromkeys(voting) if name != primary]
    value = f"{method} {commit - 1} ({', '.join(names)})" if names and commit > 1 else ""
    return f"ALTER SYSTEM SET {_FIELD} = {sql_string(value)}; SELECT pg_reload_conf();"


def _words(move: ServerMove, server: Server | None) -> str:
    name = "" if server is None else server.name
    return {
        "add-learner": f"make {name} a standby: pg_basebackup, primary_conninfo with "
        f"application_name={name}",
        "catch-up": f"wait until pg_stat_replication shows {name} as streaming",
        "promote": f"{name} becomes synchronous",
        "demote": f"{name} becomes asynchronous",
        "set-quorums": f"commits wait for {move.commit - 1} standbys",
        "move-leader": f"switch over: stop writes, wait for {name}, pg_promote() there, "
        "let the old primary and the others follow it; go on there",
        "remove": f"stop the standby {name}",
    }[move.kind]


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    servers, by_replica = written_servers(deployment, request.localities, path)
    steps: list[str] = []
    moves = () if path is None else path.steps
    for move, text in zip(moves, numbered_steps(path, by_replica, _words), strict=True):
        steps.append(comment(text))
        if move.kind in ("promote", "demote", "set-quorums", "move-leader"):
            voting = [_name(by_replica[one]) for one in move.voting]
            steps.append(later(_alter(voting, by_replica[move.leader].name, move.commit)))
    # the first voter of the leader's site, as the steps have it
    primary = next(s for s in servers if s.voter and s.site == deployment.leaders[0])
    others = [_name(server) for server in servers if not server.voter]
    ranked = sorted(servers, key=lambda server: server.role == "spare")
    voting = [_name(one) for one in ranked if one.voter or one.kept.get("listed")]
    method = "FIRST" if any(server.role == "spare" for server in servers) else "ANY"
    never = "" if primary.kept.get("listed") else primary.name
    final = _alter(voting, never, deployment.quorum, method)
    words = "the steps are comments: carry them out one by one, each statement on the primary of "
    lines = [
        comment("synchronous standbys by quorum; a commit waits for the primary and the standbys"),
        remark({"primary": primary.name, "asynchronous": others}),
        *([comment(f"{words}its time")] if steps else []),
        *steps,
        comment(f"the setting on the primary {primary.name}, and on every server that may be next"),
        later(final) if steps else final,
        comment("afterwards: quorum for the listed standbys, async for the others"),
        "SELECT application_name, sync_state FROM pg_stat_replication ORDER BY 1;",
    ]
    notes = ("PostgreSQL elects no primary; a server that takes over needs the setting too",)
    return Script("\n".join(lines) + "\n", notes)


SYSTEM = DatabaseSystem(
    name="postgresql",
    title="PostgreSQL",
    inputs=f"{_INPUT}; and pg_stat_replication (application_name, sync_state) as CSV",
    read=_read,
    refuses=_refuses,
    write=_write,
    order="first",
    commits="leader",
    servers=SERVERS,
    expresses=frozenset({"spare", "down", "elect", "witness"}),
    says="primary, synchronous standbys with any number of acknowledgements, asynchronous ones",
    cannot="an election or a failover order; more than one voter with commits of the primary alone",
    validated="PostgreSQL 15: setting and sync_state of a primary and three standbys; the steps "
    "(--from) on a model only",
    settings={"primary": Setting("", "name of the primary, where the text does not say")},
)

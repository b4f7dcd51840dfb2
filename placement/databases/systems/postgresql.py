"""PostgreSQL: synchronous standbys by quorum.

A commit of the primary waits for k of the listed standbys: with the primary itself that is k + 1 of
the voters. PostgreSQL has no elections; the primary is where it was promoted. The setting names
neither the primary nor the asynchronous standbys, so the text holds both in a comment.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from placement.databases.deployment import Deployment, Member
from placement.databases.findings import Finding
from placement.databases.server_moves import MovePath, ServerMove
from placement.databases.server_names import (
    Server,
    missing_servers,
    named_servers,
    numbered_steps,
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
from placement.databases.systems.json_texts import check_keys
from placement.databases.systems.remarks import later, remark, remarked, with_later
from placement.errors import InputError
from placement.io.formats.document import Document
from placement.languages.sql_text import comment, sql_name, sql_string
from placement.methods.options import Setting

__all__ = ["COMMIT_WAITS", "SYSTEM"]

COMMIT_WAITS = ("on", "true", "yes", "1", "remote_write", "remote_apply")
"""Values of synchronous_commit under which commits wait for standbys."""

_FIELD = "synchronous_standby_names"
_SET = re.compile(
    rf"^[ \t]*(?:ALTER\s+SYSTEM\s+SET\s+)?{_FIELD}\s*(?:=|TO\b)?\s*'((?:[^']|'')*)'",
    re.MULTILINE | re.IGNORECASE,
)
_SHOWN = re.compile(rf"^[ \t]*{_FIELD}[ \t]*\n[ \t]*-+[ \t]*\n(.*)$", re.MULTILINE)
_COMMIT = re.compile(
    r"^[ \t]*(?:ALTER\s+SYSTEM\s+SET\s+)?synchronous_commit\s*(?:=|TO\b)?\s*'?(\w+)",
    re.MULTILINE | re.IGNORECASE,
)
_VALUE = re.compile(
    r"\s*(?:(?:(ANY|FIRST)\s+)?(\d+)\s*\((.*)\)|(.*?))\s*", re.IGNORECASE | re.DOTALL
)
_COMMA = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_QUOTED = re.compile(r'"(?:[^"]|"")+"')
_RULE = re.compile(r"[-+ ]+|\(\d+ rows?\)")
_RECEIVER = "pg_receivewal"
_STATES = ("sync", "potential", "quorum", "async")
_NAME = re.compile(r"[ -~]{1,63}")
"""Names of applications: printable ASCII; what is longer than 63 bytes is cut off."""


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
    """Return the standbys in a value of the setting.

    Raises
    ------
    InputError
        For a value that the server refuses, and for the wildcard.
    """
    if not value.strip():
        return _Standbys("ANY", 0, ())
    found = _VALUE.fullmatch(value)
    assert found is not None  # the last form takes any text
    method, number, listed = found[1] or "FIRST", found[2] or "1", found[3]
    if found[2] and not 1 <= int(number[:5]) <= 9999:
        raise InputError(
            "not a number of standbys", source=source, field=_FIELD, value=number, expected=">= 1"
        )
    names: list[str] = []
    for piece in _COMMA.split(found[4] if listed is None else listed):
        text = piece.strip()
        if not _WORD.fullmatch(text) and not _QUOTED.fullmatch(text):
            raise InputError(
                "not the name of a standby",
                source=source,
                field=_FIELD,
                value=text,
                expected="names of standbys (the wildcard * names none)"
                if not text or text == "*"
                else f"{sql_name(text)}, in double quotes, if that is one name; or ANY k (a, b)",
            )
        name = text[1:-1].replace('""', '"') if text[0] == '"' else text
        if name.lower() in map(str.lower, names):
            raise InputError(
                "a standby twice (letters are compared without case)",
                source=source,
                field=_FIELD,
                value=name,
            )
        names.append(name)
    return _Standbys(method.upper(), int(number), tuple(names))


def _read(texts: Texts, request: Request) -> Reading:
    standbys: _Standbys | None = None
    primary = request.text("primary")
    asynchronous: list[str] = []
    states: dict[str, list[str]] | None = None
    for source, text in texts:
        if "application_name" in text.lstrip().split("\n", 1)[0]:
            states = _states(text, source)
            asynchronous += [name for name, each in states.items() if {*each} == {"async"}]
            continue
        found = _SET.findall(with_later(text))
        shown = _SHOWN.search(text)
        if found:
            standbys = _standbys(found[-1].replace("''", "'"), source)
        elif shown is not None:
            standbys = _standbys(shown.group(1), source)
        elif open_value := re.search(rf"^[ \t]*{_FIELD}[ \t]*=?[ \t]*('.*)$", text, re.MULTILINE):
            raise InputError(
                "a value without its closing quote",
                source=source,
                field=_FIELD,
                value=open_value[1],
                expected=_INPUT,
            )
        for value in _COMMIT.findall(text):
            given = Document(source, "", {"synchronous_commit": value.lower()})
            check_keys(given, (), (), {"synchronous_commit": COMMIT_WAITS})
        said = remarked(text, source)
        check_keys(said, ("primary", "asynchronous"))
        if said.has("primary") and not primary:
            primary = said.text("primary")
        asynchronous += said.names("asynchronous", ())
    where = texts[0][0]
    if standbys is None:
        raise InputError("not set", source=where, field=_FIELD, expected=_INPUT)
    if not primary:
        raise InputError(
            "not known", source=where, field="primary", expected="--set primary=NAME of the server"
        )

    asynchronous += [name for name in states or () if name not in standbys.names]
    chosen = [name for name in standbys.names if name != primary and name not in asynchronous]
    if states is not None and standbys.method == "FIRST":
        rank = {name: "sync" not in states.get(name, ()) for name in chosen}
        chosen.sort(key=lambda name: rank[name])
    spares = chosen[standbys.acknowledgements :] if standbys.method == "FIRST" else []
    members = []
    for name in dict.fromkeys((primary, *standbys.names, *asynchronous)):
        voter = name == primary or name in chosen
        kept: dict[str, object] = {}
        if name in standbys.names and name not in chosen:
            kept["listed"] = True
        site = request.localities.site_of(name, where, _FIELD)
        role = "witness" if name == _RECEIVER else "spare" if name in spares else ""
        each = [True]
        if states is not None and name != primary and voter:
            each = standbys.answers(states.get(name, ())) or [False]
        for number, answers in enumerate(each, 1):
            again = {"connection_of": name} if number > 1 else {}
            members.append(
                Member(
                    f"{name} (connection {number})" if again else name,
                    site,
                    voter,
                    role="" if not voter else role if answers else "down",
                    kept=kept | again,
                )
            )
    count = standbys.acknowledgements
    deployment = Deployment.of_members(
        "postgresql",
        members,
        leaders=(members[0].site,),
        commit=count + 1,
    )
    able = sum(one.voter and one.role != "down" for one in members) - 1
    return Reading(deployment, tuple(_findings(standbys, primary, chosen, states, able)))


def _findings(
    standbys: _Standbys,
    primary: str,
    chosen: Sequence[str],
    states: Mapping[str, Sequence[str]] | None,
    able: int,
) -> Iterator[Finding]:
    count = standbys.acknowledgements
    if count > able:
        yield Finding(
            "too-few-standbys",
            "error",
            f"commits wait for {count} standbys, and {able} can acknowledge: no commit ends",
            f"more synchronous standbys, or {standbys.method} {max(1, able)} (…)",
        )
    if standbys.method == "FIRST" and len(chosen) > count:
        yield Finding(
            "priority-standbys",
            "warning",
            f"FIRST waits for the first {count} of the list that are connected, even when "
            "others answer sooner",
            "use ANY",
        )
    if primary in standbys.names:
        yield Finding(
            "primary-listed",
            "warning",
            f"the primary {primary} is in the list and never answers itself",
            "list it only for the time after a switchover",
        )
    if _RECEIVER in standbys.names:
        yield Finding(
            "receiver-listed",
            "warning",
            f"{_RECEIVER} writes the log alone and never leads; without --synchronous it "
            "acknowledges a commit only when a segment is full",
            f"run it with --synchronous, or take {_RECEIVER} out of the list",
        )
    for name in standbys.names if states is not None else ():
        each = (states or {}).get(name, ())
        if len(each) > 1:
            yield Finding(
                "standby-twice",
                "warning",
                f"{len(each)} standbys call themselves {name}, and PostgreSQL counts each of them: "
                "all are taken to be at one site",
                "an application_name of its own for each standby",
            )
        answers = standbys.answers(each)
        if name != primary and not all(answers or [False]):
            what = "is not connected" if not each else "is asynchronous now"
            what = "does not stream yet" if "potential" in each else what
            what = "is in another setting than ANY" if "sync" in each else what
            yield Finding(
                "listed-and-not-synchronous",
                "warning",
                f"{name} is in the list and {what}: it acknowledges nothing",
                "reload the setting, or let the standby catch up",
            )


def _states(text: str, source: str) -> dict[str, list[str]]:
    """Return the states of pg_stat_replication by name, from CSV or as psql prints it."""
    lines = [line for line in text.strip().splitlines() if not _RULE.fullmatch(line)]
    mark = "|" if "|" in lines[0] else ","
    found: dict[str, list[str]] = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines)), delimiter=mark):
        cells = {(key or "").strip(): (value or "") for key, value in row.items() if key}
        if "sync_state" not in cells or "application_name" not in cells:
            raise InputError(
                "no such column",
                source=source,
                field="sync_state",
                expected="CSV of SELECT application_name, sync_state FROM pg_stat_replication",
            )
        state = cells["sync_state"].strip()
        if state not in _STATES:
            raise InputError(
                "unknown state",
                source=source,
                field="sync_state",
                value=state,
                expected=" or ".join(_STATES),
            )
        found.setdefault(cells["application_name"].strip(), []).append(state)
    return found


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    reasons = list(missing_servers(deployment, request.localities))
    if not deployment.leaders:
        reasons.append("one server is the primary: name the leader")
    if deployment.voters > 1 and deployment.quorum < 2:
        reasons.append(
            f"with {deployment.voters} voters and commits that wait for the primary alone, no "
            "standby is synchronous: make the other voters non-voters"
        )
    seen: dict[str, str] = {}
    for row in named_servers(deployment, request.localities):
        if not _NAME.fullmatch(row.name) or row.name == "*":
            reasons.append(
                f"the name {row.name!r} is no application_name (1 to 63 printable ASCII "
                "letters, and not the wildcard *)"
            )
        elif seen.setdefault(row.name.lower(), row.name) != row.name:
            reasons.append(f"{row.name!r} and {seen[row.name.lower()]!r} are one name")
    return tuple(reasons)


def _name(server: Server) -> str:
    return str(server.kept.get("connection_of", server.name))


def _alter(voting: Sequence[str], primary: str, commit: int, method: str = "ANY") -> str:
    names = [sql_name(name) for name in dict.fromkeys(voting) if name != primary]
    value = f"{method} {commit - 1} ({', '.join(names)})" if names and commit > 1 else ""
    return f"ALTER SYSTEM SET {_FIELD} = {sql_string(value)}; SELECT pg_reload_conf();"


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    servers, by_replica = written_servers(deployment, request.localities, path)

    def words(move: ServerMove, server: Server | None) -> str:
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

    steps: list[str] = []
    moves = () if path is None else path.steps
    for move, text in zip(moves, numbered_steps(path, by_replica, words), strict=True):
        steps.append(comment(text))
        if move.kind in ("promote", "demote", "set-quorums", "move-leader"):
            voting = [_name(by_replica[one]) for one in move.voting]
            steps.append(later(_alter(voting, by_replica[move.leader].name, move.commit)))
    # the first voter of the leader's site, as the steps have it
    primary = next(s for s in servers if s.voter and s.site == deployment.leaders[0])
    document = {
        "primary": primary.name,
        "asynchronous": [_name(server) for server in servers if not server.voter],
    }
    voting = [_name(one) for one in servers if one.voter or one.kept.get("listed")]
    method = "FIRST" if any(server.role == "spare" for server in servers) else "ANY"
    never = "" if primary.kept.get("listed") else primary.name
    final = _alter(voting, never, deployment.quorum, method)
    if steps:
        steps.insert(
            0,
            comment(
                "the steps are comments: carry them out one by one, each statement on the primary "
                "of its time"
            ),
        )
    lines = [
        comment("synchronous standbys by quorum; a commit waits for the primary and the standbys"),
        remark(document),
        *steps,
        comment(f"the setting on the primary {primary.name}, and on every server that may be next"),
        later(final) if steps else final,
        comment("afterwards: quorum for the listed standbys, async for the others"),
        "SELECT application_name, sync_state FROM pg_stat_replication ORDER BY 1;",
    ]
    notes = ["PostgreSQL elects no primary; a server that takes over needs the setting too"]
    notes += order_note("PostgreSQL", deployment)
    return Script("\n".join(lines) + "\n", tuple(notes))


_INPUT = f"the setting {_FIELD}: of postgresql.conf, ALTER SYSTEM or SHOW"

SYSTEM = DatabaseSystem(
    name="postgresql",
    title="PostgreSQL",
    inputs=f"{_INPUT}; and pg_stat_replication (application_name, sync_state) as CSV",
    read=_read,
    refuses=_refuses,
    write=_write,
    said=present_leader_only,
    names_servers=True,
    commits="leader",
    expresses=frozenset({"spare", "down", "elect", "witness"}),
    says="primary, synchronous standbys with any number of acknowledgements, asynchronous ones",
    cannot="an election or a failover order; more than one voter with commits of the primary alone",
    validated="PostgreSQL 15: setting and sync_state of a primary and three standbys; the steps "
    "(--from) on a model only",
    settings={"primary": Setting("", "name of the primary, where the text does not say")},
)

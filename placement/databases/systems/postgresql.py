"""PostgreSQL: synchronous standbys by quorum.

A commit of the primary waits for k of the listed standbys: with the primary itself that is k + 1 of
the voters. PostgreSQL has no elections; the primary is where it was promoted. The setting names
neither the primary nor the asynchronous standbys, so the text holds both in a comment.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from placement.databases.deployment import Deployment, Member
from placement.databases.findings import Finding
from placement.databases.server_moves import MovePath
from placement.databases.server_names import missing_servers, written_servers
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.systems.remarks import later, remark, remarked, with_later
from placement.databases.systems.sql_text import TokenStream, comment, sql_name, sql_string
from placement.errors import InputError
from placement.methods.options import Setting

__all__ = ["SYSTEM"]

_FIELD = "synchronous_standby_names"
_SET = re.compile(
    rf"^[ \t]*(?:ALTER\s+SYSTEM\s+SET\s+)?{_FIELD}\s*(?:=|TO\b)?\s*'((?:[^']|'')*)'",
    re.MULTILINE | re.IGNORECASE,
)
_SHOWN = re.compile(rf"^[ \t]*{_FIELD}[ \t]*\n[ \t]*-+[ \t]*\n(.*)$", re.MULTILINE)
_NAME = re.compile(r"[ -~]{1,63}")
"""Names of applications: printable ASCII; what is longer than 63 bytes is cut off."""


@dataclass(frozen=True, slots=True)
class _Standbys:
    """Value of the setting: the method, the number of acknowledgements, the names."""

    method: str
    acknowledgements: int
    names: tuple[str, ...]


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
    stream = TokenStream(value, source)

    def names() -> tuple[str, ...]:
        found = []
        while True:
            token = stream.take("the name of a standby")
            bare = token.kind == "word" and not token.value[0].isdigit()
            if token.value == "*" or not (bare or token.kind == "name"):
                raise InputError(
                    "not the name of a standby",
                    source=source,
                    field=_FIELD,
                    value=token.value,
                    expected="a name, in double quotes where it has other signs than letters, "
                    "digits and '_' (the wildcard * names no standby)",
                )
            found.append(token.value)
            if not stream.accept(","):
                return tuple(found)

    method = "FIRST"
    counted = False
    if stream.accept("ANY"):
        method, counted = "ANY", True
    elif stream.accept("FIRST"):
        counted = True
    first = stream.next
    if first is not None and first.kind == "word" and first.value.isdecimal():
        counted = True
    number = 1
    if counted:
        text = stream.take("a number of standbys").value
        if not text.isdecimal() or len(text) > 4 or int(text) < 1:
            raise InputError(
                "not a number of standbys", source=source, field=_FIELD, value=text, expected=">= 1"
            )
        number = int(text)
        stream.expect("(")
        found = names()
        stream.expect(")")
    else:
        found = names()
    if stream.next is not None:
        raise InputError(
            "text behind the names", source=source, field=_FIELD, value=stream.next.value
        )
    lower = [name.lower() for name in found]
    for name in found:
        if lower.count(name.lower()) > 1:
            raise InputError(
                "a standby twice (letters are compared without case)",
                source=source,
                field=_FIELD,
                value=name,
            )
    return _Standbys(method, number, found)


def _read(texts: Texts, request: Request) -> Reading:
    standbys: _Standbys | None = None
    primary = request.text("primary")
    asynchronous: list[str] = []
    for source, text in texts:
        if "application_name" in text.split("\n", 1)[0]:
            asynchronous += _asynchronous(text, source)
            continue
        found = _SET.findall(with_later(text))
        shown = _SHOWN.search(text)
        if found:
            standbys = _standbys(found[-1].replace("''", "'"), source)
        elif shown is not None:
            standbys = _standbys(shown.group(1), source)
        said = remarked(text, source)
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
    return _reading(standbys, primary, asynchronous, where, request)


def _reading(
    standbys: _Standbys,
    primary: str,
    asynchronous: Sequence[str],
    source: str,
    request: Request,
) -> Reading:
    voting = (primary, *(name for name in standbys.names if name != primary))
    others = dict.fromkeys(name for name in asynchronous if name not in voting)
    members = tuple(
        Member(name, request.localities.site_of(name, source, _FIELD), name in voting)
        for name in (*voting, *others)
    )
    findings = []
    listed = len(voting) - 1
    if standbys.acknowledgements > listed:
        findings.append(
            Finding(
                "too-few-standbys",
                "error",
                f"commits wait for {standbys.acknowledgements} standbys and {listed} are listed: "
                "no commit ends",
                f"list more standbys, or ask for {listed}",
            )
        )
    if standbys.method == "FIRST" and listed > standbys.acknowledgements:
        findings.append(
            Finding(
                "priority-standbys",
                "warning",
                f"FIRST waits for the first {standbys.acknowledgements} of the list that are "
                "connected, even when others answer sooner; the latency shown is that of ANY",
                "use ANY",
            )
        )
    if primary in standbys.names:
        findings.append(
            Finding(
                "primary-listed",
                "warning",
                f"the primary {primary} is in the list and never answers itself",
                "list it only for the time after a switchover",
            )
        )
    return Reading(
        Deployment.of_members(
            "postgresql",
            members,
            leaders=(members[0].site,),
            commit=standbys.acknowledgements + 1,
        ),
        tuple(findings),
    )


def _asynchronous(text: str, source: str) -> list[str]:
    """Return the standbys of pg_stat_replication that are not synchronous, from CSV."""
    rows = list(csv.DictReader(io.StringIO(text)))
    found = []
    for row in rows:
        state, name = row.get("sync_state"), row.get("application_name")
        if state is None or name is None:
            raise InputError(
                "no such column",
                source=source,
                field="sync_state",
                expected="CSV of SELECT application_name, sync_state FROM pg_stat_replication",
            )
        if state == "async":
            found.append(name)
    return found


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    if deployment.read is not None:
        return ("PostgreSQL has a primary, and the placement is of a store without a leader",)
    reasons = list(missing_servers(deployment, request.localities))
    if not deployment.leaders:
        reasons.append("one server is the primary: name the leader")
    if deployment.voters > 1 and deployment.quorum < 2:
        reasons.append(
            f"with {deployment.voters} voters and commits that wait for the primary alone, no "
            "standby is synchronous: make the other voters non-voters"
        )
    seen: dict[str, str] = {}
    for one in deployment.held:
        for row in request.localities.of_site(one.site)[: one.replicas]:
            if not _NAME.fullmatch(row.name) or row.name == "*":
                reasons.append(
                    f"the name {row.name!r} is no application_name (1 to 63 printable ASCII "
                    "letters, and not the wildcard *)"
                )
            elif seen.setdefault(row.name.lower(), row.name) != row.name:
                reasons.append(f"{row.name!r} and {seen[row.name.lower()]!r} are one name")
    return tuple(reasons)


def _said(deployment: Deployment) -> Deployment:
    """Return the part of a deployment that the setting and its comment store: the primary only."""
    return replace(deployment, leaders=deployment.leaders[:1])


def _alter(voting: Sequence[str], primary: str, commit: int) -> str:
    names = [sql_name(name) for name in voting if name != primary]
    value = f"ANY {commit - 1} ({', '.join(names)})" if names and commit > 1 else ""
    return f"ALTER SYSTEM SET {_FIELD} = {sql_string(value)}; SELECT pg_reload_conf();"


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    steps: list[str] = []
    servers, by_replica = written_servers(deployment, request.localities, path)
    for number, move in enumerate(() if path is None else path.steps, 1):
        server = None if move.replica is None else by_replica[move.replica]
        name = "" if server is None else server.name
        words = {
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
        broken = "".join(f" [{text}]" for text in move.broken)
        steps.append(comment(f"step {number}: {words}{broken}"))
        if move.kind in ("promote", "demote", "set-quorums", "move-leader"):
            voting = [by_replica[one].name for one in move.voting]
            steps.append(later(_alter(voting, by_replica[move.leader].name, move.commit)))
    # the first voter of the leader's site, as the steps have it
    primary = next(s for s in servers if s.voter and s.site == deployment.leaders[0])
    document = {
        "primary": primary.name,
        "asynchronous": [server.name for server in servers if not server.voter],
    }
    voting = [server.name for server in servers if server.voter]
    final = _alter(voting, primary.name, deployment.quorum)
    if steps:
        words = "the steps are comments: carry them out one by one, each statement on the primary"
        steps.insert(0, comment(f"{words} of its time"))
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
    if len(deployment.leaders) > 1:
        notes.append(
            "PostgreSQL has no failover order (Patroni has); the plan's order of leaders is "
            + ", ".join(deployment.leaders)
        )
    return Script("\n".join(lines) + "\n", tuple(notes))


_INPUT = f"the setting {_FIELD}: of postgresql.conf, ALTER SYSTEM or SHOW"

SYSTEM = DatabaseSystem(
    name="postgresql",
    title="PostgreSQL",
    inputs=f"{_INPUT}; and pg_stat_replication (application_name, sync_state) as CSV",
    read=_read,
    refuses=_refuses,
    write=_write,
    said=_said,
    names_servers=True,
    says="primary, synchronous standbys with any number of acknowledgements, asynchronous ones",
    cannot="an election or a failover order; more than one voter with commits of the primary alone",
    validated="PostgreSQL 15: setting and sync_state of a primary and three standbys; the steps "
    "(--from) on a model only",
    operations={
        "query on a hot standby": "weak read",
        "query on the primary": "strong read",
        "COMMIT with synchronous_commit = on": "single-group transaction",
        "COMMIT with synchronous_commit = local or off": "γ = 1, and no vote",
        "PREPARE TRANSACTION, COMMIT PREPARED": "multi-group transaction",
    },
    settings={"primary": Setting("", "name of the primary, where the text does not say")},
)

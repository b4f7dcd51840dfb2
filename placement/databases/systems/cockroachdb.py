"""CockroachDB: zone configurations.

The database keeps `num_replicas` replicas, `num_voters` of which vote. `constraints` place all
replicas, `voter_constraints` those that vote, `lease_preferences` name the regions of the
leaseholder in order. It moves replicas by itself after the statement: learners first, and votes
by joint consensus. The checks of the server are rewritten in :mod:`.cockroachdb_zones`.
"""

from __future__ import annotations

import json

from placement.databases.deployment import Deployment
from placement.databases.findings import Finding
from placement.databases.localities import name_refusal
from placement.databases.server_moves import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.systems.cockroachdb_zones import (
    Zone,
    effective_zone,
    zone_findings,
    zone_roles,
    zones_of,
)
from placement.languages.sql_text import comment, sql_name, sql_string
from placement.methods.options import Setting

__all__ = ["SYSTEM"]


def _read(texts: Texts, request: Request) -> Reading:
    zones: list[Zone] = []
    for source, text in texts:
        zones += zones_of(text, source)
    zone = effective_zone(zones, request.name, request.text("table"), texts[0][0])
    key = request.text("locality_key")
    roles = zone_roles(zone, key, request.localities)
    findings = [*zone_findings(zone, key, request.localities), *roles.findings]
    deployment = Deployment.of(
        "cockroachdb",
        roles.voters,
        roles.non_voters,
        leaders=roles.leaders,
        free_voters=roles.free_voters,
        free_non_voters=roles.free_non_voters,
        name=zone.target.name,
    )
    if not deployment.leaders:
        findings.append(
            Finding(
                "no-leader-preference",
                "note",
                f"{zone.target} has no lease_preferences: the leaseholder follows load or chance",
                "set lease_preferences; from version 26.2 on leases no longer follow the load "
                "where the multi-metric allocator is on",
            )
        )
    return Reading(deployment, tuple(findings))


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    reasons = []
    if deployment.read is not None:
        reasons.append("every range has a leader, and the placement is of a store without one")
    if deployment.commit is not None:
        reasons.append(
            f"commits wait for a majority, not for {deployment.commit} of {deployment.voters}"
        )
    if deployment.voters == 2:
        reasons.append("num_voters may not be 2: one or at least three replicas vote")
    if not request.name and not request.text("table"):
        reasons.append("no database is named (--database)")
    table = request.text("table")
    if table and not (table.count(".") < 2 and all(table.split("."))):
        reasons.append(f"the table {table!r} is not a name, or a schema and a name with one dot")
    key = request.text("locality_key")
    if name_refusal(key, "CockroachDB") is not None:
        reasons.append(f"the locality key {key!r} cannot stand in a constraint")
    for one in deployment.held:
        reason = name_refusal(request.localities.only(one.site).name, "CockroachDB")
        if reason is not None:
            reasons.append(reason)
    return tuple(reasons)


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    key = request.text("locality_key")

    def at(site: str) -> str:
        return f"+{key}={request.localities.only(site).name}"

    replicas = {at(one.site): one.replicas for one in deployment.held}
    voters = {at(one.site): one.voters for one in deployment.held if one.voters}
    # JSON is YAML, with every key in quotes; the leases are a list of lists
    fields = [
        ("num_replicas", str(deployment.replicas)),
        ("num_voters", str(deployment.voters)),
        ("constraints", sql_string(json.dumps(replicas))),
        ("voter_constraints", sql_string(json.dumps(voters))),
        ("lease_preferences", sql_string(json.dumps([[at(s)] for s in deployment.leaders]))),
    ]
    width = max(len(field) for field, _ in fields)
    target = f"DATABASE {sql_name(request.name)}"
    if request.text("table"):
        parts = [*([request.name] if request.name else []), *request.text("table").split(".")]
        target = "TABLE " + ".".join(map(sql_name, parts))
    lines = [
        comment("placement of replicas, voters and leaseholder for CockroachDB"),
        comment("one statement; the server moves replicas by itself, learners first, and changes"),
        comment("votes by joint consensus, so that no step leaves a range below its quorum"),
    ]
    if path is not None:
        lines += [comment(f"changes: {words}") for words in _changes(path, deployment)]
    lines.append(f"ALTER {target} CONFIGURE ZONE USING")
    lines += [f"  {field:<{width}} = {value}," for field, value in fields[:-1]]
    lines.append(f"  {fields[-1][0]:<{width}} = {fields[-1][1]};")
    lines.append(comment("afterwards, until the replicas are where they should be:"))
    lines.append(f"SHOW ZONE CONFIGURATION FROM {target};")
    return Script(
        "\n".join(lines) + "\n",
        (
            "a database with a PRIMARY REGION refuses this statement: its zone configurations are "
            "the system's own there",
        ),
    )


def _changes(path: MovePath, deployment: Deployment) -> tuple[str, ...]:
    return path.present.differences(deployment) or ("none",)


SYSTEM = DatabaseSystem(
    name="cockroachdb",
    title="CockroachDB",
    inputs="SHOW ZONE CONFIGURATIONS (table, CSV or TSV), or ALTER … CONFIGURE ZONE statements",
    read=_read,
    refuses=_refuses,
    write=_write,
    says="voters and non-voters per region, the order of leaseholders",
    cannot="flexible quorums; two voters; multi-region SQL (SURVIVE …) is not written",
    validated="cockroachdb-parser v0.25.2 (grammar); server rules restated, no server was run",
    operations={
        "SELECT … AS OF SYSTEM TIME follower_read_timestamp()": "weak read",
        "SELECT … AS OF SYSTEM TIME with_max_staleness(…)": (
            "bounded read: the nearest replica if it is fresh enough, else the leaseholder"
        ),
        "SELECT": "strong read: the leaseholder answers from its lease, without votes",
        "INSERT, UPDATE, DELETE of one range, implicit transaction": "single-group transaction",
        "BEGIN … COMMIT over several ranges": (
            "single-group transaction for the client where parallel commits apply, "
            "multi-group transaction where they do not"
        ),
        "read of a GLOBAL table": "weak read in latency, yet consistent; its writes wait longer",
    },
    settings={
        "locality_key": Setting("region", "key of the locality tier whose values are places"),
        "table": Setting("", "the table instead of the database, as schema.table"),
    },
)

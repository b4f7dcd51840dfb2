"""PD, the placement driver of TiKV: placement rules as JSON.

A rule has a role (leader, voter, follower or learner), a count, and constraints on store labels.
"""

from __future__ import annotations

import re
from dataclasses import replace

from placement.databases.deployment import Deployment
from placement.databases.findings import Finding
from placement.databases.server_moves import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.systems.json_texts import json_text, json_values, one_document
from placement.databases.systems.tidb import place_refusals
from placement.errors import InputError
from placement.io.formats.document import Document
from placement.methods.options import Setting

__all__ = ["SYSTEM"]

_ROLES = ("leader", "voter", "follower", "learner")
_OPERATORS = ("in", "notIn", "exists", "notExists")
_HEX = re.compile(r"([0-9a-fA-F]{2})*")
_INPUT = "rules of PD as JSON: GET /pd/api/v1/config/placement-rule, or one group of it"


def _read(texts: Texts, request: Request) -> Reading:
    group = request.text("group")
    rules: list[Document] = []
    groups: set[str] = set()
    for source, value in json_values(texts):
        items = value if isinstance(value, list) else [value]
        if not items:
            raise InputError("no rules", source=source, expected=_INPUT)
        for item in items:
            document = one_document(source, item, _INPUT)
            if not document.has("rules") and not document.has("role"):
                raise document.refuse("rules", "neither a group of rules nor a rule", _INPUT)
            found = document.tables("rules") if document.has("rules") else (document,)
            for rule in found:
                name = rule.text("group_id", document.text("group_id", "pd"))
                groups.add(name)
                if name == group:
                    rules.append(rule)
    if not rules:
        raise InputError(
            "no rules of this group",
            source=texts[0][0],
            field="group",
            value=group,
            expected="--set group= one of " + ", ".join(sorted(groups)),
        )
    return _roles(rules, request)


def _roles(rules: list[Document], request: Request) -> Reading:
    findings: list[Finding] = []
    voters: dict[str, int] = {}
    learners: dict[str, int] = {}
    leaders: list[str] = []
    free = free_learners = lead_rules = 0
    for rule in rules:
        role, count = rule.text("role"), rule.whole("count")
        if role not in _ROLES:
            raise rule.refuse("role", "unknown role", "one of " + ", ".join(_ROLES))
        if count < 1 or (role == "leader" and count > 1):
            findings.append(
                _error("count", f"the rule {rule.text('id', '')!r} ({role}) has the count {count}")
            )
            if count < 1:
                continue
        if count > 10_000:
            raise rule.refuse("count", "out of range", "a number of replicas")
        site = _site(rule, request)
        lead_rules += role == "leader"
        if role == "leader" and site is not None:
            leaders.append(site)
        if role == "follower":
            findings.append(
                Finding(
                    "never-leads",
                    "note",
                    f"the rule {rule.text('id', '')!r} has the role follower: its replicas vote "
                    "and never lead",
                    "use the role voter if they may lead after a loss",
                )
            )
        held = learners if role == "learner" else voters
        if site is not None:
            held[site] = held.get(site, 0) + count
        elif role == "learner":
            free_learners += count
        else:
            free += count
    if lead_rules > 1:
        findings.append(_error("two-leaders", f"{lead_rules} rules have the role leader"))
    if not voters and not free:
        findings.append(_error("no-voter", "no rule has the role leader or voter"))
    deployment = Deployment.of(
        "pd",
        voters,
        learners,
        leaders=tuple(dict.fromkeys(leaders)),
        free_voters=free,
        free_non_voters=free_learners,
    )
    return Reading(deployment, tuple(findings))


def _error(rule: str, evidence: str) -> Finding:
    return Finding(rule, "error", f"{evidence}: PD refuses that", "mend the rules")


def _site(rule: Document, request: Request) -> str | None:
    """Return the site that the constraints of a rule require; None where they leave it open."""
    key = request.text("locality_key")
    site: str | None = None
    for one in rule.tables("label_constraints"):
        operator = one.text("op")
        if operator not in _OPERATORS:
            raise one.refuse("op", "unknown operator", "one of " + ", ".join(_OPERATORS))
        values = one.names("values", ())
        if one.text("key") != key or operator != "in":
            raise one.refuse(
                "key",
                "a constraint that is not a place",
                f"{key!r} with the operator in (another key of places: --set locality_key=…)",
            )
        if len(values) == 1:
            site = request.localities.site_of(values[0], one.source, one.key("values"))
        elif not values:
            raise one.refuse("values", "no value", "one or more places")
    return site


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    if deployment.read is not None:
        return ("every region of TiKV has a leader, and the placement is of a store without one",)
    reasons = place_refusals(deployment, request, "PD")
    if deployment.commit is not None:
        reasons.append(
            f"commits wait for a majority, not for {deployment.commit} of {deployment.voters}"
        )
    for setting in ("start_key", "end_key"):
        if not _HEX.fullmatch(request.text(setting)):
            reasons.append(f"{setting} is not hexadecimal")
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", request.text("group")):
        reasons.append("the group is not letters, digits, '_', '.' and '-'")
    return tuple(reasons)


def _said(deployment: Deployment) -> Deployment:
    """Return the part of a deployment that placement rules store: one leader, no order after it."""
    return replace(deployment, leaders=deployment.leaders[:1])


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    key, group = request.text("locality_key"), request.text("group")
    lead = deployment.leaders[0] if deployment.leaders else None

    def rule(name: str, role: str, site: str, count: int) -> dict[str, object]:
        place = request.localities.only(site).name
        return {
            "group_id": group,
            "id": name if name == "leader" else f"{name}-{place}",
            "start_key": request.text("start_key"),
            "end_key": request.text("end_key"),
            "role": role,
            "count": count,
            "label_constraints": [{"key": key, "op": "in", "values": [place]}],
        }

    rules = [] if lead is None else [rule("leader", "leader", lead, 1)]
    for site, count in deployment.voters_at.items():
        others = count - (site == lead)
        if others:
            rules.append(rule("voter", "voter", site, others))
    for site, count in deployment.non_voters_at.items():
        rules.append(rule("learner", "learner", site, count))
    document = {"group_id": group, "group_index": 0, "group_override": False, "rules": rules}
    notes = [
        f"send it with POST /pd/api/v1/config/placement-rule/{group}; PD moves the replicas by "
        "itself, learners first, and refuses labels that no store has",
    ]
    if path is not None:
        changes = "; ".join(path.present.differences(_said(deployment))) or "none"
        notes.append(f"changes: {changes}")
    if len(deployment.leaders) > 1:
        notes.append(
            "PD has no failover order; the plan's order of leaders is "
            + ", ".join(deployment.leaders)
        )
    return Script(json_text(document), tuple(notes))


SYSTEM = DatabaseSystem(
    name="pd",
    title="PD of TiKV",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    said=_said,
    says="leader, voters and learners by region, for a range of keys",
    cannot="a failover order, a quorum other than the majority",
    validated="a real PD (7 April 2024) whose scheduler moved a region among stores without data",
    operations={"reads and writes of TiKV": "as for TiDB; raw requests have no timestamp"},
    settings={
        "locality_key": Setting("region", "key of the store label whose values are places"),
        "group": Setting("pd", "group of the rules"),
        "start_key": Setting("", "first key, hexadecimal"),
        "end_key": Setting("", "key behind the last, hexadecimal"),
    },
)

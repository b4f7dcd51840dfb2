"""PD, the placement driver of TiKV: placement rules as JSON.

A rule has a role (leader, voter, follower or learner), a count, and constraints on store labels.
Rules of one range of keys add up. The stacking, the checks and the witnesses are those of tikv/pd
011d32f7 in pkg/schedule/placement: rule.go (compareRule, prepareRulesForApply), rule_list.go
(checkApplyRules), rule_manager.go (adjustRule), fit.go (fitRule).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from placement.databases.deployment import Deployment
from placement.databases.findings import Finding
from placement.databases.localities import name_refusals
from placement.databases.server_moves import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.systems.constraint_words import (
    Labels,
    LabelTest,
    PlacedReplicas,
    with_roles,
)
from placement.databases.systems.json_texts import json_text, json_values, one_document
from placement.errors import InputError
from placement.io.formats.document import Document
from placement.methods.options import Setting

__all__ = ["SYSTEM"]

_ROLES = ("leader", "voter", "follower", "learner")
_OPERATORS = ("in", "notIn", "exists", "notExists")
_HEX = re.compile(r"([0-9a-fA-F]{2})*")
_INPUT = "rules of PD as JSON: GET /pd/api/v1/config/placement-rule, or one group of it"


_RULE_KEYS = (
    "group_id", "id", "index", "override", "start_key", "end_key", "role", "is_witness", "count",
    "label_constraints", "location_labels", "isolation_level", "version", "create_timestamp",
)  # fmt: skip
_GROUP_KEYS = ("group_id", "group_index", "group_override", "rules")
_SHARED = ("location_labels", "isolation_level")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule with its place in the stack of rules: PD sorts by group, then by index."""

    document: Document
    group: tuple[int, str]
    group_overrides: bool
    group_known: bool = True

    @property
    def order(self) -> tuple[int, str, int, str]:
        """Return the key by which PD sorts rules."""
        return (*self.group, _whole(self.document, "index"), self.document.text("id", ""))

    def covers(self, key: str) -> bool:
        """Return whether a key, hexadecimal, is in the range of the rule."""
        start, end = (self.document.text(name, "").lower() for name in ("start_key", "end_key"))
        return start <= key and (not end or key < end)


def _whole(document: Document, key: str) -> int:
    return document.whole(key) if document.has(key) else 0


def _flag(document: Document, key: str) -> bool:
    value = document.values.get(key, False)
    if not isinstance(value, bool):
        raise document.refuse(key, "not a truth value", "true or false")
    return value


def _all_rules(texts: Texts) -> list[_Rule]:
    """Return the rules of all texts: bundles, lists of rules, and lists of groups besides."""
    groups: dict[str, tuple[int, bool]] = {}
    rules: dict[tuple[str, str], Document] = {}

    def take(rule: Document, group: str) -> None:
        name = rule.text("group_id", group) or group
        if name != group:  # adjustRule
            raise rule.refuse("group_id", "a rule of another group", group)
        identity = rule.text("id", "") or f"#{len(rules)}"
        if (name, identity) in rules:
            raise rule.refuse("id", "two rules of one group and id", "one: PD keeps the last")
        rules[name, identity] = rule

    for source, value in json_values(texts):
        items = value if isinstance(value, list) else [value]
        if not items:
            raise InputError("no rules", source=source, expected=_INPUT)
        for item in items:
            document = one_document(source, item, _INPUT)
            if document.has("rules"):
                document.only(_GROUP_KEYS)
                name = document.text("group_id", "pd")
                groups[name] = (_whole(document, "group_index"), _flag(document, "group_override"))
                for rule in document.tables("rules"):
                    take(rule, name)
            elif document.has("role"):
                take(document, document.text("group_id", "") or "pd")
            elif document.has("id") and set(document.values) <= {"id", "index", "override"}:
                groups[document.text("id")] = (
                    _whole(document, "index"),
                    _flag(document, "override"),
                )
            else:
                raise document.refuse("rules", "neither a group of rules nor a rule", _INPUT)
    found = []
    for (name, _), rule in rules.items():
        rule.only(_RULE_KEYS)
        for key in ("start_key", "end_key"):
            if not _HEX.fullmatch(rule.text(key, "")):
                raise rule.refuse(key, "not hexadecimal", "a key, hexadecimal")
        start, end = (rule.text(key, "").lower() for key in ("start_key", "end_key"))
        if end and end <= start:
            raise rule.refuse("end_key", "not behind start_key", f"a key behind {start}")
        index, overrides = groups.get(name, (0, False))
        found.append(_Rule(rule, (index, name), overrides, name in groups))
    return sorted(found, key=lambda rule: rule.order)


def _effective(rules: list[_Rule], key: str) -> list[_Rule]:
    """Return the rules that hold for a key: an overriding one replaces those before it."""
    kept: list[_Rule] = []
    for rule in rules:
        if not rule.covers(key):
            continue
        if rule.group_overrides:
            kept = [one for one in kept if one.group == rule.group]
        if _flag(rule.document, "override"):
            kept = [one for one in kept if one.group != rule.group]
        kept.append(rule)
    return kept


def _read(texts: Texts, request: Request) -> Reading:
    group, source = request.text("group"), texts[0][0]
    rules = _all_rules(texts)
    groups = sorted({rule.group[1] for rule in rules})
    if group not in groups:
        raise InputError(
            "no rules of this group",
            source=source,
            field="group",
            value=group,
            expected="--set group= one of " + ", ".join(groups),
        )
    first, behind = request.text("start_key").lower(), request.text("end_key").lower()
    starts = {first} | {
        rule.document.text(name, "").lower() for rule in rules for name in ("start_key", "end_key")
    }
    ranges: dict[str, list[_Rule]] = {}
    for start in sorted(starts):
        inside = start >= first and (not behind or start < behind)
        if inside and any(rule.group[1] == group and rule.covers(start) for rule in rules):
            ranges[start] = _effective(rules, start)
    own = {k: held for k, held in ranges.items() if any(r.group[1] == group for r in held)}
    readings = {start: _roles(held, request) for start, held in (own or ranges).items()}
    if not readings:
        raise InputError(
            "no rule of this group is about these keys", source=source, field="start_key",
            value=first, expected=", ".join(sorted(starts)),
        )  # fmt: skip
    if len({reading.deployment.roles for reading in readings.values()}) > 1:
        raise InputError(
            "the rules differ from one range of keys to the next",
            source=source,
            field="start_key",
            value=first,
            expected="--set start_key= and end_key= for one range; the ranges begin at "
            + ", ".join(start or "''" for start in readings),
        )
    reading = next(iter(readings.values()))
    held = next(iter((own or ranges).values()))
    given = {rule.group[1] for rule in rules if rule.group_known}
    unknown = sorted({*groups} - given)
    if len(groups) > 1 and unknown:
        finding = Finding(
            "order-of-groups",
            "warning",
            f"the file does not hold index and override of the groups {', '.join(unknown)}: "
            "index 0 and no override are taken",
            "give the answer of GET /pd/api/v1/config/placement-rule, which holds both",
        )
        reading = replace(reading, findings=(*reading.findings, finding))
    dead = [
        f"{rule.group[1]}/{rule.document.text('id', '')}"
        for rule in rules
        if rule.group[1] in (group, *(one.group[1] for one in held)) and rule not in held
        and any(rule.covers(start) for start in (own or ranges))
    ]  # fmt: skip
    if not dead:
        return reading
    finding = Finding(
        "overridden",
        "note" if own else "warning",
        f"other rules override {', '.join(dead)}: they have no effect",
        "take them out, or the override of the others",
    )
    return replace(reading, findings=(*reading.findings, finding))


def _roles(rules: list[_Rule], request: Request) -> Reading:
    """Return the roles of the rules that hold for one range of keys."""
    findings: list[Finding] = []
    voting, others, leading = PlacedReplicas(), PlacedReplicas(), PlacedReplicas()
    key = request.text("locality_key")
    source = rules[0].document.source
    labels = Labels(source, "the rules", key, request.localities, folds=True)
    may_lead = 0
    counts = dict.fromkeys(_ROLES, 0)
    roles: dict[str, dict[str, int]] = {}
    apart: dict[str, None] = {}
    for one in rules:
        rule, name = one.document, f"the rule {one.document.text('id', '')!r}"
        role, count = rule.text("role"), rule.whole("count")
        if role not in _ROLES:
            raise rule.refuse("role", "unknown role", "one of " + ", ".join(_ROLES))
        counts[role] += 1
        if count < 1 or (role == "leader" and count > 1):
            findings.append(_error("count", f"{name} ({role}) has the count {count}"))
            if count < 1:
                continue
        if count > 10_000:
            raise rule.refuse("count", "out of range", "a number of replicas")
        sites = labels.sites(_labels(rule, labels), rule.key("label_constraints"))
        held = others if role == "learner" else voting
        held.add(sites, count)
        may_lead += role in ("leader", "voter")
        if role == "leader":
            leading.add(sites, 1)
        level = _isolation(rule)
        if labels.folded(level) == key and count > len(sites or labels.localities.sites):
            findings.append(
                _error(
                    "isolation-level",
                    f"{name} forbids two replicas in one {key} (isolation_level) and asks for "
                    f"{count} in {', '.join(sites or labels.localities.sites)}",
                    "PD places one in each and leaves the others out",
                )
            )
        special, witness = "follower" * (role == "follower"), _flag(rule, "is_witness")
        if witness:
            special = "unread" if role == "learner" else "witness"
        if special and sites is not None and len(sites) == 1:
            here = roles.setdefault(sites[0], {})
            here[special] = here.get(special, 0) + count
        if level and labels.folded(level) != key and count > 1:
            apart[level] = None
        if rule.text("isolation_level", "") and not level:
            findings.append(
                Finding(
                    "isolation-without-labels",
                    "warning",
                    f"{name} has an isolation_level and no location_labels: PD isolates nothing",
                    "location_labels with this level",
                )
            )
        if role == "follower":
            findings.append(
                Finding(
                    "never-leads",
                    "note",
                    f"{name} has the role follower: its replicas vote and never lead",
                    "use the role voter if they may lead after a loss",
                )
            )
        if witness and role == "leader":
            what = f"{name} has is_witness and the role leader"
            findings.append(_error("witness-leads", what, "PD never takes a leader for a witness"))
        elif witness:
            findings.append(
                Finding(
                    "witness",
                    "note",
                    f"{name} has is_witness: its replicas hold no data and serve no reads, while "
                    "enable-witness of PD is on; else they are like the others",
                    "count the reads of clients near it at the next replica",
                )
            )
        if witness and count > 1:
            findings.append(
                Finding(
                    "too-many-witnesses",
                    "warning",
                    f"{name} has {count} witnesses: PD refuses more than half of max-replicas, "
                    "which is 3 unless it was raised",
                    f"max-replicas of {2 * count} or more",
                )
            )
    if apart:
        findings.append(
            Finding(
                "isolation-not-checked",
                "note",
                f"rules demand replicas at different values of {', '.join(apart)} "
                f"(isolation_level), and places are known by {key} alone",
                "check that each place has as many values as replicas: PD leaves others out",
            )
        )
    if counts["leader"] > 1:
        findings.append(_error("two-leaders", f"{counts['leader']} rules have the role leader"))
    if not may_lead:
        findings.append(_error("no-voter", "no rule has the role leader or voter"))
    deployment = Deployment.of(
        "pd",
        voting.held,
        others.held,
        leaders=tuple(leading.held),
        free_voters=sum(n for _, n in voting.pools),
        free_non_voters=sum(n for _, n in others.pools),
        open=(*voting.open("voter"), *others.open("non-voter")),
        kept=_bundles([(rule.group, rule.group_overrides, rule.document.values) for rule in rules]),
    )
    return Reading(with_roles(deployment, roles), (*findings, *labels.findings()))


def _bundles(rules: list[tuple[tuple[int, str], bool, Mapping[str, object]]]) -> str:
    """Return rules as groups, in the form that PD takes."""
    groups: dict[str, dict[str, object]] = {}
    held: dict[str, list[object]] = {}
    for (index, name), overrides, rule in rules:
        head = {"group_id": name, "group_index": index, "group_override": overrides}
        groups.setdefault(name, head)
        held.setdefault(name, []).append(dict(rule))
    documents = [{**head, "rules": held[name]} for name, head in groups.items()]
    return json_text(documents[0] if len(documents) == 1 else documents)


def _error(rule: str, evidence: str, effect: str = "PD refuses that") -> Finding:
    return Finding(rule, "error", f"{evidence}: {effect}", "mend the rules")


def _isolation(rule: Document) -> str:
    """Return the label at whose values PD keeps the replicas of a rule apart; empty for none.

    As pkg/schedule/filter/filters.go (NewIsolationFilter) and replica_strategy.go: without location
    labels there is none, and a level that is none of them stands for the first. Labels above the
    level count too, so that only the first alone keeps replicas apart by itself.
    """
    level, labels = rule.text("isolation_level", ""), rule.names("location_labels", ())
    if not level or not labels:
        return ""
    return "/".join(labels[: labels.index(level) + 1 if level in labels else 1])


def _labels(rule: Document, labels: Labels | None = None) -> list[LabelTest]:
    """Return the constraints of a rule; whether a label exists says nothing on places."""
    found = []
    for one in rule.tables("label_constraints"):
        one.only(("key", "op", "values"))
        operator = one.text("op")
        if operator not in _OPERATORS:
            raise one.refuse("op", "unknown operator", "one of " + ", ".join(_OPERATORS))
        values = one.names("values", ())
        if operator in ("in", "notIn"):
            if not values and operator == "in":
                raise one.refuse("values", "no value", "one or more places")
            key = one.text("key")
            key = key if labels is None else labels.folded(key)
            found += [LabelTest(operator == "in", key, values)] * bool(values)
        else:
            found.append(LabelTest(operator == "exists", "", (f"{one.text('key')} {operator}",)))
    return found


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    if deployment.read is not None:
        return ("every region of TiKV has a leader, and the placement is of a store without one",)
    reasons = name_refusals(
        request.localities,
        deployment.voters_at | deployment.non_voters_at,
        "PD",
        request.text("locality_key"),
    )
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
    head, shared, lost = _before(deployment, path, request)

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
            **shared,
        }

    rules = [] if lead is None else [rule("leader", "leader", lead, 1)]
    for one in deployment.held:
        roles = dict(one.special)
        plain = one.voters - sum(roles.values()) - (one.site == lead)
        if plain:
            rules.append(rule("voter", "voter", one.site, plain))
        if "follower" in roles:
            rules.append(rule("follower", "follower", one.site, roles["follower"]))
        if "witness" in roles:
            witness = rule("witness", "voter", one.site, roles["witness"])
            rules.append({**witness, "is_witness": True})
    for site, count in deployment.non_voters_at.items():
        rules.append(rule("learner", "learner", site, count))
    document = {"group_id": group, **head, "rules": rules}
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
    if lost:
        notes.append(f"the present rules say more, which is left out: {', '.join(lost)}")
    return Script(json_text(document), tuple(notes))


def _before(
    deployment: Deployment, path: MovePath | None, request: Request
) -> tuple[dict[str, object], dict[str, object], list[str]]:
    """Return the index of the group, what its present rules share, and what is left out."""
    group, key = request.text("group"), request.text("locality_key")
    head: dict[str, object] = {"group_index": 0, "group_override": False}
    present = path.present if path else deployment
    if present.system != "pd" or not present.kept:
        return head, {}, []
    rules = [rule for rule in _all_rules((("kept", present.kept),)) if rule.group[1] == group]
    if not rules:
        return head, {}, []
    head = {"group_index": rules[0].group[0], "group_override": rules[0].group_overrides}
    shared: dict[str, object] = {}
    lost: dict[str, None] = {}
    ranges = [name for name in ("start_key", "end_key") if not request.text(name)]
    for name in (*_SHARED, *ranges, "index", "override"):
        values = [rule.document.values.get(name) for rule in rules]
        if values[0] and all(value == values[0] for value in values):
            shared[name] = values[0]
        elif any(values):
            lost[name] = None
    for rule in rules:
        lost |= {str(one): None for one in _labels(rule.document) if one.key != key}
    return head, shared, list(lost)


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
    keeps_text=True,
    expresses=frozenset({"follower", "witness"}),
    settings={
        "locality_key": Setting("region", "key of the store label whose values are places"),
        "group": Setting("pd", "group of the rules"),
        "start_key": Setting("", "first key, hexadecimal"),
        "end_key": Setting("", "key behind the last, hexadecimal"),
    },
)

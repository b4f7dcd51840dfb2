"""PD, the placement driver of TiKV: placement rules as JSON.

A rule has a role (leader, voter, follower or learner), a count, and constraints on store labels.
Rules of one range of keys add up. The stacking, the checks and the witnesses are those of tikv/pd
011d32f7 in pkg/schedule/placement: rule.go (compareRule, prepareRulesForApply), rule_list.go
(checkApplyRules), rule_manager.go (adjustRule), fit.go (fitRule).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from placement.databases.deployment import Deployment
from placement.databases.findings import Findings
from placement.databases.labels import Labels, LabelTest, RoleRule, deployment_of_rules
from placement.databases.servers import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.texts import json_text, json_values, one_document
from placement.errors import refused, require
from placement.io.formats.document import Document
from placement.methods.options import Setting

_ROLES = ("leader", "voter", "follower", "learner")
_OPERATORS = ("in", "notIn", "exists", "notExists")
_HEX = re.compile(r"([0-9a-fA-F]{2})*")
_INPUT = "rules of PD as JSON: GET /pd/api/v1/config/placement-rule, or one group of it"
_RULE_KEYS = (
    "group_id", "id", "index", "override", "start_key", "end_key", "role", "is_witness", "count",
    "label_constraints", "location_labels", "isolation_level", "version", "create_timestamp",
)  # fmt: skip
_GROUP_KEYS = ("group_id", "group_index", "group_override", "rules")
_KEYS = ("start_key", "end_key")


@dataclass(frozen=True, slots=True)
class _RuleGroup:
    """A group with its place in the stack of rules; known: whether the file holds that."""

    name: str
    index: int = 0
    override: bool = False
    known: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule and its group: PD sorts by group, then by index."""

    document: Document
    group: _RuleGroup

    @property
    def id(self) -> str:
        return self.document.text("id", "")

    @property
    def order(self) -> tuple[int, str, int, str]:
        return self.group.index, self.group.name, _whole(self.document, "index"), self.id

    def key(self, name: str) -> str:
        return self.document.text(name, "").lower()

    def covers(self, key: str) -> bool:
        """Return whether a key, hexadecimal, is in the range of the rule."""
        end = self.key("end_key")
        return self.key("start_key") <= key and (not end or key < end)


def _whole(document: Document, key: str) -> int:
    return document.whole(key) if document.has(key) else 0


# --- stack of rules --------------------------------------------------------------------------


def _all_rules(texts: Texts) -> list[_Rule]:
    """Return the rules of all texts: bundles, lists of rules, and lists of groups besides."""
    groups: dict[str, _RuleGroup] = {}
    rules: dict[tuple[str, str], Document] = {}

    def take(rule: Document, group: str) -> None:
        rule.only(_RULE_KEYS)
        name, identity = rule.text("group_id", "") or group, rule.text("id", "") or f"#{len(rules)}"
        if name != group:  # adjustRule
            raise rule.refuse("group_id", "a rule of another group", group)
        if (name, identity) in rules:
            raise rule.refuse("id", "two rules of one group and id", "one: PD keeps the last")
        for key in _KEYS:
            if not _HEX.fullmatch(rule.text(key, "")):
                raise rule.refuse(key, "not hexadecimal", "a key, hexadecimal")
        start, end = (rule.text(key, "").lower() for key in _KEYS)
        if end and end <= start:
            raise rule.refuse("end_key", "not behind start_key", f"a key behind {start}")
        rules[name, identity] = rule

    for source, value in json_values(texts):
        items = value if isinstance(value, list) else [value]
        require(items, "", "no rules", expected=_INPUT, source=source)
        for item in items:
            document = one_document(source, item, _INPUT)
            if document.has("rules"):
                document.only(_GROUP_KEYS)
                name = document.text("group_id", "pd")
                index, override = _whole(document, "group_index"), "group_override"
                groups[name] = _RuleGroup(name, index, document.truth(override, False), known=True)
                for rule in document.tables("rules"):
                    take(rule, name)
            elif document.has("role"):
                take(document, document.text("group_id", "") or "pd")
            elif document.has("id") and {*document.values} <= {"id", "index", "override"}:
                name, index = document.text("id"), _whole(document, "index")
                groups[name] = _RuleGroup(
                    name, index, document.truth("override", False), known=True
                )
            else:
                raise document.refuse("rules", "neither a group of rules nor a rule", _INPUT)
    found = (_Rule(rule, groups.get(name, _RuleGroup(name))) for (name, _), rule in rules.items())
    return sorted(found, key=lambda rule: rule.order)


def _effective(rules: Sequence[_Rule], key: str) -> list[_Rule]:
    """Return the rules that hold for a key: an overriding one replaces those before it."""
    kept: list[_Rule] = []
    for rule in rules:
        if rule.covers(key):
            if rule.group.override:
                kept = [one for one in kept if one.group == rule.group]
            if rule.document.truth("override", False):
                kept = [one for one in kept if one.group != rule.group]
            kept.append(rule)
    return kept


def _read(texts: Texts, request: Request) -> Reading:
    group, source = request.text("group"), texts[0][0]
    rules = _all_rules(texts)
    groups = {rule.group.name: rule.group for rule in rules}
    hint = "--set group= one of " + ", ".join(sorted(groups))
    require(group in groups, "group", "no rules of this group", group, hint, source=source)
    first, behind = (request.text(key).lower() for key in _KEYS)
    starts = sorted({first, *(rule.key(name) for rule in rules for name in _KEYS)})
    inside = [start for start in starts if start >= first and (not behind or start < behind)]
    stacks = {
        start: _effective(rules, start)
        for start in inside
        if any(rule.group.name == group and rule.covers(start) for rule in rules)
    }
    own = {k: held for k, held in stacks.items() if any(r.group.name == group for r in held)}
    ranges = own or stacks
    message = "no rule of this group is about these keys"
    require(ranges, "start_key", message, first, ", ".join(starts), source=source)
    readings = {start: _roles(held, request) for start, held in ranges.items()}
    if len({deployment.roles for deployment, _ in readings.values()}) > 1:
        names = ", ".join(start or "''" for start in readings)
        hint = f"--set start_key= and end_key= for one range; the ranges begin at {names}"
        message = "the rules differ from one range of keys to the next"
        raise refused(source, "start_key", message, first, hint)
    deployment, findings = next(iter(readings.values()))
    held = next(iter(ranges.values()))
    unknown = sorted(name for name, one in groups.items() if not one.known)
    if len(groups) > 1 and unknown:
        findings.add("order-of-groups", groups=", ".join(unknown))
    seen = (group, *(rule.group.name for rule in held))
    dead = [
        f"{rule.group.name}/{rule.id}"
        for rule in rules
        if rule.group.name in seen and rule not in held and any(map(rule.covers, ranges))
    ]
    if dead:
        findings.add("overridden", "" if own else "warning", rules=", ".join(dead))
    return Reading(deployment, tuple(findings))


# --- roles -----------------------------------------------------------------------------------


def _roles(rules: Sequence[_Rule], request: Request) -> tuple[Deployment, Findings]:
    """Return the roles of the rules that hold for one range of keys."""
    findings = Findings("pd")
    placed: list[RoleRule] = []
    key, source = request.text("locality_key"), rules[0].document.source
    labels = Labels(source, "the rules", key, request.localities, folds=True)
    counts = dict.fromkeys(_ROLES, 0)
    apart: dict[str, None] = {}
    for one in rules:
        rule, name = one.document, f"the rule {one.id!r}"
        role, count, witness = (
            rule.text("role"),
            rule.whole("count"),
            rule.truth("is_witness", False),
        )
        rule.need(role in _ROLES, "role", "unknown role", "one of " + ", ".join(_ROLES))
        counts[role] += 1
        if count < 1 or (role == "leader" and count > 1):
            findings.add("count", rule=name, role=role, count=count)
        if count < 1:
            continue
        rule.need(count <= 10_000, "count", "out of range", "a number of replicas")
        tests, field = _labels(rule, labels), rule.key("label_constraints")
        special = role if role == "follower" else ""
        if witness:
            special = "unread" if role == "learner" else "witness"
        placed.append(RoleRule(role, count, tests, field, special))
        sites = labels.sites(tests, field)
        level, able = _isolation(rule), sites or labels.localities.sites
        if labels.folded(level) == key and count > len(able):
            places = ", ".join(able)
            findings.add("isolation-level", rule=name, key=key, count=count, places=places)
        elif level and labels.folded(level) != key and count > 1:
            apart[level] = None
        if rule.text("isolation_level", "") and not level:
            findings.add("isolation-without-labels", rule=name)
        if role == "follower":
            findings.add("never-leads", rule=name)
        if witness:
            findings.add("witness-leads" if role == "leader" else "witness", rule=name)
        if witness and count > 1:
            findings.add("too-many-witnesses", rule=name, count=count, most=2 * count)
    if apart:
        findings.add("isolation-not-checked", levels=", ".join(apart), key=key)
    if counts["leader"] > 1:
        findings.add("two-leaders", count=counts["leader"])
    if not counts["leader"] and not counts["voter"]:
        findings.add("no-voter")
    deployment = deployment_of_rules("pd", placed, labels, kept=_bundles(rules))
    findings += labels.findings()
    return deployment, findings


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


def _labels(rule: Document, labels: Labels) -> list[LabelTest]:
    """Return the constraints of a rule; whether a label exists says nothing on places."""
    found = []
    for one in rule.tables("label_constraints"):
        one.only(("key", "op", "values"))
        operator, values, key = one.text("op"), one.names("values", ()), one.text("key")
        if operator not in _OPERATORS:
            raise one.refuse("op", "unknown operator", "one of " + ", ".join(_OPERATORS))
        if operator not in ("in", "notIn"):
            found.append(LabelTest(operator == "exists", "", (f"{key} {operator}",)))
        elif values:
            found.append(LabelTest(operator == "in", labels.folded(key), values))
        elif operator == "in":
            raise one.refuse("values", "no value", "one or more places")
    return found


def _bundles(rules: Sequence[_Rule]) -> str:
    """Return rules as groups, in the form that PD takes."""
    documents = []
    for group in dict.fromkeys(rule.group for rule in rules):
        head = {"group_id": group.name, "group_index": group.index}
        held = [dict(rule.document.values) for rule in rules if rule.group == group]
        documents.append({**head, "group_override": group.override, "rules": held})
    return json_text(documents[0] if len(documents) == 1 else documents)


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> list[str]:
    keys = [key for key in _KEYS if not _HEX.fullmatch(request.text(key))]
    reasons = [f"{key} is not hexadecimal" for key in keys]
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", request.text("group")):
        reasons.append("the group is not letters, digits, '_', '.' and '-'")
    return reasons


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    key, group = request.text("locality_key"), request.text("group")
    lead = deployment.leaders[0] if deployment.leaders else None
    head, shared, lost = _before(path.present if path else deployment, request)
    rules: list[dict[str, object]] = []

    def add(name: str, role: str, site: str, count: int) -> None:
        place = request.localities.only(site).name
        rule: dict[str, object] = {
            "group_id": group,
            "id": name if name == "leader" else f"{name}-{place}",
            "start_key": request.text("start_key"),
            "end_key": request.text("end_key"),
            "role": role,
            "count": count,
            "label_constraints": [{"key": key, "op": "in", "values": [place]}],
            **shared,
        }
        rules.append(rule | ({"is_witness": True} if name == "witness" else {}))

    if lead is not None:
        add("leader", "leader", lead, 1)
    for one in deployment.held:
        roles = dict(one.special)
        plain = one.voters - sum(roles.values()) - (one.site == lead)
        if plain:
            add("voter", "voter", one.site, plain)
        if "follower" in roles:
            add("follower", "follower", one.site, roles["follower"])
        if "witness" in roles:
            add("witness", "voter", one.site, roles["witness"])
    for site, count in deployment.non_voters_at.items():
        add("learner", "learner", site, count)
    notes = [
        f"send it with POST /pd/api/v1/config/placement-rule/{group}; PD moves the replicas by "
        "itself, learners first, and refuses labels that no store has"
    ]
    if path is not None:
        notes.append(f"changes: {'; '.join(path.changes(SYSTEM.keeps(deployment)))}")
    if lost:
        notes.append(f"the present rules say more, which is left out: {', '.join(lost)}")
    return Script(json_text({"group_id": group, **head, "rules": rules}), tuple(notes))


def _before(
    present: Deployment, request: Request
) -> tuple[dict[str, object], dict[str, object], list[str]]:
    """Return the index of the group, what its present rules share, and what is left out."""
    rules: list[_Rule] = []
    if present.system == "pd" and present.kept:
        every = _all_rules((("kept", present.kept),))
        rules = [rule for rule in every if rule.group.name == request.text("group")]
    group = rules[0].group if rules else _RuleGroup("")
    head: dict[str, object] = {"group_index": group.index, "group_override": group.override}
    shared: dict[str, object] = {}
    lost: dict[str, None] = {}
    ranges = [name for name in _KEYS if not request.text(name)]
    for name in ("location_labels", "isolation_level", *ranges, "index", "override"):
        values = [rule.document.values.get(name) for rule in rules]
        if any(values) and all(value == values[0] for value in values):
            shared[name] = values[0]
        elif any(values):
            lost[name] = None
    key = request.text("locality_key")
    labels = Labels("kept", "", key, request.localities, folds=True)
    tests = (one for rule in rules for one in _labels(rule.document, labels))
    lost |= {str(one): None for one in tests if one.key != key}
    return head, shared, list(lost)


SYSTEM = DatabaseSystem(
    name="pd",
    title="PD of TiKV",
    inputs=_INPUT,
    read=_read,
    refuses=_refuses,
    write=_write,
    order="first",
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

"""TiDB: placement policies.

A policy has one leader, followers by region, and learners by region. Strings of TiDB take a
backslash as an escape, so it is doubled like a quote. TiDB makes rules of PD from a policy (see
:mod:`.pd`), and PD moves the replicas: learners first, then votes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from placement.databases.deployment import Deployment
from placement.databases.findings import Findings
from placement.databases.labels import Labels, LabelTest, RoleRule, deployment_of_rules
from placement.databases.servers import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.errors import refused
from placement.languages import (
    TokenStream,
    YamlValue,
    comment,
    mysql_name,
    mysql_string,
    parse_flow,
)
from placement.methods.options import Setting
from placement.model.constraints import majority

_SUGAR = ("PRIMARY_REGION", "REGIONS", "SCHEDULE")
_DETAIL = ("LEADER_CONSTRAINTS", "FOLLOWER_CONSTRAINTS", "LEARNER_CONSTRAINTS", "CONSTRAINTS")
_NUMBERS = ("FOLLOWERS", "LEARNERS", "VOTERS")
_OPTIONS = (*_SUGAR, *_DETAIL, *_NUMBERS, "SURVIVAL_PREFERENCES", "VOTER_CONSTRAINTS")
_MOST_FOLLOWERS = 8
_EVICT = "#evict-leader"


@dataclass
class _PolicyOptions:
    """Options of a policy, as text of the file."""

    name: str
    source: str
    options: dict[str, str] = field(default_factory=dict)

    def number(self, option: str, default: int) -> int:
        text = self.options.get(option, str(default))
        if not text.isdecimal() or len(text) > 4:
            raise refused(self.source, option, "not a number", text, "1, 2, …")
        return int(text)

    def flow(self, option: str) -> YamlValue | None:
        text = self.options.get(option, "")
        return (parse_flow(text, self.source, option) or None) if text.strip() else None

    @property
    def regions(self) -> list[str]:
        parts = self.options.get("REGIONS", "").split(",")
        return [part.strip() for part in parts if part.strip()]


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    policies: dict[str, _PolicyOptions] = {}
    for source, text in texts:
        _take_policies(text, source, policies)
    names = {key: policy.name for key, policy in policies.items()}
    wanted, make = replace(request, name=request.name.lower()), "CREATE PLACEMENT POLICY"
    policy = policies[wanted.choose(names, ("policy", "policies"), make, texts[0][0])]
    subject, key = f"policy {policy.name}", request.text("locality_key")
    findings = _rules(policy)
    labels = Labels(policy.source, subject, key, request.localities, folds=True)
    for option in ("VOTER_CONSTRAINTS", "VOTERS"):
        if option in policy.options:
            value = policy.options[option]
            raise labels.refuse(option, "an option of old versions", value, "FOLLOWER_CONSTRAINTS")
    short = any(option in policy.options for option in _SUGAR)
    rules = (_from_regions if short else _from_constraints)(policy, labels)
    deployment = deployment_of_rules("tidb", rules, labels, name=policy.name)
    findings += labels.findings()
    levels = policy.options.get("SURVIVAL_PREFERENCES", "").strip(" []").split(",")
    spare = deployment.voters - majority(deployment.voters)
    crowded = [site for site, count in deployment.voters_at.items() if count > spare]
    if key in [labels.folded(level.strip(" \"'")) for level in levels] and crowded:
        findings.add("survival-preference", key=key, sites=", ".join(crowded), spare=spare)
    options = [
        f"\n  {name}={value if name in _NUMBERS else mysql_string(value)}"
        for name, value in policy.options.items()
    ]
    text = f"CREATE OR REPLACE PLACEMENT POLICY {mysql_name(policy.name)}{''.join(options)};\n"
    return Reading(replace(deployment, kept=text), tuple(findings))


def _take_policies(text: str, source: str, policies: dict[str, _PolicyOptions]) -> None:
    """Take the policies of statements, or of the output of SHOW CREATE PLACEMENT POLICY.

    ALTER replaces the whole policy.
    """
    stream = TokenStream(text, source, backslash=True)
    while stream.next is not None:
        where = stream.where()
        drop = stream.accept("DROP", "PLACEMENT", "POLICY")
        if not (
            drop
            or stream.accept("CREATE", "PLACEMENT", "POLICY")
            or stream.accept("CREATE", "OR", "REPLACE", "PLACEMENT", "POLICY")
            or stream.accept("ALTER", "PLACEMENT", "POLICY")
        ):
            stream.take("a statement")
            continue
        only_new = stream.accept("IF", "NOT", "EXISTS")
        stream.accept("IF", "EXISTS")
        policy = _PolicyOptions(stream.name("the name of a policy"), where)
        key = policy.name.lower()
        if drop:
            policies.pop(key, None)
            continue
        while stream.next is not None and not stream.accept(";") and not stream.accept("|"):
            if stream.accept(","):
                continue
            option = stream.name("an option of a policy").upper()
            if option not in _OPTIONS:
                known = "one of " + ", ".join(_OPTIONS)
                raise stream.refuse("unknown option of a policy", option, known)
            stream.accept("=")
            if option in policy.options:
                raise stream.refuse("given twice", option, "once")
            policy.options[option] = stream.take("a value").value
        if not (only_new and key in policies):
            policies[key] = policy


def _rules(policy: _PolicyOptions) -> Findings:
    """Return the rules of the server that a policy breaks."""
    found, options = Findings("tidb", f"policy {policy.name}"), policy.options
    sugar = [option for option in _SUGAR if option in options]
    detail = [option for option in (*_DETAIL, "LEARNERS") if option in options]
    if sugar and detail:
        found.add("two-forms", sugar=", ".join(sugar), detail=", ".join(detail))
    primary, followers = options.get("PRIMARY_REGION", ""), policy.number("FOLLOWERS", 2)
    if sugar and primary not in policy.regions:
        found.add("primary-not-in-regions", primary=primary)
    if "FOLLOWERS" in options and not 1 <= followers <= _MOST_FOLLOWERS:
        most = f"1 to {_MOST_FOLLOWERS}"
        found.add("followers", what=f"FOLLOWERS = {followers}", most=most)
    if isinstance(policy.flow("LEADER_CONSTRAINTS"), dict):
        found.add("leader-counted")
    for role in ("FOLLOWER", "LEARNER"):
        option, number = f"{role}_CONSTRAINTS", f"{role}S"
        value = policy.flow(option)
        if not isinstance(value, dict):
            continue
        counts = [int(n) for n in map(str, value.values())
                  if n.removeprefix("-").isdecimal() and len(n) < 10]  # fmt: skip
        if any(count <= 0 for count in counts):
            found.add("count", option=option)
        if number in options and sum(counts) != policy.number(number, 0):
            given, asked = options[number], sum(counts)
            found.add("counts-differ", number=number, given=given, option=option, asked=asked)
        if role == "FOLLOWER" and sum(counts) > _MOST_FOLLOWERS:
            most = f"at most {_MOST_FOLLOWERS}"
            found.add("followers", what=f"{sum(counts)} followers", most=most)
    return found


def _from_regions(policy: _PolicyOptions, labels: Labels) -> list[RoleRule]:
    """Return the rules of the short form, in which the other regions share one number."""
    regions = policy.regions
    primary = policy.options.get("PRIMARY_REGION", regions[0] if regions else "")
    voters = policy.number("FOLLOWERS", 2) + 1
    schedule = policy.options.get("SCHEDULE", "EVEN").upper() or "EVEN"
    if schedule not in ("EVEN", "MAJORITY_IN_PRIMARY"):
        hint = "EVEN or MAJORITY_IN_PRIMARY"
        raise labels.refuse("SCHEDULE", "unknown schedule", schedule, hint)
    here = -(-voters // max(1, len(regions))) if schedule == "EVEN" else voters // 2 + 1
    here = min(here, voters) if len(regions) > 1 else voters
    at = [LabelTest(True, labels.key, (primary,))]
    others = [LabelTest(True, labels.key, tuple(name for name in regions if name != primary))]
    return [
        RoleRule("leader", 1, at, "PRIMARY_REGION"),
        RoleRule("voter", here - 1, at, "PRIMARY_REGION"),
        *([RoleRule("voter", voters - here, others, "REGIONS")] if others[0].values else []),
    ]


def _from_constraints(policy: _PolicyOptions, labels: Labels) -> list[RoleRule]:
    """Return the rules of constraints: CONSTRAINTS hold for every role besides its own."""
    common = labels.clause(policy.flow("CONSTRAINTS"), "CONSTRAINTS")
    if common.counted:
        value = policy.options["CONSTRAINTS"]
        raise labels.refuse("CONSTRAINTS", "numbers for all roles", value, "a list")
    rules = []
    for role, default in (("leader", 1), ("follower", 2), ("learner", 0)):
        option = f"{role.upper()}_CONSTRAINTS"
        given = policy.flow(option)
        words: list[str] = list(given) if isinstance(given, dict) else []
        one_leader = role == "leader" and bool(words)
        clause = labels.clause([*words] if one_leader else given, option)
        # followers of TiDB may lead after a loss: they are voters of PD
        kind = "voter" if role == "follower" else role
        for text, (tests, count) in zip(words, clause.counted, strict=bool(clause.counted)):
            special = "follower" if _EVICT in text and role == "follower" else ""
            rules.append(RoleRule(kind, count, (*tests, *common.common), option, special))
        if not clause.counted:
            count = default if role == "leader" else policy.number(f"{role.upper()}S", default)
            rules.append(RoleRule(kind, count, (*clause.common, *common.common), option))
    return rules


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> list[str]:
    reasons = []
    if not deployment.leaders:
        reasons.append("a policy places one leader and its followers: name the leader")
    if deployment.voters == 1:
        reasons.append("a policy has at least one follower: two or more voters")
    if deployment.voters > _MOST_FOLLOWERS + 1:
        reasons.append(f"a policy has at most {_MOST_FOLLOWERS} followers")
    return reasons


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    key, lead = request.text("locality_key"), deployment.leaders[0]

    def at(site: str) -> str:
        return f"+{key}={request.localities.only(site).name}"

    followers: dict[str, int] = {}
    for one in deployment.held:
        evicted = dict(one.special).get("follower", 0)
        plain = one.voters - evicted - (one.site == lead)
        for words, count in ((at(one.site), plain), (f"{at(one.site)},{_EVICT}", evicted)):
            if count > 0:
                followers[words] = count
    options = {
        "LEADER_CONSTRAINTS": json.dumps([at(lead)]),
        "FOLLOWER_CONSTRAINTS": json.dumps(followers),
    }
    if deployment.non_voters_at:
        learners = {at(site): count for site, count in deployment.non_voters_at.items()}
        options["LEARNER_CONSTRAINTS"] = json.dumps(learners)
    policies: dict[str, _PolicyOptions] = {}
    for each in (deployment, *([path.present] if path else [])):
        if each.system == "tidb" and each.kept:
            _take_policies(each.kept, "kept", policies)
    before = next(iter(policies.values())).options if policies else {}
    if "SURVIVAL_PREFERENCES" in before:
        options["SURVIVAL_PREFERENCES"] = before["SURVIVAL_PREFERENCES"]
    changes = path.changes(SYSTEM.keeps(deployment)) if path is not None else ()
    verb = "CREATE OR REPLACE" if path is None else "ALTER"
    lines = [
        comment("leader, followers and learners by place, for TiDB; PD moves the replicas by"),
        comment("itself: learners first, then votes, the leader before its old replica goes"),
        *(comment(f"changes: {words}") for words in changes),
        f"{verb} PLACEMENT POLICY {mysql_name(request.name)}",
        *(f"  {name}={mysql_string(value)}" for name, value in options.items()),
    ]
    lines[-1] += ";"
    lines.append(comment("then attach it, for example: ALTER DATABASE … PLACEMENT POLICY=…"))
    lines.append("SHOW PLACEMENT;")
    parts = (part for name in _DETAIL for part in before.get(name, "").split(",") if "=" in part)
    lost = sorted({part.strip(" []{}'\"+-").partition("=")[0] for part in parts} - {key})
    notes = ["labels are checked when the policy is attached, not when it is made"]
    if lost:
        notes.append(f"constraints of the present policy are left out: {', '.join(lost)}")
    return Script("\n".join(lines) + "\n", tuple(notes))


SYSTEM = DatabaseSystem(
    name="tidb",
    title="TiDB",
    inputs="SHOW CREATE PLACEMENT POLICY, or CREATE and ALTER PLACEMENT POLICY statements",
    read=_read,
    refuses=_refuses,
    write=_write,
    order="first",
    named=("policy", ""),
    says="leader, followers and learners by region",
    cannot="a failover order, one voter, more than nine voters, a quorum other than the majority",
    validated="the TiDB parser (grammar); no server was run",
    keeps_text=True,
    expresses=frozenset({"follower"}),
    settings={"locality_key": Setting("region", "key of the store label whose values are places")},
)

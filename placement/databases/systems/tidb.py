"""TiDB: placement policies.

A policy has one leader, followers by region, and learners by region. Strings of TiDB take a
backslash as an escape, so it is doubled like a quote. TiDB makes rules of PD from a policy (see
:mod:`.pd`), and PD moves the replicas: learners first, then votes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

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
from placement.errors import InputError
from placement.languages.sql_text import TokenStream, comment, mysql_name, mysql_string
from placement.languages.yaml_texts import YamlValue, parse_flow
from placement.methods.options import Setting
from placement.model.constraints import majority

__all__ = ["SYSTEM"]

_SUGAR = ("PRIMARY_REGION", "REGIONS", "SCHEDULE")
_DETAIL = ("LEADER_CONSTRAINTS", "FOLLOWER_CONSTRAINTS", "LEARNER_CONSTRAINTS", "CONSTRAINTS")
_NUMBERS = ("FOLLOWERS", "LEARNERS", "VOTERS")
_OTHER = ("SURVIVAL_PREFERENCES", "VOTER_CONSTRAINTS")
_MOST_FOLLOWERS = 8
_EVICT = "#evict-leader"


@dataclass
class _PolicyOptions:
    """Options of a policy, as text of the file."""

    name: str
    source: str
    options: dict[str, str] = field(default_factory=dict)

    def number(self, option: str, default: int) -> int:
        text = self.options.get(option)
        if text is None:
            return default
        if not text.isdecimal() or len(text) > 4:
            raise InputError(
                "not a number", source=self.source, field=option, value=text, expected="1, 2, …"
            )
        return int(text)

    def flow(self, option: str) -> YamlValue | None:
        text = self.options.get(option, "")
        return (parse_flow(text, self.source, option) or None) if text.strip() else None


# --- reading ---------------------------------------------------------------------------------


def _read(texts: Texts, request: Request) -> Reading:
    policies: dict[str, _PolicyOptions] = {}
    for source, text in texts:
        _take_policies(text, source, policies)
    names = {key: policy.name for key, policy in policies.items()}
    wanted = replace(request, name=request.name.lower())
    policy = policies[
        wanted.choose(names, ("policy", "policies"), "CREATE PLACEMENT POLICY", texts[0][0])
    ]
    findings = _rules(policy)
    subject, key = f"policy {policy.name}", request.text("locality_key")
    labels = Labels(policy.source, subject, key, request.localities, folds=True)
    for option in ("VOTER_CONSTRAINTS", "VOTERS"):
        if option in policy.options:
            value = policy.options[option]
            raise labels.refuse(option, "an option of old versions", value, "FOLLOWER_CONSTRAINTS")
    if any(option in policy.options for option in _SUGAR):
        deployment = _from_regions(policy, labels)
    else:
        deployment = _from_constraints(policy, labels)
    findings += labels.findings()
    wanted_levels = policy.options.get("SURVIVAL_PREFERENCES", "").strip(" []").split(",")
    spare = deployment.voters - majority(deployment.voters)
    crowded = [site for site, count in deployment.voters_at.items() if count > spare]
    if labels.key in [level.strip(" \"'") for level in wanted_levels] and crowded:
        findings.append(
            Finding(
                "survival-preference",
                "warning",
                f"policy {policy.name} prefers to survive the loss of a {labels.key}, and its "
                f"constraints place more voters at {', '.join(crowded)} than may be lost",
                f"at most {spare} voters in one {labels.key}",
            )
        )
    return Reading(replace(deployment, kept=_policy_text(policy)), tuple(findings))


def _policy_text(policy: _PolicyOptions) -> str:
    lines = [f"CREATE OR REPLACE PLACEMENT POLICY {mysql_name(policy.name)}"]
    lines += [
        f"  {name}={value if name in _NUMBERS else mysql_string(value)}"
        for name, value in policy.options.items()
    ]
    return "\n".join(lines) + ";\n"


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
        _take_options(stream, policy)
        if not (only_new and key in policies):
            policies[key] = policy


def _take_options(stream: TokenStream, policy: _PolicyOptions) -> None:
    known = (*_SUGAR, *_DETAIL, *_NUMBERS, *_OTHER)
    while stream.next is not None and not stream.accept(";") and not stream.accept("|"):
        if stream.accept(","):
            continue
        option = stream.name("an option of a policy").upper()
        if option not in known:
            raise InputError(
                "unknown option of a policy",
                source=stream.where(),
                field=option,
                expected="one of " + ", ".join(known),
            )
        stream.accept("=")
        if option in policy.options:
            raise InputError("given twice", source=stream.where(), field=option, expected="once")
        policy.options[option] = stream.take("a value").value


def _rules(policy: _PolicyOptions) -> list[Finding]:
    """Return the rules of the server that a policy breaks."""
    found: list[Finding] = []

    def wrong(rule: str, evidence: str, remedy: str) -> None:
        found.append(Finding(rule, "error", f"policy {policy.name}: {evidence}", remedy))

    options = policy.options
    sugar = [option for option in _SUGAR if option in options]
    detail = [option for option in (*_DETAIL, "LEARNERS") if option in options]
    if sugar and detail:
        wrong(
            "two-forms",
            f"{', '.join(sugar)} and {', '.join(detail)} exclude each other",
            "use the constraints alone",
        )
    regions = _regions(policy)
    if sugar and options.get("PRIMARY_REGION", "") not in regions:
        wrong(
            "primary-not-in-regions",
            f"PRIMARY_REGION {options.get('PRIMARY_REGION', '')!r} is not one of REGIONS",
            "add it to REGIONS",
        )
    followers = policy.number("FOLLOWERS", 2)
    if "FOLLOWERS" in options and not 1 <= followers <= _MOST_FOLLOWERS:
        wrong("followers", f"FOLLOWERS = {followers}", f"1 to {_MOST_FOLLOWERS}")
    if isinstance(policy.flow("LEADER_CONSTRAINTS"), dict):
        wrong("leader-counted", "LEADER_CONSTRAINTS with numbers", "a list: there is one leader")
    for option, number in (
        ("FOLLOWER_CONSTRAINTS", "FOLLOWERS"),
        ("LEARNER_CONSTRAINTS", "LEARNERS"),
    ):
        value = policy.flow(option)
        if not isinstance(value, dict):
            continue
        counts = [int(str(n)) for n in value.values() if str(n).lstrip("-").isdecimal()]
        if any(count <= 0 for count in counts):
            wrong("count", f"{option} has a number below 1", "numbers above 0")
        if number in options and sum(counts) != policy.number(number, 0):
            wrong(
                "counts-differ",
                f"{number} = {options[number]}, and {option} ask for {sum(counts)}",
                f"leave {number} out",
            )
        if option == "FOLLOWER_CONSTRAINTS" and sum(counts) > _MOST_FOLLOWERS:
            wrong("followers", f"{sum(counts)} followers", f"at most {_MOST_FOLLOWERS}")
    return found


def _regions(policy: _PolicyOptions) -> list[str]:
    return [part.strip() for part in policy.options.get("REGIONS", "").split(",") if part.strip()]


def _from_regions(policy: _PolicyOptions, labels: Labels) -> Deployment:
    """Return the roles of the short form, in which the other regions share one number."""
    regions = _regions(policy)
    primary = policy.options.get("PRIMARY_REGION", regions[0] if regions else "")
    voters = policy.number("FOLLOWERS", 2) + 1
    schedule = policy.options.get("SCHEDULE", "EVEN").upper() or "EVEN"
    if schedule not in ("EVEN", "MAJORITY_IN_PRIMARY"):
        raise InputError(
            "unknown schedule",
            source=policy.source,
            field="SCHEDULE",
            value=schedule,
            expected="EVEN or MAJORITY_IN_PRIMARY",
        )
    count = max(1, len(regions))
    here = -(-voters // count) if schedule == "EVEN" else voters // 2 + 1
    here = min(here, voters) if count > 1 else voters
    others = tuple(name for name in regions if name != primary)
    held = PlacedReplicas()
    for names, number in (((primary,), here), (others, voters - here)):
        if names:
            held.add(labels.sites([LabelTest(True, labels.key, names)], "REGIONS"), number)
    site = labels.localities.site_of(primary, policy.source, "PRIMARY_REGION")
    return Deployment.of(
        "tidb",
        held.held,
        leaders=(site,),
        free_voters=voters - sum(held.held.values()),
        open=held.open("voter"),
        name=policy.name,
    )


def _from_constraints(policy: _PolicyOptions, labels: Labels) -> Deployment:
    """Return the roles of constraints: CONSTRAINTS hold for every role besides its own."""
    common = labels.clause(policy.flow("CONSTRAINTS"), "CONSTRAINTS")
    if common.counted:
        value = policy.options["CONSTRAINTS"]
        raise labels.refuse("CONSTRAINTS", "numbers for all roles", value, "a list")
    leader = policy.flow("LEADER_CONSTRAINTS")
    if isinstance(leader, dict):
        leader = list(leader)
    clause = labels.clause(leader, "LEADER_CONSTRAINTS")
    site = labels.placed(clause, 1, "LEADER_CONSTRAINTS", common.common)

    def placed(option: str, number: str, default: int) -> PlacedReplicas:
        clause = labels.clause(policy.flow(option), option)
        total = policy.number(number, default)
        if clause.counted:
            total = sum(count for _, count in clause.counted if count > 0)
        return labels.placed(clause, total, option, common.common)

    followers = placed("FOLLOWER_CONSTRAINTS", "FOLLOWERS", 2)
    learners = placed("LEARNER_CONSTRAINTS", "LEARNERS", 0)
    voters = dict(followers.held)
    for name in site.held:
        voters[name] = voters.get(name, 0) + 1
    given = policy.flow("FOLLOWER_CONSTRAINTS")
    counted = given if isinstance(given, dict) else {}
    roles: dict[str, dict[str, int]] = {}
    for text, count in counted.items():
        place = (
            labels.sites(labels.conjunction(text.split(","), ""), "") if _EVICT in text else None
        )
        if place and len(place) == 1:
            roles.setdefault(place[0], {"follower": 0})["follower"] += int(str(count))
    deployment = Deployment.of(
        "tidb",
        voters,
        learners.held,
        leaders=tuple(site.held),
        free_voters=followers.total + site.total - sum(voters.values()),
        free_non_voters=learners.total - sum(learners.held.values()),
        open=(*followers.open("voter"), *site.open("voter"), *learners.open("non-voter")),
        name=policy.name,
    )
    return with_roles(deployment, roles)


# --- writing ---------------------------------------------------------------------------------


def _refuses(deployment: Deployment, request: Request) -> tuple[str, ...]:
    reasons = []
    if deployment.read is not None:
        return ("every region of TiKV has a leader, and the placement is of a store without one",)
    if deployment.commit is not None:
        reasons.append(
            f"commits wait for a majority, not for {deployment.commit} of {deployment.voters}"
        )
    if not deployment.leaders:
        reasons.append("a policy places one leader and its followers: name the leader")
    if deployment.voters == 1:
        reasons.append("a policy has at least one follower: two or more voters")
    if deployment.voters > _MOST_FOLLOWERS + 1:
        reasons.append(f"a policy has at most {_MOST_FOLLOWERS} followers")
    if not request.name:
        reasons.append("no policy is named (--database)")
    reasons += name_refusals(
        request.localities,
        deployment.voters_at | deployment.non_voters_at,
        "TiDB",
        request.text("locality_key"),
    )
    return tuple(reasons)


def _said(deployment: Deployment) -> Deployment:
    """Return the part of a deployment that a policy stores: one leader, no order after it."""
    return replace(deployment, leaders=deployment.leaders[:1])


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    key = request.text("locality_key")
    lead = deployment.leaders[0]

    def at(site: str) -> str:
        return f"+{key}={request.localities.only(site).name}"

    followers: dict[str, int] = {}
    for one in deployment.held:
        evicted = dict(one.special).get("follower", 0)
        plain = one.voters - evicted - (one.site == lead)
        for key_words, count in ((at(one.site), plain), (f"{at(one.site)},{_EVICT}", evicted)):
            if count > 0:
                followers[key_words] = count
    learners = {at(s): n for s, n in deployment.non_voters_at.items()}
    options = [
        ("LEADER_CONSTRAINTS", json.dumps([at(lead)])),
        ("FOLLOWER_CONSTRAINTS", json.dumps(followers)),
    ]
    if learners:
        options.append(("LEARNER_CONSTRAINTS", json.dumps(learners)))
    before = _before(deployment, path)
    if "SURVIVAL_PREFERENCES" in before:
        options.append(("SURVIVAL_PREFERENCES", before["SURVIVAL_PREFERENCES"]))
    verb = "CREATE OR REPLACE PLACEMENT POLICY"
    lines = [
        comment("leader, followers and learners by place, for TiDB; PD moves the replicas by"),
        comment("itself: learners first, then votes, the leader before its old replica goes"),
    ]
    if path is not None:
        changes = path.present.differences(_said(deployment)) or ("none",)
        lines += [comment(f"changes: {words}") for words in changes]
        verb = "ALTER PLACEMENT POLICY"
    lines.append(f"{verb} {mysql_name(request.name)}")
    lines += [f"  {name}={mysql_string(value)}" for name, value in options]
    lines[-1] += ";"
    lines.append(comment("then attach it, for example: ALTER DATABASE … PLACEMENT POLICY=…"))
    lines.append("SHOW PLACEMENT;")
    lost = sorted(
        {
            part.strip(" []{}'\"+-").partition("=")[0]
            for name in _DETAIL
            for part in before.get(name, "").split(",")
            if "=" in part
        }
        - {key}
    )
    notes = ["labels are checked when the policy is attached, not when it is made"]
    if len(deployment.leaders) > 1:
        notes.append(
            "a policy has no failover order; the plan's order of leaders is "
            + ", ".join(deployment.leaders)
        )
    if lost:
        notes.append(f"constraints of the present policy are left out: {', '.join(lost)}")
    return Script("\n".join(lines) + "\n", tuple(notes))


def _before(deployment: Deployment, path: MovePath | None) -> dict[str, str]:
    """Return the options of the policy that was read, if one was."""
    policies: dict[str, _PolicyOptions] = {}
    for one in (deployment, *([path.present] if path else [])):
        if one.system == "tidb" and one.kept:
            _take_policies(one.kept, "kept", policies)
    return next(iter(policies.values())).options if policies else {}


SYSTEM = DatabaseSystem(
    name="tidb",
    title="TiDB",
    inputs="SHOW CREATE PLACEMENT POLICY, or CREATE and ALTER PLACEMENT POLICY statements",
    read=_read,
    refuses=_refuses,
    write=_write,
    said=_said,
    says="leader, followers and learners by region",
    cannot="a failover order, one voter, more than nine voters, a quorum other than the majority",
    validated="the TiDB parser (grammar); no server was run",
    keeps_text=True,
    expresses=frozenset({"follower"}),
    settings={
        "locality_key": Setting("region", "key of the store label whose values are places"),
    },
)

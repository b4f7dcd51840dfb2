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
from placement.databases.localities import name_refusal
from placement.databases.server_moves import MovePath
from placement.databases.system import DatabaseSystem, Reading, Request, Script, Texts
from placement.databases.systems.constraint_words import (
    Place,
    counts_of,
    only_key,
    place_counts,
)
from placement.errors import InputError
from placement.languages.sql_text import TokenStream, comment, mysql_name, mysql_string
from placement.languages.yaml_texts import YamlValue, parse_flow
from placement.methods.options import Setting

__all__ = ["SYSTEM"]

_SUGAR = ("PRIMARY_REGION", "REGIONS", "SCHEDULE")
_DETAIL = ("LEADER_CONSTRAINTS", "FOLLOWER_CONSTRAINTS", "LEARNER_CONSTRAINTS", "CONSTRAINTS")
_NUMBERS = ("FOLLOWERS", "LEARNERS", "VOTERS")
_OTHER = ("SURVIVAL_PREFERENCES", "VOTER_CONSTRAINTS")
_MOST_FOLLOWERS = 8


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
        for policy in _policies(text, source):
            policies[policy.name.lower()] = policy
    wanted = request.name.lower() if request.name else next(iter(policies), "")
    if wanted not in policies or (len(policies) > 1 and not request.name):
        raise InputError(
            "no such policy" if request.name else "several policies, or none",
            source=texts[0][0],
            field="--database",
            value=request.name,
            expected="one of " + ", ".join(policies) if policies else "CREATE PLACEMENT POLICY …",
        )
    policy = policies[wanted]
    findings = _rules(policy)
    if any(option in policy.options for option in _SUGAR):
        deployment = _from_regions(policy, request)
    else:
        deployment = _from_constraints(policy, request, findings)
    return Reading(deployment, tuple(findings))


def _policies(text: str, source: str) -> list[_PolicyOptions]:
    """Return the policies in statements, or in the output of SHOW CREATE PLACEMENT POLICY."""
    stream = TokenStream(text, source, backslash=True)
    found = []
    while stream.next is not None:
        where = stream.where()
        if (
            stream.accept("CREATE", "PLACEMENT", "POLICY")
            or stream.accept("CREATE", "OR", "REPLACE", "PLACEMENT", "POLICY")
            or stream.accept("ALTER", "PLACEMENT", "POLICY")
        ):
            stream.accept("IF", "NOT", "EXISTS")
            stream.accept("IF", "EXISTS")
            policy = _PolicyOptions(stream.name("the name of a policy"), where)
            _take_options(stream, policy)
            found.append(policy)
        else:
            stream.take("a statement")
    return found


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


def _from_regions(policy: _PolicyOptions, request: Request) -> Deployment:
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
    site = request.localities.site_of(primary, policy.source, "PRIMARY_REGION")
    held = {site: min(here, voters) if count > 1 else voters}
    rest = voters - held[site]
    others = [
        request.localities.site_of(name, policy.source, "REGIONS")
        for name in regions
        if name != primary
    ]
    if len(others) == 1 and rest:
        held[others[0]] = held.get(others[0], 0) + rest
        rest = 0
    return Deployment.of("tidb", held, leaders=(site,), free_voters=rest, name=policy.name)


def _from_constraints(
    policy: _PolicyOptions, request: Request, findings: list[Finding]
) -> Deployment:
    key = request.text("locality_key")

    def place(option: str) -> Place:
        return Place(policy.source, option, key, request.localities)

    if "VOTER_CONSTRAINTS" in policy.options or "VOTERS" in policy.options:
        raise InputError(
            "an option of old versions",
            source=policy.source,
            field="VOTER_CONSTRAINTS" if "VOTER_CONSTRAINTS" in policy.options else "VOTERS",
            expected="FOLLOWER_CONSTRAINTS",
        )
    everywhere = policy.flow("CONSTRAINTS")
    if isinstance(everywhere, dict):
        raise place("CONSTRAINTS").refuse("numbers for all roles", everywhere, "a list")
    common, never = only_key(
        everywhere if isinstance(everywhere, list) else [], place("CONSTRAINTS")
    )
    leader = policy.flow("LEADER_CONSTRAINTS")
    if isinstance(leader, dict):
        leader = list(leader)
    site, more = only_key(leader if isinstance(leader, list) else [], place("LEADER_CONSTRAINTS"))
    site = site or common
    if never or more:
        words = ", ".join(map(str, [*never, *more]))
        findings.append(
            Finding(
                "forbidden-places",
                "note",
                f"policy {policy.name} forbids {words}; the roles do not keep that",
                "give the same sites to `placement solve --forbid`",
            )
        )
    followers, free = _counted(policy, "FOLLOWER_CONSTRAINTS", "FOLLOWERS", 2, common, place)
    learners, free_learners = _counted(policy, "LEARNER_CONSTRAINTS", "LEARNERS", 0, common, place)
    voters = dict(followers)
    if site is not None:
        voters[site] = voters.get(site, 0) + 1
    return Deployment.of(
        "tidb",
        voters,
        learners,
        leaders=() if site is None else (site,),
        free_voters=free + (site is None),
        free_non_voters=free_learners,
        name=policy.name,
    )


def _counted(
    policy: _PolicyOptions,
    option: str,
    number: str,
    default: int,
    common: str | None,
    place: object,
) -> tuple[dict[str, int], int]:
    """Return replicas of a role by site, and how many have no place."""
    assert callable(place)
    where: Place = place(option)
    value = policy.flow(option)
    if isinstance(value, dict):
        plain = {
            ",".join(part for part in text.split(",") if not part.strip().startswith("#")): count
            for text, count in value.items()
        }
        counts_of(plain, where)
        held, _ = place_counts(plain, 0, where)
        return held, 0
    total = policy.number(number, default)
    held, _ = place_counts(value or [], total, where)
    if not held and common is not None:
        held = {common: total}
    return {site: n for site, n in held.items() if n}, total - sum(held.values())


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
    reasons += place_refusals(deployment, request, "TiDB")
    return tuple(reasons)


def place_refusals(deployment: Deployment, request: Request, title: str) -> list[str]:
    """Return why names of places, or the key of the tier, cannot stand in constraints."""
    names = [request.localities.only(one.site).name for one in deployment.held]
    key = request.text("locality_key")
    reasons = [name_refusal(name, title) for name in (*names, key)]
    return [reason for reason in reasons if reason is not None]


def _said(deployment: Deployment) -> Deployment:
    """Return the part of a deployment that a policy stores: one leader, no order after it."""
    return replace(deployment, leaders=deployment.leaders[:1])


def _write(deployment: Deployment, request: Request, path: MovePath | None) -> Script:
    key = request.text("locality_key")
    lead = deployment.leaders[0]

    def at(site: str) -> str:
        return f"+{key}={request.localities.only(site).name}"

    followers = {at(s): n - (s == lead) for s, n in deployment.voters_at.items() if n > (s == lead)}
    learners = {at(s): n for s, n in deployment.non_voters_at.items()}
    options = [
        ("LEADER_CONSTRAINTS", json.dumps([at(lead)])),
        ("FOLLOWER_CONSTRAINTS", json.dumps(followers)),
    ]
    if learners:
        options.append(("LEARNER_CONSTRAINTS", json.dumps(learners)))
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
    notes = ["labels are checked when the policy is attached, not when it is made"]
    if len(deployment.leaders) > 1:
        notes.append(
            "a policy has no failover order; the plan's order of leaders is "
            + ", ".join(deployment.leaders)
        )
    return Script("\n".join(lines) + "\n", tuple(notes))


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
    operations={
        "SELECT with tidb_replica_read = 'closest-replicas'": (
            "bounded read: the nearest replica asks the leader for its commit index"
        ),
        "SELECT … AS OF TIMESTAMP (stale read)": "weak read",
        "SELECT": "strong read; its timestamp comes from PD, a round trip to the PD leader besides",
        "INSERT, UPDATE, DELETE of one region (1PC)": "single-group transaction",
        "transaction over several regions": "single-group with async commit, else multi-group",
    },
    settings={
        "locality_key": Setting("region", "key of the store label whose values are places"),
    },
)

"""Findings about a deployment: the rule, the evidence, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from placement.databases.deployment import Deployment
from placement.model.constraints import majority

if TYPE_CHECKING:
    from placement.databases.localities import Localities
    from placement.model.instance import Instance

__all__ = ["Finding", "Severity", "broken", "lint_deployment"]

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault or a weakness of a configuration.

    Attributes
    ----------
    rule
        Short name of the rule.
    severity
        "error": something is broken; "warning": a weakness; "note": a fact to know.
    evidence
        What was found, with the numbers.
    remedy
        What would mend it.
    """

    rule: str
    severity: Severity
    evidence: str
    remedy: str


def broken(findings: Iterable[Finding]) -> bool:
    """Return whether any finding is an error."""
    return any(finding.severity == "error" for finding in findings)


def lint_deployment(
    deployment: Deployment,
    instance: Instance,
    localities: Localities,
    *,
    survive: str | None = None,
) -> tuple[Finding, ...]:
    """Return the findings that need no knowledge of the system.

    Parameters
    ----------
    deployment
        The roles.
    instance
        Where the sites and their failure domains are from.
    localities
        For the number of nodes at each site (column ``nodes``).
    survive
        A failure-domain level: the loss of any one domain must leave a quorum.

    Raises
    ------
    InputError
        For an unknown level.
    """
    found = [*_roles(deployment), *_nodes(deployment, localities)]
    if deployment.read is None:
        found += _losses(deployment, {site: site for site in instance.sites}, "site", None)
        if survive is not None:
            labels = {
                site: label or site
                for site, label in zip(instance.sites, instance.labels(survive), strict=True)
            }
            found += _losses(deployment, labels, survive, survive)
    elif survive is not None:
        found.append(
            Finding(
                "survival-goal",
                "note",
                "the store has no leader, and its requests may use different quorums",
                "check each consistency level with `placement contingency quorum`",
            )
        )
    return tuple(found)


def _roles(deployment: Deployment) -> list[Finding]:
    found = []
    if deployment.voters == 0:
        found.append(Finding("no-voter", "error", "no replica votes", "give replicas a vote"))
        return found
    free = deployment.free_voters + deployment.free_non_voters
    if free:
        found.append(
            Finding(
                "free-replicas",
                "warning",
                f"{free} of {deployment.replicas} replicas have no place in the constraints, so "
                "that the database chooses where they go",
                "add constraints for every replica",
            )
        )
    if deployment.read is not None:
        if deployment.read + deployment.quorum <= deployment.voters:
            found.append(
                Finding(
                    "stale-reads",
                    "warning",
                    f"read {deployment.read} + write {deployment.quorum} do not exceed "
                    f"{deployment.voters} replicas, so that a read may miss the last write",
                    "choose consistency levels with R + W > N, or accept stale reads",
                )
            )
        return found
    if why := deployment.outage((), ""):
        found.append(
            Finding(
                "quorum-too-large",
                "error",
                f"{why}: no write can commit",
                "lower the number of votes, or add voters",
            )
        )
    if deployment.voters % 2 == 0 and deployment.commit is None and deployment.least is None:
        quorum = majority(deployment.voters)
        found.append(
            Finding(
                "even-voters",
                "warning",
                f"{deployment.voters} voters need {quorum} votes: they survive "
                f"{deployment.voters - quorum} losses, as {deployment.voters - 1} voters do",
                "add a voter at another site, or take one vote away",
            )
        )
    where = deployment.voters_at
    if deployment.ranks:
        ties = [" or ".join(tier) for tier in deployment.tiers if len(tier) > 1]
        found.append(
            Finding(
                "equal-preferences",
                "note",
                f"the leader may be at {', and after a loss at '.join(ties)}: the preference is "
                "the same, and the worst of them is evaluated",
                "different preferences, if one of them is meant",
            )
        )
    if not deployment.may_lead_at and not deployment.free_voters:
        found.append(
            Finding(
                "nobody-leads",
                "error",
                f"none of the {deployment.voters} voters may lead: no write can commit",
                "let a voter with data lead",
            )
        )
    for site in deployment.leaders:
        if site not in where and not deployment.free_voters:
            found.append(
                Finding(
                    "preference-without-voter",
                    "error",
                    f"the leader preference names {site}, where no replica votes: it is never met",
                    f"place a voter at {site}, or take it out of the preference",
                )
            )
    return found


def _nodes(deployment: Deployment, localities: Localities) -> list[Finding]:
    found = []
    for one in deployment.held:
        nodes = localities.nodes(one.site)
        if nodes is not None and one.replicas > nodes:
            found.append(
                Finding(
                    "too-few-nodes",
                    "error",
                    f"{one.site} must hold {one.replicas} replicas and has {nodes} nodes; a node "
                    "holds one replica",
                    f"add {one.replicas - nodes} nodes at {one.site}, or place fewer replicas",
                )
            )
    return found


def _stops(deployment: Deployment, labels: Mapping[str, str], label: str) -> str:
    """Return why commits may stop after the loss of a domain; empty where they go on."""
    sites = {*deployment.voters_at, *deployment.leaders}
    lost = {site for site in sites if labels.get(site, site) == label}
    first = deployment.tiers[0] if deployment.tiers else deployment.may_lead_at
    leader = next((site for site in first if site not in lost), None)
    return deployment.outage(lost, None if any(site in lost for site in first) else leader)


def _losses(
    deployment: Deployment, labels: Mapping[str, str], level: str, goal: str | None
) -> list[Finding]:
    """Return the domains whose loss stops commits or elections, and whether an arbiter helps."""
    held: dict[str, int] = {}
    for site, count in deployment.voters_at.items():
        label = labels.get(site, site)
        held[label] = held.get(label, 0) + count
    voters, quorum = deployment.voters, deployment.quorum
    if deployment.free_voters or not deployment.may_lead_at or deployment.outage((), ""):
        return []
    stops = {label: _stops(deployment, labels, label) for label in sorted(held)}
    fatal = [label for label in held if stops[label]]
    needed = max(quorum, deployment.election)
    found = []
    for label in sorted(fatal):
        what = f"{level} {label} holds {held[label]} of {voters} voters: its loss leaves "
        what += f"{voters - held[label]}, and {needed} are needed"
        if deployment.commit is not None or any(one.special for one in deployment.held):
            what = f"{level} {label} holds {held[label]} of {voters} voters: {stops[label]}"
        if goal is not None:
            evidence, severity, rule = f"{what}, so the goal is not met", "error", "survival-goal"
        else:
            evidence, severity, rule = f"{what}: writes stop", "warning", "loss-stops-writes"
        most = max(0, voters - needed)
        remedy = f"at most {most} voter{'' if most == 1 else 's'} per {level}"
        if voters == needed:
            remedy = "3 or more voters with majorities"
        if voters - held[label] >= needed:
            remedy = f"a voter with data that may lead, in another {level}"
        found.append(Finding(rule, severity, evidence, remedy))  # type: ignore[arg-type]  # a literal
    more = majority(voters + 1)
    plain = deployment.commit is None and deployment.least is None
    plain &= not any(one.special for one in deployment.held)
    if fatal and plain and max(held.values()) <= voters + 1 - more:
        found.append(
            Finding(
                "arbiter-helps",
                "note",
                f"one more voter in a {level} without one makes {voters + 1} voters, of which "
                f"{more} commit: then no single {level} stops writes",
                "add a voter (a witness or arbiter is enough, where the database has one) in a "
                f"{level} that holds none",
            )
        )
    return found

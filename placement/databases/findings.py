"""Findings about a deployment: the rule, the evidence, and the remedy."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from placement.databases.deployment import Deployment
from placement.model.constraints import majority
from placement.model.instance import SITE_LEVEL

if TYPE_CHECKING:
    from placement.databases.localities import Localities
    from placement.model.instance import Instance

GOAL_OPEN = "survival-goal-not-known"
"""Rule of a goal that is neither met nor missed: free replicas decide."""

_MOST_NAMES = 10


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
    severity: str
    evidence: str
    remedy: str


@cache
def rules_of(system: str) -> Mapping[str, Mapping[str, str]]:
    """Return the rows of ``rules.csv`` of a system, by rule; those of "any" need no system."""
    with (Path(__file__).parent / "rules.csv").open(encoding="utf-8", newline="") as file:
        return {row["rule"]: row for row in csv.DictReader(file) if row["system"] == system}


class Findings(list[Finding]):
    """Findings of one configuration by the rules of a system; `subject` is a fact of each."""

    def __init__(self, system: str, subject: str = "") -> None:
        super().__init__()
        self.rules, self.subject = rules_of(system), subject

    def add(self, rule: str, severity: str = "", /, **facts: object) -> None:
        """Add the finding of a rule, of its usual severity unless told, with the facts it names."""
        row, known = self.rules[rule], {"subject": self.subject, **facts}
        evidence, remedy = (row[part].format(**known) for part in ("evidence", "remedy"))
        self.append(Finding(rule, severity or row["severity"], evidence, remedy))


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

    The instance has the sites and their failure domains, the localities the number of nodes at
    each site. `survive` is a level of which the loss of any one domain must leave a quorum. A
    loss that surely stops writes is an error then; where free replicas decide it, the finding has
    the rule :data:`GOAL_OPEN`. The other levels are looked at too, as warnings.
    """
    found = _roles(deployment, instance.sites)
    for one in deployment.held:
        nodes = localities.nodes(one.site)
        if nodes is not None and one.replicas > nodes:
            more = one.replicas - nodes
            found.add("too-few-nodes", site=one.site, replicas=one.replicas, nodes=nodes, more=more)
    quorum = deployment.quorum if deployment.read is None else deployment.read
    able = deployment.may_lead_at or deployment.free_voters or deployment.read is not None
    if not (able and 0 < max(quorum, deployment.quorum) <= deployment.voters):
        return tuple(found)
    if survive is not None:
        instance.labels(survive, "survive")
    stopping: list[frozenset[str]] = []  # groups of sites whose loss is told already
    levels = {level: len(set(labels)) for level, labels in instance.domains.items()}
    for level in [SITE_LEVEL, *sorted(levels, key=lambda each: -levels[each])]:
        goal = level == survive
        certain, possible = _fatal(deployment, _groups(instance, level), stopping, goal)
        _judge_losses(deployment, level, certain, goal, found)
        if possible and (goal or level == SITE_LEVEL):
            names = f"{level} {listed(loss.domain for loss in possible)}"
            if len(possible) > _MOST_NAMES:
                names = f"any of {len(possible)} domains of the level {level}"
            found.add(GOAL_OPEN if goal else "loss-not-known", names=names)
    return tuple(found)


def _roles(deployment: Deployment, sites: Sequence[str]) -> Findings:
    found, voters = Findings("any"), deployment.voters
    if voters == 0:
        found.add("no-voter")
        return found
    free = deployment.free_voters + deployment.free_non_voters
    free -= sum(one.replicas for one in deployment.open if len(one.sites) == 1)
    if free:
        found.add("free-replicas", free=free, replicas=deployment.replicas)
    if deployment.read is not None:
        if deployment.read + deployment.quorum <= voters:
            write = deployment.quorum
            found.add("stale-reads", read=deployment.read, write=write, voters=voters)
        return found
    if why := deployment.outage((), ""):
        found.add("quorum-too-large", why=why)
    if voters % 2 == 0 and deployment.commit is None and deployment.least is None:
        quorum = majority(voters)
        spare, fewer = voters - quorum, voters - 1
        found.add("even-voters", voters=voters, quorum=quorum, spare=spare, fewer=fewer)
    if deployment.ranks:
        ties = [" or ".join(tier) for tier in deployment.tiers if len(tier) > 1]
        found.add("equal-preferences", ties=", and after a loss at ".join(ties))
    if not deployment.may_lead_at and not deployment.free_voters:
        found.add("nobody-leads", voters=voters)
    possible = {site: deployment.votes_within({site}, sites) for site in deployment.leaders}
    if never := listed(site for site, (_, most) in possible.items() if not most):
        found.add("preference-without-voter", sites=never)
    if maybe := listed(site for site, (least, most) in possible.items() if most and not least):
        found.add("preference-not-guaranteed", sites=maybe)
    return found


def listed(names: Iterable[str]) -> str:
    """Return names in words, the first ten of them."""
    every = list(names)
    more = len(every) - _MOST_NAMES
    return ", ".join(every[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


# --- losses ----------------------------------------------------------------------------------


def _groups(instance: Instance, level: str) -> dict[str, frozenset[str]]:
    """Return the sites of each domain; a site without a label is a domain of its own."""
    groups: dict[str, list[str]] = {}
    labels = instance.sites if level == SITE_LEVEL else instance.labels(level)
    for site, label in zip(instance.sites, labels, strict=True):
        groups.setdefault(label or site, []).append(site)
    return {label: frozenset(sites) for label, sites in groups.items()}


@dataclass(frozen=True, slots=True)
class _StoppedDomain:
    """A domain whose loss stops something: its voters, what it stops, and why."""

    domain: str
    lost: int
    stops: tuple[str, ...]
    why: str


def _fatal(
    deployment: Deployment,
    groups: Mapping[str, frozenset[str]],
    stopping: list[frozenset[str]],
    every: bool,
) -> tuple[list[_StoppedDomain], list[_StoppedDomain]]:
    """Return the domains whose loss certainly stops something, and those where it possibly does.

    A domain that holds another one whose loss stops as much (`stopping`, which grows) says nothing
    new: it is left out, unless `every` domain is asked for.
    """
    sites = frozenset(site for group in groups.values() for site in group)
    certain, possible, fresh = [], [], []
    for domain, group in sorted(groups.items()):
        least, most = deployment.votes_within(group, sites)
        stops, why = _stops(deployment, least, group)
        if stops and least:
            if every or not any(inner <= group for inner in stopping):
                certain.append(_StoppedDomain(domain, least, stops, why))
            fresh.append(group)
        elif most > least and not stops:
            stops, why = _stops(deployment, most, group)
            if stops:
                possible.append(_StoppedDomain(domain, most, stops, why))
    stopping += fresh
    for sites_of_pool in dict.fromkeys(pool.sites for pool in deployment.open if pool.sites):
        crowd = {
            name: group for name, group in groups.items() if not group.isdisjoint(sites_of_pool)
        }
        union = frozenset[str]().union(*crowd.values())
        share = -(-deployment.votes_within(union, sites)[0] // len(crowd))
        stops, why = _stops(deployment, share, frozenset())  # one of them holds so many at least
        told = any(inner <= union for inner in (fresh if every else stopping))
        if stops and len(crowd) > 1 and not told:
            certain.append(_StoppedDomain(" or ".join(sorted(crowd)), share, stops, why))
            stopping.append(union)
    return certain, possible


def _stops(deployment: Deployment, lost: int, group: frozenset[str]) -> tuple[tuple[str, ...], str]:
    """Return what the loss of a group with some voters stops, and why."""
    left = deployment.voters - lost
    if deployment.read is not None:
        needed = {"writes": deployment.quorum, "reads": deployment.read}
        dead = not group.isdisjoint(deployment.voters_at)
        stops = [
            what
            for what, votes in needed.items()
            if left < votes or (dead and what in deployment.everywhere)
        ]
        every = " of each datacentre" * any(what in deployment.everywhere for what in stops)
        most = max((needed[what] for what in stops), default=0)
        return tuple(stops), f"a majority{every}" if every else str(most)
    first = deployment.tiers[0] if deployment.tiers else tuple(deployment.may_lead_at)
    leader = None if any(site in group for site in first) else next(iter(first), None)
    held = sum(count for site, count in deployment.voters_at.items() if site in group)
    why = deployment.outage(group, leader, lost - held)
    return ("writes",) * bool(why), why


def _judge_losses(
    deployment: Deployment,
    level: str,
    certain: Sequence[_StoppedDomain],
    goal: bool,
    found: Findings,
) -> None:
    """Add what losses stop, one finding for each kind, and whether one more voter helps."""
    voters, leads = deployment.voters, deployment.read is None
    word = "voters" if leads else "replicas"
    needed = max(deployment.quorum, deployment.election if leads else deployment.read or 0)
    most = max(0, voters - needed)
    plain = deployment.commit is None and not any(one.special for one in deployment.held)
    alike: dict[tuple[tuple[str, ...], str], list[_StoppedDomain]] = {}
    for loss in certain:
        alike.setdefault((loss.stops, "" if leads and plain else loss.why), []).append(loss)
    for (stops, why), losses in alike.items():
        first = losses[0]
        what = f"{level} {first.domain} holds {first.lost} of {voters} {word}"
        what += "".join(f", {one.domain} {one.lost}" for one in losses[1:_MOST_NAMES])
        what += f" and {len(losses) - _MOST_NAMES} more" * (len(losses) > _MOST_NAMES)
        one = "its loss" if len(losses) == 1 else "the loss of any one of them"
        left = f"{voters - first.lost}, and" if len(losses) == 1 else "too few,"
        if leads and not plain:
            what += f": after {one} {why}"
        else:
            what += f": {one} leaves {left} {why or needed} are needed"
        what += f": {' and '.join(stops)} stop" + ", so the goal is not met" * goal
        remedy = f"at most {most} {word[:-1] if most == 1 else word} per {level}"
        if {*stops} & {*deployment.everywhere}:
            remedy = "a consistency level that does not need every datacentre"
        elif voters == needed:
            remedy = "3 or more voters with majorities" if leads else "lower consistency levels"
        elif leads and voters - max(loss.lost for loss in losses) >= needed:
            remedy = f"a voter with data that may lead, in another {level}"
        rule = "survival-goal" if goal else f"loss-stops-{stops[0]}"
        found.append(Finding(rule, "error" if goal else "warning", what, remedy))
    more = majority(voters + 1)
    held = max((loss.lost for loss in certain), default=0)
    odd = deployment.free_voters or not leads or not plain or deployment.least
    if certain and not odd and held <= voters + 1 - more and (goal or level == SITE_LEVEL):
        found.add("arbiter-helps", level=level, voters=voters + 1, quorum=more)

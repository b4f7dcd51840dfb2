"""Value of a deployment: latency, losses, bill, and the gap to the proven best.

All numbers come from the evaluator of :mod:`placement.evaluation`. An instance has at most one
replica per site; where a deployment holds k at one site, the instance is copied with k sites in
its place, with the same RTTs, domains and prices and an RTT of 0 between them. The clients stay.

A voter that acknowledges no commit is no voter of the problem; one that acknowledges and serves no
reads is a witness. The losses count the votes of elections apart from those of commits.

Replicas without a place are taken to be where they help least: they serve no reads, and vote from
the possible sites that are farthest from the leader. The latency is then an upper limit, unless
operations are relayed: a nearer replica may be a detour. A loss whose effect depends on them is not
known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.databases.deployment import ROLES, Deployment, Role, check_sites
from placement.databases.findings import listed
from placement.errors import UnsupportedError
from placement.evaluation.losses import Failure, Failures, losses, score_after
from placement.evaluation.score import overhead
from placement.feasibility.feasible_plans import neighbours, violations
from placement.methods.registry import solve
from placement.model.changed_instance import PLACE, with_copies
from placement.model.configuration import Configuration
from placement.model.constraints import SiteRule
from placement.model.instance import SITE_LEVEL, Instance
from placement.plan import Plan, evaluate, objective_value
from placement.problem import Problem

_MOST_MOVES = 3


@dataclass(frozen=True)
class DeploymentValue:
    """Value of a deployment, compared with the best deployment under the same rules."""

    #: the deployment, evaluated; where the configuration leaves open who leads, under the worst of
    #: the possible leaders
    plan: Plan
    #: the possible leaders, with the mean latency under each, worst first
    leaders: tuple[tuple[str, float], ...]
    reasons: tuple[str, ...]  #: rules that the deployment breaks
    best: Plan  #: the best plan of the same problem, with its bound
    #: latency after the loss of each site, or of each domain of the level that was asked for
    losses: Failures
    #: single changes, one after the other, each the best of its turn, and the mean latency after
    #: each: a descent, not proven to be the shortest
    moves: tuple[tuple[str, float], ...]
    copies: int  #: most replicas that a site may hold, in the deployment and in the best
    #: what the configuration leaves to the database, and what is not known therefore
    open: tuple[str, ...] = ()

    @property
    def is_limit(self) -> bool:
        """Return whether the latency is the highest that replicas without a place allow."""
        return bool(self.open) and not self.plan.problem.demand.relay.any()

    @property
    def excess(self) -> float:
        """Return how far the objective is above the best one, relative."""
        if not self.best.found or not self.best.objective:
            return 0.0 if self.plan.objective == self.best.objective else float("inf")
        return self.plan.objective / self.best.objective - 1


def evaluate_deployment(
    deployment: Deployment,
    instance: Instance,
    *,
    survive: str | None = None,
    diversity: Sequence[SiteRule] = (),
    forbidden: Sequence[str] = (),
    non_voters: Sequence[str] = (),
    level: str = SITE_LEVEL,
    time_limit: float | None = None,
) -> DeploymentValue:
    """Evaluate a deployment, and find the best one with as many replicas and voters.

    Of equally preferred leaders, and without a preference, the worst one leads. The deployment
    is held against the rules `survive`, `diversity`, `forbidden` and `non_voters`, as of
    :class:`placement.Problem`. The best obeys them, except a loss that no such configuration
    survives; it keeps the numbers of replicas and voters, the votes of a commit, and the largest
    number of replicas at one site. `level` is that of the losses; the search for the best has
    `time_limit` seconds. UnsupportedError for a store without a leader, and where no voter with a
    place may lead.
    """
    check_sites(deployment, instance.sites)
    if deployment.read is not None:
        raise UnsupportedError(
            "a store without a leader is evaluated by `placement lab quorum`, which takes "
            f"N = {deployment.replicas}, R = {deployment.read}, W = {deployment.quorum}"
        )
    if not deployment.voters:
        raise UnsupportedError("no replica votes: there is nothing to evaluate")
    if why := deployment.outage((), ""):
        raise UnsupportedError(f"{why}: it never ends")
    free = deployment.free_voters + deployment.free_non_voters
    if not deployment.may_lead_at:
        raise UnsupportedError(
            "no voter may lead: there is nothing to evaluate"
            if not free
            else f"no voter that may lead has a place, and {free} replicas have none: any latency "
            "is possible; add constraints for them (placement db lint)"
        )
    first = deployment.leaders[:1]
    tier = _tier(deployment, deployment.may_lead_at)
    if first and first[0] not in tier and not deployment.free_voters:
        raise UnsupportedError(
            f"{first[0]} should lead and holds no voter that may (placement db lint says more)"
        )
    copies = max(one.replicas for one in deployment.held)
    world = with_copies(instance, copies)

    def spread(name: str) -> str:
        return PLACE if name == SITE_LEVEL and copies > 1 else name

    def each(names: Iterable[str]) -> list[str]:
        places = instance.site_indices(list(names), "sites").tolist()
        return [world.sites[place * copies + k] for place in places for k in range(copies)]

    index = {name: i for i, name in enumerate(world.sites)}
    roles = {
        index[one.site] + k: role for one in deployment.held for k, role in enumerate(one.each)
    }
    voters = [site for site, role in roles.items() if role.votes and role.acknowledges]
    replicas = [site for site, role in roles.items() if role.serves]
    # without a voter to lose no configuration meets the goal; a quorum that adapts has another one
    spare = len(voters) - max(deployment.quorum, len(voters) - deployment.quorum + 1)
    goal = survive if deployment.least is None and spare >= 1 else None
    never = {*deployment.voters_at} - {*deployment.may_lead_at}
    witnesses = len({*voters} - {*replicas})
    problem = Problem(
        world,
        replicas=len(replicas) + free,
        voters=len(voters) + deployment.free_voters,
        witnesses=witnesses,
        quorum=deployment.quorum,
        leaders=each(s for s in instance.sites if s not in never) if never else None,
        survive=None if goal is None else spread(goal),
        diversity=[replace(rule, level=spread(rule.level)) for rule in diversity],
        forbidden=each(forbidden),
        non_voters=each(non_voters),
    )
    witnesses += deployment.free_voters
    alone = problem.replace(survive=None, leaders=None, replicas=len(replicas), witnesses=witnesses)
    placed = _DeployedProblem(deployment, alone, roles, copies)
    each_leader = [
        Configuration.of(site, [*voters, *placed.farthest(site)], replicas)
        for site, role in roles.items()
        if role.leads and placed.home(site) in tier
    ]
    worth = {one.leader: objective_value(alone, one) for one in each_leader}
    chosen = max(each_leader, key=lambda one: worth[one.leader])
    plan = evaluate(alone, chosen, method="as read")
    rows, _, unknown = placed.losses(chosen, spread(level))
    left_open = _open_words(deployment, tier) if free else []
    if unknown:
        left_open.append(f"not known: the loss of {level} {listed(unknown)}")
    reasons = list(plan.reasons)
    if survive is not None:
        _, stops, unknown = placed.losses(chosen, spread(survive))
        if unknown and level != survive:
            left_open.append(f"not known: the loss of {survive} {listed(unknown)}")
        begin = f"does not survive the loss of {survive}"
        reasons += [f"{begin} {lost}: {why}" for lost, why in stops.items()]
    best = solve(problem, "exact", time_limit=time_limit)
    rate = alone.demand.operations
    leaders: dict[str, float] = {}
    for leader, value in sorted(worth.items(), key=lambda one: -one[1]):
        leaders.setdefault(placed.home(leader), value / rate)
    moves = _descent(problem, chosen) if not free else ()
    found = (plan, tuple(leaders.items()), tuple(reasons), best, rows, moves, copies)
    return DeploymentValue(*found, tuple(left_open))


def _open_words(deployment: Deployment, tier: Collection[str]) -> list[str]:
    votes, others = deployment.free_voters, deployment.free_non_voters
    words = [
        f"{votes} voters and {others} other replicas have no place: they are taken to serve no "
        "reads, and to vote from the possible sites that are farthest from the leader"
    ]
    if not deployment.leaders:
        words.append(f"a replica without a place may lead too, not only {', '.join(tier)}")
    elif not {*deployment.tiers[0]} <= {*tier}:
        words.append(f"a voter at {' or '.join(deployment.tiers[0])} would lead, if one is there")
    return words


def _tier(deployment: Deployment, able: Collection[str]) -> tuple[str, ...]:
    """Return the sites of which one leads next: equally preferred, and among the able ones."""
    tiers = deployment.tiers[:1] if deployment.order_void else deployment.tiers
    found = (tuple(site for site in tier if site in able) for tier in tiers)
    return next((tier for tier in found if tier), tuple(able))


@dataclass(frozen=True)
class _DeployedProblem:
    """A deployment on the sites of a problem: roles by site, each site of the instance copied."""

    deployment: Deployment
    problem: Problem
    roles: Mapping[int, Role]
    copies: int

    def home(self, site: int) -> str:
        """Return the site of the instance that a copy stands for."""
        return self.problem.instance.sites[site - site % self.copies]

    def _by_distance(self, sites: Iterable[int], leader: int) -> list[int]:
        rtt = self.problem.demand.site_rtt[0, leader]
        return sorted(sites, key=lambda site: -float(rtt[site]))

    def farthest(self, leader: int) -> list[int]:
        """Return sites for the voters without a place: possible ones, far from a leader."""
        one, taken = self.deployment, {*self.roles}
        voting = [pool for pool in one.open if pool.role == "voter"]
        pools = [(pool.sites, pool.replicas) for pool in voting]
        known = sum(pool.replicas for pool in one.open) == one.free_voters + one.free_non_voters
        rest = {site for pool in one.open if pool.role == "either" for site in pool.sites}
        left = one.free_voters - sum(pool.replicas for pool in voting)
        pools.append((tuple(rest) if known else (), left))
        for sites, count in pools:
            every = range(len(self.problem.instance.sites))
            able = [s for s in every if s not in taken and (not sites or self.home(s) in sites)]
            if len(able) < count:
                raise UnsupportedError(
                    f"{count} voters without a place have {len(able)} possible places, with at "
                    f"most {self.copies} replicas at a site: add constraints (placement db "
                    "lint)"
                )
            taken |= {*self._by_distance(able, leader)[:count]}
        return sorted(taken - {*self.roles})

    def losses(
        self, chosen: Configuration, level: str
    ) -> tuple[Failures, dict[str, str], list[str]]:
        """Return the effect of each loss, why writes stop after some, and which is not known.

        Of leaders that are equally likely, the worst is shown.
        """
        problem, one = self.problem, self.deployment
        rate, lead = problem.demand.operations, self.home(chosen.leader)
        normal = objective_value(problem, chosen) / rate
        rows: list[Failure] = []
        stops: dict[str, str] = {}
        unknown: list[str] = []
        far = self._by_distance({*chosen.voters} - {*self.roles}, chosen.leader)[::-1]
        everywhere = problem.instance.sites[:: self.copies]
        for loss in losses(problem, level):
            gone = loss.sites & {*self.roles}
            group = {self.home(site) for site in loss.sites}
            free = (0, 0)  # fewest and most voters without a place that are lost
            if far:
                held = sum(one.voters_at.get(site, 0) for site in group)
                least, most = one.votes_within(group, everywhere)
                free = (least - held, most - held)
            why = one.outage(group, lead, free[0])
            if why and (gone or free[0]):
                stops[loss.name] = why
                rows.append(Failure(loss.name, False, None, math.inf, None, math.inf, math.inf))
            elif far and (lead in group or one.outage(group, lead, free[1])):
                unknown.append(loss.name)
            elif gone:
                scores = self._after(chosen, gone | {*far[: free[1]]})
                leader = max(scores, key=lambda site: scores[site])
                latency, name = scores[leader] / rate, problem.instance.sites[leader]
                change = overhead(latency, normal)
                rows.append(Failure(loss.name, True, name, latency, name, latency, change))
        return Failures(level, normal, tuple(rows), ()), stops, unknown

    def _after(self, chosen: Configuration, gone: frozenset[int]) -> dict[int, float]:
        """Return the score by next leader after a loss: spares step in, the farthest ones first."""
        one, roles = self.deployment, self.roles
        able = {site for site in chosen.voters if site not in roles or roles[site].acknowledges}
        left = able - gone
        spares = {site for site, role in roles.items() if role is ROLES["spare"]} - gone
        needed = max(0, one.quorum - len(left))
        joined = self._by_distance(spares, chosen.leader)[:needed]
        now = replace(chosen, voters=tuple(sorted({*chosen.voters, *joined})))
        quorum = min(one.quorum, len(left) + len(joined))
        adapted = self.problem.replace(voters=len(now.voters), quorum=quorum)
        scores = score_after(adapted, now, gone)
        if chosen.leader not in gone:
            return scores
        leads = [site for site in scores if roles[site].leads]
        tier = _tier(one, dict.fromkeys(map(self.home, leads)))
        return {site: scores[site] for site in leads if self.home(site) in tier}


def _descent(problem: Problem, configuration: Configuration) -> tuple[tuple[str, float], ...]:
    """Return the best single changes one after the other, each with the mean latency after it."""
    rate = problem.demand.operations
    here, worth = configuration, objective_value(problem, configuration)
    found = []
    for _ in range(_MOST_MOVES):
        better = None
        for one in neighbours(problem, here):
            if one.leader not in one.replicas:  # a witness
                continue
            value = objective_value(problem, one)
            if value < worth * (1 - 1e-9) and not violations(problem, one):
                better, worth = one, value
        if better is None:
            break
        found.append((_change(problem, here, better), worth / rate))
        here = better
    return tuple(found)


def _change(problem: Problem, before: Configuration, after: Configuration) -> str:
    """Return the difference between neighbours, in words."""
    labels = problem.instance.domains.get(PLACE, problem.instance.sites)

    def names(sites: set[int]) -> str:
        return ", ".join(str(labels[site]) for site in sorted(sites))

    added = set(after.replicas) - set(before.replicas)
    promoted = set(after.voters) - set(before.voters)
    words = []
    if added:
        gone = set(before.replicas) - set(after.replicas)
        words.append(f"move a replica from {names(gone)} to {names(added)}")
    elif promoted:
        demoted = set(before.voters) - set(after.voters)
        words.append(f"move a vote from {names(demoted)} to {names(promoted)}")
    if before.leader != after.leader:
        words.append(f"lead from {names({after.leader})}")
    return " and ".join(words)

"""Value of a deployment: latency, losses, bill, and the gap to the proven best.

All numbers come from the evaluator of :mod:`placement.evaluation`. An instance has at most one
replica per site; where a deployment holds k at one site, the instance is copied with k sites in
its place, with the same RTTs, domains and prices and an RTT of 0 between them. The clients stay.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placement.databases.deployment import Deployment, check_sites
from placement.errors import InputError, UnitsWarning, UnsupportedError
from placement.evaluation.losses import Failures, failures
from placement.feasibility.feasible_plans import violations
from placement.feasibility.neighbours import neighbours
from placement.methods.registry import solve
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.model.instance import SITE_LEVEL, Instance
from placement.plan import Plan, evaluate, objective_value
from placement.problem import Problem

__all__ = ["PLACE", "DeploymentValue", "evaluate_deployment", "with_copies"]

PLACE = "place"
"""Level of an instance with copies whose domains are the sites of the instance it was made of."""

_MOST_MOVES = 3


@dataclass(frozen=True)
class DeploymentValue:
    """Value of a deployment, compared with the best deployment under the same rules.

    Attributes
    ----------
    plan
        The deployment, evaluated.
    best
        The best plan of the same problem, with its bound.
    losses
        Latency after the loss of each site, or of each domain of the level that was asked for.
    moves
        Single changes, one after the other, each the best one of its turn, and the mean latency
        after each: a descent, not proven to be the shortest.
    copies
        Most replicas that a site may hold, in the deployment and in the best.
    """

    plan: Plan
    best: Plan
    losses: Failures
    moves: tuple[tuple[str, float], ...]
    copies: int

    @property
    def excess(self) -> float:
        """Return how far the objective is above the best one, relative."""
        if not self.best.found or not self.best.objective:
            return 0.0 if self.plan.objective == self.best.objective else float("inf")
        return self.plan.objective / self.best.objective - 1


def with_copies(instance: Instance, copies: int) -> Instance:
    """Return the instance with every site `copies` times, in groups; itself for one copy.

    Copy k of a site is called ``NAME (k)``. The level ``place`` (:data:`PLACE`) has the sites of
    the instance as domains.

    Raises
    ------
    InputError
        When the instance has a level of that name already.
    """
    if copies == 1:
        return instance
    if PLACE in instance.domains:
        raise InputError(
            "the level is needed for sites with several replicas",
            field="domains",
            value=PLACE,
            expected="another name for this level",
        )
    names = tuple(
        name if k == 0 else f"{name} ({k + 1})" for name in instance.sites for k in range(copies)
    )
    place = np.repeat(np.arange(len(instance.sites)), copies)
    prices = instance.prices
    if prices is not None:
        prices = prices.at_sites(instance.sites, place.tolist())
    where = instance.site_coordinates
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)  # an RTT of 0 between copies is meant
        return instance.replace(
            sites=names,
            client_rtt=instance.client_rtt[..., place],
            site_rtt=instance.site_rtt[..., place[:, None], place],
            domains={
                **{level: tuple(v[i] for i in place) for level, v in instance.domains.items()},
                PLACE: tuple(instance.sites[i] for i in place),
            },
            site_coordinates=None if where is None else where[place],
            prices=prices,
        )


def evaluate_deployment(
    deployment: Deployment,
    instance: Instance,
    *,
    survive: str | None = None,
    diversity: Sequence[Diversity] = (),
    forbidden: Sequence[str] = (),
    non_voters: Sequence[str] = (),
    level: str = SITE_LEVEL,
    time_limit: float | None = None,
) -> DeploymentValue:
    """Evaluate a deployment, and find the best one with as many replicas and voters.

    Parameters
    ----------
    deployment
        Leader-based, with a place for every replica. Without a preferred leader, the best of its
        voters leads.
    instance
        Sites, RTTs and demand.
    survive, diversity, forbidden, non_voters
        Rules that the best must obey, as for :class:`placement.Problem`; the deployment is held
        against them too. Beside these the best keeps the numbers of replicas and voters, the
        votes of a commit, and the largest number of replicas at one site.
    level
        Of the losses.
    time_limit
        Of the search for the best, seconds.

    Raises
    ------
    InputError
        For an unknown site or level.
    UnsupportedError
        For a store without a leader, and for replicas without a place.
    """
    check_sites(deployment, instance.sites)
    if deployment.read is not None:
        raise UnsupportedError(
            "a store without a leader is evaluated by `placement contingency quorum`, which takes "
            f"N = {deployment.replicas}, R = {deployment.read}, W = {deployment.quorum}"
        )
    if deployment.free_voters or deployment.free_non_voters:
        raise UnsupportedError(
            "the configuration leaves the place of "
            f"{deployment.free_voters + deployment.free_non_voters} replicas to the database, so "
            "that its latency is not known; add constraints for them (placement deployment lint)"
        )
    if not deployment.voters:
        raise UnsupportedError("no replica votes: there is nothing to evaluate")
    if deployment.quorum > deployment.voters:
        raise UnsupportedError("a commit waits for more votes than there are: it never ends")
    copies = max(one.replicas for one in deployment.held)
    world = with_copies(instance, copies)

    def spread(name: str) -> str:
        return PLACE if name == SITE_LEVEL and copies > 1 else name

    def each(names: Sequence[str]) -> list[str]:
        places = instance.site_indices(names, "sites").tolist()
        return [world.sites[place * copies + k] for place in places for k in range(copies)]

    problem = Problem(
        world,
        replicas=deployment.replicas,
        voters=deployment.voters,
        quorum=deployment.commit,
        survive=None if survive is None else spread(survive),
        diversity=[replace(rule, level=spread(rule.level)) for rule in diversity],
        forbidden=each(forbidden),
        non_voters=each(non_voters),
    )
    plan = evaluate(problem, _configuration(problem, deployment, copies), method="as read")
    best = solve(problem, "exact", time_limit=time_limit)
    assert plan.configuration is not None
    return DeploymentValue(
        plan,
        best,
        failures(problem, plan.configuration, spread(level)),
        _descent(problem, plan.configuration),
        copies,
    )


def _configuration(problem: Problem, deployment: Deployment, copies: int) -> Configuration:
    """Return the deployment on the sites of the problem; without a leader the best voter leads."""
    index = {name: i for i, name in enumerate(problem.instance.sites[::copies])}
    voters: list[int] = []
    replicas: list[int] = []
    for one in deployment.held:
        first = index[one.site] * copies
        voters += range(first, first + one.voters)
        replicas += range(first, first + one.replicas)
    if deployment.leaders:
        wanted = index[deployment.leaders[0]] * copies
        if wanted not in voters:
            raise UnsupportedError(
                f"{deployment.leaders[0]} should lead and holds no voter (placement deployment "
                "lint says more)"
            )
        return Configuration.of(wanted, voters, replicas)
    each = [Configuration.of(leader, voters, replicas) for leader in voters]
    return min(each, key=lambda one: objective_value(problem, one))


def _descent(problem: Problem, configuration: Configuration) -> tuple[tuple[str, float], ...]:
    """Return the best single changes one after the other, each with the mean latency after it."""
    rate = problem.demand.operations
    here, worth = configuration, objective_value(problem, configuration)
    found = []
    for _ in range(_MOST_MOVES):
        better = None
        for one in neighbours(problem, here):
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

"""What a plan is worth after a loss: every single site, every domain of a level, or every pair.

A configuration (ℓ, V, R) loses the sites F. The survivors R' = R ∖ F serve reads. The quorum size
stays m of the *original* voters, since nothing has been reconfigured yet, so V' = V ∖ F can
commit only while |V'| >= m. If ℓ survives it stays; else one of V' is elected. Elections are not
planned, so that both the best and the worst new leader are told. Clients keep their places, or,
on request, a client cluster inside F (a client with the name of a lost site) moves to the closest
surviving site and sees what the client there sees.

    score_F = min over ℓ' ∈ V' of Eq. 1 at (ℓ', V', R') with quorum m

Users ask for exactly this: which region takes over, and how bad does it get.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placement.evaluation.objective import quorum_size
from placement.evaluation.score import closest_first, overhead, score
from placement.model.configuration import Configuration
from placement.model.demand import Demand
from placement.problem import Problem

__all__ = ["Failure", "Failures", "Loss", "demand_after", "failures", "losses", "score_after"]


@dataclass(frozen=True, slots=True)
class Loss:
    """A set of sites that fail together.

    Attributes
    ----------
    name
        Of the site or domain (or pair) that is lost.
    sites
        Site indices F.
    """

    name: str
    sites: frozenset[int]


@dataclass(frozen=True, slots=True)
class Failure:
    """What one loss does to a plan.

    Attributes
    ----------
    lost
        Name of what is lost.
    survives
        Whether enough voters remain to commit.
    leader
        The leader afterwards: the old one if it survives, else the best new one.
    mean_latency
        ms, with that leader; infinite when the service is lost.
    worst_leader, worst_latency
        The worst leader an election could give, and the mean latency with it.
    overhead
        Of `mean_latency` over the normal one, in %.
    """

    lost: str
    survives: bool
    leader: str | None
    mean_latency: float
    worst_leader: str | None
    worst_latency: float
    overhead: float


@dataclass(frozen=True, slots=True)
class Failures:
    """All losses of one kind.

    Attributes
    ----------
    level
        The failure-domain level, "site" for single sites.
    normal
        Mean latency without a loss, ms.
    each
        One row per loss that touches a replica, in site order.
    failover
        Voters in the order in which they should take over when the leader's site is lost, best
        first, with the mean latency each then gives.
    """

    level: str
    normal: float
    each: tuple[Failure, ...]
    failover: tuple[tuple[str, float], ...]

    @property
    def worst(self) -> Failure | None:
        """The loss that hurts most; None when no replica can be lost."""
        return max(self.each, key=lambda f: f.mean_latency, default=None)


def losses(problem: Problem, level: str = "site", *, together: int = 1) -> tuple[Loss, ...]:
    """Losses of `together` domains of a level at once, in the order of the domains.

    Raises
    ------
    InputError
        For an unknown level.
    """
    members: dict[str, set[int]] = {}
    for site, label in enumerate(problem.instance.labels(level)):
        if label is not None:
            members.setdefault(label, set()).add(site)
    return tuple(
        Loss(" + ".join(names), frozenset().union(*(members[name] for name in names)))
        for names in itertools.combinations(members, together)
    )


def score_after(
    problem: Problem,
    configuration: Configuration,
    lost: Iterable[int],
    *,
    leader_may_move: bool = False,
    clients_move: bool = False,
) -> dict[int, float]:
    """Score of every leader that may serve after a loss; empty when the service is lost.

    Parameters
    ----------
    problem, configuration
        The plan.
    lost
        Site indices F.
    leader_may_move
        Whether a leader that survives may hand over to a better one.
    clients_move
        Whether clients at lost sites move to the closest surviving site.

    Returns
    -------
    dict
        Leader (site index) -> score in ms times operations. Voters that may not lead by the
        problem's leader candidates are taken only when no candidate survives.
    """
    gone = frozenset(lost)
    voters = [v for v in configuration.voters if v not in gone]
    replicas = [r for r in configuration.replicas if r not in gone]
    quorum = quorum_size(problem, configuration)
    if len(voters) < quorum:
        return {}
    demand = demand_after(problem, gone) if clients_move else problem.demand
    if configuration.leader in voters and not leader_may_move:
        leaders = [configuration.leader]
    else:
        leaders = [v for v in sorted(voters) if problem.rules.may_lead[v]] or sorted(voters)
    return {ell: score(demand, ell, voters, replicas, quorum) for ell in leaders}


def demand_after(problem: Problem, gone: frozenset[int]) -> Demand:
    """Demand with the clients of lost sites re-homed to the closest surviving site. O(K·F·S)."""
    instance, demand = problem.instance, problem.demand
    sites = {name: i for i, name in enumerate(instance.sites)}
    client_at = {sites[name]: c for c, name in enumerate(instance.clients) if name in sites}
    alive = np.array([s for s in sorted(client_at) if s not in gone], dtype=np.intp)
    if not alive.size:
        return demand
    rtt = demand.client_rtt.copy()
    for site, client in client_at.items():
        if site in gone:
            for k in range(demand.scenarios):
                new_home = int(alive[closest_first(demand.site_rtt[k, site, alive])[0]])
                rtt[k, client] = demand.client_rtt[k, client_at[new_home]]
    return dataclasses.replace(demand, client_rtt=rtt)


def failures(
    problem: Problem,
    configuration: Configuration,
    level: str = "site",
    *,
    together: int = 1,
    leader_may_move: bool = False,
    clients_move: bool = False,
) -> Failures:
    """Evaluate a configuration under every loss of a kind.

    Parameters
    ----------
    problem, configuration
        The plan.
    level
        Failure-domain level; "site" is N−1.
    together
        How many domains are lost at once; 2 on level "site" is N−2.
    leader_may_move, clients_move
        As in :func:`score_after`.

    Notes
    -----
    O(losses · |V| · C · |R|).
    """
    rate = problem.demand.operations
    names = problem.instance.sites
    normal = (
        score(
            problem.demand,
            configuration.leader,
            configuration.voters,
            configuration.replicas,
            quorum_size(problem, configuration),
        )
        / rate
    )

    def after(lost: Iterable[int]) -> dict[int, float]:
        return score_after(
            problem,
            configuration,
            lost,
            leader_may_move=leader_may_move,
            clients_move=clients_move,
        )

    rows = []
    for loss in losses(problem, level, together=together):
        if not loss.sites & set(configuration.replicas):
            continue
        scores = after(loss.sites)
        if not scores:
            rows.append(Failure(loss.name, False, None, math.inf, None, math.inf, math.inf))
            continue
        best, worst = min(scores, key=scores.__getitem__), max(scores, key=scores.__getitem__)
        latency = scores[best] / rate
        rows.append(
            Failure(
                loss.name,
                True,
                names[best],
                latency,
                names[worst],
                scores[worst] / rate,
                overhead(latency, normal),
            )
        )
    return Failures(
        level, normal, tuple(rows), _failover(names, after([configuration.leader]), rate)
    )


def _failover(
    names: Sequence[str], scores: dict[int, float], rate: float
) -> tuple[tuple[str, float], ...]:
    ranked = sorted(scores, key=lambda ell: (scores[ell], ell))
    return tuple((names[ell], scores[ell] / rate) for ell in ranked)

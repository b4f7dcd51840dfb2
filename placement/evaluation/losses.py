"""Latency of a plan after a loss: of a single site, a domain of a level, or two of them at once.

A configuration (ℓ, V, R) loses the sites F. The survivors R' = R ∖ F serve reads. The quorum size
stays m of the *original* voters, since nothing has been reconfigured yet. V' = V ∖ F can therefore
commit only while |V'| >= m. If ℓ survives it stays; else one of V' is elected. Elections are not
planned, so both the best and the worst new leader are shown.

    score_F = min over ℓ' ∈ V' of Eq. 1 at (ℓ', V', R') with quorum m

The clients of a lost site are the client cluster that has its name. There are two answers to what
they do, the modes ``keep`` and ``hop`` of :class:`placement.quorumstore.problem.Redirect`:

- by default they stay where they are and reach the survivors as before: E[f, j] = d[f, j];
- with `clients_move` the surviving site c(f) that is closest to them serves them:
  E[f, j] = d[f, c(f)] + d[c(f), j], their RTT to c(f) and the RTT between sites from there on.

A loss that hits neither a replica nor a voter nor a client who moves is not noticed: the leader
stays and the score is the normal one.

Operations with waits are refused (:mod:`placement.evaluation.waits.wait_checks`).

For the same leader, a loss improves no score when (a) no operation is relayed (β = 0: a client
whose nearest replica is lost may find one that is closer to the leader) and (b) clients stay, or
d[f, j] <= d[f, c(f)] + d[c(f), j] for all survivors j: the triangle inequality, which measured RTTs
may break. Another leader may be better than the plan's own, if the
plan does not have the best of its voters as leader. All objectives and tables about losses take
their numbers from :func:`score_after` and so agree.

Three sites by hand, one client and one voter at each: A and B are 30 ms apart, A and C 90, B and C
70. A leads; a write goes to the leader, which waits for one more vote. Of ten writes six come from
A, three from B, one from C. In normal operation B votes after 30 ms:
6·(0 + 30) + 3·(30 + 30) + 1·(90 + 30) = 480. Without B, a mere follower, A waits 90 ms for C:
6·90 + 3·120 + 1·180 = 1080. Without A, B leads and waits 70 ms for C: 6·100 + 3·70 + 1·140 = 950,
and C as leader gives 1450. Without C nothing changes. The loss of B is the worst case.

>>> import placement
>>> from placement import Configuration, Instance, Operation, Problem
>>> rtt = [[0, 30, 90], [30, 0, 70], [90, 70, 0]]
>>> write = Operation("write", direct=1, quorum=1)
>>> names = ["A", "B", "C"]
>>> three = Instance(names, names, rtt, rtt, operations=[write], counts=[[6], [3], [1]])
>>> problem = Problem(three, replicas=3, voters=3, objective=placement.Contingency())
>>> plan = Configuration.of(0, voters=(0, 1, 2), replicas=(0, 1, 2))
>>> [score_after(problem, plan, [lost]) for lost in range(3)]
[{1: 950.0, 2: 1450.0}, {0: 1080.0}, {0: 480.0}]
>>> problem.objective.value(problem, plan)  # the worst loss: that of B, by operation
108.0
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.evaluation.objective import quorum_size, score_of
from placement.evaluation.score import closest_first, overhead, score, score_many
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.model.configuration import Configuration
from placement.model.demand import Demand
from placement.support.checks import FloatArray, IntArray

if TYPE_CHECKING:
    from placement.problem import Problem


@dataclass(frozen=True, slots=True)
class Loss:
    """A set of sites that fail together."""

    name: str  #: of the site or domain (or pair) that is lost
    sites: frozenset[int]  #: site indices F


@dataclass(frozen=True, slots=True)
class Survivors:
    """The part of a plan that a loss leaves."""

    #: those who may lead, site indices: the leader alone if it survives and stays
    leaders: tuple[int, ...]
    #: `voters`, `replicas`: site indices
    voters: tuple[int, ...]
    replicas: tuple[int, ...]
    quorum: int  #: votes that a commit waits for, as before the loss


@dataclass(frozen=True, slots=True)
class Failure:
    """Effect of one loss on a plan."""

    lost: str  #: name of the loss
    survives: bool  #: whether enough voters remain to commit
    leader: str | None  #: leader after the loss: the old one if it survives, else the best new one
    mean_latency: float  #: ms, with that leader; infinite when the service is lost
    #: `worst_leader`, `worst_latency`: the worst leader an election could give, and the mean
    #: latency with it
    worst_leader: str | None
    worst_latency: float
    overhead: float  #: of `mean_latency` over the normal one, in %


@dataclass(frozen=True, slots=True)
class Failures:
    """All losses of one kind."""

    level: str  #: the failure-domain level, "site" for single sites
    normal: float  #: mean latency without a loss, ms
    #: one row per loss that is noticed (it hits a replica, or clients who move), in site order
    each: tuple[Failure, ...]
    #: voters in the order in which they should take over when the leader's site is lost, best
    #: first, with the mean latency each then gives
    failover: tuple[tuple[str, float], ...]
    #: `together`, `leader_may_move`, `clients_move`: as in failures
    together: int = 1
    leader_may_move: bool = False
    clients_move: bool = False

    @property
    def worst(self) -> Failure | None:
        """The loss with the largest mean latency; None when no loss is noticed."""
        return max(self.each, key=lambda f: f.mean_latency, default=None)

    @property
    def what(self) -> str:
        """Return the kind of a loss in words."""
        return f"two of level {self.level}" if self.together == 2 else f"one {self.level}"

    def describe(self) -> str:
        """Return the lost sites and the clients that may move after the loss, in words."""
        what = f"{self.what} {'are' if self.together == 2 else 'is'} lost"
        if self.leader_may_move:
            what += ", the leader may move"
        if self.clients_move:
            what += ", its clients turn to the closest surviving site"
        return what


def losses(problem: Problem, level: str = "site", *, together: int = 1) -> tuple[Loss, ...]:
    """Losses of `together` domains of a level at once, in the order of the domains.

    InputError for an unknown level, and for one with fewer than `together` domains.
    """
    labels = problem.instance.labels(level)
    domains = len({label for label in labels if label is not None})
    if domains < together:
        raise InputError(
            f"no loss of {together} domains is possible: the level {level!r} has {domains}",
            field="together" if domains else "level",
            value=together if domains else level,
            expected=f"at most {domains}" if domains else "a level with labels",
        )
    return _losses_of(tuple(labels), together)


@functools.lru_cache(maxsize=8)
def _losses_of(labels: tuple[str | None, ...], together: int) -> tuple[Loss, ...]:
    """Return the losses of labels; there may be 100,000 pairs, so the last answers are kept."""
    members: dict[str, set[int]] = {}
    for site, label in enumerate(labels):
        if label is not None:
            members.setdefault(label, set()).add(site)
    return tuple(
        Loss(" + ".join(names), frozenset().union(*(members[name] for name in names)))
        for names in itertools.combinations(members, together)
    )


def survivors(
    problem: Problem,
    configuration: Configuration,
    lost: Iterable[int],
    *,
    leader_may_move: bool = False,
) -> Survivors | None:
    """Return the replicas and voters that survive the loss of some sites; None: no service.

    With `leader_may_move`, a leader that survives may hand over to a better one. Voters that may
    not lead by the problem's leader candidates are among the leaders only when no candidate
    survives. A witness never leads.
    """
    gone = frozenset(lost)
    voters = tuple(v for v in configuration.voters if v not in gone)
    replicas = tuple(r for r in configuration.replicas if r not in gone)
    holding = tuple(v for v in sorted(voters) if v in replicas)
    if not holding:
        return None
    quorum = quorum_size(problem, configuration)
    if len(voters) < quorum:
        return None
    leaders: tuple[int, ...] = (configuration.leader,)
    if configuration.leader not in voters or leader_may_move:
        able = tuple(v for v in holding if problem.rules.may_lead[v])
        leaders = able or holding
    return Survivors(leaders, voters, replicas, quorum)


def score_after(
    problem: Problem,
    configuration: Configuration,
    lost: Iterable[int],
    *,
    leader_may_move: bool = False,
    clients_move: bool = False,
) -> dict[int, float]:
    """Score in ms·operations of every leader of :func:`survivors`; empty when the service is lost.

    With `clients_move`, clients at lost sites turn to the closest surviving site. UnsupportedError
    for operations with waits.
    """
    if problem.demand.waits:
        refuse_waits(problem, "a loss")
    gone = frozenset(lost)
    left = survivors(problem, configuration, gone, leader_may_move=leader_may_move)
    if left is None:
        return {}
    demand = demand_after(problem, gone) if clients_move else problem.demand
    return {
        ell: score(demand, ell, left.voters, left.replicas, left.quorum) for ell in left.leaders
    }


def moving_clients(problem: Problem, lost: Iterable[int]) -> tuple[int, ...]:
    """Return the indices of the clients that have the name of a lost site."""
    instance = problem.instance
    names = {instance.sites[site] for site in lost}
    return tuple(c for c, name in enumerate(instance.clients) if name in names)


def unnoticed(
    problem: Problem,
    configuration: Configuration,
    lost: frozenset[int],
    *,
    clients_move: bool = False,
) -> bool:
    """Return whether a loss hits neither a replica nor, where clients move, a client."""
    if not (lost.isdisjoint(configuration.replicas) and lost.isdisjoint(configuration.voters)):
        return False
    return not (clients_move and moving_clients(problem, lost))


def demand_after(problem: Problem, gone: frozenset[int]) -> Demand:
    """Return the demand with the clients of lost sites served from the closest surviving site.

    E[f, j] = d[f, c(f)] + d[c(f), j], see the module; ties of c(f) go to the first site. Clients
    stay where no site survives. O(K·F·S).
    """
    demand = problem.demand
    moving = moving_clients(problem, gone)
    alive = np.setdiff1d(np.arange(demand.site_rtt.shape[-1]), list(gone))
    if not (alive.size and moving):
        return demand
    rtt = demand.client_rtt.copy()
    for client, k in itertools.product(moving, range(demand.scenarios)):
        near = int(alive[closest_first(rtt[k, client, alive])[0]])
        rtt[k, client] = rtt[k, client, near] + demand.site_rtt[k, near]
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
    """Evaluate a configuration under every loss of `together` domains of a level.

    Options as in :func:`score_after`. O(losses · |V| · C · |R|).
    """
    rate = problem.demand.operations
    names = problem.instance.sites
    normal = score_of(problem, configuration) / rate

    after = functools.partial(
        score_after,
        problem,
        configuration,
        leader_may_move=leader_may_move,
        clients_move=clients_move,
    )
    rows = []
    for loss in losses(problem, level, together=together):
        if unnoticed(problem, configuration, loss.sites, clients_move=clients_move):
            continue
        scores = after(loss.sites)
        if not scores:
            rows.append(Failure(loss.name, False, None, math.inf, None, math.inf, math.inf))
            continue
        best, worst = min(scores, key=scores.__getitem__), max(scores, key=scores.__getitem__)
        latency = scores[best] / rate
        elected = (names[worst], scores[worst] / rate, overhead(latency, normal))
        rows.append(Failure(loss.name, True, names[best], latency, *elected))
    scores = after([configuration.leader])
    ranked = sorted(scores, key=lambda ell: (scores[ell], ell))
    failover = tuple((names[ell], scores[ell] / rate) for ell in ranked)
    kind = (together, leader_may_move, clients_move)
    return Failures(level, normal, tuple(rows), failover, *kind)


def scores_after_many(
    problem: Problem,
    configurations: Sequence[Configuration],
    lost: Iterable[int],
    normal: FloatArray,
    *,
    leader_may_move: bool = False,
    clients_move: bool = False,
) -> FloatArray:
    """Return the score after a loss under the best leader, shape (n,); infinite without service.

    As :func:`score_after`, for n configurations. `normal` are the scores without a loss: a
    configuration that does not notice the loss keeps its score. O(n · clients · members), in NumPy,
    and as many times as leaders may take over.
    """
    gone = frozenset(lost)
    found = normal.copy()
    alike: dict[tuple[int, int], list[int]] = {}
    for row, one in enumerate(configurations):
        if not unnoticed(problem, one, gone, clients_move=clients_move):
            alike.setdefault((len(one.replicas), len(one.voters)), []).append(row)
    if not alike:
        return found
    demand = demand_after(problem, gone) if clients_move else problem.demand
    client_rtt, site_rtt = demand.client_rtt.copy(), demand.site_rtt.copy()
    client_rtt[..., list(gone)] = site_rtt[..., list(gone)] = math.inf
    demand = dataclasses.replace(demand, client_rtt=client_rtt, site_rtt=site_rtt)
    alive = np.ones(len(problem.instance.sites), dtype=bool)
    alive[list(gone)] = False
    for rows in alike.values():
        some = [configurations[row] for row in rows]
        quorum = quorum_size(problem, some[0])
        leader: IntArray = np.array([one.leader for one in some], dtype=np.intp)
        voters: IntArray = np.array([one.voters for one in some], dtype=np.intp)
        replicas: IntArray = np.array([one.replicas for one in some], dtype=np.intp)
        able = alive[voters]
        serves = able.sum(axis=1) >= quorum
        stays = serves & alive[leader] & (not leader_may_move)
        moving = np.nonzero(serves & ~stays)[0]
        preferred = able[moving] & problem.rules.may_lead[voters[moving]]
        may = np.where(preferred.any(axis=1, keepdims=True), preferred, able[moving])
        each, place = np.nonzero(may)
        chosen = np.concatenate([np.nonzero(stays)[0], moving[each]])
        leaders = np.concatenate([leader[stays], voters[moving[each], place]])
        values = np.full(len(rows), math.inf)
        if len(chosen):
            v, r = voters[chosen], replicas[chosen]
            scores = score_many(demand, leaders, v, r, quorum)
            np.minimum.at(values, chosen, scores)
        found[rows] = values
    return found

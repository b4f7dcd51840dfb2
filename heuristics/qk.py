"""Quorum, then K-means (method ``qk``): leader and quorum first, the other replicas around them.

Algorithm 5 of Sharov et al., PVLDB 8(12), 2015, section 5. For every candidate leader ℓ ∈ S:

    Q_ℓ = the m sites closest to ℓ, itself included      m = majority(v), q_ℓ the farthest of them
    G_ℓ = weighted-k-means(Q_ℓ fixed, n)                 Algorithm 3 with the costs of Eq. 1
    score_ℓ = agg_score(ℓ, G_ℓ, q_ℓ)

The best ℓ leads; V is Q_ℓ and the v − m other replicas closest to ℓ.

Under rules, Q_ℓ is the quorum of the best voter set that all of S could give ℓ (caps that bind
replicas bind it, and it leaves room for the pinned sites), so that it can always be extended to v
voters; when the replicas found around it still break a rule, the feasible configuration with
leader ℓ that keeps most of them is taken. For a range of |R| the best size wins.

O(|S|·rounds·C·n·S) for each size.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from heuristics.fallback import nearby, no_plan, sizes
from heuristics.kmeans import kmeans
from heuristics.room import Room
from heuristics.terms import Terms, terms_of, total_operations
from placement.configuration import Configuration
from placement.constraints import GroupRule, Rules
from placement.errors import LimitError
from placement.feasibility import complete, violations
from placement.methods import Method, Options, Progress
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.status import Termination
from placement.voting import best_voters

__all__ = ["METHOD", "Search", "quorum_of", "quorum_then_kmeans", "search", "solve"]


def quorum_of(problem: Problem, leader: int, size: int) -> tuple[int, ...] | None:
    """Q_ℓ: the m members that answer first of the best voter set in all of S; None: no such set.

    Parameters
    ----------
    problem
        The question.
    leader
        Site index, a candidate leader.
    size
        |R|, which limits how many voters may lie outside the pinned sites.
    """
    rules = problem.rules
    order = nearby(problem, leader)
    if _closest_may_vote(problem):
        closest = [site for site in order if rules.may_vote[site] and site != leader]
        return (leader, *closest[: rules.quorum - 1]) if len(closest) >= rules.voters - 1 else None
    rules = _as_voters(rules, size)
    voters = best_voters(problem.demand, rules, leader, np.nonzero(rules.may_hold)[0])
    if voters is None:
        return None
    rank = {site: place for place, site in enumerate(order)}
    return tuple(sorted(voters, key=lambda site: rank[site])[: rules.quorum])


def _closest_may_vote(problem: Problem) -> bool:
    """Whether the best voters of a leader are simply those closest to it."""
    rules = problem.rules
    return not rules.groups and problem.demand.scenarios == 1 and not rules.must_hold.any()


def _voters(problem: Problem, leader: int, replicas: tuple[int, ...]) -> tuple[int, ...] | None:
    """Best voters of `leader` among `replicas`, without the general machinery where it can be."""
    rules = problem.rules
    if not _closest_may_vote(problem):
        return best_voters(problem.demand, rules, leader, replicas)
    able = [site for site in replicas if rules.may_vote[site] and site != leader]
    if len(able) < rules.voters - 1 or leader not in replicas:
        return None
    waits = problem.demand.site_rtt[0, leader, able]
    closest = np.argsort(waits, kind="stable")[: rules.voters - 1]
    return (leader, *(able[i] for i in closest.tolist()))


def _as_voters(rules: Rules, size: int) -> Rules:
    """Rules with which voters alone obey what the replicas they belong to must obey."""
    groups: list[GroupRule] = [
        *rules.of("voters"),
        *(
            dataclasses.replace(group, role="voters", min_domains=None)
            for group in rules.of("replicas")
            if group.cap is not None
        ),
    ]
    spare = size - int(rules.must_hold.sum())
    may_vote = rules.may_vote
    if spare == 0:
        may_vote = may_vote & rules.must_hold
    elif spare < rules.voters and (may_vote & ~rules.must_hold).any():
        # Voters outside the pinned sites share one domain that holds `spare`; each pinned site has
        # a domain of its own.
        labels = np.where(rules.must_hold, np.cumsum(rules.must_hold), 0)
        names = tuple(map(str, range(int(labels.max()) + 1)))
        why = f"{size} replicas hold the pinned sites"
        groups.append(GroupRule("voters", "pinned", labels, names, spare, None, why))
    return dataclasses.replace(
        rules, groups=tuple(groups), may_vote=may_vote, may_lead=rules.may_lead & may_vote
    )


def quorum_then_kmeans(
    problem: Problem, terms: Terms, leader: int, size: int
) -> Configuration | None:
    """Lines 5 to 8 of Algorithm 5 for one leader and |R|; None when it has no configuration.

    Parameters
    ----------
    problem
        The question.
    terms
        Of the problem, with every client.
    leader
        Site index, a candidate leader.
    size
        |R|.

    Raises
    ------
    LimitError
        When the search for a feasible completion gives up.
    """
    quorum = quorum_of(problem, leader, size) or (leader,)
    fixed = {leader, *quorum, *np.nonzero(problem.rules.must_hold)[0].tolist()}
    centroids: tuple[int, ...] = tuple(fixed)
    if len(fixed) <= size:
        centroids = kmeans(
            terms.summand(leader),
            terms.rtt,
            terms.order,
            total_operations(problem),
            fixed,
            Room(problem, size, leader),
            terms.money[leader],
        )
    if len(centroids) == size:
        voters = _voters(problem, leader, centroids)
        if voters is not None:
            configuration = Configuration.of(leader, voters, centroids)
            if not violations(problem, configuration):
                return configuration
    wanted = [*quorum, *centroids]
    close = [site for site in nearby(problem, leader) if site not in wanted]
    return complete(problem, leader, [*wanted, *close], size)


@dataclasses.dataclass
class Search:
    """What Algorithm 5 has found when it ends or is stopped.

    Attributes
    ----------
    found
        The configuration of every leader and |R| that has one.
    termination
        Why it stopped.
    """

    found: list[Configuration] = dataclasses.field(default_factory=list)
    termination: Termination = Termination.FINISHED


def search(problem: Problem, options: Options) -> Search:
    """Run lines 4 to 8 of Algorithm 5 for every candidate leader and |R|; anytime.

    Raises
    ------
    LimitError
        When the search for a feasible completion gave up on some leader and no leader has a plan.
    """
    result = Search()
    gave_up: LimitError | None = None
    started = time.perf_counter()
    leaders = np.nonzero(problem.rules.may_lead)[0].tolist()
    try:
        terms = terms_of(problem, everyone=True)
        for done, leader in enumerate(leaders):
            for size in sizes(problem):
                try:
                    configuration = quorum_then_kmeans(problem, terms, leader, size)
                except LimitError as error:
                    gave_up = error
                    continue
                if configuration is not None:
                    result.found.append(configuration)
            seconds = time.perf_counter() - started
            options.report(Progress(seconds, done=done + 1, total=len(leaders)))
            if options.time_limit is not None and seconds > options.time_limit:
                if done + 1 < len(leaders):
                    result.termination = Termination.TIME_LIMIT
                break
    except KeyboardInterrupt:
        result.termination = Termination.INTERRUPTED
    if not result.found and gave_up is not None and result.termination is Termination.FINISHED:
        raise gave_up
    return result


def solve(problem: Problem, options: Options) -> Plan:
    """Run Algorithm QK."""
    result = search(problem, options)
    best = cheapest(problem, result.found)
    if best is None and result.termination is Termination.FINISHED:
        return no_plan(problem, METHOD.name)
    return Plan.of(problem, best, method=METHOD.name, termination=result.termination)


METHOD = Method(
    name="qk",
    call=solve,
    summary="tier 3 heuristic: a leader's quorum, then replicas by K-means (Algorithm 5)",
    exact=False,
    complexity="O(rounds·C·|R|·|S|²)",
    reference="Sharov et al. 2015, Algorithm 5",
)

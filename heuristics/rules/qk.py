"""Quorum, then K-means (method ``qk``): leader and quorum first, the other replicas around them.

Algorithm 5 of Sharov et al., PVLDB 8(12), 2015, section 5. For every candidate leader ℓ ∈ S:

    Q_ℓ = the m sites closest to ℓ, itself included      m = majority(v), q_ℓ the farthest of them
    G_ℓ = weighted-k-means(Q_ℓ fixed, n)                 Algorithm 3 with the costs of Eq. 1
    score_ℓ = agg_score(ℓ, G_ℓ, q_ℓ)

The best ℓ leads; V is Q_ℓ and the v − m other replicas closest to ℓ.

Under rules, Q_ℓ is the quorum of the best voter set that all of S could give ℓ. (Caps on replicas
bind it, and it leaves room for the pinned sites.) It can therefore always be extended to v voters.
If the replicas found around it still break a rule, the feasible configuration with leader ℓ that
keeps most of them is taken. For a range of |R| the best size wins.

O(|S|·rounds·C·n·S) for each size.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence

import numpy as np

from heuristics import tuning
from heuristics.completion import (
    AdmissibleSites,
    infeasible_plan,
    replica_counts,
    sites_by_distance,
)
from heuristics.objective_terms import ObjectiveTerms, objective_terms, total_operations
from heuristics.weighted_kmeans import kmeans_of_each
from placement.errors import LimitError
from placement.evaluation.score import closest_first
from placement.evaluation.voter_choice import best_voters_of_each, by_answer_time
from placement.feasibility.feasible_plans import complete_configuration, violations
from placement.methods.options import Options, Progress
from placement.methods.registry import Method
from placement.model.configuration import Configuration
from placement.model.constraints import GroupRule, Rules
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.support.status import Termination, end_early, in_time


def quorum_of(problem: Problem, leader: int, size: int) -> tuple[int, ...] | None:
    """Return Q_ℓ, the m first members to answer of the best voter set in S; None without a set."""
    return quorums_of(problem, [leader], size)[0]


def quorums_of(problem: Problem, leaders: Sequence[int], size: int) -> list[tuple[int, ...] | None]:
    """Q_ℓ of many candidate leaders, each as :func:`quorum_of` gives it.

    O(L·S²) for L leaders under caps on nested levels, O(L·S log S) without rules.
    """
    rules = problem.rules
    if _closest_may_vote(problem):
        others = np.where(rules.may_vote, problem.demand.site_rtt[0, leaders], np.inf)
        others[np.arange(len(leaders)), leaders] = np.inf
        enough = np.isfinite(others).sum(axis=1) >= rules.voters - 1
        closest = closest_first(others)[:, : rules.quorum - 1].tolist()
        return [
            (leader, *sites) if able else None
            for leader, sites, able in zip(leaders, closest, enough.tolist(), strict=True)
        ]
    rules = _as_voters(rules, size)
    holders = np.nonzero(rules.may_hold)[0].tolist()
    voters = best_voters_of_each(problem.demand, rules, leaders, [holders] * len(leaders))
    return [
        None if chosen is None else by_answer_time(problem.demand, leader, chosen)[: rules.quorum]
        for leader, chosen in zip(leaders, voters, strict=True)
    ]


def _closest_may_vote(problem: Problem) -> bool:
    """Return whether the best voters of a leader are always the closest replicas."""
    rules = problem.rules
    return not rules.groups and problem.demand.scenarios == 1 and not rules.must_hold.any()


def _as_voters(rules: Rules, size: int) -> Rules:
    """Return rules in which the voters also obey the caps of the replicas."""
    groups: list[GroupRule] = [
        *rules.of("voters"),
        *(group.caps_only("voters") for group in rules.of("replicas") if group.cap is not None),
    ]
    spare = size - int(rules.must_hold.sum())
    may_vote = rules.may_vote
    if spare == 0:
        may_vote = may_vote & rules.must_hold
    elif spare < rules.voters and (may_vote & ~rules.must_hold).any():
        # Voters outside the pinned sites share one domain that holds `spare`; each pinned site has
        # a separate domain.
        labels = np.where(rules.must_hold, np.cumsum(rules.must_hold), 0)
        names = tuple(map(str, range(int(labels.max()) + 1)))
        why = f"{size} replicas hold the pinned sites"
        groups.append(GroupRule("pinned", "voters", labels, names, spare, None, why))
    return dataclasses.replace(
        rules, groups=tuple(groups), may_vote=may_vote, may_lead=rules.may_lead & may_vote
    )


def quorum_then_kmeans(
    problem: Problem, terms: ObjectiveTerms, leader: int, size: int
) -> Configuration | None:
    """Lines 5 to 8 of Algorithm 5 for one leader and |R|; None when it has no configuration."""
    return _with_voters(problem, _proposals(problem, terms, [leader], size)[0])


@dataclasses.dataclass(frozen=True)
class _Proposal:
    """Proposal of quorum and K-means for a leader and |R|, with its best voters, if any."""

    leader: int
    size: int
    quorum: tuple[int, ...]
    centroids: tuple[int, ...]
    voters: tuple[int, ...] | None = None


def _proposals(
    problem: Problem, terms: ObjectiveTerms, leaders: Sequence[int], size: int
) -> list[_Proposal]:
    """Lines 5 to 7 of Algorithm 5 for some leaders at once."""
    pinned = np.nonzero(problem.rules.must_hold)[0].tolist()
    proposals = []
    fixed = np.zeros((len(leaders), terms.sites), dtype=bool)
    quorums = quorums_of(problem, leaders, size)
    for row, (leader, found) in enumerate(zip(leaders, quorums, strict=True)):
        quorum = found or (leader,)
        fixed[row, [leader, *quorum, *pinned]] = True
        proposals.append(_Proposal(leader, size, quorum, tuple(np.nonzero(fixed[row])[0].tolist())))
    fit = [row for row, proposal in enumerate(proposals) if len(proposal.centroids) <= size]
    if not fit:
        return proposals
    able = np.array(leaders)[fit]
    centroids = kmeans_of_each(
        np.array([terms.summand(leader) for leader in able.tolist()]),
        terms.rank,
        terms.order,
        total_operations(problem),
        fixed[fit],
        AdmissibleSites(problem, size, able),
        terms.money[able],
    )
    full = [row for row, sites in zip(fit, centroids, strict=True) if len(sites) == size]
    sets = [sites for sites in centroids if len(sites) == size]
    led = [leaders[row] for row in full]
    voters = dict(
        zip(full, best_voters_of_each(problem.demand, problem.rules, led, sets), strict=True)
    )
    for row, sites in zip(fit, centroids, strict=True):
        proposals[row] = dataclasses.replace(
            proposals[row], centroids=sites, voters=voters.get(row)
        )
    return proposals


def _with_voters(problem: Problem, proposal: _Proposal) -> Configuration | None:
    """Line 8: the proposal with its voters, or the plan that keeps most of it; None without one."""
    leader, rules = proposal.leader, problem.rules
    if proposal.voters is not None:
        configuration = Configuration.of(leader, proposal.voters, proposal.centroids)
        # the best voters obey what binds voters, K-means heeds pins and forbidden sites
        bound = (
            rules.of("replicas") or rules.budget is not None or not problem.objective.minimises_mean
        )
        if not bound or not violations(problem, configuration):
            return configuration
    wanted = [*proposal.quorum, *proposal.centroids]
    close = [site for site in sites_by_distance(problem, leader) if site not in wanted]
    return complete_configuration(problem, leader, [*wanted, *close], proposal.size)


@dataclasses.dataclass
class QkResult:
    """Result of Algorithm 5 when it ends or is stopped."""

    #: the configuration of every leader and |R| that has one
    found: list[Configuration] = dataclasses.field(default_factory=list)
    termination: Termination = Termination.FINISHED  #: why it stopped


def search(problem: Problem, options: Options) -> QkResult:
    """Run lines 4 to 8 of Algorithm 5 for every candidate leader and |R|; anytime.

    LimitError when the search gave up on some leader and no leader has a plan.
    """
    result = QkResult()
    gave_up: LimitError | None = None
    started = time.perf_counter()
    leaders = np.nonzero(problem.rules.may_lead)[0].tolist()
    with end_early(result):
        terms = objective_terms(problem, everyone=True)
        for done, proposals in enumerate(_by_leader(problem, terms, leaders)):
            for proposal in proposals:
                try:
                    configuration = _with_voters(problem, proposal)
                except LimitError as error:
                    gave_up = error
                    continue
                if configuration is not None:
                    result.found.append(configuration)
            seconds = time.perf_counter() - started
            options.report(Progress(seconds, done=done + 1, total=len(leaders)))
            if done + 1 < len(leaders):
                in_time()
    if not result.found and gave_up is not None and result.termination is Termination.FINISHED:
        raise gave_up
    return result


def _by_leader(
    problem: Problem, terms: ObjectiveTerms, leaders: list[int]
) -> Iterator[list[_Proposal]]:
    """Proposals of every |R| for one leader after the other, worked out for many at a time."""
    step = max(1, tuning.QUORUM_BLOCK // max(1, terms.sites * len(terms.rank)))
    for first in range(0, len(leaders), step):
        some = leaders[first : first + step]
        by_size = list[list[_Proposal]]()
        try:
            for size in replica_counts(problem):
                if by_size:
                    in_time()
                by_size.append(_proposals(problem, terms, some, size))
        except TimeoutError:
            yield from map(list, zip(*by_size, strict=True))
            raise
        yield from map(list, zip(*by_size, strict=True))


def solve(problem: Problem, options: Options) -> Plan:
    """Run Algorithm QK."""
    result = search(problem, options)
    best = cheapest(problem, result.found)
    if best is None and result.termination is Termination.FINISHED:
        return infeasible_plan(problem, METHOD.name)
    return Plan.of(problem, best, method=METHOD.name, termination=result.termination)


METHOD = Method(
    name="qk",
    call=solve,
    summary="tier 3 heuristic: a leader's quorum, then replicas by K-means (Algorithm 5)",
    complexity="O(rounds·C·|R|·|S|²)",
    reference="Sharov et al. 2015, Algorithm 5",
)

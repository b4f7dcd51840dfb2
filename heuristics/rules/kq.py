"""K-means, then quorum (method ``kq``): replicas near the clients first, roles among them after.

Algorithm 4 of Sharov et al., PVLDB 8(12), 2015, section 5:

    G      = weighted-k-means(∅, n)        Algorithm 3 on all operations of each client
    (λ, V) = tier-2-efficient(G, v)        Algorithm 2

Pinned sites are fixed centroids. Under rules about voters, domains or money the centroids move
only where the rules leave room; when the set still admits no roles, the feasible configuration
that keeps most of it is taken. For a range of |R| the best size wins. O(rounds·C·n·S + C·n²) for
each size.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heuristics.completion import AdmissibleSites, closest_feasible, infeasible_plan, replica_counts
from heuristics.objective_terms import ObjectiveTerms, objective_terms, total_operations
from heuristics.rules.tier2 import best_roles
from heuristics.weighted_kmeans import kmeans
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.model.configuration import Configuration
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.support.status import SearchEnd, end_early, in_time


def kmeans_then_quorum(problem: Problem, terms: ObjectiveTerms, size: int) -> Configuration | None:
    """Algorithm 4 for one |R|; None when no configuration of that size obeys all rules."""
    weights = total_operations(problem)
    fixed = np.nonzero(problem.rules.must_hold)[0].tolist()
    summand = weights[:, np.newaxis] * terms.rtt
    # the leader is not known yet: a site counts with the least that it costs under any
    price = terms.money[problem.rules.may_lead].min(axis=0)
    room = AdmissibleSites(problem, size)
    centroids = kmeans(summand, terms.rank, terms.order, weights, fixed, room, price)
    roles = best_roles(problem, list(centroids)) if len(centroids) == size else None
    return closest_feasible(problem, centroids, size) if roles is None else roles


def of_each_size(problem: Problem) -> Iterator[Configuration]:
    """Yield the configuration of Algorithm 4 for every |R| of the range that has one."""
    terms = objective_terms(problem, everyone=True)
    for size in replica_counts(problem):
        if size > problem.rules.replicas_min:
            in_time()
        found = kmeans_then_quorum(problem, terms, size)
        if found is not None:
            yield found


def solve(problem: Problem, options: Options) -> Plan:
    """Run Algorithm KQ; at a limit or after Ctrl-C the sizes so far count."""
    del options
    search, found = SearchEnd(), list[Configuration]()
    with end_early(search):
        found.extend(of_each_size(problem))
        if not found:
            return infeasible_plan(problem, METHOD.name)
    best = cheapest(problem, found)
    return Plan.of(problem, best, method=METHOD.name, termination=search.termination)


METHOD = Method(
    name="kq",
    call=solve,
    summary="tier 3 heuristic: replicas by K-means, then leader and voters (Algorithm 4)",
    complexity="O(rounds·C·|R|·|S|)",
    reference="Sharov et al. 2015, Algorithm 4",
)

"""p-median first, leader after (method ``p-median-first``): a baseline.

The approach of a planner with a facility-location package. Place the replicas so that all
operations are close to one, min Σ_c w_c·d(c, nearest(c, R)) with w_c all operations of c. Only then
choose voters and leader among them (Algorithm 2). The p-median is found by vertex substitution
(Teitz and Bart, Operations Research 16(5), 1968) with best improvement from a greedy start, or from
a feasible one under rules. It is a local optimum, as in the heuristics of those packages.

The set must admit roles, so one site in it is held as if it led: the substitution runs for every
candidate at once, and the set of least p-median cost over all of them is taken. O(steps·S·C·S).
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable

import numpy as np

from heuristics.admissible_sites import AdmissibleSites
from heuristics.completion import closest_feasible, infeasible_plan, replica_counts
from heuristics.local_search.greedy_starts import grow_sets
from heuristics.local_search.steepest_descent import SteepestDescent
from heuristics.local_search.swap_neighbourhood import Pairs, SwapNeighbourhood
from heuristics.objective_terms import ObjectiveTerms, objective_terms, total_operations
from heuristics.tier2 import best_roles
from placement.errors import LimitError
from placement.feasibility.feasible_plans import complete_configuration
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.model.configuration import Configuration
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.support.status import SearchEnd, Termination, end_early

__all__ = ["METHOD", "p_median", "solve"]


def p_median(
    problem: Problem, size: int, stop: Callable[[], bool] = lambda: False
) -> tuple[int, ...] | None:
    """Replica sites for the p-median of all operations, in site order; None when nothing was found.

    Parameters
    ----------
    problem
        The question; its rules are obeyed, with some leader.
    size
        |R|.
    stop
        Asked between steps; true ends the substitution with the best set so far.

    Raises
    ------
    TimeoutError
        When `stop` says so before the first sets are complete.
    """
    exactly = dataclasses.replace(problem.rules, replicas_min=size, replicas_max=size)
    terms = _without_leader(problem)
    neighbourhood = SwapNeighbourhood(problem, terms, exactly)
    width = size + 1
    leaders = np.nonzero(exactly.may_lead)[0]
    leaders = leaders[exactly.must_hold.sum() + ~exactly.must_hold[leaders] <= size]  # pins fit
    if AdmissibleSites(problem, size).free_of_rules:
        pairs = grow_sets(neighbourhood, leaders, size, width, quorum=False, stop=stop)
    else:
        pairs = _feasible(problem, leaders.tolist(), size, width)
    if not len(pairs):
        return None
    values = SteepestDescent(neighbourhood, stop).run(pairs)
    chosen = pairs.replicas[int(values.argmin())]
    return tuple(sorted(chosen[chosen < terms.sites].tolist()))


def _without_leader(problem: Problem) -> ObjectiveTerms:
    """Terms whose summand is w_c·d(c, r) and that see neither leader, votes nor money."""
    terms = objective_terms(problem, everyone=True)
    return dataclasses.replace(
        terms,
        near=total_operations(problem),
        relay=np.zeros_like(terms.relay),
        votes=np.zeros_like(terms.votes),
        direct=np.zeros_like(terms.direct),
        money=np.zeros_like(terms.money),
        paid=None,
    )


def _feasible(problem: Problem, leaders: list[int], size: int, width: int) -> Pairs:
    """A feasible set for every leader that has one."""
    none = len(problem.rules.may_hold)
    rows, found = [], []
    for leader in leaders:
        try:
            configuration = complete_configuration(problem, leader, (), size)
        except LimitError:
            continue
        if configuration is not None:
            found.append(leader)
            rows.append([*configuration.replicas] + [none] * (width - size))
    replicas = np.array(rows, dtype=np.intp).reshape(len(rows), width)
    return Pairs(np.array(found, dtype=np.intp), replicas)


def solve(problem: Problem, options: Options) -> Plan:
    """Place replicas by p-median, then choose roles."""
    limit = math.inf if options.time_limit is None else options.time_limit
    end = time.perf_counter() + limit
    search, found = SearchEnd(), list[Configuration]()
    with end_early(search):
        for size in replica_counts(problem):
            sites = p_median(problem, size, lambda: time.perf_counter() > end)
            roles = None if sites is None else best_roles(problem, list(sites))
            if roles is None:
                roles = closest_feasible(problem, sites or (), size)
            if roles is not None:
                found.append(roles)
            if time.perf_counter() > end:
                raise TimeoutError
    best = cheapest(problem, found)
    if best is None and search.termination is Termination.FINISHED:
        return infeasible_plan(problem, METHOD.name)
    return Plan.of(problem, best, method=METHOD.name, termination=search.termination)


METHOD = Method(
    name="p-median-first",
    call=solve,
    summary="baseline: replicas by p-median of all operations, then leader and voters",
    exact=False,
    complexity="O(steps·|S|²·C)",
    reference="Teitz and Bart 1968, then Sharov et al. 2015, Algorithm 2",
)

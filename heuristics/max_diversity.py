"""Replicas as far apart in the failure domains as possible (method ``max-diversity``): a baseline.

How CockroachDB's allocator spreads replicas without further instruction. Localities are compared
tier by tier, coarse to fine; the diversity of two sites that first differ at tier i of k is (k −
i)/k,

    1 for two continents, 0 for the same site

and replicas are added one by one, each with the greatest total diversity from those chosen
before. Ties go to the site where more operations arrive, then to site order. The first v are the
voters, if they may be; the site where most operations arrive leads, as its "follow the workload"
leases would. Tiers are the failure-domain levels of the instance, those with fewer domains first,
and the site itself. O(n·S·levels).
"""

from __future__ import annotations

import numpy as np

from heuristics.completion import complete_proposal, site_traffic
from placement.evaluation.score import closest_first
from placement.feasibility.feasible_plans import complete_configuration, violations
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray

__all__ = ["METHOD", "diversity", "solve", "spread_out"]


def diversity(instance: Instance) -> FloatArray:
    """Diversity of every two sites, in [0, 1], shape (sites, sites); O(S²·levels).

    A site without a domain at a level differs from every other site there.
    """
    size = len(instance.sites)
    tiers = sorted(
        (instance.labels(level) for level in instance.levels),
        key=lambda labels: len({label for label in labels if label is not None}),
    )
    result = np.zeros((size, size))
    for depth in range(len(tiers) - 1, -1, -1):
        codes = np.array(
            [
                f"={label}" if label is not None else f"?{site}"
                for site, label in enumerate(tiers[depth])
            ]
        )
        # a coarser tier overrules the finer ones, which have been written before
        result[codes[:, np.newaxis] != codes] = (len(tiers) - depth) / len(tiers)
    np.fill_diagonal(result, 0.0)
    return result


def spread_out(apart: FloatArray, arriving: FloatArray, first: int) -> tuple[int, ...]:
    """All sites in the order in which the rule adds them, beginning with `first`.

    Parameters
    ----------
    apart
        Diversity, shape (sites, sites).
    arriving
        Operations that arrive at each site, shape (sites,): breaks ties.
    first
        Site index.
    """
    order = [first]
    total = apart[first].copy()
    left = np.ones(len(apart), dtype=bool)
    left[first] = False
    while left.any():
        # sums of a few multiples of 1/k: rounding keeps equal totals equal
        keys = np.lexsort((-arriving, -np.round(total, 9), ~left))
        site = int(keys[0])
        order.append(site)
        left[site] = False
        total += apart[site]
    return tuple(order)


def solve(problem: Problem, options: Options) -> Plan:
    """Spread replicas over the domains, and lead from where most operations arrive."""
    del options
    apart, arriving = diversity(problem.instance), site_traffic(problem)
    leaders = closest_first(-arriving).tolist()
    rules = problem.rules

    def build(leader: int, size: int) -> Configuration | None:
        order = spread_out(apart, arriving, leader)
        found = complete_configuration(problem, leader, order, size)
        if found is None:
            return None
        voting = [site for site in order if site in found.replicas and rules.may_vote[site]]
        pinned_first = sorted(voting, key=lambda s: not (rules.must_vote[s] or s == leader))
        spread = Configuration.of(leader, pinned_first[: rules.voters], found.replicas)
        return found if violations(problem, spread) else spread

    return complete_proposal(problem, METHOD.name, lambda size: leaders, build)


METHOD = Method(
    name="max-diversity",
    call=solve,
    summary="baseline: replicas as diverse as possible in their failure domains",
    exact=False,
    complexity="O(|R|·|S|·levels)",
    reference="CockroachDB's allocator (locality diversity score)",
)

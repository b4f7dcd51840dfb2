"""Lead where most writes come from (method ``most-writes``): a baseline.

This is the habit of "primary region" databases (TiDB's MAJORITY_IN_PRIMARY is one name for it).
Every client's transactions are counted at its closest site, and the site with most of them leads.
The m − 1 sites closest to it complete the quorum, and the other replicas go where most operations
arrive. Without transactions the rule is undefined, and refuses. O(S·(C + log S)).
"""

from __future__ import annotations

from heuristics.completion import complete_proposal, site_traffic, sites_by_distance, writing
from placement.evaluation.score import closest_first
from placement.feasibility.feasible_plans import complete_configuration
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.plan import Plan
from placement.problem import Problem

__all__ = ["METHOD", "no_transactions", "solve"]


def no_transactions(problem: Problem) -> str | None:
    """Say that a rule about writes is undefined when no client writes."""
    writes = problem.demand.counts.sum(axis=(0, 1)) @ writing(problem)
    if writes > 0:
        return None
    return "it goes by where transactions come from, and no client issues any"


def solve(problem: Problem, options: Options) -> Plan:
    """Lead from the site of most writes, with its quorum and the busiest other sites."""
    del options
    rules = problem.rules
    leaders = closest_first(-site_traffic(problem, transactions=True)).tolist()
    busiest = closest_first(-site_traffic(problem)).tolist()

    def prefer(leader: int) -> list[int]:
        close = [s for s in sites_by_distance(problem, leader) if rules.may_vote[s] and s != leader]
        return [leader, *close[: rules.quorum - 1], *busiest]

    return complete_proposal(
        problem,
        METHOD.name,
        lambda size: leaders,
        lambda leader, size: complete_configuration(problem, leader, prefer(leader), size),
    )


METHOD = Method(
    name="most-writes",
    call=solve,
    summary="baseline: leader and majority where most writes come from, the rest where demand is",
    exact=False,
    refuses=no_transactions,
    complexity="O(|S|·(C + log |S|))",
    reference="primary-region placement, e.g. TiDB MAJORITY_IN_PRIMARY",
)

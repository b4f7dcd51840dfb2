"""Leader closest to the greatest writer (method ``closest-to-writes``): a strategy to compare with.

Sharov et al., PVLDB 8(12), 2015, section 6.1: the leader is the candidate with the smallest RTT
to the client that issues most transactions. That decides tier 1. In tier 2 the closest replicas
vote; in tier 3 the quorum is the closest sites and K-means places the other replicas, as in
Algorithm QK for this one leader. Demand is aggregated over the intervals of the problem. The
rule is undefined, and refuses, when there are no transactions. O(C + S), beside one run of
K-means in tier 3.
"""

from __future__ import annotations

from heuristics.completion import complete_proposal, mean_rtt, writing
from heuristics.most_writes import no_transactions
from heuristics.objective_terms import objective_terms
from heuristics.qk import quorum_then_kmeans
from placement.evaluation.score import closest_first
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.plan import Plan
from placement.problem import Problem

__all__ = ["METHOD", "greatest_writer", "solve"]


def greatest_writer(problem: Problem) -> int:
    """Client index of most transactions, the first of those that tie."""
    writes = problem.demand.counts.sum(axis=0) @ writing(problem)
    return int(writes.argmax())


def solve(problem: Problem, options: Options) -> Plan:
    """Lead from the candidate closest to the greatest writer."""
    del options
    client_rtt, _ = mean_rtt(problem)
    leaders = closest_first(client_rtt[greatest_writer(problem)]).tolist()
    terms = objective_terms(problem, everyone=True)
    return complete_proposal(
        problem,
        METHOD.name,
        lambda size: leaders,
        lambda leader, size: quorum_then_kmeans(problem, terms, leader, size),
    )


METHOD = Method(
    name="closest-to-writes",
    call=solve,
    summary="comparison strategy: the leader closest to the client that writes most",
    exact=False,
    refuses=no_transactions,
    complexity="O(C + |S|), and K-means in tier 3",
    reference="Sharov et al. 2015, section 6.1",
)

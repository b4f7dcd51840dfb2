"""Best-connected sites (method ``best-mean``): a baseline.

Replicas go to the n sites with the smallest mean RTT over all clients, and of these the one leads
that has the smallest mean over clients of

    t_ℓ(c) = d(c, ℓ) + q_ℓ(R)        q_ℓ(R) the m-th smallest RTT from ℓ to the replicas

the latency of a write as fantoch's planner (`fantoch_bote`) ranks leaders. Every client counts the
same, as it does there: the rule knows RTTs, and neither demand nor the mix of operations.
O(S·C + n²).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heuristics.completion import complete_proposal, mean_rtt
from placement.evaluation.score import closest_first
from placement.feasibility.feasible_plans import complete_configuration
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray

__all__ = ["METHOD", "solve", "well_connected"]


def well_connected(
    problem: Problem, method: str, badness: Callable[[FloatArray], FloatArray]
) -> Plan:
    """Replicas of smallest mean RTT, and the leader among them of least badness.

    Parameters
    ----------
    problem
        The question.
    method
        Name of the method.
    badness
        Write latency t_ℓ(c) of every client, shape (clients, sites) -> one number per leader,
        shape (sites,), smaller is better.
    """
    client_rtt, site_rtt = mean_rtt(problem)
    rules = problem.rules
    order = closest_first(client_rtt.mean(axis=0)).tolist()

    def leaders(size: int) -> list[int]:
        chosen = [site for site in order if rules.may_hold[site]][:size]
        voting = [site for site in chosen if rules.may_vote[site]]
        waits = np.zeros(len(order))
        for leader in range(len(order)):
            others = np.sort(site_rtt[leader, [s for s in voting if s != leader]])
            answers = np.append(0.0, others)  # the leader's own vote
            waits[leader] = answers[min(rules.quorum, len(answers)) - 1]
        ranked = closest_first(badness(client_rtt + waits)).tolist()
        return sorted(ranked, key=lambda site: site not in chosen)

    return complete_proposal(
        problem,
        method,
        leaders,
        lambda leader, size: complete_configuration(problem, leader, order, size),
    )


def solve(problem: Problem, options: Options) -> Plan:
    """Put replicas where the mean RTT is smallest, and lead from the best mean."""
    del options
    return well_connected(problem, METHOD.name, lambda latency: latency.mean(axis=0))


METHOD = Method(
    name="best-mean",
    call=solve,
    summary="baseline: the sites of smallest mean RTT, led by the one of smallest mean latency",
    exact=False,
    complexity="O(C·|S| + |R|²)",
    reference="fantoch_bote (vitorenesduarte/fantoch), leader by mean",
)

"""Fairest leader among the best-connected sites (method ``best-cov``): a baseline.

As ``best-mean``, but of the n sites of smallest mean RTT the one leads whose write latency
t_ℓ(c) = d(c, ℓ) + q_ℓ(R) has the smallest coefficient of variation over the clients,

    cov_ℓ = std_c t_ℓ(c) / mean_c t_ℓ(c)

the "fairness" by which fantoch's planner (`fantoch_bote`) can sort leaders. It divides by the
mean, so that a leader far from everybody looks fair. O(S·C + n²).
"""

from __future__ import annotations

import numpy as np

from heuristics.best_mean import well_connected
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray

__all__ = ["METHOD", "coefficient_of_variation", "solve"]


def coefficient_of_variation(latency: FloatArray) -> FloatArray:
    """Standard deviation over mean along the first axis; 0 where all values are 0.

    Examples
    --------
    >>> coefficient_of_variation(np.array([[1.0, 0.0], [3.0, 0.0]])).tolist()
    [0.5, 0.0]
    """
    mean = latency.mean(axis=0)
    spread = latency.std(axis=0)
    return np.asarray(np.divide(spread, mean, out=np.zeros_like(mean), where=mean > 0))


def solve(problem: Problem, options: Options) -> Plan:
    """Put replicas at the sites of smallest mean RTT; the replica of least variation leads."""
    del options
    return well_connected(problem, METHOD.name, coefficient_of_variation)


METHOD = Method(
    name="best-cov",
    call=solve,
    summary="baseline: the sites of smallest mean RTT, led by the one fairest to all clients",
    exact=False,
    complexity="O(C·|S| + |R|²)",
    reference="fantoch_bote (vitorenesduarte/fantoch), leader by coefficient of variation",
)

"""Default prices of moves, from the variability of the instance itself.

The mean latency of one configuration rises and falls with the demand. Let σ be its standard
deviation over the intervals of the instance, under the configuration that is best for all of them
together. A gain that is small against 2σ is within what the demand does by itself. So a change of
the leader and a copy to a new site cost 2σ ms each, and a vote given or taken σ: with a horizon of
H intervals, a change has to bring 2σ/H ms in each of them. Where no operation needs a leader, none
is handed over.
"""

from __future__ import annotations

import numpy as np

from placement.evaluation.objective import score_of
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.overtime.moves.move_prices import MovePrices
from placement.problem import Problem

__all__ = ["default_prices"]

_DEVIATIONS = 2.0


def default_prices(problem: Problem, method: str = "exact") -> MovePrices:
    """Return prices of moves from the demand of an instance; 0 with fewer than two intervals.

    Parameters
    ----------
    problem
        The question, with the demand of the past: one row of counts for each interval.
    method
        That finds the configuration which is best for all intervals together.

    Notes
    -----
    One search, and the score of each interval. Intervals without operations do not count.
    """
    instance = problem.instance
    counts = instance.counts[instance.counts.sum(axis=(1, 2)) > 0]
    if len(counts) < 2 or instance.varying_rtt:
        return MovePrices()
    together = problem.replace(instance=instance.replace(counts=counts.sum(axis=0), intervals=()))
    best = run(load_method(method), together, Options()).configuration
    if best is None:
        return MovePrices()
    means = []
    for one in counts:
        alone = problem.replace(instance=instance.replace(counts=one, intervals=()), decay=1.0)
        if alone.demand.operations > 0:
            means.append(score_of(alone, best) / alone.demand.operations)
    price = _DEVIATIONS * float(np.std(means)) if means else 0.0
    return MovePrices(leader=price, voter=price / 2, add=price)

"""Local search for a percentile with waits (``local-search``, percentile).

With waits a percentile is no sum over clients for each deadline, so that every move is evaluated.
A percentile is on a grid and flat almost everywhere. So a move counts by its percentile, then by
the share of operations that the next lower bin of the grid would leave late, then by the mean. The
search is that of :mod:`heuristics.local_search.neighbour_descent`. Without a bound.

One step costs O(|R|·S) evaluations of :func:`placement.tail.latency_mixture.mixture`.
"""

from __future__ import annotations

import math

from heuristics.local_search.neighbour_descent import Key, NeighbourDescent
from placement.errors import UnsupportedError
from placement.evaluation.objective import score_of
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Termination
from placement.tail.objective import Percentile

__all__ = ["solve"]


class _EvaluatedDescent(NeighbourDescent):
    """Keys: (0, percentile, share that is late one bin earlier, mean)."""

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        assert isinstance(problem.objective, Percentile)
        self.goal = problem.objective

    def value(self, configuration: Configuration, limit: Key) -> Key:
        """Return the key; `limit` is not needed."""
        del limit
        known = self.seen.get(configuration)
        if known is not None:
            return known
        self.evaluations += 1
        mean, value = score_of(self.problem, configuration), math.inf
        late = 1.0
        if math.isfinite(mean):
            value = self.goal.value(self.problem, configuration)
        if math.isfinite(value):
            before = round(value / self.goal.distributions.width)
            latency = self.goal.latency(self.problem, configuration)
            late = max(0.0, 1 - float(latency[:before].sum()))
        return self.know(configuration, (0.0, value, late, mean))


def solve(problem: Problem, options: Options) -> Plan:
    """Search, and return the best plan, of which nothing is proven.

    Raises
    ------
    UnsupportedError
        Where RTTs vary by interval.
    """
    assert isinstance(problem.objective, Percentile)
    if problem.objective.by_interval:
        raise UnsupportedError(
            "the local search cannot take a percentile of RTTs that vary by interval; use "
            "'exact', or 'leader' or 'tier2' with given replicas"
        )
    search = _EvaluatedDescent(problem, options)
    search.run()
    finished = search.termination is Termination.FINISHED
    nothing = search.best is None and finished
    return Plan.of(
        problem,
        search.best,
        method="local-search",
        termination=Termination.WORK_LIMIT if nothing else search.termination,
        notes=problem.objective.caveats(problem) if nothing else (),
        stats={"evaluations": search.evaluations, "restarts": search.restarts},
    )

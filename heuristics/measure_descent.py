"""Local search for questions of measures (``local-search``): limits, losses, and what is minimised.

Starts: the proven plan of least mean, and those under one more rule, at most one replica (or one
voter) per domain of each level: spread-out plans lose little at a time. From each of them steepest
descent over one change (:mod:`heuristics.local_search.neighbour_descent`) with the exact evaluator,
then seeded restarts. A plan that breaks limits is worth what it breaks them by, relative to each.

The bound is that of the mean where no value is below it: the mean, and the mean after losses.
"""

from __future__ import annotations

import math

from heuristics.completion import infeasible_plan
from heuristics.local_search.neighbour_descent import Key, NeighbourDescent
from placement.contingency.loss_question import LossQuestion
from placement.errors import LimitError
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.feasibility.feasible_plans import find_feasible
from placement.measures.measure import Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.measures.values import value
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Termination

_MEAN = Measure(MeasureKind.MEAN)


class _MeasureDescent(NeighbourDescent):
    """Keys: (what limits are broken by, value, mean)."""

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        assert isinstance(problem.objective, MeasureQuestion)
        self.goal = problem.objective
        implied = self.goal.diversity(problem.rules.voters, problem.rules.quorum)
        self.relaxed = self.relaxed.replace(diversity=(*problem.diversity, *implied))
        self.bound = 0.0
        self._losses = LossQuestion.of(problem)

    def take_bound(self, bound: float) -> None:
        """Take the bound on the mean, as far as it counts."""
        share = 1.0 if self.goal.aim == _MEAN else 0.0
        if self._losses is not None:
            share = self._losses.normal_share
        self.bound = max(0.0, share * bound / self.problem.demand.operations)

    def value(self, configuration: Configuration, limit: Key) -> Key:
        """(what limits are broken by, value, mean); infinite where the service stops."""
        known = self.seen.get(configuration)
        if known is not None:
            return known
        problem, goal, broken = self.problem, self.goal, 0.0
        mean = score_of(problem, configuration)
        usual = mean / problem.demand.operations
        if self._losses is not None and self._losses.goal == "worst" and usual > limit[1]:
            return (0.0, usual, mean)  # the value is no less
        self.evaluations += 1
        for one in goal.keep:
            found = value(problem, one.measure, configuration)
            if not one.kept(found):
                broken += min(-one.slack(found) / max(abs(one.bound), 1e-9), 1e300)
        aim = value(problem, goal.aim, configuration)
        return self.know(configuration, (broken, 1 - aim if goal.aim.share else aim, mean))


def solve(problem: Problem, options: Options) -> Plan:
    """Search, and return the best plan with the bound on the mean where that is one."""
    search = _MeasureDescent(problem, options)
    search.run()
    if search.best is None and search.termination is Termination.FINISHED:
        return _nothing(problem)
    found = search.best is not None
    return Plan.of(
        problem,
        search.best,
        method="local-search",
        bound=min(search.bound, search.key[1]) if found else -math.inf,
        termination=search.termination,
        stats={"evaluations": search.evaluations, "restarts": search.restarts},
    )


def _nothing(problem: Problem) -> Plan:
    """Say that nothing was found, and "infeasible" only when the rules alone forbid every plan."""
    try:
        if find_feasible(problem.replace(objective=MEAN_LATENCY)) is None:
            return infeasible_plan(problem, "local-search")
    except LimitError:
        pass  # too long a search: nothing is known
    return Plan.of(
        problem,
        None,
        method="local-search",
        termination=Termination.WORK_LIMIT,
        notes=("no plan that keeps the limits was found; nothing is proven",),
    )

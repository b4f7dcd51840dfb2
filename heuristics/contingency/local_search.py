"""Local search for plans that stay good when sites are lost (``local-search``, contingency).

Starts: the proven optimum of normal times, and the optima under one more rule, at most one replica
(or one voter) per domain of each level: spread-out plans lose little at a time. From each of them
steepest descent over

* swaps of a replica with a site outside (the added site takes the role of the removed one),
* additions and removals where |R| may vary,
* exchanges of a voter with a replica that does not vote,
* another voter as leader,

with the exact evaluator; then seeded restarts from the best plan with a few random moves, until
`patience` of them in a row bring nothing. A move whose normal score alone is no better than the
best value is not evaluated under losses, for the goals whose value is never below it.

The bound is that of normal times, which no contingency value undercuts: valid, and loose by what
the losses cost. One step costs O(|R|·S) evaluations of O(losses that hit R · C · |R|).
"""

from __future__ import annotations

import math

from heuristics.completion import infeasible_plan
from heuristics.local_search.neighbour_descent import Key, NeighbourDescent
from placement.contingency.objective import Contingency
from placement.errors import LimitError
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.feasibility.feasible_plans import find_feasible
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Termination

__all__ = ["solve"]


class _LossDescent(NeighbourDescent):
    """Keys: (what is too much, value, normal score)."""

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        assert isinstance(problem.objective, Contingency)
        self.goal = problem.objective

    def take_bound(self, bound: float) -> None:
        """Take the bound of normal times, as far as they count."""
        share = 1.0
        if self.goal.goal == "weighted":
            share = max(0.0, 1 - sum(self.goal.probabilities(self.problem)))
        self.bound = share * bound

    def value(self, configuration: Configuration, limit: Key) -> Key:
        """(excess over the limit of "bounded", value, normal score); infinite where it stops."""
        known = self.seen.get(configuration)
        if known is not None:
            return known
        problem, goal = self.problem, self.goal
        normal = score_of(problem, configuration)
        if goal.goal == "worst" and normal > limit[1]:
            return (0.0, normal, normal)  # the value is no less
        self.evaluations += 1
        after = [score for _, score in goal.scores_after(problem, configuration)]
        worst = max([normal, *after])
        excess, value = 0.0, worst
        if math.isinf(worst):
            # Count the losses that stop it, so that the search can reach a plan without such
            # losses.
            stops = sum(math.isinf(score) for score in after)
            return self.know(configuration, (1e300 * stops, math.inf, normal))
        if goal.goal == "bounded":
            excess = max(0.0, worst - goal.ceiling(problem))
            value = normal
        elif goal.goal == "weighted":
            weights = goal.probabilities(problem)
            value = (1 - sum(weights)) * normal
            value += sum(p * score for p, score in zip(weights, after, strict=True))
        return self.know(configuration, (excess, value, normal))


def solve(problem: Problem, options: Options) -> Plan:
    """Search, and return the best plan with the bound of normal times."""
    search = _LossDescent(problem, options)
    search.run()
    if search.best is None and search.termination is Termination.FINISHED:
        return _nothing(problem)
    value = search.key[1] if search.best is not None else math.inf
    return Plan.of(
        problem,
        search.best,
        method="local-search",
        bound=min(search.bound, value) if search.best is not None else -math.inf,
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
        notes=("no plan that obeys the rules after every loss was found; nothing is proven",),
    )

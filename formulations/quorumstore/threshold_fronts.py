"""Trade-offs: Pareto fronts of thresholds, and goals that are weighted sums along them.

The pairs (T_r, T_w) that some configuration reaches bound a staircase. It is walked from one end.
The least T_r, and for it the least T_w, give a corner. The next corner has a T_w strictly below,
and so on until nothing is left. Every corner costs two minimisations with any method. A front has
at most as many corners as there are distinct RTTs, in practice about ten.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from formulations.quorumstore.covering.threshold_bisection import Bisection, ThresholdStep
from formulations.quorumstore.enumeration.enumeration import Enumeration
from formulations.quorumstore.enumeration.nearest_sites import SetTables
from placement.errors import SolverError, UnsupportedError
from placement.quorumstore import (
    Goal,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    Target,
    ThresholdLimits,
    structural_reasons,
)
from placement.support.status import Status, Termination

__all__ = ["ParetoPoint", "pareto_front", "walk_weighted"]


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """A corner of the front.

    Attributes
    ----------
    read_threshold, write_threshold
        T_r and T_w in ms, of the worst scenario in N-1C and of normal operation in BA. Nothing is
        at least as good in both and better in one.
    plan
        A configuration that reaches both.
    """

    read_threshold: float
    write_threshold: float
    plan: QuorumPlan


def pareto_front(
    problem: QuorumProblem,
    method: Callable[[QuorumProblem], QuorumPlan] | None = None,
) -> tuple[ParetoPoint, ...]:
    """Return all corners of the (T_r, T_w) front, by increasing T_r.

    Parameters
    ----------
    problem
        The key. Bounds of its goal hold for every point; its target and weights are ignored.
    method
        Solves one problem to proven optimality; None: enumeration with shared tables.

    Returns
    -------
    Empty when no configuration obeys rules and bounds.

    Raises
    ------
    SolverError
        When the method stopped early (Ctrl-C, time limit): a front with corners missing would
        pass for a complete one.
    """
    if structural_reasons(problem):
        return ()
    if method is None:
        method = Enumeration(SetTables.of(problem)).solve
    goal = replace(problem.goal, target=Target.READS, normal_weight=0.0, worst_weight=1.0)
    front: list[ParetoPoint] = []
    while True:
        # READS breaks ties by T_w, so every answer is a corner.
        plan = method(problem.with_goal(goal))
        if plan.termination is not Termination.FINISHED:
            raise SolverError(
                f"the front is not complete: {plan.method} stopped, {plan.termination}"
            )
        if plan.status is not Status.OPTIMAL:
            return tuple(front)
        effects = plan.losses if problem.rules.contingency else plan.losses[:1]
        read = max(effect.read_threshold for effect in effects)
        write = max(effect.write_threshold for effect in effects)
        front.append(ParetoPoint(read, write, plan))
        if write == 0.0:
            return tuple(front)
        goal = replace(goal, write_bound=float(np.nextafter(write, -math.inf)))


def walk_weighted(bisection: Bisection, goal: Goal) -> ThresholdStep:
    """Minimise a goal that mixes two thresholds by walking its staircase with bisections.

    The two are T_r and T_w (``WEIGHTED``), or normal operation and the worst scenario.

    Raises
    ------
    UnsupportedError
        When the goal mixes all four.
    """
    contingency = bisection.problem.rules.contingency
    normal, worst = goal.weights(contingency)
    if goal.target is Target.WEIGHTED:
        if contingency and normal > 0 and worst > 0:
            raise UnsupportedError(
                "bisection supports two thresholds at a time; use enumeration for reads, writes, "
                "normal operation and the worst scenario together"
            )
        on_normal = contingency and worst == 0
        first = replace(
            goal,
            target=Target.READS,
            normal_weight=float(on_normal),
            worst_weight=float(not on_normal),
        )
        second = replace(first, target=Target.WRITES)
    else:
        first = replace(goal, normal_weight=1.0, worst_weight=0.0)
        second = replace(goal, normal_weight=0.0, worst_weight=1.0)
    best = ThresholdStep(None, math.inf, math.inf)
    caps = ThresholdLimits()
    while True:
        one = bisection.minimise(first, caps)
        if one.configuration is None:
            break
        met = caps.tightened(first.limits(one.value, contingency))
        two = bisection.minimise(second, met, one.configuration)
        value = _weighted(bisection, goal, two.configuration)
        if value < best.value:
            best = ThresholdStep(two.configuration, value, value)
        if bisection.termination is not Termination.FINISHED or two.value == 0.0:
            break
        below = float(np.nextafter(two.value, -math.inf))
        caps = caps.tightened(second.limits(below, contingency))
    if bisection.termination is not Termination.FINISHED:
        return ThresholdStep(best.configuration, best.value, 0.0)
    return best


def _weighted(bisection: Bisection, goal: Goal, configuration: QuorumConfiguration | None) -> float:
    return math.inf if configuration is None else bisection.value(goal, configuration)

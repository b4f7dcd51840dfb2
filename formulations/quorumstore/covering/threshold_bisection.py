"""Exact optimum by bisection over thresholds, one covering question per step.

Every threshold is one of the numbers E^f[i, j] ("P1") and feasibility only grows with it, so the
least value of a goal is found by a few questions per (R, W). Swaps provide an incumbent
(:mod:`formulations.quorumstore.covering.start_by_swaps`), which is the optimum more often than not:
so each (R, W) is first asked for anything better than the best so far, and is dropped if there is
nothing. Each answer is evaluated and improved by swaps in turn, and the next question is one, two,
four … values below it, until one is refuted.

The tie rule's first keys (:func:`placement.quorumstore.stages`) are optimised one after the other;
among configurations equal in those, the solver's choice stands.

Goals that mix two thresholds (α·T_r + β·T_w, or normal against worst) are solved by walking down
the staircase of their Pareto front (:mod:`formulations.quorumstore.threshold_fronts`). A budget is
a row of the covering model, and a cost its objective
(:mod:`formulations.quorumstore.covering.model`).
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from formulations.quorumstore.covering.model import (
    CoveringModel,
    covering_model,
    relaxed_model,
    scenario_rtt,
)
from formulations.quorumstore.covering.start_by_swaps import improve_by_swaps, start_configuration
from placement.errors import SolverError
from placement.quorumstore import (
    Goal,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    Target,
    ThresholdLimits,
    metrics,
    stages,
    structural_reasons,
)
from placement.quorumstore.lower_bound import full_replication_bound
from placement.support.checks import FloatArray
from placement.support.status import Termination, end_early, least_bound

_ROUNDING = 1e-9
"""Relative difference up to which a solver's cost may miss the evaluator's."""

__all__ = ["Bisection", "Covering", "ThresholdStep", "solve", "threshold_values"]


class Covering(Protocol):
    """Solver of covering problems: HiGHS or CP-SAT."""

    method: str
    notes: list[str]

    def __call__(self, model: CoveringModel, seconds: float = ...) -> tuple[int, ...] | None:
        """Return a replica set, or None when there is none; TimeoutError when time runs out."""

    def cheapest(
        self, model: CoveringModel, seconds: float = ...
    ) -> tuple[tuple[int, ...] | None, float]:
        """Return the cheapest replica set (or None), and a lower bound of its cost."""


def threshold_values(problem: QuorumProblem) -> FloatArray:
    """All values a threshold of the problem can take, increasing, 0 first.

    These are the RTTs of clients with requests and, under contingency, the latencies of redirected
    clients; 0 stands for "nothing is needed".
    """
    active = np.flatnonzero(problem.reads + problem.writes)
    values = [np.zeros(1), problem.rtt[active].ravel()]
    if problem.rules.contingency and problem.redirects:
        for lost in problem.losses:
            moved = [site for site in lost if site in set(active.tolist())]
            if moved:
                after = scenario_rtt(problem, lost)[moved]
                values.append(after[np.isfinite(after)])
    return np.unique(np.concatenate(values))


@dataclass(frozen=True, slots=True)
class ThresholdStep:
    """Outcome of one minimisation: configuration (or None), its value, the proven bound."""

    configuration: QuorumConfiguration | None
    value: float
    bound: float


@dataclass(slots=True)
class Bisection:
    """Minimises monotone goals of one key.

    Attributes
    ----------
    problem
        The key.
    covering
        The solver.
    deadline
        ``time.perf_counter()`` at which to stop.
    questions
        How many covering questions have been asked.
    termination
        Why the last minimisation stopped.
    """

    problem: QuorumProblem
    covering: Covering
    deadline: float = math.inf
    questions: int = 0
    termination: Termination = Termination.FINISHED
    values: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.values = threshold_values(self.problem)

    def minimise(
        self,
        goal: Goal,
        caps: ThresholdLimits = ThresholdLimits(),  # noqa: B008 - frozen, and the same as no limits
        start: QuorumConfiguration | None = None,
    ) -> ThresholdStep:
        """Return the least value of a monotone `goal` under `caps`, with its proof.

        Parameters
        ----------
        goal
            One with :meth:`Goal.monotone`.
        caps
            Limits besides those of the goal.
        start
            A configuration known to obey goal and caps.

        Notes
        -----
        When time runs out or Ctrl-C is pressed the bound is the least value not yet refuted.
        """
        best, value = start, math.inf if start is None else self.value(goal, start)
        # Least step (index into `values`) not refuted, per (R, W).
        open_steps = {pair: self._first_step(goal, pair) for pair in self.problem.pairs}
        with end_early(self):
            for pair in self.problem.pairs:
                low, high, stride = open_steps[pair], self._step(value), 1
                while low < high:
                    # First of all: is there anything better?
                    step = max(low, high - stride)
                    found = self._ask(goal, caps, pair, float(self.values[step]))
                    if found is None:
                        low, stride = step + 1, 1
                        open_steps[pair] = low
                    else:
                        best = improve_by_swaps(self.problem, goal, caps, found, self.deadline)
                        value = self.value(goal, best)
                        high, stride = self._step(value), 2 * stride
        refuted = min((step for step in open_steps.values()), default=len(self.values))
        bound = float(self.values[refuted]) if refuted < len(self.values) else math.inf
        if self.termination is Termination.FINISHED or bound > value:
            bound = value
        return ThresholdStep(best, value, bound)

    def _step(self, value: float) -> int:
        """Index of `value`; one past the end while there is no incumbent."""
        return int(np.searchsorted(self.values, value))

    def _first_step(self, goal: Goal, pair: tuple[int, int, int]) -> int:
        """Step of a lower bound: the value if every site held a replica."""
        return self._step(full_replication_bound(self.problem, goal, pair))

    def value(self, goal: Goal, found: QuorumConfiguration) -> float:
        """Value of a configuration, from the evaluator."""
        figures = metrics(self.problem, [found.replicas], found.read, found.write)
        return float(goal.values(figures, self.problem.rules.contingency)[0])

    def _ask(
        self, goal: Goal, caps: ThresholdLimits, pair: tuple[int, int, int], value: float
    ) -> QuorumConfiguration | None:
        total, read, write = pair
        limits = goal.limits(value, self.problem.rules.contingency).tightened(caps)
        simpler = relaxed_model(self.problem, total, read, write, limits)
        if simpler is not None:
            self.questions += 1
            found = self.covering(simpler, self._left())
            if found is None:
                return None
            configuration = QuorumConfiguration(found, read, write)
            if self._obeys(configuration, goal, caps, value):
                return configuration
        excluded: tuple[tuple[int, ...], ...] = ()
        while True:
            model = covering_model(
                self.problem, total, read, write, limits, goal.cost_bound, excluded
            )
            self.questions += 1
            found = self.covering(model, self._left())
            if found is None:
                return None
            configuration = QuorumConfiguration(found, read, write)
            if model.holds(found) and self._obeys(configuration, goal, caps, value):
                return configuration
            if not model.holds(found) or self.cost(configuration) <= goal.cost_bound:
                raise SolverError(
                    f"{self.covering.method} returned {found}, which does not meet its limits"
                )
            # Over budget by less than the solver's tolerance: not this one.
            excluded += (found,)

    def _obeys(
        self, found: QuorumConfiguration, goal: Goal, caps: ThresholdLimits, value: float
    ) -> bool:
        """Return whether the evaluator agrees that a configuration keeps within value and caps."""
        figures = metrics(self.problem, [found.replicas], found.read, found.write)
        contingency = self.problem.rules.contingency
        return bool(caps.kept(figures)[0] and goal.values(figures, contingency)[0] <= value)

    def _left(self) -> float:
        left = self.deadline - time.perf_counter()
        if left <= 0:
            raise TimeoutError
        return left

    def cost(self, found: QuorumConfiguration) -> float:
        """Cost of a configuration, from the evaluator."""
        return float(metrics(self.problem, [found.replicas], found.read, found.write).cost[0])

    def cheapest(self, goal: Goal) -> ThresholdStep:
        """Return the least cost under the bounds of a ``COST`` goal, with its proof.

        One covering model per (N, R, W), with the bill for objective.
        """
        best, value, bound = None, math.inf, math.inf
        limits = goal.limits(math.inf, self.problem.rules.contingency)
        with end_early(self):
            for total, read, write in self.problem.pairs:
                model = covering_model(self.problem, total, read, write, limits)
                self.questions += 1
                found, least = self.covering.cheapest(model, self._left())
                bound = least_bound(bound, least)
                if found is None:
                    continue
                configuration = QuorumConfiguration(found, read, write)
                free = replace(goal, cost_bound=math.inf)
                if not model.holds(found) or math.isinf(self.value(free, configuration)):
                    raise SolverError(
                        f"{self.covering.method} returned {found}, which does not meet its limits"
                    )
                here = self.value(goal, configuration)
                if math.isinf(here) and least <= goal.cost_bound * (1 + _ROUNDING):
                    # Over budget by rounding alone: is there another one within it?
                    other = self._ask(
                        goal, ThresholdLimits(), (total, read, write), sys.float_info.max
                    )
                    if other is not None:
                        configuration, here = other, self.value(goal, other)
                if here < value:
                    best, value = configuration, here
        if self.termination is not Termination.FINISHED:
            return ThresholdStep(best, value, 0.0)
        proven = max(0.0, min(bound, value))  # a solver's rounding can go below 0, and no cost does
        return ThresholdStep(best, value, proven if best is not None else math.inf)


def solve(
    problem: QuorumProblem, covering: Covering, *, time_limit: float = math.inf
) -> QuorumPlan:
    """Return the proven optimum of one key.

    Parameters
    ----------
    problem
        The key. Goals: ``THRESHOLD``, ``READS``, ``WRITES`` on normal operation or the worst
        scenario, mixtures of two thresholds, and ``COST``; any of them with bounds and a budget.
    covering
        :class:`~formulations.quorumstore.covering.milp.HighsCovering` or
        :class:`~formulations.quorumstore.covering.cpsat.CpSatCovering`.
    time_limit
        Seconds.

    Raises
    ------
    UnsupportedError
        For goals that weigh reads, writes, normal operation and the worst scenario all at once:
        enumeration takes those.
    """
    from formulations.quorumstore.threshold_fronts import walk_weighted

    began = time.perf_counter()
    goal, contingency = problem.goal, problem.rules.contingency
    reasons = structural_reasons(problem)
    if reasons:
        return QuorumPlan.of(problem, None, method=covering.method, bound=math.inf, reasons=reasons)
    bisection = Bisection(problem, covering, began + time_limit)
    if goal.target is Target.COST:
        step = bisection.cheapest(goal)
    elif not goal.monotone(contingency):
        step = walk_weighted(bisection, goal)
    else:
        best = start_configuration(problem, goal, bisection.deadline)
        step = _lexicographic(bisection, stages(goal, contingency), best)
    return QuorumPlan.of(
        problem,
        step.configuration,
        method=covering.method,
        bound=step.bound,
        termination=bisection.termination,
        seconds=time.perf_counter() - began,
        notes=(
            f"{bisection.questions} covering questions",
            *dict.fromkeys(covering.notes),
            *(
                ("ties beyond the first keys of the tie rule are the solver's choice",)
                if step.configuration
                else ()
            ),
        ),
    )


def _lexicographic(
    bisection: Bisection, goals: Sequence[Goal], start: QuorumConfiguration | None
) -> ThresholdStep:
    """Minimise the goals in turn; value and bound belong to the first."""
    contingency = bisection.problem.rules.contingency
    first = bisection.minimise(goals[0], start=start)
    step, caps = first, ThresholdLimits()
    for before, goal in itertools.pairwise(goals):
        if step.configuration is None or bisection.termination is not Termination.FINISHED:
            break
        caps = caps.tightened(before.limits(step.value, contingency))
        better = improve_by_swaps(
            bisection.problem, goal, caps, step.configuration, bisection.deadline
        )
        step = bisection.minimise(goal, caps, better)
    return ThresholdStep(step.configuration, first.value, first.bound)

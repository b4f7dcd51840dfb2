"""Exact optimum by bisection over thresholds, one covering question per step.

Every threshold is one of the numbers E^f[i, j] ("P1") and feasibility only grows with it, so the
least value of a goal is found by a few questions per (R, W). Swaps, judged by the evaluator,
provide an incumbent, which is the optimum more often than not: so each (R, W) is first asked for
anything better than the best so far, and is dropped if there is nothing. Each answer is evaluated
and improved by swaps in turn, and the next question is one, two, four … values below it, until one
is refuted. Swaps prove nothing and nothing is proven from them; but a bisection whose incumbent is
the optimum already has only refutations left to ask for.

The tie rule's first keys (:func:`placement.quorumstore.stages`) are optimised one after the other;
among configurations equal in those, the solver's choice stands.

Goals that mix two thresholds (α·T_r + β·T_w, or normal against worst) are solved by walking down
the staircase of the pairs that some configuration reaches.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from formulations.quorumstore.covering_model import CoveringModel, covering_model
from placement.errors import SolverError, UnsupportedError
from placement.quorumstore import (
    Goal,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    Target,
    ThresholdLimits,
    full_replication_bound,
    metrics,
    stages,
    structural_reasons,
)
from placement.quorumstore.plan import BestSet, spread_sets
from placement.support.checks import FloatArray
from placement.support.status import Termination, end_early


class Covering(Protocol):
    """Solver of covering problems: HiGHS or CP-SAT."""

    method: str
    notes: list[str]

    def __call__(self, model: CoveringModel, seconds: float = ...) -> tuple[int, ...] | None:
        """Return a replica set, or None when there is none; TimeoutError when time runs out."""


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
                after = problem.rtt_after(lost)[moved]
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
    """Minimises monotone goals of one key."""

    problem: QuorumProblem  #: the key
    covering: Covering  #: the solver
    deadline: float = math.inf  #: `time.perf_counter()` at which to stop
    questions: int = 0  #: how many covering questions have been asked
    termination: Termination = Termination.FINISHED  #: why the last minimisation stopped
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

        `start` is a configuration known to obey goal and caps. When time runs out or Ctrl-C is
        pressed the bound is the least value not yet refuted.
        """
        best, value = start, math.inf if start is None else self.value(goal, start)
        # Least step (index into `values`) not refuted, per (R, W).
        open_steps = {
            pair: self._step(full_replication_bound(self.problem, goal, pair))
            for pair in self.problem.pairs
        }
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

    def value(self, goal: Goal, found: QuorumConfiguration) -> float:
        """Value of a configuration, from the evaluator."""
        figures = metrics(self.problem, [found.replicas], found.read, found.write)
        return float(goal.values(figures, self.problem.rules.contingency)[0])

    def _ask(
        self, goal: Goal, caps: ThresholdLimits, pair: tuple[int, int, int], value: float
    ) -> QuorumConfiguration | None:
        total, read, write = pair
        limits = goal.limits(value, self.problem.rules.contingency).tightened(caps)
        model = covering_model(self.problem, total, read, write, limits)
        self.questions += 1
        left = self.deadline - time.perf_counter()
        if left <= 0:
            raise TimeoutError
        found = self.covering(model, left)
        if found is None:
            return None
        configuration = QuorumConfiguration(found, read, write)
        figures = metrics(self.problem, [found], read, write)
        within = goal.values(figures, self.problem.rules.contingency)[0] <= value
        if not (model.holds(found) and caps.kept(figures)[0] and within):
            raise SolverError(
                f"{self.covering.method} returned {found}, which does not meet its limits"
            )
        return configuration


def solve(
    problem: QuorumProblem, covering: Covering, *, time_limit: float = math.inf
) -> QuorumPlan:
    """Return the proven optimum of one key, by questions to a solver of covering models.

    Goals are ``THRESHOLD``, ``READS``, ``WRITES`` on normal operation or the worst scenario, and
    mixtures of two thresholds; any of them with bounds. UnsupportedError for goals that weigh
    reads, writes, normal operation and the worst scenario all at once: enumeration takes those.
    """
    began = time.perf_counter()
    goal, contingency = problem.goal, problem.rules.contingency
    reasons = structural_reasons(problem)
    if reasons:
        return QuorumPlan.of(problem, None, method=covering.method, bound=math.inf, reasons=reasons)
    bisection = Bisection(problem, covering, began + time_limit)
    if not goal.monotone(contingency):
        step = walk_weighted(bisection, goal)
    else:  # the goals in turn; value and bound belong to the first
        best = start_configuration(problem, goal, bisection.deadline)
        goals, caps = stages(goal, contingency), ThresholdLimits()
        step = first = bisection.minimise(goal, start=best)
        for before, after in itertools.pairwise(goals):
            if step.configuration is None or bisection.termination is not Termination.FINISHED:
                break
            caps = caps.tightened(before.limits(step.value, contingency))
            better = improve_by_swaps(problem, after, caps, step.configuration, bisection.deadline)
            step = bisection.minimise(after, caps, better)
        step = ThresholdStep(step.configuration, first.value, first.bound)
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


def walk_weighted(bisection: Bisection, goal: Goal) -> ThresholdStep:
    """Minimise a goal that mixes two thresholds by walking its staircase with bisections.

    The two are T_r and T_w (``WEIGHTED``), or normal operation and the worst scenario.
    UnsupportedError when the goal mixes all four.
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
        found = two.configuration
        value = math.inf if found is None else bisection.value(goal, found)
        if value < best.value:
            best = ThresholdStep(two.configuration, value, value)
        if bisection.termination is not Termination.FINISHED or two.value == 0.0:
            break
        below = float(np.nextafter(two.value, -math.inf))
        caps = caps.tightened(second.limits(below, contingency))
    if bisection.termination is not Termination.FINISHED:
        return ThresholdStep(best.configuration, best.value, 0.0)
    return best


# --- swaps -----------------------------------------------------------------------------------


def improve_by_swaps(
    problem: QuorumProblem,
    goal: Goal,
    caps: ThresholdLimits,
    start: QuorumConfiguration,
    deadline: float = math.inf,
) -> QuorumConfiguration:
    """Return the configuration after single swaps: the best one each time, while it improves.

    Stops at `deadline` (``time.perf_counter()``) with the best so far.
    """
    best = BestSet(problem, goal, caps, deadline)
    with contextlib.suppress(TimeoutError):
        best.offer(np.array([start.replicas], dtype=np.intp), start.read, start.write)
        best.descend()
    return best.configuration or start


def start_configuration(
    problem: QuorumProblem, goal: Goal, deadline: float = math.inf
) -> QuorumConfiguration | None:
    """Return a good configuration under every rule and bound, or None when none was met.

    For each (N, R, W), single swaps from the busiest sites and from the best of some sets that are
    spread out by index.
    """
    overall = BestSet(problem, goal)
    demand = problem.reads + problem.writes
    count = len(problem.sites)
    for total, read, write in problem.pairs:
        busiest = np.sort(np.argsort(-demand, kind="stable")[:total])[np.newaxis]
        for rows in (busiest, spread_sets(total, count)):
            best = BestSet(problem, goal, deadline=deadline)
            with contextlib.suppress(TimeoutError):
                best.offer(rows, read, write)
                best.descend()
            overall.take(best)
    return overall.configuration if overall.within else None

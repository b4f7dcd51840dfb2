"""A good configuration to start a bisection from: single swaps, judged by the evaluator.

It proves nothing and nothing is proven from it; but a bisection whose incumbent is the optimum
already has only refutations left to ask for.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from formulations.quorumstore import tuning
from placement.quorumstore import (
    Goal,
    Metrics,
    QuorumConfiguration,
    QuorumProblem,
    ThresholdLimits,
    metrics,
)
from placement.quorumstore.goal import second_key
from placement.quorumstore.set_neighbours import swap_neighbours
from placement.support.checks import FloatArray, IntArray

__all__ = ["improve_by_swaps", "start_configuration"]


@dataclass(slots=True)
class _SwapEvaluator:
    problem: QuorumProblem
    goal: Goal
    caps: ThresholdLimits
    deadline: float

    def best(
        self, sets: IntArray, read: int, write: int
    ) -> tuple[tuple[float, ...], tuple[int, ...]] | None:
        """Return the best of some sets with its rank; None when no set obeys the regional rules."""
        problem = self.problem
        sets = sets[problem.admissible(sets, max(read, write))]
        step = tuning.SWAP_BATCH
        if problem.rules.contingency and problem.rules.failures > 1:
            step = max(16, tuning.SWAP_BATCH // (1 + len(problem.losses)))
        found = None
        for low in range(0, len(sets), step):
            if time.perf_counter() > self.deadline:
                raise TimeoutError
            rows = sets[low : low + step]
            keys = self._keys(metrics(problem, rows, read, write))
            first = int(np.lexsort(tuple(reversed(keys)))[0])
            one = tuple(float(key[first]) for key in keys), tuple(rows[first].tolist())
            if found is None or one < found:
                found = one
        return found

    def _keys(self, figures: Metrics) -> list[FloatArray]:
        """The value, infinite beyond the caps, and the first keys of the tie rule.

        The value alone is flat: thousands of sets share it, and a descent has nowhere to go.
        """
        values = self.goal.values(figures, self.problem.rules.contingency)
        keys = [np.where(self.caps.kept(figures), values, np.inf)]
        second = second_key(self.goal, figures, self.problem.rules.contingency)
        if second is not None:
            keys.append(second)
        normal = np.maximum(figures.normal_read, figures.normal_write)
        worst = np.maximum(figures.worst_read, figures.worst_write)
        return [*keys, worst, normal, figures.normal_read + figures.normal_write, figures.mean]


def improve_by_swaps(
    problem: QuorumProblem,
    goal: Goal,
    caps: ThresholdLimits,
    start: QuorumConfiguration,
    deadline: float = math.inf,
) -> QuorumConfiguration:
    """Return the configuration after single swaps: the best one each time, while it improves.

    Parameters
    ----------
    problem, goal, caps
        What is minimised, and within which limits.
    start
        Where to begin; returned itself when no swap is better.
    deadline
        ``time.perf_counter()`` at which to stop, with the best so far.

    Notes
    -----
    A round evaluates N·(n − N) sets.
    """
    judge = _SwapEvaluator(problem, goal, caps, deadline)
    read, write = start.read, start.write
    replicas = start.replicas
    try:
        found = judge.best(np.array([replicas], dtype=np.intp), read, write)
        while found is not None:
            rank, replicas = found
            rows = swap_neighbours(replicas, len(problem.sites))
            found = judge.best(rows, read, write) if len(rows) else None
            if found is not None and not found[0] < rank:
                break
    except TimeoutError:
        pass
    return QuorumConfiguration(replicas, read, write)


def start_configuration(
    problem: QuorumProblem, goal: Goal, deadline: float = math.inf
) -> QuorumConfiguration | None:
    """Return a good configuration under every rule and bound, or None when none was met.

    For each (N, R, W), single swaps from the busiest sites and from the best of some sets that are
    spread out by index.
    """
    best, value = None, math.inf
    demand = problem.reads + problem.writes
    count = len(problem.sites)
    judge = _SwapEvaluator(problem, goal, ThresholdLimits(), deadline)
    for total, read, write in problem.pairs:
        busiest = np.sort(np.argsort(-demand, kind="stable")[:total])[np.newaxis]
        steps = np.arange(total) * (count // total)
        spread = np.sort((np.arange(count)[:, np.newaxis] + steps) % count, axis=1)
        for rows in (busiest, spread):
            try:
                found = judge.best(rows, read, write)
            except TimeoutError:
                return best
            if found is None:
                continue
            start = QuorumConfiguration(found[1], read, write)
            start = improve_by_swaps(problem, goal, ThresholdLimits(), start, deadline)
            figures = metrics(problem, [start.replicas], read, write)
            here = float(goal.values(figures, problem.rules.contingency)[0])
            if here < value:
                best, value = start, here
    return best

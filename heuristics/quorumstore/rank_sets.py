"""Order of replica sets in heuristics: by the excess over the bounds, then by the tie rule."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from placement.quorumstore import (
    Goal,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    full_replication_bound,
    metrics,
    structural_reasons,
)
from placement.quorumstore.goal import judged_thresholds, second_key
from placement.support.checks import FloatArray, IntArray
from placement.support.status import Termination

__all__ = ["Best", "finish", "rank"]


@dataclass(slots=True)
class Best:
    """The best configuration seen, with its rank."""

    configuration: QuorumConfiguration | None = None
    key: tuple[float, ...] = (np.inf,)

    def offer(
        self, problem: QuorumProblem, sets: IntArray, read: int, write: int
    ) -> tuple[int, tuple[float, ...]] | None:
        """Rank `sets` and remember the best sets; return (its row, its rank).

        Sets that break a regional rule are ignored; None when all do.
        """
        allowed = np.flatnonzero(problem.admissible(sets, max(read, write)))
        if not allowed.size:
            return None
        keys = rank(problem, sets[allowed], read, write)
        place = int(np.lexsort(tuple(keys[::-1]))[0])
        row = int(allowed[place])
        key = tuple(float(part[place]) for part in keys)
        if self.configuration is None or key < self.key:
            self.configuration = QuorumConfiguration(tuple(sets[row].tolist()), read, write)
            self.key = key
        return row, key


def rank(problem: QuorumProblem, sets: IntArray, read: int, write: int) -> list[FloatArray]:
    """Keys to be minimised one after the other, arrays of shape (k,).

    First by how much the bounds are exceeded (0: not at all), then the goal without its bounds,
    then keys 2 to 5 of the tie rule. The threshold alone is flat (thousands of sets share it), so
    without the last keys a descent has nowhere to go.
    """
    contingency = problem.rules.contingency
    figures = metrics(problem, sets, read, write)
    judged = judged_thresholds(figures, contingency)
    goal = problem.goal
    excess = _excess(judged[0], goal.read_bound)
    excess = excess + _excess(judged[1], goal.write_bound)
    excess = excess + _excess(figures.cost, goal.cost_bound)
    keys = [excess, _unbounded(goal).values(figures, contingency)]
    second = second_key(goal, figures, contingency)
    if second is not None:
        keys.append(second)
    return [
        *keys,
        np.maximum(figures.normal_read, figures.normal_write),
        figures.normal_read + figures.normal_write,
        figures.mean,
    ]


def finish(
    problem: QuorumProblem,
    best: Best,
    method: str,
    began: float,
    termination: Termination = Termination.FINISHED,
) -> QuorumPlan:
    """Turn the best configuration into a plan, with the bound of a replica at every site."""
    reasons = structural_reasons(problem)
    bound = np.inf if reasons else full_replication_bound(problem)
    configuration = best.configuration
    notes: Sequence[str] = ()
    if configuration is not None and best.key[0] > 0:
        configuration = None
        notes = (f"no configuration within the bounds was found (excess {best.key[0]:g})",)
    return QuorumPlan.of(
        problem,
        configuration,
        method=method,
        bound=bound,
        termination=termination,
        seconds=time.perf_counter() - began,
        reasons=reasons,
        notes=notes,
    )


def _excess(values: FloatArray, bound: float) -> FloatArray:
    if np.isinf(bound):
        return np.zeros_like(values)
    return np.maximum(values - bound, 0.0) / max(bound, 1e-9)


def _unbounded(goal: Goal) -> Goal:
    return replace(goal, read_bound=np.inf, write_bound=np.inf, cost_bound=np.inf)

"""Swaps of single replicas, judged by the evaluator: the descent of every search over sets.

The threshold is flat: thousands of sets share it. So sets are compared by the excess over limits,
then by the goal, then by the tie rule, which gives a descent somewhere to go.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace

import numpy as np

from placement.quorumstore.goal import Goal, Metrics, ThresholdLimits, second_key
from placement.quorumstore.latency import metrics
from placement.quorumstore.plan import QuorumConfiguration
from placement.quorumstore.problem import QuorumProblem
from placement.support.checks import FloatArray, IntArray

_BATCH = 2_000
"""Sets times scenarios that are evaluated at once."""


def swap_neighbours(replicas: tuple[int, ...], sites: int) -> IntArray:
    """All sets that differ from `replicas` in one member; shape (N·(sites − N), N), rows sorted."""
    outside = [site for site in range(sites) if site not in replicas]
    places = range(len(replicas))
    rows = [
        sorted((*replicas[:place], site, *replicas[place + 1 :]))
        for place in places
        for site in outside
    ]
    return np.array(rows, dtype=np.intp).reshape(-1, len(replicas))


@dataclass(slots=True)
class BestSet:
    """The best configuration seen, with its rank.

    Attributes
    ----------
    problem
        The key. Its own goal is not used.
    goal, caps
        What is minimised, and limits besides those of the goal.
    deadline
        ``time.perf_counter()`` from which on :meth:`offer` raises ``TimeoutError``.
    configuration, rank
        None before the first set; the first number of the rank is the excess over limits.
    """

    problem: QuorumProblem
    goal: Goal
    caps: ThresholdLimits = field(default_factory=ThresholdLimits)
    deadline: float = math.inf
    configuration: QuorumConfiguration | None = None
    rank: tuple[float, ...] = (math.inf,)

    @property
    def within(self) -> bool:
        """Return whether the best set keeps all limits."""
        return self.configuration is not None and self.rank[0] == 0

    def offer(self, sets: IntArray, read: int, write: int) -> tuple[float, ...] | None:
        """Remember the best of some sets, if it is better; return its rank.

        Sets that break a regional rule are ignored; None when all do.
        """
        problem, found = self.problem, None
        sets = sets[problem.admissible(sets, max(read, write))]
        step = _BATCH
        if problem.rules.contingency and problem.rules.failures > 1:
            step = max(16, _BATCH // (1 + problem.loss_count))
        for low in range(0, len(sets), step):
            if time.perf_counter() > self.deadline:
                raise TimeoutError
            rows = sets[low : low + step]
            keys = self._keys(metrics(problem, rows, read, write))
            first = int(np.lexsort(tuple(reversed(keys)))[0])
            rank = tuple(float(key[first]) for key in keys)
            found = rank if found is None else min(found, rank)
            if self.configuration is None or rank < self.rank:
                replicas = tuple(rows[first].tolist())
                self.configuration = QuorumConfiguration(replicas, read, write)
                self.rank = rank
        return found

    def descend(self) -> None:
        """Take the best single swap as long as one is better. A round evaluates N·(n − N) sets."""
        before = None
        while self.configuration is not None and self.configuration != before:
            before = self.configuration
            around = swap_neighbours(before.replicas, len(self.problem.sites))
            self.offer(around, before.read, before.write)

    def take(self, other: BestSet) -> None:
        """Remember the set of another search, if it is better."""
        if other.configuration is not None and other.rank < self.rank:
            self.configuration, self.rank = other.configuration, other.rank

    def _keys(self, figures: Metrics) -> list[FloatArray]:
        """Numbers to be minimised one after the other: excess, value, keys 2 to 5 of the rule."""
        contingency = self.problem.rules.contingency
        free = replace(self.goal, read_bound=math.inf, write_bound=math.inf)
        limits = self.goal.limits(math.inf, contingency).tightened(self.caps)
        keys = [limits.excess(figures), free.values(figures, contingency)]
        second = second_key(self.goal, figures, contingency)
        if second is not None:
            keys.append(second)
        normal = np.maximum(figures.normal_read, figures.normal_write)
        return [*keys, normal, figures.normal_read + figures.normal_write, figures.mean]

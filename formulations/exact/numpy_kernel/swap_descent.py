"""Feasible configurations of the NumPy kernel: starts, and descents by swaps of one replica."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from formulations.exact.kernel_types import Incumbent
from formulations.exact.numpy_kernel.tree_node import LeaderView, TreeNode
from formulations.exact.reduced_problem import ReducedProblem

__all__ = ["SwapDescent"]


class SwapDescent:
    """Searches for feasible configurations of a problem, and reports each of them.

    Parameters
    ----------
    core
        The problem.
    report
        Receives every feasible configuration with its score.
    """

    def __init__(self, core: ReducedProblem, report: Callable[[Incumbent], None]) -> None:
        self._core = core
        self._report = report

    def offer(self, view: LeaderView, replicas: list[int]) -> float:
        """Return the score of a complete set (+∞ when it breaks a rule), and report the set."""
        core = self._core
        rules = core.rules
        if not rules.replicas_min <= len(replicas) <= rules.replicas_max:
            return math.inf
        if not all(group.satisfied(replicas) for group in rules.of("replicas")):
            return math.inf
        configuration = core.configuration(view.index, replicas)
        if configuration is None:
            return math.inf
        score = core.score(configuration)
        self._report(Incumbent(score, view.index, configuration.replicas))
        return score

    def start(
        self, view: LeaderView, root: TreeNode, best_known: Sequence[int]
    ) -> list[int] | None:
        """Return the incumbent with the leader in it, or the closest sites, or None."""
        best, value = None, math.inf
        held = set(root.held)
        incumbent = [r for r in best_known if r not in held]
        room = self._core.rules.replicas_max - len(held)
        near = view.inner.near_order or list(range(self._core.sites))
        closest = [s for s in near if s in set(root.free.tolist())]
        for extra in (incumbent[:room], incumbent[-room:] if room else [], closest[:room]):
            replicas = [*root.held, *extra]
            score = self.offer(view, replicas)
            if score < value:
                best, value = replicas, score
        return best

    def descend(
        self, view: LeaderView, replicas: list[int], limit: int, deadline: float
    ) -> list[int]:
        """Return a set improved by swaps, the most promising additions first."""
        rules = self._core.rules
        score = self.offer(view, replicas)
        if score == math.inf:
            return replicas
        fixed = set(np.nonzero(rules.must_hold)[0].tolist()) | {view.index}
        for _ in range(limit):
            better = self._best_swap(view, replicas, fixed, score, deadline)
            if better is None:
                return replicas
            replicas, score = better
        return replicas

    def _best_swap(
        self,
        view: LeaderView,
        replicas: list[int],
        fixed: set[int],
        score: float,
        deadline: float,
    ) -> tuple[list[int], float] | None:
        """Return the set and score after a swap that improves, or None."""
        rows = np.arange(len(view.costs))
        outside = np.setdiff1d(np.nonzero(self._core.rules.may_hold)[0], replicas)
        found: list[tuple[float, list[int]]] = []
        for place, old in enumerate(replicas):
            rest = replicas[:place] + replicas[place + 1 :]
            if old in fixed or not len(outside):
                continue
            if time.perf_counter() > deadline:
                break
            if rest:
                ranks = view.rank[:, rest]
                nearest = ranks.argmin(axis=1)
                rank, cost = ranks[rows, nearest], view.costs[rows, np.array(rest)[nearest]]
                joined = np.where(
                    view.rank[:, outside] < rank[:, np.newaxis],
                    view.costs[:, outside],
                    cost[:, np.newaxis],
                )
            else:
                joined = view.costs[:, outside]
            totals = joined.sum(axis=0) + view.price[outside] + view.constant
            totals += view.price[rest].sum()
            for at in np.argsort(totals, kind="stable")[:3]:
                if totals[at] < score:
                    found.append((float(totals[at]), [*rest, int(outside[at])]))
        for _, changed in sorted(found)[:12]:
            if time.perf_counter() > deadline:
                break
            value = self.offer(view, changed)
            if value < score * (1 - 1e-12):
                return changed, value
        return None

"""A tree whose bounds come from the linear relaxation: the p-median problem with many replicas.

It is the tree of :mod:`formulations.exact.numpy_kernel`, with the same fixing, the same events and
the same care for rounding. Only where the multipliers come from differs: not from subgradient
steps but from the duals of :mod:`formulations.exact.p_median.linear_relaxation`, restricted to the
state. One such bound costs a linear program (the dual simplex goes on from the parent's basis) and
is the best that multipliers can give, so that trees stay small where the subgradient's do not. The
site to branch on is the one whose share in the relaxation is nearest to one half.
"""

from __future__ import annotations

import time

import numpy as np

from formulations.exact import tuning
from formulations.exact.numpy_kernel.kernel import NumpyKernel
from formulations.exact.numpy_kernel.tree_node import LeaderView, TreeNode
from formulations.exact.p_median.linear_relaxation import PMedianRelaxation
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.checks import BoolArray, FloatArray

__all__ = ["LinearKernel"]


class LinearKernel(NumpyKernel):
    """See :class:`formulations.exact.kernel.Kernel`; for cores whose leader does not matter.

    Parameters
    ----------
    core
        The problem.
    keep
        Sites that the relaxation may use, shape (sites,); at least one.
    """

    def __init__(self, core: ReducedProblem, keep: BoolArray) -> None:
        super().__init__(core)
        self._relaxation = PMedianRelaxation(core, keep)

    def seed(self, multipliers: FloatArray) -> None:
        """Make the first rows of the relaxation."""
        self._relaxation.seed(multipliers)

    def _work(self) -> float:
        return super()._work() + tuning.PIVOT_WORK * self._relaxation.pivots

    def run(self, work: float, seconds: float) -> bool:
        """Work on the open tree: True when it is finished."""
        end = time.perf_counter() + seconds
        enough = self._work() + work
        while self._next_tree() and self._work() < enough and time.perf_counter() < end:
            self._visit(end)
        return not self._next_tree()

    def _improve(self, view: LeaderView, node: TreeNode, steps: int, deadline: float) -> float:
        """Take the best multipliers of the rounds of the relaxation, or the node's own."""
        value = self._evaluate(view, node, node.u)
        best = value.safe
        if best >= self._cutoff or not value.answers:
            return best
        self._relaxation.restrict(node.held, node.free)
        for number, found in enumerate(self._relaxation.rounds(deadline), start=1):
            u = np.clip(found.multipliers, 0.0, node.fixed_cost)
            value = self._evaluate(view, node, u)
            node.frequency = found.share
            self._swaps.offer(view, list(found.replicas))
            if value.safe > best:
                best, node.u = value.safe, u
            if best >= self._cutoff or (number >= tuning.RELAXATION_ROUNDS and not node.root):
                break
        return best

    def _descend(
        self, view: LeaderView, replicas: list[int], limit: int, deadline: float
    ) -> list[int]:
        """Return the set unchanged: swaps in NumPy would cost more than bounds."""
        return replicas

    def _branching_site(self, node: TreeNode) -> int:
        """Return the free site whose share is nearest to one half."""
        return int(node.free[np.abs(node.frequency[node.free] - 0.5).argmin()])

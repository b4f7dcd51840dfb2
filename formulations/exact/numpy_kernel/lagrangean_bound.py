"""The bound of :mod:`formulations.exact.certificate_events` at a node, without multipliers β.

Three sites by hand: a, b and c at 0, 1 and 3 ms on a line, with a client that reads once at each.
Two replicas vote, two commits wait for both votes, and b leads. With b alone the clients wait u =
(1, 0, 2), 3 in all. A replica at a saves 1 and costs a wait of 2 · 1; a replica at c saves 2 and
costs 2 · 2. No plan under b is below 3 + min(2 − 1, 4 − 2) = 4, and a with b has this score. At u =
0 the bound is only the wait of 2:

>>> from formulations.exact.reduced_problem import ReducedProblem
>>> rtt = np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]))
>>> weights = (np.ones(3), np.zeros(3), np.zeros(3), 2.0)
>>> core = ReducedProblem.of_arrays(rtt, rtt, weights, replicas=(2, 2), voters=2)
>>> view = LeaderView.of(core, np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]]), leader=1)
>>> for u in ([1.0, 0.0, 2.0], [0.0, 0.0, 0.0]):
...     here = evaluate(view, TreeNode.root_of(core, view, np.array(u)), np.array(u))
...     print(here.base, np.abs(here.rho).tolist(), here.bound)
3.0 [1.0, 2.0] 4.0
0.0 [0.0, 0.0] 2.0
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from formulations.exact.numpy_kernel.inner_minimum import RadiusMinimum
from formulations.exact.numpy_kernel.tree_node import LeaderView, TreeNode
from placement.support.checks import FloatArray

__all__ = ["BoundValue", "bounds_with_site_fixed", "evaluate"]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class BoundValue:
    """A bound, the rounding it may carry, the reduced costs and the answers behind it."""

    bound: float
    error: float
    rho: FloatArray
    answers: list[RadiusMinimum]
    base: float

    @property
    def safe(self) -> float:
        """The bound less its rounding error."""
        return self.bound - self.error

    @property
    def best(self) -> RadiusMinimum:
        """The answer that attains the bound."""
        return min(self.answers, key=lambda answer: answer.value)


def evaluate(view: LeaderView, node: TreeNode, u: FloatArray) -> BoundValue:
    """Return L(u) of a node, with its rounding error and reduced costs; +∞ if it is infeasible."""
    gain = np.minimum(view.costs[:, node.free] - u[:, np.newaxis], 0.0)
    gain[view.rank[:, node.free] > node.fixed_rank[:, np.newaxis]] = 0.0
    rho = gain.sum(axis=0) + view.price[node.free]
    served = float(np.minimum(u, node.fixed_cost).sum())
    base = view.constant + float(view.price[node.held].sum()) + served
    answers = view.inner.solve(node.held, node.free, rho)
    if not answers:
        return BoundValue(math.inf, 0.0, rho, answers, base)
    best = min(answers, key=lambda answer: answer.value)
    size = len(best.chosen)
    magnitude = base + abs(best.value)
    magnitude += 2.0 * sum(abs(part.value) for part in best.parts)
    terms = len(u) + len(view.price) + 24
    error = _EPS * (terms * magnitude + 6.0 * (size + 2) * served)
    return BoundValue(base + best.value, error, rho, answers, base)


def bounds_with_site_fixed(
    view: LeaderView, node: TreeNode, here: BoundValue
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds with each free site held, and with each free site not held."""
    low, high = view.inner.sizes(len(node.held), len(node.free))
    rho = here.rho
    with_site = np.full(len(rho), math.inf)
    without = np.full(len(rho), math.inf)
    for answer in here.answers:
        plus = np.full(len(rho), -math.inf)
        minus = np.full(len(rho), -math.inf)
        for part in answer.parts:
            size = len(part.chosen)
            top = max(part.top, 0.0) if size < high else part.top
            left = min(part.least_left, 0.0) if size > low else part.least_left
            total = answer.price + part.value
            plus = np.maximum(plus, total + np.maximum(rho - top, 0.0))
            # without a site that is not chosen nothing changes, not even one that no rule lets in
            rise = np.where(np.isin(node.free, part.chosen), np.maximum(left - rho, 0.0), 0.0)
            minus = np.maximum(minus, total + rise)
        with_site, without = np.minimum(with_site, plus), np.minimum(without, minus)
    safe = here.base - 4.0 * here.error
    return with_site + safe, without + safe

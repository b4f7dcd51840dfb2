"""Data of the NumPy kernel: the problem under one leader, a node of its tree, a computed bound."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.exact.numpy_inner_minimum import InnerProblem, RadiusMinimum
from placement.checks import FloatArray, IntArray

__all__ = ["BoundValue", "LeaderView", "TreeNode"]


@dataclass
class TreeNode:
    """A state with its multipliers; the sites not yet tried as replicas shrink in place."""

    held: list[int]
    free: IntArray
    fixed_cost: FloatArray
    fixed_rank: IntArray
    u: FloatArray
    frequency: FloatArray
    bound: float
    root: bool = False


@dataclass(frozen=True)
class LeaderView:
    """The problem under one leader: what is the same in all nodes of its tree."""

    index: int
    costs: FloatArray
    constant: float
    price: FloatArray
    inner: InnerProblem


@dataclass(frozen=True)
class BoundValue:
    """A bound, the rounding it may carry, the reduced costs and the answers behind it."""

    bound: float
    error: float
    rho: FloatArray
    answers: list[RadiusMinimum]
    base: float

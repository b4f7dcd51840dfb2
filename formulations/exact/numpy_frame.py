"""What the NumPy kernel works on: a leader, a state under him, the value of a bound."""

from __future__ import annotations

from dataclasses import dataclass

from formulations.exact.numpy_inner_minimum import Answer, Inner
from placement.checks import FloatArray, IntArray

__all__ = ["Frame", "KnownLeader", "Value"]


@dataclass
class Frame:
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
class KnownLeader:
    """What is the same in all states of one leader."""

    index: int
    costs: FloatArray
    constant: float
    price: FloatArray
    inner: Inner


@dataclass(frozen=True)
class Value:
    """A bound, the rounding it may carry, the reduced costs and the answers behind it."""

    bound: float
    error: float
    rho: FloatArray
    answers: list[Answer]
    base: float

"""Goal of a key: objective, limits, and tie-breaking.

A configuration (S, R, W) has four thresholds: the weighted percentiles of read and write latency in
normal operation and in the worst scenario. A :class:`Goal` turns them into one number. It also
turns "at most this number" back into limits on the thresholds, as every exact method here asks for.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from placement.errors import InputError
from placement.quorumstore.rules import check_member
from placement.support.checks import BoolArray, FloatArray, IntArray, number

_SLACK = 1.0 + 1e-12
"""Loosens limits found by a division, so that rounding never cuts off a tie."""


class Target(Enum):
    """The latency that a goal minimises.

    - ``THRESHOLD``: T = max(T_r, T_w).
    - ``READS``, ``WRITES``: T_r or T_w alone; ties by the other one (lexicographic).
    - ``WEIGHTED``: α·T_r + β·T_w.
    """

    THRESHOLD = "threshold"
    READS = "reads"
    WRITES = "writes"
    WEIGHTED = "weighted"


class ThresholdLimits(NamedTuple):
    """Largest thresholds (ms) a configuration may have, each on its own.

    The worst scenario includes normal operation, so a limit on it holds for both.
    """

    normal_read: float = math.inf
    normal_write: float = math.inf
    worst_read: float = math.inf
    worst_write: float = math.inf

    def tightened(self, other: ThresholdLimits) -> ThresholdLimits:
        """Return the lower limit of both for each figure."""
        return ThresholdLimits(*map(min, self, other))

    def kept(self, metrics: Metrics) -> BoolArray:
        """Return whether each configuration keeps all four limits."""
        kept = [figure <= limit for figure, limit in zip(metrics.thresholds, self, strict=True)]
        return np.asarray(np.logical_and.reduce(kept))

    def excess(self, metrics: Metrics) -> FloatArray:
        """Return by how much each configuration exceeds the limits, relative; 0 within all."""
        excess = np.zeros_like(metrics.normal_read)
        for figure, limit in zip(metrics.thresholds, self, strict=True):
            if limit < math.inf:
                excess = excess + np.maximum(figure - limit, 0.0) / max(limit, 1e-9)
        return excess


class Metrics(NamedTuple):
    """Figures of k configurations, arrays of shape (k,).

    Parameters
    ----------
    normal_read, normal_write
        T_r and T_w in normal operation, ms.
    worst_read, worst_write
        Their largest values over normal operation and all losses, ms; equal to the normal ones
        where losses are not considered.
    mean
        Mean latency over all reads and writes in normal operation, ms.
    """

    normal_read: FloatArray
    normal_write: FloatArray
    worst_read: FloatArray
    worst_write: FloatArray
    mean: FloatArray

    @property
    def thresholds(self) -> tuple[FloatArray, ...]:
        """The four thresholds, in the order of :class:`ThresholdLimits`."""
        return self[:4]

    def take(self, index: IntArray) -> Metrics:
        """Return the figures of the configurations in `index`."""
        return Metrics(*(figure[index] for figure in self))


@dataclass(frozen=True, slots=True)
class Goal:
    """Objective of a key and its limits.

    The value of a configuration is X(normal) in BA, and in N-1C

        normal_weight · X(normal) + worst_weight · X(worst)

    where `target` names X. The defaults minimise the worst threshold. (1, 0) with
    `read_bound` and `write_bound` is "best normal latency whose worst case stays within the
    bounds"; (1, λ) trades the two.

    Parameters
    ----------
    target
        See :class:`Target`.
    read_weight, write_weight
        α, β >= 0 of ``WEIGHTED``, not both zero.
    normal_weight, worst_weight
        Weights of normal operation and of the worst scenario, N-1C only; not both zero.
    read_bound, write_bound
        Largest T_r, T_w allowed (ms): of the worst scenario in N-1C, of normal operation in BA.
    """

    target: Target = Target.THRESHOLD
    _: KW_ONLY
    read_weight: float = 1.0
    write_weight: float = 1.0
    normal_weight: float = 0.0
    worst_weight: float = 1.0
    read_bound: float = math.inf
    write_bound: float = math.inf

    def __post_init__(self) -> None:
        check_member(self.target, Target, "target")
        finite = {
            "read_weight": self.read_weight,
            "write_weight": self.write_weight,
            "normal_weight": self.normal_weight,
            "worst_weight": self.worst_weight,
        }
        for field, value in finite.items():
            number(value, field)
        for first, second in (("read_weight", "write_weight"), ("normal_weight", "worst_weight")):
            if finite[first] == 0 and finite[second] == 0:
                raise InputError(
                    f"{first} and {second} are both zero: nothing would be minimised",
                    field=first,
                    value=0.0,
                    expected="at least one weight > 0",
                )
        for field, bound in (("read_bound", self.read_bound), ("write_bound", self.write_bound)):
            number(bound, field, infinite=True)

    def weights(self, contingency: bool) -> tuple[float, float]:
        """(weight of normal operation, weight of the worst scenario); (1, 0) in BA."""
        return (self.normal_weight, self.worst_weight) if contingency else (1.0, 0.0)

    def monotone(self, contingency: bool) -> bool:
        """Return whether "value <= t" means limits t on thresholds, so that t can be bisected."""
        single = self.target in (Target.THRESHOLD, Target.READS, Target.WRITES)
        return single and sorted(self.weights(contingency)) == [0.0, 1.0]

    def limits(self, value: float, contingency: bool) -> ThresholdLimits:
        """Limits every configuration with at most `value` obeys, with the bounds of the goal.

        For a :meth:`monotone` goal they are also sufficient. They are valid for any other because
        thresholds are >= 0 and the worst scenario is never below normal operation.
        """
        normal, worst = self.weights(contingency)
        read, write = math.inf, math.inf
        if self.target in (Target.THRESHOLD, Target.READS):
            read = value
        if self.target in (Target.THRESHOLD, Target.WRITES):
            write = value
        if self.target is Target.WEIGHTED:
            read = _quotient(value, self.read_weight)
            write = _quotient(value, self.write_weight)
        bounds = (self.read_bound, self.write_bound)
        if not contingency:
            return ThresholdLimits(min(read, bounds[0]), min(write, bounds[1]))
        worst_limits = [
            min(_quotient(side, worst), bound)
            for side, bound in zip((read, write), bounds, strict=True)
        ]
        # The worst scenario is never below normal operation, so (w₀ + w₁)·X(normal) <= value.
        both = (normal + worst) * (1.0 if 0.0 in (normal, worst) else 1.0 / _SLACK)
        normal_limits = [
            min(_quotient(side, both), limit)
            for side, limit in zip((read, write), worst_limits, strict=True)
        ]
        return ThresholdLimits(normal_limits[0], normal_limits[1], worst_limits[0], worst_limits[1])

    def values(self, metrics: Metrics, contingency: bool) -> FloatArray:
        """Value of each configuration; infinite where a bound is broken or a quorum fails."""
        normal, worst = self.weights(contingency)
        value = np.zeros_like(metrics.normal_read)
        # A weight of zero leaves its term out altogether: 0 · ∞ is not a number.
        if normal > 0:
            value = value + normal * self._latency(metrics.normal_read, metrics.normal_write)
        if worst > 0:
            value = value + worst * self._latency(metrics.worst_read, metrics.worst_write)
        judged = judged_thresholds(metrics, contingency)
        kept = (
            (judged[0] <= self.read_bound)
            & (judged[1] <= self.write_bound)
            & np.isfinite(judged[0])
            & np.isfinite(judged[1])
        )
        return np.where(kept, value, math.inf)

    def _latency(self, read: FloatArray, write: FloatArray) -> FloatArray:
        if self.target is Target.READS:
            return read
        if self.target is Target.WRITES:
            return write
        if self.target is Target.WEIGHTED:
            if self.read_weight == 0:
                return self.write_weight * write
            if self.write_weight == 0:
                return self.read_weight * read
            return self.read_weight * read + self.write_weight * write
        return np.maximum(read, write)


def judged_thresholds(metrics: Metrics, contingency: bool) -> tuple[FloatArray, FloatArray]:
    """(T_r, T_w) that bounds apply to: the worst scenario in N-1C, normal operation in BA."""
    if contingency:
        return metrics.worst_read, metrics.worst_write
    return metrics.normal_read, metrics.normal_write


def second_key(goal: Goal, metrics: Metrics, contingency: bool) -> FloatArray | None:
    """Key 2 of the tie rule; None for ``THRESHOLD``, which has none."""
    read, write = judged_thresholds(metrics, contingency)
    if goal.target is Target.READS:
        return write
    if goal.target is Target.WRITES:
        return read
    return None if goal.target is Target.THRESHOLD else np.maximum(read, write)


def tie_order_of_equals(
    metrics: Metrics, sites: IntArray, replicas: IntArray, read_quorum: IntArray
) -> IntArray:
    """Order of k configurations, best first, that are equal in keys 1 and 2 of the tie rule.

    The rule compares, in this order:

    1. the value of the goal;
    2. the other side's threshold for ``READS`` and ``WRITES``; max(T_r, T_w) for ``WEIGHTED``
       (both of the worst scenario in N-1C);
    3. max(T_r, T_w) in normal operation;
    4. T_r + T_w in normal operation;
    5. the mean latency in normal operation;
    6. N;
    7. the replica set, lexicographically by site index;
    8. R (and so W).

    Parameters
    ----------
    sites
        Replica sets as rows of increasing site indices padded with -1, shape (k, largest N).
    replicas, read_quorum
        N and R, shape (k,).

    Notes
    -----
    Comparisons are exact. All figures are elements of the RTT matrix, or sums formed in one fixed
    order, so the rule gives the same answer whichever method produced the configurations.
    """
    keys = (
        np.maximum(metrics.normal_read, metrics.normal_write),
        metrics.normal_read + metrics.normal_write,
        metrics.mean,
        replicas,
        *sites.T,
        read_quorum,
    )
    return np.lexsort(keys[::-1])


def stages(goal: Goal, contingency: bool) -> tuple[Goal, ...]:
    """Goals in lexicographic order: each is minimised among the optima of the goals before.

    They are keys 1 to 3 of the tie rule for a :meth:`Goal.monotone` goal; for others only key 1.
    """
    found = [goal]
    if not goal.monotone(contingency):
        return (goal,)
    other = {Target.READS: Target.WRITES, Target.WRITES: Target.READS}.get(goal.target)
    if other is not None:
        found.append(replace(goal, target=other, normal_weight=0.0, worst_weight=1.0))
    if contingency and (other is not None or goal.worst_weight > 0):
        found.append(replace(goal, target=Target.THRESHOLD, normal_weight=1.0, worst_weight=0.0))
    return tuple(found)


def _quotient(value: float, weight: float) -> float:
    if weight == 0:
        return math.inf
    if weight == 1:
        return value
    return value / weight * _SLACK

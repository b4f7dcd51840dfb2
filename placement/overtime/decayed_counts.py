"""Exponentially decayed counts: the weight of the past when the next interval begins.

Sharov et al., PVLDB 8(12), 2015, section 3, Eq. 2, written for counts instead of scores: with a
decay τ >= 1,

    N(0) = 0,    N(i) = N(i−1)/τ + n(i)

so that interval k weighs τ^(k−i) after interval i. Eq. 1 is linear in the counts: with one RTT
matrix for all intervals, the score of N(i) is agg_score(i). The state is only N(i), and one update
is one division and one addition per cell. A run that is stopped, stored and continued therefore
gives the same bits as a run without a stop.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, require
from placement.model.demand import decay_weights
from placement.support.checks import FloatArray, frozen, number, numbers_of


@dataclass(frozen=True, slots=True)
class Decay:
    """Decay rate of past counts.

    Parameters
    ----------
    factor
        τ >= 1 of Eq. 2: an interval counts 1/τ of the one after it. 1 forgets nothing, infinity
        everything but the last interval; the paper uses 2.

    Raises
    ------
    InputError
        Unless factor >= 1.

    Examples
    --------
    >>> Decay.of_half_life(1.0)
    Decay(factor=2.0)
    >>> Decay(2.0).half_life, Decay(1.0).half_life
    (1.0, inf)
    """

    factor: float

    def __post_init__(self) -> None:
        decay_weights(1, self.factor)  # checks it
        object.__setattr__(self, "factor", float(self.factor))

    @classmethod
    def of_half_life(cls, intervals: float) -> Decay:
        """Return the decay that halves an interval's weight after so many intervals, > 0."""
        length = number(intervals, "half_life", above=True, infinite=True)
        try:
            return cls(math.pow(2.0, 1.0 / length))
        except OverflowError:
            return cls(math.inf)  # the past is forgotten at once

    @property
    def half_life(self) -> float:
        """Intervals after which a weight has halved: infinite for τ = 1, 0 for τ = ∞."""
        if self.factor == 1.0:
            return math.inf
        return 0.0 if math.isinf(self.factor) else 1.0 / math.log2(self.factor)


@dataclass(frozen=True, eq=False)
class DecayedCounts:
    """The state after some intervals: decayed counts, never changed in place.

    Attributes
    ----------
    decay
        How fast the past is forgotten.
    counts
        N(i), read-only, any shape; usually (clients, operations) or (databases, clients,
        operations).
    weight
        Σ of the weights of the intervals seen, so that counts / weight are decayed operations per
        interval; 0 before the first.
    intervals
        i, how many were seen.

    Examples
    --------
    >>> state = DecayedCounts.empty((2,), Decay(2.0)).after([8.0, 0.0]).after([1.0, 3.0])
    >>> state.counts, state.weight, state.intervals
    (array([5., 3.]), 1.5, 2)
    """

    decay: Decay
    counts: FloatArray
    weight: float = 0.0
    intervals: int = 0

    @classmethod
    def empty(cls, shape: tuple[int, ...], decay: Decay) -> DecayedCounts:
        """Return the state before the first interval."""
        return cls(decay, frozen(np.zeros(shape)))

    def after(self, counts: npt.ArrayLike) -> DecayedCounts:
        """Return the state after one more interval.

        Parameters
        ----------
        counts
            n(i), of the shape of the state; an interval in which nothing was issued is zeros.

        Raises
        ------
        InputError
            For another shape, or counts that are negative or not finite.

        Notes
        -----
        O(cells). For τ = ∞ the past is dropped altogether.
        """
        new = _checked(counts, self.counts.shape)
        fresh = self.counts / self.decay.factor + new
        fresh.flags.writeable = False
        weight = self.weight / self.decay.factor + 1.0
        return DecayedCounts(self.decay, fresh, weight, self.intervals + 1)

    @property
    def rates(self) -> FloatArray:
        """Decayed mean operations per interval; zeros before the first interval."""
        return self.counts / self.weight if self.weight else self.counts

    def to_json(self) -> dict[str, object]:
        """Return the state as JSON values, from which :meth:`from_json` restores every bit."""
        return {
            "decay": self.decay.factor.hex(),
            "shape": list(self.counts.shape),
            # Python writes the shortest decimal that reads back to the same float.
            "counts": self.counts.reshape(-1).tolist(),
            "weight": self.weight,
            "intervals": self.intervals,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> DecayedCounts:
        """Restore a state.

        Raises
        ------
        InputError
            For anything that :meth:`to_json` did not write.
        """
        try:
            shape = tuple(int(n) for n in value["shape"])  # type: ignore[attr-defined]  # checked
            factor = float.fromhex(value["decay"])  # type: ignore[arg-type]  # by the except
            cells = np.asarray(value["counts"], dtype=np.float64).reshape(shape)
            weight = float(value["weight"])  # type: ignore[arg-type]  # below
            intervals = int(value["intervals"])  # type: ignore[call-overload]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"not a state of decayed counts ({type(error).__name__}: {error})",
                field="state",
                expected="what DecayedCounts.to_json gave",
            ) from None
        good, given = 0 <= weight < math.inf and intervals >= 0, (weight, intervals)
        words = "not a state of decayed counts"
        require(good, "weight, intervals", words, given, "finite numbers >= 0")
        return cls(Decay(factor), frozen(_checked(cells, shape)), weight, intervals)


def decayed_counts(counts: npt.ArrayLike, decay: Decay, *, axis: int = 0) -> FloatArray:
    """Return N(1), …, N(T) for a series of counts along `axis`, oldest first.

    Scores decay by the same law. The last slice is bit for bit the state that T calls of
    :meth:`DecayedCounts.after` reach. O(size), T steps in Python. Infinite cells (leaders that may
    not lead) stay infinite, except for τ = ∞, which returns the counts as they are.
    """
    result = np.array(counts, dtype=np.float64)
    if math.isfinite(decay.factor):
        steps = np.moveaxis(result, axis, 0)
        for step in range(1, len(steps)):
            steps[step] += steps[step - 1] / decay.factor
    return result


def _checked(counts: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    array = numbers_of(counts, "counts")
    require(array.shape == shape, "counts", "wrong shape", array.shape, str(shape))
    good = not array.size or (array.min() >= 0 and array.max() < np.inf)
    require(good, "counts", "out of range", expected="finite numbers >= 0")
    return array

"""Arithmetic of discrete latency distributions: sums, order statistics, percentiles.

A distribution is a vector of probabilities: entry b is the probability of b bin widths. Its entries
may sum to less than 1; the missing mass is *overflow*, mass beyond the last bin, of which only that
is known. All functions work along the last axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from placement.support.checks import FloatArray

NOISE = 1e-13
"""Probabilities below it are round-off: a convolution of point masses leaves 1e-16."""

_ONE_THREAD = {1: 1 << 13, 2: 1 << 18}
"""Multiplications that OpenBLAS leaves to one thread, by the dimensions of the left side."""


@lru_cache(maxsize=256)
def fft_length(bins: int, hops: int) -> int:
    """Length of a transform in which a sum of `hops` variables does not wrap around.

    The least even product of powers of 2, 3 and 5 that is long enough: transforms of those are
    fast.

    Examples
    --------
    >>> fft_length(1000, 3), fft_length(1, 1)
    (3000, 2)
    """
    wanted = max(2, max(hops, 1) * (bins - 1) + 1)
    best = 1 << (wanted - 1).bit_length()
    fives = 1
    while fives < best:
        threes = fives
        while threes < best:
            twos = 2 * threes
            while twos < wanted:
                twos *= 2
            best = min(best, twos)
            threes *= 3
        fives *= 5
    return best


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Matrix product, in blocks of columns that are too small for several threads.

    The matrices of percentiles take microseconds. OpenBLAS would wake its threads for the larger
    ones, and a thread that has done its part of one waits in a loop for the next: processor time
    that a search over the products in between needs for itself.

    Parameters
    ----------
    left
        Shape (n,) or (m, n).
    right
        Shape (n, k).

    Returns
    -------
    ndarray
        Shape (k,) or (m, k).

    Notes
    -----
    O(m·n·k).
    """
    columns = right.shape[1]
    step = max(1, _ONE_THREAD[left.ndim] // max(1, left.size))
    if step >= columns:
        return np.asarray(left @ right)
    return np.concatenate(
        [left @ right[:, at : at + step] for at in range(0, columns, step)], axis=-1
    )


def clean(values: FloatArray, mass: npt.ArrayLike) -> FloatArray:
    """Remove round-off: clip what is negative or below `NOISE`, restore the known total mass."""
    kept = np.where(values < NOISE, 0.0, values)
    total = kept.sum(axis=-1, keepdims=True)
    wanted = np.asarray(mass)[..., np.newaxis]
    return np.asarray(kept * np.divide(wanted, total, out=np.zeros_like(total), where=total > 0))


def sum_of_independent(parts: Sequence[FloatArray]) -> FloatArray:
    """Distribution of the sum of independent variables, with room for all of it.

    Parameters
    ----------
    parts
        Distributions with equal leading axes and any numbers of bins.

    Returns
    -------
    ndarray
        Σ (bins − 1) + 1 bins. Its overflow is the probability that any part overflows; entries at
        or beyond the shortest horizon of a part that overflows are lower bounds.

    Notes
    -----
    Discrete convolution by FFT, O(n log n); Sharov et al., section 3.1.
    """
    bins = sum(part.shape[-1] - 1 for part in parts) + 1
    length = fft_length(bins, 1)
    spectrum = np.fft.rfft(parts[0], length)
    mass = parts[0].sum(axis=-1)
    for part in parts[1:]:
        spectrum = spectrum * np.fft.rfft(part, length)
        mass = mass * part.sum(axis=-1)
    return clean(np.fft.irfft(spectrum, length)[..., :bins], mass)


def at_least(successes: int, probabilities: FloatArray) -> FloatArray:
    """P(at least `successes` of n independent events), the tail of a Poisson-binomial.

    Parameters
    ----------
    successes
        k; 0 or less gives 1.
    probabilities
        Shape (n, ...): of each event; events need not be alike.

    Notes
    -----
    O(n·k): after each event, p[j] is the probability of exactly j successes so far, with p[k]
    standing for k or more.
    """
    shape = probabilities.shape[1:]
    if successes <= 0:
        return np.ones(shape)
    if successes > len(probabilities):
        return np.zeros(shape)
    exactly = np.zeros((successes + 1, *shape))
    exactly[0] = 1.0
    for p in probabilities:
        exactly[successes] += exactly[successes - 1] * p
        for j in range(successes - 1, 0, -1):
            exactly[j] = exactly[j] * (1 - p) + exactly[j - 1] * p
        exactly[0] *= 1 - p
    result: FloatArray = np.clip(exactly[successes], 0.0, 1.0)
    return result


def quorum_distribution(others: FloatArray, quorum: int) -> FloatArray:
    """Distribution of the wait for a quorum, the leader's own vote included.

    P(q <= x) = P(at least m − 1 of the other v − 1 voters have answered by x), answers independent
    but not alike.

    Parameters
    ----------
    others
        Distributions of the RTTs from the leader to the other voters, shape (v − 1, bins).
    quorum
        m, 1 <= m <= v.

    Returns
    -------
    ndarray
        Shape (bins,).
    """
    bins = others.shape[-1]
    if quorum <= 1:
        alone: FloatArray = np.eye(1, bins)[0]
        return alone
    by_then = at_least(quorum - 1, np.minimum(np.cumsum(others, axis=-1), 1.0))
    return np.asarray(np.diff(by_then, prepend=0.0))


def percentile(distribution: FloatArray, share: float, *, horizon: int) -> float:
    """Least number of bin widths x with P(X <= x) >= `share`.

    Parameters
    ----------
    distribution
        Shape (bins,).
    share
        p in (0, 1].
    horizon
        First bin at which mass may be missing, when the distribution overflows.

    Returns
    -------
    float
        Infinite when the percentile lies in the overflow, or beyond the horizon of a distribution
        that has any.
    """
    reached = np.cumsum(distribution)
    total = float(reached[-1])
    place = int(np.searchsorted(reached, share - 1e-12 * max(1.0, total)))
    if place >= len(reached):
        return math.inf
    overflows = total < 1 - 1e-9
    return math.inf if overflows and place >= horizon else float(place)

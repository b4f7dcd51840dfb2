"""Distributions of pairs on a grid of bins, from samples, percentiles, or a family.

A value is put into the bin whose multiple of the bin width is closest. Mass beyond the last bin is
left out of the result, which then sums to less than 1. This overflow is never dropped in silence.

A table of pairs keeps each of them from its first bin with mass to its last. A row is the
distribution of one RTT; pairs that are alike share one: with a family and one spread, those of
equal mean. Other rooms read a table as an array of shape (rows, columns, bins). What they ask for
is filled with zeros then; few rows are filled once and kept.

In sums, order statistics and percentiles a distribution is a vector of probabilities: entry b is
the probability of b bin widths. Its entries may sum to less than 1; the missing mass is *overflow*,
mass beyond the last bin, of which only that is known. These functions work along the last axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, MissingDependencyError
from placement.support.checks import BoolArray, FloatArray, IntArray, number

# Arithmetic of discrete latency distributions: sums, order statistics, percentiles

NOISE = 1e-13
"""Probabilities below it are round-off: a convolution of point masses leaves 1e-16."""

_ONE_THREAD = {1: 1 << 13, 2: 1 << 18}
"""Multiplications that OpenBLAS leaves to one thread, by the dimensions of the left side."""


@lru_cache(maxsize=256)
def fft_length(bins: int, hops: int) -> int:
    """Length of a transform in which a sum of `hops` variables does not wrap around.

    The least even product of powers of 2, 3 and 5 that is long enough: transforms of those are
    fast.
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
    """Distribution of the sum of independent variables, with room for all: Σ (bins − 1) + 1 bins.

    Its overflow is the probability that any part overflows; entries at or beyond the shortest
    horizon of a part that overflows are lower bounds. Discrete convolution by FFT, O(n log n);
    Sharov et al., section 3.1.
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

    `probabilities`, shape (n, ...), need not be alike. O(n·k): after each event, p[j] is the
    probability of exactly j successes so far, with p[k] standing for k or more.
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
    """Distribution of the wait for a quorum, the leader's own vote included, shape (bins,).

    P(q <= x) = P(at least m − 1 of the other v − 1 voters have answered by x), answers independent
    but not alike. `others`, shape (v − 1, bins), are the RTTs from the leader to them; `quorum` is
    m, 1 <= m <= v.
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


# Probabilities of many pairs, each from its first bin with mass to its last

SMALL = 1 << 24
"""Probabilities of a table that is filled once: 128 MB."""

_AT_ONCE = 1 << 15
"""Numbers that are computed at once."""

MOST_STORED = 250_000_000
"""Probabilities that are stored: 2 GB."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Rows of bins without the zeros around them."""

    first: IntArray  #: bin of the first value of each row, shape (rows,)
    #: place of the first value of each row in `values`, and the number of values, (rows + 1,)
    start: IntArray
    values: FloatArray  #: of all rows, one row after the other
    bins: int  #: of a full row

    @classmethod
    def of_ranges(
        cls,
        first: IntArray,
        last: IntArray,
        bins: int,
        compute: Callable[[IntArray, IntArray], FloatArray],
    ) -> Segments:
        """Compute rows between given bins, some hundred thousand numbers at a time.

        A row has none where the last bin is before the first. `compute` takes the row of each edge
        and its number, and returns the probability below it. A row has an edge below each of its
        bins, and one more; below the first of them is nothing.
        """
        start = np.append(0, np.cumsum(np.maximum(0, last - first + 1)))
        _check_size(int(start[-1]))
        values = np.empty(start[-1])
        marks = np.searchsorted(start, np.arange(0, start[-1], _AT_ONCE), side="right")
        for low, high in itertools.pairwise([*sorted({*(marks - 1).tolist()}), len(first)]):
            edges = (last - first + 2)[low:high]
            edges[edges < 2] = 0
            row = np.repeat(np.arange(low, high), edges)
            begin = np.cumsum(edges) - edges
            edge = np.arange(len(row)) - np.repeat(begin - first[low:high], edges)
            below = compute(row, edge)
            below[begin[edges > 0]] = 0.0
            steps = np.diff(below)
            steps = np.delete(steps, begin[edges > 0][1:] - 1)  # from one row to the next
            values[start[low] : start[high]] = steps
        return cls(first, start, values, bins)

    @classmethod
    def of_rows(cls, blocks: Iterable[FloatArray], bins: int) -> Segments:
        """Keep rows that are given in blocks of shape (some, bins)."""
        first, counts, kept = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)], [np.zeros(0)]
        for block in blocks:
            filled = block != 0
            begin = filled.argmax(axis=1)
            end = np.where(filled.any(axis=1), bins - filled[:, ::-1].argmax(axis=1), begin)
            place = np.arange(bins)
            inside = (place >= begin[:, np.newaxis]) & (place < end[:, np.newaxis])
            first.append(begin)
            counts.append(end - begin)
            kept.append(block[inside])
            _check_size(sum(map(len, kept)))
        start = np.append(0, np.cumsum(np.concatenate(counts)))
        return cls(np.concatenate(first), start, np.concatenate(kept), bins)

    @cached_property
    def mass(self) -> FloatArray:
        """Sum of each row, shape (rows,)."""
        return self.within(self.bins - 1)

    def within(self, last: int) -> FloatArray:
        """Sum of each row up to a bin, that bin included, shape (rows,)."""
        length = np.diff(self.start)
        counted = np.clip(last + 1 - self.first, 0, length)
        some = np.nonzero(counted)[0]
        sums = np.zeros(len(length))
        if len(some):
            ends = np.column_stack([self.start[some], self.start[some] + counted[some]]).ravel()
            ends = ends[:-1] if ends[-1] == len(self.values) else ends  # the last sum goes on
            sums[some] = np.add.reduceat(self.values, ends)[::2]
        return sums

    def wrong(self) -> BoolArray:
        """Return whether a row is no distribution, shape (rows,): its mass may be below 1."""
        with np.errstate(invalid="ignore"):
            found = ~np.isfinite(self.mass) | (self.mass > 1 + 1e-9)
            found[np.searchsorted(self.start, np.nonzero(self.values < 0)[0], "right") - 1] = True
        return np.asarray(found)

    @cached_property
    def _full(self) -> FloatArray | None:
        """All rows with all their bins; None: they are too many to be kept."""
        rows = len(self.first)
        return self._filled(np.arange(rows)) if rows * self.bins <= SMALL else None

    def filled(self, rows: IntArray, bins: int | None = None) -> FloatArray:
        """Return some rows with all their bins or the first of them, shape (…, bins)."""
        full = self._full
        return self._filled(rows)[..., :bins] if full is None else full[:, :bins][rows]

    def _filled(self, rows: IntArray) -> FloatArray:
        wanted = np.asarray(rows).ravel()
        full = np.zeros((len(wanted), self.bins))
        starts, ends = self.start[wanted].tolist(), self.start[wanted + 1].tolist()
        for row, first, start, end in zip(
            full, self.first[wanted].tolist(), starts, ends, strict=True
        ):
            row[first : first + end - start] = self.values[start:end]
        return full.reshape(*np.shape(rows), self.bins)


def _check_size(stored: int) -> None:
    if stored > MOST_STORED:
        raise InputError(
            f"too fine: more than {MOST_STORED:,} probabilities",
            field="bin width",
            value=stored,
            expected="wider bins, or a shorter horizon",
        )


@dataclass(frozen=True, eq=False)
class PairBins:
    """Distributions of the pairs of some rows and columns.

    >>> table = PairBins.of(np.array([[[0.0, 0.5, 0.5], [0.0, 1.0, 0.0]]]))
    >>> table.shape, len(table.segments.values)  # the second pair has one bin
    ((1, 2, 3), 3)
    >>> table[0, 1].tolist(), table.within(1).tolist()
    ([0.0, 1.0, 0.0], [[0.5, 1.0]])
    """

    row: IntArray  #: row of each pair in `segments`, shape (rows, columns)
    segments: Segments  #: of the pairs that differ

    @classmethod
    def of(cls, table: FloatArray) -> PairBins:
        """Keep a full table, shape (rows, columns, bins)."""
        pairs, bins = table.shape[:2], table.shape[2]
        rows = np.arange(pairs[0] * pairs[1]).reshape(pairs)
        return cls(rows, Segments.of_rows(table, bins))

    @property
    def bins(self) -> int:
        """Bins of a pair."""
        return self.segments.bins

    @property
    def shape(self) -> tuple[int, int, int]:
        """(rows, columns, bins)."""
        return (*self.row.shape, self.bins)

    def __getitem__(self, key: Any) -> FloatArray:
        """Return the probabilities of some pairs; the key is of the first two axes."""
        return self.segments.filled(self.row[key])

    def begin(self, key: Any, bins: int) -> FloatArray:
        """Return the first bins of some pairs; the key is of the first two axes."""
        return self.segments.filled(self.row[key], bins)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self[:], dtype=dtype, copy=copy is not False)

    @cached_property
    def mass(self) -> FloatArray:
        """Probability of a bin at all, shape (rows, columns)."""
        return self.segments.mass[self.row]

    def within(self, last: int) -> FloatArray:
        """Probability of a bin up to `last`, shape (rows, columns)."""
        return self.segments.within(last)[self.row]


# Distributions of one pair, from samples, percentiles, or a family

Family = Literal["lognormal", "gamma"]

Below = Callable[[IntArray, IntArray], FloatArray]
"""(row of each edge, number of the edge) -> probability below it."""

_FAR = 8.3
"""Standard normal deviate beyond which a tail is 0 in double precision beside 1."""

_NOTHING = 1e-19
"""Probability of a tail that is 0 in double precision beside 1."""

_STILL = 1e-9
"""Coefficient of variation below which nothing varies: no bin is as narrow as that."""


def of_weights(
    values: Sequence[float], weights: Sequence[float], *, width: float, bins: int
) -> FloatArray:
    """Distribution of values in ms with weights (counts or probabilities), scaled to sum to 1.

    InputError when a value or weight is negative or not finite, or all weights are 0.
    """
    place = np.asarray(values, dtype=np.float64)
    share = np.asarray(weights, dtype=np.float64)
    for field, given in (("values", place), ("weights", share)):
        if not (np.isfinite(given) & (given >= 0)).all():
            raise InputError(
                "bad histogram", field=field, value=given.tolist(), expected="finite numbers >= 0"
            )
    total = float(share.sum())
    if place.shape != share.shape or not (math.isfinite(total) and total > 0):
        raise InputError(
            "bad histogram", field="weights", value=total, expected="a weight > 0 for some value"
        )
    # compared before the conversion to whole numbers, which would overflow beyond 2**63 bins
    inside = place < (bins - 0.5) * width
    at = np.floor(place[inside] / width + 0.5).astype(np.intp)
    histogram: FloatArray = np.zeros(bins)
    # the division may round a value just below the last edge up to it
    np.add.at(histogram, np.minimum(at, bins - 1), share[inside] / total)
    return histogram


def of_percentiles(percentiles: Mapping[float, float], *, width: float, bins: int) -> FloatArray:
    """Distribution through given percentiles, such as {10: …, 50: …, 90: …, 99: …} in ms.

    The quantile function is linear between the given points. Below the lowest it goes on with the
    first slope, not below 0; above the highest the tail is exponential, v(p) = v_n +
    s·ln((1−p_n)/(1−p)), with the scale s of the last two points. InputError for fewer than two
    points, percentiles outside (0, 100), or values that fall.
    """
    percents = sorted(percentiles)
    levels, every, scales = _quantile_functions(percents, [[percentiles[p] for p in percents]])
    knots, scale = every[0], float(scales[0])
    edges = (np.arange(bins + 1) - 0.5) * width
    below = np.interp(edges, knots, levels, left=0.0)
    # Where the quantile function is flat there is an atom. One that lies on an edge belongs to the
    # bin above it, as rounding has it: `below` is the probability of less than the edge.
    for value in np.unique(knots):
        held = levels[knots == value]
        below[edges > value] = np.maximum(below[edges > value], held[-1])
        below[edges == value] = held[0]
    beyond = edges > knots[-1]
    if scale > 0:
        below[beyond] = 1 - (1 - levels[-1]) * np.exp(-(edges[beyond] - knots[-1]) / scale)
    else:
        below[beyond] = 1.0
    below[0] = 0.0
    return np.asarray(np.diff(below))


def _quantile_functions(
    percents: Sequence[float], values: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Levels, the values of each pair at them, shape (pairs, levels), and the scale of each tail.

    The percents rise; `values` has the shape (pairs, percents).
    """
    shares = np.array(percents, dtype=np.float64) / 100
    given = np.array(values, dtype=np.float64)

    def pair(row: int) -> dict[float, float]:
        return dict(zip(percents, given[row].tolist(), strict=True))

    if len(shares) < 2 or shares[0] <= 0 or shares[-1] >= 1:
        raise InputError(
            "bad percentiles",
            field="percentiles",
            value=pair(0),
            expected="two or more between 0 and 100, exclusive",
        )
    good = (np.isfinite(given) & (given >= 0)).all(axis=1)
    good &= ~(np.diff(given, axis=1) < 0).any(axis=1)
    if not good.all():
        raise InputError(
            "percentiles must not fall",
            field="percentiles",
            value=pair(int(good.argmin())),
            expected="finite values >= 0 in rising order",
        )
    slope = shares[0] * (given[:, 1] - given[:, 0]) / (shares[1] - shares[0])
    first = np.maximum(0.0, given[:, 0] - slope)
    scales = (given[:, -1] - given[:, -2]) / math.log((1 - shares[-2]) / (1 - shares[-1]))
    return np.append(0.0, shares), np.column_stack((first, given)), scales


def means_of_percentiles(percents: Sequence[float], values: npt.ArrayLike) -> FloatArray:
    """Return the mean of each of many pairs, ms, all given by the same percentiles, which rise.

    The integral of the quantile function: trapezia, and (1 − p_n)·(v_n + s) for the tail. `values`,
    in ms, have the shape (pairs, percents); InputError as of :func:`of_percentiles`, naming the
    first pair that is wrong.

    >>> means_of_percentiles([25, 75], [[10.0, 30.0], [10.0, 10.0]]).round(1)  # s = 20 / ln 3
    array([23.3, 10. ])
    """
    levels, knots, scales = _quantile_functions(percents, values)
    inner = (np.diff(levels) * (knots[:, 1:] + knots[:, :-1]) / 2).sum(axis=1)
    return np.asarray(inner + (1 - float(levels[-1])) * (knots[:, -1] + scales))


def of_family(
    mean: float, variation: float, family: Family, *, width: float, bins: int
) -> FloatArray:
    """Log-normal or gamma distribution with a given mean in ms and coefficient of variation.

    InputError for an unknown family or a negative variation; MissingDependencyError for "gamma"
    without SciPy.
    """
    one = of_families(np.array([mean]), variation, family, width=width, bins=bins)
    return one.filled(np.array(0))


def of_families(
    means: FloatArray, variation: float, family: Family, *, width: float, bins: int
) -> Segments:
    """Distributions as of :func:`of_family`, and its errors, of many means. O(bins with mass)."""
    if family not in ("lognormal", "gamma"):
        raise InputError(
            "unknown family", field="family", value=family, expected="'lognormal' or 'gamma'"
        )
    number(variation, "variation", maximum=1e6)
    edges: FloatArray = (np.arange(bins + 1, dtype=np.float64) - 0.5) * width
    low = high = means
    below: Below = lambda row, edge: np.ones(len(row))  # noqa: E731  # beyond the first edge
    still = (means == 0) | (variation < _STILL)
    if not still.all():
        low, high, below = _family(means, variation, family, edges)
        low, high = np.where(still, means, low), np.where(still, means, high)
    # compared before the conversion to whole numbers, which would overflow beyond 2**63 bins
    first, last = np.minimum(np.array([low, high]) / width + 0.5, float(bins)).astype(np.intp)
    return Segments.of_ranges(first, np.minimum(last, bins - 1), bins, below)


def _family(
    means: FloatArray, variation: float, family: Family, edges: FloatArray
) -> tuple[FloatArray, FloatArray, Below]:
    """Where the mass of each mean begins and ends, ms, and the probability below edges."""
    positive = np.maximum(edges, np.finfo(float).tiny)
    if family == "lognormal":
        sigma = math.sqrt(math.log1p(variation**2))
        with np.errstate(divide="ignore"):
            middle = np.log(means) - sigma**2 / 2  # −∞ for a mean of 0, all of which is below
        logarithm = np.log(positive)
        low, high = np.exp(middle - _FAR * sigma), np.exp(middle + _FAR * sigma)
        scale = -math.sqrt(0.5) / sigma

        def below(row: IntArray, edge: IntArray) -> FloatArray:
            return 0.5 * _erfc(scale * (logarithm[edge] - middle[row]))

        return low, high, below
    try:
        from scipy.special import gammainc, gammainccinv, gammaincinv
    except ImportError as error:
        raise MissingDependencyError.of("gamma distributions need SciPy", "tail") from error
    shape = 1 / variation**2
    low, high = (invert(shape, _NOTHING) * means / shape for invert in (gammaincinv, gammainccinv))
    with np.errstate(divide="ignore"):
        scales = shape / means  # ∞ for a mean of 0, all of which is below
    return low, high, lambda row, edge: np.asarray(gammainc(shape, positive[edge] * scales[row]))


def _erfc(values: FloatArray) -> FloatArray:
    """Return the complementary error function of each number."""
    try:
        from placement.tail import _error_function
    except ImportError:  # no compiler
        return np.fromiter(map(math.erfc, values.tolist()), np.float64, len(values))
    _error_function.erfc(values)
    return values

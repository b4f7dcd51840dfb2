"""Probabilities of many pairs, each from its first bin with mass to its last.

A row is the distribution of one RTT. Pairs that are alike share one: with a family and one spread,
those of equal mean. The rest of the house reads a table as an array of shape (rows, columns, bins).
What it asks for is filled with zeros then; few rows are filled once and kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from placement.errors import InputError
from placement.support.checks import BoolArray, FloatArray, IntArray

SMALL = 1 << 24
"""Probabilities of a table that is filled once: 128 MB."""

_AT_ONCE = 1 << 15
"""Numbers that are computed at once."""

MOST_STORED = 250_000_000
"""Probabilities that are stored: 2 GB."""


@dataclass(frozen=True, eq=False)
class Segments:
    """Rows of bins without the zeros around them.

    Attributes
    ----------
    first
        Bin of the first value of each row, shape (rows,).
    start
        Place of the first value of each row in `values`, and the number of values, (rows + 1,).
    values
        Of all rows, one row after the other.
    bins
        Of a full row.
    """

    first: IntArray
    start: IntArray
    values: FloatArray
    bins: int

    @classmethod
    def of_ranges(
        cls,
        first: IntArray,
        last: IntArray,
        bins: int,
        compute: Callable[[IntArray, IntArray], FloatArray],
    ) -> Segments:
        """Compute rows between given bins, some hundred thousand numbers at a time.

        Parameters
        ----------
        first, last
            Bins of each row; none where the last is before the first.
        bins
            Of a full row.
        compute
            (row of each edge, number of the edge) -> probability below it. A row has an edge below
            each of its bins, and one more; below the first of them is nothing.
        """
        start = np.append(0, np.cumsum(np.maximum(0, last - first + 1)))
        _check_size(int(start[-1]))
        values = np.empty(start[-1])
        marks = np.searchsorted(start, np.arange(0, start[-1], _AT_ONCE), side="right")
        for low, high in itertools.pairwise([*np.unique(marks - 1).tolist(), len(first)]):
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

    Attributes
    ----------
    row
        Row of each pair in `segments`, shape (rows, columns).
    segments
        Of the pairs that differ.

    Examples
    --------
    Two pairs and their bins, of which the second pair has one:

    >>> table = PairBins.of(np.array([[[0.0, 0.5, 0.5], [0.0, 1.0, 0.0]]]))
    >>> table.shape, len(table.segments.values)
    ((1, 2, 3), 3)
    >>> table[0, 1].tolist(), table.within(1).tolist()
    ([0.0, 1.0, 0.0], [[0.5, 1.0]])
    """

    row: IntArray
    segments: Segments

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

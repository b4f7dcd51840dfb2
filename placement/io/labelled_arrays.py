"""Matrices with names along their axes, to tables and back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placement.errors import MOST_ERRORS, InputError, raise_all, refused, require
from placement.io.formats.column_reader import ColumnTable, read_frame
from placement.io.formats.tables import free_column
from placement.support.checks import FloatArray, suggest

INTERVAL = "interval"
"""Header of the column that holds the interval, in front of the column of row names."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """A matrix by name, with an axis of intervals when `intervals` is not empty."""

    source: str  #: the file, for messages
    #: names along the axes, in the order of the file
    intervals: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: FloatArray  #: shape (rows, columns) or (intervals, rows, columns)

    def ordered(
        self,
        intervals: Sequence[str] | None,
        rows: tuple[str, Sequence[str]],
        columns: tuple[str, Sequence[str]],
    ) -> FloatArray:
        """Return the values in another order of the same names; refuse names that others lack.

        `intervals` is the wanted order, None without such an axis; `rows` and `columns` are the
        word for one ("client", "site", …) and the wanted order.
        """
        values = self.values
        axes = [(rows[0], self.rows, rows[1]), (columns[0], self.columns, columns[1])]
        if intervals is not None:
            axes.insert(0, (INTERVAL, self.intervals, intervals))
        for axis, (word, have, want) in enumerate(axes):
            if have == tuple(want):
                continue
            index = {name: i for i, name in enumerate(have)}
            missing = [name for name in want if name not in index]
            check_known(self.source, word, have, want, missing)
            if missing:
                words = f"{len(missing)} of {len(want)} {word}s missing"
                raise refused(self.source, word, words, missing[0], "every one of them")
            values = np.take(values, [index[name] for name in want], axis=axis)
        return values


def check_known(
    source: str, word: str, have: Sequence[str], want: Sequence[str], missing: Sequence[str] = ()
) -> None:
    """Refuse names of a table that the other tables lack, each with the nearest name.

    A `word` says what a name is. The table has the names `have`, the others `want`; those `missing`
    in the table are what a stray name may mean.
    """
    known = set(want)
    words = f"one of the {word}s of the other tables"
    errors: list[InputError] = []
    for name in (name for name in have if name not in known):
        # the nearest of many names takes a millisecond, and only the first errors are shown
        near = suggest(name, missing or want, words) if len(errors) < MOST_ERRORS else words
        errors.append(refused(source, word, f"unknown {word}", name, near))
    raise_all(errors)


def read_matrix(path: str | os.PathLike[str], word: str, quantity: str) -> Labelled:
    """Read a matrix: row names (`word`) in the first column, after the interval, if any."""
    frame = read_frame(path, _keys)
    return matrix_of(frame, _keys(frame.columns), word, quantity)


def matrix_of(
    frame: ColumnTable, keys: Sequence[str], word: str, quantity: str, *, gaps: bool = False
) -> Labelled:
    """Return a matrix whose first columns, the `keys`, hold the intervals (if any) and the rows.

    With `gaps`, a blank cell is NaN, and blanks around names are left out.
    """
    columns = frame.columns[len(keys) :]
    words, expected = "no columns of numbers", f"a column for the {word}s"
    require(columns, "", words, expected=expected, source=frame.source)
    rows, of_row = frame.found(keys[-1], strip=gaps)
    intervals, of_interval = (
        frame.found(keys[0], strip=False)
        if len(keys) == 2
        else ((), np.zeros(frame.rows, dtype=np.intp))
    )
    shape = (len(intervals) or 1, len(rows))
    flat = of_interval * shape[1] + of_row
    found, first = np.unique(flat, return_index=True)
    if len(found) < frame.rows:
        again = int(np.setdiff1d(np.arange(frame.rows), first)[0])
        before = int(np.nonzero(flat == flat[again])[0][0])
        words = f"duplicate {word}" + (
            f" in interval {intervals[of_interval[again]]!r}" if intervals else ""
        )
        expected = f"once (first in row {frame.number(before)})"
        raise refused(frame.at(again), keys[-1] or word, words, rows[of_row[again]], expected)
    if frame.rows < shape[0] * shape[1]:
        missing = int(np.setdiff1d(np.arange(shape[0] * shape[1]), found)[0])
        expected = f"a row for it in interval {intervals[missing // shape[1]]!r}"
        raise refused(frame.source, word, "missing row", rows[missing % shape[1]], expected)
    cells = frame.matrix(columns, quantity, blank=gaps)
    values = cells.reshape(*shape, len(columns))
    if (np.diff(flat) != 1).any():  # rows in another order than their names
        values = np.empty_like(values)
        values[of_interval, of_row] = cells
    return Labelled(frame.source, intervals, rows, columns, values if intervals else values[0])


def _keys(header: tuple[str, ...]) -> tuple[str, ...]:
    # The first column is a key and never a site, so its header can be trusted; it carries an
    # underscore where a site has that name.
    return header[:2] if header[0].rstrip("_") == INTERVAL else header[:1]


def to_rows(
    values: FloatArray,
    word: str,
    intervals: Sequence[str],
    rows: Sequence[str],
    columns: Sequence[str],
) -> tuple[list[str], Iterator[list[str | float]]]:
    """Return header and rows of the table that :func:`read_matrix` reads back.

    An array of three axes gets a column of intervals in front.
    """
    key = free_column(word, columns)
    varying = values.ndim == 3
    header = [free_column(INTERVAL, [*columns, key]), key] if varying else [key]

    def lines() -> Iterator[list[str | float]]:
        for t, block in enumerate(values if varying else values[np.newaxis]):
            for r, name in enumerate(rows):
                yield [*([intervals[t]] if varying else []), name, *block[r].tolist()]

    return [*header, *columns], lines()

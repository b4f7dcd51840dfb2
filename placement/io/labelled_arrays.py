"""Matrices with names along their axes, to tables and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from placement.checks import FloatArray
from placement.errors import InputError
from placement.io.formats.tables import Table, free_column, name_cell, quantity_cell

__all__ = ["INTERVAL", "Labelled", "from_table", "to_rows"]

INTERVAL = "interval"
"""Header of the column that holds the interval, in front of the column of row names."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """A matrix by name, with an axis of intervals when `intervals` is not empty.

    Attributes
    ----------
    source
        The file, for messages.
    intervals, rows, columns
        Names along the axes, in the order of the file.
    values
        Shape (rows, columns) or (intervals, rows, columns).
    """

    source: str
    intervals: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: FloatArray

    def ordered(
        self,
        intervals: Sequence[str] | None,
        rows: tuple[str, Sequence[str]],
        columns: tuple[str, Sequence[str]],
    ) -> FloatArray:
        """Return the values in another order of the same names.

        Parameters
        ----------
        intervals
            Wanted order; None when there is no such axis.
        rows, columns
            The word for one ("client", "site", …) and the wanted order.

        Raises
        ------
        InputError
            When a name is missing in the table or unknown outside it.
        """
        values = self.values
        axes = [(rows[0], self.rows, rows[1]), (columns[0], self.columns, columns[1])]
        if intervals is not None:
            axes.insert(0, (INTERVAL, self.intervals, intervals))
        for axis, (word, have, want) in enumerate(axes):
            values = np.take(values, _positions(self.source, word, have, want), axis=axis)
        return values


def _positions(source: str, word: str, have: Sequence[str], want: Sequence[str]) -> list[int]:
    index = {name: i for i, name in enumerate(have)}
    missing = [name for name in want if name not in index]
    if missing:
        raise InputError(
            f"{len(missing)} of {len(want)} {word}s missing",
            source=source,
            field=word,
            value=missing[0],
            expected="every one of them",
        )
    known = set(want)
    for name in have:
        if name not in known:
            shown = ", ".join(map(repr, want[:8])) + (", …" if len(want) > 8 else "")
            raise InputError(
                f"unknown {word}", source=source, field=word, value=name, expected=f"one of {shown}"
            )
    return [index[name] for name in want]


def from_table(table: Table, word: str, quantity: str) -> Labelled:
    """Read a matrix: row names in the first column (after the interval, if any), then columns.

    Parameters
    ----------
    table
        As read.
    word
        What a row is: "site" or "client".
    quantity
        What a cell must be, for messages.

    Raises
    ------
    InputError
        For a duplicate or missing row, and for cells that are no such quantity.
    """
    # The first column is a key and never a site, so its header can be trusted; it carries an
    # underscore where a site has that name.
    varying = table.columns[0].rstrip("_") == INTERVAL
    keys = 2 if varying else 1
    columns = table.columns[keys:]
    if not columns:
        raise InputError(
            "no columns of numbers", source=table.source, expected=f"a column for the {word}s"
        )
    if not table.rows:
        raise InputError("no rows", source=table.source, expected=f"a row per {word}")
    places: dict[tuple[str, str], int] = {}
    for i, cells in enumerate(table.rows):
        interval = name_cell(cells[0], table.at(i), INTERVAL) if varying else ""
        key = (interval, name_cell(cells[keys - 1], table.at(i), word))
        if key in places:
            raise InputError(
                f"duplicate {word}" + (f" in interval {interval!r}" if varying else ""),
                source=table.at(i),
                field=word,
                value=key[1],
                expected=f"once (first in row {table.numbers[places[key]]})",
            )
        places[key] = i
    intervals = tuple(dict.fromkeys(interval for interval, _ in places))
    rows = tuple(dict.fromkeys(name for _, name in places))
    values = np.empty((len(intervals), len(rows), len(columns)))
    for t, interval in enumerate(intervals):
        for r, name in enumerate(rows):
            if (interval, name) not in places:
                raise InputError(
                    "missing row",
                    source=table.source,
                    field=word,
                    value=name,
                    expected=f"a row for it in interval {interval!r}",
                )
            i = places[(interval, name)]
            for c, column in enumerate(columns):
                cell = table.rows[i][keys + c]

                values[t, r, c] = quantity_cell(cell, table.at(i), column, quantity)
    return Labelled(
        table.source,
        intervals if varying else (),
        rows,
        columns,
        values if varying else values[0],
    )


def to_rows(
    values: FloatArray,
    word: str,
    intervals: Sequence[str],
    rows: Sequence[str],
    columns: Sequence[str],
) -> tuple[list[str], Iterator[list[str | float]]]:
    """Return header and rows of the table that :func:`from_table` reads back.

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

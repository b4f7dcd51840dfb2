"""Columns of tables: read whole where all is well, cell by cell where it is not.

A million rows take pandas a second and the careful reader (:mod:`placement.io.formats.tables`) ten.
pandas reads large tables; columns of small ones are converted whole. Both give up at the first sign
of trouble; the careful reader then says what and where.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import (
    MOST_ERRORS,
    Gathered,
    InputError,
    for_each,
    nearest,
    raise_all,
    refused,
    require,
)
from placement.io.formats.files import read_input
from placement.io.formats.tables import (
    PARQUET,
    Cell,
    Table,
    arrow_table,
    free_column,
    is_blank,
    load_pyarrow,
    name_cell,
    open_parquet,
    quantity_cell,
    read_table,
)
from placement.support.checks import LARGEST, FloatArray, IntArray, suggest

if TYPE_CHECKING:
    import pandas as pd

_NAMES = ("database", "interval", "client", "operation")

_SMALL = 2**16
"""Bytes of a CSV from which on pandas reads faster than Python does."""

_WIDE = 32
"""Columns from which on the names of a CSV are converted cell by cell: where the type of any column
is given, pandas makes a series of each column, 15 µs."""

_BATCH = 2**16
"""Rows of a Parquet file that are read at a time where a table is too large for the memory."""

_MEDIUM = 2**21
"""Bytes of a CSV from which on it pays to import pandas for it, some 0.4 s."""


@dataclass(eq=False)
class ColumnTable:
    """A table by column."""

    source: str  #: the file, for messages
    columns: tuple[str, ...]  #: header
    rows: int  #: how many
    #: the columns as pandas read them; None: the table was read with care
    fast: pd.DataFrame | None = None
    _careful: Table | None = field(default=None, repr=False)
    _read: Callable[[], Table] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, table: Table) -> ColumnTable:
        """Return the columns of a table that was read with care; an empty one is allowed."""
        return cls(table.source, table.columns, len(table.rows), None, table)

    @property
    def table(self) -> Table:
        """Return the table with its cells and row numbers, read for messages."""
        if self._careful is None:
            self._careful = read_table(self.source) if self._read is None else self._read()
        return self._careful

    def number(self, row: int) -> int:
        """Return the number of a row in the file."""
        return self.table.numbers[row]

    def at(self, row: int) -> str:
        """Return file and row, for messages."""
        return self.table.at(row)

    def text(self, column: str, row: int) -> str:
        """Return a cell as a name."""
        table = self.table
        return name_cell(table.rows[row][table.column(column)], self.at(row), column).strip()

    def found(self, column: str, *, strip: bool = True) -> tuple[tuple[str, ...], IntArray]:
        """Return the distinct names of a column by first row, and the place of each row's name.

        Blanks around names are left out, unless `strip` is false.
        """
        codes, cells = self._codes(column)
        place: dict[str, int] = {}
        of_cell = []
        for cell, row in cells:
            # only distinct cells are checked, each at its first row
            where = self.at(row) if is_blank(cell) or "\0" in str(cell) else self.source
            name = name_cell(cell, where, column)
            name = name.strip() if strip else name
            of_cell.append(place.setdefault(name, len(place)))
        return tuple(place), np.array(of_cell, dtype=np.intp)[codes]

    def names(self, column: str, known: Sequence[str], what: str) -> IntArray:
        """Return each row's place in a list of known names; others are refused with their row."""
        found, which = self.found(column)
        place = {name: i for i, name in enumerate(known)}
        gathered = Gathered()
        for number, name in enumerate(found):
            if name not in place:
                row = int(np.nonzero(which == number)[0][0])
                expected = f"one of the {len(known)}{nearest(name, known)}"
                gathered.add(refused(self.at(row), column, f"no {what}", name, expected))
        gathered.check()
        return np.array([place[name] for name in found], dtype=np.intp)[which]

    def quantities(self, column: str, expected: str) -> FloatArray:
        """Return a column of numbers from 0 to :data:`LARGEST`."""
        return self.matrix([column], expected)[:, 0]

    def matrix(self, columns: Sequence[str], expected: str, *, blank: bool = False) -> FloatArray:
        """Return columns of numbers from 0 to :data:`LARGEST`, shape (rows, columns).

        A `blank` cell may be allowed, and is NaN. Any other cell is refused with its row.
        """
        if self.fast is not None and set(columns) <= set(self.columns):
            first = self.columns.index(columns[0]) if columns else 0
            if tuple(columns) == self.columns[first : first + len(columns)]:  # a view, no copy
                part = self.fast.iloc[:, first : first + len(columns)]
            else:
                part = self.fast[list(columns)]
            values = part.to_numpy(dtype=np.float64)
        else:
            places = [self.table.column(name) for name in columns]
            values = text_numbers(self.table, places)
        if values.size and values.min() >= 0 and values.max() <= LARGEST:  # false for NaN
            return values
        table = self.table
        places = [table.column(name) for name in columns]

        def value(at: tuple[int, int]) -> float:
            row, place = at
            cell = table.rows[row][place]
            if blank and is_blank(cell):
                return math.nan
            return quantity_cell(cell, self.at(row), table.columns[place], expected)

        every = ((row, place) for row in range(len(table.rows)) for place in places)
        return np.array(for_each(value, every, math.nan)).reshape(-1, len(places))

    def _codes(self, column: str) -> tuple[IntArray, list[tuple[Cell, int]]]:
        """Number of each row's cell, and each distinct cell with its first row."""
        if self.fast is None or column not in self.columns:
            place = self.table.column(column)
            seen: dict[Cell, int] = {}
            first: list[tuple[Cell, int]] = []
            codes = np.empty(self.rows, dtype=np.intp)
            for row, cells in enumerate(self.table.rows):
                codes[row] = seen.setdefault(cells[place], len(seen))
                if codes[row] == len(first):
                    first.append((cells[place], row))
            return codes, first
        import pandas as pd

        codes, values = pd.factorize(self.fast[column])
        _, rows = np.unique(codes, return_index=True)
        return codes.astype(np.intp), list(zip(values.tolist(), rows.tolist(), strict=True))


def text_numbers(table: Table, places: Sequence[int]) -> FloatArray:
    """Return the numbers of all rows at once; nothing where a cell needs a closer look."""
    found: list[list[float]] = []
    try:
        for row in table.rows:
            cells = [row[place] for place in places]
            if "_" in "".join(cells):  # type: ignore[arg-type]  # a TypeError is caught here
                return np.empty(0)  # Python would take "1_000" for a thousand
            found.append(list(map(float, cells)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return np.empty(0)
    return np.array(found).reshape(-1, len(places))


Names = Callable[[tuple[str, ...]], Sequence[str]]
"""Returns the columns of names, from the header; all others are numbers."""


def key_columns(header: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns of names in a table of demand."""
    return tuple(name for name in header if name in _NAMES)


def read_frame(path: str | os.PathLike[str], names: Names = key_columns) -> ColumnTable:
    """Read a table by column: CSV, TSV or Parquet; `names` are its columns of names.

    All other columns are numbers. A file that is no table, or has no rows, is refused.
    """
    source = os.fspath(path)
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET:
        with open_parquet(path) as file:
            fast = _numbers_and_names(file.read(), names)
    else:
        fast = _fast_csv(read_input(path), suffix, names)
    if fast is not None:
        frame = ColumnTable(source, tuple(map(str, fast.columns)), len(fast), fast)
    else:
        frame = ColumnTable.of(read_table(source))
    require(frame.rows, "", "no rows", expected="a row per count", source=source)
    return frame


def _fast_csv(content: bytes, suffix: str, names: Names) -> pd.DataFrame | None:
    """Return the table, or None at the least sign of trouble, and for a small table."""
    if len(content) < (_SMALL if "pandas" in sys.modules else _MEDIUM):
        return None
    if b"\0" in content:  # pandas would end a name there
        return None
    import pandas as pd

    delimiter = "\t" if suffix == ".tsv" else ","
    try:
        with io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="") as file:
            header = tuple(next(csv.reader(file, delimiter=delimiter, strict=True), []))
        if not header or len(set(header)) < len(header) or not all(map(str.strip, header[1:])):
            return None
        named = list(names(header))
        text = dict.fromkeys(named, str)  # a category would make one of "1" and "01"
        wide = len(header) > _WIDE
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row that is too long
            frame = pd.read_csv(
                io.BytesIO(content.removeprefix(codecs.BOM_UTF8)),
                sep=delimiter,
                header=0,
                names=list(header),
                dtype=None if wide else text,
                converters=text if wide else None,
                low_memory=False,
                index_col=False,
                keep_default_na=False,
                na_values=[""],
                # from version 3 on every number is read as Python reads it
                float_precision="round_trip" if pd.__version__.startswith("2.") else None,
            )
    except (ValueError, csv.Error, pd.errors.ParserWarning):  # ParserError: a ValueError
        return None
    # text that is no number, or True, makes a column of objects; blank numbers are found later
    types = zip(frame.columns, frame.dtypes, strict=True)
    if any(name not in named and kind.kind not in "iuf" for name, kind in types):
        return None
    # a blank that was converted stays text, and is refused where its name is looked up
    return None if frame[named].isna().any(axis=None) else frame


def read_frames(path: str | os.PathLike[str], names: Names = key_columns) -> Iterator[ColumnTable]:
    """Read a table part by part: Parquet files by some ten thousand rows, other files whole.

    The files of a folder of Parquet files are read in the order of their names. `names` and errors
    are as for :func:`read_frame`.
    """
    where = Path(path)
    files = [where]
    if where.is_dir():
        files = sorted(each for each in where.iterdir() if each.suffix.lower() in PARQUET)
        require(files, "", "no Parquet files", expected="files *.parquet", source=str(where))
    rows = 0
    for file in files:
        if file.suffix.lower() not in PARQUET:
            yield read_frame(file, names)
            return
        for part in _parquet_parts(file, names):
            rows += part.rows
            yield part
    require(rows, "", "no rows", expected="a row per count", source=str(where))


def _parquet_parts(file: Path, names: Names) -> Iterator[ColumnTable]:
    pa, _ = load_pyarrow()
    first = 1
    with open_parquet(file) as content:
        for batch in content.iter_batches(_BATCH):
            table = pa.Table.from_batches([batch])
            columns = tuple(map(str, table.column_names))
            part = partial(arrow_table, table, str(file), first)
            fast = _numbers_and_names(table, names)
            yield ColumnTable(str(file), columns, batch.num_rows, fast, None, part)
            first += batch.num_rows


def _numbers_and_names(table: Any, names: Names) -> pd.DataFrame | None:
    """Return a table of pyarrow as a frame; None where a column is neither numbers nor names."""
    import pyarrow as pa

    keys = set(names(tuple(table.column_names)))
    numeric = [
        field.name not in keys
        and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
        for field in table.schema
    ]
    named = [field.name in keys for field in table.schema]
    if len(set(table.column_names)) < len(named) or any(column.null_count for column in table):
        return None
    if not all(n or m for n, m in zip(numeric, named, strict=True)):
        return None
    frame: pd.DataFrame = table.to_pandas()
    return frame


# --- matrices with names along their axes, to tables and back --------------------------------

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

"""Columns of large tables: read fast where all is well, cell by cell where it is not.

A million rows take pandas a second and the careful reader (:mod:`placement.io.formats.tables`) ten.
The fast way gives up at the first sign of trouble; the careful one then says what and where.
"""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from placement.checks import LARGEST, FloatArray, IntArray
from placement.errors import InputError, MissingDependencyError
from placement.io.formats.input_files import check_input
from placement.io.formats.tables import Cell, Table, is_blank, name_cell, quantity_cell, read_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Frame", "read_frame"]

_NAMES = ("database", "interval", "client", "operation")


@dataclass(eq=False)
class Frame:
    """A table by column.

    Attributes
    ----------
    source
        The file, for messages.
    columns
        Header.
    rows
        How many.
    fast
        The columns as pandas read them; None: the table was read with care.
    """

    source: str
    columns: tuple[str, ...]
    rows: int
    fast: pd.DataFrame | None = None
    _careful: Table | None = field(default=None, repr=False)

    @property
    def table(self) -> Table:
        """The same table with its cells and row numbers, read when something must be said."""
        if self._careful is None:
            self._careful = read_table(self.source)
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

    def found(self, column: str) -> tuple[tuple[str, ...], IntArray]:
        """Return the distinct names of a column by first row, and the place of each row's name.

        Raises
        ------
        InputError
            For a missing column or a blank cell, with its row.
        """
        codes, cells = self._codes(column)
        place: dict[str, int] = {}
        of_cell = []
        for cell, row in cells:
            # only the cells that differ are looked at, each where it is first met
            where = self.at(row) if is_blank(cell) else self.source
            name = name_cell(cell, where, column).strip()
            of_cell.append(place.setdefault(name, len(place)))
        return tuple(place), np.array(of_cell, dtype=np.intp)[codes]

    def names(self, column: str, known: Sequence[str], what: str) -> IntArray:
        """Return each row's place in a list of known names.

        Raises
        ------
        InputError
            As :meth:`found`, and for a name that is not known, with its row.
        """
        found, which = self.found(column)
        place = {name: i for i, name in enumerate(known)}
        for number, name in enumerate(found):
            if name not in place:
                import difflib

                row = int(np.nonzero(which == number)[0][0])
                close = difflib.get_close_matches(name, known, n=1)
                raise InputError(
                    f"no {what}",
                    source=self.at(row),
                    field=column,
                    value=name,
                    expected=f"one of the {len(known)}"
                    + (f" (did you mean {close[0]!r}?)" if close else ""),
                )
        return np.array([place[name] for name in found], dtype=np.intp)[which]

    def quantities(self, column: str, expected: str) -> FloatArray:
        """Return a column of numbers from 0 to :data:`LARGEST`.

        Raises
        ------
        InputError
            For a missing column or any other cell, with its row.
        """
        if self.fast is not None and column in self.columns:
            values = self.fast[column].to_numpy(dtype=np.float64)
            if not len(values) or (values.min() >= 0 and values.max() <= LARGEST):
                return values
        place = self.table.column(column)
        return np.array(
            [
                quantity_cell(cells[place], self.at(row), column, expected)
                for row, cells in enumerate(self.table.rows)
            ]
        )

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


def read_frame(path: str | os.PathLike[str]) -> Frame:
    """Read a table by column.

    Parameters
    ----------
    path
        CSV, TSV or Parquet. Columns other than ``database``, ``interval``, ``client`` and
        ``operation`` are numbers.

    Raises
    ------
    InputError
        For a file that is no table, or one without rows.
    MissingDependencyError
        For Parquet without pyarrow.
    """
    source = os.fspath(path)
    check_input(path)
    suffix = Path(path).suffix.lower()
    fast = _fast_parquet(source) if suffix in (".parquet", ".pq") else _fast_csv(source, suffix)
    if fast is not None:
        frame = Frame(source, tuple(map(str, fast.columns)), len(fast), fast)
    else:
        table = read_table(source)
        frame = Frame(source, table.columns, len(table.rows), None, table)
    if not frame.rows:
        raise InputError("no rows", source=source, expected="a row per count")
    return frame


def _fast_csv(source: str, suffix: str) -> pd.DataFrame | None:
    """Return the table, or None at the least sign of trouble."""
    import pandas as pd

    delimiter = "\t" if suffix == ".tsv" else ","
    try:
        with Path(source).open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file, delimiter=delimiter, strict=True), [])
        if not header or len(set(header)) < len(header) or not all(map(str.strip, header)):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # a row that is too long
            frame = pd.read_csv(
                source,
                sep=delimiter,
                dtype=str,  # a category would make one of "1" and "01"
                index_col=False,
                keep_default_na=False,
                na_values=[""],
                encoding="utf-8-sig",
            )
        if frame.isna().any(axis=None):
            return None
        for name in header:
            if name not in _NAMES:
                frame[name] = _numbers(frame[name])
    except (OSError, ValueError, csv.Error, pd.errors.ParserWarning):  # ParserError: a ValueError
        return None
    return frame


def _numbers(column: pd.Series[str]) -> FloatArray:
    """Numbers of a column of text: each distinct text is read once, and as Python reads it."""
    import pandas as pd

    codes, texts = pd.factorize(column)
    if any("_" in text for text in texts):  # Python would take "1_000" for a thousand
        raise ValueError("1_000")
    return np.array([float(text) for text in texts])[codes]


def _fast_parquet(source: str) -> pd.DataFrame | None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError(
            f"Parquet needs pyarrow: pip install 'replica-placement[parquet]' ({error})"
        ) from error
    try:
        table = pq.ParquetFile(source).read()
    except (pa.ArrowException, OSError):
        return None
    numeric = [
        field.name not in _NAMES
        and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type))
        for field in table.schema
    ]
    named = [field.name in _NAMES for field in table.schema]
    if len(set(table.column_names)) < len(named) or any(column.null_count for column in table):
        return None
    if not all(n or m for n, m in zip(numeric, named, strict=True)):
        return None
    frame: pd.DataFrame = table.to_pandas()
    return frame

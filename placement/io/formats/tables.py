"""Tables as CSV or Parquet: one reader for whatever people have, one exact writer for our own.

Cells stay as they were read until a reader asks for a name or a number, so that each complaint can
name file, row, column, value, and what was expected. Floats are written by `repr` and therefore
read back to the last bit.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import itertools
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from placement.errors import Gathered, InputError, MissingDependencyError, nearest, refused, require
from placement.io.formats.document import encode_text
from placement.io.formats.files import check_input, read_text
from placement.support.checks import LARGEST

if TYPE_CHECKING:
    import pandas as pd

_ROW_GROUP = 10_000
"""Rows of a Parquet file that a reader must have in memory at a time."""

PARQUET = (".parquet", ".pq")
"""Ends of the names of Parquet files, in lower case."""

Cell = object
"""Text from CSV; text, a number, a time or None from Parquet."""

OTHER_LENGTH = "a row of another length"
RTT = "a finite number of milliseconds >= 0"


@dataclass(frozen=True)
class Table:
    """A table as read, nothing interpreted."""

    source: str  #: the file, for messages
    columns: tuple[str, ...]  #: header, unique
    rows: tuple[tuple[Cell, ...], ...]  #: cells, each row as long as the header
    #: row number of each row in the file (the header is row 1 of a CSV), for messages
    numbers: tuple[int, ...]
    heading: str = ""  #: the heading above a table in a text; empty without one
    form: str = "csv"  #: "csv", "markdown", "sql", "html", "json" or "nested"
    number: int = 1  #: its place among the tables of the file, from 1
    #: path of each row of a JSON document by its number, in place of the number
    places: tuple[str, ...] = ()

    def at(self, row: int) -> str:
        """Return file and row, or file and path, for messages."""
        number = self.numbers[row]
        place = f": {self.places[number - 1]}" if self.places else f", row {number}"
        return self.source + place

    def column(self, name: str) -> int:
        """Return the position of a column; InputError, with the closest name, when absent."""
        if name not in self.columns:
            expected = "one of " + ", ".join(map(repr, self.columns)) + nearest(name, self.columns)
            raise InputError("no such column", source=self.source, field=name, expected=expected)
        return self.columns.index(name)


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a CSV file, or by its suffix TSV or Parquet; a file that is no table is refused."""
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET:
        source = os.fspath(path)
        with open_parquet(path) as file:
            table = arrow_table(file.read(), source)
        check_unique(table.columns, source)
        return table
    return parse_csv(read_text(path), os.fspath(path), "\t" if suffix == ".tsv" else None)


def arrow_table(table: Any, source: str, first: int = 1) -> Table:
    """Return a table of pyarrow; its rows are numbered from `first` on."""
    cells = zip(*(column.to_pylist() for column in table.columns), strict=True)
    rows, columns = tuple(cells), tuple(map(str, table.column_names))
    return Table(source, columns, rows, tuple(range(first, first + len(rows))))


def parse_csv(text: str, source: str, delimiter: str | None = None) -> Table:
    """Return the table in a text.

    Without a delimiter, the header tells it: a comma, semicolon, tab or bar. Lines before the
    header with ``#``, ``%``, ``;`` or ``//`` are left out.
    """
    lines = text.splitlines(keepends=True)
    first = 0
    while first < len(lines) and (not lines[first].strip() or _is_remark(lines, first)):
        first += 1
    header = lines[first] if first < len(lines) else ""
    if re.fullmatch(r"(?i)sep=.\s*", header):  # a line of Excel
        delimiter, first = header[4], first + 1
    if delimiter is None:
        # the most frequent one; "Latency, ms;Site" has a comma in a name
        delimiter = max(",;\t|", key=lambda sign: (header.count(sign), sign == ","))
    reader = csv.reader(
        io.StringIO("".join(lines[first:]), newline=""), delimiter=delimiter, strict=True
    )
    found: list[tuple[list[str], int]] = []
    start = first + 1
    try:
        for cells in reader:
            line, start = start, first + reader.line_num + 1
            if len(cells) > 1 or any(cell.strip() for cell in cells):
                found.append((cells, line))
    except csv.Error as error:
        raise InputError(f"not CSV ({error})", source=f"{source}, row {start}") from None
    require(found, "", "empty", expected="a table with a header", source=source)
    (names, _), *rows = found
    return table_of_cells(source, names, [row for row, _ in rows], [line for _, line in rows])


def _is_remark(lines: Sequence[str], place: int) -> bool:
    """Return whether a line above the header is a remark; a blank corner may begin with ``;``."""
    line = lines[place]
    if line[0] != ";":
        return line[0] in "#%" or line.startswith("//")
    rest = itertools.dropwhile(lambda one: one[:1] == ";" or not one.strip(), lines[place:])
    return ";" not in next(rest, ";")


def table_of_cells(
    source: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], numbers: Sequence[int]
) -> Table:
    """Return a table; columns without a name and without cells are left out.

    `numbers` are the rows' numbers in the file. A row of another length, two columns of one name,
    and cells below no name are refused.
    """
    used = [0, *(i for i, name in enumerate(header) if i and name.strip())]
    width = used[-1] + 1
    gathered = Gathered()
    for row, number in zip(rows, numbers, strict=True):
        if len(row) == width == len(used):
            continue
        below = [i for i, cell in enumerate(row) if i not in used and not is_blank(cell)]
        if len(row) < width or (below and below[-1] >= len(header)):
            with gathered.part():
                check_row_length(row, header[:width], f"{source}, row {number}")
        elif below:
            _unique_columns(header, source)
    gathered.check()
    columns = _unique_columns([header[i] for i in used], source)
    whole = len(used) == width
    cells = tuple(tuple(row[:width] if whole else (row[i] for i in used)) for row in rows)
    return Table(source, columns, cells, tuple(numbers))


def check_row_length(cells: Sequence[Cell], header: Sequence[str], at: str) -> None:
    """Refuse a row that is not as long as the header; `at` names file and row."""
    if len(cells) != len(header):
        expected = f"{len(header)} cells, as in the header"
        raise InputError(OTHER_LENGTH, source=at, value=len(cells), expected=expected)


def check_unique(names: Iterable[str], source: str) -> None:
    """Refuse names of columns of which two are the same."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise refused(source, "header", "duplicate column", name, "once")
        seen.add(name)


def _unique_columns(header: Sequence[str], source: str) -> tuple[str, ...]:
    check_unique(header, source)
    for position, name in enumerate(header):
        if not name.strip() and position > 0:
            words = f"column {position + 1} has no name"
            raise InputError(words, source=source, field="header", value=name)
    return tuple(header)


def load_pyarrow() -> tuple[Any, Any]:
    """Return the modules ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError.of("Parquet needs pyarrow", "parquet") from error
    return pa, pq


@contextlib.contextmanager
def open_parquet(path: str | os.PathLike[str]) -> Iterator[Any]:
    """Open a Parquet file, a ``pyarrow.parquet.ParquetFile``; refuse one that breaks off."""
    pa, pq = load_pyarrow()
    source = os.fspath(path)
    check_input(path)
    try:
        with pq.ParquetFile(source) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"not a Parquet file ({error})", source=source) from None


# --- cells -----------------------------------------------------------------------------------


def is_blank(cell: Cell) -> bool:
    """Return whether a cell holds nothing: null, or empty text."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def name_cell(cell: Cell, source: str, field: str) -> str:
    """Return a cell as a name; a blank cell, and one with a NUL character, are refused."""
    if is_blank(cell):
        raise refused(source, field, "no name", cell, "a name")
    name = cell.isoformat() if isinstance(cell, datetime.date) else str(cell)
    if "\0" in name:
        raise refused(source, field, "not a name", name, "text without NUL")
    return name


def number_cell(cell: Cell, source: str, field: str, expected: str = "a number") -> float:
    """Return a cell as a float, which may be NaN or infinite.

    Text that is no number, a blank and a truth value are refused.
    """
    try:
        # float() would take "1_000" for a thousand, which no measurement writes.
        if isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
            raise ValueError(cell)
        return float(cell)  # type: ignore[arg-type]  # a bad type is what is caught here
    except (TypeError, ValueError, OverflowError):
        kind = "missing value" if is_blank(cell) else "not a number"
        raise refused(source, field, kind, cell, expected) from None


def quantity_cell(cell: Cell, source: str, field: str, expected: str = RTT) -> float:
    """Return a cell as a number from 0 to :data:`LARGEST`, or raise an InputError that says why."""
    value = number_cell(cell, source, field, expected)
    if math.isnan(value):
        problem = "not a number"
    elif math.isinf(value):
        problem = "infinite"
    elif value < 0:
        problem = "negative"
    elif value > LARGEST:
        problem, expected = "too large", f"at most {LARGEST:g}"
    else:
        return value
    raise refused(source, field, problem, cell, expected)


# --- writing ---------------------------------------------------------------------------------


def free_column(wanted: str, taken: Collection[str]) -> str:
    """Return `wanted`, with underscores appended until no other column has that name."""
    while wanted in taken:
        wanted += "_"
    return wanted


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[str | float | None]]) -> bytes:
    """Return a CSV file: UTF-8, commas, line feeds, floats by `repr`; None and NaN are blank."""
    lines = [",".join(map(_csv_cell, columns))]
    lines.extend(",".join(map(_csv_cell, row)) for row in rows)
    return encode_text("\n".join(lines) + "\n")


def _csv_cell(cell: str | float | None) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return "" if math.isnan(cell) else repr(float(cell))
    # A lone blank cell would be a blank line, and blanks at the ends get lost in spreadsheets.
    if cell != cell.strip() or not cell or any(c in cell for c in ',"\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def parquet_bytes(columns: Sequence[str], rows: Iterable[Sequence[str | float | None]]) -> bytes:
    """Return a Parquet file; a column with a number in it is float64, any other is text."""
    pa, pq = load_pyarrow()
    cells = list(zip(*rows, strict=True)) or [() for _ in columns]
    arrays = [
        pa.array(
            column, pa.float64() if any(isinstance(cell, float) for cell in column) else pa.string()
        )
        for column in cells
    ]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=list(columns)), sink)
    return sink.getvalue()


def frame_parquet(frame: pd.DataFrame, about: Mapping[str, str]) -> bytes:
    """Return a table as a Parquet file with texts `about` it; tuples become lists."""
    pa, pq = load_pyarrow()
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(dict(about))
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=_ROW_GROUP)
    return sink.getvalue()


def parquet_rows(path: str | os.PathLike[str], batch: int) -> Iterator[dict[str, object]]:
    """Yield the rows of a Parquet file by column, reading a batch of rows at a time."""
    with open_parquet(path) as file:
        for rows in file.iter_batches(batch_size=batch):
            yield from rows.to_pylist()


def parquet_about(path: str | os.PathLike[str], key: str) -> str:
    """Return a text that a Parquet file keeps beside its table; refuse a file without it."""
    with open_parquet(path) as file:
        kept = file.schema_arrow.metadata or {}
    if key.encode() not in kept:
        source = os.fspath(path)
        raise InputError("not a file of this kind", source=source, field=key, expected="its text")
    return str(kept[key.encode()].decode("utf-8", "replace"))

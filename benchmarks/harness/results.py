"""Results of studies: files, written whole or not at all; folders of data; tables of pages.

Measured latencies and the p-median files of the OR-Library and of TSPLIB are no part of the
project. A program adds the option of each folder that it reads. Without the option the argument is
None, and the parts that need the folder are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import fcntl
import io
import json
import os
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from benchmarks.harness.machine import ROOT
from placement.errors import InputError
from placement.io.formats.files import write_file

if TYPE_CHECKING:
    import pandas as pd

Row: TypeAlias = dict[str, Any]
"""Row of a table of results: name of the column -> cell, a text where it was read from a CSV."""

RESULTS = ROOT / "benchmarks" / "results"
"""Folder of the committed results."""


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV; no rows when there is no such file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def existing_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV that a report needs; InputError without a row."""
    rows = read_rows(path)
    if not rows:
        raise InputError("no results to report", source=str(path), expected="a run of the study")
    return rows


def read_frame(path: Path) -> pd.DataFrame:
    """Return the table of :func:`existing_rows` with numbers as numbers."""
    import pandas as pd

    existing_rows(path)
    return pd.read_csv(path)


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a table."""
    return [{str(name): cell for name, cell in row.items()} for row in frame.to_dict("records")]


def read_json(path: Path) -> dict[str, Any]:
    """Return a document of JSON; an empty one when there is no such file."""
    if not path.exists():
        return {}
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def save_text(path: Path, text: str) -> None:
    """Write text, in place of a file that is there; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text.encode(), force=True)


@contextlib.contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep other runs from writing into a folder while a file is read and written again."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def save_json(path: Path, document: Mapping[str, object], indent: int = 1) -> None:
    """Write a document as JSON, with `indent` spaces per level."""
    save_text(path, json.dumps(document, indent=indent, ensure_ascii=False) + "\n")


def save_csv(path: Path, heads: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table as CSV: names of the columns, and cells in their order."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    save_text(path, stream.getvalue())


def save_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV under the names of columns."""
    heads = list(rows[0]) if rows else []
    save_csv(path, heads, ([row[head] for head in heads] for row in rows))


# --- folders of data, which the user names -------------------------------------------------------


_HELP = {
    "baseline": "checkout of an older build, kernels in place",
    "latency": "folder of measured latencies (CSV); without it the measured networks are left out",
    "results": "folder for the files of results (default: benchmarks/results)",
    "pmed": "folder of pmed1.txt to pmed40.txt and optima.txt; without it they are left out",
    "tsplib": "folder of points of TSPLIB (rl1304.tsp, …); without it they are left out",
}


def add_folder(parser: argparse.ArgumentParser, name: str, default: Path | None = None) -> None:
    """Add the option ``--NAME DIR`` of :data:`_HELP`; its value is a ``Path``, or the default.

    It is checked before the program begins: a wrong folder costs no measurement. Where there is a
    default, the folder is made when the first file is written.
    """

    def named(text: str) -> Path:
        path = Path(text)
        if path.exists() and not path.is_dir():
            raise argparse.ArgumentTypeError(f"{text} is a file: expected a folder")
        if default is None and not path.exists():
            raise argparse.ArgumentTypeError(f"no such folder: {text}")
        return path

    parser.add_argument(f"--{name}", type=named, default=default, metavar="DIR", help=_HELP[name])


def measured_file(here: Path | None, name: str) -> Path:
    """Return a file of the folder of measured latencies; InputError where there is none."""
    if here is None or not (here / name).is_file():
        raise InputError(
            "no such file among the measured latencies",
            source=str(here / name) if here else name,
            expected="--latency DIR, a folder that has it",
        )
    return here / name


# --- tables of pages of the documentation, and their place on a page ------------------------------


Rows = Sequence[Mapping[str, Any]]
"""Rows of results."""

_Row = TypeVar("_Row", bound=Mapping[str, Any])

_TABLE = re.compile(
    r"(?P<begin><!-- begin (?P<name>[^>]+?) -->\n)(?P<text>.*?)(?P<end><!-- end -->)", re.DOTALL
)


def markdown_table(
    heads: Sequence[str], rows: Iterable[Iterable[object]], rule: str = "---"
) -> str:
    """Return Markdown without a last end of line; a bar within a cell must be escaped."""
    lines = [f"| {' | '.join(heads)} |", f"|{rule}" * len(heads) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def row_table(heads: str, cells: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as Markdown: heads and formats of cells, each with bars between."""
    body = (cells.format_map(row).split("|") for row in rows)
    return markdown_table(
        [head.strip() for head in heads.split("|")], ([c.strip() for c in line] for line in body)
    )


def lines_table(lines: Sequence[Mapping[str, object]], heads: Iterable[str] = ()) -> str:
    """Return lines, each heading -> cell, as Markdown; no lines are an empty text.

    Without `heads` the columns are those of the first line; a cell that is not there is a dash.
    """
    named = list(heads) or list(lines[0] if lines else ())
    cells = ([line.get(head) for head in named] for line in lines)
    shown = (["–" if cell is None else cell for cell in line] for line in cells)
    return markdown_table(named, shown) if lines else ""


def grouped(rows: Iterable[_Row], *keys: str) -> list[list[_Row]]:
    """Return the rows with the same values of some columns together, in the order of the rows."""
    groups: dict[tuple[object, ...], list[_Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return list(groups.values())


def averaged(rows: Iterable[Mapping[str, Any]], *keys: str) -> list[Row]:
    """Return a row for each group of :func:`grouped`: means of its numbers, else its first cells.

    A column that only some rows have is averaged over these.
    """
    found = []
    for group in grouped(rows, *keys):
        cells: dict[str, list[Any]] = {}
        for name, cell in ((name, cell) for row in group for name, cell in row.items()):
            cells.setdefault(name, []).append(cell)
        found.append({
            name: statistics.fmean(column)
            if name not in keys and all(isinstance(cell, int | float) for cell in column)
            else column[0]
            for name, column in cells.items()
        })  # fmt: skip
    return found


def pivot(
    rows: Sequence[Mapping[str, Any]],
    line: str,
    column: str,
    cell: Callable[[Sequence[Mapping[str, Any]]], str],
    head: str = "",
) -> str:
    """Return a line for each value of a column, and a column for each of another, as Markdown.

    The values stand in the order of the rows, at the top after `head`. `cell` shows the rows of two
    values; where there are none stands "–".
    """
    found = {(mine[0][line], mine[0][column]): mine for mine in grouped(rows, line, column)}
    names, heads = (dict.fromkeys(row[name] for row in rows) for name in (line, column))
    lines = (
        (name, *(cell(found[name, value]) if (name, value) in found else "–" for value in heads))
        for name in names
    )
    return markdown_table((line, *(f"{head} {value}".strip() for value in heads)), lines)


def pick(rows: Rows, **wanted: object) -> list[Mapping[str, Any]]:
    """Return the rows with the wanted values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def values(rows: Rows, name: str) -> list[float]:
    """Return a column as numbers."""
    return [float(row[name]) for row in rows]


def mean(rows: Rows, name: str) -> float:
    """Return the mean of a column; NaN without rows."""
    return statistics.fmean(values(rows, name)) if rows else float("nan")


def spread(found: Sequence[float], digits: int = 1) -> str:
    """Return mean ± standard deviation; the value alone if there is one."""
    if len(found) < 2:
        return f"{found[0]:.{digits}f}" if found else ""
    return f"{statistics.fmean(found):.{digits}f} ± {statistics.stdev(found):.{digits}f}"


def span(found: Sequence[float], form: str = ".2f") -> str:
    """Return mean (least–largest); the value alone if there is one, nothing without."""
    if len(found) < 2:
        return f"{found[0]:{form}}" if found else ""
    return f"{sum(found) / len(found):{form}} ({min(found):{form}}–{max(found):{form}})"


def means(*columns: str, forms: str = "") -> Callable[[Rows], str]:
    """Return a cell: the means of some columns of its rows, in formats that spaces separate."""
    each = forms.split() or [",.0f"] * len(columns)

    def cell(rows: Rows) -> str:
        return "/".join(
            f"{mean(rows, name):{form}}" for name, form in zip(columns, each, strict=True)
        )

    return cell


def tables_of(page: str) -> dict[str, str]:
    """Return the texts between ``<!-- begin NAME -->`` and ``<!-- end -->`` on a page, by name."""
    return {found["name"]: found["text"] for found in _TABLE.finditer(page)}


def with_tables(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with new texts between the marks of tables, see :func:`tables_of`."""
    missing = sorted(tables.keys() - tables_of(page).keys())
    if missing:
        raise InputError(
            "no such table", field="page", value=missing[0], expected="<!-- begin NAME -->"
        )

    def filled(found: re.Match[str]) -> str:
        text = tables.get(found["name"], found["text"]).rstrip("\n")
        return f"{found['begin']}{text}\n{found['end']}"

    return _TABLE.sub(filled, page)

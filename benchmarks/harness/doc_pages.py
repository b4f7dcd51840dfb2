"""Tables of pages of the documentation, and their place on a page."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from benchmarks.harness.result_files import Row
from placement.errors import InputError

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

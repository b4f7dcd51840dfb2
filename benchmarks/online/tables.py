"""Tables of the pages about online systems.

The words of a page stand on the page (``docs/benchmarks``), with marks where the tables are. A
column of a table is a head and a function of a row.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.harness.doc_pages import grouped, markdown_table

Rows = Sequence[Mapping[str, Any]]
"""Rows of results; of a CSV with texts as values."""

Column = tuple[str, Callable[..., object]]
"""Head of a column, and what it shows of a row or of a group of rows."""


def table(rows: Iterable[Any], *columns: Column) -> str:
    """Return a table with a line for each row."""
    body = ([show(row) for _, show in columns] for row in rows)
    return markdown_table([head for head, _ in columns], body)


def pick(rows: Rows, **wanted: object) -> list[Mapping[str, Any]]:
    """Return the rows with the wanted values; texts of a CSV compare as numbers with numbers."""
    return [
        row
        for row in rows
        if all(
            (float(row[name]) if isinstance(row[name], str) and not isinstance(value, str)
             else row[name]) == value
            for name, value in wanted.items()
        )
    ]  # fmt: skip


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


def means(*columns: str, forms: str = "", between: str = "/") -> Callable[[Rows], str]:
    """Return a cell: the means of some columns of its rows, in formats that spaces separate."""
    each = forms.split() or [",.0f"] * len(columns)

    def cell(rows: Rows) -> str:
        return between.join(
            f"{mean(rows, name):{form}}" for name, form in zip(columns, each, strict=True)
        )

    return cell


def pivot(
    rows: Rows, column: str, cell: Callable[[Rows], str], head: str = "", line: str = "policy"
) -> str:
    """Return a line per policy and a column per value of a column, under `head` and the value."""
    found = {
        (mine[0][line], mine[0][column]): mine for mine in grouped(map(dict, rows), line, column)
    }

    def shown(policy: str, value: object) -> str:
        return cell(found[policy, value]) if (policy, value) in found else "–"

    return table(
        dict.fromkeys(row[line] for row in rows),
        (line, lambda policy: policy),
        *(
            (f"{head} {value}".strip(), lambda policy, v=value: shown(policy, v))
            for value in dict.fromkeys(row[column] for row in rows)
        ),
    )

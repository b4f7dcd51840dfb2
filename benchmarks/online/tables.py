"""Tables of the pages about online systems.

The words of a page stand on the page (``docs/benchmarks``), with marks where the tables are. A
column of a table is a head and a function of a row.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchmarks.harness.doc_pages import markdown_table

__all__ = ["Column", "Rows", "groups", "mean", "pick", "pivot", "span", "spread", "table"]

Rows = Sequence[Mapping[str, Any]]
"""Rows of results; of a CSV with texts as values."""

Column = tuple[str, Callable[..., object]]
"""Head of a column, and what it shows of a row or of a group of rows."""


def table(rows: Iterable[Any], *columns: Column, rule: str = "---") -> str:
    """Return a table with a line for each row."""
    body = ([show(row) for _, show in columns] for row in rows)
    return markdown_table([head for head, _ in columns], body, rule=rule)


def pick(rows: Rows, **wanted: object) -> list[Mapping[str, Any]]:
    """Return the rows with the wanted values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def groups(rows: Rows, *names: str) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    """Return the rows by the values of some columns, in the order in which these come."""
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def mean(rows: Rows, name: str) -> float:
    """Return the mean of a column; NaN without rows."""
    return statistics.fmean(float(row[name]) for row in rows) if rows else float("nan")


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Return mean ± standard deviation; the value alone if there is one."""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}" if values else ""
    return f"{statistics.fmean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def span(values: Sequence[float], form: str = ".2f") -> str:
    """Return mean (least–largest); the value alone if there is one, nothing without."""
    if len(values) < 2:
        return f"{values[0]:{form}}" if values else ""
    return f"{sum(values) / len(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def pivot(
    rows: Rows, column: str, cell: Callable[[Rows], str], head: str, line: str = "policy"
) -> str:
    """Return a line per policy and a column per value of a column, under `head` and the value."""
    found = groups(rows, line, column)

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

"""Cells of the pages about online systems.

The words of a page stand on the page (``docs/benchmarks``), with marks where the tables are.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
"""Rows of results."""


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

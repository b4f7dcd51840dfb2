"""Looking up rows among the results of lease-holder and quorum reads."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from benchmarks.online.reads.study import Row, X

__all__ = ["STRATEGIES", "UNIFORM", "mean", "rows_of"]

UNIFORM = f"uniform quorum, x = {X:.3g}"
STRATEGIES = (
    ("lease-holder", "lease-holder", "0"),
    ("local", "local", "0"),
    ("quorum", UNIFORM, "0"),
    ("strong quorum", UNIFORM, "1"),
)
"""The four of the source: name, rule, whether strong."""


def rows_of(rows: Iterable[Row], suite: str, **wanted: str | float) -> list[Row]:
    """Rows of a suite whose columns have the wanted values, numbers compared as numbers."""
    found = []
    for row in rows:
        same = (
            row[column] == value if isinstance(value, str) else float(row[column]) == value
            for column, value in wanted.items()
        )
        if row["suite"] == suite and all(same):
            found.append(row)
    return found


def mean(rows: Sequence[Row], column: str) -> float:
    """Mean of a column; NaN without rows."""
    return statistics.fmean(float(row[column]) for row in rows) if rows else float("nan")

"""Looking up rows among the results of leaseholder and quorum reads."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.harness.result_files import Row
from benchmarks.online.reads.study import X

__all__ = ["STRATEGIES", "UNIFORM", "mean"]

UNIFORM = f"uniform quorum, x = {X:.3g}"
STRATEGIES = (
    ("leaseholder", "leaseholder", "0"),
    ("local", "local", "0"),
    ("quorum", UNIFORM, "0"),
    ("strong quorum", UNIFORM, "1"),
)
"""The four of the source: name, rule, whether strong."""


def mean(rows: Sequence[Row], column: str) -> float:
    """Mean of a column; NaN without rows."""
    return statistics.fmean(float(row[column]) for row in rows) if rows else float("nan")

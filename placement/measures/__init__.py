"""Measures: one language for what is minimised and what is kept."""

from placement.measures.measure import After, Limit, Measure, MeasureKind
from placement.measures.text import (
    mean,
    percentile,
    read_limit,
    read_measure,
    slowest_client,
    within,
)

__all__ = [
    "After",
    "Limit",
    "Measure",
    "MeasureKind",
    "mean",
    "percentile",
    "read_limit",
    "read_measure",
    "slowest_client",
    "within",
]

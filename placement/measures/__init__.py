"""Measures: one language for what is minimised and what is kept."""

from placement.measures.measure import After, Limit, Measure, MeasureKind

__all__ = ["After", "Limit", "Measure", "MeasureKind"]

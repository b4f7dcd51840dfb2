"""Texts of measures and limits: ``p99(writes) <= 150 ms``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placement.measures.measure import Limit, Measure

__all__ = ["limit_text", "measure_text"]


def measure_text(measure: Measure) -> str:
    """Return the text of a measure."""
    return measure.kind.value


def limit_text(limit: Limit) -> str:
    """Return the text of a limit."""
    return f"{limit.measure} {'<=' if limit.least is None else '>='} {limit.bound:g}"

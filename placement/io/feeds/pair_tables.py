"""Distributions of RTTs by pair as a CSV file, which ``--distributions`` reads."""

from __future__ import annotations

from placement.io.formats.tables import csv_bytes
from placement.io.rtt_distributions import PairTable

__all__ = ["pairs_csv"]


def pairs_csv(table: PairTable) -> bytes:
    """Return a table of percentiles, or of RTTs and weights; floats to the last bit."""
    if table.percents:
        columns = ["src", "dst", *(f"p{percent:g}" for percent in table.percents)]
        return csv_bytes(columns, [(a, b, *curve[0]) for (a, b), curve in table.pairs.items()])
    rows: list[tuple[str, str, float, float]] = [
        (a, b, value, weight)
        for (a, b), (values, weights) in table.pairs.items()
        for value, weight in zip(values, weights, strict=True)
    ]
    return csv_bytes(["src", "dst", "rtt", "count"], rows)

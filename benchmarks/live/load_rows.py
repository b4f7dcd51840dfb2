"""Rows and tables of load: concurrent writes against the latency that the model predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.result_files import Row
from benchmarks.live.layouts import Layout

__all__ = ["load_row", "load_table"]

_WARM = 1.0


def load_row(
    layout: Layout,
    workers: int,
    expected: Mapping[str, float],
    found: Mapping[str, Sequence[tuple[float, float]]],
    late: float,
) -> Row:
    """Return the row of one number of concurrent writes.

    Only writes that end while all places write are counted, from a second after the last place has
    begun: connections are made and caches are filled before.

    Parameters
    ----------
    layout
        The configuration.
    workers
        Concurrent writes of all places together.
    expected
        Place -> predicted ms of a write.
    found
        Place -> (end in s since 1970, ms) of each write.
    late
        Mean ms by which the emulated network forwarded too late.
    """
    begin = _WARM + max(min(end - ms / 1000 for end, ms in writes) for writes in found.values())
    until = min(max(end for end, _ in writes) for writes in found.values())
    excess = [
        ms - expected[place]
        for place, writes in found.items()
        for end, ms in writes
        if begin <= end <= until
    ]
    return {
        "layout": layout.name,
        "workers": workers,
        "rate": round(len(excess) / (until - begin), 1),
        "predicted": round(float(np.mean(list(expected.values()))), 2),
        "excess": round(float(np.mean(excess)), 2),
        "excess p99": round(float(np.quantile(excess, 0.99)), 2),
        "network late": round(late, 3),
        "n": len(excess),
    }


def load_table(rows: Sequence[Row], concurrent: str = "clients") -> str:
    """Return a line per number of concurrent writes; `concurrent` heads their column."""
    lines = [
        (
            row["workers"], f"{row['rate']:.0f}", f"{row['predicted']:.0f}",
            f"{row['predicted'] + row['excess']:.0f}", f"{row['excess']:+.1f}",
            f"{100 * row['excess'] / row['predicted']:+.0f} %", f"{row['excess p99']:+.0f}",
            f"{row['network late']:.2f}",
        )
        for row in rows
    ]  # fmt: skip
    heads = (concurrent, "writes/s", "predicted, ms", "measured, ms", "difference, ms", "error",
             "p99 of the difference, ms", "network late, ms")  # fmt: skip
    return markdown_table(heads, lines)

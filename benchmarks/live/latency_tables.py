"""Tables of predicted and measured mean latencies, in one format for every system.

A row has part ("fit" or "test"), layout, voters, learners, leader, client, operation, predicted and
measured (ms).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.result_files import Row

if TYPE_CHECKING:
    from benchmarks.live.layouts import Layout

__all__ = ["configurations_table", "latency_row", "software_share", "summary_table"]


def latency_row(
    part: str,
    layout: Layout,
    leader: str,
    asked: tuple[str, str],
    predicted: float,
    measured: Sequence[float],
) -> Row:
    """Return the row of one client and operation: the prediction and the mean of what it measured.

    Parameters
    ----------
    part
        "fit" or "test".
    layout, leader
        The configuration.
    asked
        Client and operation.
    predicted, measured
        ms; those measured are at least one.
    """
    client, operation = asked
    return {
        "part": part,
        "layout": layout.name,
        "voters": list(layout.voters),
        "learners": list(layout.learners),
        "leader": leader,
        "client": client,
        "operation": operation,
        "predicted": round(predicted, 3),
        "measured": round(float(np.mean(measured)), 3),
        "n": len(measured),
    }


def software_share(rows: Iterable[Row], operations: Iterable[str]) -> dict[str, float]:
    """Return ms by operation that the software adds: the median difference on the fitted runs."""
    fitted = [row for row in rows if row["part"] == "fit"]
    return {
        name: float(
            np.median([r["measured"] - r["predicted"] for r in fitted if r["operation"] == name])
        )
        for name in operations
    }


def summary_table(rows: Sequence[Row], operations: Mapping[str, str]) -> str:
    """Return a line per operation: errors of the predictions on the runs that were not fitted.

    Parameters
    ----------
    rows
        Of all runs.
    operations
        Name -> words of the table.
    """
    share = software_share(rows, operations)
    lines = []
    for name, words in operations.items():
        mine = [row for row in rows if row["part"] == "test" and row["operation"] == name]
        error = np.array([r["measured"] - r["predicted"] - share[name] for r in mine])
        part = abs(error) / np.array([r["measured"] for r in mine])
        lines.append((
            words, f"{share[name]:.1f}", len(mine), f"{np.mean(abs(error)):.1f}",
            f"{np.max(abs(error)):.1f}", f"{100 * np.mean(part):.1f} %",
            f"{100 * np.quantile(part, 0.9):.1f} %", f"{100 * np.max(part):.1f} %",
            f"{int((part <= 0.05).sum())} of {len(mine)}",
        ))  # fmt: skip
    heads = ("operation", "software, ms", "cases", "mean error, ms", "worst, ms", "mean error",
             "90th percentile", "worst", "within 5 %")  # fmt: skip
    return markdown_table(heads, lines)


def configurations_table(rows: Sequence[Row], operation: str) -> str:
    """Return a line per configuration: mean over the clients, and the ranks of leaders."""
    share = software_share(rows, [operation])[operation]
    tried = [row for row in rows if row["part"] == "test" and row["operation"] == operation]
    lines = []
    for _, group in itertools.groupby(tried, key=lambda row: row["layout"]):
        layout = list(group)
        means = {
            leader: (
                float(np.mean([r["predicted"] for r in layout if r["leader"] == leader])) + share,
                float(np.mean([r["measured"] for r in layout if r["leader"] == leader])),
            )
            for leader in dict.fromkeys(row["leader"] for row in layout)
        }
        ranks = [sorted(means, key=lambda leader: means[leader][i]) for i in (0, 1)]
        for leader, (model, real) in means.items():
            first = next(row for row in layout if row["leader"] == leader)
            lines.append((
                first["layout"], leader, ", ".join(first["voters"]),
                ", ".join(first["learners"]) or "–", f"{model:.1f}", f"{real:.1f}",
                f"{100 * (real / model - 1):+.1f} %", ranks[0].index(leader) + 1,
                ranks[1].index(leader) + 1,
            ))  # fmt: skip
    heads = ("layout", "leader", "voters", "learners", "predicted, ms", "measured, ms", "error",
             "rank predicted", "rank measured")  # fmt: skip
    return markdown_table(heads, lines)

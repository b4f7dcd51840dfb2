"""The sections of the page of a frontier of latency and cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from placement.report.charts.html_tables import Column, data_table
from placement.report.charts.markup import Markup, tag
from placement.report.charts.parts import section
from placement.report.charts.svg_charts import Series, lines

__all__ = ["frontier_sections"]


def frontier_sections(rows: Sequence[Mapping[str, Any]], about: str = "") -> list[Markup]:
    """Return the sections of a frontier: its staircase, and what changes from point to point.

    Parameters
    ----------
    rows
        As :func:`placement.pareto` gives them: cost, mean_latency, value, status, leader, change…
    about
        The question in words, with currency and prices.
    """

    def number(row: Mapping[str, Any], column: str) -> float:
        value = row.get(column)
        return float(value) if isinstance(value, (int, float)) else math.nan

    valued = any(number(row, "value") != number(row, "mean_latency") for row in rows)
    stairs = Series("frontier", tuple((number(r, "cost"), number(r, "value")) for r in rows))
    return [
        section(
            "answer",
            "Latency against cost",
            tag("p", {"class": "question"}, f"Asked: {about}.") if about else None,
            lines(
                [stairs],
                caption="Least latency for a cost",
                x_label="cost per month",
                y_label="objective, ms" if valued else "mean latency, ms",
                steps=True,
            ),
            data_table(
                "Points, cheapest first",
                [
                    Column("Cost per month", True),
                    Column("Mean latency, ms", True),
                    *([Column("Objective, ms", True)] if valued else []),
                    Column("Status"),
                    Column("Replicas", True),
                    Column("Voters", True),
                    Column("Leader"),
                    Column("Change from the point before"),
                    Column("Sites"),
                ],
                [
                    [
                        number(row, "cost"),
                        number(row, "mean_latency"),
                        *([number(row, "value")] if valued else []),
                        str(row.get("status", "")),
                        number(row, "replicas"),
                        number(row, "voters"),
                        str(row.get("leader") or "–"),
                        str(row.get("change") or "–"),
                        ", ".join(map(str, row.get("replica_sites") or ())) or "–",
                    ]
                    for row in rows
                ],
                digits=2,
            ),
        )
    ]

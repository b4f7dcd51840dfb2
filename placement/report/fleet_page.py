"""The sections of the page of a plan of a fleet."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.report.charts.html_tables import data_table, facts, percent, reasons, section
from placement.report.charts.markup import Markup, tag
from placement.report.charts.svg_charts import Dots, Series, dots, lines

_SHOWN = 12
"""Limits in the chart, and databases in the first table."""


@dataclass(frozen=True, slots=True)
class FleetDocument:
    """A plan of a fleet as :func:`placement.fleet.fleet_tables.fleet_document` wrote it."""

    content: Mapping[str, Any]


def fleet_sections(document: FleetDocument) -> list[Markup]:
    """Return the sections: the answer, the limits, the worth of capacity, databases, rounds.

    All figures are those of the file; the page says how to prove the bound again.
    """
    content = document.content
    if content.get("status", "feasible") != "feasible":
        return [_no_plan(content)]
    limits: Sequence[Mapping[str, Any]] = content.get("limits", ())
    plans: Sequence[Mapping[str, Any]] = content.get("plans", ())
    found = [_answer(content, plans)]
    if limits:
        found.append(_limits(limits))
    paid = sum(float(one.get("paid") or 0.0) for one in plans)
    if paid > 1e-12 * float(content["value"]):
        found.append(_payers(plans, paid))
    rounds = [float(one["bound"]) for one in content.get("rounds", ())]
    if len(rounds) > 1:
        found.append(_rounds(rounds, float(content["value"])))
    return found


def _no_plan(content: Mapping[str, Any]) -> Markup:
    """Return the section of a fleet without a plan: the limits that are short, and by how much."""
    proven = content["status"] == "infeasible"
    short: Sequence[Mapping[str, Any]] = content.get("short", ())
    return section(
        "answer",
        "No plan of the fleet",
        facts(
            [
                ("Status", str(content["status"]), "proven" if proven else "nothing is proven"),
                ("Databases", f"{int(content['databases']):,}", ""),
            ]
        ),
        reasons("Why", [str(each) for each in content.get("reasons", ())][:_SHOWN]),
        data_table(
            "Limits that are short",
            [
                {
                    "Limit": str(one["name"]),
                    "Short by": float(one["short_by"]),
                    "Limit value": float(one["limit"]),
                }
                for one in short
            ],
        )
        if short
        else None,
    )


def _answer(content: Mapping[str, Any], plans: Sequence[Mapping[str, Any]]) -> Markup:
    gap, alone = float(content["gap"]), float(content.get("alone") or math.nan)
    value = float(content["value"])
    proven = "optimal" if gap <= 1e-9 else "feasible"
    new = sum(int(one.get("new_replicas") or 0) * int(one["copies"]) for one in plans)
    return section(
        "answer",
        "The fleet",
        facts(
            [
                ("Status", proven, str(content["method"])),
                ("Gap of the whole fleet", percent(gap), "to the bound that the prices prove"),
                ("Databases", f"{int(content['databases']):,}", ""),
                ("Mean latency", f"{float(content['mean_latency_ms']):,.2f} ms", "per operation"),
                ("Cost of sharing", percent(value / alone - 1 if alone > 0 else math.nan),
                 "above each database alone"),
                ("New replicas", f"{new:,}", "to be copied"),
            ]
        ),
        tag(
            "p",
            {"class": "note"},
            "The figures are those of the file. placement check FILE proves the bound again: it "
            "prices every database at the prices of the limits.",
        ),
    )  # fmt: skip


def _limits(limits: Sequence[Mapping[str, Any]]) -> Markup:
    def number(row: Mapping[str, Any], column: str) -> float:
        value = row.get(column)
        return float(value) if isinstance(value, (int, float)) else math.nan

    def full(row: Mapping[str, Any], column: str) -> float:
        limit = number(row, "limit")
        return 100 * number(row, column) / limit if limit > 0 else math.nan

    def worth(row: Mapping[str, Any]) -> float:
        return number(row, "price") * number(row, "limit")

    ranked = sorted(limits, key=lambda row: (-worth(row), -(full(row, "load") or 0.0)))
    shown = ranked[:_SHOWN]
    points = [
        Dots(
            str(row["name"]),
            tuple(
                (full(row, column), role, series)
                for column, role, series in (("today", "naive", "today"), ("load", "plan", "plan"))
                if math.isfinite(full(row, column))
            ),
        )
        for row in shown
    ]
    valued = [row for row in ranked if number(row, "price") > 0][:_SHOWN]
    return section(
        "limits",
        "Shared limits",
        dots(points, caption="Load of the limits that cost most, in % of the limit", unit="%"),
        reasons(
            "What more capacity is worth",
            [
                f"{row['name']}: one more is worth {number(row, 'price'):,.4g} ms·operations"
                for row in valued
            ],
        ),
        data_table(
            "All limits, the most expensive first",
            [
                {
                    "Limit": str(row["name"]),
                    "Load today": number(row, "today"),
                    "Load of the plan": number(row, "load"),
                    "Limit value": number(row, "limit"),
                    "Full, %": full(row, "load"),
                    "Worth of one more unit, ms·operations": number(row, "price"),
                }
                for row in ranked
            ],
        ),
    )


def _payers(plans: Sequence[Mapping[str, Any]], paid: float) -> Markup:
    ranked = sorted(plans, key=lambda one: -float(one.get("paid") or 0.0))
    return section(
        "databases",
        "Databases that pay most for sharing",
        data_table(
            f"The {min(_SHOWN, len(ranked))} that pay most",
            [
                {
                    "Database": str(one["database"]),
                    "Copies": int(one["copies"]),
                    "Share of all that is paid, %": 100 * float(one.get("paid") or 0.0) / paid,
                    "Mean latency, ms": float(one["mean_ms"]),
                    "Alone, ms": float(one["alone_ms"]),
                    "Leader": str(one["leader"]),
                    "Replicas": ", ".join(map(str, one["replicas"])),
                }
                for one in ranked[:_SHOWN]
            ],
        ),
    )


def _rounds(bounds: Sequence[float], value: float) -> Markup:
    best = itertools.accumulate(bounds, max)
    gaps = [(number, 100 * max(0.0, value - bound) / value) for number, bound in enumerate(best, 1)]
    return section(
        "rounds",
        "Gap by round",
        lines(
            [Series("gap", tuple((float(number), gap) for number, gap in gaps))],
            caption="Gap of the plan to the best bound after each round",
            x_label="round of column generation",
            y_label="gap, %",
            logarithmic=True,
        ),
    )

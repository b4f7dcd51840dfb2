"""The sections of the page of a plan of a fleet."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.fleet.fleet_tables import limits_table, payers_table
from placement.report.charts.html_tables import (
    TableRow,
    data_table,
    facts,
    percent,
    reasons,
    section,
    value_table,
)
from placement.report.charts.markup import Markup, tag
from placement.report.charts.svg_charts import Dots, Series, dots, lines
from placement.text.text_tables import ValueTable

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
    found = [_answer(content, content.get("plans", ()))]
    limits, payers = limits_table(content), payers_table(content, _SHOWN)
    if limits.rows:
        found.append(_limits(limits))
    if payers.rows:
        found.append(section("databases", payers.title, value_table(payers)))
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
        data_table("Limits that are short", list(map(_short, short))) if short else None,
    )


def _short(one: Mapping[str, Any]) -> TableRow:
    by, limit = float(one["short_by"]), float(one["limit"])
    return {"Limit": str(one["name"]), "Short by": by, "Limit value": limit}


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


def _limits(limits: ValueTable) -> Markup:
    shown: list[Dots] = []
    worth: list[str] = []
    for name, *values in limits.rows:
        *today, load, limit, _, price = map(float, values)
        drawn = [*((v, "naive", "today") for v in today), (load, "plan", "plan")]
        points = [(100 * v / limit, role, series) for v, role, series in drawn if limit and v == v]
        shown.append(Dots(str(name), tuple(points)))
        if price > 0:
            worth.append(f"{name}: one more is worth {price:,.4g} ms·operations")
    return section(
        "limits",
        "Shared limits",
        dots(shown[:_SHOWN], caption=f"{limits.title}: their load in % of the limit", unit="%"),
        reasons("What more capacity is worth", worth[:_SHOWN]),
        value_table(limits),
    )


def _rounds(bounds: Sequence[float], value: float) -> Markup:
    best = itertools.accumulate(bounds, max)
    gaps = [100 * max(0.0, value - bound) / value for bound in best]
    course = Series("gap", tuple((float(number), gap) for number, gap in enumerate(gaps, 1)))
    caption, axis = (
        "Gap of the plan to the best bound after each round",
        "round of column generation",
    )
    drawn = lines([course], caption=caption, x_label=axis, y_label="gap, %", logarithmic=True)
    return section("rounds", "Gap by round", drawn)

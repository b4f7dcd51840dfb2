"""The sections of the page of a plan of a fleet."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placement.fleet.fleet_tables import limits_table, payers_table
from placement.io.formats.document import Document
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
    source: str = ""  #: the file, for messages


def fleet_sections(document: FleetDocument) -> list[Markup]:
    """Return the sections: the answer, the limits, the worth of capacity, databases, rounds.

    All figures are those of the file; the page says how to prove the bound again.
    """
    content = Document(document.source, "", document.content)
    if content.text("status", "feasible") != "feasible":
        return [_no_plan(content)]
    found = [_answer(content)]
    limits, payers = limits_table(content), payers_table(content, _SHOWN)
    if limits.rows:
        found.append(_limits(limits))
    if payers.rows:
        found.append(section("databases", payers.title, value_table(payers)))
    rounds = [one.number("bound") for one in content.tables("rounds")]
    if len(rounds) > 1:
        found.append(_rounds(rounds, content.number("value")))
    return found


def _no_plan(content: Document) -> Markup:
    """Return the section of a fleet without a plan: the limits that are short, and by how much."""
    status, short = content.text("status"), content.tables("short")
    return section(
        "answer",
        "No plan of the fleet",
        facts(
            [
                ("Status", status, "proven" if status == "infeasible" else "nothing is proven"),
                ("Databases", f"{content.whole('databases'):,}", ""),
            ]
        ),
        reasons("Why", content.names("reasons", ())[:_SHOWN]),
        data_table("Limits that are short", list(map(_short, short))) if short else None,
    )


def _short(one: Document) -> TableRow:
    by, limit = one.number("short_by"), one.number("limit")
    return {"Limit": one.text("name"), "Short by": by, "Limit value": limit}


def _answer(content: Document) -> Markup:
    gap, alone = content.number("gap"), content.number("alone", math.nan)
    value = content.number("value")
    proven = "optimal" if gap <= 1e-9 else "feasible"
    new = sum(int(one.number("new_replicas", 0)) * one.whole("copies")
              for one in content.tables("plans"))  # fmt: skip
    return section(
        "answer",
        "The fleet",
        facts(
            [
                ("Status", proven, content.text("method")),
                ("Gap of the whole fleet", percent(gap), "to the bound that the prices prove"),
                ("Databases", f"{content.whole('databases'):,}", ""),
                ("Mean latency", f"{content.number('mean_latency_ms'):,.2f} ms", "per operation"),
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
    gaps = [100 * max(0.0, value - bound) / value if value > 0 else 0.0 for bound in best]
    course = Series("gap", tuple((float(number), gap) for number, gap in enumerate(gaps, 1)))
    caption, axis = (
        "Gap of the plan to the best bound after each round",
        "round of column generation",
    )
    drawn = lines([course], caption=caption, x_label=axis, y_label="gap, %", logarithmic=True)
    return section("rounds", "Gap by round", drawn)

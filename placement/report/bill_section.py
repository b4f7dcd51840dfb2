"""The section of a page with the bill of a month, and tables of values as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from placement.evaluation.bill import bill_of, bill_tables
from placement.evaluation.value_tables import ValueTable
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.report.charts.html_tables import Column, data_table
from placement.report.charts.markup import Markup, tag
from placement.report.charts.parts import section

__all__ = ["bill_section", "shown_tables"]


def bill_section(plan: Plan, today: Configuration | None = None) -> list[Markup]:
    """Return the section of the bill and of the bill of `today`; nothing without prices."""
    if plan.bill is None:
        return []
    said = f"{plan.bill.total:,.2f} {plan.bill.currency} per month."
    before = None if today is None else bill_of(plan.problem.instance, today)
    if before is not None:
        said += f" Today's configuration costs {before.total:,.2f} {before.currency} per month."
    if plan.bill.source:
        said += f" Prices: {plan.bill.source}."
    note = tag("p", {"class": "note"}, said)
    return [section("bill", "What it costs", note, *shown_tables(bill_tables(plan.bill, before)))]


def shown_tables(tables: Sequence[ValueTable]) -> list[Markup]:
    """Return tables of values as tables of a page."""
    return [
        data_table(
            one.title,
            [Column(column.name, column.decimals is not None) for column in one.columns],
            one.rows,
            mark=() if one.chosen is None else (one.chosen,),
        )
        for one in tables
    ]

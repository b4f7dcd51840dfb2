"""Bill of a month as a part of a JSON document."""

from __future__ import annotations

import dataclasses

from placement.evaluation.bill import MonthlyBill

__all__ = ["bill_document"]


def bill_document(bill: MonthlyBill) -> dict[str, object]:
    """Return a bill, JSON-ready: recomputed from the plan when read."""
    return {
        "total": bill.total,
        "currency": bill.currency,
        "source": bill.source,
        "by_term": bill.by_term,
        "by_site": bill.by_site,
        "rows": [dataclasses.asdict(row) for row in bill.rows],
    }

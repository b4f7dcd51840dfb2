"""What the page of a plan for a percentile has beside the others."""

from __future__ import annotations

from placement.plan import Plan
from placement.report.charts.html_tables import Column, data_table
from placement.report.charts.markup import Markup
from placement.report.charts.parts import section

__all__ = ["tail_section"]


def tail_section(plan: Plan) -> list[Markup]:
    """Return the tables of percentiles and of leaders by percentile; nothing otherwise."""
    if plan.problem.objective.kind != "percentile" or plan.configuration is None:
        return []
    from placement.tail.percentile_breakdown import by_leader, curve

    word = plan.problem.objective.describe().split()[0]
    leaders = by_leader(plan.problem, plan.configuration)
    chosen = [i for i, row in enumerate(leaders) if row.leader == plan.leader]
    return [
        section(
            "tail",
            "The tail of latency",
            data_table(
                "Latency of all operations",
                [Column("Percentile"), Column("ms", True)],
                [[f"p{p:g}", value] for p, value in curve(plan.problem, plan.configuration)],
            ),
            data_table(
                f"Leaders by {word}, replicas and voters unchanged",
                [Column("Leader"), Column(f"{word}, ms", True), Column("Mean, ms", True)],
                [[row.leader, row.percentile, row.mean_latency] for row in leaders],
                mark=chosen,
            ),
        )
    ]

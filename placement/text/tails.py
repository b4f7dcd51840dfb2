"""The parts of a plan's text that only a percentile has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from placement.text.characters import number_text
from placement.text.text_tables import section, table

if TYPE_CHECKING:
    from placement.plan import Plan

__all__ = ["percentile_ms", "tail_sections"]


def tail_sections(plan: Plan) -> list[str]:
    """Return tables of percentiles and of leaders by the percentile that is minimised."""
    if plan.problem.objective.kind != "percentile" or plan.configuration is None:
        return []
    from placement.tail.percentile_breakdown import by_leader, curve

    word = plan.problem.objective.describe().split()[0]
    percentiles = table(
        ["percentile", "ms"],
        [
            [f"p{p:g}", percentile_ms(plan, value)]
            for p, value in curve(plan.problem, plan.configuration)
        ],
        right=(1,),
        indent="  ",
    )
    leaders = table(
        ["leader", f"{word} ms", "mean ms"],
        [
            [
                row.leader + (" (chosen)" if row.leader == plan.leader else ""),
                percentile_ms(plan, row.percentile),
                number_text(row.mean_latency, 3),
            ]
            for row in by_leader(plan.problem, plan.configuration)
        ],
        right=(1, 2),
        indent="  ",
    )
    return [
        section("Latency of all operations", percentiles),
        section(f"Leaders by {word}, replicas and voters unchanged", leaders),
    ]


def percentile_ms(plan: Plan, value: float) -> str:
    """Return a percentile in ms with the decimals that the grid has."""
    from placement.tail.percentile_breakdown import percentile_of

    goal = percentile_of(plan.problem)
    if math.isinf(value) or goal is None:
        return "beyond the horizon"
    return number_text(value, max(1, math.ceil(-math.log10(goal.distributions.width) - 1e-9)))

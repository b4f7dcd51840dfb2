"""The plan of a fleet as text: the answer, the limits that cost most, who pays for sharing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from placement.fleet.fleet_plan import FleetPlan
from placement.support.status import Termination
from placement.text import number_text, table
from placement.text.text_tables import facts, section

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["fleet_text", "shortened"]

_ROUNDING = 1e-12
"""Gap that sums of doubles leave where value and bound are the same."""

_SHOWN = 8
"""Databases, limits and reasons that the text shows."""


def shortened(lines: Sequence[str]) -> list[str]:
    """Return the first lines, and in one more how many are left out."""
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"… and {more} more"] if more > 0 else [])]


def fleet_text(plan: FleetPlan, frame: pd.DataFrame) -> str:
    """Return the answer, the fullest limits, and the databases that pay most for sharing.

    `frame` is the plan as :func:`placement.fleet.fleet_tables.fleet_frame` makes it.
    """
    paying = frame[frame["paid"] > _ROUNDING * plan.value]
    dearest = paying.sort_values("paid", ascending=False, kind="stable").head(_SHOWN)
    shared = 100 * (plan.value / plan.value_alone - 1) if plan.value_alone else 0.0
    answer = f"feasible, gap {100 * plan.gap:.3g} % for the whole fleet"
    if plan.gap <= _ROUNDING:
        answer = "optimal, proven"
    answer += f"; by {plan.method} in {plan.seconds:.3g} s"
    if plan.termination is not Termination.FINISHED:
        answer += f", stopped: {plan.termination}"
    head = facts(
        [
            ("Question", f"{plan.fleet.databases:,} databases on {len(plan.fleet.sites)} sites, "
                         f"{len(plan.rows.names)} shared limits"),
            ("Answer", answer),
            ("Mean latency", f"{number_text(plan.mean_latency, 3)} ms per operation; "
                             f"{shared:.2f} % above each database alone"),
        ]
    )  # fmt: skip
    rows = plan.rows
    full = plan.load / np.where(rows.capacity > 0, rows.capacity, 1.0)
    prices = plan.prices if plan.prices is not None else plan.load * 0
    fullest = sorted(
        range(len(rows.names)),
        key=lambda row: (-prices[row] * rows.capacity[row], -full[row]),
    )
    limits = table(
        ["limit", "load", "of", "full", "worth of one more"],
        [
            [
                rows.names[row],
                f"{plan.load[row]:,.6g}",
                f"{rows.capacity[row]:,.6g}",
                f"{100 * full[row]:.1f} %",
                f"{prices[row]:,.4g} ms·ops",
            ]
            for row in fullest[:_SHOWN]
        ],
        right=(1, 2, 3, 4),
        indent="  ",
    )
    databases = table(
        ["database", "share of it", "mean ms", "alone ms", "leader"],
        [
            [
                str(one["database"]),
                f"{100 * one['paid'] / (plan.value - plan.value_alone):.1f} %",
                number_text(one["mean_ms"], 2),
                number_text(one["alone_ms"], 2),
                str(one["leader"]),
            ]
            for one in dearest.to_dict("records")
        ],
        right=(1, 2, 3),
        indent="  ",
    )
    return "\n\n".join(
        [
            head,
            *([section("Limits that cost most", limits)] if rows.names else []),
            *([] if dearest.empty else [section("Databases that pay most for sharing", databases)]),
        ]
    )

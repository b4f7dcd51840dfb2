"""Pictures of replays, after Figures 3 and 7 of Sharov et al."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import require
from placement.overtime.replay.results import Replay
from placement.report.charts.svg_charts import Series, lines
from placement.report.plots import Picture, picture

if TYPE_CHECKING:
    from placement.support.checks import FloatArray

_STRATEGIES = (
    "optimized", "closest-to-writes", "smallest-quorum", "average", "preferred", "static",
)  # fmt: skip
"""Strategies that are drawn; each keeps its colour in all panels."""

_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}")


def plot_overheads(result: Replay, database: str, *, title: str = "") -> Picture:
    """Draw Figure 3: how far each strategy is above the oracle, interval by interval.

    Parameters
    ----------
    result
        The replay.
    database
        Name of the one to show; a panel per tier.
    title
        Above the picture.
    """
    expected = "one that is in the result"
    require(database in result.databases, "database", "not replayed", database, expected)
    row = result.databases.index(database)
    panels = {}
    for tier in result.tiers:
        known = [each.strategy for each in result.outcomes if each.tier == tier]
        panels[f"tier {tier}"] = {
            name: result.overhead(tier, name)[row] for name in _STRATEGIES if name in known
        }
    return plot_reductions(
        panels, result.intervals, of="latency above the oracle, %", title=title or database
    )


def plot_reductions(
    panels: Mapping[str, Mapping[str, FloatArray]],
    intervals: Sequence[str],
    *,
    of: str = "reduction of the mean latency, %",
    title: str = "",
) -> Picture:
    """Draw Figure 7: lines over time, several panels below each other.

    `panels` is the title of each panel -> name of each line -> percent per interval; `of` says what
    the lines are.
    """
    labels = [_short(each, intervals) for each in intervals]
    charts = []
    for number, (caption, drawn) in enumerate(panels.items()):
        series, name = [], f"panel {number}"
        for label, values in drawn.items():
            points = tuple(enumerate(values.tolist())) if np.isfinite(values).any() else ()
            series.append(Series(label, points))
        look = partial(lines, x_label="", y_label=of, x_names=labels, steps=True)
        charts.append(look(series, caption=caption, name=name))
    return picture(charts, title=title)


def _short(label: str, intervals: Sequence[str]) -> str:
    """Leave out of a time stamp the part that all time stamps share: the year, or the date."""
    if not all(_STAMP.match(each) for each in intervals):
        return label
    if len({each[:10] for each in intervals}) == 1:
        return label[11:16]
    return label[5:16].replace("T", " ")

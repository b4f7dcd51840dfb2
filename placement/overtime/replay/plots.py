"""Pictures of replays, after Figures 3 and 7 of Sharov et al. (extra ``plot``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import MissingDependencyError, require
from placement.overtime.replay.results import Replay
from placement.report.charts.palette import METHODS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from placement.support.checks import FloatArray

_SERIES = {
    "optimized": (METHODS[0], "-"),
    "closest-to-writes": (METHODS[1], "--"),
    "smallest-quorum": (METHODS[2], "-."),
    "average": (METHODS[7], ":"),
    "preferred": (METHODS[3], "--"),
    "static": (METHODS[4], "-"),
}
"""Colour and dashes of the strategies that are drawn; told apart without colours too."""

_TICKS = 9
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}")


def plot_overheads(result: Replay, database: str, *, title: str = "") -> Figure:
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
        lines = {
            each.strategy: result.overhead(tier, each.strategy)[row]
            for each in result.outcomes
            if each.tier == tier and each.strategy in _SERIES
        }
        panels[f"tier {tier}"] = {
            name: over for name, over in lines.items() if np.isfinite(over).any()
        }
    return plot_reductions(
        panels, result.intervals, of="latency above the oracle (%)", title=title or database
    )


def plot_reductions(
    panels: Mapping[str, Mapping[str, FloatArray]],
    intervals: Sequence[str],
    *,
    of: str = "reduction of the mean latency (%)",
    title: str = "",
) -> Figure:
    """Draw Figure 7: lines over time, several panels beside each other.

    Parameters
    ----------
    panels
        Title of each panel -> name of each line -> percent per interval. Lines with the name of a
        strategy get its colour.
    intervals
        Labels.
    of
        What the lines are.
    title
        Above the picture.
    """
    figure, places = figure_panels(len(panels))
    others = [(METHODS[0], "-"), (METHODS[1], "--"), (METHODS[2], "-.")]
    for axes, (name, lines) in zip(places, panels.items(), strict=True):
        # lines often agree for hours: those drawn first are wider, so that none hides another
        widths = np.linspace(1.2 + 0.66 * (len(lines) - 1), 1.2, len(lines)).tolist()
        for number, (label, values) in enumerate(lines.items()):
            colour, dashes = _SERIES.get(label, others[number % len(others)])
            axes.plot(values, color=colour, ls=dashes, lw=widths[number], label=label)
        axes.set_title(name, fontsize=10)
        axes.set_ylabel(of)
        axes.axhline(0, color=METHODS[7], lw=0.8)
        if lines:
            axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
        _time(axes, intervals)
    figure.suptitle(_plain(title), fontsize=11)
    return figure


def figure_panels(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels side by side."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError.of("pictures need matplotlib", "plot") from error
    figure = Figure(figsize=(5.6 * max(1, count), 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, max(1, count), squeeze=False)[0])


def _time(axes: Axes, intervals: Sequence[str]) -> None:
    """Label as many of the intervals as the axis has room for."""
    step = max(1, -(-len(intervals) // _TICKS))
    places = range(0, len(intervals), step)
    labels = [_short(intervals[i], intervals) for i in places]
    axes.set_xticks(places, labels, rotation=45, ha="right", fontsize=8)
    axes.set_xlim(0, max(1, len(intervals) - 1))
    _tidy(axes)


def _short(label: str, intervals: Sequence[str]) -> str:
    """Leave out of a time stamp the part that all time stamps share: the year, or the date."""
    if not all(_STAMP.match(each) for each in intervals):
        return label
    if len({each[:10] for each in intervals}) == 1:
        return label[11:16]
    return label[5:16].replace("T", " ")


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", lw=0.7)
    axes.set_axisbelow(True)


def _plain(text: str) -> str:
    return text.replace("$", r"\$")

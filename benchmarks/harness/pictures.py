"""Pictures of results: panels of lines side by side, drawn without a window."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from benchmarks.harness.result_rows import best_known, row_gap
from placement.report.page import style_sheet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = tuple(re.findall(r"\.series\d \{ color: light-dark\((#\w+)", style_sheet()))
"""Colours of the series of a chart, as on a light page."""


@dataclass(frozen=True)
class Panel:
    """Lines over one pair of axes.

    A line is x, y, and how matplotlib draws it, by name; a name that begins with "_" has no entry
    in the legend, and lines have the colours of :data:`COLOURS` in turn. `axes` is what
    ``Axes.set`` takes, `marks` the x of dashed vertical lines, `bands` the range around a line.
    """

    lines: Mapping[str, tuple[Sequence[Any], Sequence[float], Mapping[str, Any]]]
    axes: Mapping[str, Any]
    marks: Mapping[str, float] = field(default_factory=dict)
    bands: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)

    def draw(self, axes: Any) -> None:
        """Draw the lines, the marks and the legend."""
        for place, (name, (x, y, style)) in enumerate(self.lines.items()):
            colour = {"color": COLOURS[place % len(COLOURS)], **style}
            axes.plot(x, y, **{"label": name, "linewidth": 1.5, **colour})
            if name in self.bands:
                axes.fill_between(x, *self.bands[name], color=colour["color"], alpha=0.15, lw=0)
        for name, where in self.marks.items():
            axes.axvline(where, color="0.6", linestyle=":", label=name, zorder=0)
        axes.set(**self.axes)
        if "xticks" in self.axes or "yticks" in self.axes:
            axes.minorticks_off()
        if labels := axes.get_legend_handles_labels()[1]:
            axes.legend(frameon=False, fontsize=8, ncols=1 + (len(labels) > 5 + bool(self.marks)))


def save_panels(path: Path, panels: Sequence[Panel], columns: int = 2, height: float = 3.4) -> None:
    """Draw panels, `columns` in a row of `height` inches, into a PNG."""
    figure, axes = axes_of(min(columns, len(panels)), height, math.ceil(len(panels) / columns))
    for one, panel in zip(axes, panels, strict=False):
        panel.draw(one)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def method_panels(rows: Sequence[Mapping[str, Any]], methods: Sequence[str]) -> list[Panel]:
    """Return gap and time over the number of replicas: two panels for each failure constraint.

    A point is the median over the questions with that many replicas. `rows` are all of a question,
    since the gap is to the best bound that any method proved.
    """
    known, panels = best_known(rows), list[Panel]()
    gaps = ((row, row_gap(row, known)) for row in rows)
    found = pd.DataFrame(
        {**row["cell"], "seconds": row["seconds"], "gap %": np.nan if gap is None else 100 * gap}
        for row, gap in gaps
        if row["outcome"] == "ok" and row["cell"]["method"] in methods
    )
    for failures in sorted(found["failures"].unique(), key=_strictness):
        mine = found[found["failures"] == failures]
        for label, prefix in (("gap %", ""), ("seconds", "_")):  # one legend for the two panels
            medians = mine.pivot_table(label, "replicas", "method", "median")
            lines: dict[str, tuple[Sequence[Any], Sequence[float], Mapping[str, Any]]] = {}
            for place, method in enumerate(methods):
                if method in medians:
                    points = medians[method].dropna()
                    style = {"marker": "o", "markersize": 3, "color": COLOURS[place % len(COLOURS)]}
                    lines[prefix + method] = (points.index.tolist(), points.tolist(), style)
            scale: dict[str, Any] = {"yscale": "log"}
            if not prefix:
                top = max(1.0, medians.max(axis=None))
                scale = {"ylim": (-0.03 * top, 1.5 * top)}
            axes = {"title": failures, "xlabel": "replicas", "ylabel": label, **scale}
            panels.append(Panel(lines, axes))
    return panels


def _strictness(failures: str) -> tuple[bool, bool, str]:
    """Order of failure constraints: none, domains, losses."""
    return failures == "N-1", failures != "none", failures


def axes_of(columns: int, height: float = 3.4, rows: int = 1) -> tuple[Figure, list[Any]]:
    """Return a figure with some axes side by side."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * columns + 0.4, rows * height), layout="constrained")
    FigureCanvasAgg(figure)
    found = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes in found:
        axes.grid(visible=True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, found


def cdf(axes: Any, values: Sequence[float], label: str, colour: str, style: str = "-") -> None:
    """Draw the share of values at most x."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    axes.step(ordered, 100 * share, where="post", label=label, color=colour, linestyle=style)
    axes.set_ylim(0, 101)

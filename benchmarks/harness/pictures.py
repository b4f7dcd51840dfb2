"""Pictures and tables of :mod:`benchmarks.contingency.study`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness.doc_pages import markdown_table
from placement.report.charts.palette import METHODS
from placement.support.checks import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "Outcome", "axes_of", "cdf", "ms", "rows", "share_of", "weighted_quantile"]

COLOURS = METHODS


@dataclass(frozen=True, eq=False)
class Outcome:
    """Lines of Markdown, and a picture."""

    lines: list[str]
    figure: Figure


def axes_of(columns: int, height: float = 3.4) -> tuple[Any, list[Any]]:
    """Return a figure with some axes side by side, drawn without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * columns + 0.4, height), layout="constrained")
    FigureCanvasAgg(figure)
    found = figure.subplots(1, columns, squeeze=False)[0]
    for axes in found:
        axes.grid(visible=True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, list(found)


def cdf(axes: Any, values: Sequence[float], label: str, colour: str, style: str = "-") -> None:
    """Draw the share of values at most x."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    axes.step(ordered, 100 * share, where="post", label=label, color=colour, linestyle=style)
    axes.set_ylim(0, 101)


def rows(header: Sequence[str], body: Sequence[Sequence[object]]) -> list[str]:
    """Return a Markdown table."""
    return markdown_table(header, body).splitlines()


def ms(values: Sequence[float] | FloatArray, quantile: float = 0.5) -> str:
    """Return a quantile in ms."""
    return f"{np.quantile(np.asarray(values, dtype=np.float64), quantile):.1f}"


def share_of(condition: BoolArray) -> str:
    """Return how many per cent hold."""
    return f"{100 * float(np.mean(condition)):.0f} %"


def weighted_quantile(values: FloatArray, weights: FloatArray, quantile: float) -> float:
    """Least value that `quantile` of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order][int(np.searchsorted(total, quantile * total[-1] - 1e-9))])

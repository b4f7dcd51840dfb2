"""Pictures of comparisons, sweeps and frontiers (extra ``plot``).

Figures are built on matplotlib's objects and drawn by Agg (or as SVG). pyplot, with its global
state and its choice of windows, is never used, so this works in a service and in a thread.
"""

from __future__ import annotations

import io
import math
import os
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from placement.errors import InputError, MissingDependencyError
from placement.report.charts.palette import METHODS, ROLES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FORMATS",
    "check_picture",
    "plot_comparison",
    "plot_pareto",
    "plot_protocols",
    "plot_sweep",
    "save_figure",
]

FORMATS = ("png", "svg", "pdf")
"""Formats of pictures, by the end of the file's name."""

_PROVEN, _KNOWN, _OTHER = ROLES["plan"], ROLES["client"], METHODS[7]
_SERIES = METHODS
_MOST_CHANGES = 14
"""Changes from point to point that are listed beside a frontier."""
_MARKERS = ("o", "s", "^", "D", "v", "P")


def plot_comparison(table: pd.DataFrame, *, title: str = "") -> Figure:
    """Draw a comparison: mean latency and gap per method, and the time each took.

    Parameters
    ----------
    table
        From :func:`placement.compare`.
    title
        Above the picture; the problem in words when empty.

    Returns
    -------
    matplotlib.figure.Figure
        Left: mean latency in ms (or the percentile that was asked for), best on top, proven optima
        in blue, the gap to the best bound beside each bar. Right: seconds, on a logarithmic axis.
        Methods without a plan are listed with their status.
    """
    found = table[table["score"].notna()].sort_values(["objective", "seconds"], kind="stable")
    missing = table[table["score"].isna()]
    figure = _figure(10.5, 1.9 + 0.34 * max(1, len(found)) + 0.2 * min(len(missing), 8))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    places = np.arange(len(found))
    proven = (found["status"] == "optimal").to_numpy()
    colours = [_PROVEN if known else _KNOWN for known in proven]
    tail = table.attrs.get("kind") == "percentile"
    latency = found["objective" if tail else "mean_latency"].to_numpy(dtype=float)
    left.barh(places, latency, color=colours, height=0.66)
    for place, value, gap in zip(places, latency, found["gap"], strict=True):
        left.annotate(
            f" {value:,.2f} ms, {_gap_text(float(gap))}", (value, place), va="center", fontsize=9
        )
    left.set_yticks(places, [_plain(name) for name in found["method"]])
    left.set_xlim(0, 1.5 * max(latency, default=1.0) or 1.0)
    left.set_xlabel(_value_label(table) if tail else "mean operation latency (ms)")
    seconds = np.maximum(found["seconds"].to_numpy(dtype=float), 1e-5)
    # Points, not bars: a logarithmic axis has no zero for a bar to start from.
    right.scatter(seconds, places, c=colours, s=48, zorder=3)
    right.hlines(places, 1e-6, seconds, color="#cccccc", lw=1)  # from the edge, wherever that is
    right.set_xscale("log")
    # Whole decades, so that two labels are there at least and those between need none.
    right.set_xlim(
        10.0 ** math.floor(math.log10(seconds.min(initial=1.0))),
        10.0 ** math.ceil(math.log10(1.2 * seconds.max(initial=1e-5))),
    )
    right.xaxis.minorticks_off()
    right.set_xlabel("wall time (s)")
    for one in (left, right):
        _tidy(one, "x")
    left.set_ylim(len(found) - 0.4, -0.6)
    _key(right, [("proves its plan optimal", _PROVEN), ("does not", _KNOWN)])
    figure.suptitle(_plain(title or str(table.attrs.get("problem", ""))), fontsize=11)
    notes = [f"{row['method']}: {row['status']}" for row in missing.to_dict("records")]
    if notes:
        shown = notes if len(notes) <= 8 else [*notes[:8], f"and {len(notes) - 8} more"]
        figure.supxlabel(
            _plain("No plan from " + " · ".join(shown)), fontsize=8, color=_OTHER, wrap=True
        )
    return figure


def plot_protocols(table: pd.DataFrame, *, title: str = "") -> Figure:
    """Draw a comparison of protocols: mean latency of reads and writes under each.

    Parameters
    ----------
    table
        From :func:`placement.compare_protocols`.
    title
        Above the picture; the problem in words when empty.

    Returns
    -------
    matplotlib.figure.Figure
        One row per protocol with a plan, in the order of the table: bars for all operations, marks
        for reads and writes, and a line for the mean on the replicas of the first.
    """
    found = table[table["mean_latency"].notna()]
    figure = _figure(9.0, 1.9 + 0.4 * max(1, len(found)))
    axes = figure.subplots()
    places = np.arange(len(found))
    latency = found["mean_latency"].to_numpy(dtype=float)
    axes.barh(places, latency, color=_PROVEN, height=0.6)
    marks = (("reads", _SERIES[1], "o"), ("writes", _SERIES[2], "s"), ("on_first", _KNOWN, "|"))
    for column, colour, mark in marks:
        size = 220 if mark == "|" else 36
        axes.scatter(found[column], places, c=colour, marker=mark, s=size, zorder=3, lw=2)
    for place, value in zip(places, latency, strict=True):
        axes.annotate(f" {value:,.1f}", (0, place), va="center", fontsize=9, color="white")
    axes.set_yticks(places, [_plain(name) for name in found["protocol"]])
    columns = found[["mean_latency", "reads", "writes", "on_first"]].to_numpy(dtype=float)
    axes.set_xlim(0, 1.1 * float(np.nanmax(columns, initial=1.0)))
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.set_xlabel("mean operation latency (ms)")
    _tidy(axes, "x")
    key = [("all operations", _PROVEN), ("reads", _SERIES[1]), ("writes", _SERIES[2])]
    _key(axes, [*key, ("on the replicas of the first", _KNOWN)])
    figure.suptitle(_plain(title or str(table.attrs.get("problem", ""))), fontsize=11)
    return figure


def plot_sweep(table: pd.DataFrame, *, title: str = "") -> Figure:
    """Draw a sweep: mean latency over the number of replicas, and what one more replica brings.

    Parameters
    ----------
    table
        From :func:`placement.sweep`.
    title
        Above the picture.

    Returns
    -------
    matplotlib.figure.Figure
        Above: a line per number of voters; cells that are not proven are hollow, and a bar reaches
        down to their bound. Below: the gain of one more replica in ms.
    """
    figure = _figure(7.5, 6.2)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    groups = [
        (voters, table[table["voters"] == voters])
        for voters in sorted(set(table["voters"].dropna().astype(int).tolist()))
    ]
    width = 0.8 / max(1, len(groups))
    for number, (voters, part) in enumerate(groups):
        colour = _SERIES[number % len(_SERIES)]
        marker = _MARKERS[number % len(_MARKERS)]
        found = part[part["score"].notna()]
        sizes = found["replicas"].to_numpy(dtype=float)
        latency = found["value"].to_numpy(dtype=float)
        proven = (found["status"] == "optimal").to_numpy()
        above.plot(sizes, latency, color=colour, lw=1.6, zorder=2)
        word = "voter" if voters == 1 else "voters"
        if proven.any():
            above.plot(
                sizes[proven], latency[proven], marker, color=colour, label=f"{voters} {word}"
            )
        if (~proven).any():
            gap = np.minimum(found["gap"].to_numpy(dtype=float)[~proven], 1.0)
            above.errorbar(
                sizes[~proven],
                latency[~proven],
                yerr=[gap * latency[~proven], np.zeros_like(gap)],
                fmt=marker,
                mfc="white",
                color=colour,
                capsize=3,
                label=f"{voters} {word}, not proven (bar: down to the bound)",
            )
        offset = (number - (len(groups) - 1) / 2) * width
        gain = part["gain"].to_numpy(dtype=float)
        shown = np.isfinite(gain)
        places = part["replicas"].to_numpy(dtype=float)[shown] + offset
        below.bar(places, gain[shown], width=0.9 * width, color=colour)
    above.set_ylabel(_value_label(table))
    below.set_ylabel("gain of the last\nreplica (ms)")
    below.set_xlabel("replicas")
    below.axhline(0, color=_OTHER, lw=0.8)
    below.set_xticks(sorted(set(table["replicas"].astype(int).tolist())))
    for axes in (above, below):
        _tidy(axes, "y")
    if above.get_legend_handles_labels()[1]:
        above.legend(frameon=False, fontsize=9)
    figure.suptitle(_plain(title or "What one more replica brings"), fontsize=11)
    return figure


def plot_pareto(table: pd.DataFrame, *, title: str = "") -> Figure:
    """Draw a frontier: the least mean latency that money buys.

    Parameters
    ----------
    table
        From :func:`placement.pareto`.
    title
        Above the picture.

    Returns
    -------
    matplotlib.figure.Figure
        A staircase, since between two points nothing better than the left one exists; each point is
        labelled with its numbers of replicas and voters, hollow when it is not proven. A list on
        the right names what changes at each point.
    """
    figure = _figure(10.5, 4.8)
    axes = figure.subplots()
    cost = table["cost"].to_numpy(dtype=float)
    latency = table["value"].to_numpy(dtype=float)
    proven = (table["status"] == "optimal").to_numpy()
    axes.step(cost, latency, where="post", color=_PROVEN, lw=1.4, zorder=1)
    for mask, face, label in ((proven, _PROVEN, "proven"), (~proven, "white", "not proven")):
        if mask.any():
            axes.scatter(cost[mask], latency[mask], s=34, c=face, edgecolors=_PROVEN, label=label)
    # Numbers of replicas and voters where there is room; the last point always has its own.
    span = max(float(np.ptp(cost)), 1e-300) if len(cost) else 1.0
    last = -math.inf
    for number, row in enumerate(table.to_dict("records")):
        if row["cost"] - last >= 0.07 * span or number == len(table) - 1:
            axes.annotate(
                f"{row['replicas']}/{row['voters']}",
                (row["cost"], row["value"]),
                xytext=(4, 5),
                textcoords="offset points",
                fontsize=8,
            )
            last = row["cost"]
    _name_changes(axes, table)
    axes.set_xlabel(f"cost ({_plain(str(table.attrs.get('currency', '')))} per month)")
    axes.set_ylabel(_value_label(table))
    _tidy(axes, "both")
    if len(table):
        axes.legend(frameon=False, fontsize=9, title="label: replicas/voters", title_fontsize=8)
    complete = bool(table.attrs.get("complete", False))
    figure.suptitle(
        _plain(title or "Latency against cost" + ("" if complete else " (not complete)")),
        fontsize=11,
    )
    return figure


def _name_changes(axes: Axes, table: pd.DataFrame) -> None:
    """Number the points and list their changes beside the picture, the first at the top."""
    for number, (cost, value) in enumerate(zip(table["cost"], table["value"], strict=True), 1):
        axes.annotate(
            str(number),
            (cost, value),
            xytext=(-3, -10),
            textcoords="offset points",
            ha="right",
            fontsize=7,
            color=_OTHER,
        )
    changes = table["change"].tolist()
    said = [f"1  {', '.join(table['replica_sites'].iloc[0])}"] if len(table) else []
    said += [f"{number}  {change}" for number, change in enumerate(changes[1:], 2)]
    if len(said) > _MOST_CHANGES:
        said = [*said[:_MOST_CHANGES], f"… and {len(said) - _MOST_CHANGES} more"]
    if table.attrs.get("prices"):
        said += ["", f"Prices: {table.attrs['prices']}"]
    lines: list[str] = []
    for one in said:
        text = one.replace("$", r"\$")
        lines += textwrap.wrap(text, 46, subsequent_indent="   ", break_on_hyphens=False) or [""]
    axes.text(
        1.02, 1.0, "\n".join(lines), transform=axes.transAxes, va="top", fontsize=7, color="0.3"
    )


def check_picture(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Refuse a picture that could not be written, before any work is done for it.

    Raises
    ------
    InputError
        For an ending that is not in `FORMATS`, a missing folder, or a file that exists.
    MissingDependencyError
        Without matplotlib.
    """
    from placement.io.formats.files import check_file

    target = Path(path)
    if target.suffix.lower().lstrip(".") not in FORMATS:
        raise InputError(
            "unknown picture format",
            field="plot",
            value=str(path),
            expected="a name that ends in " + ", ".join(f".{name}" for name in FORMATS),
        )
    _figure(1, 1)
    return check_file(target, force=force)


def save_figure(
    figure: Figure, path: str | os.PathLike[str], *, force: bool = False, dpi: int = 150
) -> Path:
    """Write a figure whole or not at all, as its file name says; the bytes are reproducible."""
    import matplotlib as mpl

    from placement.io.formats.files import write_file

    target = check_picture(path, force=force)
    form = target.suffix.lower().lstrip(".")
    buffer = io.BytesIO()
    undated: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    with mpl.rc_context({"svg.hashsalt": "placement", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=form, dpi=dpi, metadata=undated[form])
    return write_file(target, buffer.getvalue(), force=force)


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError.of("pictures need matplotlib", "plot") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _tidy(axes: Axes, grid: Literal["both", "x", "y"]) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#dddddd", lw=0.7)
    axes.set_axisbelow(True)


def _key(axes: Axes, entries: list[tuple[str, str]]) -> None:
    from matplotlib.patches import Patch

    axes.legend(
        handles=[Patch(color=colour, label=label) for label, colour in entries],
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=len(entries),
        fontsize=9,
        frameon=False,
    )


def _gap_text(gap: float) -> str:
    if not math.isfinite(gap):
        return "gap unknown"
    return "gap 0" if gap <= 1e-9 else f"gap {100 * gap:.2f} %"


def _plain(text: str) -> str:
    """Break long lines, and keep matplotlib from reading a dollar sign as mathematics."""
    return textwrap.fill(text.replace("$", r"\$"), 110)


def _value_label(table: pd.DataFrame) -> str:
    """Return the axis label of the minimised value of a table of plans."""
    words = str(table.attrs.get("objective", "")) or "mean operation latency"
    return f"{_plain(words)} (ms)"

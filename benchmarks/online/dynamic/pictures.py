"""The pictures of the benchmark of dynamic replication."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.result_files import read_rows
from placement.report.charts.palette import METHODS

__all__ = ["pictures"]

_BLUE, _RED, _GREEN, _VIOLET, _BROWN = METHODS[:5]
_GREY = METHODS[7]


def _columns(path: Path) -> dict[str, Any]:
    rows = read_rows(path)
    return {
        name: np.array([float(row[name]) if row[name] else np.nan for row in rows])
        for name in rows[0]
    }


def pictures(
    document: Mapping[str, Any], mechanism: Path, latency: Path, other_keys: Path, folder: Path
) -> None:
    """Draw Figures 3 to 7 into a folder, of the series that exist."""
    if mechanism.exists():
        data = _columns(mechanism)
        _lines(
            folder / "online-dynamic-fig3.png",
            data["time"],
            {
                "all": (100 * data["identified"], _GREY),
                "hottest tenth": (100 * data["identified_best"], _BLUE),
            },
            "hot (object, site) pairs identified (%)",
            "dashed: a generator restarts. Published: above 95 %, drops of 8 %, mended in 12 s",
            bottom=0,
        )
        _lines(
            folder / "online-dynamic-fig4.png",
            data["time"],
            {
                "active": (data["active"], _RED),
                "correct": (data["correct"], _BLUE),
                "k": (np.full(len(data["time"]), 480.0), _GREY),
            },
            "dynamic copies per site",
            "published: active always above k, correct a little above 95 % of k",
            bottom=0,
        )
        _lines(
            folder / "online-dynamic-fig5.png",
            data["time"],
            {
                "false negatives": (100 * data["false_negative"], _RED),
                "false positives": (100 * data["false_positive"], _GREEN),
            },
            "share of reads (%)",
            "published: spikes after restarts, clipped near the threshold of 5 %",
            top=12,
            bottom=0,
        )
    if latency.exists() and other_keys.exists():
        _reads_over_time(
            folder / "online-dynamic-fig6.png",
            {
                "95 % reads, writes to other keys (as published). Published order: MRU, none, "
                "LRU and ARC alike, votes": _columns(other_keys),
                "95 % reads, writes to keys that are read, which evict": _columns(latency),
            },
        )
    if "latency" in document["parts"]:
        _bars(folder / "online-dynamic-fig7.png", document["parts"]["latency"]["rows"])


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _lines(
    path: Path,
    time: Any,
    series: Mapping[str, tuple[Any, str]],
    label: str,
    note: str,
    *,
    bottom: float | None = None,
    top: float | None = None,
) -> None:
    figure = _figure(9, 3.6)
    axes = figure.subplots()
    _over_time(axes, time, series, label, note)
    axes.set_xlabel("time (s)")
    axes.set_ylim(bottom=bottom, top=top)
    figure.savefig(path, dpi=110)


def _over_time(
    axes: Any, time: Any, series: Mapping[str, tuple[Any, str]], label: str, note: str
) -> None:
    """Draw lines over time with the restarts of generators."""
    for restart in range(30, int(time.max()) + 1, 30):
        axes.axvline(restart, color="#cccccc", lw=0.8, ls="--", zorder=0)
    for name, (values, colour) in series.items():
        axes.plot(time, values, color=colour, lw=1.6, label=name)
    axes.set_ylabel(label)
    axes.set_xlim(0, time.max())
    axes.set_title(note, fontsize=9, loc="left")
    axes.legend(frameon=False, ncols=3, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def _reads_over_time(path: Path, panels: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the mean read latency of all policies, one panel for each note."""
    colours = {"none": _GREY, "MRU": _BROWN, "RR": _GREEN, "LRU": _RED, "ARC": _VIOLET}
    colours["votes"] = _BLUE
    figure = _figure(9, 6.8)
    for axes, (note, data) in zip(
        figure.subplots(len(panels), sharex=True), panels.items(), strict=True
    ):
        series = {name: (data[name], colour) for name, colour in colours.items()}
        _over_time(axes, data["time"], series, "mean read latency (ms)", note)
        axes.set_ylim(bottom=0)
    axes.set_xlabel("time (s)")
    figure.savefig(path, dpi=110)


def _bars(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    figure = _figure(9, 3.6)
    panels = figure.subplots(1, 2)
    names = ("none", "MRU", "RR", "LRU", "ARC", "votes")
    for axes, column, label in zip(
        panels, ("read_ms", "write_ms"), ("read latency (ms)", "write latency (ms)"), strict=True
    ):
        for shift, (share, colour) in enumerate(((0.05, _BLUE), (0.5, _RED))):
            values = [
                np.mean(
                    [r[column] for r in rows if r["policy"] == name and r["write_share"] == share]
                )
                for name in names
            ]
            place = np.arange(len(names)) + 0.4 * shift - 0.2
            axes.bar(place, values, 0.38, color=colour, label=f"{100 * share:.0f} % writes")
        axes.set_xticks(range(len(names)), names)
        axes.set_ylabel(label)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)

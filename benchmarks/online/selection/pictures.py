"""Pictures of replica selection: p99 against the time between two draws; the load step."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.machine import ROOT
from benchmarks.harness.pictures import axes_of
from benchmarks.harness.result_files import Row
from placement.report.charts.palette import METHODS

__all__ = ["EPOCHS", "LOAD_STEP", "draw_epochs", "draw_load_step"]

EPOCHS = ROOT / "docs/figures/online-selection-epochs.png"

LOAD_STEP = ROOT / "docs/figures/online-selection-load-step.png"

_POLICIES = ("RR", "LOR", "C3", "ORA")
_MARKS = "vs^D"
_PANELS = (
    ("settings", 150, 0.45, 1.0, "150 clients, utilisation 0.45"),
    ("grid", 150, 0.70, 1.0, "150 clients, utilisation 0.70"),
    ("skew", 150, 0.70, 0.2, "20 % of 150 clients make 80 % of demand, 0.70"),
    ("settings", 300, 0.45, 1.0, "300 clients, utilisation 0.45"),
    ("settings", 300, 0.70, 1.0, "300 clients, utilisation 0.70"),
    ("skew", 150, 0.70, 0.02, "2 % of 150 clients make 95 % of demand, 0.70"),
)


def draw_epochs(rows: Sequence[Row], path: Path = EPOCHS) -> None:
    """Draw mean and range over the seeds of the p99, a panel per setting."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 3, figsize=(12, 7), sharey=True, layout="constrained")
    for axes, (suite, clients, load, heavy, title) in zip(panels.flat, _PANELS, strict=True):
        here = [
            row
            for row in rows
            if row["suite"] == suite
            and int(row["clients"]) == clients
            and (float(row["utilisation"]), float(row["heavy_clients"])) == (load, heavy)
        ]
        for number, (policy, mark) in enumerate(zip(_POLICIES, _MARKS, strict=True)):
            mine = [row for row in here if row["policy"] == policy]
            times = sorted({float(row["epoch_ms"]) for row in mine})
            values = [
                [float(row["p99"]) for row in mine if float(row["epoch_ms"]) == time]
                for time in times
            ]
            means = [statistics.fmean(some) for some in values]
            if times:
                colour = METHODS[number]
                axes.plot(times, means, marker=mark, color=colour, label=policy)
                low, high = [min(some) for some in values], [max(some) for some in values]
                axes.fill_between(times, low, high, color=colour, alpha=0.15, lw=0)
        axes.set(xscale="log", yscale="log", title=title)
        axes.title.set_fontsize(10)
        axes.set_xticks([10, 50, 100, 200, 500], ["10", "50", "100", "200", "500"])
        axes.set_xlim(8, 620)
        axes.set_yticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    for axes in panels[1]:
        axes.set_xlabel("T, ms between two draws of the speeds")
    for axes in panels[:, 0]:
        axes.set_ylabel("p99 of reads, ms")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_load_step(
    rows: Sequence[Mapping[str, Any]], bin_ms: float, path: Path = LOAD_STEP
) -> None:
    """Draw median and p99 of reads over time while 40 generators join, for the first seed.

    Parameters
    ----------
    rows
        Rows of the load step; those with a time line are drawn, without duplicates of reads.
    bin_ms
        Time between two values of a line.
    path
        Where the picture goes.
    """
    lines = [row for row in rows if "p99 line" in row and "hedged" not in row["policy"]]
    figure, panels = axes_of(2)
    for axes, key, label in zip(
        panels, ("median", "p99 line"), ("median of reads, ms", "p99 of reads, ms"), strict=True
    ):
        for number, row in enumerate(lines):
            values = row[key][:-1]  # the last bin is not full
            times = [bin_ms * place / 1000 for place in range(len(values))]
            axes.plot(times, values, color=METHODS[number], lw=1.5, label=row["policy"])
        axes.axvline(lines[0]["joins_ms"] / 1000, color="0.5", ls=":", label="40 generators join")
        axes.set(xlabel="time, s", ylabel=label, ylim=(0, None))
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)

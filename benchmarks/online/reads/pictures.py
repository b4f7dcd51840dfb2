"""Figures of leaseholder and quorum reads, from the committed results."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from benchmarks.harness.machine import ROOT
from benchmarks.harness.pictures import COLOURS, axes_of
from benchmarks.harness.result_files import Row, rows_of
from benchmarks.online.reads.rows import STRATEGIES, UNIFORM, mean
from benchmarks.online.reads.study import CLIENTS, HOT, LIVES, READS, SHARES, X
from placement.io.formats.files import write_file

__all__ = ["FIGURES", "draw"]

FIGURES = ROOT / "docs" / "figures"


def draw(rows: Sequence[Row]) -> None:
    """Draw all figures of the page."""
    _clients(rows)
    _coin(rows)
    _reads_and_retries(rows)


def _keep(figure: Any, name: str) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    write_file(FIGURES / f"online-reads-{name}.png", buffer.getvalue(), force=True)


def _line(axes: Any, x: Sequence[float], y: Sequence[float], name: str, place: int) -> None:
    """Draw a strategy; plain and strong reads often coincide, and both stay in sight."""
    strong = name.startswith("strong")
    axes.plot(
        x,
        y,
        "--" if strong else "-",
        marker="o",
        markersize=4 if strong else 8,
        color=COLOURS[place],
        label=name,
    )


def _clients(rows: Sequence[Row]) -> None:
    figure, axes = axes_of(2)
    for place, (name, rule, strong) in enumerate(STRATEGIES):
        for side, column in ((0, "throughput"), (1, "write_ms")):
            values = [
                mean(rows_of(rows, "clients", rule=rule, strong=strong, clients=c), column)
                for c in CLIENTS
            ]
            _line(axes[side], CLIENTS, values, name, place)
    axes[0].set(xlabel="clients", ylabel="operations per second", ylim=(0, None))
    axes[1].set(xlabel="clients", ylabel="write latency, ms", ylim=(0, None))
    axes[0].legend(frameon=False)
    _keep(figure, "clients")


def _coin(rows: Sequence[Row]) -> None:
    figure, axes = axes_of(2)
    rules = [f"uniform quorum, x = {share:.3g}" for share in SHARES]
    for place, strong, name in ((2, "0", "quorum"), (3, "1", "strong quorum")):
        for side, column in ((0, "read_ms"), (1, "write_ms")):
            values = [mean(rows_of(rows, "coin", rule=r, strong=strong), column) for r in rules]
            _line(axes[side], SHARES, values, name, place)
    for side, what in ((0, "read"), (1, "write")):
        axes[side].axvline(X, color="0.5", linestyle=":", label="uniform, 2/7")
        top = 1.1 * axes[side].get_ylim()[1]
        axes[side].set(xlabel="x", ylabel=f"{what} latency, ms", ylim=(0, top))
    axes[0].legend(frameon=False)
    _keep(figure, "coin")


def _reads_and_retries(rows: Sequence[Row]) -> None:
    figure, (left, right) = axes_of(2)
    base = [
        mean(rows_of(rows, "reads", rule="leaseholder", read_share=share), "throughput")
        for share in READS
    ]
    for place, (name, rule, strong) in enumerate(STRATEGIES[1:], start=1):
        values = [
            mean(rows_of(rows, "reads", rule=rule, strong=strong, read_share=share), "throughput")
            for share in READS
        ]
        _line(left, READS, [a / b for a, b in zip(values, base, strict=True)], name, place)
    left.set(xlabel="share of reads", ylabel="throughput / leaseholder's", ylim=(0.9, None))
    left.legend(frameon=False)
    for place, fraction in enumerate(HOT):
        strong_reads = [
            rows_of(rows, "hot", rule=UNIFORM, strong="1", hot_fraction=fraction, intent_ms=life)
            for life in LIVES
        ]
        values = [100 * (mean(found, "attempts") - 1) for found in strong_reads]
        _line(right, LIVES, values, f"{100 * fraction:.0f} % of the keys hot", place)
    right.set(xlabel="life of intents, ms", ylabel="retries per 100 strong reads", ylim=(0, None))
    right.legend(frameon=False)
    _keep(figure, "reads-and-retries")

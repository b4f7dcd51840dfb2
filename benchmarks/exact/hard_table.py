"""The tables of docs/methods.md that show what :mod:`benchmarks.exact.hard` measured."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import hardware
from benchmarks.harness.result_files import (
    RESULTS,
    Row,
    read_json,
    read_rows,
)

__all__ = ["HEADS", "PUBLISHED", "Published", "report", "tables"]


HEADS = (
    "group",
    "question",
    "limit_s",
    "cpu_s",
    "wall_s",
    "status",
    "gap",
    "gap_2s",
    "nodes",
    "value",
)


@dataclass(frozen=True)
class Published:
    """Optimum of a p-median and seconds of CPLEX with Benders' decomposition; None: not known."""

    optimum: int | None
    seconds: float | None


PUBLISHED: Mapping[tuple[str, int], Published] = MappingProxyType(
    {
        ("rl1304", 5): Published(3_099_073, 2.8),
        ("rl1304", 10): Published(2_134_295, 15.4),
        ("rl1304", 100): Published(None, 2.4),
        ("fl1400", 300): Published(None, None),
        ("vm1748", 10): Published(None, 10.9),
        ("vm1748", 50): Published(None, 2.8),
        ("pcb3038", 5): Published(None, 55.0),
        ("pcb3038", 10): Published(None, 18.0),
    }
)
"""Instance and p -> what is published (Durán-Mateluna, Alès and Elloumi 2023)."""


def _percent(gap: float) -> str:
    return f"{100 * gap:.2g} %"


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def _networks(rows: Iterable[Row]) -> list[Sequence[str]]:
    """Return a line for each network."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["question"].split()[0]].append(row)
    lines: list[Sequence[str]] = []
    for network, found in groups.items():
        times = [float(row["cpu_s"]) for row in found]
        worst = max(found, key=lambda row: float(row["cpu_s"]))
        lines.append(
            (
                network,
                f"{sum(row['status'] == 'optimal' for row in found)} of {len(found)}",
                _percent(max(float(row["gap_2s"]) for row in found)),
                _seconds(statistics.median(times)),
                f"{_seconds(max(times))} ({' '.join(worst['question'].split()[1:])})",
            )
        )
    return lines


def _medians(rows: Iterable[Row]) -> list[Sequence[str]]:
    lines: list[Sequence[str]] = []
    for row in rows:
        name, _, size = row["question"].partition(" p=")
        published = PUBLISHED[name, int(size)].seconds
        lines.append(
            (
                name,
                size,
                f"{float(row['value']):,.0f}",
                row["status"]
                if row["status"] == "optimal"
                else f"gap {_percent(float(row['gap']))}",
                _seconds(float(row["cpu_s"])),
                f"{int(row['nodes']):,}",
                "–" if published is None else f"{published:g} s",
            )
        )
    return lines


def tables(rows: Sequence[Row], runs: Mapping[str, Mapping[str, object]]) -> str:
    """Return the rows as Markdown: networks, p-medians, and what they ran on."""
    parts = []
    placed = [row for row in rows if row["group"] not in ("tsplib", "pmed")]
    if placed:
        heads: tuple[str, ...] = (
            "network, sites", "proven", "largest gap after 2 s", "median", "worst",
        )  # fmt: skip
        parts += [markdown_table(heads, _networks(placed)), ""]
    points = [row for row in rows if row["group"] == "tsplib"]
    if points:
        heads = ("instance", "p", "value", "status", "CPU time", "nodes", "CPLEX, Benders")
        parts += [markdown_table(heads, _medians(points)), ""]
    graphs = [row for row in rows if row["group"] == "pmed"]
    if graphs:
        proven = sum(row["status"] == "optimal" for row in graphs)
        worst = max(graphs, key=lambda row: float(row["cpu_s"]))
        parts += [
            f"OR-Library: {len(graphs)} instances, {proven} proven, "
            f"{_seconds(sum(float(row['cpu_s']) for row in graphs))} together; the worst is "
            f"{worst['question']}, {_seconds(float(worst['cpu_s']))}.",
            "",
        ]
    limits = sorted({float(row["limit_s"]) for row in rows})
    parts += [
        f"Time limit of a question: {', '.join(f'{x:g} s' for x in limits)} of wall time.",
        "",
    ]
    parts.append(hardware(cast("Mapping[str, object]", run["machine"]) for run in runs.values()))
    return "\n".join(parts)


def report() -> dict[str, str]:
    """Return the tables of the page from the kept results."""
    rows, runs = read_rows(RESULTS / "exact_hard.csv"), read_json(RESULTS / "exact_hard.json")
    return {"exact_hard.csv": tables(rows, runs)}

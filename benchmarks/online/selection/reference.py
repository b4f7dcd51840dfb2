"""Reference values for replica selection, by an independent implementation (10 or 5 seeds).

They were measured apart from this project, with another program, for the same setting: 600,000
reads, 50 servers of 4 slots, 150 clients, utilisation 0.7. The values stand in ``reference.csv``.
"""

from __future__ import annotations

import csv
from pathlib import Path

__all__ = ["GRID", "ORIGINAL", "POISSON", "SETTINGS"]

GRID: dict[int, dict[str, dict[str, tuple[float, float]]]] = {}
"""{T: {policy: {statistic: (mean over seeds, deviation)}}}: integer-millisecond arrivals, reads of
the first 2000 ms dropped."""

POISSON: dict[int, dict[str, tuple[float, float | None]]] = {}
"""Exponential arrivals, nothing dropped: means over 10 seeds, and deviations of paired ratios."""

SETTINGS: dict[tuple[int, float, int], tuple[float, ...]] = {}
"""(clients, utilisation, T) -> p99 of ORA, C3, LOR, RR; 5 seeds."""

ORIGINAL: dict[tuple[int, str], tuple[float, ...]] = {}
"""(T, policy) -> mean and p99 of one run of the authors' own simulator (absim, commit c5d5488)."""


def _fill() -> None:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            epoch, policy, value = int(row["epoch_ms"]), row["policy"], float(row["value"])
            deviation = float(row["deviation"]) if row["deviation"] else None
            if row["suite"] == "grid":
                of_policy = GRID.setdefault(epoch, {}).setdefault(policy, {})
                of_policy[row["statistic"]] = value, deviation or 0.0
            elif row["suite"] == "poisson":
                POISSON.setdefault(epoch, {})[f"{policy} {row['statistic']}"] = value, deviation
            elif row["suite"] == "settings":
                key = int(row["clients"]), float(row["utilisation"]), epoch
                SETTINGS[key] = *SETTINGS.get(key, ()), value
            else:
                ORIGINAL[epoch, policy] = *ORIGINAL.get((epoch, policy), ()), value


_fill()

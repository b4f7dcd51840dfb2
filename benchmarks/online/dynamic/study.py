"""Dynamic replication by votes: placements against the optimum, sketches, and Figures 3 to 7.

    python -m benchmarks run online.dynamic [--seeds 5] [--only table recall …]

Writes benchmarks/results/online_dynamic.json, and the series of the figures beside it as CSV. Parts
that are not run keep their rows in the file. Everything is measured in simulated milliseconds of
network time except for processor times, which say so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import read_json, save_csv
from benchmarks.online.dynamic import runs, tables
from benchmarks.online.dynamic.page import tables as page_tables
from benchmarks.online.dynamic.pictures import pictures
from benchmarks.online.experiments import Experiments
from placement.online.dynamic.vote_simulator import SimulationTrace

__all__ = ["STUDY"]

MECHANISM = ROOT / "benchmarks" / "results" / "online_dynamic_mechanism.csv"
LATENCY = ROOT / "benchmarks" / "results" / "online_dynamic_latency.csv"
OTHER_KEYS = ROOT / "benchmarks" / "results" / "online_dynamic_other_keys.csv"
FIGURES = ROOT / "docs" / "figures"


def _mechanism() -> Iterator[dict[str, Any]]:
    seed = 1
    trace = runs.mechanism(seed)
    late = trace.time >= 60
    series = _series(trace)
    _write_series(MECHANISM, list(series), list(series.values()))
    yield {
        "seed": seed,
        "drops": runs.drops(trace),
        "identified": float(trace.identified[late].mean()),
        "identified_best": float(trace.identified_best[late].mean()),
        "recall": float(trace.recall[4:].mean()),
        "active": float(trace.active[late].mean()),
        "least_active": float(trace.active[trace.time >= 12].min()),
        "correct": float(trace.correct[late].mean()),
        "false_negative": float(trace.false_negative[late].mean()),
        "false_negative_peak": float(trace.false_negative[late].max()),
        "false_positive": float(trace.false_positive[late].mean()),
        "refreshes": trace.refreshes,
    }


def _series(trace: SimulationTrace) -> dict[str, Sequence[float]]:
    """Columns of a trace, one row per second."""
    columns = {
        "time": trace.time,
        "identified": trace.identified,
        "identified_best": trace.identified_best,
        "active": trace.active,
        "correct": trace.correct,
        "false_positive": trace.false_positive,
        "false_negative": trace.false_negative,
        "read_ms": trace.read_ms,
    }
    return {name: values[::2].tolist() for name, values in columns.items()}


def _write_series(path: Path, names: Sequence[str], columns: Sequence[Sequence[float]]) -> None:
    rows = zip(*columns, strict=True)
    save_csv(path, names, (["" if np.isnan(v) else f"{v:.5g}" for v in row] for row in rows))


def _latency(
    options: argparse.Namespace, of: Callable[[int], Iterator[dict[str, Any]]], path: Path
) -> Iterator[dict[str, Any]]:
    """Rows of runs of all policies; the series of the first seed at 5 % writes goes to `path`."""
    series: dict[str, Sequence[float]] = {}
    for seed in range(1, min(options.seeds, 2) + 1):
        for row in of(seed):
            found = row.pop("series", None)
            if found is not None and row["write_share"] == 0.05 and seed == 1:
                # Means over 2 s: at 400 requests per second and generator the rest is noise.
                series.setdefault("time", found[0][::4].tolist())
                series[row["policy"]] = np.nanmean(found[1].reshape(-1, 4), axis=1).tolist()
            yield {"seed": seed, **row}
    _write_series(path, list(series), list(series.values()))


def _seeds(options: argparse.Namespace) -> range:
    return range(1, options.seeds + 1)


EXPERIMENTS = Experiments(
    "online_dynamic",
    {
        "table": lambda options: tables.table(_seeds(options)),
        "independent": lambda options: tables.table(_seeds(options), independent=True),
        "scale": lambda options: tables.scale(),
        "recall": lambda options: tables.recall(1),
        "turnover": lambda options: tables.turnover(1),
        "predictions": lambda options: [tables.predictions()],
        "gap": lambda options: tables.gap_factors(_seeds(options)),
        "mechanism": lambda options: _mechanism(),
        "grace": lambda options: runs.grace_sweep(1),
        "latency": lambda options: _latency(options, runs.latency_runs, LATENCY),
        "other_keys": lambda options: _latency(options, runs.other_keys_runs, OTHER_KEYS),
        "protocol": lambda options: runs.protocol_runs(),
    },
    {"seeds": 5},
    packages=("numpy", "highspy", "rbloom"),
    apart=True,
)

STUDY = EXPERIMENTS.study(
    __doc__,
    page="docs/benchmarks/online_dynamic.md",
    report=lambda: page_tables(read_json(EXPERIMENTS.path)),
    draw=lambda: pictures(read_json(EXPERIMENTS.path), MECHANISM, LATENCY, OTHER_KEYS, FIGURES),
    series=[path.name for path in (MECHANISM, LATENCY, OTHER_KEYS)],
)

"""Dynamic replication by votes: placements against the optimum, sketches, and Figures 3 to 7.

    python -m benchmarks run online.dynamic [--seeds 5] [--parts table recall …]

Writes benchmarks/results/online_dynamic.json, and the series of the figures beside it as CSV. Parts
that are not run keep their rows in the file. Everything is measured in simulated milliseconds of
network time except for processor times, which say so.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import read_json, save_csv, save_json
from benchmarks.harness.study import Study
from benchmarks.online.dynamic import runs, tables
from benchmarks.online.dynamic.page import tables as page_tables
from benchmarks.online.dynamic.pictures import pictures
from placement.online.dynamic.vote_simulator import SimulationTrace

__all__ = ["STUDY"]

RESULTS = ROOT / "benchmarks" / "results" / "online_dynamic.json"
MECHANISM = ROOT / "benchmarks" / "results" / "online_dynamic_mechanism.csv"
LATENCY = ROOT / "benchmarks" / "results" / "online_dynamic_latency.csv"
OTHER_KEYS = ROOT / "benchmarks" / "results" / "online_dynamic_other_keys.csv"
FIGURES = ROOT / "docs" / "figures"


def _mechanism(seeds: Sequence[int]) -> list[dict[str, Any]]:
    rows = []
    for seed in seeds[:1]:
        trace = runs.mechanism(seed)
        late = trace.time >= 60
        rows.append(
            {
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
        )
        if seed == seeds[0]:
            series = _series(trace)
            _write_series(MECHANISM, list(series), list(series.values()))
        print(f"mechanism, seed {seed}: recall {rows[-1]['recall']:.3f}", file=sys.stderr)
    return rows


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
    seeds: Sequence[int], of: Callable[[int], Iterator[dict[str, Any]]], path: Path
) -> list[dict[str, Any]]:
    """Rows of runs of all policies; the series of the first seed at 5 % writes goes to `path`."""
    rows: list[dict[str, Any]] = []
    series: dict[str, Sequence[float]] = {}
    for seed in seeds[:2]:
        for row in of(seed):
            found = row.pop("series", None)
            if found is not None and row["write_share"] == 0.05 and seed == seeds[0]:
                # Means over 2 s: at 400 requests per second and generator the rest is noise.
                series.setdefault("time", found[0][::4].tolist())
                series[row["policy"]] = np.nanmean(found[1].reshape(-1, 4), axis=1).tolist()
            rows.append({"seed": seed, **row})
            print(f"latency, seed {seed}: {row['policy']}", file=sys.stderr)
    _write_series(path, list(series), list(series.values()))
    return rows


def _each(of: Callable[[Sequence[int]], Any]) -> Callable[[Sequence[int]], list[dict[str, Any]]]:
    def run(seeds: Sequence[int]) -> list[dict[str, Any]]:
        rows = []
        for row in of(seeds):
            rows.append(row)
            words = {key: value for key, value in row.items() if not isinstance(value, dict)}
            print(json.dumps(words), file=sys.stderr)
        return rows

    return run


PARTS: dict[str, Callable[[Sequence[int]], Any]] = {
    "table": _each(tables.table),
    "independent": _each(lambda seeds: tables.table(seeds, independent=True)),
    "scale": _each(lambda seeds: tables.scale()),
    "recall": _each(lambda seeds: tables.recall(seeds[0])),
    "turnover": _each(lambda seeds: tables.turnover(seeds[0])),
    "predictions": lambda seeds: tables.predictions(),
    "gap": _each(tables.gap_factors),
    "mechanism": _mechanism,
    "grace": _each(lambda seeds: runs.grace_sweep(seeds[0])),
    "latency": lambda seeds: _latency(seeds, runs.latency_runs, LATENCY),
    "other_keys": lambda seeds: _latency(seeds, runs.other_keys_runs, OTHER_KEYS),
    "protocol": _each(lambda seeds: runs.protocol_runs()),
}


def _stored() -> dict[str, Any]:
    """Read the rows that earlier runs have stored."""
    return read_json(RESULTS) or {"benchmark": "online_dynamic", "parts": {}}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=5, help="seeds 1 to this (default 5)")
    parser.add_argument("--parts", nargs="*", choices=list(PARTS), default=list(PARTS))


def _run_study(options: argparse.Namespace) -> int:
    """Run the parts asked for; Ctrl-C keeps the parts that were finished."""
    seeds = range(1, options.seeds + 1)
    code = 0
    for part in options.parts:
        try:
            rows = PARTS[part](seeds)
        except KeyboardInterrupt:
            print(f"stopped in {part}; the parts before it are kept", file=sys.stderr)
            code = 130
            break
        packages = ("numpy", "highspy", "rbloom")
        document = _stored()  # read again: parts may be run side by side
        document["parts"][part] = {
            "seeds": options.seeds,
            "machine": machine.describe(packages),
            "rows": rows,
        }
        save_json(RESULTS, document)
    return code


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=(
        "online_dynamic.json",
        "online_dynamic_mechanism.csv",
        "online_dynamic_latency.csv",
        "online_dynamic_other_keys.csv",
    ),
    page="docs/benchmarks/online_dynamic.md",
    report=lambda: page_tables(_stored()),
    draw=lambda: pictures(_stored(), MECHANISM, LATENCY, OTHER_KEYS, FIGURES),
)

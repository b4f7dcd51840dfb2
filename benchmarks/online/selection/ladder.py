"""Replica selection: policies against proven bounds, on windows and at full size.

    python -m benchmarks run online.selection.ladder [--windows 20] [--seconds 20]

Full size: the published setting for 2 s (140,000 reads), one path per epoch length; the fluid
program, the bound that its duals prove, and every policy on the same path. Windows: 15 reads of a
smaller, warm system; CP-SAT optima in any order and first come, first served, the price bound, and
every policy. Writes benchmarks/results/online_selection_ladder.json after every part.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import save_json
from benchmarks.harness.study import Study
from formulations.online.selection.linear_bounds import fluid_bound, time_indexed_bound
from formulations.online.selection.optimal_choice import solve
from heuristics.online.selection import (
    C3,
    EarliestCompletion,
    LeastOutstanding,
    Oracle,
    Policy,
    RoundRobin,
    play,
    run,
)
from placement.online.selection import ServerCluster, cut, draw

__all__ = ["RESULTS", "STUDY", "full_size", "window"]

RESULTS = ROOT / "benchmarks" / "results" / "online_selection_ladder.json"
EPOCHS = (10, 50, 100, 200, 300, 500)
READS, SEED, BIN_MS = 140_000, 1, 5
POLICIES: tuple[Policy, ...] = (
    EarliestCompletion(future=True),
    EarliestCompletion(),
    Oracle(),
    C3(limiter=None),
    LeastOutstanding(),
    RoundRobin(limiter=None),
)
SMALL = ServerCluster(5, 1, 3, 3, utilisation=0.8, epoch_ms=50.0, requests=400)
FIRST, COUNT = 300, 15


def full_size(epoch_ms: float) -> dict[str, object]:
    """Bound one path of the published setting; run every policy on it, with and without copies."""
    path = draw(ServerCluster(epoch_ms=epoch_ms, requests=READS), SEED).on_grid()
    plain = dataclasses.replace(path, shadowed=np.zeros(path.size, dtype=bool))
    floor = fluid_bound(cut(path, (), 0, path.size), width=BIN_MS * 128)
    row: dict[str, object] = {
        "epoch_ms": epoch_ms,
        "reads": READS,
        "seed": SEED,
        "fluid": floor.value,
        "bound": floor.bound,
        "wall_s": round(floor.wall_s, 1),
    }
    for policy in POLICIES:
        row[policy.name] = run(path, policy).latencies().mean
        row[policy.name + ", no copies"] = run(plain, policy).latencies().mean
    return row


def window(seed: int, seconds: float) -> dict[str, object]:
    """Solve one window of a warm run exactly, bound it, and let every policy decide it."""
    path = draw(SMALL, seed).on_grid()
    cell = cut(path, run(path, C3(limiter=None)).server, FIRST, COUNT)
    free = solve(cell, "any", seconds=seconds)
    queued = solve(cell, "fcfs", seconds=seconds)
    priced = time_indexed_bound(cell, width=32)
    row: dict[str, object] = {
        "seed": seed,
        "time-indexed": priced.dual,
        "prices": priced.bound,
        "any": free.value,
        "any bound": free.bound,
        "any proven": free.proven,
        "fcfs": queued.value,
        "fcfs bound": queued.bound,
        "fcfs proven": queued.proven,
        "any wall_s": round(free.wall_s, 1),
        "fcfs wall_s": round(queued.wall_s, 1),
    }
    for policy in POLICIES:
        row[policy.name] = float(play(cell, policy).mean())
    return row


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each CP-SAT search")
    parser.add_argument("--output", type=Path, default=RESULTS)


def _run_study(options: argparse.Namespace) -> int:
    """Run the two parts of the study; Ctrl-C keeps the rows so far."""
    document: dict[str, object] = {"benchmark": "online_selection_ladder"}
    full: list[dict[str, object]] = []
    small: list[dict[str, object]] = []
    document |= {"seconds": options.seconds, "full size": full, "windows": small}
    began = time.process_time()
    stopped = False

    def save() -> None:
        document["cpu_s"] = round(time.process_time() - began, 1)
        document["machine"] = machine.describe(["numpy", "highspy", "ortools"])
        save_json(options.output, document)

    try:
        for epoch in EPOCHS:
            full.append(full_size(float(epoch)))
            print(f"T = {epoch} ms: bound {full[-1]['bound']:.3f} ms", file=sys.stderr)
            save()
        for seed in range(options.windows):
            small.append(window(seed, options.seconds))
            print(f"window {seed}: {small[-1]['any']:.3f} ms", file=sys.stderr)
            save()
    except KeyboardInterrupt:
        stopped = True
        print("stopped; what there is so far is kept", file=sys.stderr)
        save()
    return 130 if stopped else 0


STUDY = Study(__doc__, _add_arguments, _run_study, results=("online_selection_ladder.json",))

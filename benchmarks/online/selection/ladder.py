"""Replica selection: policies against proven bounds, on windows and at full size.

    python -m benchmarks run online.selection.ladder [--windows 20] [--seconds 20]

Full size: the published setting for 2 s (140,000 reads), one path per epoch length; the fluid
program, the bound that its duals prove, and every policy on the same path. Windows: 15 reads of a
smaller, warm system; CP-SAT optima in any order and first come, first served, and every policy.
Writes benchmarks/results/online_selection_ladder.json after every part.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator

import numpy as np

from benchmarks.online.experiments import Experiments
from formulations.online.selection.linear_bounds import fluid_bound
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

__all__ = ["EXPERIMENTS", "STUDY", "full_size", "window"]

EPOCHS = (10.0, 50.0, 100.0, 200.0, 300.0, 500.0)
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
    row: dict[str, object] = {
        "seed": seed,
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


def _windows(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    return (window(seed, options.seconds) for seed in range(options.windows))


EXPERIMENTS = Experiments(
    "online_selection_ladder",
    {"full size": lambda options: map(full_size, EPOCHS), "windows": _windows},
    {"windows": 20, "seconds": 20.0},
    packages=("numpy", "highspy", "ortools"),
)

STUDY = EXPERIMENTS.study(__doc__)

"""Replica selection in a closed loop: throughput, the load step, oscillation, duplicates.

    python -m benchmarks run online.selection.closed_loop [--seeds 3] [--operations 60000]

15 servers that are also the 15 coordinators, three replicas, 120 generators, as in the experiments
of the C3 paper on EC2; the servers are those of its simulation. Three mixes of reads and updates;
the load step, where 40 update-heavy generators join 80 read-heavy ones; the reads of the most
loaded server in bins of 100 ms; duplicates after the 95th percentile, also with arrivals at a fixed
rate; and throughput against the fluctuation of the speeds. Writes
benchmarks/results/online_selection_closed_loop.json.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator

import numpy as np

from benchmarks.online.experiments import Experiments
from heuristics.online.selection import C3, DynamicSnitch, Hedged, LeastOutstanding, Policy, run
from placement.online.selection import (
    LoadGenerators,
    SelectionRun,
    ServerCluster,
    busiest_load,
    draw,
    time_line,
)

__all__ = ["BIN_MS", "EXPERIMENTS", "STUDY", "arriving", "load_step", "mixes", "speeds"]

MIXES = {"read-only": 0.0, "read-heavy": 0.05, "update-heavy": 0.5}
GENERATORS, BIN_MS, WARM_MS = 120, 100.0, 500.0
UPDATE_WORK = 0.25
"""Mean work of an update at a replica, in reads: an append to a log and a table in memory."""

DS, LOR = DynamicSnitch(), LeastOutstanding()
PLAIN_C3 = C3(limiter=None, name="C3, no limiter")
POLICIES: tuple[Policy, ...] = (DS, Hedged(DS), LOR, Hedged(LOR), C3(), PLAIN_C3)


def _cluster(operations: int, *closed: LoadGenerators, utilisation: float = 0.7) -> ServerCluster:
    return ServerCluster(
        15, 4, 3, 15, requests=operations, closed=closed, update_work=UPDATE_WORK,
        utilisation=utilisation,
    )  # fmt: skip


def _row(outcome: SelectionRun, **names: object) -> dict[str, object]:
    found, load = outcome.latencies(WARM_MS), busiest_load(outcome, BIN_MS)[5:]
    return {
        **names,
        "policy": outcome.policy,
        "throughput": outcome.throughput,
        "mean": found.mean,
        "p50": found.p50,
        "p95": found.p95,
        "p99": found.p99,
        "p999": found.p999,
        "hedged": outcome.hedged / outcome.sample.size,
        "busiest": {
            "mean": float(load.mean()),
            "p50": float(np.percentile(load, 50)),
            "p99": float(np.percentile(load, 99)),
            "max": int(load.max()),
            "variation": float(load.std() / load.mean()),
        },
    }


def mixes(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield the throughput comparison: every mix, seed and policy."""
    for mix, share in MIXES.items():
        for seed in range(1, options.seeds + 1):
            path = draw(_cluster(options.operations, LoadGenerators(GENERATORS, share)), seed)
            for policy in POLICIES:
                yield _row(run(path, policy), mix=mix, seed=seed)


def load_step(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield the load step with its time line: 40 update-heavy generators join in the middle."""
    joins = options.operations / 25.0  # ms; about half of the run
    for seed in range(1, options.seeds + 1):
        path = draw(
            _cluster(options.operations, LoadGenerators(80, 0.05), LoadGenerators(40, 0.5, joins)),
            seed,
        )
        for policy in POLICIES:
            outcome = run(path, policy)
            line = time_line(outcome, BIN_MS)
            before = (line.start >= WARM_MS) & (line.start < joins)
            after = (line.start >= joins) & (line.start + 2 * BIN_MS < outcome.end_ms)
            row = _row(outcome, seed=seed, joins_ms=joins)
            row["p99 before"] = float(np.nanmedian(line.p99[before]))
            row["p99 after"] = float(np.nanmedian(line.p99[after]))
            row["worst bin after"] = float(np.nanmax(line.p99[after]))
            if seed == 1:
                row["median"] = [round(value, 2) for value in line.median.tolist()]
                row["p99 line"] = [round(value, 2) for value in line.p99.tolist()]
            yield row


def arriving(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield duplicates where reads arrive at a fixed rate, at three utilisations."""
    for load in (0.3, 0.5, 0.7):
        for seed in range(1, options.seeds + 1):
            path = draw(_cluster(options.operations, utilisation=load), seed)
            for policy in POLICIES:
                yield _row(run(path, policy), utilisation=load, seed=seed)


def speeds(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield throughput against how much faster a fast server is: what the gain over DS rests on."""
    for factor in (1.0, 1.5, 2.0, 3.0, 5.0):
        cluster = dataclasses.replace(
            _cluster(options.operations, LoadGenerators(GENERATORS, 0.05)), fluctuation=factor
        )
        for seed in range(1, options.seeds + 1):
            path = draw(cluster, seed)
            for policy in (DS, C3(), PLAIN_C3):
                yield _row(run(path, policy), fluctuation=factor, seed=seed)


EXPERIMENTS = Experiments(
    "online_selection_closed_loop",
    {"mixes": mixes, "load step": load_step, "arriving": arriving, "speeds": speeds},
    {"seeds": 3, "operations": 60_000},
)

STUDY = EXPERIMENTS.study(__doc__)

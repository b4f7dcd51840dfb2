"""Leaseholder or majority: what sets the write latency, reads across elections.

    python -m benchmarks run online.reads.claims [--seeds 2] [--operations 15000]

Writes benchmarks/results/online_reads_claims.json: the write latency against the work of a write at
the leaseholder, its followers and x; reads while leaders crash or are cut off, with all
assumptions and without each. One minute of processor time.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from typing import Any

from benchmarks.online.experiments import Experiments
from heuristics.online.reads import LeaseHolder, UniformQuorum
from placement.online.reads import RaftCluster, ReadRule, ReadWorkload, simulate
from placement.online.reads.elections import ElectionSettings, ReadPath, simulate_elections

__all__ = ["EXPERIMENTS", "STUDY", "VARIANTS"]

X = 2 / 7
VISITS = (0.5, 0.25, 0.1, 0.05)
CLIENTS = (70, 150, 300)
AFTER_MS = 300.0

_BUSY = ElectionSettings(
    3, down_ms=5.0, crash_any=True, reads=1000.0, crashes=20.0, heartbeat_ms=80.0, writes=40.0,
    cuts=3.0, cut_ms=200.0, duration_ms=4000.0,
)  # fmt: skip
_FAULTS = ElectionSettings(cuts=0.5)
VARIANTS: dict[str, ElectionSettings] = {
    **{str(path): dataclasses.replace(_FAULTS, path=path) for path in ReadPath},
    "leaseholder, without a lease": dataclasses.replace(_FAULTS, lease=False),
    "leaseholder, no entry of its own term": dataclasses.replace(_FAULTS, own_entry=False),
    "leaseholder, clocks off by up to 80 %": dataclasses.replace(_FAULTS, drift=0.8),
    "leaseholder, many restarts": _BUSY,
    "leaseholder, many restarts, voting at once": dataclasses.replace(_BUSY, patient=False),
    "leaseholder, many restarts, nothing kept": dataclasses.replace(_BUSY, persist=False),
}
"""Name of each row -> its settings."""


def write_latency(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The leaseholder's work of a write, from more than a follower's to less."""
    for visit in VISITS:
        for clients in CLIENTS:
            cluster = RaftCluster(write_ms=visit, gateway_ms=0.7)
            workload = ReadWorkload(clients=clients)
            for name, rule in (("leaseholder", LeaseHolder()), ("quorum", UniformQuorum(X))):
                yield {
                    "visit_ms": visit,
                    "clients": clients,
                    "rule": name,
                    **_closed(cluster, workload, rule, options),
                }


def _closed(
    cluster: RaftCluster, workload: ReadWorkload, rule: ReadRule, options: argparse.Namespace
) -> dict[str, float]:
    seeds = options.seeds
    runs = [
        simulate(cluster, workload, rule, operations=options.operations, seed=seed)
        for seed in range(seeds)
    ]
    return {
        "throughput": sum(run.throughput for run in runs) / seeds,
        "read_ms": sum(run.read_latency.mean for run in runs) / seeds,
        "write_ms": sum(run.write_latency.mean for run in runs) / seeds,
        "busiest": sum(max(run.utilisation) for run in runs) / seeds,
        "leader": sum(run.utilisation[cluster.leader] for run in runs) / seeds,
    }


def elections(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Ten runs of each variant for each seed."""
    for name, settings in VARIANTS.items():
        runs = [simulate_elections(settings, seed) for seed in range(10 * options.seeds)]
        found = [run.violations for run in runs]
        row: dict[str, Any] = {
            "variant": name,
            "runs": len(runs),
            "failures": sum(len(run.failures) for run in runs),
            "terms": sum(run.terms for run in runs),
            "reads": sum(each.reads for each in found),
            "stale": sum(each.stale for each in found),
            "other": sum(each.total - each.stale for each in found),
            "runs_with_any": sum(not each.linearizable for each in found),
            "unanswered": sum(run.unanswered for run in runs),
        }
        for side, reads in (("read", True), ("write", False)):
            every = [run.latency(reads=reads) for run in runs]
            after = [run.latency(reads=reads, after_ms=AFTER_MS) for run in runs]
            row |= {
                f"{side}_ms": _mean(every),
                f"{side}_p50": sum(each.p50 for each in every) / len(every),
                f"{side}_after_ms": _mean(after),
            }
        yield row


def _mean(latencies: list[Any]) -> float:
    """Mean over all operations of several runs."""
    many = sum(each.n for each in latencies)
    return float(sum(each.n * each.mean for each in latencies if each.n) / many)


EXPERIMENTS = Experiments(
    "online_reads_claims",
    {"write latency": write_latency, "elections": elections},
    {"seeds": 2, "operations": 15_000},
)

STUDY = EXPERIMENTS.study(__doc__)

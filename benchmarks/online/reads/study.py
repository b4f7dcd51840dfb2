"""Leaseholder or majority: the figures of the slides on common random numbers, and the optimum.

    python -m benchmarks run online.reads [--only SUITE …] [--operations N] [--seeds N]

Writes benchmarks/results/online_reads.csv, one row per run, and the machine beside it (.json);
Ctrl-C keeps the rows so far. The report compares our results with those of the source.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import Row, read_rows, save_csv, save_json
from benchmarks.harness.study import Study
from formulations.online.reads import solve_compact
from heuristics.online.reads import (
    C3Majority,
    LeaseHolder,
    LeastUtilised,
    Local,
    NearestMajority,
    TwoChoiceMajority,
    UniformQuorum,
)
from placement.online.reads import (
    FromStrategy,
    RaftCluster,
    ReadGoal,
    ReadProblem,
    ReadRule,
    ReadWorkload,
    Visibility,
    simulate,
)

__all__ = ["COLUMNS", "RESULTS", "STUDY", "SUITES", "WORLDS", "RuleRun", "cells"]

RESULTS = ROOT / "benchmarks" / "results" / "online_reads.csv"
X = 2 / 7
CLIENTS = (10, 30, 50, 70, 100)
READS = (0.3, 0.5, 0.7, 0.9, 0.95, 0.99)
SHARES = (0.0, 0.1, 0.2, X, 0.4, 0.5)
HOT = (0.01, 0.03, 0.1)
LIVES = (0.0, 100.0, 500.0)
LAGS = (0.0, 1.0, 5.0)
GATEWAYS = (0.9, 0.5, 0.3)
FOUR: tuple[tuple[ReadRule, bool], ...] = (
    (LeaseHolder(), False),
    (Local(), False),
    (UniformQuorum(X), False),
    (UniformQuorum(X), True),
)
SKEWED = (0.1, 0.4, 0.3, 0.1, 0.1)
LINE = np.array([0.0, 0.5, 1.0, 3.0, 4.0])
WORLDS = {
    "one room": RaftCluster(),
    "a line": RaftCluster(rtt=np.abs(LINE[:, None] - LINE) + 0.2),
}
"""For the comparison of rules: gateways carry 10, 40, 30, 10, 10 % of the load, node 0 leads."""

COLUMNS = (
    "suite",
    "world",
    "rule",
    "strong",
    "clients",
    "read_share",
    "hot_fraction",
    "visibility",
    "apply_lag_ms",
    "intent_ms",
    "gateway_ms",
    "seed",
    "operations",
    "throughput",
    "read_ms",
    "read_p99_ms",
    "write_ms",
    "write_p99_ms",
    "attempts",
    "reads",
    "stale",
    "backwards",
    "cpu_s",
)


@dataclass(frozen=True, slots=True)
class RuleRun:
    """Run to be made."""

    suite: str
    rule: ReadRule
    strong: bool = False
    cluster: RaftCluster = field(default_factory=RaftCluster)
    workload: ReadWorkload = field(default_factory=ReadWorkload)
    world: str = "one room"

    def run(self, seed: int, operations: int) -> Row:
        """Simulate and return the row."""
        began = time.process_time()
        found = simulate(
            self.cluster,
            self.workload,
            self.rule,
            strong=self.strong,
            operations=operations,
            seed=seed,
        )
        wrong = found.violations
        row: dict[str, object] = {
            "suite": self.suite,
            "world": self.world,
            "rule": self.rule.name,
            "strong": int(self.strong),
            "clients": self.workload.clients,
            "read_share": self.workload.read_share,
            "hot_fraction": self.workload.hot_fraction,
            "visibility": self.cluster.visibility,
            "apply_lag_ms": self.cluster.apply_lag_ms,
            "intent_ms": self.cluster.intent_ms,
            "gateway_ms": self.cluster.gateway_ms,
            "seed": seed,
            "operations": operations,
            "throughput": f"{found.throughput:.1f}",
            "read_ms": f"{found.read_latency.mean:.4f}",
            "read_p99_ms": f"{found.read_latency.p99:.4f}",
            "write_ms": f"{found.write_latency.mean:.4f}",
            "write_p99_ms": f"{found.write_latency.p99:.4f}",
            "attempts": f"{found.mean_attempts:.5f}",
            "reads": wrong.reads,
            "stale": wrong.stale,
            "backwards": wrong.backwards,
            "cpu_s": f"{time.process_time() - began:.2f}",
        }
        return {column: str(row[column]) for column in COLUMNS}


def clients() -> Iterator[RuleRun]:
    """Scaling clients, uniform 95/5."""
    for count in CLIENTS:
        for rule, strong in FOUR:
            yield RuleRun("clients", rule, strong, workload=ReadWorkload(clients=count))


def reads() -> Iterator[RuleRun]:
    """Varying the share of reads, 70 clients."""
    for share in READS:
        for rule, strong in FOUR:
            yield RuleRun("reads", rule, strong, workload=ReadWorkload(read_share=share))


def coin() -> Iterator[RuleRun]:
    """Varying the share x of leaseholder reads, 70 clients, 95/5."""
    for share in SHARES:
        for strong in (False, True):
            yield RuleRun("coin", UniformQuorum(share), strong)


def hot() -> Iterator[RuleRun]:
    """80 % of the requests on few keys; followers see the log, so that strong reads are right."""
    for fraction in HOT:
        workload = ReadWorkload(hot_share=0.8, hot_fraction=fraction)
        for rule, strong in FOUR:
            for life in LIVES if strong else (0.0,):
                cluster = RaftCluster(visibility=Visibility.LOG, intent_ms=life)
                yield RuleRun("hot", rule, strong, cluster, workload)


def consistency() -> Iterator[RuleRun]:
    """Count the violations that clients see on 200 contended keys, 30 clients, 80/20."""
    workload = ReadWorkload(clients=30, keys=200, read_share=0.8)
    for visibility in Visibility:
        for lag in LAGS:
            for rule, strong in FOUR:
                cluster = RaftCluster(visibility=visibility, apply_lag_ms=lag)
                yield RuleRun("consistency", rule, strong, cluster, workload)


def gateway() -> Iterator[RuleRun]:
    """The gateway's work as the free parameter, 70 clients, 95/5."""
    for work in GATEWAYS:
        for rule, strong in FOUR:
            yield RuleRun("gateway", rule, strong, RaftCluster(gateway_ms=work))


def rules() -> Iterator[RuleRun]:
    """Ways to choose the majority, under load and not, against optimal strategies."""
    for world, cluster in WORLDS.items():
        for count in (20, 70):
            workload = ReadWorkload(clients=count, gateways=SKEWED)
            for rule in contestants(cluster, workload):
                yield RuleRun("rules", rule, False, cluster, workload, world)


def question(
    cluster: RaftCluster, workload: ReadWorkload, shares: Sequence[float], rate: float
) -> ReadProblem:
    """The reads of a cluster as a problem, at `rate` operations per ms.

    Everything that is no read is base load: the gateways' work, which follows `shares`, and writes.
    """
    part = np.asarray(shares, dtype=np.float64) / np.sum(shares)
    follower = np.full(cluster.nodes, cluster.append_ms)
    follower[cluster.leader] = 4 * cluster.write_ms
    base = cluster.gateway_ms * part + (1 - workload.read_share) * follower
    return ReadProblem(
        cluster.rtt,
        rate * workload.read_share * part,
        cluster.leader,
        capacity=np.full(cluster.nodes, cluster.cores / cluster.read_ms),
        base=rate * base / cluster.cores,
    )


def contestants(cluster: RaftCluster, workload: ReadWorkload) -> Iterator[ReadRule]:
    """The rules, and the proven optimum for the load that the cluster reaches at least."""
    yield LeaseHolder()
    yield Local()
    for share in (0.0, X):
        yield UniformQuorum(share)
        yield NearestMajority(share, rtt=cluster.rtt)
        yield LeastUtilised(share)
        yield TwoChoiceMajority(share)
        yield C3Majority(share)
    shares = workload.gateway_shares(cluster.nodes)
    rate = min(14.0, 0.3 * workload.clients)  # per ms: about what the better rules reach here
    whole = question(cluster, workload, shares.tolist(), rate)

    plan = solve_compact(whole, ReadGoal.least_load())
    assert plan.strategy is not None  # no limits: there is always one
    yield FromStrategy(plan.strategy, "optimum: least load")


SUITES = {
    "clients": clients,
    "reads": reads,
    "coin": coin,
    "hot": hot,
    "consistency": consistency,
    "gateway": gateway,
    "rules": rules,
}


def cells(only: Sequence[str]) -> list[RuleRun]:
    """All cells of the named suites, or of all."""
    return [cell for name in only or SUITES for cell in SUITES[name]()]


def run(only: Sequence[str], operations: int, seeds: int) -> int:
    """Simulate; suites that are not run keep the rows they have."""
    planned = cells(only)
    kept = read_rows(RESULTS) if only else []
    rows = [row for row in kept if row["suite"] not in only]
    began = time.perf_counter()
    total = len(planned) * seeds
    try:
        for number, (cell, seed) in enumerate((c, s) for c in planned for s in range(seeds)):
            rows.append(cell.run(seed, operations))
            print(
                f"{number + 1}/{total} · {time.perf_counter() - began:.0f} s · {cell.suite} · "
                f"{cell.rule.name}",
                file=sys.stderr,
            )
    except KeyboardInterrupt:
        print("interrupted: what there is is written", file=sys.stderr)
    save_csv(RESULTS, COLUMNS, ([row[column] for column in COLUMNS] for row in rows))
    head = {"machine": machine.describe(), "operations": operations, "seeds": seeds}
    save_json(RESULTS.with_suffix(".json"), head)
    return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="*", default=[], choices=sorted(SUITES))
    parser.add_argument("--operations", type=int, default=25_000)
    parser.add_argument("--seeds", type=int, default=2)


def _tables() -> dict[str, str]:
    from benchmarks.online.reads.page import tables

    return tables()


def _draw() -> None:
    from benchmarks.online.reads.page import draw_figures

    draw_figures()


STUDY = Study(
    __doc__,
    _add_arguments,
    lambda options: run(options.only, options.operations, options.seeds),
    results=("online_reads.csv", "online_reads.json"),
    page="docs/benchmarks/online-reads.md",
    report=_tables,
    draw=_draw,
)

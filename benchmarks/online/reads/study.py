"""Leaseholder or majority: the figures of the slides on common random numbers, and the optimum.

    python -m benchmarks run online.reads [--only SUITE …] [--operations N] [--seeds N]

Writes benchmarks/results/online_reads.csv, one row per run, and the machine beside it (.json);
Ctrl-C keeps the rows so far. The report compares our results with those of the source.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.harness.result_files import Row
from benchmarks.online.experiments import Experiments
from formulations.online.reads import solve_compact
from heuristics.online.reads import LeaseHolder, Local, UniformQuorum
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

__all__ = ["COLUMNS", "EXPERIMENTS", "STUDY", "SUITES", "WORLDS", "RuleRun"]

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

    rule: ReadRule
    strong: bool = False
    cluster: RaftCluster = field(default_factory=RaftCluster)
    workload: ReadWorkload = field(default_factory=ReadWorkload)
    world: str = "one room"

    def run(self, seed: int, operations: int) -> Row:
        """Simulate and return the row."""
        began = time.process_time()
        cluster, workload = self.cluster, self.workload
        found = simulate(
            cluster, workload, self.rule, strong=self.strong, operations=operations, seed=seed
        )
        wrong, read, write = found.violations, found.read_latency, found.write_latency
        return {
            "world": self.world,
            "rule": self.rule.name,
            "strong": int(self.strong),
            "clients": workload.clients,
            "read_share": workload.read_share,
            "hot_fraction": workload.hot_fraction,
            "visibility": cluster.visibility,
            "apply_lag_ms": cluster.apply_lag_ms,
            "intent_ms": cluster.intent_ms,
            "gateway_ms": cluster.gateway_ms,
            "seed": seed,
            "operations": operations,
            "throughput": f"{found.throughput:.1f}",
            "read_ms": f"{read.mean:.4f}",
            "read_p99_ms": f"{read.p99:.4f}",
            "write_ms": f"{write.mean:.4f}",
            "write_p99_ms": f"{write.p99:.4f}",
            "attempts": f"{found.mean_attempts:.5f}",
            "reads": wrong.reads,
            "stale": wrong.stale,
            "backwards": wrong.backwards,
            "cpu_s": f"{time.process_time() - began:.2f}",
        }


def clients() -> Iterator[RuleRun]:
    """Scaling clients, uniform 95/5."""
    for count in CLIENTS:
        for rule, strong in FOUR:
            yield RuleRun(rule, strong, workload=ReadWorkload(clients=count))


def reads() -> Iterator[RuleRun]:
    """Varying the share of reads, 70 clients."""
    for share in READS:
        for rule, strong in FOUR:
            yield RuleRun(rule, strong, workload=ReadWorkload(read_share=share))


def coin() -> Iterator[RuleRun]:
    """Varying the share x of leaseholder reads, 70 clients, 95/5."""
    for share in SHARES:
        for strong in (False, True):
            yield RuleRun(UniformQuorum(share), strong)


def hot() -> Iterator[RuleRun]:
    """80 % of the requests on few keys; followers see the log, so that strong reads are right."""
    for fraction in HOT:
        workload = ReadWorkload(hot_share=0.8, hot_fraction=fraction)
        for rule, strong in FOUR:
            for life in LIVES if strong else (0.0,):
                cluster = RaftCluster(visibility=Visibility.LOG, intent_ms=life)
                yield RuleRun(rule, strong, cluster, workload)


def consistency() -> Iterator[RuleRun]:
    """Count the violations that clients see on 200 contended keys, 30 clients, 80/20."""
    workload = ReadWorkload(clients=30, keys=200, read_share=0.8)
    for visibility in Visibility:
        for lag in LAGS:
            for rule, strong in FOUR:
                cluster = RaftCluster(visibility=visibility, apply_lag_ms=lag)
                yield RuleRun(rule, strong, cluster, workload)


def gateway() -> Iterator[RuleRun]:
    """The gateway's work as the free parameter, 70 clients, 95/5."""
    for work in GATEWAYS:
        for rule, strong in FOUR:
            yield RuleRun(rule, strong, RaftCluster(gateway_ms=work))


def rules() -> Iterator[RuleRun]:
    """The rules of the paper where gateways differ, under load and not, against the optimum."""
    for world, cluster in WORLDS.items():
        for count in (20, 70):
            workload = ReadWorkload(clients=count, gateways=SKEWED)
            for rule in contestants(cluster, workload):
                yield RuleRun(rule, False, cluster, workload, world)


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
    yield UniformQuorum(0.0)
    yield UniformQuorum(X)
    shares = workload.gateway_shares(cluster.nodes)
    rate = min(14.0, 0.3 * workload.clients)  # per ms: about what the better rules reach here
    whole = question(cluster, workload, shares.tolist(), rate)

    plan = solve_compact(whole, ReadGoal.least_load())
    assert plan.strategy is not None  # no limits: there is always one
    yield FromStrategy(plan.strategy, "optimum: least load")


SUITES = {each.__name__: each for each in (clients, reads, coin, hot, consistency, gateway, rules)}


def _runs(suite: str, options: argparse.Namespace) -> Iterator[Row]:
    for cell in SUITES[suite]():
        for seed in range(options.seeds):
            yield cell.run(seed, options.operations)


EXPERIMENTS = Experiments(
    "online_reads",
    {suite: functools.partial(_runs, suite) for suite in SUITES},
    {"operations": 25_000, "seeds": 2},
    COLUMNS,
)


def _tables() -> dict[str, str]:
    from benchmarks.online.reads.page import tables

    return tables()


def _draw() -> None:
    from benchmarks.online.reads.page import draw_figures

    draw_figures()


STUDY = EXPERIMENTS.study(
    __doc__, page="docs/benchmarks/online-reads.md", report=_tables, draw=_draw
)

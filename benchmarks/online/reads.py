"""Leaseholder or majority: the figures of the slides on common random numbers, and the optimum.

    python -m benchmarks run online.reads [--only SUITE …] [--operations N] [--seeds N]
    python -m benchmarks run online.reads.claims [--seeds 2] [--operations 15000]

``online.reads`` writes benchmarks/results/online_reads.csv, one row per run. ``claims`` writes
online_reads_claims.json: what sets the write latency (the work of a write at the leaseholder, its
followers and x), and reads while leaders crash or are cut off, with all assumptions and without
each. Ctrl-C keeps the rows so far.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.harness.experiments import Experiments
from benchmarks.harness.result_files import Row
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
from placement.online.reads.elections import ElectionSettings, ReadPath, simulate_elections

X = 2 / 7
CLIENTS = (10, 30, 50, 70, 100)
READS = (0.3, 0.5, 0.7, 0.9, 0.95, 0.99)
SHARES = (0.0, 0.1, 0.2, X, 0.4, 0.5)
HOT = (0.01, 0.03, 0.1)
LIVES = (0.0, 100.0, 500.0)
LAGS = (0.0, 1.0, 5.0)
GATEWAYS = (0.9, 0.5, 0.3)
_FOUR: tuple[tuple[ReadRule, bool], ...] = (
    (LeaseHolder(), False),
    (Local(), False),
    (UniformQuorum(X), False),
    (UniformQuorum(X), True),
)
_SKEWED = (0.1, 0.4, 0.3, 0.1, 0.1)
_LINE = np.array([0.0, 0.5, 1.0, 3.0, 4.0])
WORLDS = {
    "one room": RaftCluster(),
    "a line": RaftCluster(rtt=np.abs(_LINE[:, None] - _LINE) + 0.2),
}
"""For the comparison of rules: gateways carry 10, 40, 30, 10, 10 % of the load, node 0 leads."""

COLUMNS = (
    "suite", "world", "rule", "strong", "clients", "read_share", "hot_fraction", "visibility",
    "apply_lag_ms", "intent_ms", "gateway_ms", "seed", "operations", "throughput", "read_ms",
    "read_p99_ms", "write_ms", "write_p99_ms", "attempts", "reads", "stale", "backwards", "cpu_s",
)  # fmt: skip


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
        row = (
            self.world, self.rule.name, int(self.strong), workload.clients, workload.read_share,
            workload.hot_fraction, cluster.visibility, cluster.apply_lag_ms, cluster.intent_ms,
            cluster.gateway_ms, seed, operations, f"{found.throughput:.1f}", f"{read.mean:.4f}",
            f"{read.p99:.4f}", f"{write.mean:.4f}", f"{write.p99:.4f}",
            f"{found.mean_attempts:.5f}", wrong.reads, wrong.stale, wrong.backwards,
            f"{time.process_time() - began:.2f}",
        )  # fmt: skip
        return dict(zip(COLUMNS[1:], row, strict=True))


def clients() -> Iterator[RuleRun]:
    """Scaling clients, uniform 95/5."""
    for count, (rule, strong) in itertools.product(CLIENTS, _FOUR):
        yield RuleRun(rule, strong, workload=ReadWorkload(clients=count))


def reads() -> Iterator[RuleRun]:
    """Varying the share of reads, 70 clients."""
    for share, (rule, strong) in itertools.product(READS, _FOUR):
        yield RuleRun(rule, strong, workload=ReadWorkload(read_share=share))


def coin() -> Iterator[RuleRun]:
    """Varying the share x of leaseholder reads, 70 clients, 95/5."""
    for share, strong in itertools.product(SHARES, (False, True)):
        yield RuleRun(UniformQuorum(share), strong)


def hot() -> Iterator[RuleRun]:
    """80 % of the requests on few keys; followers see the log, so that strong reads are right."""
    for fraction, (rule, strong) in itertools.product(HOT, _FOUR):
        workload = ReadWorkload(hot_share=0.8, hot_fraction=fraction)
        for life in LIVES if strong else (0.0,):
            cluster = RaftCluster(visibility=Visibility.LOG, intent_ms=life)
            yield RuleRun(rule, strong, cluster, workload)


def consistency() -> Iterator[RuleRun]:
    """Count the violations that clients see on 200 contended keys, 30 clients, 80/20."""
    workload = ReadWorkload(clients=30, keys=200, read_share=0.8)
    for visibility, lag, (rule, strong) in itertools.product(Visibility, LAGS, _FOUR):
        cluster = RaftCluster(visibility=visibility, apply_lag_ms=lag)
        yield RuleRun(rule, strong, cluster, workload)


def gateway() -> Iterator[RuleRun]:
    """The gateway's work as the free parameter, 70 clients, 95/5."""
    for work, (rule, strong) in itertools.product(GATEWAYS, _FOUR):
        yield RuleRun(rule, strong, RaftCluster(gateway_ms=work))


def rules() -> Iterator[RuleRun]:
    """The rules of the paper where gateways differ, under load and not, against the optimum."""
    for world, cluster in WORLDS.items():
        for count in (20, 70):
            workload = ReadWorkload(clients=count, gateways=_SKEWED)
            for rule in (LeaseHolder(), Local(), UniformQuorum(0.0), UniformQuorum(X)):
                yield RuleRun(rule, False, cluster, workload, world)
            yield RuleRun(_optimum(cluster, workload), False, cluster, workload, world)


def _optimum(cluster: RaftCluster, workload: ReadWorkload) -> ReadRule:
    """The proven least load, for the operations per ms that the better rules reach about.

    Everything that is no read is base load: the gateways' work and writes.
    """
    rate = min(14.0, 0.3 * workload.clients)
    part = np.asarray(workload.gateway_shares(cluster.nodes), dtype=np.float64)
    part = part / part.sum()
    follower = np.full(cluster.nodes, cluster.append_ms)
    follower[cluster.leader] = 4 * cluster.write_ms
    base = cluster.gateway_ms * part + (1 - workload.read_share) * follower
    whole = ReadProblem(
        cluster.rtt,
        rate * workload.read_share * part,
        cluster.leader,
        capacity=np.full(cluster.nodes, cluster.cores / cluster.read_ms),
        base=rate * base / cluster.cores,
    )
    plan = solve_compact(whole, ReadGoal.least_load())
    assert plan.strategy is not None  # no limits: there is always one
    return FromStrategy(plan.strategy, "optimum: least load")


SUITES = {each.__name__: each for each in (clients, reads, coin, hot, consistency, gateway, rules)}


def _runs(suite: str, options: argparse.Namespace) -> Iterator[Row]:
    for cell in SUITES[suite]():
        for seed in range(options.seeds):
            yield cell.run(seed, options.operations)


SLIDES = Experiments(
    "online_reads",
    {suite: functools.partial(_runs, suite) for suite in SUITES},
    {"operations": 25_000, "seeds": 2},
    COLUMNS,
)

# --- what sets the write latency, and elections -------------------------------------------------

VISITS = (0.5, 0.25, 0.1, 0.05)
AFTER_MS = 300.0
_FAULTS = ElectionSettings(cuts=0.5)
_BUSY = ElectionSettings(
    3, down_ms=5.0, crash_any=True, reads=1000.0, crashes=20.0, heartbeat_ms=80.0, writes=40.0,
    cuts=3.0, cut_ms=200.0, duration_ms=4000.0,
)  # fmt: skip
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


def _write_latency(options: argparse.Namespace) -> Iterator[Row]:
    """The leaseholder's work of a write, from more than a follower's to less."""
    both = {"leaseholder": LeaseHolder(), "quorum": UniformQuorum(X)}
    for visit, count, (name, rule) in itertools.product(VISITS, (70, 150, 300), both.items()):
        cluster = RaftCluster(write_ms=visit, gateway_ms=0.7)
        found = [
            simulate(cluster, ReadWorkload(clients=count), rule, operations=options.operations,
                     seed=seed)
            for seed in range(options.seeds)
        ]  # fmt: skip
        row: Row = {
            "throughput": [run.throughput for run in found],
            "read_ms": [run.read_latency.mean for run in found],
            "write_ms": [run.write_latency.mean for run in found],
            "busiest": [max(run.utilisation) for run in found],
            "leader": [run.utilisation[cluster.leader] for run in found],
        }
        names = {"visit_ms": visit, "clients": count, "rule": name}
        yield names | {key: sum(each) / len(each) for key, each in row.items()}


def _elections(options: argparse.Namespace) -> Iterator[Row]:
    """Ten runs of each variant for each seed."""
    for name, settings in VARIANTS.items():
        runs = [simulate_elections(settings, seed) for seed in range(10 * options.seeds)]
        found = [run.violations for run in runs]
        row: Row = {
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
        for side in ("read", "write"):
            every = [run.latency(reads=side == "read") for run in runs]
            after = [run.latency(reads=side == "read", after_ms=AFTER_MS) for run in runs]
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


CLAIMS = Experiments(
    "online_reads_claims",
    {"write latency": _write_latency, "elections": _elections},
    {"seeds": 2, "operations": 15_000},
)


READS_STUDY = SLIDES.study(
    __doc__, page="docs/benchmarks/online-reads.md", page_module="benchmarks.online.reads_page"
)
CLAIMS_STUDY = CLAIMS.study(__doc__)

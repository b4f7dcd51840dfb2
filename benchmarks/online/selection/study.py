"""Replica selection: the published simulation on common random numbers, and what moves its results.

    python -m benchmarks run online.selection [--only SUITE …] [--requests N]

Writes benchmarks/results/online_selection.csv, one row per run, and the machine beside it (.json);
Ctrl-C keeps the rows so far. The report compares our results with the reference values of an
earlier independent implementation.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.harness.result_files import Row
from benchmarks.online.experiments import Experiments
from benchmarks.online.selection.page import draw_figures, tables
from heuristics.online.selection import (
    C3,
    DynamicSnitch,
    EarliestCompletion,
    LeastOutstanding,
    LeastResponseTime,
    LimiterRules,
    Oracle,
    Policy,
    RandomChoice,
    RoundRobin,
    TwoChoices,
    WeightedResponseTime,
    run,
)
from placement.online.selection import ServerCluster, draw

__all__ = ["COLUMNS", "EXPERIMENTS", "STUDY", "SUITES", "PolicyRun"]

EPOCHS = (10, 50, 100, 200, 300, 500)

ECTF, ECT = EarliestCompletion(future=True, tie="ring"), EarliestCompletion(tie="ring")
ORA, ORAF = Oracle(tie="ring"), Oracle(in_flight=True, tie="ring")
PAPER_C3, LOR, RR = C3(tie="ring"), LeastOutstanding(tie="ring"), RoundRobin()
FIVE: tuple[Policy, ...] = (ECTF, ORA, PAPER_C3, LOR, RR)
FOUR: tuple[Policy, ...] = (ORA, PAPER_C3, LOR, RR)
OTHERS: tuple[Policy, ...] = (ORAF, ECT, TwoChoices(), LeastResponseTime(), RandomChoice())

HALF = ServerCluster(arrivals="grid", requests=300_000)
"""For what has no reference: half of the reads, T = 100 ms."""


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """Run to be made: a policy on the path of a cluster and seed; `label` names variants."""

    cluster: ServerCluster
    seed: int
    policy: Policy
    label: str
    warm_up_ms: float = 0.0


def _paths(clusters: Sequence[ServerCluster], seeds: int) -> Iterator[tuple[ServerCluster, int]]:
    for cluster in clusters:
        for seed in range(1, seeds + 1):
            yield cluster, seed


def _published(*, grid: bool) -> Iterator[PolicyRun]:
    """The published setting: 150 clients, utilisation 0.7; "grid" drops the first 2000 ms."""
    clusters = [ServerCluster(epoch_ms=t, arrivals="grid" if grid else "poisson") for t in EPOCHS]
    for cluster, seed in _paths(clusters, 10):
        for policy in (*FIVE, *OTHERS) if grid else (*FIVE, ECT):
            yield PolicyRun(cluster, seed, policy, policy.name, 2000.0 if grid else 0.0)


def _settings() -> Iterator[PolicyRun]:
    clusters = [
        ServerCluster(clients=clients, utilisation=load, epoch_ms=t, arrivals="grid")
        for clients, load in ((150, 0.45), (300, 0.7), (300, 0.45))
        for t in (10, 100, 500)
    ]
    for cluster, seed in _paths(clusters, 3):
        for policy in FOUR:
            yield PolicyRun(cluster, seed, policy, policy.name, 2000.0)


def _skew() -> Iterator[PolicyRun]:
    clusters = [
        replace(HALF, epoch_ms=t, heavy_clients=few, heavy_demand=much)
        for few, much in ((0.5, 0.8), (0.2, 0.8), (0.02, 0.95))
        for t in (100, 500)
    ]
    variants: list[tuple[Policy, str]] = [
        (ORA, "ORA"),
        (PAPER_C3, "C3"),
        (C3(tie="ring", limiter=None), "C3, no limiter"),
        (C3(tie="ring", limiter=None, weight=10.0), "C3, no limiter, w = 10"),
        (LOR, "LOR"),
    ]
    for cluster, seed in _paths(clusters, 3):
        for policy, label in variants:
            yield PolicyRun(cluster, seed, policy, label, 2000.0)


def _ablation() -> Iterator[PolicyRun]:
    variants: list[tuple[Policy, str]] = [(PAPER_C3, "C3"), (C3(), "C3, random ties")]
    variants += [(C3(tie="ring", exponent=b), f"C3, b = {b:g}") for b in (1.0, 2.0, 4.0)]
    variants += [(C3(tie="ring", weight=w), f"C3, w = {w:g}") for w in (0.0, 1.0, 10.0, 50.0)]
    variants += [
        (C3(tie="ring", limiter=None), "C3, no limiter"),
        (LOR, "LOR"),
        (LeastOutstanding(), "LOR, random ties"),
    ]
    slow: list[tuple[Policy, str]] = [(WeightedResponseTime(), "WRT"), (DynamicSnitch(), "DS")]
    for cluster, seed in _paths([HALF], 5):
        extra = slow if seed <= 2 else []
        for policy, label in [*variants, *extra]:
            yield PolicyRun(cluster, seed, policy, label, 2000.0)


def _limiter() -> Iterator[PolicyRun]:
    strict = LimiterRules(wake="strict")
    variants: list[tuple[Policy, str]] = [
        (PAPER_C3, "C3"),
        (C3(tie="ring", limiter=strict), "C3, strict wake"),
        (C3(tie="ring", limiter=None), "C3, no limiter"),
        (LOR, "LOR"),
        (RR, "RR"),
        (RoundRobin(limiter=None), "RR, no limiter"),
    ]
    # Nothing is dropped: most refusals fall into the start, so that a result depends on the length.
    clusters = [
        replace(HALF, clients=n, requests=reads)
        for reads in (150_000, 300_000)
        for n in (5, 10, 20, 50)
    ]
    for cluster, seed in _paths(clusters, 3):
        for policy, label in variants:
            yield PolicyRun(cluster, seed, policy, label)


SUITES: dict[str, Callable[[], Iterator[PolicyRun]]] = {
    "grid": functools.partial(_published, grid=True),
    "poisson": functools.partial(_published, grid=False),
    "settings": _settings,
    "skew": _skew,
    "ablation": _ablation,
    "limiter": _limiter,
}
"""Name of each suite -> its runs, path by path."""

COLUMNS = (
    "suite",
    "clients",
    "utilisation",
    "epoch_ms",
    "heavy_clients",
    "heavy_demand",
    "policy",
    "seed",
    "n",
    "mean",
    "p50",
    "p95",
    "p99",
    "p999",
    "throughput",
    "tries",
    "refused",
)


def _measure(suite: str, options: argparse.Namespace) -> Iterator[Row]:
    path = None
    for cell in SUITES[suite]():
        cluster = cell.cluster
        if options.requests:
            cluster = replace(cluster, requests=options.requests)
        if path is None or (path.cluster, path.seed) != (cluster, cell.seed):
            path = draw(cluster, cell.seed)
        outcome = run(path, cell.policy)
        found = outcome.latencies(cell.warm_up_ms)
        values: tuple[object, ...] = (
            cluster.clients,
            cluster.utilisation,
            cluster.epoch_ms,
            cluster.heavy_clients,
            cluster.heavy_demand,
            cell.label,
            cell.seed,
            found.n,
            *(f"{v:.4f}" for v in (found.mean, found.p50, found.p95, found.p99, found.p999)),
            f"{outcome.throughput:.1f}",
            outcome.tries,
            outcome.refused,
        )
        yield dict(zip(COLUMNS[1:], values, strict=True))


EXPERIMENTS = Experiments(
    "online_selection",
    {suite: functools.partial(_measure, suite) for suite in SUITES},
    {"requests": 0},
    COLUMNS,
)
"""Without ``--requests`` (0) each suite has its own number of reads."""

STUDY = EXPERIMENTS.study(
    __doc__, page="docs/benchmarks/online-selection.md", report=tables, draw=draw_figures
)

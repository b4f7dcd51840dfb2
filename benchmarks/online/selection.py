"""Replica selection: the published simulation, bounds, closed loops and a wide area.

    python -m benchmarks run online.selection [--only SUITE …] [--requests N]
    python -m benchmarks run online.selection.ladder [--windows 20] [--seconds 20]
    python -m benchmarks run online.selection.closed_loop [--seeds 3] [--operations 60000]
    python -m benchmarks run online.selection.wide_area [--seeds 3] [--reads 200000]

- ``online.selection``: the simulation of the C3 paper on common random numbers, and what moves its
  results. A CSV with one row per run.
- ``ladder``: policies against proven bounds. Full size: the published setting for 2 s (140,000
  reads), one path per epoch length; the fluid program, the bound that its duals prove, and every
  policy on the same path. Windows: 15 reads of a smaller, warm system; CP-SAT optima in any order
  and first come, first served, and every policy.
- ``closed_loop``: 15 servers that are also the 15 coordinators, three replicas, 120 generators, as
  in the experiments of the C3 paper on EC2; the servers are those of its simulation. Three mixes of
  reads and updates; the load step, where 40 update-heavy generators join 80 read-heavy ones; the
  reads of the most loaded server in bins of 100 ms; duplicates after the 95th percentile, also with
  arrivals at a fixed rate; and throughput against the fluctuation of the speeds.
- ``wide_area``: world27 with the five replicas of its optimal plan, three servers each, RTTs and
  demand of its 60 clients. The mean latency is taken apart into network, waiting and service.

Each writes a file of benchmarks/results; Ctrl-C keeps the rows so far.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.harness.experiments import Experiments
from benchmarks.harness.result_files import Row
from formulations.online.selection.linear_bounds import fluid_bound
from formulations.online.selection.optimal_choice import solve
from heuristics.online.selection import (
    C3,
    DynamicSnitch,
    EarliestCompletion,
    Hedged,
    LeastOutstanding,
    LeastResponseTime,
    LimiterRules,
    NearestReplica,
    Oracle,
    Policy,
    RandomChoice,
    RoundRobin,
    TwoChoices,
    WeightedResponseTime,
    play,
    run,
)
from placement.api import load
from placement.errors import InputError
from placement.model.read_write_counts import reads_and_writes
from placement.online import Latencies
from placement.online.selection import (
    LoadGenerators,
    SelectionRun,
    ServerCluster,
    ServerSamplePath,
    busiest_load,
    cut,
    draw,
    time_line,
)
from placement.online.verbs import client_rtt

# --- the published simulation -------------------------------------------------------------------

EPOCHS = (10, 50, 100, 200, 300, 500)
"""Milliseconds between two draws of the speeds of the servers."""

PLAIN_C3 = C3(limiter=None, name="C3, no limiter")
_ECTF, _ECT = EarliestCompletion(future=True, tie="ring"), EarliestCompletion(tie="ring")
_ORA, _ORAF = Oracle(tie="ring"), Oracle(in_flight=True, tie="ring")
_C3, _LOR, _RR = C3(tie="ring"), LeastOutstanding(tie="ring"), RoundRobin()
_HALF = ServerCluster(arrivals="grid", requests=300_000)
"""For what the paper does not have: half of the reads, T = 100 ms."""


def _named(*policies: Policy) -> dict[str, Policy]:
    return {policy.name: policy for policy in policies}


@dataclass(frozen=True)
class SelectionSuite:
    """Policies on the paths of some clusters and seeds; `few` run on the first two seeds alone."""

    clusters: tuple[ServerCluster, ...]
    seeds: int
    policies: Mapping[str, Policy]
    warm_up_ms: float = 2000.0
    few: Mapping[str, Policy] = field(default_factory=dict)


_FOUR = _named(_ORA, _C3, _LOR, _RR)
SUITES = {
    # the published setting: 150 clients, utilisation 0.7; "grid" drops the first 2000 ms
    "grid": SelectionSuite(
        tuple(ServerCluster(epoch_ms=t, arrivals="grid") for t in EPOCHS),
        10,
        _named(
            _ECTF, _ORA, _C3, _LOR, _RR, _ORAF, _ECT, TwoChoices(), LeastResponseTime(),
            RandomChoice(),
        ),
    ),
    "poisson": SelectionSuite(
        tuple(ServerCluster(epoch_ms=t, arrivals="poisson") for t in EPOCHS),
        10,
        _named(_ECTF, _ORA, _C3, _LOR, _RR, _ECT),
        warm_up_ms=0.0,
    ),
    "settings": SelectionSuite(
        tuple(
            ServerCluster(clients=clients, utilisation=load, epoch_ms=t, arrivals="grid")
            for clients, load in ((150, 0.45), (300, 0.7), (300, 0.45))
            for t in (10, 100, 500)
        ),
        3,
        _FOUR,
    ),
    "skew": SelectionSuite(
        tuple(
            replace(_HALF, epoch_ms=t, heavy_clients=few, heavy_demand=much)
            for few, much in ((0.5, 0.8), (0.2, 0.8), (0.02, 0.95))
            for t in (100, 500)
        ),
        3,
        {
            "ORA": _ORA,
            "C3": _C3,
            "C3, no limiter": C3(tie="ring", limiter=None),
            "C3, no limiter, w = 10": C3(tie="ring", limiter=None, weight=10.0),
            "LOR": _LOR,
        },
    ),
    "ablation": SelectionSuite(
        (_HALF,),
        5,
        {
            "C3": _C3,
            "C3, random ties": C3(),
            **{f"C3, b = {b:g}": C3(tie="ring", exponent=b) for b in (1.0, 2.0, 4.0)},
            **{f"C3, w = {w:g}": C3(tie="ring", weight=w) for w in (0.0, 1.0, 10.0, 50.0)},
            "C3, no limiter": C3(tie="ring", limiter=None),
            "LOR": _LOR,
            "LOR, random ties": LeastOutstanding(),
        },
        few={"WRT": WeightedResponseTime(), "DS": DynamicSnitch()},
    ),
    # Nothing is dropped: most refusals fall into the start, so that a result depends on the length.
    "limiter": SelectionSuite(
        tuple(
            replace(_HALF, clients=n, requests=reads)
            for reads in (150_000, 300_000)
            for n in (5, 10, 20, 50)
        ),
        3,
        {
            "C3": _C3,
            "C3, strict wake": C3(tie="ring", limiter=LimiterRules(wake="strict")),
            "C3, no limiter": C3(tie="ring", limiter=None),
            "LOR": _LOR,
            "RR": _RR,
            "RR, no limiter": RoundRobin(limiter=None),
        },
        warm_up_ms=0.0,
    ),
}  # fmt: skip

COLUMNS = (
    "suite", "clients", "utilisation", "epoch_ms", "heavy_clients", "heavy_demand", "policy",
    "seed", "n", "mean", "p50", "p95", "p99", "p999", "throughput", "tries", "refused",
)  # fmt: skip


def _figures(found: Latencies) -> dict[str, float]:
    return {
        "mean": found.mean, "p50": found.p50, "p95": found.p95, "p99": found.p99,
        "p999": found.p999,
    }  # fmt: skip


def _measure(name: str, options: argparse.Namespace) -> Iterator[Row]:
    suite = SUITES[name]
    for plain in suite.clusters:
        cluster = replace(plain, requests=options.requests) if options.requests else plain
        for seed in range(1, suite.seeds + 1):
            path = draw(cluster, seed)
            for label, policy in {**suite.policies, **(suite.few if seed <= 2 else {})}.items():
                outcome = run(path, policy)
                found = outcome.latencies(suite.warm_up_ms)
                values: tuple[object, ...] = (
                    cluster.clients, cluster.utilisation, cluster.epoch_ms, cluster.heavy_clients,
                    cluster.heavy_demand, label, seed, found.n,
                    *(f"{value:.4f}" for value in _figures(found).values()),
                    f"{outcome.throughput:.1f}", outcome.tries, outcome.refused,
                )  # fmt: skip
                yield dict(zip(COLUMNS[1:], values, strict=True))


PUBLISHED = Experiments(
    "online_selection",
    {name: functools.partial(_measure, name) for name in SUITES},
    {"requests": 0},
    COLUMNS,
)
"""Without ``--requests`` (0) each suite has its own number of reads."""

# --- bounds -------------------------------------------------------------------------------------

READS, SEED, LADDER_BIN_MS = 140_000, 1, 5
LADDER: tuple[Policy, ...] = (
    EarliestCompletion(future=True),
    EarliestCompletion(),
    Oracle(),
    C3(limiter=None),
    LeastOutstanding(),
    RoundRobin(limiter=None),
)
_SMALL = ServerCluster(5, 1, 3, 3, utilisation=0.8, epoch_ms=50.0, requests=400)
_FIRST, _COUNT = 300, 15


def _full_size(epoch_ms: float) -> Row:
    """Bound one path of the published setting; run every policy on it, with and without copies."""
    path = draw(ServerCluster(epoch_ms=epoch_ms, requests=READS), SEED).on_grid()
    plain = dataclasses.replace(path, shadowed=np.zeros(path.size, dtype=bool))
    floor = fluid_bound(cut(path, (), 0, path.size), width=LADDER_BIN_MS * 128)
    row: Row = {
        "epoch_ms": epoch_ms,
        "reads": READS,
        "seed": SEED,
        "fluid": floor.value,
        "bound": floor.bound,
        "wall_s": round(floor.wall_s, 1),
    }
    for policy in LADDER:
        row[policy.name] = run(path, policy).latencies().mean
        row[policy.name + ", no copies"] = run(plain, policy).latencies().mean
    return row


def _windows(options: argparse.Namespace) -> Iterator[Row]:
    """Solve windows of a warm run exactly, bound them, and let every policy decide them."""
    for seed in range(options.windows):
        path = draw(_SMALL, seed).on_grid()
        cell = cut(path, run(path, C3(limiter=None)).server, _FIRST, _COUNT)
        row: Row = {"seed": seed}
        for order in ("any", "fcfs"):
            plan = solve(cell, order, seconds=options.seconds)
            row |= {order: plan.value, f"{order} bound": plan.bound, f"{order} proven": plan.proven}
            row[f"{order} wall_s"] = round(plan.wall_s, 1)
        yield row | {policy.name: float(play(cell, policy).mean()) for policy in LADDER}


BOUNDS = Experiments(
    "online_selection_ladder",
    {"full size": lambda options: map(_full_size, map(float, EPOCHS)), "windows": _windows},
    {"windows": 20, "seconds": 20.0},
    packages=("numpy", "highspy", "ortools"),
)

# --- closed loops -------------------------------------------------------------------------------

MIXES = {"read-only": 0.0, "read-heavy": 0.05, "update-heavy": 0.5}
GENERATORS, BIN_MS, WARM_MS = 120, 100.0, 500.0
UPDATE_WORK = 0.25
"""Mean work of an update at a replica, in reads: an append to a log and a table in memory."""

_DS, _LOOSE = DynamicSnitch(), LeastOutstanding()
RIVALS: tuple[Policy, ...] = (_DS, Hedged(_DS), _LOOSE, Hedged(_LOOSE), C3(), PLAIN_C3)


def _cluster(operations: int, *closed: LoadGenerators, utilisation: float = 0.7) -> ServerCluster:
    return ServerCluster(
        15, 4, 3, 15, requests=operations, closed=closed, update_work=UPDATE_WORK,
        utilisation=utilisation,
    )  # fmt: skip


def _require_warm(ms: float, outcome: SelectionRun) -> None:
    """Refuse a run of which `ms` pass before its end, or its load step: all of it warms up."""
    if ms < WARM_MS + 2 * BIN_MS:
        raise InputError(
            f"too few: {outcome.policy} has {ms:.0f} ms, of which {WARM_MS:.0f} ms warm up",
            field="--operations",
            value=outcome.sample.size,
            expected=f"enough operations for {WARM_MS + 2 * BIN_MS:.0f} ms, such as 60000",
        )


def _row(outcome: SelectionRun, **names: object) -> Row:
    _require_warm(outcome.end_ms, outcome)
    found, busy = outcome.latencies(WARM_MS), busiest_load(outcome, BIN_MS)[5:]
    return {
        **names,
        "policy": outcome.policy,
        "throughput": outcome.throughput,
        **_figures(found),
        "hedged": outcome.hedged / outcome.sample.size,
        "busiest": {
            "mean": float(busy.mean()),
            "p50": float(np.percentile(busy, 50)),
            "p99": float(np.percentile(busy, 99)),
            "max": int(busy.max()),
            "variation": float(busy.std() / busy.mean()),
        },
    }


def _each(
    options: argparse.Namespace, cluster: ServerCluster, policies: tuple[Policy, ...], **names: Any
) -> Iterator[Row]:
    for seed in range(1, options.seeds + 1):
        path = draw(cluster, seed)
        for policy in policies:
            yield _row(run(path, policy), **names, seed=seed)


def _mixes(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the throughput comparison: every mix, seed and policy."""
    for mix, share in MIXES.items():
        cluster = _cluster(options.operations, LoadGenerators(GENERATORS, share))
        yield from _each(options, cluster, RIVALS, mix=mix)


def _load_step(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the load step with its time line: 40 update-heavy generators join in the middle."""
    joins = options.operations / 25.0  # ms; about half of the run
    both = LoadGenerators(80, 0.05), LoadGenerators(40, 0.5, joins)
    for seed in range(1, options.seeds + 1):
        path = draw(_cluster(options.operations, *both), seed)
        for policy in RIVALS:
            outcome = run(path, policy)
            _require_warm(joins, outcome)
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


def _arriving(options: argparse.Namespace) -> Iterator[Row]:
    """Yield duplicates where reads arrive at a fixed rate, at three utilisations."""
    for part in (0.3, 0.5, 0.7):
        cluster = _cluster(options.operations, utilisation=part)
        yield from _each(options, cluster, RIVALS, utilisation=part)


def _speeds(options: argparse.Namespace) -> Iterator[Row]:
    """Yield throughput against how much faster a fast server is: what the gain over DS rests on."""
    for factor in (1.0, 1.5, 2.0, 3.0, 5.0):
        closed = _cluster(options.operations, LoadGenerators(GENERATORS, 0.05))
        cluster = replace(closed, fluctuation=factor)
        yield from _each(options, cluster, (_DS, C3(), PLAIN_C3), fluctuation=factor)


CLOSED = Experiments(
    "online_selection_closed_loop",
    {"mixes": _mixes, "load step": _load_step, "arriving": _arriving, "speeds": _speeds},
    {"seeds": 3, "operations": 60_000},
)

# --- a wide area --------------------------------------------------------------------------------

SITES = ("South Central US", "sa-east-1", "europe-west4", "East Asia", "ap-northeast-1")
"""Replicas of ``placement solve world27 --replicas 5 --voters 3``."""
SERVERS = 3
FAR: tuple[Policy, ...] = (
    NearestReplica(),
    RandomChoice(limiter=None),
    LeastResponseTime(),
    LeastOutstanding(),
    C3(),
    PLAIN_C3,
    C3(limiter=None, weight=0.0, name="C3, no limiter, w = 0"),
    C3(limiter=None, exponent=1.0, name="C3, no limiter, b = 1"),
    C3(limiter=None, exponent=0.5, name="C3, no limiter, b = 1/2"),
    EarliestCompletion(future=True),
)


def _wide_path(reads: int, seed: int, utilisation: float) -> ServerSamplePath:
    """Return the requests that ``placement lab online selection world27`` simulates."""
    world = load("world27")
    sites = world.site_indices(SITES, "sites")
    cluster = ServerCluster(
        len(sites) * SERVERS, 4, len(sites), utilisation=utilisation, requests=reads, shadow=0.0
    )
    demand = reads_and_writes(world)[0]
    return draw(cluster.at_sites(client_rtt(world)[:, sites], demand), seed).on_grid()


def _parts(outcome: SelectionRun) -> dict[str, float]:
    """Mean latency and its parts, ms; per cent of the reads at the nearest replica."""
    sample = outcome.sample
    network = sample.cluster.one_way[sample.client, outcome.server]
    wait = outcome.start - outcome.issued - network
    found = outcome.latencies()
    return {
        "mean": found.mean,
        "network": 2 * float(network.mean()),
        "waiting": float(wait.mean()),
        "service": found.mean - 2 * float(network.mean()) - float(wait.mean()),
        "p99": found.p99,
        "nearest": 100 * float(outcome.at_nearest.mean()),
    }


def _latency_parts(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the parts of every policy's latency."""
    for utilisation in (0.4, 0.7, 0.85):
        for seed in range(options.seeds):
            path = _wide_path(options.reads, seed, utilisation)
            for policy in FAR:
                row = {"utilisation": utilisation, "policy": policy.name, "seed": seed}
                yield row | _parts(run(path, policy))


WIDE = Experiments(
    "online_selection_wide_area", {"policies": _latency_parts}, {"seeds": 3, "reads": 200_000}
)


SELECTION_STUDY = PUBLISHED.study(
    __doc__,
    page="docs/benchmarks/online-selection.md",
    page_module="benchmarks.online.selection_page",
)
LADDER_STUDY, CLOSED_STUDY, WIDE_STUDY = (each.study(__doc__) for each in (BOUNDS, CLOSED, WIDE))

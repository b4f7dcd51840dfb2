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
import itertools
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import machine
from benchmarks.harness.pictures import Panel, save_panels
from benchmarks.harness.results import (
    Row,
    Rows,
    averaged,
    markdown_table,
    mean,
    means,
    pick,
    pivot,
    read_frame,
    read_json,
    row_table,
    rows_of,
    spread,
    values,
)
from benchmarks.harness.study import Study
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
from placement.model.demand import reads_and_writes
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
            before = (line.index >= WARM_MS) & (line.index < joins)
            after = (line.index >= joins) & (line.index + 2 * BIN_MS < outcome.end_ms)
            row = _row(outcome, seed=seed, joins_ms=joins)
            row["p99 before"] = float(np.nanmedian(line["p99"][before]))
            row["p99 after"] = float(np.nanmedian(line["p99"][after]))
            row["worst bin after"] = float(np.nanmax(line["p99"][after]))
            if seed == 1:
                row["median"] = [round(value, 2) for value in line["median"].tolist()]
                row["p99 line"] = [round(value, 2) for value in line["p99"].tolist()]
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


# --- the page ------------------------------------------------------------------------------------

_SHOWN = (10, 500)
"""Times between two draws of the speeds, ms, that the tables of the page show."""

ABSIM = {
    (10, "ORA"): (4.6, 19.3), (10, "C3"): (10.8, 39.5), (10, "LOR"): (12.9, 48.0),
    (10, "RR"): (19.0, 90.2), (500, "ORA"): (24.2, 211.4), (500, "C3"): (32.9, 330.8),
    (500, "LOR"): (43.6, 333.0), (500, "RR"): (260.1, 1422.9),
}  # fmt: skip
"""(T, policy) -> mean and p99 of one run of the authors' own simulator (absim, commit c5d5488)."""

_LADDER = tuple(policy.name for policy in LADDER)


def tables() -> dict[str, str]:
    """Return the tables by their marks on the page."""
    rows = read_frame(PUBLISHED.path)
    bounds, closed = read_json(BOUNDS.path), read_json(CLOSED.path)
    wide, head = read_json(WIDE.path), read_json(PUBLISHED.path.with_suffix(".json"))
    left_out = ("C3, no limiter, w = 0", "C3, no limiter, b = 1")
    far = [row for row in wide["policies"] if row["policy"] not in left_out]
    by = {suite: rows_of(part) for suite, part in rows.groupby("suite")}
    skewed = [
        {**row, "share": f"{100 * row['heavy_clients']:g} % of clients"}
        for row in pick(by["skew"], epoch_ms=100)
    ]
    return {
        "machine": f"Machine: {machine.sentence(head['machine'])}.",
        "grid": _grid(by["grid"]),
        "ratios": _ratios(rows[rows["suite"] == "poisson"]),
        "limiter": pivot(
            pick(by["limiter"], n=150_000), "policy", "clients", _mean_refused, "clients:"
        ),
        "ablation": _ablation(by["ablation"]),
        "skew": pivot(
            skewed, "policy", "share", lambda r: f"{mean(r, 'mean'):.1f} ({mean(r, 'p99'):.1f})"
        ),
        "full size": _full_size_table(bounds["full size"]),
        "windows": _windows_table(bounds["windows"]),
        "mixes": _mixes_table(closed["mixes"]),
        "speeds": _speeds_table(pd.DataFrame(closed["speeds"])),
        "load step": row_table(
            "policy|operations/s|p99 before|p99 after|worst bin after",
            "{policy}|{throughput:,.0f}|{p99 before:.1f}|{p99 after:.1f}|{worst bin after:.1f}",
            averaged(closed["load step"], "policy"),
        ),
        "wide area": pivot(
            far, "policy", "utilisation", means("mean", "network", "p99", "nearest"), "utilisation"
        ),
    }


def _grid(rows: Rows) -> str:
    """Return means of ten seeds, their range, and one run of the authors' simulator."""
    lines = []
    for epoch, policy in itertools.product(_SHOWN, ("ECTF", "ORA", "C3", "LOR", "RR")):
        line: list[object] = [epoch, policy]
        theirs = ABSIM.get((epoch, policy))
        for place, column in enumerate(("mean", "p99")):
            found = values(pick(rows, epoch_ms=epoch, policy=policy), column)
            line.append(f"{statistics.fmean(found):.1f} ({min(found):.1f}–{max(found):.1f})")
            line.append(f"{theirs[place]:.1f}" if theirs else "")
        lines.append(line)
    return markdown_table(("T", "policy", "mean", "absim", "p99", "absim"), lines)


def _ratios(rows: pd.DataFrame) -> str:
    found = rows.pivot(index=["epoch_ms", "seed"], columns="policy", values=["mean", "p99"])
    keys = (("C3", "ORA", "p99"), ("LOR", "C3", "p99"), ("LOR", "C3", "mean"))
    lines = (
        [epoch, *(spread(list(found.loc[epoch][c][a] / found.loc[epoch][c][b]), 2)
                  for a, b, c in keys)]
        for epoch in _SHOWN
    )  # fmt: skip
    return markdown_table(("T", *(f"{a}/{b} {c}" for a, b, c in keys)), lines)


def _refused(mine: Rows) -> str:
    tries = sum(values(mine, "tries"))
    return f"{100 * sum(values(mine, 'refused')) / tries:.3g} %" if tries else ""


def _mean_refused(mine: Rows) -> str:
    refused = _refused(mine)
    return f"{mean(mine, 'mean'):.1f}" + (f" ({refused})" if refused else "")


def _ablation(rows: Rows) -> str:
    shown = ("C3", "C3, b = 1", "C3, w = 0", "C3, w = 10", "C3, no limiter", "LOR", "WRT", "DS")
    lines = (
        (policy, *(spread(values(mine, column)) for column in ("mean", "p99")), _refused(mine))
        for policy in shown for mine in [pick(rows, policy=policy)]
    )  # fmt: skip
    return markdown_table(("policy", "mean", "p99", "refused"), lines)


def _full_size_table(rows: Rows) -> str:
    more = {f"{name} with copies": name for name in ("ECTF", "C3")}
    columns = {name: f"{name}, no copies" for name in _LADDER} | more
    lines = (
        [f"{row['epoch_ms']:g}", f"{row['bound']:.3f}", f"{row['fluid']:.3f}",
         *(f"{row[column]:.2f}" for column in columns.values())]
        for row in rows if row["epoch_ms"] in _SHOWN
    )  # fmt: skip
    return markdown_table(("T", "proven bound", "fluid", *columns), lines)


def _known(row: Mapping[str, float]) -> dict[str, float]:
    """The row with its best bound and plans: a policy may be better than a stopped search."""
    fcfs = min(row["fcfs"], *(row[name] for name in _LADDER))
    return {**row, "fcfs": fcfs, "any": min(row["any"], fcfs), "bound": row["any bound"]}


def _windows_table(windows: Rows) -> str:
    rows = [_known(row) for row in windows]
    names = ("any bound", "any", "fcfs bound", "fcfs", *_LADDER)
    proven = {f"{n} proven": sum(bool(row.get(f"{n} proven")) for row in rows)
              for n in ("any", "fcfs")}  # fmt: skip
    line = [*(f"{mean(rows, name):.2f}" for name in names), *proven.values()]
    return markdown_table((*names, *proven), [line])


def _mixes_table(rows: Rows) -> str:
    def cell(mine: Rows) -> str:
        slow = pick(rows, mix=mine[0]["mix"], policy="DS")
        gain = 100 * (mean(mine, "throughput") / mean(slow, "throughput") - 1)
        busiest = statistics.fmean(row["busiest"]["max"] for row in mine)
        return f"{gain:+.0f} %, {mean(mine, 'p99'):.1f}, {busiest:.0f}"

    return pivot(rows, "policy", "mix", cell)


def _speeds_table(rows: pd.DataFrame) -> str:
    found = rows.pivot_table("throughput", "fluctuation", "policy", sort=False)
    gains = found.div(found["DS"], axis=0).sub(1).mul(100)
    lines = ((f"{factor:g}", f"{gain['C3']:+.0f} %", f"{gain['C3, no limiter']:+.0f} %")
             for factor, gain in gains.iterrows())  # fmt: skip
    return markdown_table(("D", "C3 over DS", "without limiter"), lines)


# --- figures ------------------------------------------------------------------------------------

_PANELS = (
    ("settings", 150, 0.45, 1.0, "150 clients, utilisation 0.45"),
    ("grid", 150, 0.70, 1.0, "150 clients, utilisation 0.70"),
    ("skew", 150, 0.70, 0.2, "20 % of clients make 80 % of demand"),
    ("settings", 300, 0.45, 1.0, "300 clients, utilisation 0.45"),
    ("settings", 300, 0.70, 1.0, "300 clients, utilisation 0.70"),
    ("skew", 150, 0.70, 0.02, "2 % of clients make 95 % of demand"),
)


def draw_figures(folder: Path) -> None:
    """Draw the figures of the page into a folder, from the kept results."""
    bounds, rows = read_json(BOUNDS.path), rows_of(read_frame(PUBLISHED.path))
    full, windows = bounds["full size"], [_known(row) for row in bounds["windows"]]
    epochs = values(full, "epoch_ms")
    names = ("bound", "any", "fcfs", *_LADDER)
    lines: dict[str, Any] = {
        name: (epochs, values(full, f"{name}, no copies"), {"marker": "."}) for name in _LADDER
    }
    lines["proven bound"] = (epochs, values(full, "bound"), {"color": "black"})
    ends = [[pick_end(row[n] for row in windows) for n in names] for pick_end in (min, max)]
    means_of = [mean(windows, n) for n in names]
    label = f"mean and range of {len(windows)} windows"
    logs = {"xscale": "log", "yscale": "log"}
    save_panels(
        folder / "online-selection-ladder.png",
        [
            Panel(lines, logs | {"xlabel": "T, ms between two draws of the speeds",
                                 "ylabel": "mean latency, ms", "title": "140,000 reads"}),
            Panel({label: (names, means_of, {"marker": "o"})},
                  {"yscale": "log", "ylabel": "mean flow time, ms",
                   "title": "15 reads of a warm system"},
                  bands={label: (ends[0], ends[1])}),
        ],
        height=4.2,
    )  # fmt: skip
    save_panels(
        folder / "online-selection-epochs.png",
        [_epochs(rows, *panel) for panel in _PANELS],
        columns=3,
    )
    # median and p99 over time while generators join, without duplicates, for the first seed
    step = read_json(CLOSED.path)["load step"]
    drawn = [row for row in step if "p99 line" in row and "hedged" not in row["policy"]]
    panels = []
    for key, words in (("median", "median of reads, ms"), ("p99 line", "p99 of reads, ms")):
        found = {row["policy"]: row[key][:-1] for row in drawn}  # the last bin is not full
        course: dict[str, Any] = {
            name: ([BIN_MS * place / 1000 for place in range(len(bins))], bins, {})
            for name, bins in found.items()
        }
        axes = {"xlabel": "time, s", "ylabel": words, "ylim": (0, None)}
        panels.append(Panel(course, axes, {"40 generators join": drawn[0]["joins_ms"] / 1000}))
    save_panels(folder / "online-selection-load-step.png", panels)


def _epochs(
    rows: Rows, suite: str, clients: int, utilisation: float, heavy: float, title: str
) -> Panel:
    """Mean and range over the seeds of the p99 against T."""
    lines: dict[str, Any] = {}
    bands = {}
    for policy in ("RR", "LOR", "C3", "ORA"):
        mine = pick(rows, suite=suite, clients=clients, utilisation=utilisation,
                    heavy_clients=heavy, policy=policy)  # fmt: skip
        times = sorted({float(row["epoch_ms"]) for row in mine})
        found = [values(pick(mine, epoch_ms=time), "p99") for time in times]
        lines[policy] = (times, [statistics.fmean(each) for each in found], {"marker": "."})
        bands[policy] = ([min(each) for each in found], [max(each) for each in found])
    axes = {"xscale": "log", "yscale": "log", "title": title, "ylim": (10, 2000),
            "xlabel": "T, ms", "ylabel": "p99 of reads, ms"}  # fmt: skip
    return Panel(lines, axes, bands=bands)


PUBLISHED = Study(
    "online_selection",
    {name: functools.partial(_measure, name) for name in SUITES},
    {"requests": 0},
    COLUMNS,
    description=__doc__,
    page="docs/benchmarks/online-selection.md",
    report=tables,
    draw=draw_figures,
)
"""Without ``--requests`` (0) each suite has its own number of reads."""

BOUNDS = Study(
    "online_selection_ladder",
    {"full size": lambda options: map(_full_size, map(float, EPOCHS)), "windows": _windows},
    {"windows": 20, "seconds": 20.0},
    packages=("numpy", "highspy", "ortools"),
    description=__doc__,
)

CLOSED = Study(
    "online_selection_closed_loop",
    {"mixes": _mixes, "load step": _load_step, "arriving": _arriving, "speeds": _speeds},
    {"seeds": 3, "operations": 60_000},
    description=__doc__,
)

WIDE = Study(
    "online_selection_wide_area",
    {"policies": _latency_parts},
    {"seeds": 3, "reads": 200_000},
    description=__doc__,
)

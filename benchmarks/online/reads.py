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
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.harness import machine
from benchmarks.harness.pictures import Panel, save_panels
from benchmarks.harness.results import (
    Row,
    Rows,
    markdown_table,
    means,
    pivot,
    read_frame,
    read_json,
    row_table,
    rows_of,
)
from benchmarks.harness.study import Study
from formulations.online.reads import solve_compact
from heuristics.online.reads import LeaseHolder, Local, UniformQuorum
from placement.online.reads import (
    FromStrategy,
    RaftCluster,
    ReadGoal,
    ReadProblem,
    ReadRule,
    ReadStrategy,
    ReadWorkload,
    Visibility,
    bottleneck,
    simulate,
)
from placement.online.reads.elections import ElectionSettings, ReadPath, simulate_elections
from placement.online.reads.leader_share import (
    inclusion_probability,
    leader_served,
    peak_reduction,
    uniform_share,
)

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


class RuleRun(NamedTuple):
    """Run to be made."""

    rule: ReadRule
    strong: bool = False
    cluster: RaftCluster = RaftCluster()
    workload: ReadWorkload = ReadWorkload()
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


def hot() -> Iterator[RuleRun]:
    """80 % of the requests on few keys; followers see the log, so that strong reads are right."""
    for fraction, (rule, strong) in itertools.product(HOT, _FOUR):
        workload = ReadWorkload(hot_share=0.8, hot_fraction=fraction)
        for life in LIVES if strong else (0.0,):
            cluster = RaftCluster(visibility=Visibility.LOG, intent_ms=life)
            yield RuleRun(rule, strong, cluster, workload)


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


_EACH = itertools.product
SUITES: dict[str, Callable[[], Iterable[RuleRun]]] = {
    # scaling clients, uniform 95/5
    "clients": lambda: (RuleRun(*each, workload=ReadWorkload(clients=count))
                        for count, each in _EACH(CLIENTS, _FOUR)),
    # varying the share of reads, 70 clients
    "reads": lambda: (RuleRun(*each, workload=ReadWorkload(read_share=share))
                      for share, each in _EACH(READS, _FOUR)),
    # varying the share x of leaseholder reads, 70 clients, 95/5
    "coin": lambda: (RuleRun(UniformQuorum(share), strong)
                     for share, strong in _EACH(SHARES, (False, True))),
    "hot": hot,
    # violations that clients see on 200 contended keys, 30 clients, 80/20
    "consistency": lambda: (
        RuleRun(*each, RaftCluster(visibility=visibility, apply_lag_ms=lag),
                ReadWorkload(clients=30, keys=200, read_share=0.8))
        for visibility, lag, each in _EACH(Visibility, LAGS, _FOUR)),
    # the gateway's work as the free parameter, 70 clients, 95/5
    "gateway": lambda: (RuleRun(*each, RaftCluster(gateway_ms=work))
                        for work, each in _EACH(GATEWAYS, _FOUR)),
    "rules": rules,
}  # fmt: skip
"""Name of each suite -> its runs."""


def _runs(suite: str, options: argparse.Namespace) -> Iterator[Row]:
    for cell, seed in itertools.product(SUITES[suite](), range(options.seeds)):
        yield cell.run(seed, options.operations)


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


# --- the page ------------------------------------------------------------------------------------

_QUORUM = f"uniform quorum, x = {X:.3g}"
STRATEGIES = {
    ("leaseholder", 0): "leaseholder",
    ("local", 0): "local",
    (_QUORUM, 0): "quorum",
    (_QUORUM, 1): "strong quorum",
}
"""The four of the source: rule and whether reads are strong -> name."""
NAMES = tuple(STRATEGIES.values())
_BASE, *_OTHERS = NAMES


def _rows() -> dict[str, pd.DataFrame]:
    """Return the rows of each suite; `strategy` is one of the four, or nothing."""
    rows = read_frame(SLIDES.path)
    names = map(STRATEGIES.get, zip(rows["rule"], rows["strong"], strict=True))
    rows["strategy"] = pd.Series(list(names), rows.index, dtype=object)
    return {str(suite): part for suite, part in rows.groupby("suite")}


def _means(rows: pd.DataFrame, value: str, *by: str) -> pd.DataFrame:
    """Return means of a column: a row for each value of `by`, a column for each strategy."""
    return rows.pivot_table(value, list(by), "strategy")


def tables() -> dict[str, str]:
    """Return the tables by their marks on the page."""
    by, checked = _rows(), read_json(CLAIMS.path)
    head = read_json(SLIDES.path.with_suffix(".json"))
    named = [{**row, "where": f"{row['world']}, {row['clients']} clients"}
             for row in rows_of(by["rules"])]  # fmt: skip
    return {
        "machine": f"{machine.sentence(head['machine'])}.",
        "shares": _shares(),
        "four": _four(by["clients"]),
        "reads": _reads(by["reads"]),
        "coin": row_table(
            "x|read ms|write ms|ops/s",
            "{share:.3g}|{read_ms:.2f}|{write_ms:.1f}|{throughput:,.0f}",
            rows_of(_tossed(by["coin"]).reset_index()),
        ),
        "hot": _hot(by["hot"]),
        "consistency": _consistency(by["consistency"]),
        "gateway": _gateway(by["gateway"]),
        "rules": pivot(named, "rule", "where", means("throughput", "read_ms", forms=",.0f .2f")),
        "write latency": _write_latency_table(checked["write latency"]),
        "elections": row_table(
            "reads|failures/elections|stale|otherwise wrong|runs with any|read ms, median/mean",
            "{variant}|{failures:,}/{terms:,}|{stale:,}|{other:,}|{runs_with_any} of {runs}|"
            "{read_p50:.1f}/{read_ms:.1f}",
            checked["elections"],
        ),
    }


def _shares() -> str:
    lines = []
    for n in (3, 5, 7, 101):
        x = uniform_share(n)
        lines.append((n, inclusion_probability(n), f"{x} = {100 * float(x):.2f} %",
                      leader_served(n, x), f"{float(peak_reduction(n, x)):.2f}"))  # fmt: skip
    heads = ("n", "P", "x", "reads served by L", "peak load divided by")
    shown = markdown_table(heads, lines)
    writes = uniform_share(5, Fraction(5, 95), 2)
    return (
        f"{shown}\n\nWith 5 % writes that cost L two reads more than the others, x = {writes} = "
        f"{float(writes):.4f} at n = 5."
    )


def _four(rows: pd.DataFrame) -> str:
    """Return means, and half the range over the seeds."""
    found = rows[rows["clients"] == 70].groupby("strategy")
    lines = []
    for name in NAMES:
        mine, line = found.get_group(name), [name]
        for column, digits in (("throughput", 0), ("read_ms", 2), ("write_ms", 1)):
            half = (mine[column].max() - mine[column].min()) / 2
            line.append(f"{mine[column].mean():,.{digits}f} ± {half:.{digits}f}")
        lines.append(line)
    shown = markdown_table(("strategy", "ops/s", "read ms", "write ms"), lines)
    problem = ReadProblem.uniform(5)
    strategies = (
        ReadStrategy.coin(problem, 1.0),
        ReadStrategy(tuple((((node,), 1.0),) for node in range(5))),
        ReadStrategy.coin(problem, X),
    )
    laws = (bottleneck(RaftCluster(), ReadWorkload(), each).throughput for each in strategies)
    return f"""{shown}

In the long run the laws of the closed loop (`bottleneck`) allow at most
{", ".join(f"{law:,.0f}" for law in laws)} operations per second to the
leaseholder, local and quorum reads."""


def _reads(rows: pd.DataFrame) -> str:
    """Return throughput over the leaseholder's by the share of reads, in the mean of the seeds."""
    found = _means(rows, "throughput", "read_share", "seed")
    gains = found.div(found[_BASE], axis=0).groupby("read_share").mean()
    lines = (
        [f"{100 * share:.0f} %", *(f"{gains[name][share]:.2f}" for name in _OTHERS)]
        for share in gains.index
    )
    return markdown_table(("reads", *_OTHERS), lines)


def _tossed(rows: pd.DataFrame) -> pd.DataFrame:
    """Return means of plain reads by the share of reads of the leaseholder."""
    share = {f"uniform quorum, x = {share:.3g}": share for share in SHARES}
    mine = rows.assign(share=rows["rule"].map(share))[rows["strong"] == 0]
    return mine.groupby("share")[["throughput", "read_ms", "write_ms"]].mean()


def _hot(rows: pd.DataFrame) -> str:
    """Return reads by the hot part of the keys; retries are those per 100 strong reads."""
    plain, strong = _means(rows, "throughput", "hot_fraction"), rows["strategy"] == "strong quorum"
    ops, ms, attempts = (
        rows[strong].pivot_table(column, "hot_fraction", "intent_ms")
        for column in ("throughput", "read_ms", "attempts")
    )
    retries = 100 * (attempts - 1)
    lines = (
        [f"{100 * part:.0f} %", f"{plain[_BASE][part]:,.0f}", f"{plain['quorum'][part]:,.0f}",
         *(f"{ops[life][part]:,.0f}, {retries[life][part]:.2f}, {ms[life][part]:.1f} ms"
           for life in LIVES)]
        for part in HOT
    )  # fmt: skip
    heads = (f"strong, intents {life:.0f} ms" for life in LIVES)
    return markdown_table(("hot part", _BASE, "quorum", *heads), lines)


def _consistency(rows: pd.DataFrame) -> str:
    wrong = rows[rows["apply_lag_ms"] > 0].groupby(["visibility", "apply_lag_ms", "strategy"])
    found = wrong[["stale", "backwards"]].sum().astype(str).agg("/".join, axis=1)
    lines = (
        [seen.value, f"{lag:.0f}",
         *(found[seen.value, lag, name] for name in NAMES)]
        for seen in Visibility for lag in LAGS if lag
    )  # fmt: skip
    shown = markdown_table(("followers answer from", "lag ms", *NAMES), lines)
    each = int(rows["reads"][rows["rule"] == "leaseholder"].sum()) // (2 * len(LAGS))
    return f"{shown}\n\nOf about {each:,} reads each; 200 keys, 30 clients, 20 % writes."


def _gateway(rows: pd.DataFrame) -> str:
    ops, ms = (_means(rows, name, "gateway_ms") for name in ("throughput", "write_ms"))
    more, faster = ops.div(ops[_BASE], axis=0), (1 / ms).mul(ms[_BASE], axis=0)
    lines = (
        [work, f"{ops[_BASE][work]:,.0f}",
         *(f"{more[name][work]:.2f}, {faster[name][work]:.2f}" for name in _OTHERS)]
        for work in GATEWAYS
    )  # fmt: skip
    return markdown_table(("gateway ms", "leaseholder ops/s", *_OTHERS), lines)


def _write_latency_table(rows: Rows) -> str:
    pairs = [pair for pair in zip(rows[::2], rows[1::2], strict=True) if pair[1]["clients"] == 70]
    lines = (
        (f"{4 * new['visit_ms']:g}", f"{new['throughput'] / old['throughput']:.2f}",
         f"{old['write_ms'] / new['write_ms']:.2f}",
         f"{100 * new['leader']:.0f} %/{100 * new['busiest']:.0f} %")
        for old, new in pairs
    )  # fmt: skip
    heads = ("write at L, ms", "throughput, times", "times faster", "L / busiest used")
    return markdown_table(heads, lines)


def draw_figures(folder: Path) -> None:
    """Draw the figure of the page into a folder, from the kept results."""
    rows = _rows()["clients"]
    panels = []
    for column, label in (
        ("throughput", "operations per second"),
        ("write_ms", "write latency, ms"),
    ):
        found, lines = _means(rows, column, "clients"), dict[str, Any]()
        for name in NAMES:
            # plain and strong reads often coincide, and both stay in sight
            line, size = ("--", 4) if name.startswith("strong") else ("-", 8)
            style = {"linestyle": line, "marker": "o", "markersize": size}
            lines[name] = (found.index, found[name], style)
        panels.append(Panel(lines, {"xlabel": "clients", "ylabel": label, "ylim": (0, None)}))
    save_panels(folder / "online-reads-clients.png", panels)


SLIDES = Study(
    "online_reads",
    {suite: functools.partial(_runs, suite) for suite in SUITES},
    {"operations": 25_000, "seeds": 2},
    COLUMNS,
    description=__doc__,
    page="docs/benchmarks/online-reads.md",
    report=tables,
    draw=draw_figures,
)

CLAIMS = Study(
    "online_reads_claims",
    {"write latency": _write_latency, "elections": _elections},
    {"seeds": 2, "operations": 15_000},
    description=__doc__,
)

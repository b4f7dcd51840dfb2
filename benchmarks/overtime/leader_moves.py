"""Gain of leader moves that have a cost: online rules against the optimum.

    python -m benchmarks run overtime.leader_moves            # results, and the tables on stdout

A fleet of all tenant classes, two weeks of half hours. Every database has 7 replicas, the best for
its first week, and 5 voters that are best for each leader (tier 2). Replicas and
voters are chosen on the first week. The second week measures each rule: its scores and moves,
above those of the best sequence of leaders in hindsight
(:mod:`formulations.overtime.leader_sequence`).
Prices are given as the seconds that a change of leader stops the service for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import date

import numpy as np

import placement
from benchmarks.harness.results import Row, markdown_table, read_json
from benchmarks.harness.study import Study
from formulations.overtime.leader_sequence import best_sequences, work_function
from placement import Instance, Problem
from placement.evaluation.score import first_best
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, leader_path, outage_price, path_cost
from placement.overtime.replay import NOBODY, Deployments, Trace, interval_scores
from placement.overtime.replay.generated_fleets import client_ground
from placement.support.checks import FloatArray, IntArray
from placement.workloads import Clients, Database, Timeline, fleet, generate

INTERVAL_SECONDS = 1800.0
WEEK = 7 * 48
REPLICAS, VOTERS = 7, 5
OUTAGES = (0.0, 1.0, 5.0, 10.0, 30.0)
"""Seconds without a leader per move: 0, 0.28, 6.9, 27.8, 250 ms of an interval's mean latency."""
HORIZONS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
DECAYS = (1.0, 1.02, 1.1, 1.5, 2.0, np.inf)


def scores_of(
    instance: Instance,
    clients: Clients,
    databases: Sequence[Database],
    timeline: Timeline,
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """True scores of every leader, (databases, intervals, sites), and operations per interval."""
    question = Problem(instance, replicas=REPLICAS, voters=VOTERS)
    scores, operations, done = [], [], 0
    for block in generate(databases, clients, timeline, seed=seed):
        counts = block.counts.astype(np.float64)
        held = np.zeros((len(counts), len(instance.sites)), dtype=bool)
        for row, issued in zip(held, counts, strict=True):
            first = issued[:WEEK].sum(axis=0)
            problem = Problem(
                instance.replace(counts=first, intervals=()), replicas=REPLICAS, voters=VOTERS
            )
            chosen = placement.solve(problem).configuration
            assert chosen is not None
            row[list(chosen.replicas)] = True
        votes = held & (held.cumsum(axis=1) <= VOTERS)  # tier 2 takes their number alone
        trace = Trace(tuple(each.name for each in block.databases), timeline.labels, counts)
        group = Deployments(held, votes, np.full(len(held), NOBODY))
        scores.append(interval_scores(question, trace, group, tier=2))
        operations.append(counts.sum(axis=(1, 2, 3)) / counts.shape[1])
        print(f"{done + len(counts)} of {len(databases)} databases", file=sys.stderr)
        done += len(counts)
    return np.concatenate(scores), np.concatenate(operations)


def follow_work(scores: FloatArray, price: FloatArray) -> IntArray:
    """Leaders of intervals 2 … T that follow the work function (Borodin, Linial, Saks 1992)."""
    values = work_function(scores[:, :-1], price)
    here = first_best(values[:, 0])
    path = np.empty(values.shape[:2], dtype=np.intp)
    for step in range(values.shape[1]):
        away = np.arange(scores.shape[-1]) != here[:, np.newaxis]
        least = values[:, step] + np.where(away, price[:, np.newaxis], 0.0)
        stay = np.take_along_axis(least, here[:, np.newaxis], axis=-1)[:, 0]
        here = np.where(stay <= least.min(axis=-1) * (1 + 1e-12), here, first_best(least))
        path[:, step] = here
    return path


def measured(scores: FloatArray, price: FloatArray, price_ms: float) -> dict[str, Row]:
    """Rows by strategy."""
    first, second = scores[:, :WEEK], scores[:, WEEK:]
    best = best_sequences(second, price)
    optimum = best.cost.total
    always = leader_path(scores, price, Hysteresis(np.inf), Decay(np.inf))[:, WEEK - 1 :]
    damped = leader_path(scores, price, Hysteresis(np.inf), Decay(2.0))[:, WEEK - 1 :]
    kept = first_best(first.sum(axis=1))[:, np.newaxis]
    static = first_best(second.sum(axis=1))[:, np.newaxis]
    paths: dict[str, IntArray] = {
        "optimum in hindsight": best.path,
        "best static leader in hindsight": np.broadcast_to(static, best.path.shape),
        "never move: best leader of week 1": np.broadcast_to(kept, best.path.shape),
        "always move: best of the last interval": always,
        "decay 2, any gain moves": damped,
        "work function": follow_work(scores, price)[:, WEEK - 1 :],
    }
    # horizon and decay are chosen on the first week, by what the rule pays there on average
    grid = {
        (tau, horizon): leader_path(scores, price, Hysteresis(horizon), Decay(tau))
        for tau in DECAYS
        for horizon in HORIZONS
    }
    paid = {}
    for key, path in grid.items():
        paying = path_cost(first[:, 1:], price, path[:, : WEEK - 1]).total
        paid[key] = float((paying / best_sequences(first[:, 1:], price).cost.total).mean())
    chosen = min(paid, key=lambda key: (paid[key], key))
    paths["hysteresis, chosen on week 1"] = grid[chosen][:, WEEK - 1 :]
    rows: dict[str, Row] = {}
    days = second.shape[1] / 48
    for name, path in paths.items():
        cost = path_cost(second, price, path)
        if (cost.total < optimum * (1 - 1e-9)).any():
            raise SystemExit(f"{name} pays less than the optimum")
        gap = 100 * (cost.total / optimum - 1)
        rows[name] = {
            "price_ms": price_ms,
            "gap_percent_mean": round(float(gap.mean()), 4),
            "gap_percent_p95": round(float(np.percentile(gap, 95)), 4),
            "gap_percent_worst": round(float(gap.max()), 4),
            "moves_per_day": round(float(cost.moves.mean() / days), 4),
            "moving_percent": round(float(100 * (cost.moving / cost.total).mean()), 4),
        }
    rows["hysteresis, chosen on week 1"] = {
        **rows["hysteresis, chosen on week 1"],
        "decay": chosen[0] if np.isfinite(chosen[0]) else "inf",
        "horizon": chosen[1],
    }
    return rows


def tables() -> dict[str, str]:
    """Return the tables of the page, in Markdown, by name."""
    prices = read_json(STUDY.path)["prices"]
    rules = []
    for name in prices[0]["rows"]:
        rows = [each["rows"][name] for each in prices]
        cells = [f"{row['gap_percent_mean']:.2f} % ({row['moves_per_day']:.1f})" for row in rows]
        rules.append([name, *cells])
    outages = [f"{each['outage_seconds']:g} s" for each in prices]
    return {"rules of stability.json": markdown_table(["rule", *outages], rules)}


def _prices(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of all rules for each price."""
    instance = placement.load("world27")
    clients = client_ground(instance).clients  # a city each, in the order of the instance
    timeline = Timeline.of_day(date(2026, 3, 2), intervals=2 * WEEK)
    databases = fleet(clients, options.databases, seed=options.seed, timeline=timeline)
    scores, operations = scores_of(instance, clients, databases, timeline, options.seed)
    for outage in OUTAGES:
        ms = outage_price(outage, INTERVAL_SECONDS)
        rows = measured(scores, ms * operations, ms)
        yield {"outage_seconds": outage, "price_ms": ms, "rows": rows}


STUDY = Study(
    "stability",
    {"prices": _prices},
    {"databases": 400, "seed": 7},
    description=__doc__,
    page="docs/over-time.md",
    report=tables,
)

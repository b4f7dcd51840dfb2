"""Leader, voters and replicas that move at a price: the rule of the watch and the optimum.

    python -m benchmarks run overtime.configuration_moves      # results, and the table on stdout

Tenants with offices at two or three poles, whose demand moves most, on eight sites (the best eight
of world27 for global demand), 4 replicas, 3 voters: 840 configurations, so that the optimum of
:mod:`formulations.overtime.configuration_sequence` is complete. Three days of half hours, a Tuesday
to a Thursday; each rule begins with the best for the first interval and pays from the second on,
against the optimum of the intervals from the second on. Beside the rule of the watch, which asks
``exact`` after every interval, stands the same rule over a list of all 840 configurations.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from datetime import date

import numpy as np

import placement
from benchmarks.harness import machine
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import read_json, save_json
from benchmarks.harness.study import Study
from formulations.overtime.configuration_sequence import best_configurations, interval_scores
from placement import Configuration, Instance, Problem
from placement.overtime.decayed_counts import Decay, decayed_counts
from placement.overtime.moves import (
    Hysteresis,
    MovePrices,
    changes,
    choose,
    outage_price,
    price_table,
)
from placement.overtime.replay.generated_fleets import client_ground
from placement.overtime.watch import WatchSettings, advise
from placement.overtime.watch.recommend import initial_state
from placement.support.checks import FloatArray
from placement.workloads import Database, Office, Timeline, everywhere, generate, mix_shares

__all__ = ["STUDY"]

RESULTS = ROOT / "benchmarks/results/stability_tier3.json"
INTERVALS = 3 * 48
POLES = (
    ("New York", "London"),
    ("Los Angeles", "Tokyo"),
    ("London", "Mumbai"),
    ("New York", "London", "Tokyo"),
    ("Los Angeles", "London", "Mumbai"),
)
FULL = MovePrices(leader=outage_price(10.0, 1800.0), voter=1.0, add=20.0, remove=0.0)
"""Prices in ms: a leader is away for 10 s; a copy is as bad as 20 ms on every operation."""
LEVELS = (0.01, 0.1, 1.0)
RULES = (
    ("never move", np.inf, Hysteresis(0.0)),
    ("always move: best of the last interval", np.inf, Hysteresis(np.inf)),
    ("decay 2, any gain moves", 2.0, Hysteresis(np.inf)),
    ("decay 2, horizon 4", 2.0, Hysteresis(4.0)),
    ("decay 2, horizon 16", 2.0, Hysteresis(16.0)),
    ("decay 2, horizon 64", 2.0, Hysteresis(64.0)),
    ("decay 1.1, horizon 16", 1.1, Hysteresis(16.0)),
)


def worlds(seed: int) -> list[tuple[str, Instance]]:
    """Eight sites, and three days of demand of every tenant."""
    full = placement.load("world27")
    clients = client_ground(full).clients
    world = full.replace(counts=full.counts.sum(axis=0), intervals=())
    best = placement.solve(Problem(world, replicas=8, voters=3))
    rows = full.site_indices(best.replicas)
    small = full.replace(
        sites=best.replicas,
        client_rtt=full.client_rtt[:, rows],
        site_rtt=full.site_rtt[np.ix_(rows, rows)],
        domains={},
        site_coordinates=None,
        counts=full.counts[:1],
        intervals=(),
    )
    timeline = Timeline.of_day(date(2026, 3, 3), intervals=INTERVALS)
    found = []
    for index, cities in enumerate(POLES):
        at = np.array([name in cities for name in clients.names])
        if at.sum() != len(cities):
            raise SystemExit(f"not all of {cities} are clients")
        tail = np.where(at, 0.0, everywhere(clients))
        database = Database(
            index=index,
            name=" + ".join(cities),
            rate=1e5,
            weights=np.where(at, 0.9 / len(cities), 0.1 * tail / tail.sum()),
            mix=mix_shares("oltp"),
            curve=Office(),
        )
        (block,) = generate([database], clients, timeline, seed=seed)
        counts = block.counts[0].astype(np.float64)
        found.append((database.name, small.replace(counts=counts, intervals=timeline.labels)))
    return found


def online(instance: Instance, problem: Problem, settings: WatchSettings) -> list[Configuration]:
    """Configurations of intervals 2 … T by the rule."""
    state, path = initial_state(settings), []
    for label, counts in zip(instance.intervals[:-1], instance.counts[:-1], strict=True):
        state, _ = advise(settings, state, label, counts)
        assert state.current is not None
        path.append(state.current)
    return path


def enumerated(
    instance: Instance, problem: Problem, settings: WatchSettings
) -> list[Configuration]:
    """Configurations of intervals 2 … T by the same rule over a list of all configurations."""
    rules, sites = problem.rules, range(len(instance.sites))
    every = [
        Configuration.of(leader, voters, replicas)
        for replicas in itertools.combinations(sites, rules.replicas_max)
        for voters in itertools.combinations(replicas, rules.voters)
        for leader in voters
    ]
    seen = instance.counts[:-1]
    weights = decayed_counts(np.ones(len(seen)), settings.decay)
    predicted = decayed_counts(seen, settings.decay) / weights[:, np.newaxis, np.newaxis]
    asked = problem.replace(instance=problem.instance.replace(counts=predicted, intervals=()))
    means = interval_scores(asked, every) / predicted.sum(axis=(1, 2))[:, np.newaxis]
    prices = price_table(settings.prices, every, len(instance.sites))
    here, streak, path = int(means[0].argmin()), 0, []
    for number, mean in enumerate(means):
        if number:
            chosen, count = choose(settings.rule, mean, prices[here], here, streak)
            here, streak = int(chosen), int(count)
        path.append(every[here])
    return path


def paid(problem: Problem, prices: MovePrices, path: Sequence[Configuration]) -> tuple[float, int]:
    """Return the cost of a path over the intervals of a problem, and its number of moves."""
    scores = interval_scores(problem, list(dict.fromkeys(path)))
    column = {one: i for i, one in enumerate(dict.fromkeys(path))}
    served = sum(float(scores[t, column[one]]) for t, one in enumerate(path))
    pairs = [changes(a, b) for a, b in itertools.pairwise(path)]
    return served + sum(map(prices.of, pairs)), sum(map(bool, pairs))


def measure(seed: int) -> list[dict[str, object]]:
    """Rows by tenant, prices and rule."""
    rows: list[dict[str, object]] = []
    for name, instance in worlds(seed):
        later = instance.replace(counts=instance.counts[1:], intervals=instance.intervals[1:])
        problem = Problem(later, replicas=4, voters=3)
        operations = float(later.counts.sum() / len(later.intervals))
        for level in LEVELS:
            prices = MovePrices(*(level * p for p in (FULL.leader, FULL.voter, FULL.add)))
            charged = prices.times(operations)
            best = best_configurations(problem, charged)
            if not best.complete:
                raise SystemExit("the optimum is not complete")
            optimum = float(best.cost.total)
            static = best_configurations(problem, MovePrices(*[np.inf] * 4))
            listed: dict[str, float] = {}
            results = {
                "optimum in hindsight": (optimum, int(best.cost.moves)),
                "best static in hindsight": (float(static.cost.total), 0),
            }
            for rule, tau, hysteresis in RULES:
                settings = WatchSettings(problem, Decay(tau), hysteresis, prices)
                path = online(instance, problem, settings)
                results[rule] = paid(problem, charged, path)
                listed[rule], _ = paid(problem, charged, enumerated(instance, problem, settings))
            for rule, (cost, moves) in results.items():
                if cost < optimum * (1 - 1e-9):
                    raise SystemExit(f"{rule} pays less than the optimum")
                rows.append(
                    {
                        "tenant": name,
                        "prices": level,
                        "rule": rule,
                        "gap_percent": round(100 * (cost / optimum - 1), 4),
                        "enumerated_gap_percent": round(
                            100 * (listed.get(rule, cost) / optimum - 1), 4
                        ),
                        "moves_per_day": round(48 * moves / len(later.intervals), 3),
                        "candidates": best.candidates,
                        "feasible": best.feasible,
                    }
                )
            print(f"{name}, prices × {level:g} done", file=sys.stderr)
    return rows


def table(rows: Sequence[dict[str, object]]) -> str:
    """Return the means over tenants as a Markdown table."""
    names = list(dict.fromkeys(str(row["rule"]) for row in rows))
    lines = []
    for name in names:
        cells = [name]
        for level in LEVELS:
            among = [row for row in rows if row["rule"] == name and row["prices"] == level]
            gaps: FloatArray = np.array([row["gap_percent"] for row in among], dtype=float)
            moves = np.array([row["moves_per_day"] for row in among], dtype=float)
            cells.append(f"{gaps.mean():.1f} % ({moves.mean():.1f})")
        lines.append(cells)
    return markdown_table(["rule", *(f"prices × {level:g}" for level in LEVELS)], lines)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=7, help="of the demand")


def _run_study(options: argparse.Namespace) -> int:
    """Run the benchmark."""
    rows = measure(options.seed)
    document = {
        "benchmark": "stability, tier 3",
        "seed": options.seed,
        "machine": machine.describe(["numpy"]),
        "prices_ms": {"leader": FULL.leader, "voter": FULL.voter, "add": FULL.add, "remove": 0.0},
        "rows": rows,
    }
    save_json(RESULTS, document)
    print(table(rows))
    return 0


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("stability_tier3.json",),
    page="docs/over-time.md",
    report=lambda: {"stability_tier3.json": table(read_json(RESULTS)["rows"])},
)

"""Share of optimal answers of `local-search`, gaps of the others, and times.

    python -m benchmarks run local_search [--seeds 3] [--runs 3] [--sites 27] [--results DIR]

Every network of :mod:`benchmarks.harness.tier3_worlds` with every mix, |R| from 3 to 13 and |V| of
1, 3 and 5, beside the bundled ``world27`` with every mix, with and without "survive the loss of a
country". The optimum is that of method ``exact``, proven, or the problem is left out and counted.
Time is the least of a few runs in one process, without the set-up that a problem does once; CPU
time is listed beside wall time, for machines that are shared. For comparison the same figures for
`kq`, `qk` and `best-of`, whose result `local-search` starts from.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import placement
from benchmarks.harness import machine
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.result_files import add_results, save_json, save_rows
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import SITES, world
from placement import Problem
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.support.status import Status
from placement.workloads import MIXES

__all__ = ["STUDY", "MethodGap", "measure", "questions"]

METHODS = ("kq", "qk", "best-of", "local-search")
NETWORKS = ("modelled", "aws-2025", "azure-2025")
SIZES = ((3, 1), (3, 3), (4, 3), (5, 1), (5, 3), (5, 5), (6, 3), (7, 3), (7, 5), (9, 5), (13, 5))
EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class MethodGap:
    """Result of one method on one problem: gap to the optimum, least wall and CPU time in s."""

    problem: str
    mix: str
    replicas: int
    voters: int
    rules: str
    method: str
    gap: float
    seconds: float
    cpu_seconds: float


def questions(seeds: int, sites: int, latency: Path | None) -> Iterator[tuple[str, str, Problem]]:
    """Yield (name, mix, problem)."""
    for mix in MIXES:
        bundled = placement.load("world27", mix=mix)
        for replicas, voters in SIZES:
            yield "world27", mix, Problem(bundled, replicas=replicas, voters=voters)
            if voters > 1:
                yield (
                    "world27",
                    mix,
                    Problem(bundled, replicas=replicas, voters=voters, survive="country"),
                )
        for network in NETWORKS:
            for seed in range(seeds):
                found = world(network, mix, seed, sites, latency=latency)
                if found is None:
                    continue
                for replicas, voters in SIZES:
                    yield (
                        found.instance.name,
                        mix,
                        Problem(found.instance, replicas=replicas, voters=voters),
                    )


def measure(name: str, mix: str, problem: Problem, runs: int) -> list[MethodGap]:
    """Hold every method against the optimum; an empty list when that is not proven in a minute."""
    best = run(load_method("exact"), problem, Options(time_limit=60.0))
    if best.status is not Status.OPTIMAL:
        return []
    rows = []
    for method in METHODS:
        plans, cpu = [], []
        for _ in range(runs):
            started = time.process_time()
            plans.append(run(load_method(method), problem, Options(seed=0)))
            cpu.append(time.process_time() - started)
        rows.append(
            MethodGap(
                problem=name,
                mix=mix,
                replicas=problem.rules.replicas_min,
                voters=problem.rules.voters,
                rules="survive a country" if problem.survive else "",
                method=method,
                gap=plans[0].objective / best.objective - 1,
                seconds=min(plan.seconds for plan in plans),
                cpu_seconds=min(cpu),
            )
        )
    return rows


def summary(rows: Sequence[MethodGap]) -> list[dict[str, object]]:
    """Share of optima, gaps and times by method and by whether there are rules."""
    table: list[dict[str, object]] = []
    for rules in ("", "survive a country"):
        for method in METHODS:
            chosen = [row for row in rows if row.method == method and row.rules == rules]
            if not chosen:
                continue
            gaps = np.array([row.gap for row in chosen])
            ms = 1e3 * np.array([row.seconds for row in chosen])
            cpu = 1e3 * np.array([row.cpu_seconds for row in chosen])
            table.append(
                {
                    "method": method,
                    "rules": rules or "none",
                    "problems": len(chosen),
                    "optimal %": round(100 * float((gaps <= EQUAL).mean()), 2),
                    "over 0.1 %": int((gaps > 1e-3).sum()),
                    "mean gap %": round(100 * float(np.maximum(gaps, 0).mean()), 4),
                    "worst gap %": round(100 * float(gaps.max()), 3),
                    "median ms": round(float(np.median(ms)), 1),
                    "p95 ms": round(float(np.quantile(ms, 0.95)), 1),
                    "worst ms": round(float(ms.max()), 1),
                    "median CPU ms": round(float(np.median(cpu)), 1),
                    "p95 CPU ms": round(float(np.quantile(cpu, 0.95)), 1),
                    "worst CPU ms": round(float(cpu.max()), 1),
                }
            )
    return table


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser, "latency")
    parser.add_argument("--seeds", type=int, default=3, help="instances per network and mix")
    parser.add_argument("--runs", type=int, default=3, help="runs of which the least time counts")
    parser.add_argument("--sites", type=int, default=SITES, help="sites of a generated instance")
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark; exit code 0."""
    rows: list[MethodGap] = []
    unproven = 0
    for name, mix, problem in questions(asked.seeds, asked.sites, asked.latency):
        found = measure(name, mix, problem, asked.runs)
        unproven += not found
        rows.extend(found)
    table = summary(rows)
    for line in table:
        print("  ".join(f"{key}: {value}" for key, value in line.items()))
    misses = [row for row in rows if row.method == "local-search" and row.gap > EQUAL]
    for row in misses:
        print(
            f"missed: {row.problem}, |R| = {row.replicas}, |V| = {row.voters}, {row.rules or 'no'} "
            f"rules, {100 * row.gap:.4f} % above the optimum"
        )
    save_rows(asked.results / "local_search.csv", rows, end="\r\n")
    report = {
        "machine": machine.describe(),
        "seeds": asked.seeds,
        "sites": asked.sites,
        "not proven": unproven,
        "table": table,
        "missed": [dataclasses.asdict(row) for row in misses],
    }
    save_json(asked.results / "local_search.json", report)
    return 0


STUDY = Study(
    __doc__, _add_arguments, _run_study, results=("local_search.csv", "local_search.json")
)

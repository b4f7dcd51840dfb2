"""Time of a sweep over |R|, in units of its slowest cell solved alone.

    python -m benchmarks run exact.sweep                   all sets, some minutes of CPU time
    python -m benchmarks run exact.sweep --sets world27 --voters 3 --repeat 9
    python -m benchmarks run exact.sweep --write-docs      table of docs/methods.md from the file

For each set, operation mix and |V|: ``placement.sweep`` over |R| = 3 to 13 (from |V| on) with
method ``exact``, against ``placement.solve`` of the same questions one by one, each from the
instance to the proven plan, problem included, with the settings that a user gets (so a single plan
keeps its certificate, and a sweep keeps none). The sweep runs after every single question, all of
it `--repeat` times, so that everyone finds the caches as others have left them; the least CPU time
of each counts, and that of the sweep is divided by that of the slowest single question. As in
timeit, the collector of cyclic garbage rests meanwhile: a pass over the whole heap takes longer
than any question here and falls on the last question. Every cell must be proven and worth what the
single answer is worth, or the run stops with an error.

Sets: ``modelled`` and ``aws-2025`` are the networks of :mod:`benchmarks.harness.tier3_worlds` with
32 sites (the measured matrix comes with ``--latency DIR``, else the set is left out), the others
the bundled data sets.

Writes results/exact_sweep.csv in the folder of the benchmarks, one row per set, mix and |V|, set by
set; rows of sets that were not run stay. Exit code 1 when a sweep costs more than three times its
slowest cell.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import placement
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.result_files import RESULTS, Row, add_results, read_rows, save_csv
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import NETWORKS, world
from placement import Instance, Problem
from placement.workloads import MIXES

__all__ = ["HEADS", "STUDY", "measure", "table"]


SETS = ("modelled", "aws-2025", "world27", "aws", "azure")
SITES = 32
SIZES = range(3, 14)
MOST = 3.0
"""Most that a sweep may cost, in times of its slowest cell."""

HEADS = (
    "set",
    "sites",
    "mix",
    "voters",
    "cells",
    "median single ms",
    "slowest single ms",
    "of replicas",
    "all singles ms",
    "sweep ms",
    "sweep / slowest",
    "machine",
)


def _instance(name: str, mix: str, latency: Path | None) -> Instance | None:
    """Return the instance of a set with a mix; None when its matrix is not there."""
    if name not in NETWORKS:
        return placement.load(name, mix=mix)
    made = world(name, mix, seed=1, sites=SITES, latency=latency)
    return None if made is None else made.instance


def _cpu(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def measure(instance: Instance, voters: int, repeat: int) -> tuple[dict[int, float], float]:
    """Return the least CPU seconds of each single question by |R|, and of the sweep.

    Raises
    ------
    placement.SolverError
        When something is not proven, or the sweep and the single answers differ.
    """
    sizes = [size for size in SIZES if voters <= size <= len(instance.sites)]
    single: dict[int, float] = dict.fromkeys(sizes, math.inf)
    together = math.inf
    scores: dict[int, float] = {}

    def alone(size: int) -> None:
        plan = placement.solve(Problem(instance, replicas=size, voters=voters))
        if plan.status != "optimal":
            raise placement.SolverError(f"|R| = {size} is {plan.status}")
        scores[size] = plan.score

    def sweep() -> None:
        cells = placement.sweep(instance, replicas=sizes, voters=voters)
        for size, status, score in zip(sizes, cells["status"], cells["score"], strict=True):
            if status != "optimal" or not math.isclose(score, scores[size], rel_tol=1e-9):
                raise placement.SolverError(f"|R| = {size} of the sweep: {status}, {score!r}")

    gc.collect()
    gc.disable()
    try:
        for round_ in range(repeat):
            for turn in range(len(sizes)):  # everyone comes after everyone else
                size = sizes[(turn + round_) % len(sizes)]
                single[size] = min(single[size], _cpu(partial(alone, size)))
                if len(scores) == len(sizes):
                    together = min(together, _cpu(sweep))
    finally:
        gc.enable()
    return single, together


def rows(name: str, voters: Sequence[int], repeat: int, latency: Path | None) -> Iterator[Row]:
    """Yield the rows of one set; none when its matrix is not there."""
    machine = sentence(describe(("numpy", "pandas")))
    for mix in MIXES:
        instance = _instance(name, mix, latency)
        if instance is None:
            print(f"{name}: no --latency DIR with its matrix, left out", file=sys.stderr)
            return
        for count in voters:
            single, together = measure(instance, count, repeat)
            slowest = max(single, key=lambda size: single[size])
            values = (
                name,
                len(instance.sites),
                mix,
                count,
                len(single),
                f"{1e3 * statistics.median(single.values()):.3f}",
                f"{1e3 * single[slowest]:.3f}",
                slowest,
                f"{1e3 * sum(single.values()):.3f}",
                f"{1e3 * together:.3f}",
                f"{together / single[slowest]:.2f}",
                machine,
            )
            row = dict(zip(HEADS, map(str, values), strict=True))
            print(*list(row.values())[:-1], file=sys.stderr, flush=True)
            yield row


def table(found: Sequence[Row]) -> str:
    """Return the rows as a Markdown table, one line per set and |V|, and what they ran on."""
    lines = []
    for name, sites, voters in dict.fromkeys((r["set"], r["sites"], r["voters"]) for r in found):
        group = [r for r in found if (r["set"], r["voters"]) == (name, voters)]
        group.sort(key=lambda row: float(row["sweep / slowest"]))
        ratio = statistics.median(float(row["sweep / slowest"]) for row in group)
        ends = [f"{float(r['sweep / slowest']):.1f} ({r['mix']})" for r in (group[0], group[-1])]
        ranges = [
            f"{min(values):.1f} to {max(values):.1f}"
            for values in (
                [float(row[head]) for row in group] for head in ("slowest single ms", "sweep ms")
            )
        ]
        lines.append((f"{name}, {sites}", voters, f"{ratio:.1f}", *ends, *ranges))
    ratios = ("sweep / slowest: median of the mixes", "least", "most")
    heads = ("set, sites", "\\|V\\|", *ratios, "slowest single, ms", "sweep, ms")
    machines = dict.fromkeys(row["machine"] for row in found)
    return "\n".join([markdown_table(heads, lines), "", *machines])


def _written(path: Path, new: Sequence[Row], name: str) -> list[Row]:
    """Write the rows of a set, if there are any, in place of those that the file has of it."""
    kept = [row for row in read_rows(path) if row["set"] != name or not new]
    both = sorted([*kept, *new], key=lambda row: SETS.index(row["set"]))
    save_csv(path, HEADS, ([row[head] for head in HEADS] for row in both))
    return both


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--voters", nargs="+", type=int, default=[3, 5])
    add_folder(parser, "latency")
    parser.add_argument("--repeat", type=int, default=5)
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    placement.sweep(placement.load("world27"), replicas=[3, 4], voters=3)  # imports
    found: list[Row] = []
    both: list[Row] = []
    for name in asked.sets:  # finished measurements are kept, whatever happens to the rest
        found += (new := list(rows(name, asked.voters, asked.repeat, asked.latency)))
        both = _written(asked.results / "exact_sweep.csv", new, name)
    print(table(both))
    return int(any(float(row["sweep / slowest"]) > MOST for row in found))


def _report() -> dict[str, str]:
    return {"exact_sweep.csv": table(read_rows(RESULTS / "exact_sweep.csv"))}


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("exact_sweep.csv",),
    page="docs/methods.md",
    report=_report,
)

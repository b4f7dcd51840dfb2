"""Times of the method ``exact`` on demand and networks that are hard for it.

    python -m benchmarks run exact.hard                        modelled networks only
    python -m benchmarks run exact.hard --latency DIR          measured networks too
    python -m benchmarks run exact.hard --tsplib DIR --pmed DIR   p-median instances too
    python -m benchmarks run exact.hard --resume               rows that the file does not have
    python -m benchmarks run exact.hard --write-docs           tables of docs/methods.md

The networks have violated triangles: modelled ones of 120 and 490 sites, and, from the folder that
``--latency`` names, 42 regions of AWS and Azure (Skyplane, 2022), 238 cities (WonderProxy, 2020)
and 490 PlanetLab hosts. The demand of the clients follows a Pareto distribution with exponent 1.2,
or one client issues half of it, or all issue the same. All nine operation mixes; 5 replicas with 5
voters and 9 with 5. Sites are the clients.

Each question is one call of the method with a time limit (``--limit``, wall time), the certificate
left out. A row has the CPU and wall time, the gap at the end, and the gap of the last report in the
first two seconds of CPU time. Every row is written when it is there: a run that was interrupted
goes on with ``--resume``.

The p-median rows of TSPLIB round distances down, as the literature does. Beside them stand the
times of Durán-Mateluna, Alès and Elloumi, "An efficient Benders decomposition for the p-median
problem", EJOR 308 (2023): CPLEX 20.1, one thread of an Intel Xeon W-2145.

Writes results/exact_hard.csv and exact_hard.json in the folder of the benchmarks. Exit code 1 when
a question is left unproven.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast

import numpy as np

from benchmarks.exact.hard_networks import DEMANDS, MEASURED, MODELLED, hard_instance, networks
from benchmarks.exact.p_median_files import or_library, p_median, read_tsplib
from benchmarks.exact.speed import note_runs
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.doc_pages import grouped, lines_table
from benchmarks.harness.machine import hardware
from benchmarks.harness.result_files import (
    RESULTS,
    Row,
    add_results,
    read_json,
    read_rows,
    save_csv,
)
from benchmarks.harness.study import Study
from formulations.exact.branch_and_bound import SearchLimits, search
from formulations.exact.method import METHOD
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.result import SearchReport
from placement import Problem
from placement.errors import InputError, SolverError
from placement.methods.options import Options, Progress
from placement.methods.registry import run
from placement.workloads import MIXES

__all__ = [
    "EARLY",
    "HEADS",
    "PUBLISHED",
    "STUDY",
    "HardQuestion",
    "Published",
    "questions",
    "report",
    "tables",
]


# --- the tables of docs/methods.md --------------------------------------------------------------


HEADS = (
    "group",
    "question",
    "limit_s",
    "cpu_s",
    "wall_s",
    "status",
    "gap",
    "gap_2s",
    "nodes",
    "value",
)


@dataclass(frozen=True)
class Published:
    """Optimum of a p-median and seconds of CPLEX with Benders' decomposition; None: not known."""

    optimum: int | None
    seconds: float | None


PUBLISHED: Mapping[tuple[str, int], Published] = MappingProxyType(
    {
        ("rl1304", 5): Published(3_099_073, 2.8),
        ("rl1304", 10): Published(2_134_295, 15.4),
        ("rl1304", 100): Published(None, 2.4),
        ("fl1400", 300): Published(None, None),
        ("vm1748", 10): Published(None, 10.9),
        ("vm1748", 50): Published(None, 2.8),
        ("pcb3038", 5): Published(None, 55.0),
        ("pcb3038", 10): Published(None, 18.0),
    }
)
"""Instance and p -> what is published (Durán-Mateluna, Alès and Elloumi 2023)."""


def _percent(gap: float) -> str:
    return f"{100 * gap:.2g} %"


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def _network_table(rows: list[Row]) -> str:
    """Return a line for each network."""
    named = [{**row, "network": row["question"].split()[0]} for row in rows]
    lines = []
    for found in grouped(named, "network"):
        times = [float(row["cpu_s"]) for row in found]
        worst = max(found, key=lambda row: float(row["cpu_s"]))
        asked = " ".join(worst["question"].split()[1:])
        lines.append(
            {
                "network, sites": found[0]["network"],
                "proven": f"{sum(row['status'] == 'optimal' for row in found)} of {len(found)}",
                "largest gap after 2 s": _percent(max(float(row["gap_2s"]) for row in found)),
                "median": _seconds(statistics.median(times)),
                "worst": f"{_seconds(max(times))} ({asked})",
            }
        )
    return lines_table(lines)


def _median_table(rows: list[Row]) -> str:
    """Return a line for each p-median."""
    lines = []
    for row in rows:
        name, _, size = row["question"].partition(" p=")
        published = PUBLISHED[name, int(size)].seconds
        proven = row["status"] == "optimal"
        lines.append(
            {
                "instance": name,
                "p": size,
                "value": f"{float(row['value']):,.0f}",
                "status": "optimal" if proven else f"gap {_percent(float(row['gap']))}",
                "CPU time": _seconds(float(row["cpu_s"])),
                "nodes": f"{int(row['nodes']):,}",
                "CPLEX, Benders": "–" if published is None else f"{published:g} s",
            }
        )
    return lines_table(lines)


def tables(rows: Sequence[Row], runs: Mapping[str, Mapping[str, object]]) -> str:
    """Return the rows as Markdown: networks, p-medians, and what they ran on."""
    parts = []
    placed = [row for row in rows if row["group"] not in ("tsplib", "pmed")]
    if placed:
        parts += [_network_table(placed), ""]
    points = [row for row in rows if row["group"] == "tsplib"]
    if points:
        parts += [_median_table(points), ""]
    graphs = [row for row in rows if row["group"] == "pmed"]
    if graphs:
        proven = sum(row["status"] == "optimal" for row in graphs)
        worst = max(graphs, key=lambda row: float(row["cpu_s"]))
        parts += [
            f"OR-Library: {len(graphs)} instances, {proven} proven, "
            f"{_seconds(sum(float(row['cpu_s']) for row in graphs))} together; the worst is "
            f"{worst['question']}, {_seconds(float(worst['cpu_s']))}.",
            "",
        ]
    limits = sorted({float(row["limit_s"]) for row in rows})
    parts += [
        f"Time limit of a question: {', '.join(f'{x:g} s' for x in limits)} of wall time.",
        "",
    ]
    parts.append(hardware(cast("Mapping[str, object]", run["machine"]) for run in runs.values()))
    return "\n".join(parts)


def report() -> dict[str, str]:
    """Return the tables of the page from the kept results."""
    rows, runs = read_rows(RESULTS / "exact_hard.csv"), read_json(RESULTS / "exact_hard.json")
    return {"exact_hard.csv": tables(rows, runs)}


EARLY = 2.0
"""Seconds of CPU time after which the gap is noted."""

GROUPS = (*MODELLED, *MEASURED, "tsplib", "pmed")
"""Names of the groups of questions."""

SIZES = ((5, 5), (9, 5))
"""Replicas and voters."""


@dataclass(frozen=True)
class HardAnswer:
    """Outcome of a question: status, gap at the end and after two seconds, nodes and value."""

    status: str
    gap: float
    early: float
    nodes: int
    value: float


@dataclass(frozen=True)
class HardQuestion:
    """Question to prove; `answer` takes the seconds allowed."""

    group: str
    name: str
    answer: Callable[[float], HardAnswer]


class _EarlyGap:
    """The gap of the last report in the first two seconds; 1 before there is a bound."""

    def __init__(self) -> None:
        self._began = time.process_time()
        self._gap = 1.0

    def note(self, report: Progress | SearchReport) -> None:
        """Take a report."""
        known = math.isfinite(report.incumbent) and report.incumbent > 0
        if known and self._early:
            self._gap = min(1.0, 1 - report.bound / report.incumbent)

    def after(self, gap: float) -> float:
        """Return the gap after two seconds, of a search that ended just now with this gap."""
        return gap if self._early else self._gap

    @property
    def _early(self) -> bool:
        return time.process_time() - self._began <= EARLY


def _placement(problem: Problem) -> Callable[[float], HardAnswer]:
    def answer(seconds: float) -> HardAnswer:
        early = _EarlyGap()
        settings = {"certificate": False}
        options = Options(time_limit=seconds, progress=early.note, settings=settings)
        plan = run(METHOD, problem, options)
        gap = 0.0 if plan.status == "optimal" else plan.gap
        nodes = int(plan.stats["nodes"])
        return HardAnswer(str(plan.status), gap, early.after(gap), nodes, plan.objective)

    return answer


def _medians(core: ReducedProblem) -> Callable[[float], HardAnswer]:
    def answer(seconds: float) -> HardAnswer:
        early = _EarlyGap()
        limits = SearchLimits(seconds=seconds)
        result = search(core, limits=limits, certify=False, listen=early.note)
        gap = 0.0 if result.status == "optimal" else 1 - result.bound / result.score
        nodes = result.counters.nodes
        return HardAnswer(str(result.status), gap, early.after(gap), nodes, result.score)

    return answer


def questions(
    wanted: Sequence[str] | None,
    mixes: Sequence[str],
    latency: Path | None = None,
    tsplib: Path | None = None,
    pmed: Path | None = None,
) -> Iterator[HardQuestion]:
    """Yield all questions whose data are there.

    Parameters
    ----------
    wanted
        Groups; None: all.
    mixes
        Operation mixes.
    latency, tsplib, pmed
        Folders of data; None: there is none.
    """
    for network in networks(wanted, latency):
        for kind in DEMANDS:
            for mix in mixes:
                instance = hard_instance(network, mix, kind, seed=1)
                for replicas, voters in SIZES:
                    problem = Problem(instance, replicas=replicas, voters=voters)
                    name = f"{network.name} {kind} {mix} {replicas}/{voters}"
                    yield HardQuestion(network.name, name, _placement(problem))
    if not wanted or "tsplib" in wanted:
        yield from _tsplib(tsplib)
    if not wanted or "pmed" in wanted:
        for name, core in or_library(pmed):
            yield HardQuestion("pmed", name, _medians(core))


def _tsplib(here: Path | None) -> Iterator[HardQuestion]:
    if here is None:
        print("no --tsplib DIR: the points of TSPLIB are left out", file=sys.stderr)
        return
    for name in dict.fromkeys(name for name, _ in PUBLISHED):
        if not (path := here / f"{name}.tsp").exists():
            print(f"{path.name} is not there and left out", file=sys.stderr)
            continue
        distance = read_tsplib(path)
        for size in (p for other, p in PUBLISHED if other == name):
            core = p_median(distance, np.ones(len(distance)), size)
            yield HardQuestion("tsplib", f"{name} p={size}", _medians(core))


def _measure(question: HardQuestion, limit: float) -> list[str]:
    """Answer a question and return its row; compare the value with the published optimum."""
    began, clock = time.process_time(), time.perf_counter()
    found = question.answer(limit)
    cpu, wall = time.process_time() - began, time.perf_counter() - clock
    name, _, size = question.name.partition(" p=")
    published = PUBLISHED.get((name, int(size))) if question.group == "tsplib" else None
    optimum = published.optimum if published else None
    if optimum is not None and found.status == "optimal" and found.value != optimum:
        raise SolverError(f"{question.name}: {found.value!r}, and the optimum is {optimum}")
    return [
        question.group,
        question.name,
        f"{limit:g}",
        f"{cpu:.3f}",
        f"{wall:.3f}",
        found.status,
        f"{found.gap:.3g}",
        f"{found.early:.3g}",
        str(found.nodes),
        f"{found.value:.12g}",
    ]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--groups", nargs="+", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--mixes", nargs="+", choices=list(MIXES), default=list(MIXES))
    for name in ("latency", "tsplib", "pmed"):
        add_folder(parser, name)
    parser.add_argument(
        "--limit", type=float, default=60.0, metavar="S", help="seconds per question (default 60)"
    )
    parser.add_argument("--resume", action="store_true", help="keep the rows that the file has")
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    table, runs = asked.results / "exact_hard.csv", asked.results / "exact_hard.json"
    unknown = sorted({*(asked.groups or ())} - {*GROUPS})
    if unknown:
        raise InputError(
            "unknown group", field="--groups", value=unknown[0], expected=", ".join(GROUPS)
        )
    rows = {row["question"]: list(row.values()) for row in read_rows(table)}
    left = 0
    folders = (asked.latency, asked.tsplib, asked.pmed)
    for question in questions(asked.groups, asked.mixes, *folders):
        if not (asked.resume and question.name in rows):
            row = _measure(question, asked.limit)
            rows[question.name] = row
            print(*row[1:], file=sys.stderr, flush=True)
            ordered = sorted(rows.values(), key=lambda cells: GROUPS.index(cells[0]))
            save_csv(table, HEADS, ordered)
            note_runs(runs, [question.group], 1, None)
        left += rows[question.name][HEADS.index("status")] != "optimal"
    print(f"{len(rows)} rows, {left} of the questions asked are unproven")
    return int(left > 0)


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("exact_hard.csv", "exact_hard.json"),
    page="docs/methods.md",
    report=report,
)

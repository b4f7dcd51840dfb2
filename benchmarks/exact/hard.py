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
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.exact.hard_networks import DEMANDS, MEASURED, MODELLED, hard_instance, networks
from benchmarks.exact.hard_table import HEADS, PUBLISHED, report
from benchmarks.exact.p_median_files import p_median, read_pmed, read_tsplib
from benchmarks.exact.speed_table import note_runs
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.result_files import add_results, read_rows, save_csv
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

__all__ = ["EARLY", "STUDY", "HardQuestion", "questions"]

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
        yield from _pmed(pmed)


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


def _pmed(here: Path | None) -> Iterator[HardQuestion]:
    if here is None:
        print("no --pmed DIR: the graphs of the OR-Library are left out", file=sys.stderr)
        return
    for number in range(1, 41):
        if not (path := here / f"pmed{number}.txt").exists():
            continue
        graph = read_pmed(path)
        nodes = len(graph.distances)
        core = p_median(graph.distances, np.ones(nodes), graph.medians)
        yield HardQuestion("pmed", f"pmed{number} n={nodes} p={graph.medians}", _medians(core))


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

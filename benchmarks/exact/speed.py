"""Times of the method ``exact`` to a proven optimum, on every kind of instance it is made for.

    python -m benchmarks run exact.speed                  all groups, an hour
    python -m benchmarks run exact.speed --only small   27 to 32 sites only
    python -m benchmarks run exact.speed --latency DIR --pmed DIR --tsplib DIR   measured ones too
    python -m benchmarks run exact.speed --resume         rows that the file does not have
    python -m benchmarks run exact.speed --write-docs     tables of docs/methods.md from the file

Every question is one call of the method, as `solve` makes it: from the problem to the plan, with
the proof, the certificate left out. Networks up to 48 sites are those of
:mod:`benchmarks.harness.tier3_worlds`; larger ones, hard ones and p-medians are those of
:mod:`benchmarks.exact.networks`. All nine operation mixes. Hard networks have violated triangles,
and their demand is Pareto, or one client issues half of it, or all issue the same. Times are CPU
seconds of the process, which runs on one core; the least of `--repeat` runs counts, and what takes
more than five seconds is run once. The p-medians of TSPLIB round distances down, as the literature
does; beside them stand the times of Durán-Mateluna, Alès and Elloumi, "An efficient Benders
decomposition for the p-median problem", EJOR 308 (2023): CPLEX 20.1, an Intel Xeon W-2145.

Writes results/exact_speed.csv, a row per question as soon as it is there, with the most memory that
the process held (Linux), and what each group ran on as exact_speed.json. Exit code 1 when a
question is left unproven.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np

from benchmarks.exact.networks import (
    DEMANDS,
    MEASURED,
    MODELLED,
    drawn_medians,
    hard_instance,
    networks,
    or_library,
    p_median,
    plane,
    read_tsplib,
    scattered,
)
from benchmarks.exact.scale_cell import Gaps
from benchmarks.harness.machine import SOLVERS, hardware, most_memory, watch_memory
from benchmarks.harness.results import RESULTS, Row, existing_rows, grouped, lines_table, read_json
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import world
from formulations.exact.branch_and_bound import SearchLimits, search
from formulations.exact.method import METHOD
from formulations.exact.reduced_problem import ReducedProblem
from placement import Instance, Problem
from placement.errors import SolverError
from placement.methods.options import Options, Progress
from placement.methods.registry import run
from placement.workloads import MIXES

EARLY = 2.0
"""CPU seconds after which the gap is noted, as one moment of several."""

Folders: TypeAlias = Mapping[str, Path | None]
"""Folders of data by name: "latency", "pmed", "tsplib"."""


class Found(NamedTuple):
    """Outcome of a question."""

    status: str
    gap: float
    nodes: int
    value: float


Listener: TypeAlias = Callable[[Progress], None] | None
Ask: TypeAlias = Callable[[float, Listener], Found]
"""Seconds allowed, and what is told of progress -> outcome."""

Questions: TypeAlias = Iterator[tuple[str, Ask]]
"""Name of each question, and how it is asked."""


@dataclass(frozen=True)
class SpeedGroup:
    """Questions of a kind; `gap` is their gap limit, 0: a proof, `limit` the seconds of each."""

    name: str
    words: str
    limit: float
    questions: Callable[[], Questions]
    gap: float = 0.0


# --- questions ----------------------------------------------------------------------------------


def _placed(instance: Instance, replicas: int, voters: int, gap: float = 0.0) -> Ask:
    problem = Problem(instance, replicas=replicas, voters=voters)

    def ask(seconds: float, listen: Listener) -> Found:
        options = Options(
            time_limit=seconds, gap_limit=gap, progress=listen, settings={"certificate": False}
        )
        plan = run(METHOD, problem, options)
        return Found(str(plan.status), plan.gap, int(plan.stats["nodes"]), plan.objective)

    return ask


def _medians(core: ReducedProblem) -> Ask:
    def ask(seconds: float, listen: Listener) -> Found:
        found = search(core, limits=SearchLimits(seconds=seconds), certify=False, listen=listen)
        gap = 0.0 if found.score == found.bound else 1 - found.bound / found.score
        return Found(str(found.status), gap, found.counters.nodes, found.score)

    return ask


_SMALL = ((3, 1), (3, 3), (5, 3), (7, 5), (9, 1), (9, 5), (13, 7))


def _regional(sizes: Sequence[tuple[str, int]], latency: Path | None) -> Questions:
    for network, sites in sizes:
        for mix in MIXES:
            made = world(network, mix, seed=1, sites=sites, latency=latency)
            if made is None:
                print(f"{network}: no --latency DIR with its matrix, left out", file=sys.stderr)
                break
            for replicas, voters in _SMALL:
                name = f"{network} {len(made.sites)} {mix} {replicas}/{voters}"
                yield name, _placed(made, replicas, voters)


def _large(sites: int, clients: int, *counts: tuple[int, int], gap: float = 0.0) -> Questions:
    for mix in MIXES:
        instance = scattered(sites, clients, mix, seed=1)
        for replicas, voters in counts:
            name = f"{sites} x {clients} {mix} {replicas}/{voters}"
            yield name, _placed(instance, replicas, voters, gap)


def _hard(name: str, latency: Path | None) -> Questions:
    for network in networks([name], latency):
        for kind in DEMANDS:
            for mix in MIXES:
                instance = hard_instance(network, mix, kind, seed=1)
                for replicas, voters in ((5, 5), (9, 5)):
                    asked = f"{network.name} {kind} {mix} {replicas}/{voters}"
                    yield asked, _placed(instance, replicas, voters)


def _cores(
    made: Callable[..., Iterator[tuple[str, ReducedProblem]]], *arguments: object
) -> Questions:
    for name, core in made(*arguments):
        yield name, _medians(core)


PUBLISHED: Mapping[tuple[str, int], tuple[int | None, float | None]] = MappingProxyType(
    {
        ("rl1304", 5): (3_099_073, 2.8),
        ("rl1304", 10): (2_134_295, 15.4),
        ("rl1304", 100): (None, 2.4),
        ("fl1400", 300): (None, None),
        ("vm1748", 10): (None, 10.9),
        ("vm1748", 50): (None, 2.8),
        ("pcb3038", 5): (None, 55.0),
        ("pcb3038", 10): (None, 18.0),
    }
)
"""Instance and p -> optimum, and seconds of CPLEX with Benders' decomposition, as far as they are
published (Durán-Mateluna, Alès and Elloumi 2023)."""


def _tsplib(here: Path | None) -> Questions:
    for name in dict.fromkeys(name for name, _ in PUBLISHED):
        if here is None or not (path := here / f"{name}.tsp").exists():
            print(f"{name}: no --tsplib DIR with its points, left out", file=sys.stderr)
            continue
        distance = read_tsplib(path)
        for size in (p for other, p in PUBLISHED if other == name):
            yield f"{name} p={size}", published(name, size, _medians(p_median(distance, size)))


def published(name: str, size: int, ask: Ask) -> Ask:
    """Return a question; an answer that is not the published optimum is a SolverError."""
    optimum, _ = PUBLISHED[name, size]

    def checked(seconds: float, listen: Listener) -> Found:
        found = ask(seconds, listen)
        if optimum is not None and found.status == "optimal" and found.value != optimum:
            raise SolverError(f"{name} p={size}: {found.value!r}, and the optimum is {optimum}")
        return found

    return checked


TSPLIB, LARGEST = "tsplib", "1000 x 5000"


def groups(folders: Folders | None = None) -> tuple[SpeedGroup, ...]:
    """Return all groups; those of folders that are not given have no questions."""
    data = folders or {}
    latency = data.get("latency")
    small = [("modelled", 27), ("modelled", 32), ("aws-2025", 27), ("aws-2025", 32)]
    large, medians, tenth = partial(partial, _large), partial(partial, _cores), 0.001
    return (
        SpeedGroup("small", "27 to 32 sites, modelled and measured (AWS)", 60,
                   partial(_regional, small, latency)),
        SpeedGroup("medium", "48 sites, measured (Azure)", 60,
                   partial(_regional, [("azure-2025", 48)], latency)),
        SpeedGroup("100 x 200", "100 sites × 200 clients", 60, large(100, 200, (5, 3), (9, 5))),
        SpeedGroup("200 x 400", "200 sites × 400 clients", 120, large(200, 400, (5, 3), (9, 5))),
        SpeedGroup("500 x 500", r"500 sites × 500 clients, \|R\| = 9", 120,
                   large(500, 500, (9, 5))),
        SpeedGroup("p-median", "OR-Library pmed1 to pmed40", 60,
                   medians(or_library, data.get("pmed"))),
        SpeedGroup("p-median drawn", "40 networks drawn like pmed1 to pmed40", 60,
                   medians(drawn_medians)),
        SpeedGroup("p-median 900", "p-median, 900 × 900, p = 5", 60,
                   medians(plane, 900, 900, (5,))),
        SpeedGroup("p-median large", "p-median, 1,000 × 5,000, p = 5 and 10", 300,
                   medians(plane, 1000, 5000, (5, 10))),
        SpeedGroup(LARGEST, r"1,000 sites × 5,000 clients, \|R\| = 5", 300,
                   large(1000, 5000, (5, 3))),
        SpeedGroup("1000 x 5000, 9", r"the same, \|R\| = 9, to a gap of 0.1 %", 300,
                   large(1000, 5000, (9, 5), gap=tenth), tenth),
        *(SpeedGroup(name, f"hard: {name.replace('-', ', ')} sites", 60,
                     partial(_hard, name, latency)) for name in (*MODELLED, *MEASURED)),
        SpeedGroup(TSPLIB, "", 60, partial(_tsplib, data.get("tsplib"))),
    )  # fmt: skip


# --- measuring ----------------------------------------------------------------------------------


def measure(group: SpeedGroup, name: str, ask: Ask, repeat: int) -> Row:
    """Prove a question `repeat` times and return its row; the least time counts."""
    cpu, walls = [], []
    watched = watch_memory()
    for _ in range(repeat):
        early = Gaps()
        began, clock = time.process_time(), time.perf_counter()
        found = ask(group.limit, early.note)
        cpu.append(time.process_time() - began)
        walls.append(time.perf_counter() - clock)
        if cpu[-1] > 5:
            break
    gap = 0.0 if found.status == "optimal" else found.gap
    return {
        "group": group.name,
        "question": name,
        "limit_s": f"{group.limit:g}",
        "cpu_s": f"{min(cpu):.6f}",
        "wall_s": f"{min(walls):.6f}",
        "status": found.status,
        "gap": f"{gap:.3g}",
        "gap_2s": f"{early.after(gap, cpu[-1])[EARLY]:.3g}",
        "nodes": str(found.nodes),
        "value": f"{found.value:.12g}",
        "memory_mb": f"{most_memory():.0f}" if watched else "",
    }


def _asked(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of a group: what is kept, and else what is measured."""
    folders = {folder: vars(options)[folder] for folder in _FOLDERS}
    (group,) = (one for one in groups(folders) if one.name == name)
    for question, ask in group.questions():
        if options.match in question:
            kept = options.kept.get((name, question))
            yield kept or measure(group, question, ask, options.repeat)


_FOLDERS = ("latency", "pmed", "tsplib")
_GAPS = {group.name: group.gap for group in groups()}


# --- the tables of docs/methods.md --------------------------------------------------------------


def _time(seconds: float) -> str:
    """Three significant digits at most, in ms below a second."""
    if seconds < 1:
        return f"{1e3 * seconds:.2g} ms" if seconds < 0.1 else f"{1e3 * seconds:.0f} ms"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _largest(rows: Iterable[Row], head: str) -> str:
    gaps = [float(row[head]) * (head != "gap" or row["status"] != "optimal")
            for row in rows if row[head]]  # fmt: skip
    return f"{100 * max(gaps):.3g} %" if gaps else ""


def _medians_table(rows: Iterable[Row]) -> str:
    lines = []
    for row in rows:
        name, _, size = row["question"].partition(" p=")
        _, known = PUBLISHED[name, int(size)]
        proven = row["status"] == "optimal"
        lines.append(
            {
                "instance": name,
                "p": size,
                "value": f"{float(row['value']):,.0f}",
                "status": "optimal" if proven else f"gap {_largest([row], 'gap')}",
                "CPU time": _time(float(row["cpu_s"])),
                "nodes": f"{int(row['nodes']):,}",
                "CPLEX, Benders": "–" if known is None else f"{known:g} s",
            }
        )
    return lines_table(lines)


def report() -> dict[str, str]:
    """Return the tables of the page: groups and what they ran on, and p-medians of TSPLIB."""
    found = {
        rows[0]["group"]: rows
        for rows in grouped(existing_rows(RESULTS / "exact_speed.csv"), "group")
    }
    runs = read_json(RESULTS / "exact_speed.json")
    lines = []
    for group in groups():
        if group.name == TSPLIB or group.name not in found:
            continue
        rows = found[group.name]
        times = [float(row["cpu_s"]) for row in rows]
        worst = rows[int(np.argmax(times))]["question"]
        lines.append(
            {
                "sites × clients": group.words,
                "proven": f"{sum(row['status'] == 'optimal' for row in rows)}/{len(rows)}",
                "largest gap": _largest(rows, "gap"),
                "after 2 s": _largest(rows, "gap_2s"),
                "median": _time(statistics.median(times)),
                "worst": f"{_time(max(times))} ({worst})",
            }
        )
    memory = max(float(row["memory_mb"]) for row in found[LARGEST])
    about = f"Most memory at 1,000 sites × 5,000 clients, \\|R\\| = 5: {memory:,.0f} MB."
    machines = hardware(run["machine"] for run in runs.values())
    return {
        "exact_speed.csv": "\n".join([lines_table(lines), "", about, machines]),
        "p-medians of TSPLIB": _medians_table(found[TSPLIB]),
    }


STUDY = Study(
    "exact_speed",
    {name: partial(_asked, name) for name in _GAPS},
    {"repeat": 3, "match": ""},
    ("group", "question", "limit_s", "cpu_s", "wall_s", "status", "gap", "gap_2s", "nodes", "value",
     "memory_mb"),
    packages=SOLVERS,
    apart=True,
    folders=_FOLDERS,
    group="group",
    key=("group", "question"),
    good=lambda row: row["status"] == "optimal" or float(row["gap"]) <= _GAPS[row["group"]],
    description=__doc__,
    page="docs/methods.md",
    report=report,
)  # fmt: skip

"""Times of the method ``exact`` to a proven optimum, on every kind of instance it is made for.

    python -m benchmarks run exact.speed                  all groups, three quarters of an hour
    python -m benchmarks run exact.speed --groups small   27 to 32 sites only
    python -m benchmarks run exact.speed --repeat 5       least of five runs for each question
    python -m benchmarks run exact.speed --write-docs     table of docs/methods.md from the files

Every question is one call of the method, as `solve` makes it: from the problem to the plan, with
the proof, the certificate left out (``--certificate`` keeps it). Networks up to 48 sites are those
of :mod:`benchmarks.harness.tier3_worlds`, measured and modelled; larger ones are modelled around
the bundled cities. All nine operation mixes, |R| and |V| as printed. A group's line gives the
median and the worst over its questions of the least time of each, how many were left with a larger
gap than asked for (0.1 % in the last group, none in the others) at the time limit, and what is
aimed at. Times are CPU times of the process, which runs on one core: on an idle machine they are
wall times, and on a busy one they still mean something; the file has both. `first` is a fresh
interpreter: start, imports and the first plan, for 32 sites.

Prints a table and writes results/exact_speed.csv, one row per question, and exact_speed.json, what
each group ran on; what there is of groups that were not run stays. A file row has the most memory
that the process held while it was answered, problem included, where the system tells (Linux).
"""

from __future__ import annotations

import argparse
import copy
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import cast

import numpy as np

from benchmarks.exact.p_median_files import or_library, p_median
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.doc_pages import grouped, lines_table
from benchmarks.harness.machine import describe, hardware
from benchmarks.harness.result_files import RESULTS, Row, read_json, read_rows, save_csv, save_json
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import demand, world
from benchmarks.harness.timing import command, most_memory, watch_memory
from formulations.exact.branch_and_bound import Result, SearchLimits, search
from formulations.exact.method import METHOD
from formulations.exact.reduced_problem import ReducedProblem
from placement import Instance, Problem, datasets
from placement.datasets.distance_rtt import modelled_rtt
from placement.methods.options import Options
from placement.methods.registry import run
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.workloads import MIXES, mix_shares

__all__ = ["FIRST_PLAN", "GROUP_WORDS", "note_runs", "report", "table"]


# --- the table of docs/methods.md ---------------------------------------------------------------


GROUP_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "small": ("27 to 32 sites, modelled and measured (AWS)", "2 ms, 50 ms"),
        "medium": ("48 sites, measured (Azure)", "10 ms, 300 ms"),
        "100 x 200": ("100 sites × 200 clients", "0.1 s, 2 s"),
        "200 x 400": ("200 sites × 400 clients", "0.5 s, 10 s"),
        "500 x 500": ("500 sites × 500 clients, \\|R\\| = 9", "worst 30 s"),
        "p-median": ("OR-Library pmed1 to pmed40", ""),
        "p-median drawn": ("40 networks drawn like pmed1 to pmed40", "5 s together"),
        "p-median 900": ("p-median, 900 × 900, p = 5", "0.2 s"),
        "p-median large": ("p-median, 1,000 × 5,000, p = 5 and 10", "300 s"),
        "1000 x 5000": ("1,000 sites × 5,000 clients, \\|R\\| = 5", "300 s"),
        "1000 x 5000, 9": ("the same, \\|R\\| = 9, to a gap of 0.1 %", "300 s"),
    }
)
"""Group of the file -> what it is, and the median and worst time aimed at."""

LARGEST = "1000 x 5000"
"""Group whose memory the table tells."""

FIRST_PLAN = "first plan"
"""Key of the first plan of a fresh interpreter in the file of runs."""


def note_runs(path: Path, groups: Iterable[str], repeat: int, first: float | None) -> None:
    """Note in a JSON file what some groups ran on, beside the notes of other groups.

    Parameters
    ----------
    path
        The file.
    groups
        Groups that were run just now.
    repeat
        Runs of each question.
    first
        Seconds from the start of a fresh interpreter to its first plan; None: not measured.
    """
    runs = read_json(path)
    machine = describe()
    for group in groups:
        runs[group] = {"repeat": repeat, "machine": machine}
    if first is not None:
        runs[FIRST_PLAN] = {"seconds": round(first, 3), "machine": machine}
    save_json(path, runs)


def _time(seconds: float) -> str:
    """Three significant digits at most, in ms below a second."""
    if seconds < 1:
        return f"{1e3 * seconds:.2g} ms" if seconds < 0.1 else f"{1e3 * seconds:.0f} ms"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _percent(gap: float) -> str:
    """Three significant digits."""
    return f"{100 * gap:.3g} %"


def table(rows: Iterable[Row], runs: Mapping[str, Mapping[str, object]]) -> str:
    """Return the rows as a Markdown table, a line per group, and what they ran on."""
    groups = {found[0]["group"]: found for found in grouped(rows, "group")}
    body = []
    for group, (what, aim) in GROUP_WORDS.items():
        if (found := groups.get(group)) is None:
            continue
        times = [float(row["cpu_s"]) for row in found]
        worst = max(found, key=lambda row: float(row["cpu_s"]))
        open_gaps = (float(row["gap"]) * (row["status"] != "optimal") for row in found)
        one = f"{worst['question']}, {int(worst['nodes']):,} nodes"
        body.append(
            {
                "sites × clients": what,
                "questions": len(found),
                "proven": sum(row["status"] == "optimal" for row in found),
                "largest gap": _percent(max(open_gaps)),
                "median": _time(statistics.median(times)),
                "worst": _time(max(times)),
                "together": _time(sum(times)),
                "aim": aim,
                "the worst": one if len(found) > 1 else "",
            }
        )
    lines = [lines_table(body), ""]
    memory = [float(row["memory_mb"]) for row in groups.get(LARGEST, ())]
    if memory:
        lines.append(f"Most memory at {GROUP_WORDS[LARGEST][0]}: {max(memory):,.0f} MB.")
    first = runs.get(FIRST_PLAN)
    if first is not None:
        lines.append(
            f"First plan of a fresh interpreter, 32 sites, imports included: {first['seconds']} s"
            " of wall time (aim: 0.5 s)."
        )
    lines.append(hardware(cast("Mapping[str, object]", run["machine"]) for run in runs.values()))
    return "\n".join(lines)


def report() -> dict[str, str]:
    """Return the table of the page from the kept results."""
    rows, runs = read_rows(RESULTS / "exact_speed.csv"), read_json(RESULTS / "exact_speed.json")
    return {"exact_speed.csv": table(rows, runs)}


RadiusMinimum = Callable[[float], tuple[str, float, int]]
"""Seconds allowed -> status, gap, nodes."""


@dataclass(frozen=True)
class SpeedQuestion:
    """Question to prove."""

    group: str
    name: str
    answer: RadiusMinimum


@dataclass(frozen=True)
class SpeedRow:
    """Line of the file; `memory` in MB, NaN where the system does not tell."""

    group: str
    question: str
    seconds: float
    wall: float
    status: str
    gap: float
    nodes: int
    memory: float


@dataclass(frozen=True)
class SpeedGroup:
    """Questions of a size, and the times aimed at: median and worst, in seconds.

    `gap` is the gap limit of the questions; 0: a proof.
    """

    name: str
    median: float
    worst: float
    limit: float
    questions: Callable[[int], Iterator[SpeedQuestion]]
    gap: float = 0.0


def _ask(problem: Problem, certificate: bool, gap: float = 0.0) -> RadiusMinimum:
    def answer(seconds: float) -> tuple[str, float, int]:
        options = Options(time_limit=seconds, gap_limit=gap, settings={"certificate": certificate})
        plan = run(METHOD, problem, options)
        return str(plan.status), plan.gap, int(plan.stats["nodes"])

    return answer


def _ask_core(core: ReducedProblem) -> RadiusMinimum:
    def answer(seconds: float) -> tuple[str, float, int]:
        result: Result = search(core, limits=SearchLimits(seconds=seconds), certify=False)
        gap = 0.0 if result.score == result.bound else 1 - result.bound / result.score
        return str(result.status), gap, result.counters.nodes

    return answer


def _regional(
    group: str,
    networks: Sequence[tuple[str, int]],
    counts: Sequence[tuple[int, int]],
    keep: bool,
    latency: Path | None,
) -> Iterator[SpeedQuestion]:
    for network, sites in networks:
        for mix in MIXES:
            made = world(network, mix, seed=1, sites=sites, latency=latency)
            if made is None:
                print(f"{network}: no --latency DIR with its matrix, left out", file=sys.stderr)
                break
            for replicas, voters in counts:
                problem = Problem(made.instance, replicas=replicas, voters=voters)
                name = f"{network} {len(made.instance.sites)} {mix} {replicas}/{voters}"
                yield SpeedQuestion(group, name, _ask(problem, keep))


@lru_cache(maxsize=1)
def _strewn(
    sites: int, clients: int, seed: int
) -> tuple[FloatArray, FloatArray, np.random.Generator]:
    """RTTs from clients and between sites, strewn around the cities, and the draws that follow."""
    rng = np.random.default_rng([seed, sites, clients])
    cities = np.array([(city.lat, city.lon) for city in datasets.cities()])

    def places(count: int) -> FloatArray:
        near = cities[rng.integers(len(cities), size=count)] + rng.normal(0, 2, (count, 2))
        longitude = (near[:, 1] + 180) % 360 - 180
        return np.asarray(np.column_stack([near[:, 0].clip(-80, 80), longitude]))

    return *modelled_rtt(places(sites), places(clients), rng), rng


def _scattered(sites: int, clients: int, mix: str, seed: int) -> Instance:
    """Sites and clients strewn around the bundled cities, RTTs modelled from distance."""
    rtt, between, draws = _strewn(sites, clients, seed)
    rng = copy.deepcopy(draws)  # every mix on the same network
    return Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"c{i}" for i in range(clients)),
        client_rtt=rtt,
        site_rtt=between,
        counts=demand(mix_shares(mix), clients, rng),
        operations=STANDARD_OPERATIONS,
        name=f"{sites} x {clients}",
    )


def _large(
    group: str,
    size: tuple[int, int],
    counts: Sequence[tuple[int, int]],
    keep: bool,
    gap: float = 0.0,
) -> Iterator[SpeedQuestion]:
    for mix in MIXES:
        instance = _scattered(*size, mix, seed=1)
        for replicas, voters in counts:
            problem = Problem(instance, replicas=replicas, voters=voters)
            name = f"{size[0]} x {size[1]} {mix} {replicas}/{voters}"
            yield SpeedQuestion(group, name, _ask(problem, keep, gap))


LIBRARY_SIZES = [
    *(
        (n, p)
        for n in (100, 200, 300, 400, 500, 600)
        for p in (5, 10, n // 10, n // 5, round(n / 3))
    ),
    *((700, p) for p in (5, 10, 70, 140)),
    *((n, p) for n in (800, 900) for p in (5, 10, n // 10)),
]
"""n and p of pmed1 to pmed40."""


def _drawn(group: str) -> Iterator[SpeedQuestion]:
    """Forty networks drawn by the rule of the OR-Library's, with its sizes.

    n²/50 edges between random nodes, a random tree among them, whole lengths from 1 to 100.
    """
    for number, (nodes, size) in enumerate(LIBRARY_SIZES, start=1):
        rng = np.random.default_rng([1985, number])
        edges = nodes * nodes // 50
        tree = [(int(rng.integers(0, i)), i) for i in range(1, nodes)]
        others = rng.integers(0, nodes, (max(0, edges - len(tree)), 2))
        distance = np.full((nodes, nodes), np.inf)
        for i, j in [*tree, *((int(i), int(j)) for i, j in others)]:
            distance[i, j] = distance[j, i] = float(rng.integers(1, 101))
        np.fill_diagonal(distance, 0)
        for k in range(nodes):
            np.minimum(distance, distance[:, k : k + 1] + distance[k], out=distance)
        core = p_median(distance, np.ones(nodes), size)
        yield SpeedQuestion(group, f"drawn {number} n={nodes} p={size}", _ask_core(core))


def _plane(group: str, sites: int, clients: int, sizes: Sequence[int]) -> Iterator[SpeedQuestion]:
    """Points in a square; whole distances and unit weights where sites are the clients."""
    rng = np.random.default_rng(sites + clients)
    points = 1000 * rng.random((sites, 2))
    homes = points if sites == clients else 1000 * rng.random((clients, 2))
    distance = np.sqrt((homes[:, :1] - points[:, 0]) ** 2 + (homes[:, 1:] - points[:, 1]) ** 2)
    weight = np.ones(clients)
    if sites == clients:
        distance = np.floor(distance)
    else:
        weight = rng.lognormal(0, 1, clients)
    for size in sizes:
        core = p_median(distance, weight, size)
        yield SpeedQuestion(group, f"plane {sites} x {clients} p={size}", _ask_core(core))


TENTH = 0.001
"""A gap of 0.1 %."""

SMALL = [(3, 1), (3, 3), (5, 3), (7, 5), (9, 1), (9, 5), (13, 7)]


def groups(
    keep: bool, latency: Path | None = None, pmed: Path | None = None
) -> tuple[SpeedGroup, ...]:
    """Return all groups.

    Parameters
    ----------
    keep
        Whether the certificate is asked for.
    latency, pmed
        Folders of measured latencies and of the p-median files; None: there is none.
    """
    small = [("modelled", 27), ("modelled", 32), ("aws-2025", 27), ("aws-2025", 32)]
    return (
        SpeedGroup(
            "small", 0.002, 0.05, 60, lambda _: _regional("small", small, SMALL, keep, latency)
        ),
        SpeedGroup(
            "medium",
            0.01,
            0.3,
            60,
            lambda _: _regional("medium", [("azure-2025", 48)], SMALL, keep, latency),
        ),
        SpeedGroup(
            "100 x 200",
            0.1,
            2,
            60,
            lambda _: _large("100 x 200", (100, 200), [(5, 3), (9, 5)], keep),
        ),
        SpeedGroup(
            "200 x 400",
            0.5,
            10,
            120,
            lambda _: _large("200 x 400", (200, 400), [(5, 3), (9, 5)], keep),
        ),
        SpeedGroup(
            "500 x 500", 30, 30, 120, lambda _: _large("500 x 500", (500, 500), [(9, 5)], keep)
        ),
        SpeedGroup(
            "p-median",
            0.2,
            5,
            60,
            lambda _: (
                SpeedQuestion("p-median", name, _ask_core(core)) for name, core in or_library(pmed)
            ),
        ),
        SpeedGroup("p-median drawn", 0.125, 5, 60, lambda _: _drawn("p-median drawn")),
        SpeedGroup("p-median 900", 0.5, 5, 60, lambda _: _plane("p-median 900", 900, 900, (5,))),
        SpeedGroup(
            "p-median large",
            300,
            300,
            300,
            lambda _: _plane("p-median large", 1000, 5000, (5, 10)),
        ),
        SpeedGroup(
            "1000 x 5000",
            300,
            300,
            300,
            lambda _: _large("1000 x 5000", (1000, 5000), [(5, 3)], keep),
        ),
        SpeedGroup(
            "1000 x 5000, 9",
            300,
            300,
            300,
            lambda _: _large("1000 x 5000, 9", (1000, 5000), [(9, 5)], keep, TENTH),
            TENTH,
        ),
    )


FIRST = """
import numpy as np
import placement

draw = np.random.default_rng(0)
place = draw.normal(size=(32, 3))
rtt = np.linalg.norm(place[:, None] - place, axis=2) * 60.0
names = tuple(f"s{i}" for i in range(32))
counts = draw.integers(1, 10_000, (32, 5))
world = placement.Instance(names, names, rtt, rtt, counts)
assert placement.solve(placement.Problem(world, replicas=5, voters=3)).status == "optimal"
"""


def measure(group: SpeedGroup, repeat: int) -> Iterator[SpeedRow]:
    """Prove every question of a group, `repeat` times each; the least time counts."""
    for question in group.questions(repeat):
        seconds, walls = [], []
        watched = watch_memory()
        for _ in range(repeat):
            started, clock = time.process_time(), time.perf_counter()
            status, gap, nodes = question.answer(group.limit)
            seconds.append(time.process_time() - started)
            walls.append(time.perf_counter() - clock)
            if seconds[-1] > 5:
                break
        memory = most_memory() if watched else math.nan
        yield SpeedRow(
            group.name, question.name, min(seconds), min(walls), status, gap, nodes, memory
        )


HEAD = ["group", "question", "cpu_s", "wall_s", "status", "gap", "nodes", "memory_mb"]


def _write(path: Path, rows: Sequence[SpeedRow]) -> None:
    """Write the rows, and keep those that the file has of groups that were not run."""
    new = {row.group for row in rows}
    kept = [list(row.values()) for row in read_rows(path) if row["group"] not in new]
    kept += [
        [
            row.group,
            row.question,
            f"{row.seconds:.6f}",
            f"{row.wall:.6f}",
            row.status,
            f"{row.gap:.3g}",
            str(row.nodes),
            f"{row.memory:.0f}",
        ]
        for row in rows
    ]
    save_csv(path, HEAD, kept, end="\r\n")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    every = groups(keep=False)
    parser.add_argument("--groups", nargs="+", choices=[group.name for group in every])
    add_folder(parser, "latency")
    add_folder(parser, "pmed")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--certificate", action="store_true")


def _run_study(arguments: argparse.Namespace) -> int:
    """Run the benchmark and return the exit code: 1 when something was left unproven."""
    left = 0
    print("CPU times in ms; aimed at: median, worst")
    print(f"{'group':<16}{'questions':>10}{'unproven':>10}{'median':>10}{'worst':>11}   aimed at")
    for group in groups(arguments.certificate, arguments.latency, arguments.pmed):
        if arguments.groups and group.name not in arguments.groups:
            continue
        found = list(measure(group, arguments.repeat))
        if not found:
            continue
        times = sorted(1e3 * row.seconds for row in found)
        open_ones = sum(row.status != "optimal" and row.gap > group.gap for row in found)
        left += open_ones
        print(
            f"{group.name:<16}{len(found):>10}{open_ones:>10}{statistics.median(times):>10.2f}"
            f"{times[-1]:>11.1f}   {1e3 * group.median:g}, {1e3 * group.worst:g}"
            f"   worst: {max(found, key=lambda row: row.seconds).question}",
            flush=True,
        )
        _write(RESULTS / "exact_speed.csv", found)
        note_runs(RESULTS / "exact_speed.json", [group.name], arguments.repeat, None)
    if not arguments.groups:
        try:
            first = command([sys.executable, "-c", FIRST], runs=5)
        except subprocess.CalledProcessError as error:
            print(error.stderr.decode(), file=sys.stderr)
            return 1
        print(f"first plan in a fresh interpreter: {1e3 * first.least:.0f} ms, aimed at: 500")
        note_runs(RESULTS / "exact_speed.json", [], arguments.repeat, first.least)
    return int(left > 0)


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("exact_speed.csv", "exact_speed.json"),
    page="docs/methods.md",
    report=report,
)

"""Growth of time and memory with sites, clients and replicas, beside an older build and peers.

    python -m benchmarks run exact.scale                       this build alone
    python -m benchmarks run exact.scale --baseline DIR        and a built checkout of another
    python -m benchmarks run exact.scale --baseline DIR --resume --only mean "N-1 worst"
    python -m benchmarks run exact.scale --write-docs          page and picture from the results

Networks and demand are drawn (``scale_cell.py``): points on a sphere, with RTTs that keep all
triangles or break them; all clients alike, log-normal with σ = 3, or one client with half. Every
question runs in a process of its own, the two builds one after the other. Limits and times are CPU
seconds, because a busy machine shares its processors; a limit interrupts the call. Peers answer the
questions of the last rows (``pip install 'replica-placement[peers]'``).

Writes results/exact_scale.csv, a row per question and build, and what they ran on as
exact_scale.json. Each row is written when it is there: ``--resume`` keeps those of the file.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.exact.scale_cell import EARLY, Ask
from benchmarks.harness.machine import ROOT, SOLVERS, hardware
from benchmarks.harness.pictures import COLOURS, Panel, save_panels
from benchmarks.harness.results import RESULTS, Row, grouped, lines_table, read_json, read_rows
from benchmarks.harness.study import Study

BEFORE, NOW = "before", "now"
HEADS = ("row", "question", "build", "cpu_s", "wall_s", "part_s", "memory_mb", "part_mb", "status",
         "gap", *(f"gap_{moment:g}s" for moment in EARLY), "value", "nodes", "note")  # fmt: skip
LIMIT, MEMORY = 30.0, 6.0  # CPU seconds and GB of a question
LONG: dict[str, Any] = {"limit": 200.0}  # of the questions that one of the builds needs longer for
PLAIN: Ask = {"goal": "mean", "network": "broken", "demand": "lognormal", "mix": "social",
         "replicas": 5, "voters": 3}  # fmt: skip


def questions() -> Iterator[tuple[str, str, Ask]]:
    """Yield the row of the page, the name there, and what differs from :data:`PLAIN`."""
    ask: dict[str, Any]
    for sites in (250, 500, 1000, 1740, 2500):
        yield "mean", f"{sites:,} sites", {"sites": sites} | (LONG if sites > 1000 else {})
    for network in ("metric", "broken"):
        for demand in ("even", "lognormal", "half"):
            ask = {"sites": 500, "network": network, "demand": demand}
            yield "demand", f"{network}, {demand}", ask
    for clients in (200, 800, 3200):
        ask = {"sites": 200, "clients": clients}
        yield "clients", f"{clients:,} clients", ask
    for replicas in (3, 6, 12):
        yield "replicas", f"|R| = {replicas}", {"sites": 200, "replicas": replicas}
    for goal, sizes in (("worst", (60, 120, 235, 490)), ("weighted", (120, 235, 490)),
                        ("p99", (48, 235, 490))):  # fmt: skip
        for sites in sizes:
            row = goal if goal == "p99" else f"N-1 {goal}"
            ask = {"sites": sites, "goal": goal}
            yield row, f"{sites} sites", ask | (LONG if goal == "p99" or sites == 490 else {})
    for goal, sites in (("mean", 60), ("mean", 235), ("mean", 1000), ("worst", 60)):
        ask = {"sites": sites, "goal": goal, "check": True}
        yield "check", f"{goal}, {sites:,} sites", ask
    for databases, gap in ((30, 1e-6), (300, 1e-6), (1000, 1e-3)):
        ask = {"goal": "fleet", "databases": databases, "seed": 1, "gap": gap}
        yield "fleet", f"{databases:,} databases to {gap:g}", ask
    reads: Ask = {"mix": "reads", "voters": 1}
    for size in (10, 300):
        ask = {"sites": 1400, "network": "clusters", "demand": "even", "replicas": size, **reads}
        yield "many replicas", f"1,400 points, p = {size}", ask
    yield "shell", "27 sites", {"goal": "shell"}
    for sites in (82, 235, 490):
        for method in ("exact", "milp", "peer/pbp-pmedian", "peer/spopt", "peer/scip"):
            ask = {"sites": sites, "method": method, **reads}
            yield "peers", f"{sites} sites, {method}", ask
    for method in ("exact", "milp", "cp-sat", "peer/monolithic-milp"):
        yield "peers, tier 3", method, {"sites": 19, "method": method}


# --- measuring ------------------------------------------------------------------------------------


def measure(row: str, question: str, asked: Ask, build: str, folder: Path) -> Row:
    """Answer a question by the build of a folder, in a process of its own."""
    ask = {**PLAIN, "limit": LIMIT, "memory_gb": MEMORY, **asked}
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    # one thread, so that CPU times compare
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("scale_cell.py")
    done = subprocess.run(
        [sys.executable, "-P", str(script), json.dumps(ask)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: Row = {"status": "failed"}
    if done.returncode == 0:
        found = json.loads(done.stdout.splitlines()[-1])
    else:
        print(done.stderr[-500:], file=sys.stderr)
    found |= {"row": row, "question": question, "build": build}
    cells = ((head, found.get(head, "")) for head in HEADS)
    return {head: f"{cell:.6g}" if isinstance(cell, float) else cell for head, cell in cells}


def _asked(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of a part: what is kept, and else what is measured."""
    builds = {NOW: ROOT}
    if options.baseline is not None and not name.startswith("peers"):
        builds = {BEFORE: options.baseline.resolve(), **builds}
    for row, question, ask in questions():
        for build, folder in builds.items() if row == name else ():
            kept = options.kept.get((name, question, build))
            yield kept or measure(name, question, ask, build, folder)


# --- the page -------------------------------------------------------------------------------------


def _number(row: Row | None, head: str) -> float:
    return float(row[head]) if row is not None and row.get(head) else math.nan


def _seconds(row: Row | None, head: str = "cpu_s") -> str:
    """Return a time; where nothing was proven, the gap too."""
    if row is None:
        return "–"
    value = _number(row, head)
    if math.isnan(value):
        return str(row["status"]) if head == "cpu_s" else "–"
    gap = _number(row, "gap")
    left = f", gap {100 * gap:.2g} %" if head == "cpu_s" and gap > 0 else ""
    return f"{value:.3g}{left}"


def _ratio(before: Row | None, now: Row | None, head: str) -> str:
    """Return now / before; nothing where one was not measured."""
    ratio = _number(now, head) / _number(before, head) if _number(before, head) > 0 else math.nan
    return "–" if math.isnan(ratio) else f"{ratio:.2g}"


def _line(before: Row | None, now: Row) -> dict[str, object]:
    """Return a question as a line of a table."""
    line: dict[str, object] = {"question": now["question"].replace("|", "\\|")}
    if before is not None:
        line |= {
            "before, s": _seconds(before),
            "now, s": _seconds(now),
            "now / before": _ratio(before, now, "cpu_s"),
        }
    else:
        line |= {"time, s": _seconds(now)}
    if now["part_s"]:
        if now["row"] == "check":
            line["check / solve"] = f"{_number(now, 'part_s') / _number(now, 'cpu_s'):.2g}"
        if before is not None:
            line |= {"part before, s": _seconds(before, "part_s")}
        line |= {"part now, s": _seconds(now, "part_s"), "ratio": _ratio(before, now, "part_s")}
    for moment in EARLY:
        head = f"gap_{moment:g}s"
        each = [f"{100 * _number(one, head):.3g}" for one in (before, now) if one is not None]
        if now[head]:
            line[f"gap after {moment:g} s, %"] = " → ".join(dict.fromkeys(each)).replace("nan", "–")
    each = [f"{_number(one, 'memory_mb'):,.0f}" for one in (before, now) if one is not None]
    return line | {"memory, MB": " → ".join(dict.fromkeys(each))}


def _growth(rows: list[Row], head: str) -> tuple[list[float], list[float], float]:
    """Return sizes, values and the exponent of the fitted power; the proven questions only."""
    points = [
        (
            float(row["question"].replace(",", "").replace("|R| = ", "").split()[0]),
            _number(row, head),
        )
        for row in rows
        if row["status"] == "optimal" and _number(row, head) > 0
    ]
    if len(points) < 2:
        return [], [], math.nan
    sizes, values = map(list, zip(*points, strict=True))
    return sizes, values, float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


GROWING = {
    "mean": "Mean latency, by sites",
    "clients": "Mean latency, 200 sites, by clients",
    "replicas": "Mean latency, 200 sites, by replicas",
    "N-1 worst": "The mean after the worst loss of a site",
    "p99": "The 99th percentile; of it building the distributions",
}
"""Rows whose growth is fitted, in words."""


def report() -> dict[str, str]:
    """Return the tables of the page by name, from the kept results."""
    rows, runs = read_rows(RESULTS / "exact_scale.csv"), read_json(RESULTS / "exact_scale.json")
    tables = {"machine": hardware(run["machine"] for run in runs.values())}
    for found in grouped(rows, "row"):
        each = {(row["question"], row["build"]): row for row in found}
        lines = [
            _line(each.get((row["question"], BEFORE)), row) for row in found if row["build"] == NOW
        ]
        heads = dict.fromkeys(k for line in lines for k, cell in line.items() if cell != "0")
        tables[found[0]["row"]] = lines_table(lines, heads)
    exponents = []
    for name, words in GROWING.items():
        now = [row for row in rows if row["row"] == name and row["build"] == NOW]
        old = [row for row in rows if row["row"] == name and row["build"] == BEFORE]
        fits = [_growth(one, head)[2] for head in ("cpu_s", "memory_mb") for one in (old, now)]
        named = ("time before", "time now", "memory before", "memory now")
        cells = ("–" if math.isnan(x) else f"{x:.2f}" for x in fits)
        exponents.append({"by": words, **dict(zip(named, cells, strict=True))})
    return {**tables, "growth": lines_table(exponents)}


def draw(folder: Path) -> None:
    """Draw time and memory by size."""
    rows = read_rows(RESULTS / "exact_scale.csv")
    panels = []
    for head, label in (("cpu_s", "CPU seconds"), ("memory_mb", "memory in MB")):
        lines: dict[str, Any] = {}
        for place, name in enumerate(GROWING):
            for build, style in ((NOW, "-"), (BEFORE, ":")):
                found = [row for row in rows if row["row"] == name and row["build"] == build]
                sizes, values, power = _growth(found, head)
                shown = f"{name}, {power:.1f}" if build == NOW else f"_{name}"
                lines[shown] = (sizes, values,
                                {"ls": style, "marker": ".", "color": COLOURS[place]})  # fmt: skip
        axes = {"xlabel": "sites (clients, replicas)", "ylabel": f"{label} (dotted: before)"}
        panels.append(Panel(lines, axes | {"xscale": "log", "yscale": "log"}))
    save_panels(folder / "exact-scale.png", panels)


STUDY = Study(
    "exact_scale",
    {
        name: functools.partial(_asked, name)
        for name in dict.fromkeys(row for row, *_ in questions())
    },
    {},
    HEADS,
    packages=SOLVERS,
    apart=True,
    folders=("baseline",),
    group="row",
    key=("row", "question", "build"),
    good=lambda row: row["status"] != "failed" or row["row"].startswith("peers"),
    description=__doc__,
    page="docs/benchmarks/scale.md",
    report=report,
    draw=draw,
)

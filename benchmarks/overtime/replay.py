"""Replays over generated demand: what moving is worth, strategies, tiers, memory, speed, figures.

    python -m benchmarks run overtime.replay                 everything: minutes of processor time
    python -m benchmarks run overtime.replay --quick         fewer databases; writes nothing
    python -m benchmarks run overtime.replay --only fleets   a part; the others keep what they had

Writes ``benchmarks/results/replay.json`` and the pictures ``docs/figures/replay-*.png``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import cast

from benchmarks.harness import machine
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import read_json, save_json
from benchmarks.harness.study import Study
from benchmarks.overtime.replay_experiments import fleets, memory, moving, speed, tier3
from benchmarks.overtime.replay_figures import FIGURES, PAPER, Drawn, figure_1
from benchmarks.overtime.replay_page import page, table

RESULTS = ROOT / "benchmarks/results/replay.json"
PICTURES = ROOT / "docs/figures"
PARTS = ("moving", "fleets", "memory", "tier3", "figures", "speed")

Document = dict[str, object]


def _measure(
    part: str, seed: int, quick: bool, drawn: dict[int, Drawn], latency: Path | None
) -> Document:
    """Run a part; its tables by name."""
    if part == "moving":
        return {"moving": moving(seed, latency, days=2 if quick else 7)}
    if part == "fleets":
        rows, replays = fleets(seed, 60 if quick else 1000)
        drawn[1] = figure_1(replays)
        return {"fleets": rows, "figure 1": drawn[1].numbers}
    if part == "memory":
        return {"memory": memory(seed, 40 if quick else 400)}
    if part == "tier3":
        databases = 4 if quick else 48
        lines, seconds, result = tier3(seed, databases)
        return {
            "tier3": lines,
            "tier3 databases": databases,
            "tier3 cpu_seconds": round(seconds, 1),
            "tier3 proven share": result.proven,
        }
    if part == "figures":
        for number, draw in FIGURES.items():
            drawn[number] = draw(seed)
        return {f"figure {number}": each.numbers for number, each in drawn.items() if number != 1}
    return {"speed": speed(seed, 100 if quick else 1000)}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser, "latency")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="small, and writes nothing")


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark and return the exit code."""
    document: Document = {} if asked.quick else read_json(RESULTS)
    drawn: dict[int, Drawn] = {}
    for part in asked.only:
        started = time.process_time()
        found = _measure(part, asked.seed, asked.quick, drawn, asked.latency)
        document.update(found)
        for name, value in found.items():
            if isinstance(value, list):
                print(f"{name}\n{table(cast('list[Document]', value))}\n")
            else:
                print(f"{name}: {json.dumps(value)}\n")
        print(f"{part}: {time.process_time() - started:.0f} s of processor", file=sys.stderr)
    if asked.quick:
        return 0
    document.update(
        {
            "benchmark": "replay",
            "seed": asked.seed,
            "paper": PAPER,
            "machine": machine.describe(["numpy", "pandas", "pyarrow"]),
        }
    )
    save_json(RESULTS, document)
    for number, each in drawn.items():
        each.figure.savefig(PICTURES / f"replay-figure-{number}.png", dpi=110)
    return 0


def _report() -> str:
    return page(read_json(RESULTS))


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("replay.json",),
    page="docs/benchmarks/replay.md",
    report=_report,
)

"""Replays over generated demand: what moving is worth, strategies, tiers, memory, speed, figures.

    python -m benchmarks run overtime.replay                 everything: minutes of processor time
    python -m benchmarks run overtime.replay --quick         fewer databases; writes nothing
    python -m benchmarks run overtime.replay --only fleets   a part; the others keep what they had

Writes ``benchmarks/results/replay.json`` and the pictures ``docs/figures/replay-*.png``.

The page of :mod:`benchmarks.overtime.replay`, from its results.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from benchmarks.harness import machine
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import Row, read_json, save_json
from benchmarks.harness.study import Study
from benchmarks.overtime.replay_experiments import fleets, memory, moving, speed, tier3
from benchmarks.overtime.replay_figures import FIGURES, PAPER, Drawn, figure_1

__all__ = ["page", "table"]

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


def table(rows: Sequence[Row], heads: Mapping[str, str] | None = None) -> str:
    """Return rows as a Markdown table, with the columns and headings of `heads`, or all."""
    names = heads or {name: name for name in rows[0]}
    cells = ([_cell(row.get(name)) for name in names] for row in rows)
    return markdown_table(list(names.values()), cells)


def _cell(value: object) -> str:
    return "–" if value is None else str(value)


def _moving(rows: Sequence[Row]) -> str:
    merged = [
        {
            **row,
            "dynamic": _range(row, "dynamic"),
            "realised": _range(row, "realised"),
            "static": _range(row, "static"),
        }
        for row in rows
    ]
    return table(
        merged,
        {
            "network": "network",
            "mix": "mix",
            "candidates": "candidates",
            "tenants": "tenants",
            "count": "number",
            "dynamic": "dynamic gain",
            "realised": "realised",
            "static": "static gain",
            "moves_per_day": "moves a day",
        },
    )


def _range(row: Row, name: str) -> str:
    least, median, most = (float(str(row[f"{name}_{x}"])) for x in ("least", "median", "most"))
    return f"{least:.1f} – **{median:.1f}** – {most:.1f}"


_STRATEGY = {
    "tier": "tier",
    "strategy": "strategy",
    "databases": "databases",
    "mean_latency": "mean ms",
    "overhead_mean": "mean",
    "overhead_median": "median",
    "overhead_p95": "p95",
    "moves": "moves",
}


def _figures(document: Mapping[str, object]) -> str:
    paper = cast("dict[str, str]", document["paper"])
    sections = []
    for number in (1, 3, 5, 6, 7):
        numbers = cast("dict[str, object]", document[f"figure {number}"])
        said = {str(key): value for key, value in paper.items()}[str(number)]
        lines = [
            f"### Figure {number}",
            "",
            f"The paper: {said}. Ours:",
            "",
            f"![After Figure {number}](../figures/replay-figure-{number}.png)",
            "",
        ]
        rows: list[Row] = [
            {"": name, **cast("dict[str, object]", value)}
            for name, value in numbers.items()
            if isinstance(value, dict)
        ]
        if rows:
            lines.append(table(rows))
        else:
            lines.append(table([{"": name, "value": value} for name, value in numbers.items()]))
        sections.append("\n".join(lines))
    return "\n\n".join(sections)


def page(document: Mapping[str, object]) -> str:
    """Return the page."""
    rows = {
        name: cast("list[Row]", document[name])
        for name in ("moving", "fleets", "memory", "tier3", "speed")
    }
    described = cast("dict[str, object]", document["machine"])
    return f"""# Replays, measured

Generated by `python -m benchmarks run overtime.replay` (seed {
        document["seed"]
    }); do not edit. For the interpretation, see
[over time](../over-time.md).

{machine.sentence(described)}. Times are processor times.

## What moving is worth

Per cent; least, **median** and most over the tenants of a class, for a week of half hours, tier 1.
*Dynamic*: the oracle against the best leader that never moves, known afterwards. *Realised*: the
strategy `optimized` (τ = 2), which does not know the future, against the same. *Static*: the best
leader that never moves against the worst. *5 planned*: five voters from the proven plan for the
whole week's demand; *all sites*: every site may lead. `aws-2025` (32 regions) and `azure` (48) are
measured networks, the others modelled.

{_moving(rows["moving"])}

## Strategies

Per cent of a database's total score above the oracle of the same tier, over the databases where the
strategy is defined; 47 half hours, τ = 2. *Planned*: 7 replicas, 5 voters from the proven plan for
the database's first half hour; *scattered*: 7 sites at random, 5 of which vote.

{
        table(
            rows["fleets"],
            {"network": "network", "deployment": "deployment", "mixes": "mixes", **_STRATEGY},
        )
    }

## Tier 3

{document["tier3 databases"]} databases on `world27`, 5 replicas, 3 voters, {
        document["tier3 cpu_seconds"]
    } s
for all tiers and strategies; {
        100 * float(str(document["tier3 proven share"])):.1f} % of the oracle's
plans are proven optimal.

*copies*: replicas copied to a new site, per database and day.

{table(rows["tier3"], {**_STRATEGY, "copies": "copies"})}

## How much to remember

`optimized` in tier 1 on `world27`, scattered deployments, by length of interval and τ of Eq. 2.

{
        table(
            rows["memory"],
            {
                "minutes": "minutes",
                "decay": "τ",
                "overhead_mean": "above the oracle, mean %",
                "overhead_p95": "p95 %",
                "moves": "moves a day",
            },
        )
    }

## Speed

{table(rows["speed"], {"what": "what", "size": "size", "cpu_seconds": "processor s"})}

The paper: under 1.5 minutes on 12 cores for tiers 1 and 2, 48 intervals, all its databases (their
number is not given).

## Figures

{_figures(document)}
"""

"""Replays over generated demand: what moving is worth, strategies, tiers, memory, speed, figures.

    python -m benchmarks run overtime.replay                 everything: minutes of processor time
    python -m benchmarks run overtime.replay --quick         fewer databases; writes nothing
    python -m benchmarks run overtime.replay --only fleets   a part; the others keep what they had

Writes ``benchmarks/results/replay.json`` and the pictures ``docs/figures/replay-*.png``. The page
of the documentation shows medians; ``python -m benchmarks report`` shows all rows of the file.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from benchmarks.harness import machine
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import Row, read_json, save_json
from benchmarks.harness.study import Study
from benchmarks.overtime.replay_experiments import fleets, memory, moving, speed, tier3
from benchmarks.overtime.replay_figures import FIGURES, Drawn, figure_1

__all__ = ["table", "tables"]

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
            "machine": machine.describe(["numpy", "pandas", "pyarrow"]),
        }
    )
    save_json(RESULTS, document)
    for number, each in drawn.items():
        each.figure.savefig(PICTURES / f"replay-figure-{number}.png", dpi=110)
    return 0


def _report() -> dict[str, str]:
    return tables(read_json(RESULTS))


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


def _span(rows: Sequence[Row], name: str) -> str:
    values = [float(row[name]) for row in rows]
    return f"{min(values):.1f}–{max(values):.1f}"


def _moving(rows: Sequence[Row]) -> str:
    """Return the range over the networks of the medians, by mix, candidates and tenants."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["mix"], row["candidates"], row["tenants"]), []).append(row)
    shown = ("dynamic_median", "realised_median", "static_median", "moves_per_day")
    return markdown_table(
        ("mix", "candidates", "tenants", "dynamic", "realised", "static", "moves a day"),
        ((*key, *(_span(mine, name) for name in shown)) for key, mine in groups.items()),
    )


def _by_strategy(rows: Sequence[Row], columns: Mapping[str, Mapping[str, object]]) -> str:
    """Return "mean (p95)" above the oracle: a row per strategy, a column per set of conditions."""
    found = {
        (row["strategy"], head): f"{row['overhead_mean']:.1f} ({row['overhead_p95']:.1f})"
        for head, wanted in columns.items()
        for row in rows
        if all(row[name] == value for name, value in wanted.items())
    }
    names = [name for name in dict.fromkeys(row["strategy"] for row in rows) if name != "oracle"]
    cells = ([name, *(found.get((name, head), "–") for head in columns)] for name in names)
    return markdown_table(["strategy", *columns], cells)


def _memory(rows: Sequence[Row]) -> str:
    found = {
        (row["decay"], row["minutes"]): f"{row['overhead_mean']:.2f} ({row['moves']:.1f})"
        for row in rows
    }
    minutes = dict.fromkeys(row["minutes"] for row in rows)
    cells = (
        [decay, *(found[decay, length] for length in minutes)]
        for decay in dict.fromkeys(row["decay"] for row in rows)
    )
    return markdown_table(["τ", *(f"{length} minutes" for length in minutes)], cells)


def _figure(numbers: Mapping[str, object]) -> str:
    """Return the numbers of a figure: a row for each curve, or for each number."""
    rows: list[Row] = [
        {"": name, **(value if isinstance(value, dict) else {"value": value})}
        for name, value in numbers.items()
    ]
    return table(rows)


def _copies(rows: Sequence[Row]) -> str:
    shown = {"strategy": "strategy", "moves": "leader moves", "copies": "copies"}
    wanted = ("optimized", "static", "oracle")
    return table([row for row in rows if row["tier"] == 3 and row["strategy"] in wanted], shown)


def tables(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables of the page, by name."""
    fleets_shown = {
        f"{network}, {deployment}, tier {tier}": {
            "network": network, "deployment": deployment, "tier": tier, "mixes": "all mixes",
        }
        for network in ("azure", "world27")
        for deployment in ("planned", "scattered")
        for tier in (1, 2)
    }  # fmt: skip
    tiers = {f"tier {tier}": {"tier": tier} for tier in (1, 2, 3)}
    return {
        "machine": f"Machine: {machine.sentence(document['machine'])}. Times are processor times.",
        "moving": _moving(document["moving"]),
        "fleets": _by_strategy(document["fleets"], fleets_shown),
        "tier3": _by_strategy(document["tier3"], tiers),
        "copies": _copies(document["tier3"]),
        "memory": _memory(document["memory"]),
        "speed": table(document["speed"], {"what": "what", "size": "size", "cpu_seconds": "s"}),
        **{f"figure {number}": _figure(document[f"figure {number}"]) for number in (1, *FIGURES)},
    }

"""The table of docs/methods.md that shows what :mod:`benchmarks.exact.speed` measured."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import describe, hardware
from benchmarks.harness.result_files import (
    RESULTS,
    read_json,
    read_rows,
    save_json,
)

__all__ = ["FIRST", "GROUPS", "note_runs", "report", "table"]


GROUPS: Mapping[str, tuple[str, str]] = MappingProxyType(
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

HEADS = (
    "sites × clients",
    "questions",
    "proven",
    "largest gap",
    "median",
    "worst",
    "together",
    "aim",
    "the worst",
)

LARGEST = "1000 x 5000"
"""Group whose memory the table tells."""

FIRST = "first plan"
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
        runs[FIRST] = {"seconds": round(first, 3), "machine": machine}
    save_json(path, runs)


def _time(seconds: float) -> str:
    """Three significant digits at most, in ms below a second."""
    if seconds < 1:
        return f"{1e3 * seconds:.2g} ms" if seconds < 0.1 else f"{1e3 * seconds:.0f} ms"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def _percent(gap: float) -> str:
    """Three significant digits."""
    return f"{100 * gap:.3g} %"


def table(rows: Iterable[Mapping[str, str]], runs: Mapping[str, Mapping[str, object]]) -> str:
    """Return the rows as a Markdown table, a line per group, and what they ran on."""
    groups: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for row in rows:
        groups[row["group"]].append(row)
    body = []
    for group, (what, aim) in GROUPS.items():
        found = groups.get(group)
        if not found:
            continue
        times = [float(row["cpu_s"]) for row in found]
        worst = max(found, key=lambda row: float(row["cpu_s"]))
        cells = (
            what,
            str(len(found)),
            str(sum(row["status"] == "optimal" for row in found)),
            _percent(max(float(row["gap"]) * (row["status"] != "optimal") for row in found)),
            _time(statistics.median(times)),
            _time(max(times)),
            _time(sum(times)),
            aim,
            f"{worst['question']}, {int(worst['nodes']):,} nodes" if len(found) > 1 else "",
        )
        body.append(cells)
    lines = [markdown_table(HEADS, body), ""]
    memory = [float(row["memory_mb"]) for row in groups.get(LARGEST, ())]
    if memory:
        lines.append(f"Most memory at {GROUPS[LARGEST][0]}: {max(memory):,.0f} MB.")
    first = runs.get(FIRST)
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

"""The tables and figures of the page of dynamic replication, from the kept results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.doc_pages import averaged, markdown_table, row_table
from benchmarks.harness.pictures import Panel, save_panels
from benchmarks.harness.result_files import read_json, read_rows
from benchmarks.online.dynamic import EXPERIMENTS, LATENCY, MECHANISM, OTHER_KEYS, K
from benchmarks.online.tables import Rows, mean, pick, span


def tables() -> dict[str, str]:
    """Return the tables by their marks on the page."""
    parts = read_json(EXPERIMENTS.path)["parts"]
    writers: dict[str, Callable[[Any], str]] = {
        "table": _placements,
        "scale": _scale,
        "recall": _recall,
        "turnover": _turnover,
        "mechanism": _mechanism,
        "grace": _grace,
        "latency": _policies,
        "other_keys": _policies,
        "protocol": _protocol,
    }
    found = {name: write(parts[name]["rows"]) for name, write in writers.items()}
    found["machine"] = f"Machine: {machine.sentence(next(iter(parts.values()))['machine'])}."
    return found


def _worst(row: Mapping[str, Any]) -> float:
    """Cost in the worse round of a cycle of two; the mean where votes settle."""
    average, last = float(row["votes"]), float(row["votes_last"])
    return max(last, 2 * average - last) if row["period"] == 2 else average


def _placements(rows: Rows) -> str:
    solved = [r for r in rows if r["relaxation"] is not None]
    tight = sum(abs(r["relaxation"] / r["optimum"] - 1) < 1e-9 for r in solved)
    above = [
        {**r, **{name: 100 * (r[name] / r["optimum"] - 1)
                 for name in ("votes", "saved", "local", "greedy")},
         "worse round": 100 * (_worst(r) / r["optimum"] - 1),
         "g = 3": 100 * (r["votes_g3"] / r["optimum_at_g3"] - 1)}
        for r in rows
    ]  # fmt: skip
    gaps = row_table(
        "sites|objects, k|corr.|optimum, ms|votes|worse round|saved|local|greedy|g = 3",
        "{geography}|{objects}, {k}|{correlation:g}|{optimum:.2f}|{votes:.1f}|{worse round:.1f}|"
        "{saved:.1f}|{local:.1f}|{greedy:.2f}|{g = 3:.1f}",
        averaged(above, "geography", "objects", "k", "correlation"),
    )
    return f"""{gaps}

The linear relaxation was the optimum on {tight} of {len(solved)} instances."""


def _scale(rows: Rows) -> str:
    return row_table(
        "objects|k|processor, s|gap|status|optimum, ms|greedy, % above|greedy, s",
        "{objects:,}|{k:,}|{cpu_s:.1f}|{gap:.0e}|{status}|{optimum:.4f}|{above:.3f}|"
        "{greedy_cpu_s:.1f}",
        ({**r, "above": 100 * (r["greedy"] / r["optimum"] - 1)} for r in rows),
    )


def _recall(rows: Rows) -> str:
    return row_table(
        "votes|counters per node|recall|strictly above|top tenth",
        "{votes:,}|{counters:,}|{recall:.3f}|{strict:.3f}|{top_tenth:.3f}",
        rows,
    )


def _turnover(rows: Rows) -> str:
    return row_table(
        "votes for the site in a round|expected votes of the last|λ",
        "{votes:.0e}|{expected_last:.3g}|{turnover:.3f}",
        rows,
    )


def _mechanism(rows: Rows) -> str:
    def percent(name: str) -> str:
        return span([100 * r[name] for r in rows], ".1f")

    def over_k(name: str) -> str:
        return span([r[name] / 480 for r in rows])

    dropped = [100 * d for r in rows for d in r["drops"]]
    lines = (
        ("drop of identification at a restart, %", span(dropped, ".1f"), "8 (predicted 8.3)"),
        ("identified, exact votes of the round, %", percent("recall"), "more than 95"),
        ("identified, hot by chances, %", percent("identified"), ""),
        ("the same, hottest tenth, %", percent("identified_best"), "much more stable than all"),
        ("active copies over k", over_k("active"), "1.06"),
        ("least active over k", over_k("least_active"), "above 1"),
        ("correct copies over k", over_k("correct"), "0.95"),
        ("false negatives, %", percent("false_negative"), "spikes, clipped near 5"),
        ("largest in half a second, %", percent("false_negative_peak"), ""),
        ("false positives, %", percent("false_positive"), "spikes, clipped near 5"),
    )
    return markdown_table(("", "ours", "published"), lines)


def _grace(rows: Rows) -> str:
    return row_table(
        "g|active|k(1 + λ(g − 1))|k(1 + λ(g − 0.2))|k(1 + λg)|created in 200 s|mean read, ms",
        "{grace}|{active:.0f}|{exact:.0f}|{between:.0f}|{conservative:.0f}|{created:,}|"
        "{read_ms:.2f}",
        ({**r, "between": 0.2 * r["exact"] + 0.8 * r["conservative"]} for r in rows),
    )


def _policies(rows: Rows) -> str:
    """Return a line per share of writes and policy."""
    shown = [r for r in rows if r["policy"] not in ("MRU", "RR")]
    lines = averaged(shown, "write_share", "policy")
    order = list(dict.fromkeys(r["policy"] for r in lines))
    lines.sort(key=lambda r: (r["write_share"], order.index(r["policy"])))
    forms = {"copies": "{:.0f}", "read_ms": "{:.1f}", "write_ms": "{:.1f}", "hits": "{:.1f}"}
    cells = [
        {**{name: form.format(100 * r[name] if name == "hits" else r[name]) if name in r else ""
            for name, form in forms.items()},
         "policy": r["policy"], "reads": 100 * (1 - r["write_share"]),
         "writes": 100 * r["write_share"]}
        for r in lines
    ]  # fmt: skip
    return row_table(
        "reads/writes|policy|copies per site|read, ms|write, ms|hits, %",
        "{reads:.0f}/{writes:.0f}|{policy}|{copies}|{read_ms}|{write_ms}|{hits}",
        cells,
    )


def _protocol(rows: Rows) -> str:
    return row_table(
        "variant|reads by copies|copies created|stale reads|runs with one|behind",
        "{variant}|{dynamic_reads:,}|{created:,}|{stale:,}|{runs_with_stale} of {runs}|{behind}",
        rows,
    )


# --- figures ------------------------------------------------------------------------------------


def draw_figures(folder: Path) -> None:
    """Draw Figures 3 to 7 into a folder."""
    data = _columns(MECHANISM)
    percent = {name: 100 * data[name] for name in data}
    hot = {"all": percent["identified"], "hottest tenth": percent["identified_best"]}
    copies = {name: data[name] for name in ("active", "correct")} | {
        "k": np.full(len(data["time"]), float(K))
    }
    wrong = {"false negatives": percent["false_negative"],
             "false positives": percent["false_positive"]}  # fmt: skip
    for number, series, label, note, top in (
        (3, hot, "hot (object, site) pairs identified (%)",
         "published: above 95 %, drops of 8 %, mended in 12 s", None),
        (4, copies, "dynamic copies per site",
         "published: active always above k, correct a little above 95 % of k", None),
        (5, wrong, "share of reads (%)",
         "published: spikes after restarts, clipped near the threshold of 5 %", 12),
    ):  # fmt: skip
        panel = _over_time(data["time"], series, label, note, top)
        save_panels(folder / f"online-dynamic-fig{number}.png", [panel], columns=1)
    names = ("none", "MRU", "RR", "LRU", "ARC", "votes")
    panels = []
    for path, note in (
        (OTHER_KEYS, "writes to other keys (as published)"),
        (LATENCY, "writes to keys that are read, which evict"),
    ):
        data = _columns(path)
        series = {name: data[name] for name in names}
        panels.append(_over_time(data["time"], series, "mean read latency (ms)", note))
    save_panels(folder / "online-dynamic-fig6.png", panels, height=4.2)
    rows = read_json(EXPERIMENTS.path)["parts"]["latency"]["rows"]

    def bars(column: str, label: str) -> Panel:
        lines: dict[str, Any] = {}
        for share in (0.05, 0.5):
            found = [mean(pick(rows, policy=name, write_share=share), column) for name in names]
            lines[f"{100 * share:.0f} % writes"] = (names, found, {"ls": "none", "marker": "o"})
        return Panel(lines, {"ylabel": label, "ylim": (0, None)})

    both = [bars("read_ms", "read latency (ms)"), bars("write_ms", "write latency (ms)")]
    save_panels(folder / "online-dynamic-fig7.png", both)


def _columns(path: Path) -> dict[str, Any]:
    rows = read_rows(path)
    return {
        name: np.array([float(row[name]) if row[name] else np.nan for row in rows])
        for name in rows[0]
    }


def _over_time(
    time: Any, series: Mapping[str, Any], label: str, note: str, top: float | None = None
) -> Panel:
    """Lines over time; a generator restarts every 30 s."""
    lines: dict[str, Any] = {name: (time, values, {}) for name, values in series.items()}
    axes = {"xlabel": "time (s)", "ylabel": label, "title": note, "ylim": (0, top)}
    restarts = {f"{'_' if at > 30 else ''}restart {at // 30}".removesuffix(" 1"): float(at)
                for at in range(30, int(time.max()) + 1, 30)}  # fmt: skip
    return Panel(lines, axes, restarts)

"""The tables and figures of the page of dynamic replication, from the kept results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.doc_pages import grouped
from benchmarks.harness.pictures import Panel, save_panels
from benchmarks.harness.result_files import read_json, read_rows
from benchmarks.online.dynamic import EXPERIMENTS, LATENCY, MECHANISM, OTHER_KEYS, K
from benchmarks.online.tables import Rows, mean, pick, span, table


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


def _above(rows: Rows, name: str, form: str = ".1f", *, worst: bool = False) -> str:
    """Mean per cent above the optimum; of the worse round of a cycle of two."""
    values = [(_worst(row) if worst else row[name]) / row["optimum"] - 1 for row in rows]
    return f"{100 * np.mean(values):{form}}"


def _worst(row: Mapping[str, Any]) -> float:
    """Cost in the worse round of a cycle of two; the mean where votes settle."""
    average, last = float(row["votes"]), float(row["votes_last"])
    return max(last, 2 * average - last) if row["period"] == 2 else average


def _placements(rows: Rows) -> str:
    solved = [r for r in rows if r["relaxation"] is not None]
    tight = sum(abs(r["relaxation"] / r["optimum"] - 1) < 1e-9 for r in solved)
    gaps = table(
        grouped(map(dict, rows), "geography", "objects", "k", "correlation"),
        ("sites", lambda mine: mine[0]["geography"]),
        ("objects, k", lambda mine: f"{mine[0]['objects']}, {mine[0]['k']}"),
        ("corr.", lambda mine: f"{mine[0]['correlation']:g}"),
        ("optimum, ms", lambda mine: f"{mean(mine, 'optimum'):.2f}"),
        ("votes", lambda mine: _above(mine, "votes")),
        ("worse round", lambda mine: _above(mine, "", worst=True)),
        ("saved", lambda mine: _above(mine, "saved")),
        ("local", lambda mine: _above(mine, "local")),
        ("greedy", lambda mine: _above(mine, "greedy", ".2f")),
        ("g = 3", lambda mine: "{:.1f}".format(
            100 * np.mean([r["votes_g3"] / r["optimum_at_g3"] - 1 for r in mine]))),
    )  # fmt: skip
    return f"""{gaps}

The linear relaxation was the optimum on {tight} of {len(solved)} instances."""


def _scale(rows: Rows) -> str:
    return table(
        rows,
        ("objects", lambda r: f"{r['objects']:,}"),
        ("k", lambda r: f"{r['k']:,}"),
        ("processor, s", lambda r: f"{r['cpu_s']:.1f}"),
        ("gap", lambda r: f"{r['gap']:.0e}"),
        ("status", lambda r: r["status"]),
        ("optimum, ms", lambda r: f"{r['optimum']:.4f}"),
        ("greedy, % above", lambda r: f"{100 * (r['greedy'] / r['optimum'] - 1):.3f}"),
        ("greedy, s", lambda r: f"{r['greedy_cpu_s']:.1f}"),
    )


def _recall(rows: Rows) -> str:
    return table(
        rows,
        ("votes", lambda r: f"{r['votes']:,}"),
        ("counters per node", lambda r: f"{r['counters']:,}"),
        ("recall", lambda r: f"{r['recall']:.3f}"),
        ("strictly above", lambda r: f"{r['strict']:.3f}"),
        ("top tenth", lambda r: f"{r['top_tenth']:.3f}"),
    )


def _turnover(rows: Rows) -> str:
    return table(
        rows,
        ("votes for the site in a round", lambda r: f"{r['votes']:.0e}"),
        ("expected votes of the last", lambda r: f"{r['expected_last']:.3g}"),
        ("λ", lambda r: f"{r['turnover']:.3f}"),
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
    return table(
        lines, ("", lambda r: r[0]), ("ours", lambda r: r[1]), ("published", lambda r: r[2])
    )


def _grace(rows: Rows) -> str:
    return table(
        rows,
        ("g", lambda r: r["grace"]),
        ("active", lambda r: f"{r['active']:.0f}"),
        ("k(1 + λ(g − 1))", lambda r: f"{r['exact']:.0f}"),
        ("k(1 + λ(g − 0.2))", lambda r: f"{0.2 * r['exact'] + 0.8 * r['conservative']:.0f}"),
        ("k(1 + λg)", lambda r: f"{r['conservative']:.0f}"),
        ("created in 200 s", lambda r: f"{r['created']:,}"),
        ("mean read, ms", lambda r: f"{r['read_ms']:.2f}"),
    )


def _policies(rows: Rows) -> str:
    """Return a line per share of writes and policy."""
    policies = dict.fromkeys(r["policy"] for r in rows if r["policy"] not in ("MRU", "RR"))
    cells = [
        pick(rows, policy=policy, write_share=share)
        for share in dict.fromkeys(r["write_share"] for r in rows)
        for policy in policies
    ]

    def of(name: str, form: str, factor: float = 1.0) -> Callable[[Any], str]:
        def shown(mine: Rows) -> str:
            values = [factor * r[name] for r in mine if name in r]
            return f"{np.mean(values):{form}}" if values else ""

        return shown

    return table(
        cells,
        ("reads/writes", lambda mine: "{:.0f}/{:.0f}".format(
            100 * (1 - mine[0]["write_share"]), 100 * mine[0]["write_share"])),
        ("policy", lambda mine: mine[0]["policy"]),
        ("copies per site", of("copies", ".0f")),
        ("read, ms", of("read_ms", ".1f")),
        ("write, ms", of("write_ms", ".1f")),
        ("hits, %", of("hits", ".1f", 100.0)),
    )  # fmt: skip


def _protocol(rows: Rows) -> str:
    return table(
        rows,
        ("variant", lambda r: r["variant"]),
        ("reads by copies", lambda r: f"{r['dynamic_reads']:,}"),
        ("copies created", lambda r: f"{r['created']:,}"),
        ("stale reads", lambda r: f"{r['stale']:,}"),
        ("runs with one", lambda r: f"{r['runs_with_stale']} of {r['runs']}"),
        ("behind", lambda r: r["behind"]),
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

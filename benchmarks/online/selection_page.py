"""The tables and figures of the page of replica selection, from the kept results."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.harness import machine
from benchmarks.harness.doc_pages import averaged, markdown_table, pivot, row_table
from benchmarks.harness.pictures import Panel, save_panels
from benchmarks.harness.result_files import read_frame, read_json, rows_of
from benchmarks.online.selection import BIN_MS, BOUNDS, CLOSED, LADDER, PUBLISHED, WIDE
from benchmarks.online.tables import Rows, mean, means, pick, spread, values

_SHOWN = (10, 500)
"""Times between two draws of the speeds, ms, that the tables of the page show."""

ABSIM = {
    (10, "ORA"): (4.6, 19.3), (10, "C3"): (10.8, 39.5), (10, "LOR"): (12.9, 48.0),
    (10, "RR"): (19.0, 90.2), (500, "ORA"): (24.2, 211.4), (500, "C3"): (32.9, 330.8),
    (500, "LOR"): (43.6, 333.0), (500, "RR"): (260.1, 1422.9),
}  # fmt: skip
"""(T, policy) -> mean and p99 of one run of the authors' own simulator (absim, commit c5d5488)."""

_LADDER = tuple(policy.name for policy in LADDER)


def tables() -> dict[str, str]:
    """Return the tables by their marks on the page."""
    rows = read_frame(PUBLISHED.path)
    bounds, closed = read_json(BOUNDS.path), read_json(CLOSED.path)
    wide, head = read_json(WIDE.path), read_json(PUBLISHED.path.with_suffix(".json"))
    left_out = ("C3, no limiter, w = 0", "C3, no limiter, b = 1")
    far = [row for row in wide["policies"] if row["policy"] not in left_out]
    by = {suite: rows_of(part) for suite, part in rows.groupby("suite")}
    skewed = [
        {**row, "share": f"{100 * row['heavy_clients']:g} % of clients"}
        for row in pick(by["skew"], epoch_ms=100)
    ]
    return {
        "machine": f"Machine: {machine.sentence(head['machine'])}.",
        "grid": _grid(by["grid"]),
        "ratios": _ratios(rows[rows["suite"] == "poisson"]),
        "limiter": pivot(
            pick(by["limiter"], n=150_000), "policy", "clients", _mean_refused, "clients:"
        ),
        "ablation": _ablation(by["ablation"]),
        "skew": pivot(
            skewed, "policy", "share", lambda r: f"{mean(r, 'mean'):.1f} ({mean(r, 'p99'):.1f})"
        ),
        "full size": _full_size(bounds["full size"]),
        "windows": _windows(bounds["windows"]),
        "mixes": _mixes(closed["mixes"]),
        "speeds": _speeds(pd.DataFrame(closed["speeds"])),
        "load step": row_table(
            "policy|operations/s|p99 before|p99 after|worst bin after",
            "{policy}|{throughput:,.0f}|{p99 before:.1f}|{p99 after:.1f}|{worst bin after:.1f}",
            averaged(closed["load step"], "policy"),
        ),
        "wide area": pivot(
            far, "policy", "utilisation", means("mean", "network", "p99", "nearest"), "utilisation"
        ),
    }


def _grid(rows: Rows) -> str:
    """Return means of ten seeds, their range, and one run of the authors' simulator."""
    lines = []
    for epoch, policy in itertools.product(_SHOWN, ("ECTF", "ORA", "C3", "LOR", "RR")):
        line: list[object] = [epoch, policy]
        theirs = ABSIM.get((epoch, policy))
        for place, column in enumerate(("mean", "p99")):
            found = values(pick(rows, epoch_ms=epoch, policy=policy), column)
            line.append(f"{statistics.fmean(found):.1f} ({min(found):.1f}–{max(found):.1f})")
            line.append(f"{theirs[place]:.1f}" if theirs else "")
        lines.append(line)
    return markdown_table(("T", "policy", "mean", "absim", "p99", "absim"), lines)


def _ratios(rows: pd.DataFrame) -> str:
    found = rows.pivot(index=["epoch_ms", "seed"], columns="policy", values=["mean", "p99"])
    keys = (("C3", "ORA", "p99"), ("LOR", "C3", "p99"), ("LOR", "C3", "mean"))
    lines = (
        [epoch, *(spread(list(found.loc[epoch][c][a] / found.loc[epoch][c][b]), 2)
                  for a, b, c in keys)]
        for epoch in _SHOWN
    )  # fmt: skip
    return markdown_table(("T", *(f"{a}/{b} {c}" for a, b, c in keys)), lines)


def _refused(mine: Rows) -> str:
    tries = sum(values(mine, "tries"))
    return f"{100 * sum(values(mine, 'refused')) / tries:.3g} %" if tries else ""


def _mean_refused(mine: Rows) -> str:
    refused = _refused(mine)
    return f"{mean(mine, 'mean'):.1f}" + (f" ({refused})" if refused else "")


def _ablation(rows: Rows) -> str:
    shown = ("C3", "C3, b = 1", "C3, w = 0", "C3, w = 10", "C3, no limiter", "LOR", "WRT", "DS")
    lines = (
        (policy, *(spread(values(mine, column)) for column in ("mean", "p99")), _refused(mine))
        for policy in shown for mine in [pick(rows, policy=policy)]
    )  # fmt: skip
    return markdown_table(("policy", "mean", "p99", "refused"), lines)


def _full_size(rows: Rows) -> str:
    more = {f"{name} with copies": name for name in ("ECTF", "C3")}
    columns = {name: f"{name}, no copies" for name in _LADDER} | more
    lines = (
        [f"{row['epoch_ms']:g}", f"{row['bound']:.3f}", f"{row['fluid']:.3f}",
         *(f"{row[column]:.2f}" for column in columns.values())]
        for row in rows if row["epoch_ms"] in _SHOWN
    )  # fmt: skip
    return markdown_table(("T", "proven bound", "fluid", *columns), lines)


def _known(row: Mapping[str, float]) -> dict[str, float]:
    """The row with its best bound and plans: a policy may be better than a stopped search."""
    fcfs = min(row["fcfs"], *(row[name] for name in _LADDER))
    return {**row, "fcfs": fcfs, "any": min(row["any"], fcfs), "bound": row["any bound"]}


def _windows(windows: Rows) -> str:
    rows = [_known(row) for row in windows]
    names = ("any bound", "any", "fcfs bound", "fcfs", *_LADDER)
    proven = {f"{n} proven": sum(bool(row.get(f"{n} proven")) for row in rows)
              for n in ("any", "fcfs")}  # fmt: skip
    line = [*(f"{mean(rows, name):.2f}" for name in names), *proven.values()]
    return markdown_table((*names, *proven), [line])


def _mixes(rows: Rows) -> str:
    def cell(mine: Rows) -> str:
        slow = pick(rows, mix=mine[0]["mix"], policy="DS")
        gain = 100 * (mean(mine, "throughput") / mean(slow, "throughput") - 1)
        busiest = statistics.fmean(row["busiest"]["max"] for row in mine)
        return f"{gain:+.0f} %, {mean(mine, 'p99'):.1f}, {busiest:.0f}"

    return pivot(rows, "policy", "mix", cell)


def _speeds(rows: pd.DataFrame) -> str:
    found = rows.pivot_table("throughput", "fluctuation", "policy", sort=False)
    gains = found.div(found["DS"], axis=0).sub(1).mul(100)
    lines = ((f"{factor:g}", f"{gain['C3']:+.0f} %", f"{gain['C3, no limiter']:+.0f} %")
             for factor, gain in gains.iterrows())  # fmt: skip
    return markdown_table(("D", "C3 over DS", "without limiter"), lines)


# --- figures ------------------------------------------------------------------------------------

_PANELS = (
    ("settings", 150, 0.45, 1.0, "150 clients, utilisation 0.45"),
    ("grid", 150, 0.70, 1.0, "150 clients, utilisation 0.70"),
    ("skew", 150, 0.70, 0.2, "20 % of clients make 80 % of demand"),
    ("settings", 300, 0.45, 1.0, "300 clients, utilisation 0.45"),
    ("settings", 300, 0.70, 1.0, "300 clients, utilisation 0.70"),
    ("skew", 150, 0.70, 0.02, "2 % of clients make 95 % of demand"),
)


def draw_figures(folder: Path) -> None:
    """Draw the figures of the page into a folder, from the kept results."""
    bounds, rows = read_json(BOUNDS.path), rows_of(read_frame(PUBLISHED.path))
    full, windows = bounds["full size"], [_known(row) for row in bounds["windows"]]
    epochs = values(full, "epoch_ms")
    names = ("bound", "any", "fcfs", *_LADDER)
    lines: dict[str, Any] = {
        name: (epochs, values(full, f"{name}, no copies"), {"marker": "."}) for name in _LADDER
    }
    lines["proven bound"] = (epochs, values(full, "bound"), {"color": "black"})
    ends = [[pick_end(row[n] for row in windows) for n in names] for pick_end in (min, max)]
    means_of = [mean(windows, n) for n in names]
    label = f"mean and range of {len(windows)} windows"
    logs = {"xscale": "log", "yscale": "log"}
    save_panels(
        folder / "online-selection-ladder.png",
        [
            Panel(lines, logs | {"xlabel": "T, ms between two draws of the speeds",
                                 "ylabel": "mean latency, ms", "title": "140,000 reads"}),
            Panel({label: (names, means_of, {"marker": "o"})},
                  {"yscale": "log", "ylabel": "mean flow time, ms",
                   "title": "15 reads of a warm system"},
                  bands={label: (ends[0], ends[1])}),
        ],
        height=4.2,
    )  # fmt: skip
    save_panels(
        folder / "online-selection-epochs.png",
        [_epochs(rows, *panel) for panel in _PANELS],
        columns=3,
    )
    draw_load_step(read_json(CLOSED.path)["load step"], folder / "online-selection-load-step.png")


def _epochs(
    rows: Rows, suite: str, clients: int, utilisation: float, heavy: float, title: str
) -> Panel:
    """Mean and range over the seeds of the p99 against T."""
    lines: dict[str, Any] = {}
    bands = {}
    for policy in ("RR", "LOR", "C3", "ORA"):
        mine = pick(rows, suite=suite, clients=clients, utilisation=utilisation,
                    heavy_clients=heavy, policy=policy)  # fmt: skip
        times = sorted({float(row["epoch_ms"]) for row in mine})
        found = [values(pick(mine, epoch_ms=time), "p99") for time in times]
        lines[policy] = (times, [statistics.fmean(each) for each in found], {"marker": "."})
        bands[policy] = ([min(each) for each in found], [max(each) for each in found])
    axes = {"xscale": "log", "yscale": "log", "title": title, "ylim": (10, 2000),
            "xlabel": "T, ms", "ylabel": "p99 of reads, ms"}  # fmt: skip
    return Panel(lines, axes, bands=bands)


def draw_load_step(rows: Rows, path: Path) -> None:
    """Draw median and p99 of reads over time while 40 generators join, for the first seed.

    Parameters
    ----------
    rows
        Rows of the load step; those with a time line are drawn, without duplicates of reads.
    path
        Where the picture goes.
    """
    drawn = [row for row in rows if "p99 line" in row and "hedged" not in row["policy"]]

    def panel(key: str, label: str) -> Panel:
        lines: dict[str, Any] = {}
        for row in drawn:
            found = row[key][:-1]  # the last bin is not full
            times = [BIN_MS * place / 1000 for place in range(len(found))]
            lines[row["policy"]] = (times, found, {})
        axes = {"xlabel": "time, s", "ylabel": label, "ylim": (0, None)}
        return Panel(lines, axes, {"40 generators join": drawn[0]["joins_ms"] / 1000})

    save_panels(
        path, [panel("median", "median of reads, ms"), panel("p99 line", "p99 of reads, ms")]
    )

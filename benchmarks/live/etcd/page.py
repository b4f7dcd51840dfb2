"""Tables and the scatter plot of docs/benchmarks/live.md, from the kept results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT
from benchmarks.harness.pictures import axes_of
from benchmarks.harness.result_files import Row
from benchmarks.live.latency_tables import configurations_table, software_share, summary_table
from benchmarks.live.load_rows import load_table
from benchmarks.live.study_parts import runs_text

__all__ = ["NAMES", "draw", "tables"]

DAY_PICTURE = ROOT / "docs/figures/live-etcd-day.png"
PICTURE = ROOT / "docs/figures/live-etcd.png"
NAMES = {
    "put": "write",
    "read": "linearizable read, alone",
    "busy read": "linearizable read among others",
    "local": "serializable read",
}


def tables(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables of the page by name; a part that was not measured has none."""
    writers: dict[str, Callable[[Sequence[Row]], dict[str, str]]] = {
        "network": _network,
        "latency": _latency,
        "percentiles": lambda rows: _percentiles(rows, document),
        "losses": lambda rows: _losses(rows, document),
        "load": lambda rows: {"load": load_table(rows)},
        "day": lambda rows: _day(_with_software(rows, document)),
    }
    found = {"runs": runs_text(document)}
    for part, write in writers.items():
        if part in document:
            found |= write(document[part]["rows"])
    return found


def _network(rows: Sequence[Row]) -> dict[str, str]:
    mean = np.array([row["mean"] - row["asked"] for row in rows])
    least = np.array([row["least"] - row["asked"] for row in rows])
    cells = [
        ("pairs of nodes", len(rows)),
        ("RTTs asked for", f"{min(r['asked'] for r in rows):g} to "
                           f"{max(r['asked'] for r in rows):g} ms"),
        ("mean RTT minus asked: median, worst pair",
         f"{np.median(mean):.2f}, {mean[np.argmax(abs(mean))]:.2f} ms"),
        ("least RTT minus asked: median, worst pair",
         f"{np.median(least):.2f}, {least[np.argmax(abs(least))]:.2f} ms"),
        ("largest relative error of a mean, RTTs of 10 ms and more",
         f"{100 * max(abs(r['mean'] / r['asked'] - 1) for r in rows if r['asked'] >= 10):.1f} %"),
    ]  # fmt: skip
    return {"network": markdown_table(("what", "value"), cells)}


def _latency(rows: Sequence[Row]) -> dict[str, str]:
    return {
        "summary": summary_table(rows, NAMES),
        "configurations": configurations_table(rows, "put"),
    }


def _percentiles(rows: Sequence[Row], document: Mapping[str, Any]) -> dict[str, str]:
    share = _share(document)
    lines = []
    for key, group in itertools.groupby(
        sorted(rows, key=lambda r: (r["layout"], r["leader"], r["operation"])),
        key=lambda r: (r["layout"], r["leader"], r["operation"]),
    ):
        mine = list(group)
        model = np.array([r["predicted"] for r in mine]) + share[key[2]]
        real = np.array([r["measured"] for r in mine])
        error = real / model - 1
        lines.append((
            key[0], key[1], NAMES[key[2]], sum(r["n"] for r in mine),
            f"{np.mean([r['measured mean'] for r in mine]):.1f}", f"{model.mean():.1f}",
            f"{real.mean():.1f}", f"{100 * error[np.argmax(abs(error))]:+.1f} %",
        ))  # fmt: skip
    heads = ("layout", "leader", "operation", "operations", "mean, ms", "p99 predicted, ms",
             "p99 measured, ms", "worst client")  # fmt: skip
    return {"percentiles": markdown_table(heads, lines)}


def _share(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the software's ms of each operation, 0 where they were not measured."""
    if "latency" not in document:
        return dict.fromkeys(NAMES, 0.0)
    return software_share(document["latency"]["rows"], NAMES)


def _losses(rows: Sequence[Row], document: Mapping[str, Any]) -> dict[str, str]:
    software = _share(document)["put"]
    lines = []
    for row in rows:
        model, real = np.array(list(row["clients"].values())).T
        model += software
        error = real / model - 1
        lines.append((
            row["layout"], row["loss"], row["site"], f"{row['before']} → {row['after']}",
            f"{row['best']} ({row['best ms']:.0f}) … {row['worst']} ({row['worst ms']:.0f})",
            f"{row['gap']:.1f}", f"{model.mean():.1f}", f"{real.mean():.1f}",
            f"{100 * (real.mean() / model.mean() - 1):+.1f} %",
            f"{100 * error[np.argmax(abs(error))]:+.1f} %", f"{row['again']} / {row['failed']}",
        ))  # fmt: skip
    heads = ("layout", "loss", "of", "leader", "leaders by the model, ms", "without service, s",
             "predicted after, ms", "measured after, ms", "error", "worst client",
             "retried / lost")  # fmt: skip
    return {"losses": markdown_table(heads, lines)}


def _with_software(rows: Sequence[Row], document: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a day with the software's share in the prediction."""
    share = software_share(document["latency"]["rows"], NAMES)
    found = []
    for row in rows[:-1]:
        weights = np.array(list(row["mix"].values()))
        more = float(np.average([share[kind] for kind in row["mix"]], weights=weights))
        found.append({**row, **{key: row[key] + more for key in ("predicted", "unmoved")}})
    return [*found, rows[-1]]


def _day(rows: Sequence[Row]) -> dict[str, str]:
    *hours, whole = rows
    lines = [
        (
            row["hour"], row["action"], row["leader"], ", ".join(row["voters"][1:]),
            ", ".join(row["learners"]) or "–", row["operations"], row["failed"],
            f"{row['predicted']:.1f}", f"{row['measured']:.1f}",
            f"{100 * (row['measured'] / row['predicted'] - 1):+.1f} %",
            f"{row['in the move']:.1f} ({row['moving']:.0f} s)" if row["moving"] else "–",
            f"{row['unmoved']:.1f}",
        )
        for row in hours
    ]  # fmt: skip
    heads = ("hour", "watch", "leader", "other voters", "learners", "operations", "lost",
             "predicted, ms", "measured, ms", "error", "in moves, ms", "unmoved, ms")  # fmt: skip
    issued = [row["operations"] for row in hours]

    def mean(key: str) -> float:
        return float(np.average([row[key] for row in hours], weights=issued))

    cells = [
        ("operations", f"{whole['operations']:,}"),
        ("operations lost", whole["failed"]),
        ("acknowledged writes that cannot be read", whole["writes missing"]),
        ("operations that took more than one attempt", whole["again"]),
        ("moves carried out", whole["moves"]),
        ("longest operation", f"{whole['longest ms'] / 1000:.1f} s"),
        ("mean latency outside moves, predicted and measured",
         f"{mean('predicted'):.1f}, {mean('measured'):.1f} ms"),
        ("mean latency predicted without any move", f"{mean('unmoved'):.1f} ms"),
        ("an hour of the day took", f"{whole['seconds of an hour']:g} s"),
    ]  # fmt: skip
    return {
        "day": markdown_table(("what", "value"), cells),
        "hours": markdown_table(heads, lines),
    }


def _draw_day(rows: Sequence[Row]) -> None:
    """Draw latency by hour: predicted, measured, and predicted without any move."""
    hours = rows[:-1]
    figure, (axes,) = axes_of(1, 3.6)
    figure.set_size_inches(7.5, 3.6)
    at = [row["hour"] for row in hours]
    for key, style in (("unmoved", ":"), ("predicted", "-"), ("measured", "o")):
        words = "predicted without any move" if key == "unmoved" else key
        axes.plot(at, [row[key] for row in hours], style, label=words, markersize=4)
    for row in hours:
        if row["action"] == "move":
            axes.axvline(row["hour"], color="grey", linewidth=0.6)
    axes.set_xlabel("hour of the day; grey: a move is carried out")
    axes.set_ylabel("mean latency, ms")
    axes.legend(fontsize=7)
    figure.savefig(DAY_PICTURE, dpi=110)


def draw(document: Mapping[str, Any]) -> None:
    """Draw means and 99th percentiles, predicted against measured, and the day by the hour."""
    rows: Sequence[Row] = document["latency"]["rows"]
    share = software_share(rows, NAMES)
    figure, (left, right) = axes_of(2, 4.2)
    for name, words in NAMES.items():
        mine = [row for row in rows if row["part"] == "test" and row["operation"] == name]
        left.scatter(
            [r["predicted"] + share[name] for r in mine], [r["measured"] for r in mine],
            s=12, alpha=0.7, label=words,
        )  # fmt: skip
    for name in ("put", "local"):
        measured = document.get("percentiles", {"rows": []})["rows"]
        mine = [row for row in measured if row["operation"] == name]
        right.scatter(
            [r["predicted"] + share[name] for r in mine], [r["measured"] for r in mine],
            s=14, alpha=0.8, label=NAMES[name],
        )  # fmt: skip
    for axes, title in ((left, "mean, ms"), (right, "99th percentile, ms")):
        most = max(axes.get_xlim()[1], axes.get_ylim()[1])
        axes.plot([0, most], [0, most], color="black", linewidth=0.8)
        axes.set_title(title)
        axes.set_xlabel("predicted, with the software's share")
        axes.set_ylabel("measured")
        axes.legend(fontsize=7)
    figure.savefig(PICTURE, dpi=110)
    if "day" in document:
        _draw_day(_with_software(document["day"]["rows"], document))

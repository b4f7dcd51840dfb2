"""The tables of docs/tail.md, from the rows of benchmarks/results/tail.json."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.result_files import Row

__all__ = ["tables"]


def tables(results: dict[str, Any]) -> dict[str, str]:
    """Return the Markdown tables of the parts that there are, by name."""
    made = {
        "speed": _speed_table,
        "gaps": _gap_table,
        "leaders": _leader_table,
        "plans": _plan_table,
        "proofs": _proof_table,
    }
    shown = {name: table(results[name]) for name, table in made.items() if results.get(name)}
    for name in {"speed", "proofs"} & shown.keys():
        shown[name] += f"\n\n{machine.hardware([results['machines'][name]])}"
    return shown


def _speed_table(rows: list[Row]) -> str:
    head = ["what", "spread", "bins of 1 ms", "processor", "runs", "target"]
    body = [
        [
            str(row["what"]),
            f"{row['spread']:g}",
            f"{row['bins']:,}",
            f"{row['cpu_ms']:,.1f} ms",
            str(row["runs"]),
            "" if row["target"] is None else f"< {row['target']:.0f} ms",
        ]
        for row in rows
        if row["spread"] == 0.1
    ]
    return markdown_table(head, body)


def _by(rows: list[Row], *keys: str) -> Iterator[tuple[list[str], list[Row]]]:
    groups: dict[tuple[float, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    for values, members in groups.items():
        yield [f"p{v:g}" if isinstance(v, float) else str(v) for v in values], members


def _gap_table(rows: list[Row]) -> str:
    head = ["sites", "", "problems", "optimal", "proven so", "mean gap", "largest gap",
            "median gap of the mean's plan"]  # fmt: skip
    body = []
    for names, group in _by(rows, "sites", "percent"):
        best = np.array([row["best_ms"] for row in group])
        gap = np.array([row["found_ms"] for row in group]) / best - 1
        mean = np.array([row["mean_plan_ms"] for row in group]) / best - 1
        proven = sum(row["bound_ms"] >= row["found_ms"] for row in group)
        body.append(
            [
                *names,
                str(len(group)),
                str(int((gap <= 1e-9).sum())),
                str(proven),
                f"{100 * gap.mean():.2f} %",
                f"{100 * gap.max():.2f} %",
                f"{100 * np.median(mean):.1f} %",
            ]
        )
    return markdown_table(head, body)


def _leader_table(rows: list[Row]) -> str:
    head = ["network", "", "databases", "another leader is better", "median cut", "9 in 10 below",
            "largest cut", "median price in the mean"]  # fmt: skip
    single = [
        {
            "network": row["network"],
            "percent": percent,
            "before": row["mean_leader_ms"][k],
            "after": row["tail_leader_ms"][k],
            "price": row["tail_leader_mean_ms"][k] / row["mean_leader_mean_ms"] - 1,
        }
        for row in rows
        for k, percent in enumerate(row["percents"])
        if percent in (50, 99)
    ]
    body = []
    for names, group in _by(single, "network", "percent"):
        other = [row for row in group if row["after"] < row["before"]]
        cut = np.array([1 - row["after"] / row["before"] for row in other])
        price = [row["price"] for row in other]
        body.append(
            [
                *names,
                str(len(group)),
                f"{len(other)} ({100 * len(other) / len(group):.0f} %)",
                *(
                    [
                        f"{100 * np.median(cut):.1f} %",
                        f"{100 * np.quantile(cut, 0.9):.1f} %",
                        f"{100 * cut.max():.1f} %",
                        f"{100 * np.median(price):.1f} %",
                    ]
                    if other
                    else ["–"] * 4
                ),
            ]
        )
    return markdown_table(head, body)


def _plan_table(rows: list[Row]) -> str:
    head = ["network", "problems", "p99 is lower in", "median cut", "largest cut",
            "median price in the mean", "another leader", "median gap to bound",
            "proven optimal"]  # fmt: skip
    body = []
    for names, group in _by(rows, "network"):
        cut = np.array([1 - row["tail_plan_ms"] / row["mean_plan_ms"] for row in group])
        price = [row["tail_plan_mean_ms"] / row["mean_plan_mean_ms"] - 1 for row in group]
        gap = np.array([1 - row["bound_ms"] / row["tail_plan_ms"] for row in group])
        body.append(
            [
                *names,
                str(len(group)),
                str(int((cut > 0).sum())),
                f"{100 * np.median(cut):.1f} %",
                f"{100 * cut.max():.1f} %",
                f"{100 * np.median(price):.1f} %",
                str(sum(not row["same_leader"] for row in group)),
                f"{100 * np.median(gap):.1f} %",
                str(int((gap <= 1e-9).sum())),
            ]
        )
    return markdown_table(head, body)


def _proof_table(rows: list[Row]) -> str:
    head = ["regions", "spread", "questions", "proven", "least mean proven", "median", "longest"]
    body = []
    for names, group in _by(rows, "regions", "network"):
        seconds = [row["cpu_s"] for row in group]
        body.append(
            [
                *names,
                str(len(group)),
                str(sum(row["proven"] for row in group)),
                str(sum(row["least_mean"] for row in group)),
                f"{np.median(seconds):.2f} s",
                f"{max(seconds):.2f} s",
            ]
        )
    return markdown_table(head, body)

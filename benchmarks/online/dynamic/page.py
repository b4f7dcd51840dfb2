"""The tables of the page of dynamic replication."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.harness import machine
from benchmarks.online.tables import Rows, groups, pick, span, table

__all__ = ["tables"]

_REFERENCE_RECALL = {
    (100_000, 625): (0.34, 0.48, 0.995),
    (100_000, 2_500): (0.69, 0.98, 1.0),
    (100_000, 10_000): (1.0, 1.0, 1.0),
    (1_000_000, 625): (0.29, 0.29, 0.96),
    (1_000_000, 2_500): (0.61, 0.62, 1.0),
    (1_000_000, 10_000): (0.981, 1.0, 1.0),
    (1_000_000, 20_000): (1.0, 1.0, 1.0),
}
_STEADY = (
    ("static_local", "a static copy is local", 0.425),
    ("hit_top", "hits of the rest, top-k", 0.5615),
    ("hit_lru", "hits of the rest, LRU", 0.463),
    ("hit_random", "hits of the rest, random", 0.434),
    ("none", "no dynamic copies, ms", 57.6),
    ("mru", "MRU, ms", 58.0),
    ("rr", "random, ms", 33.2),
    ("lru", "LRU, ms", 31.5),
    ("votes", "votes, ms", 25.7),
)


def tables(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables of the parts that have been run, by their marks on the page."""
    parts = document["parts"]
    writers: dict[str, Callable[[Any], str]] = {
        "table": _placements,
        "independent": _independent,
        "scale": _scale,
        "recall": _recall,
        "turnover": _turnover,
        "predictions": _predictions,
        "gap": _gap,
        "mechanism": _mechanism,
        "grace": _grace,
        "latency": _policies,
        "other_keys": _policies,
        "protocol": _protocol,
    }
    found = {name: write(parts[name]["rows"]) for name, write in writers.items() if name in parts}
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

    def reference_gap(mine: Rows) -> str:
        theirs = mine[0]["reference"]
        return f"{100 * (theirs['votes'] / theirs['optimum'] - 1):.1f}" if theirs else "–"

    gaps = table(
        groups(rows, "geography", "objects", "k", "correlation").values(),
        ("sites", lambda mine: mine[0]["geography"]),
        ("objects, k", lambda mine: f"{mine[0]['objects']}, {mine[0]['k']}"),
        ("corr.", lambda mine: f"{mine[0]['correlation']:g}"),
        ("optimum, ms", lambda mine: f"{np.mean([r['optimum'] for r in mine]):.2f}"),
        ("votes", lambda mine: f"{_above(mine, 'votes')} ({reference_gap(mine)})"),
        ("worse round", lambda mine: _above(mine, "", worst=True)),
        ("saved", lambda mine: _above(mine, "saved")),
        ("local", lambda mine: _above(mine, "local")),
        ("greedy", lambda mine: _above(mine, "greedy", ".2f")),
        ("g = 3", lambda mine: "{:.1f}".format(
            100 * np.mean([r["votes_g3"] / r["optimum_at_g3"] - 1 for r in mine]))),
    )  # fmt: skip
    return f"""{gaps}

The linear relaxation was the optimum on {tight} of {len(solved)} instances."""


def _independent(rows: Rows) -> str:
    def beside(mine: Rows, name: str, *, worst: bool = False) -> str:
        theirs = mine[0]["reference"]
        gap = 100 * (theirs[name] / theirs["optimum"] - 1)
        return f"{_above(mine, name, worst=worst)} ({gap:.1f})"

    return table(
        groups([row for row in rows if row["objects"] == 2000], "k", "correlation").values(),
        ("corr.", lambda mine: f"{mine[0]['correlation']:g}"),
        ("votes", lambda mine: beside(mine, "votes")),
        ("votes, worse round", lambda mine: beside(mine, "votes", worst=True)),
        ("local", lambda mine: beside(mine, "local")),
        ("greedy", lambda mine: beside(mine, "greedy")),
    )


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
    def beside(place: int, name: str) -> Callable[[Any], str]:
        return lambda r: f"{r[name]:.3f} ({_REFERENCE_RECALL[r['votes'], r['counters']][place]:g})"

    return table(
        rows,
        ("votes", lambda r: f"{r['votes']:,}"),
        ("counters per node", lambda r: f"{r['counters']:,}"),
        ("recall", beside(0, "recall")),
        ("strictly above", beside(1, "strict")),
        ("top tenth", beside(2, "top_tenth")),
    )


def _turnover(rows: Rows) -> str:
    return table(
        rows,
        ("votes for the site in a round", lambda r: f"{r['votes']:.0e}"),
        ("expected votes of the last", lambda r: f"{r['expected_last']:.3g}"),
        ("λ", lambda r: f"{r['turnover']:.3f}"),
    )


def _predictions(rows: Rows) -> str:
    (found,) = rows
    theirs = {name: value for name, _, value in _STEADY}
    lines = [(text, f"{found[name]:.4g}", f"{value:g}") for name, text, value in _STEADY]
    for other in ("none", "lru"):
        ours, reference = (100 * (each["votes"] / each[other] - 1) for each in (found, theirs))
        lines.append((f"votes against {other}, %", f"{ours:.0f}", f"{reference:.0f}"))  # fmt: skip
    return table(
        lines, ("", lambda r: r[0]), ("ours", lambda r: r[1]), ("reference", lambda r: r[2])
    )


def _gap(rows: Rows) -> str:
    names = ("delayed_over_instant", "instant_over_now", "now_over_clairvoyant")
    heads = ("delay", "votes", "foresight")
    return table(
        [rows],
        *((head, lambda rows, n=name: span([r[n] for r in rows], ".3f"))
          for head, name in zip(heads, names, strict=True)),
        ("all", lambda rows: span([float(np.prod([r[n] for n in names])) for r in rows], ".3f")),
        ("schedule proven", lambda rows: sum(r["status"] == "optimal" for r in rows)),
    )  # fmt: skip


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
    policies = dict.fromkeys(r["policy"] for r in rows)
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

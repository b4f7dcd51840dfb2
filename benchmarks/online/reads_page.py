"""The tables and figures of the page of leaseholder and quorum reads, from the kept results."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.harness import machine
from benchmarks.harness.doc_pages import markdown_table, pivot, row_table
from benchmarks.harness.pictures import COLOURS, Panel, save_panels
from benchmarks.harness.result_files import read_frame, read_json, rows_of
from benchmarks.online.reads import CLAIMS, GATEWAYS, HOT, LAGS, LIVES, SHARES, SLIDES, X
from benchmarks.online.tables import Rows, means
from placement.online.reads import (
    RaftCluster,
    ReadProblem,
    ReadStrategy,
    ReadWorkload,
    Visibility,
    bottleneck,
)
from placement.online.reads.leader_share import (
    inclusion_probability,
    leader_served,
    peak_reduction,
    uniform_share,
)

_QUORUM = f"uniform quorum, x = {X:.3g}"
STRATEGIES = {
    ("leaseholder", 0): "leaseholder",
    ("local", 0): "local",
    (_QUORUM, 0): "quorum",
    (_QUORUM, 1): "strong quorum",
}
"""The four of the source: rule and whether reads are strong -> name."""
NAMES = tuple(STRATEGIES.values())
_BASE, *_OTHERS = NAMES


def _rows() -> dict[str, pd.DataFrame]:
    """Return the rows of each suite; `strategy` is one of the four, or nothing."""
    rows = read_frame(SLIDES.path)
    names = map(STRATEGIES.get, zip(rows["rule"], rows["strong"], strict=True))
    rows["strategy"] = pd.Series(list(names), rows.index, dtype=object)
    return {str(suite): part for suite, part in rows.groupby("suite")}


def _means(rows: pd.DataFrame, value: str, *by: str) -> pd.DataFrame:
    """Return means of a column: a row for each value of `by`, a column for each strategy."""
    return rows.pivot_table(value, list(by), "strategy")


def tables() -> dict[str, str]:
    """Return the tables by their marks on the page."""
    by, checked = _rows(), read_json(CLAIMS.path)
    head = read_json(SLIDES.path.with_suffix(".json"))
    named = [{**row, "where": f"{row['world']}, {row['clients']} clients"}
             for row in rows_of(by["rules"])]  # fmt: skip
    return {
        "machine": f"{machine.sentence(head['machine'])}.",
        "shares": _shares(),
        "four": _four(by["clients"]),
        "reads": _reads(by["reads"]),
        "coin": _coin(by["coin"]),
        "hot": _hot(by["hot"]),
        "consistency": _consistency(by["consistency"]),
        "gateway": _gateway(by["gateway"]),
        "rules": pivot(named, "rule", "where", means("throughput", "read_ms", forms=",.0f .2f")),
        "write latency": _write_latency(checked["write latency"]),
        "elections": _elections(checked["elections"]),
    }


def _shares() -> str:
    lines = []
    for n in (3, 5, 7, 101):
        x = uniform_share(n)
        lines.append((n, inclusion_probability(n), f"{x} = {100 * float(x):.2f} %",
                      leader_served(n, x), f"{float(peak_reduction(n, x)):.2f}"))  # fmt: skip
    heads = ("n", "P", "x", "reads served by L", "peak load divided by")
    shown = markdown_table(heads, lines)
    writes = uniform_share(5, Fraction(5, 95), 2)
    return (
        f"{shown}\n\nWith 5 % writes that cost L two reads more than the others, x = {writes} = "
        f"{float(writes):.4f} at n = 5."
    )


def _four(rows: pd.DataFrame) -> str:
    """Return means, and half the range over the seeds."""
    found = rows[rows["clients"] == 70].groupby("strategy")
    lines = []
    for name in NAMES:
        mine, line = found.get_group(name), [name]
        for column, digits in (("throughput", 0), ("read_ms", 2), ("write_ms", 1)):
            half = (mine[column].max() - mine[column].min()) / 2
            line.append(f"{mine[column].mean():,.{digits}f} ± {half:.{digits}f}")
        lines.append(line)
    shown = markdown_table(("strategy", "ops/s", "read ms", "write ms"), lines)
    problem = ReadProblem.uniform(5)
    strategies = (
        ReadStrategy.coin(problem, 1.0),
        ReadStrategy(tuple((((node,), 1.0),) for node in range(5))),
        ReadStrategy.coin(problem, X),
    )
    laws = (bottleneck(RaftCluster(), ReadWorkload(), each).throughput for each in strategies)
    return f"""{shown}

In the long run the laws of the closed loop (`bottleneck`) allow at most
{", ".join(f"{law:,.0f}" for law in laws)} operations per second to the
leaseholder, local and quorum reads."""


def _gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Return throughput over the leaseholder's by the share of reads, in the mean of the seeds."""
    found = _means(rows, "throughput", "read_share", "seed")
    return found.div(found[_BASE], axis=0).groupby("read_share").mean()


def _reads(rows: pd.DataFrame) -> str:
    gains = _gains(rows)
    lines = (
        [f"{100 * share:.0f} %", *(f"{gains[name][share]:.2f}" for name in _OTHERS)]
        for share in gains.index
    )
    return markdown_table(("reads", *_OTHERS), lines)


def _coin(rows: pd.DataFrame) -> str:
    return row_table(
        "x|read ms|write ms|ops/s",
        "{share:.3g}|{read_ms:.2f}|{write_ms:.1f}|{throughput:,.0f}",
        rows_of(_tossed(rows, 0).reset_index()),
    )


def _tossed(rows: pd.DataFrame, strong: int) -> pd.DataFrame:
    """Return means by the share of reads of the leaseholder."""
    share = {f"uniform quorum, x = {share:.3g}": share for share in SHARES}
    mine = rows.assign(share=rows["rule"].map(share))[rows["strong"] == strong]
    return mine.groupby("share")[["throughput", "read_ms", "write_ms"]].mean()


def _retries(rows: pd.DataFrame) -> pd.DataFrame:
    """Return retries per 100 strong reads: a row for each hot part, a column for each life."""
    strong = rows[rows["strategy"] == "strong quorum"]
    return 100 * (strong.pivot_table("attempts", "hot_fraction", "intent_ms") - 1)


def _hot(rows: pd.DataFrame) -> str:
    plain, retries = _means(rows, "throughput", "hot_fraction"), _retries(rows)
    strong = rows[rows["strategy"] == "strong quorum"]
    ops, ms = (
        strong.pivot_table(column, "hot_fraction", "intent_ms")
        for column in ("throughput", "read_ms")
    )
    lines = (
        [f"{100 * part:.0f} %", f"{plain[_BASE][part]:,.0f}", f"{plain['quorum'][part]:,.0f}",
         *(f"{ops[life][part]:,.0f}, {retries[life][part]:.2f}, {ms[life][part]:.1f} ms"
           for life in LIVES)]
        for part in HOT
    )  # fmt: skip
    heads = (f"strong, intents {life:.0f} ms" for life in LIVES)
    return markdown_table(("hot part", _BASE, "quorum", *heads), lines)


def _consistency(rows: pd.DataFrame) -> str:
    wrong = rows[rows["apply_lag_ms"] > 0].groupby(["visibility", "apply_lag_ms", "strategy"])
    found = wrong[["stale", "backwards"]].sum().astype(str).agg("/".join, axis=1)
    lines = (
        [seen.value, f"{lag:.0f}",
         *(found[seen.value, lag, name] for name in NAMES)]
        for seen in Visibility for lag in LAGS if lag
    )  # fmt: skip
    shown = markdown_table(("followers answer from", "lag ms", *NAMES), lines)
    each = int(rows["reads"][rows["rule"] == "leaseholder"].sum()) // (2 * len(LAGS))
    return f"{shown}\n\nOf about {each:,} reads each; 200 keys, 30 clients, 20 % writes."


def _gateway(rows: pd.DataFrame) -> str:
    ops, ms = (_means(rows, name, "gateway_ms") for name in ("throughput", "write_ms"))
    more, faster = ops.div(ops[_BASE], axis=0), (1 / ms).mul(ms[_BASE], axis=0)
    lines = (
        [work, f"{ops[_BASE][work]:,.0f}",
         *(f"{more[name][work]:.2f}, {faster[name][work]:.2f}" for name in _OTHERS)]
        for work in GATEWAYS
    )  # fmt: skip
    return markdown_table(("gateway ms", "leaseholder ops/s", *_OTHERS), lines)


def _write_latency(rows: Rows) -> str:
    pairs = [pair for pair in zip(rows[::2], rows[1::2], strict=True) if pair[1]["clients"] == 70]
    lines = (
        (f"{4 * new['visit_ms']:g}", f"{new['throughput'] / old['throughput']:.2f}",
         f"{old['write_ms'] / new['write_ms']:.2f}",
         f"{100 * new['leader']:.0f} %/{100 * new['busiest']:.0f} %")
        for old, new in pairs
    )  # fmt: skip
    heads = ("write at L, ms", "throughput, times", "times faster", "L / busiest used")
    return markdown_table(heads, lines)


def _elections(rows: Rows) -> str:
    return row_table(
        "reads|failures/elections|stale|otherwise wrong|runs with any|read ms, median/mean",
        "{variant}|{failures:,}/{terms:,}|{stale:,}|{other:,}|{runs_with_any} of {runs}|"
        "{read_p50:.1f}/{read_ms:.1f}",
        rows,
    )


def draw_figures(folder: Path) -> None:
    """Draw the figures of the page into a folder, from the kept results."""
    by = _rows()

    def line(name: str, found: pd.Series) -> tuple[Any, Any, Any]:
        """Plain and strong reads often coincide, and both stay in sight."""
        strong = name.startswith("strong")
        return found.index, found, {
            "linestyle": "--" if strong else "-", "marker": "o", "markersize": 4 if strong else 8,
            "color": COLOURS[NAMES.index(name)],
        }  # fmt: skip

    def clients(column: str, label: str) -> Panel:
        found = _means(by["clients"], column, "clients")
        lines = {name: line(name, found[name]) for name in NAMES}
        return Panel(lines, {"xlabel": "clients", "ylabel": label, "ylim": (0, None)})

    def coin(column: str, label: str) -> Panel:
        lines = {
            name: line(name, _tossed(by["coin"], strong)[column])
            for strong, name in enumerate(("quorum", "strong quorum"))
        }
        axes = {"xlabel": "x", "ylabel": label, "ylim": (0, None)}
        return Panel(lines, axes, {"uniform, 2/7": X})

    found, lost = _gains(by["reads"]), _retries(by["hot"])
    gains = {name: line(name, found[name]) for name in _OTHERS}
    retries = {f"{100 * part:.0f} % of the keys hot": (LIVES, list(lost.loc[part]), {"marker": "o"})
               for part in HOT}  # fmt: skip
    for name, panels in (
        ("clients", [clients("throughput", "operations per second"),
                     clients("write_ms", "write latency, ms")]),
        ("coin", [coin("read_ms", "read latency, ms"), coin("write_ms", "write latency, ms")]),
        ("reads-and-retries", [
            Panel(gains, {"xlabel": "share of reads", "ylabel": "throughput / leaseholder's"}),
            Panel(retries, {"xlabel": "life of intents, ms",
                            "ylabel": "retries per 100 strong reads"})]),
    ):  # fmt: skip
        save_panels(folder / f"online-reads-{name}.png", panels)

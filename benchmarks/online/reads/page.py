"""The tables and figures of the page of leaseholder and quorum reads, from the kept results."""

from __future__ import annotations

import io
import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT
from benchmarks.harness.pictures import COLOURS, axes_of
from benchmarks.harness.result_files import Row, existing_rows, read_json, rows_of
from benchmarks.online.reads import claims
from benchmarks.online.reads.study import (
    CLIENTS,
    EXPERIMENTS,
    GATEWAYS,
    HOT,
    LAGS,
    LIVES,
    READS,
    SHARES,
    X,
)
from benchmarks.online.tables import Rows, mean, pivot, table
from placement.io.formats.files import write_file
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
from placement.online.reads.retry_model import RetryModel, simulate

__all__ = ["draw_figures", "tables"]

FIGURES = ROOT / "docs" / "figures"
UNIFORM = f"uniform quorum, x = {X:.3g}"
STRATEGIES = (
    ("leaseholder", "leaseholder", "0"),
    ("local", "local", "0"),
    ("quorum", UNIFORM, "0"),
    ("strong quorum", UNIFORM, "1"),
)
"""The four of the source: name, rule, whether strong."""
REFERENCE = {
    "leaseholder": (11_836, 5.33, 17.0),
    "local": (21_563, 2.64, 14.7),
    "quorum": (17_266, 3.54, 13.6),
    "strong quorum": (17_044, 3.58, 13.9),
}
"""Of an independent implementation of the same model: operations per second, read and write ms."""
GAINS = (1.04, 1.08, 1.15, 1.36, 1.46, 1.56)
SWEEP = ((4.02, 6.2), (3.72, 7.2), (3.58, 9.5), (3.53, 13.4), (3.78, 15.4), (4.02, 16.0))
RETRIES = (
    (0.12, 20, 1.0031, 1.17),
    (1, 20, 1.0222, 2.23),
    (5, 20, 1.1049, 7.26),
    (20, 20, 1.4080, 35.8),
    (0.12, 500, 1.192, 44.1),
)
"""Writes per second on the key, life of intents in ms, attempts and ms drawn by the reference."""


def tables() -> dict[str, str]:
    """Return the tables by their marks on the page."""
    rows, checked = existing_rows(EXPERIMENTS.path), read_json(claims.EXPERIMENTS.path)
    head = read_json(EXPERIMENTS.path.with_suffix(".json"))
    return {
        "machine": f"{machine.sentence(head['machine'])}.",
        "shares": _shares(),
        "four": _four(rows),
        "reads": _reads(rows),
        "coin": _coin(rows),
        "hot": _hot(rows),
        "retries": _retries(),
        "consistency": _consistency(rows),
        "gateway": _gateway(rows),
        "rules": _rules(rows),
        "write latency": _write_latency(checked["write latency"]),
        "elections": _elections(checked["elections"]),
    }


def _spread(rows: Rows, column: str, digits: int = 0) -> str:
    """Mean, and half the range over the seeds."""
    values = [float(row[column]) for row in rows]
    half = (max(values) - min(values)) / 2
    return f"{statistics.fmean(values):,.{digits}f} ± {half:.{digits}f}"


def _shares() -> str:
    shown = table(
        (3, 5, 7, 101),
        ("n", lambda n: n),
        ("P", inclusion_probability),
        ("x", lambda n: f"{uniform_share(n)} = {100 * float(uniform_share(n)):.2f} %"),
        ("reads served by L", lambda n: leader_served(n, uniform_share(n))),
        ("peak load divided by", lambda n: f"{float(peak_reduction(n, uniform_share(n))):.2f}"),
    )
    writes = uniform_share(5, Fraction(5, 95), 2)
    return (
        f"{shown}\n\nWith 5 % writes that cost L two reads more than the others, x = {writes} = "
        f"{float(writes):.4f} at n = 5."
    )


def _four(rows: list[Row]) -> str:
    def of(column: str, digits: int) -> Callable[[Any], str]:
        return lambda key: _spread(
            rows_of(rows, "clients", rule=key[1], strong=key[2], clients=70), column, digits
        )

    shown = table(
        STRATEGIES,
        ("strategy", lambda key: key[0]),
        ("ops/s", of("throughput", 0)),
        ("reference", lambda key: f"{REFERENCE[key[0]][0]:,}"),
        ("read ms", of("read_ms", 2)),
        ("reference", lambda key: REFERENCE[key[0]][1]),
        ("write ms", of("write_ms", 1)),
        ("reference", lambda key: REFERENCE[key[0]][2]),
    )
    return f"""{shown}

The reference is an independent implementation of the same model. In the long run the
laws of the closed loop (`bottleneck`) allow at most {_most()} operations per second
to the leaseholder, local and quorum reads."""


def _most() -> str:
    problem = ReadProblem.uniform(5)
    local = tuple((((node,), 1.0),) for node in range(5))
    strategies = (
        ReadStrategy.coin(problem, 1.0),
        ReadStrategy(local),
        ReadStrategy.coin(problem, X),
    )
    laws = [
        bottleneck(RaftCluster(), ReadWorkload(), strategy).throughput for strategy in strategies
    ]
    return ", ".join(f"{law:,.0f}" for law in laws)


def _reads(rows: list[Row]) -> str:
    def gain(share: float, rule: str, strong: str) -> str:
        base = rows_of(rows, "reads", rule="leaseholder", read_share=share)
        found = rows_of(rows, "reads", rule=rule, strong=strong, read_share=share)
        pairs = zip(found, base, strict=True)
        return "{:.2f}".format(
            statistics.fmean(float(a["throughput"]) / float(b["throughput"]) for a, b in pairs)
        )

    return table(
        zip(READS, GAINS, strict=True),
        ("reads", lambda row: f"{100 * row[0]:.0f} %"),
        *((name, lambda row, k=key: gain(row[0], *k)) for name, *key in STRATEGIES[1:]),
        ("reference, quorum", lambda row: row[1]),
    )


def _coin(rows: list[Row]) -> str:
    def found(row: Any) -> list[Row]:
        return rows_of(rows, "coin", rule=f"uniform quorum, x = {row[0]:.3g}", strong="0")

    return table(
        zip(SHARES, SWEEP, strict=True),
        ("x", lambda row: f"{row[0]:.3g}"),
        ("read ms", lambda row: f"{mean(found(row), 'read_ms'):.2f} ({row[1][0]})"),
        ("write ms", lambda row: f"{mean(found(row), 'write_ms'):.1f} ({row[1][1]})"),
        ("ops/s", lambda row: f"{mean(found(row), 'throughput'):,.0f}"),
    )


def _hot(rows: list[Row]) -> str:
    def plain(fraction: float, rule: str) -> str:
        found = rows_of(rows, "hot", rule=rule, strong="0", hot_fraction=fraction)
        return f"{mean(found, 'throughput'):,.0f}"

    def strong(fraction: float, life: float) -> str:
        found = rows_of(
            rows, "hot", rule=UNIFORM, strong="1", hot_fraction=fraction, intent_ms=life
        )
        return (
            f"{mean(found, 'throughput'):,.0f}, {100 * (mean(found, 'attempts') - 1):.2f} "
            f"({_predicted(found):.2f}), {mean(found, 'read_ms'):.1f} ms"
        )

    return table(
        HOT,
        ("hot part", lambda fraction: f"{100 * fraction:.0f} %"),
        ("leaseholder", lambda fraction: plain(fraction, "leaseholder")),
        ("quorum", lambda fraction: plain(fraction, UNIFORM)),
        *((f"strong, intents {life:.0f} ms", lambda f, n=life: strong(f, n)) for life in LIVES),
    )


def _predicted(rows: Rows) -> float:
    """Retries per 100 reads by the model: four fifths of the gateways toss the coin.

    An intent is taken to live for what the cluster adds to it and as long as a write takes, and new
    ones to come at the rate of writes on the key, whether it has one or not.
    """
    writes = mean(rows, "throughput") * (1 - float(rows[0]["read_share"]))
    fraction = float(rows[0]["hot_fraction"])
    life = mean(rows, "intent_ms") + mean(rows, "write_ms")
    total = 0.0
    for share, part in ((0.8, fraction), (0.2, 1 - fraction)):
        rate = share * writes / (part * 100_000)
        total += share * (RetryModel(rate, life, share=X).attempts - 1)
    return 100 * 0.8 * total


def _retries() -> str:
    lines = []
    for rate, life, attempts, latency in RETRIES:
        model = RetryModel(rate, life)
        drawn = simulate(model, 200_000, np.random.default_rng(7))
        lines.append((rate, life, model, *drawn, attempts, latency))
    return table(
        lines,
        ("writes/s", lambda row: row[0]),
        ("intent ms", lambda row: row[1]),
        ("attempts: model", lambda row: f"{row[2].attempts:.4f}"),
        ("simulated (reference)", lambda row: f"{row[3]:.4f} ({row[5]})"),
        ("latency ms: model", lambda row: f"{row[2].latency:.2f}"),
        ("simulated (reference)", lambda row: f"{row[4]:.2f} ({row[6]})"),
    )


def _consistency(rows: list[Row]) -> str:
    def wrong(key: Any, rule: str, strong: str) -> str:
        found = rows_of(rows, "consistency", rule=rule, strong=strong, visibility=key[0].value,
                        apply_lag_ms=key[1])  # fmt: skip
        stale, back = (sum(int(r[name]) for r in found) for name in ("stale", "backwards"))
        return f"{stale}/{back}"

    shown = table(
        [(visibility, lag) for visibility in Visibility for lag in LAGS if lag],
        ("followers answer from", lambda key: key[0].value),
        ("lag ms", lambda key: f"{key[1]:.0f}"),
        *((name, lambda key, k=rest: wrong(key, *k)) for name, *rest in STRATEGIES),
    )
    reads = sum(int(r["reads"]) for r in rows_of(rows, "consistency", rule="leaseholder"))
    each = reads // (2 * len(LAGS))
    return f"{shown}\n\nOf about {each:,} reads each; 200 keys, 30 clients, 20 % writes."


def _gateway(rows: list[Row]) -> str:
    def base(work: float) -> list[Row]:
        return rows_of(rows, "gateway", rule="leaseholder", gateway_ms=work)

    def times(work: float, rule: str, strong: str) -> str:
        found = rows_of(rows, "gateway", rule=rule, strong=strong, gateway_ms=work)
        gain = mean(found, "throughput") / mean(base(work), "throughput")
        return f"{gain:.2f}, {mean(base(work), 'write_ms') / mean(found, 'write_ms'):.2f}"

    return table(
        GATEWAYS,
        ("gateway ms", lambda work: work),
        ("leaseholder ops/s", lambda work: f"{mean(base(work), 'throughput'):,.0f}"),
        *((name, lambda work, k=key: times(work, *k)) for name, *key in STRATEGIES[1:]),
    )


def _rules(rows: list[Row]) -> str:
    named = [
        {**row, "where": f"{row['world']}, {row['clients']} clients"}
        for row in rows_of(rows, "rules")
    ]

    def cell(mine: Rows) -> str:
        return f"{mean(mine, 'throughput'):,.0f}/{mean(mine, 'read_ms'):.2f}"

    return pivot(named, "where", cell, "", "rule")


def _write_latency(rows: Rows) -> str:
    return table(
        [pair for pair in zip(rows[::2], rows[1::2], strict=True) if pair[1]["clients"] == 70],
        ("write at L, ms", lambda pair: f"{4 * pair[1]['visit_ms']:g}"),
        ("throughput, times", lambda p: f"{p[1]['throughput'] / p[0]['throughput']:.2f}"),
        ("times faster", lambda pair: f"{pair[0]['write_ms'] / pair[1]['write_ms']:.2f}"),
        ("L / busiest used", lambda pair: "{:.0f} %/{:.0f} %".format(
            100 * pair[1]["leader"], 100 * pair[1]["busiest"])),
    )  # fmt: skip


def _elections(rows: Rows) -> str:
    return table(
        rows,
        ("reads", lambda row: row["variant"]),
        ("failures/elections", lambda row: f"{row['failures']:,}/{row['terms']:,}"),
        ("stale", lambda row: f"{row['stale']:,}"),
        ("otherwise wrong", lambda row: f"{row['other']:,}"),
        ("runs with any", lambda row: f"{row['runs_with_any']} of {row['runs']}"),
        ("read ms, median/mean", lambda row: f"{row['read_p50']:.1f}/{row['read_ms']:.1f}"),
    )


def draw_figures() -> None:
    """Draw the figures of the page from the kept results."""
    rows = existing_rows(EXPERIMENTS.path)
    _draw_clients(rows)
    _draw_coin(rows)
    _reads_and_retries(rows)


def _keep(figure: Any, name: str) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    write_file(FIGURES / f"online-reads-{name}.png", buffer.getvalue(), force=True)


def _line(axes: Any, x: Sequence[float], y: Sequence[float], name: str, place: int) -> None:
    """Draw a strategy; plain and strong reads often coincide, and both stay in sight."""
    strong = name.startswith("strong")
    axes.plot(
        x,
        y,
        "--" if strong else "-",
        marker="o",
        markersize=4 if strong else 8,
        color=COLOURS[place],
        label=name,
    )


def _draw_clients(rows: Sequence[Row]) -> None:
    figure, axes = axes_of(2)
    for place, (name, rule, strong) in enumerate(STRATEGIES):
        for side, column in ((0, "throughput"), (1, "write_ms")):
            values = [
                mean(rows_of(rows, "clients", rule=rule, strong=strong, clients=c), column)
                for c in CLIENTS
            ]
            _line(axes[side], CLIENTS, values, name, place)
    axes[0].set(xlabel="clients", ylabel="operations per second", ylim=(0, None))
    axes[1].set(xlabel="clients", ylabel="write latency, ms", ylim=(0, None))
    axes[0].legend(frameon=False)
    _keep(figure, "clients")


def _draw_coin(rows: Sequence[Row]) -> None:
    figure, axes = axes_of(2)
    rules = [f"uniform quorum, x = {share:.3g}" for share in SHARES]
    for place, strong, name in ((2, "0", "quorum"), (3, "1", "strong quorum")):
        for side, column in ((0, "read_ms"), (1, "write_ms")):
            values = [mean(rows_of(rows, "coin", rule=r, strong=strong), column) for r in rules]
            _line(axes[side], SHARES, values, name, place)
    for side, what in ((0, "read"), (1, "write")):
        axes[side].axvline(X, color="0.5", linestyle=":", label="uniform, 2/7")
        top = 1.1 * axes[side].get_ylim()[1]
        axes[side].set(xlabel="x", ylabel=f"{what} latency, ms", ylim=(0, top))
    axes[0].legend(frameon=False)
    _keep(figure, "coin")


def _reads_and_retries(rows: Sequence[Row]) -> None:
    figure, (left, right) = axes_of(2)
    base = [
        mean(rows_of(rows, "reads", rule="leaseholder", read_share=share), "throughput")
        for share in READS
    ]
    for place, (name, rule, strong) in enumerate(STRATEGIES[1:], start=1):
        values = [
            mean(rows_of(rows, "reads", rule=rule, strong=strong, read_share=share), "throughput")
            for share in READS
        ]
        _line(left, READS, [a / b for a, b in zip(values, base, strict=True)], name, place)
    left.set(xlabel="share of reads", ylabel="throughput / leaseholder's", ylim=(0.9, None))
    left.legend(frameon=False)
    for place, fraction in enumerate(HOT):
        strong_reads = [
            rows_of(rows, "hot", rule=UNIFORM, strong="1", hot_fraction=fraction, intent_ms=life)
            for life in LIVES
        ]
        values = [100 * (mean(found, "attempts") - 1) for found in strong_reads]
        _line(right, LIVES, values, f"{100 * fraction:.0f} % of the keys hot", place)
    right.set(xlabel="life of intents, ms", ylabel="retries per 100 strong reads", ylim=(0, None))
    right.legend(frameon=False)
    _keep(figure, "reads-and-retries")

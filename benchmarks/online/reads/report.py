"""Tables and figures of leaseholder and quorum reads, from the committed results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.pictures import rows as table
from benchmarks.harness.result_files import Row, existing_rows, read_json, rows_of
from benchmarks.online.reads.claims import RESULTS as CLAIMS
from benchmarks.online.reads.claims_tables import claims_sections
from benchmarks.online.reads.pictures import draw
from benchmarks.online.reads.rows import STRATEGIES, UNIFORM, mean
from benchmarks.online.reads.study import (
    CLIENTS,
    GATEWAYS,
    HOT,
    LAGS,
    LIVES,
    READS,
    RESULTS,
    SHARES,
    X,
)
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
    slide_share,
    uniform_share,
)
from placement.online.reads.retry_model import RetryModel, simulate

__all__ = ["draw_figures", "page"]

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


def page() -> str:
    """Return the page from the kept results."""
    head = read_json(RESULTS.with_suffix(".json"))
    claims = claims_sections(read_json(CLAIMS))
    return "\n".join([*_page(existing_rows(RESULTS), head), "", *claims]) + "\n"


def draw_figures() -> None:
    """Draw the figures of the page from the kept results."""
    draw(existing_rows(RESULTS))


def _spread(rows: Sequence[Row], column: str, digits: int = 0) -> str:
    """Mean, and half the range over the seeds."""
    values = [float(row[column]) for row in rows]
    if not values:
        return ""
    half = (max(values) - min(values)) / 2
    return f"{statistics.fmean(values):,.{digits}f} ± {half:.{digits}f}"


def _page(rows: list[Row], head: dict[str, object]) -> list[str]:
    described = head["machine"]
    assert isinstance(described, dict)
    lines = [
        "# Leaseholder and quorum reads, measured",
        "",
        "Made by `python -m benchmarks run online.reads --write-docs` from",
        f"`benchmarks/results/online_reads.csv`; {head['seeds']} seeds, {head['operations']:,} "
        "operations a run, the first tenth not",
        "counted; ± is half the range over the seeds. For the simulator, and for results that do",
        "not reproduce, see [the page of the subject](../online-reads.md).",
        "",
        f"{machine.sentence(described)}.",
        "",
    ]
    for part in (_shares, _four, _clients, _reads, _coin, _hot, _retries, _consistency, _gateway):
        lines += [*part(rows), ""]
    return lines + _rules(rows)


def _shares(rows: list[Row]) -> list[str]:
    body = []
    for n in (3, 4, 5, 6, 7, 9, 11, 101):
        x = uniform_share(n)
        body.append(
            [
                n,
                inclusion_probability(n),
                f"{x} = {100 * float(x):.2f} %",
                "yes" if slide_share(n) == x else "no",
                leader_served(n, x),
                f"{float(peak_reduction(n, x)):.2f}",
            ]
        )
    writes = uniform_share(5, Fraction(5, 95), 2)
    return [
        "## The share x",
        "",
        *table(
            ["n", "P", "x", "as on the slides", "reads served by L", "peak load divided by"], body
        ),
        "",
        f"With 5 % writes that cost L two reads more than the others, x = {writes} = "
        f"{float(writes):.4f} at n = 5.",
    ]


def _four(rows: list[Row]) -> list[str]:
    body = []
    for name, rule, strong in STRATEGIES:
        found = rows_of(rows, "clients", rule=rule, strong=strong, clients=70)
        throughput, read, write = REFERENCE[name]
        body.append(
            [
                name,
                _spread(found, "throughput"),
                f"{throughput:,}",
                _spread(found, "read_ms", 2),
                read,
                _spread(found, "write_ms", 1),
                write,
            ]
        )
    return [
        "## Four strategies, 70 clients, 95 % reads",
        "",
        *table(
            ["strategy", "ops/s", "reference", "read ms", "reference", "write ms", "reference"],
            body,
        ),
        "",
        "The reference is an independent implementation of the same model. In the long run the",
        f"laws of the closed loop (`bottleneck`) allow at most {_most()} operations per second",
        "to the leaseholder, local and quorum reads.",
    ]


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


def _clients(rows: list[Row]) -> list[str]:
    body = []
    for count in CLIENTS:
        row: list[object] = [count]
        for _, rule, strong in STRATEGIES:
            found = rows_of(rows, "clients", rule=rule, strong=strong, clients=count)
            row.append(f"{mean(found, 'throughput'):,.0f} / {mean(found, 'write_ms'):.1f}")
        body.append(row)
    return [
        "## Scaling clients: ops/s / write ms",
        "",
        *table(["clients", *(name for name, _, _ in STRATEGIES)], body),
        "",
        "Source: about 60 % more throughput and a quarter of the write latency with quorum reads.",
    ]


def _reads(rows: list[Row]) -> list[str]:
    body = []
    for share, reference in zip(READS, GAINS, strict=True):
        base = rows_of(rows, "reads", rule="leaseholder", read_share=share)
        row: list[object] = [f"{100 * share:.0f} %"]
        for _, rule, strong in STRATEGIES[1:]:
            found = rows_of(rows, "reads", rule=rule, strong=strong, read_share=share)
            gains = [
                float(a["throughput"]) / float(b["throughput"])
                for a, b in zip(found, base, strict=True)
            ]
            row.append(f"{statistics.fmean(gains):.2f}")
        body.append([*row, reference])
    return [
        "## Varying the share of reads: throughput over that of the leaseholder",
        "",
        *table(["reads", "local", "quorum", "strong quorum", "reference, quorum"], body),
        "",
        "Source: the gain grows with the share of reads, up to about 85 %.",
    ]


def _coin(rows: list[Row]) -> list[str]:
    body = []
    for share, (read, write) in zip(SHARES, SWEEP, strict=True):
        rule = f"uniform quorum, x = {share:.3g}"
        plain = rows_of(rows, "coin", rule=rule, strong="0")
        strong = rows_of(rows, "coin", rule=rule, strong="1")
        body.append(
            [
                f"{share:.3g}",
                _spread(plain, "read_ms", 2),
                read,
                _spread(plain, "write_ms", 1),
                write,
                _spread(strong, "read_ms", 2),
                _spread(strong, "write_ms", 1),
                f"{mean(plain, 'throughput'):,.0f}",
            ]
        )
    return [
        "## Varying x, 70 clients, 95 % reads",
        "",
        *table(
            [
                "x",
                "read ms",
                "reference",
                "write ms",
                "reference",
                "strong read ms",
                "strong write ms",
                "ops/s",
            ],
            body,
        ),
        "",
        "Source: more leaseholder reads, lower read and higher write latency; the curves cross",
        "near the uniform point.",
    ]


def _hot(rows: list[Row]) -> list[str]:
    body = []
    for fraction in HOT:
        base = rows_of(rows, "hot", rule="leaseholder", hot_fraction=fraction)
        plain = rows_of(rows, "hot", rule=UNIFORM, strong="0", hot_fraction=fraction)
        row: list[object] = [f"{100 * fraction:.0f} %", f"{mean(base, 'throughput'):,.0f}"]
        row.append(f"{mean(plain, 'throughput'):,.0f}")
        for life in LIVES:
            found = rows_of(
                rows, "hot", rule=UNIFORM, strong="1", hot_fraction=fraction, intent_ms=life
            )
            retried = 100 * (mean(found, "attempts") - 1)
            row.append(
                f"{mean(found, 'throughput'):,.0f}, {retried:.2f} ({_predicted(found):.2f}), "
                f"{mean(found, 'read_ms'):.1f} ms"
            )
        body.append(row)
    return [
        "## Hot spots: 80 % of the requests on a part of 100,000 keys",
        "",
        *table(
            [
                "hot part",
                "leaseholder",
                "quorum",
                *(f"strong, intents {life:.0f} ms" for life in LIVES),
            ],
            body,
        ),
        "",
        "Operations per second; for strong reads also retries per 100 reads (in parentheses",
        "the retry model at the measured write rate) and read latency. Source: many",
        "retries at high contention. At ordinary lives of intents there are hardly any: they need",
        "intents that linger for hundreds of ms.",
    ]


def _predicted(rows: Sequence[Row]) -> float:
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


def _retries(rows: list[Row]) -> list[str]:
    body = []
    for rate, life, attempts, latency in RETRIES:
        model = RetryModel(rate, life)
        drawn = simulate(model, 200_000, np.random.default_rng(7))
        body.append(
            [
                rate,
                life,
                f"{model.conflict:.4f}",
                f"{model.attempts:.4f}",
                f"{drawn[0]:.4f}",
                attempts,
                f"{model.latency:.2f}",
                f"{drawn[1]:.2f}",
                latency,
            ]
        )
    return [
        "## The retry model",
        "",
        *table(
            [
                "writes/s",
                "intent ms",
                "π",
                "attempts: model",
                "drawn",
                "reference, drawn",
                "latency ms: model",
                "drawn",
                "reference, drawn",
            ],
            body,
        ),
    ]


def _consistency(rows: list[Row]) -> list[str]:
    body = []
    for visibility in Visibility:
        for lag in LAGS:
            row: list[object] = [visibility.value, f"{lag:.0f}"]
            for _, rule, strong in STRATEGIES:
                found = rows_of(
                    rows,
                    "consistency",
                    rule=rule,
                    strong=strong,
                    visibility=visibility.value,
                    apply_lag_ms=lag,
                )
                stale = sum(int(r["stale"]) for r in found)
                back = sum(int(r["backwards"]) for r in found)
                row.append(f"{stale} / {back}")
            body.append(row)
    reads = sum(int(r["reads"]) for r in rows_of(rows, "consistency", rule="leaseholder"))
    each = reads // (2 * len(LAGS))
    return [
        "## What clients saw: stale / backwards reads",
        "",
        *table(["followers answer from", "lag ms", *(name for name, _, _ in STRATEGIES)], body),
        "",
        f"Of about {each:,} reads each; 200 keys, 30 clients, 20 % writes.",
    ]


def _gateway(rows: list[Row]) -> list[str]:
    body = []
    for work in GATEWAYS:
        base = rows_of(rows, "gateway", rule="leaseholder", gateway_ms=work)
        row: list[object] = [work, f"{mean(base, 'throughput'):,.0f}"]
        for _, rule, strong in STRATEGIES[1:]:
            found = rows_of(rows, "gateway", rule=rule, strong=strong, gateway_ms=work)
            gain = mean(found, "throughput") / mean(base, "throughput")
            slower = mean(base, "write_ms") / mean(found, "write_ms")
            row.append(f"{gain:.2f}, {slower:.2f}")
        body.append(row)
    return [
        "## The free parameter: work of the gateway",
        "",
        *table(["gateway ms", "leaseholder ops/s", "local", "quorum", "strong quorum"], body),
        "",
        "Throughput as a multiple of the leaseholder's; how many times lower write latency is.",
        "Source, at 70 clients: about 1.6 and about 4.",
    ]


def _rules(rows: list[Row]) -> list[str]:
    found = rows_of(rows, "rules")
    names = list(dict.fromkeys(row["rule"] for row in found))
    settings = list(dict.fromkeys((row["world"], row["clients"]) for row in found))
    body = []
    for name in names:
        row: list[object] = [name]
        for world, count in settings:
            here = rows_of(rows, "rules", rule=name, world=world, clients=count)
            row.append(f"{mean(here, 'throughput'):,.0f} / {mean(here, 'read_ms'):.2f}")
        body.append(row)
    return [
        "## Choosing the majority: ops/s / read ms",
        "",
        *table(["rule", *(f"{world}, {count} clients" for world, count in settings)], body),
        "",
        "Gateways carry 10, 40, 30, 10 and 10 % of the operations; node 0 holds the lease. On the",
        'line the nodes are 0, 0.5, 1, 3 and 4 ms of RTT away from it, plus 0.2 ms. "Optimum" is',
        "proven for the stated goal of the linear program, not for the closed loop.",
    ]

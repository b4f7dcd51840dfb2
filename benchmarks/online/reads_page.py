"""The tables and figures of the page of leaseholder and quorum reads, from the kept results."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.pictures import COLOURS, Panel, save_panels
from benchmarks.harness.result_files import existing_rows, read_json
from benchmarks.online.reads import (
    CLAIMS,
    CLIENTS,
    GATEWAYS,
    HOT,
    LAGS,
    LIVES,
    READS,
    SHARES,
    SLIDES,
    X,
)
from benchmarks.online.tables import Rows, mean, means, pick, pivot, table, values
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

STRATEGIES = {
    "leaseholder": {"rule": "leaseholder", "strong": "0"},
    "local": {"rule": "local", "strong": "0"},
    "quorum": {"rule": f"uniform quorum, x = {X:.3g}", "strong": "0"},
    "strong quorum": {"rule": f"uniform quorum, x = {X:.3g}", "strong": "1"},
}
"""The four of the source: name -> its rows."""
_BASE, *_OTHERS = STRATEGIES


def tables() -> dict[str, str]:
    """Return the tables by their marks on the page."""
    rows, checked = existing_rows(SLIDES.path), read_json(CLAIMS.path)
    by = {suite: pick(rows, suite=suite) for suite in dict.fromkeys(row["suite"] for row in rows)}
    head = read_json(SLIDES.path.with_suffix(".json"))
    named = [{**row, "where": f"{row['world']}, {row['clients']} clients"} for row in by["rules"]]
    return {
        "machine": f"{machine.sentence(head['machine'])}.",
        "shares": _shares(),
        "four": _four(pick(by["clients"], clients=70)),
        "reads": _reads(by["reads"]),
        "coin": _coin(by["coin"]),
        "hot": _hot(by["hot"]),
        "consistency": _consistency(by["consistency"]),
        "gateway": _gateway(by["gateway"]),
        "rules": pivot(
            named, "where", means("throughput", "read_ms", forms=",.0f .2f"), "", "rule"
        ),
        "write latency": _write_latency(checked["write latency"]),
        "elections": _elections(checked["elections"]),
    }


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


def _four(rows: Rows) -> str:
    def of(column: str, digits: int) -> Callable[[Any], str]:
        """Mean, and half the range over the seeds."""

        def cell(name: str) -> str:
            found = values(pick(rows, **STRATEGIES[name]), column)
            half = (max(found) - min(found)) / 2
            return f"{statistics.fmean(found):,.{digits}f} ± {half:.{digits}f}"

        return cell

    shown = table(
        STRATEGIES,
        ("strategy", str),
        ("ops/s", of("throughput", 0)),
        ("read ms", of("read_ms", 2)),
        ("write ms", of("write_ms", 1)),
    )
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


def _gain(rows: Rows, share: float, name: str) -> float:
    both = (pick(rows, read_share=share, **STRATEGIES[each]) for each in (name, _BASE))
    pairs = zip(*(values(mine, "throughput") for mine in both), strict=True)
    return statistics.fmean(a / b for a, b in pairs)


def _reads(rows: Rows) -> str:
    return table(
        READS,
        ("reads", lambda share: f"{100 * share:.0f} %"),
        *((name, lambda share, n=name: f"{_gain(rows, share, n):.2f}") for name in _OTHERS),
    )


def _tossed(rows: Rows, share: float, strong: str = "0") -> Rows:
    return pick(rows, rule=f"uniform quorum, x = {share:.3g}", strong=strong)


def _coin(rows: Rows) -> str:
    def of(column: str, form: str) -> Callable[[Any], str]:
        return lambda share: f"{mean(_tossed(rows, share), column):{form}}"

    return table(
        SHARES,
        ("x", lambda share: f"{share:.3g}"),
        ("read ms", of("read_ms", ".2f")),
        ("write ms", of("write_ms", ".1f")),
        ("ops/s", of("throughput", ",.0f")),
    )


def _retries(rows: Rows, fraction: float, life: float) -> tuple[Rows, float]:
    found = pick(rows, hot_fraction=fraction, intent_ms=life, **STRATEGIES["strong quorum"])
    return found, 100 * (mean(found, "attempts") - 1)


def _hot(rows: Rows) -> str:
    def plain(name: str) -> Callable[[Any], str]:
        return lambda part: means("throughput")(pick(rows, hot_fraction=part, **STRATEGIES[name]))

    def strong(fraction: float, life: float) -> str:
        found, retries = _retries(rows, fraction, life)
        return f"{mean(found, 'throughput'):,.0f}, {retries:.2f}, {mean(found, 'read_ms'):.1f} ms"

    return table(
        HOT,
        ("hot part", lambda fraction: f"{100 * fraction:.0f} %"),
        ("leaseholder", plain("leaseholder")),
        ("quorum", plain("quorum")),
        *((f"strong, intents {life:.0f} ms", lambda f, n=life: strong(f, n)) for life in LIVES),
    )


def _consistency(rows: Rows) -> str:
    def wrong(key: Any, name: str) -> str:
        found = pick(rows, visibility=key[0].value, apply_lag_ms=key[1], **STRATEGIES[name])
        return "/".join(f"{sum(values(found, each)):.0f}" for each in ("stale", "backwards"))

    shown = table(
        [(visibility, lag) for visibility in Visibility for lag in LAGS if lag],
        ("followers answer from", lambda key: key[0].value),
        ("lag ms", lambda key: f"{key[1]:.0f}"),
        *((name, lambda key, n=name: wrong(key, n)) for name in STRATEGIES),
    )
    each = int(sum(values(pick(rows, rule="leaseholder"), "reads"))) // (2 * len(LAGS))
    return f"{shown}\n\nOf about {each:,} reads each; 200 keys, 30 clients, 20 % writes."


def _gateway(rows: Rows) -> str:
    def found(work: float, name: str) -> Rows:
        return pick(rows, gateway_ms=work, **STRATEGIES[name])

    def times(work: float, name: str) -> str:
        mine, base = found(work, name), found(work, _BASE)
        faster = mean(base, "write_ms") / mean(mine, "write_ms")
        return f"{mean(mine, 'throughput') / mean(base, 'throughput'):.2f}, {faster:.2f}"

    return table(
        GATEWAYS,
        ("gateway ms", lambda work: work),
        ("leaseholder ops/s", lambda work: means("throughput")(found(work, _BASE))),
        *((name, lambda work, n=name: times(work, n)) for name in _OTHERS),
    )


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


def draw_figures(folder: Path) -> None:
    """Draw the figures of the page into a folder, from the kept results."""
    rows = existing_rows(SLIDES.path)
    by = {suite: pick(rows, suite=suite) for suite in ("clients", "coin", "reads", "hot")}

    def line(name: str, x: Sequence[float], y: Sequence[float]) -> tuple[Any, Any, Any]:
        """Plain and strong reads often coincide, and both stay in sight."""
        strong = name.startswith("strong")
        return x, y, {
            "linestyle": "--" if strong else "-", "marker": "o", "markersize": 4 if strong else 8,
            "color": COLOURS[list(STRATEGIES).index(name)],
        }  # fmt: skip

    def clients(column: str, label: str) -> Panel:
        lines = {
            name: line(name, CLIENTS, [
                mean(pick(by["clients"], clients=c, **wanted), column) for c in CLIENTS])
            for name, wanted in STRATEGIES.items()
        }  # fmt: skip
        return Panel(lines, {"xlabel": "clients", "ylabel": label, "ylim": (0, None)})

    def coin(column: str, label: str) -> Panel:
        lines = {
            name: line(name, SHARES, [mean(_tossed(by["coin"], x, strong), column) for x in SHARES])
            for name, strong in (("quorum", "0"), ("strong quorum", "1"))
        }
        axes = {"xlabel": "x", "ylabel": label, "ylim": (0, None)}
        return Panel(lines, axes, {"uniform, 2/7": X})

    gains = {
        name: line(name, READS, [_gain(by["reads"], share, name) for share in READS])
        for name in _OTHERS
    }
    retries = {
        f"{100 * part:.0f} % of the keys hot":
            (LIVES, [_retries(by["hot"], part, life)[1] for life in LIVES], {"marker": "o"})
        for part in HOT
    }  # fmt: skip
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

"""The tables and figures of the page of replica selection, from the kept results."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT
from benchmarks.harness.pictures import axes_of
from benchmarks.harness.result_files import Row, existing_rows, read_json, rows_of
from benchmarks.online.selection import closed_loop, ladder, wide_area
from benchmarks.online.selection.reference import GRID, ORIGINAL, POISSON, SETTINGS
from benchmarks.online.tables import Rows, groups, mean, pivot, spread, table
from placement.report.charts.palette import METHODS

__all__ = ["LOAD_STEP", "RESULTS", "draw_figures", "draw_load_step", "tables"]

RESULTS = ROOT / "benchmarks" / "results" / "online_selection.csv"
FIGURES = ROOT / "docs" / "figures"
LOAD_STEP = FIGURES / "online-selection-load-step.png"
_LADDER = ("ECTF", "ECT", "ORA", "C3", "LOR", "RR")


def tables() -> dict[str, str]:
    """Return the tables by their marks on the page."""
    rows = existing_rows(RESULTS)
    bounds, closed = read_json(ladder.EXPERIMENTS.path), read_json(closed_loop.EXPERIMENTS.path)
    wide, head = read_json(wide_area.EXPERIMENTS.path), read_json(RESULTS.with_suffix(".json"))
    return {
        "machine": f"Machine: {machine.sentence(head['machine'])}.",
        "grid": _grid(rows),
        "original": _original(rows),
        "ratios": _ratios(rows),
        "settings": _settings(rows),
        "limiter": _limiter(rows),
        "ablation": _ablation(rows),
        "skew": _skew(rows),
        "full size": _full_size(bounds["full size"]),
        "windows": _windows(bounds["windows"]),
        "mixes": _mixes(closed["mixes"]),
        "speeds": _speeds(closed["speeds"]),
        "load step": _steps(closed["load step"]),
        "arriving": _arriving(closed["arriving"]),
        "wide area": _wide_area(wide["policies"]),
        "detours": _detours(wide["C3"]),
    }


def draw_figures() -> None:
    """Draw the figures of the page from the kept results."""
    _draw_ladder(read_json(ladder.EXPERIMENTS.path))
    _draw_epochs(existing_rows(RESULTS))
    draw_load_step(read_json(closed_loop.EXPERIMENTS.path)["load step"])


def _values(rows: Rows, column: str) -> list[float]:
    return [float(row[column]) for row in rows]


def _of(column: str, digits: int = 1) -> Callable[[Any], str]:
    """A cell with mean and deviation of a column of a group of rows."""
    return lambda rows: spread(_values(rows, column), digits)


def _paired(rows: Rows, above: str, below: str, column: str) -> list[float]:
    """Ratios of two policies on the same path, seed by seed."""
    value = {(row["policy"], row["seed"]): float(row[column]) for row in rows}
    seeds = sorted({seed for _, seed in value}, key=int)
    return [
        value[above, seed] / value[below, seed]
        for seed in seeds
        if (above, seed) in value and (below, seed) in value
    ]


def _grid(rows: Sequence[Row]) -> str:
    """Means beside the reference, and how many lie within the spread."""
    cells = [
        (epoch, policy, reference, rows_of(rows, "grid", epoch_ms=epoch, policy=policy))
        for epoch, policies in GRID.items()
        for policy, reference in policies.items()
    ]
    names = {"mean": "mean", "p50": "p50", "p99": "p99", "p999": "p99.9"}
    near, beyond = 0, []
    for epoch, policy, reference, mine in cells:
        for column in names:
            values, (value, deviation) = _values(mine, column), reference[column]
            off = abs(statistics.fmean(values) - value)
            # The printed reference leaves half a unit of the last place open.
            allowed = max(deviation, statistics.stdev(values)) + 0.05
            near += off <= allowed
            if off > allowed:
                beyond.append(f"{policy} {column} at T = {epoch} ({off / allowed:.1f} spreads)")
    shown = table(
        [cell for cell in cells if cell[0] in (10, 100, 500)],
        ("T", lambda cell: cell[0]),
        ("policy", lambda cell: cell[1]),
        ("mean", lambda cell: _beside(_values(cell[3], "mean"), cell[2]["mean"][0])),
        ("p99", lambda cell: _beside(_values(cell[3], "p99"), cell[2]["p99"][0])),
    )
    said = f"{near} of {len(cells) * len(names)} means lie within one between-seed deviation of the"
    rest = "; not " + ", ".join(beyond) if beyond else ""
    return f"{shown}\n\n{said} reference{rest}."


def _beside(values: Sequence[float], reference: float) -> str:
    """Our mean over the seeds, and the reference."""
    return f"{statistics.fmean(values):.1f} ({reference:.1f})"


def _ratios(rows: Sequence[Row]) -> str:
    def shown(epoch: int, above: str, below: str, column: str) -> str:
        ours = spread(_paired(rows_of(rows, "poisson", epoch_ms=epoch), above, below, column), 2)
        value, deviation = POISSON[epoch][f"{above}/{below} {column}"]
        return f"{ours} ({value:.2f}{'' if deviation is None else f' ± {deviation:.2f}'})"

    keys = (("C3", "ORA", "p99"), ("LOR", "C3", "p99"), ("LOR", "C3", "mean"))
    return table(
        POISSON,
        ("T", lambda epoch: epoch),
        *((f"{a}/{b} {c}", lambda epoch, k=(a, b, c): shown(epoch, *k)) for a, b, c in keys),
    )


def _settings(rows: Sequence[Row]) -> str:
    """Return how far the p99 for other numbers of clients and loads are from the reference."""
    off = [
        abs(mean(mine, "p99") / reference - 1)
        for (clients, load, epoch), known in SETTINGS.items()
        for policy, reference in zip(("ORA", "C3", "LOR", "RR"), known, strict=True)
        for mine in (rows_of(rows, "settings", clients=clients, utilisation=load,
                             epoch_ms=epoch, policy=policy),)
    ]  # fmt: skip
    return (
        f"Other numbers of clients and loads, p99, {len(off)} cases: the median difference to the "
        f"reference is {100 * statistics.median(off):.1f} %, the largest {100 * max(off):.0f} %."
    )


def _refused(mine: Rows) -> str:
    tries = sum(int(row["tries"]) for row in mine)
    return f"{100 * sum(int(row['refused']) for row in mine) / tries:.3g} %" if tries else ""


def _limiter(rows: Sequence[Row]) -> str:
    def cell(mine: Rows) -> str:
        return f"{mean(mine, 'mean'):.1f}" + (
            f" ({refused})" if (refused := _refused(mine)) else ""
        )

    return pivot(rows_of(rows, "limiter", n=150_000), "clients", cell, "clients:")


def _skew(rows: Sequence[Row]) -> str:
    named = [
        {**row, "share": f"{100 * float(row['heavy_clients']):g} % of clients"}
        for row in rows_of(rows, "skew", epoch_ms=100)
    ]  # fmt: skip
    return pivot(named, "share", _mean_and_p99, "")


def _mean_and_p99(mine: Rows) -> str:
    return f"{mean(mine, 'mean'):.1f} ({mean(mine, 'p99'):.1f})"


def _ablation(rows: Sequence[Row]) -> str:
    return table(
        groups(rows_of(rows, "ablation"), "policy").values(),
        ("policy", lambda mine: mine[0]["policy"]),
        ("mean", _of("mean")),
        ("p99", _of("p99")),
        ("refused", _refused),
    )


def _original(rows: Sequence[Row]) -> str:
    def ranged(key: tuple[int, str], column: str) -> str:
        values = _values(rows_of(rows, "grid", epoch_ms=key[0], policy=key[1]), column)
        return f"{min(values):.1f}–{max(values):.1f}"

    return table(
        ORIGINAL,
        ("T", lambda key: key[0]),
        ("policy", lambda key: key[1]),
        ("mean", lambda key: f"{ORIGINAL[key][0]:.1f}"),
        ("ours", lambda key: ranged(key, "mean")),
        ("p99", lambda key: f"{ORIGINAL[key][1]:.1f}"),
        ("ours", lambda key: ranged(key, "p99")),
    )


def _full_size(rows: Rows) -> str:
    return table(
        rows,
        ("T", lambda row: f"{row['epoch_ms']:g}"),
        ("proven bound", lambda row: f"{row['bound']:.3f}"),
        ("fluid", lambda row: f"{row['fluid']:.3f}"),
        *((name, lambda row, n=name: f"{row[n + ', no copies']:.2f}") for name in _LADDER),
        ("ECTF with copies", lambda row: f"{row['ECTF']:.2f}"),
        ("C3 with copies", lambda row: f"{row['C3']:.2f}"),
    )


def _known(row: Mapping[str, float]) -> dict[str, float]:
    """The row with its best bound and plans: a policy may be better than a stopped search."""
    fcfs = min(row["fcfs"], *(row[name] for name in _LADDER))
    return {**row, "fcfs": fcfs, "any": min(row["any"], fcfs), "bound": row["any bound"]}


def _windows(windows: Rows) -> str:
    names = ("any bound", "any", "fcfs bound", "fcfs", *_LADDER)
    rows = [_known(row) for row in windows]
    return table(
        [rows],
        *((name, lambda rows, n=name: f"{mean(rows, n):.2f}") for name in names),
        *((f"{name} proven", lambda rows, n=name: sum(bool(row.get(f"{n} proven")) for row in rows))
          for name in ("any", "fcfs")),
    )  # fmt: skip


def _mean_of(column: str, form: str = ",.0f", factor: float = 1.0) -> Callable[[Any], str]:
    return lambda rows: f"{factor * mean(rows, column):{form}}"


def _gain(found: Mapping[tuple[Any, ...], Rows], key: object, policy: str) -> str:
    ratio = mean(found[key, policy], "throughput") / mean(found[key, "DS"], "throughput")
    return f"{100 * (ratio - 1):+.0f} %"


def _mixes(rows: Rows) -> str:
    slowest = {row["mix"]: mean([r for r in rows if (r["mix"], r["policy"]) == (row["mix"], "DS")],
                                "throughput") for row in rows}  # fmt: skip

    def cell(mine: Rows) -> str:
        gain = mean(mine, "throughput") / slowest[mine[0]["mix"]] - 1
        busiest = statistics.fmean(row["busiest"]["max"] for row in mine)
        return f"{100 * gain:+.0f} %, {mean(mine, 'p99'):.1f}, {busiest:.0f}"

    return pivot(rows, "mix", cell, "")


def _speeds(rows: Rows) -> str:
    found = groups(rows, "fluctuation", "policy")
    policies = ("DS", "C3", "C3, no limiter")
    return table(
        dict.fromkeys(row["fluctuation"] for row in rows),
        ("D", lambda factor: f"{factor:g}"),
        *((p, lambda factor, p=p: _mean_of("throughput")(found[factor, p])) for p in policies),
        ("C3 over DS", lambda factor: _gain(found, factor, "C3")),
        ("without limiter", lambda factor: _gain(found, factor, "C3, no limiter")),
    )


def _steps(rows: Rows) -> str:
    return table(
        groups(rows, "policy").values(),
        ("policy", lambda mine: mine[0]["policy"]),
        ("operations/s", _mean_of("throughput")),
        ("p99 before", _mean_of("p99 before", ".1f")),
        ("p99 after", _mean_of("p99 after", ".1f")),
        ("worst bin after", _mean_of("worst bin after", ".1f")),
    )


def _arriving(rows: Rows) -> str:
    return pivot(rows, "utilisation", _mean_and_p99, "utilisation")


def _wide_area(rows: Rows) -> str:
    def cell(mine: Rows) -> str:
        parts = (f"{mean(mine, name):,.0f}" for name in ("mean", "network", "p99", "nearest"))
        return "/".join(parts)

    return pivot(rows, "utilisation", cell, "utilisation")


def _detours(rows: Rows) -> str:
    columns = {
        "exploring, %": "unknown",
        "until, ms": "known_ms",
        "passed, %": "passed",
        "outstanding": "outstanding",
        "arrived": "arrived",
        "there": "there",
        "further, ms": "further",
    }

    def shown(value: float) -> str:
        return f"{value:,.1f}" if value == value else ""

    return table(
        rows,
        ("reads", lambda row: f"{row['reads']:,}"),
        *((head, lambda row, n=name: shown(row[n])) for head, name in columns.items()),
    )


def _draw_ladder(bounds: Mapping[str, list[dict[str, float]]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    full = bounds["full size"]
    times = [row["epoch_ms"] for row in full]
    for name, style in zip(("RR", "LOR", "C3", "ORA", "ECT", "ECTF"), "vs^D+o", strict=True):
        left.plot(times, [row[name + ", no copies"] for row in full], marker=style, label=name)
    left.plot(times, [row["bound"] for row in full], "k-", lw=2, label="proven bound")
    left.set(xscale="log", yscale="log", xlabel="T, ms between two draws of the speeds")
    left.set(ylabel="mean latency, ms", title="140,000 reads, no copies")
    left.set_xticks(times, [f"{t:g}" for t in times])
    left.minorticks_off()
    left.set_yticks([2, 3, 5, 10, 20, 50, 100], ["2", "3", "5", "10", "20", "50", "100"])
    left.legend(ncols=2, fontsize=8)
    left.grid(alpha=0.3)
    names = ("bound", "any", "fcfs", *_LADDER)
    shown = ("proven bound", "any order", "fcfs", *_LADDER)
    rows = [_known(row) for row in bounds["windows"]]
    for row in rows:
        right.plot(range(len(names)), [row[n] for n in names], color="0.75", lw=0.8)
    means = [statistics.fmean(row[n] for row in rows) for n in names]
    right.plot(range(len(names)), means, "ko-", label=f"mean of {len(rows)} windows")
    right.set_xticks(range(len(names)), shown, rotation=45, ha="right", fontsize=8)
    right.set(yscale="log", ylabel="mean flow time, ms", title="15 reads of a warm system")
    right.set_yticks([2, 3, 5, 10, 20, 50], ["2", "3", "5", "10", "20", "50"])
    right.minorticks_off()
    right.legend(fontsize=8)
    right.grid(alpha=0.3)
    figure.savefig(FIGURES / "online-selection-ladder.png", dpi=110)
    plt.close(figure)


_POLICIES = ("RR", "LOR", "C3", "ORA")
_MARKS = "vs^D"
_PANELS = (
    ("settings", 150, 0.45, 1.0, "150 clients, utilisation 0.45"),
    ("grid", 150, 0.70, 1.0, "150 clients, utilisation 0.70"),
    ("skew", 150, 0.70, 0.2, "20 % of 150 clients make 80 % of demand, 0.70"),
    ("settings", 300, 0.45, 1.0, "300 clients, utilisation 0.45"),
    ("settings", 300, 0.70, 1.0, "300 clients, utilisation 0.70"),
    ("skew", 150, 0.70, 0.02, "2 % of 150 clients make 95 % of demand, 0.70"),
)


def _draw_epochs(rows: Sequence[Row]) -> None:
    """Draw mean and range over the seeds of the p99, a panel per setting."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 3, figsize=(12, 7), sharey=True, layout="constrained")
    for axes, (suite, clients, load, heavy, title) in zip(panels.flat, _PANELS, strict=True):
        here = [
            row
            for row in rows
            if row["suite"] == suite
            and int(row["clients"]) == clients
            and (float(row["utilisation"]), float(row["heavy_clients"])) == (load, heavy)
        ]
        for number, (policy, mark) in enumerate(zip(_POLICIES, _MARKS, strict=True)):
            mine = [row for row in here if row["policy"] == policy]
            times = sorted({float(row["epoch_ms"]) for row in mine})
            values = [
                [float(row["p99"]) for row in mine if float(row["epoch_ms"]) == time]
                for time in times
            ]
            means = [statistics.fmean(some) for some in values]
            if times:
                colour = METHODS[number]
                axes.plot(times, means, marker=mark, color=colour, label=policy)
                low, high = [min(some) for some in values], [max(some) for some in values]
                axes.fill_between(times, low, high, color=colour, alpha=0.15, lw=0)
        axes.set(xscale="log", yscale="log", title=title)
        axes.title.set_fontsize(10)
        axes.set_xticks([10, 50, 100, 200, 500], ["10", "50", "100", "200", "500"])
        axes.set_xlim(8, 620)
        axes.set_yticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1,000"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    for axes in panels[1]:
        axes.set_xlabel("T, ms between two draws of the speeds")
    for axes in panels[:, 0]:
        axes.set_ylabel("p99 of reads, ms")
    figure.savefig(FIGURES / "online-selection-epochs.png", dpi=110)
    plt.close(figure)


def draw_load_step(rows: Rows, path: Path = LOAD_STEP) -> None:
    """Draw median and p99 of reads over time while 40 generators join, for the first seed.

    Parameters
    ----------
    rows
        Rows of the load step; those with a time line are drawn, without duplicates of reads.
    path
        Where the picture goes.
    """
    lines = [row for row in rows if "p99 line" in row and "hedged" not in row["policy"]]
    figure, panels = axes_of(2)
    for axes, key, label in zip(
        panels, ("median", "p99 line"), ("median of reads, ms", "p99 of reads, ms"), strict=True
    ):
        for number, row in enumerate(lines):
            values = row[key][:-1]  # the last bin is not full
            times = [closed_loop.BIN_MS * place / 1000 for place in range(len(values))]
            axes.plot(times, values, color=METHODS[number], lw=1.5, label=row["policy"])
        axes.axvline(lines[0]["joins_ms"] / 1000, color="0.5", ls=":", label="40 generators join")
        axes.set(xlabel="time, s", ylabel=label, ylim=(0, None))
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)

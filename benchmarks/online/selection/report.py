"""Tables and the figure of replica selection, from the committed results."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import Row, existing_rows, read_json, rows_of
from benchmarks.online.selection.closed_loop import BIN_MS
from benchmarks.online.selection.closed_loop import RESULTS as CLOSED
from benchmarks.online.selection.closed_loop_tables import closed_loop_section
from benchmarks.online.selection.ladder import RESULTS as LADDER
from benchmarks.online.selection.pictures import draw_epochs, draw_load_step
from benchmarks.online.selection.reference import GRID, ORIGINAL, POISSON, RATIOS, SETTINGS
from benchmarks.online.selection.wide_area import RESULTS as WIDE

__all__ = ["FIGURE", "RESULTS", "draw_figures", "page"]

RESULTS = ROOT / "benchmarks" / "results" / "online_selection.csv"

FIGURE = ROOT / "docs" / "figures" / "online-selection-ladder.png"
_table = functools.partial(markdown_table, rule=" --- ")
_LADDER = ("ECTF", "ECT", "ORA", "C3", "LOR", "RR")


def page() -> str:
    """Return the page from the kept results."""
    head = read_json(RESULTS.with_suffix(".json"))
    return _page(existing_rows(RESULTS), head, read_json(LADDER)) + (
        "\n" + closed_loop_section(read_json(CLOSED) or {}) + "\n" + _wide_area(read_json(WIDE))
    )


def draw_figures() -> None:
    """Draw the figures of the page from the kept results."""
    _draw(read_json(LADDER))
    draw_epochs(existing_rows(RESULTS))
    draw_load_step(read_json(CLOSED)["load step"], BIN_MS)


def _spread(values: Sequence[float], digits: int = 1) -> str:
    if not values:
        return ""
    mean = statistics.fmean(values)
    if len(values) == 1:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def _values(rows: Iterable[Row], column: str) -> list[float]:
    return [float(row[column]) for row in rows]


def _paired(rows: Iterable[Row], above: str, below: str, column: str) -> list[float]:
    """Ratios of two policies on the same path, seed by seed."""
    value = {(row["policy"], row["seed"]): float(row[column]) for row in rows}
    seeds = sorted({seed for _, seed in value}, key=int)
    return [
        value[above, seed] / value[below, seed]
        for seed in seeds
        if (above, seed) in value and (below, seed) in value
    ]


def _grid(rows: Sequence[Row]) -> tuple[str, str]:
    """The table of section one, and a sentence that counts how many means lie within the spread."""
    lines, near, total, beyond = [], 0, 0, []
    for epoch, policies in GRID.items():
        for policy, reference in policies.items():
            mine = rows_of(rows, "grid", epoch_ms=epoch, policy=policy)
            if not mine:
                continue
            cells = [str(epoch), policy]
            for column in ("mean", "p50", "p99", "p999"):
                values = _values(mine, column)
                value, spread = reference[column]
                cells += [_spread(values), f"{value:.1f} ± {spread:.1f}"]
                off = abs(statistics.fmean(values) - value)
                total += 1
                # The printed reference leaves half a unit of the last place open.
                allowed = max(spread, statistics.stdev(values)) + 0.05
                near += off <= allowed
                if off > allowed:
                    beyond.append(f"{policy} {column} at T = {epoch} ({off / allowed:.1f} spreads)")
            lines.append(cells)
    head = ["T", "policy"]
    for name in ("mean", "p50", "p99", "p99.9"):
        head += [name, "reference"]
    said = f"{near} of {total} means lie within one between-seed deviation of the reference"
    said += ("; not " + ", ".join(beyond) if beyond else "") + "."
    return _table(head, lines), said


def _ratios(rows: Sequence[Row], suite: str) -> str:
    lines = []
    for epoch, reference in POISSON.items():
        mine = rows_of(rows, suite, epoch_ms=epoch)
        if not mine:
            continue
        cells = [str(epoch)]
        for above, below, column in (
            ("C3", "ORA", "p99"),
            ("LOR", "C3", "p99"),
            ("LOR", "C3", "mean"),
        ):
            cells.append(_spread(_paired(mine, above, below, column), 2))
            if suite == "poisson":
                value, spread = reference[f"{above}/{below} {column}"]
                cells.append(f"{value:.2f}" + ("" if spread is None else f" ± {spread:.2f}"))
            elif column == "p99" and epoch in RATIOS[f"{above}/{below}"]:
                value, spread = RATIOS[f"{above}/{below}"][epoch]
                cells.append(f"{value:.2f} ± {spread:.2f}")
            else:
                cells.append("")
        lines.append(cells)
    head = ["T"]
    for name in ("C3/ORA p99", "LOR/C3 p99", "LOR/C3 mean"):
        head += [name, "reference"]
    return _table(head, lines)


def _poisson(rows: Sequence[Row]) -> str:
    lines = []
    for epoch, reference in POISSON.items():
        cells = [str(epoch)]
        for policy in ("ECTF", "ECT", "ORA", "C3", "LOR", "RR"):
            mine = rows_of(rows, "poisson", epoch_ms=epoch, policy=policy)
            cells += [_spread(_values(mine, "p99")), f"{reference[f'{policy} p99'][0]:.1f}"]
        lines.append(cells)
    head = ["T"]
    for policy in ("ECTF", "ECT", "ORA", "C3", "LOR", "RR"):
        head += [policy, "reference"]
    return _table(head, lines)


def _settings(rows: Sequence[Row]) -> str:
    lines = []
    for (clients, load, epoch), reference in SETTINGS.items():
        cells = [str(clients), f"{load:.2f}", str(epoch)]
        for policy, value in zip(("ORA", "C3", "LOR", "RR"), reference, strict=True):
            mine = rows_of(
                rows, "settings", clients=clients, utilisation=load, epoch_ms=epoch, policy=policy
            )
            cells += [_spread(_values(mine, "p99")), f"{value:.1f}"]
        lines.append(cells)
    head = ["clients", "utilisation", "T"]
    for policy in ("ORA", "C3", "LOR", "RR"):
        head += [policy, "reference"]
    return _table(head, lines)


def _variants(rows: Sequence[Row], suite: str, columns: Mapping[str, str], **wanted: float) -> str:
    """Return a line per setting and variant, with `columns`; of rows with wanted values."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows_of(rows, suite, **wanted):
        found.setdefault((*(row[name] for name in columns), row["policy"]), []).append(row)
    lines = []
    for key, group in found.items():
        tries = sum(int(row["tries"]) for row in group)
        refused = sum(int(row["refused"]) for row in group)
        share = f"{100 * refused / tries:.3g} %" if tries else ""
        setting = [f"{float(value):g}" for value in key[:-1]]
        figures = [_spread(_values(group, c)) for c in ("mean", "p50", "p99", "p999")]
        lines.append([*setting, key[-1], *figures, share])
    head = [*columns.values(), "policy", "mean", "p50", "p99", "p99.9", "refused"]
    return _table(head, lines)


def _original(rows: Sequence[Row]) -> str:
    lines = []
    for (epoch, policy), (mean, p99) in ORIGINAL.items():
        mine = rows_of(rows, "grid", epoch_ms=epoch, policy=policy)
        means, tails = _values(mine, "mean"), _values(mine, "p99")
        if means:
            lines.append(
                [
                    str(epoch),
                    policy,
                    f"{mean:.1f}",
                    f"{min(means):.1f} – {max(means):.1f}",
                    f"{p99:.1f}",
                    f"{min(tails):.1f} – {max(tails):.1f}",
                ]
            )
    return _table(["T", "policy", "mean", "ours", "p99", "ours"], lines)


def _full_size(ladder: Mapping[str, list[dict[str, float]]]) -> str:
    lines = [
        [
            f"{row['epoch_ms']:g}",
            f"{row['bound']:.3f}",
            f"{row['fluid']:.3f}",
            *(f"{row[name + ', no copies']:.2f}" for name in _LADDER),
            f"{row['ECTF']:.2f}",
            f"{row['C3']:.2f}",
        ]
        for row in ladder["full size"]
    ]
    head = ["T", "proven bound", "fluid", *_LADDER, "ECTF with copies", "C3 with copies"]
    return _table(head, lines)


def _known(row: Mapping[str, float]) -> dict[str, float]:
    """The row with its best bound and plans: a policy may be better than a stopped search."""
    fcfs = min(row["fcfs"], *(row[name] for name in _LADDER))
    best = max(row["prices"], row["any bound"])
    return {**row, "fcfs": fcfs, "any": min(row["any"], fcfs), "bound": best}


def _windows(ladder: Mapping[str, list[dict[str, float]]]) -> str:
    names = ("prices", "any bound", "any", "fcfs bound", "fcfs", *_LADDER)
    rows = [_known(row) for row in ladder["windows"]]
    lines = []
    for row in rows:
        cells = [str(row["seed"]), *(f"{row[name]:.2f}" for name in names)]
        cells[3] += " *" if row["any proven"] else ""  # beside "any", as the next beside "fcfs"
        cells[5] += " *" if row["fcfs proven"] else ""
        lines.append(cells)
    if rows:
        means = [f"{statistics.fmean(row[name] for row in rows):.2f}" for name in names]
        lines.append(["mean", *means])
    return _table(["window", *names], lines)


def _page(rows: Sequence[Row], head: Mapping[str, object], ladder: Mapping[str, object]) -> str:
    grid, said = _grid(rows)
    described = head["machine"]
    assert isinstance(described, Mapping)
    small: Mapping[str, list[dict[str, float]]] = ladder  # type: ignore[assignment]  # from JSON
    return f"""# Replica selection, measured

Generated by `python -m benchmarks run online.selection --write-docs` from
`benchmarks/results/online_selection.csv` (one row per run) and `online_selection_ladder.json`;
do not edit. For the interpretation, see [the page of replica selection](../online-selection.md).

All times in ms; mean ± deviation between seeds. 50 servers of 4 slots, 150 clients, utilisation
0.7 (0.84 with copies), 600,000 reads, unless a column says otherwise. T is the time between two
draws of the server speeds. Policies share sample paths. Ties go to the first replica of the group,
as in the authors' simulator. *Reference*: values of an independent implementation of the same
rules, measured apart from this project, on other seeds.

Measured on {machine.sentence(described)}.

## Whole-millisecond arrivals, first 2000 ms dropped, 10 seeds

{grid}

{said} Means of different policies at one T are not independent: they share the speeds.

Paired ratios, seed by seed:

{_ratios(rows, "grid")}

## The authors' own simulator

One run of absim (commit c5d5488, unmodified, seed 1, nothing dropped) beside the range of our ten
seeds (first 2000 ms dropped). absim does not share paths between policies.

{_original(rows)}

## Exponential arrivals, nothing dropped, 10 seeds

{_ratios(rows, "poisson")}

p99:

{_poisson(rows)}

## Other numbers of clients and loads

p99; ours with 3 seeds, the reference with 5.

{_settings(rows)}

## Rate control

T = 100, 3 seeds, nothing dropped; *refused*: how many tries found a bucket empty. The share of
refusals depends on the number of reads, because most of them fall into the start: compare rows of
equal length. For 150 clients see the next table.

150,000 reads, about two seconds:

{_variants(rows, "limiter", {"clients": "clients"}, n=150_000)}

300,000 reads:

{_variants(rows, "limiter", {"clients": "clients"}, n=300_000)}

## Parts of C3

T = 100, 5 seeds (WRT and DS: 2), 300,000 reads.

{_variants(rows, "ablation", {})}

## Demand skew

3 seeds, 300,000 reads; the first two columns: this share of the clients makes this share of the
demand.

{_variants(rows, "skew", {"heavy_clients": "clients", "heavy_demand": "demand", "epoch_ms": "T"})}

## p99 against the pace of the fluctuation

![p99 against T, six settings](../figures/online-selection-epochs.png)

Means over the seeds, with their range. The paper's figure (p99 against T for two utilisations, two
numbers of clients, and with skewed demand) has the order ORA < C3 < LOR < RR, with an absolute gap
that grows with T. The order is the same here but for concentrated demand, where LOR is ahead of C3;
the gap between C3 and ORA grows with T at 0.70, and hardly at 0.45.

## Policies against bounds

![Mean latency of policies and bounds](../figures/online-selection-ladder.png)

Full size: 140,000 reads (2 s), one path per T, rounded to a grid of 1/128 ms. The bound is proven
for that very path and every policy; policies without copies ("read repair") meet the same system as
the bound, those with copies a busier one.

{_full_size(small)}

Windows: 15 reads at 5 servers of 1 slot, utilisation 0.8, T = 50 ms, cut out of a run of C3; mean
flow time. *prices*: the price bound; *any*, *fcfs*: best plan known in any order, and at
first-come-first-served servers (plans of policies count too), each after its proven bound. A star
marks a plan that is proven optimal within {ladder["seconds"]:g} s of wall time on a busy machine.

{_windows(small)}
"""


def _wide_area(document: Mapping[str, Any]) -> str:
    groups: dict[tuple[float, str], list[Mapping[str, float]]] = {}
    for row in document["policies"]:
        groups.setdefault((row["utilisation"], row["policy"]), []).append(row)
    columns = ("mean", "network", "waiting", "service", "p99", "nearest")
    lines = [
        [f"{load:g}", policy, *(f"{statistics.fmean(r[c] for r in rows):,.1f}" for c in columns)]
        for (load, policy), rows in groups.items()
    ]
    head = ["utilisation", "policy", "mean", "network", "waiting", "service", "p99", "nearest, %"]
    names = ("unknown", "known_ms", "passed", "outstanding", "arrived", "there", "further")
    parts = [
        [f"{row['reads']:,}", *(f"{row[n]:,.1f}" if row[n] == row[n] else "" for n in names)]
        for row in document["C3"]
    ]
    return f"""## Over a wide area

Generated by `python -m benchmarks run online.selection.wide_area`
(`benchmarks/results/online_selection_wide_area.json`): world27, the five replicas of its optimal
plan with three servers each, {document["reads"]:,} reads of its 60 clients, no copies, means over
{document["seeds"]} seeds, ms. *Waiting*: at the client (rate control) and in the queue.

{_table(head, lines)}

The reads of C3 without rate control, one seed. *Exploring*: per cent of the reads whose client had
not heard of all replicas of the group, and when the last of these was issued. Then the reads that
passed the nearest replica over, in per cent, with means over them: requests of the client
outstanding there, how many of these had arrived, requests of all clients that were there, and the
network time of the replica taken beyond the nearest, ms.

{
        _table(
            [
                "reads",
                "exploring, %",
                "until, ms",
                "passed, %",
                "outstanding",
                "arrived",
                "there",
                "further, ms",
            ],
            parts,
        )
    }
"""


def _draw(ladder: Mapping[str, list[dict[str, float]]]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    full = ladder["full size"]
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
    rows = [_known(row) for row in ladder["windows"]]
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
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=110)
    plt.close(figure)

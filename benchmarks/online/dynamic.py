"""Dynamic replication by votes: placements against the optimum, sketches, and Figures 3 to 7.

    python -m benchmarks run online.dynamic [--seeds 5] [--only table recall …]

Writes benchmarks/results/online_dynamic.json, and the series of the figures beside it as CSV. Parts
that are not run keep their rows in the file. Figures 3 to 7 of Matri et al. are scaled down; the
part `protocol` counts stale reads of the write protocol, with all assumptions of its proof and
without each. Everything is measured in simulated milliseconds of network time except for processor
times, which say so.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.pictures import Panel, save_panels
from benchmarks.harness.results import (
    RESULTS,
    Row,
    Rows,
    averaged,
    markdown_table,
    mean,
    pick,
    read_json,
    read_rows,
    row_table,
    save_csv,
    span,
)
from benchmarks.harness.study import Study
from formulations.online.dynamic.belady_min import most_hits
from formulations.online.dynamic.copy_prices import solve_lagrangean
from formulations.online.dynamic.copy_programs import relax, solve_milp
from heuristics.online.dynamic.caches import NAMES, cache_maker
from heuristics.online.dynamic.copy_choices import greedy, local_topk, run_votes
from placement.online import spawn_streams, summarise
from placement.online.dynamic import (
    Geography,
    HotSetWorld,
    ReplicationProblem,
    clustered_sites,
    evaluate,
    hot_set_world,
    six_sites,
)
from placement.online.dynamic.cache_simulator import CacheTrace, accesses, simulate_caches
from placement.online.dynamic.copy_protocol import ProtocolSettings, simulate_protocol
from placement.online.dynamic.store_demand import CAUSES, RequestWorkload
from placement.online.dynamic.vote_counting import (
    SpaceSaving,
    merge,
    most_voted,
    replicas_conservative,
    replicas_exact,
    top,
)
from placement.online.dynamic.vote_simulator import (
    SimulationTrace,
    VoteSettings,
    WriteForwarding,
    simulate,
)
from placement.online.simulation import zipf

MECHANISM = RESULTS / "online_dynamic_mechanism.csv"
LATENCY = RESULTS / "online_dynamic_latency.csv"
OTHER_KEYS = RESULTS / "online_dynamic_other_keys.csv"

# --- placements with known rates, and sketches --------------------------------------------------

CASES = (
    # geography, objects, k, correlation
    ("paper", 2000, 60, 0.0),
    ("paper", 2000, 60, 0.5),
    ("paper", 2000, 60, 1.0),
    ("paper", 500, 20, 1.0),
    ("paper", 5000, 150, 0.5),
    ("paper", 5000, 150, 1.0),
    ("clustered", 2000, 60, 0.0),
    ("clustered", 2000, 60, 0.5),
    ("clustered", 2000, 60, 1.0),
)
_GEOGRAPHIES = {"paper": six_sites, "clustered": clustered_sites}


def world_of(geography: Geography, objects: int, correlation: float, seed: int) -> HotSetWorld:
    """Return the instance of a case: 96 nodes, 12 generators, 3 static copies, Zipf 0.99."""
    return hot_set_world(geography, objects, spawn_streams(seed, CAUSES), correlation=correlation)


def _table(options: argparse.Namespace) -> Iterator[Row]:
    """Yield mean read RTTs in ms per case and seed; SystemExit when the exact methods disagree."""
    for name, objects, k, correlation in CASES:
        for seed in range(1, options.seeds + 1):
            world = world_of(_GEOGRAPHIES[name](), objects, correlation, seed)
            problem = world.problem(k)
            one, three = run_votes(problem), run_votes(problem, grace=3)
            best = solve_lagrangean(problem)
            if best.status != "optimal":
                raise SystemExit(f"{name} {objects} {correlation} {seed}: gap {best.gap:.1e}")
            relaxed = None
            if objects <= 500 or (objects <= 2000 and seed <= 2):
                plan, relaxed = solve_milp(problem), relax(problem).value
                if abs(plan.cost - best.cost) > 1e-9 * best.cost or plan.status != "optimal":
                    raise SystemExit(f"{name} {objects} {correlation} {seed}: two optima")
            # The optimum with as many copies as the grace period makes, rounded up at each site.
            room = np.ceil(three.mean_replicas)
            more = solve_lagrangean(
                ReplicationProblem(problem.geography, problem.static, problem.reads, room)
            )
            yield {
                "geography": name,
                "objects": objects,
                "k": k,
                "correlation": correlation,
                "seed": seed,
                "none": evaluate(problem, problem.none).cost,
                "votes": one.mean_cost,
                "votes_last": float(one.cost[-1]),
                "votes_worst": float(one.cost[one.settled :].max(initial=one.mean_cost)),
                "period": one.period,
                "votes_g3": three.mean_cost,
                "copies_g3": float(three.mean_replicas.mean()),
                "saved": run_votes(problem, in_ms=True).mean_cost,
                "local": local_topk(problem).cost,
                "greedy": greedy(problem).cost,
                "optimum": best.cost,
                "bound": best.bound,
                "relaxation": relaxed,
                "optimum_at_g3": more.cost,
            }


def _recall(seed: int) -> Iterator[Row]:
    """Yield how much of the exact top 10 000 of a site its 16 nodes find together.

    Votes of two generators with hot sets of their own in 20 million keys each, keys spread over the
    nodes by a hash, one merge of all 16 with one truncation.
    """
    keys, k, nodes = 20_000_000, 10_000, 16
    cumulative = np.cumsum(zipf(keys))
    rng = np.random.default_rng(seed)
    for votes in (100_000, 1_000_000):
        # The key of rank r of generator g is r + g · keys: which keys they are does not matter.
        rank = np.searchsorted(cumulative, rng.random(votes) * cumulative[-1])
        stream = rank + rng.integers(0, 2, votes) * keys
        node = (stream.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)) % nodes
        found, counts = np.unique(stream, return_counts=True)
        best = found[most_voted(counts, k)]
        threshold = np.sort(counts)[-k] if len(counts) >= k else 0
        above = set(found[counts > threshold].tolist())
        tenth = set(best[: k // 10].tolist())
        for counters in (625, 2_500, 10_000, 20_000):
            if votes == 100_000 and counters > k:
                continue
            summaries = []
            for mine in range(nodes):
                sketch = SpaceSaving(counters)
                sketch.extend(stream[node == mine].tolist())
                summaries.append(sketch.summary())
            listed = set(top(merge(summaries, max(k, counters)), k).tolist())
            yield {
                "votes": votes,
                "counters": counters,
                "recall": len(listed & set(best.tolist())) / len(best),
                "strict": len(listed & above) / max(1, len(above)),
                "top_tenth": len(listed & tenth) / len(tenth),
                "threshold": int(threshold),
                "ties": int((counts == threshold).sum()),
            }


def _turnover(seed: int) -> Iterator[Row]:
    """Yield the share of a site's top 10 000 that is new in the next round, demand unchanged.

    Two hot sets of 20 million keys, nothing but chance between two rounds; counts are exact.
    """
    keys, k = 20_000_000, 10_000
    chances = zipf(keys)
    cumulative = np.cumsum(chances)
    rng = np.random.default_rng(seed)
    for votes in (10**5, 10**6, 10**7, 10**8, 10**9, 10**10):
        lists = []
        for _ in range(2):
            if votes <= 10**7:
                rank = np.searchsorted(cumulative, rng.random(votes) * cumulative[-1])
                found, counts = np.unique(
                    rank + rng.integers(0, 2, votes) * keys, return_counts=True
                )
            else:  # beyond rank 200 000 nothing comes near the votes of rank 5000
                mean = np.tile(chances[:200_000], 2) * votes / 2
                counts = rng.poisson(mean)
                found = np.arange(len(counts))
            lists.append(found[most_voted(counts, k)])
        yield {
            "votes": votes,
            "turnover": 1 - len(np.intersect1d(lists[0], lists[1])) / k,
            "expected_last": float(chances[k // 2 - 1] * votes / 2),
        }


def _scale() -> Iterator[Row]:
    """Yield how the Lagrangean relaxation grows, in processor time, with the proven gap."""
    for objects, k, correlation in (
        (2_000, 60, 0.5),
        (20_000, 300, 0.5),
        (100_000, 1_000, 0.5),
        (1_000_000, 10_000, 0.5),
    ):
        problem = world_of(six_sites(), objects, correlation, 1).problem(k)
        began = time.process_time()
        plan = solve_lagrangean(problem)
        taken = time.process_time() - began
        began = time.process_time()
        quick = greedy(problem)
        yield {
            "objects": objects,
            "k": k,
            "cpu_s": taken,
            "gap": plan.gap,
            "status": str(plan.status),
            "optimum": plan.cost,
            "greedy": quick.cost,
            "greedy_cpu_s": time.process_time() - began,
            "note": plan.notes[0],
        }


# --- Figures 3 to 7 -----------------------------------------------------------------------------

KEYS, K = 40_000, 480


def _mechanism() -> Iterator[Row]:
    """Yield Figures 3 to 5: read-only, one restart every 30 s, all twelve generators."""
    seed = 1
    world = world_of(six_sites(), KEYS, 0.0, seed)
    trace = simulate(world, RequestWorkload(seconds=400.0, rate=3000.0), VoteSettings(k=K), seed)
    drops = []  # share of the identified hot set that each restart removes
    for restart in trace.restarts:
        here = int(np.searchsorted(trace.time, restart))
        drops.append(1 - float(trace.identified[here] / trace.identified[here - 1]))
    names = ("time", "identified", "identified_best", "active", "correct", "false_positive",
             "false_negative", "read_ms")  # fmt: skip
    _write_series(MECHANISM, {name: getattr(trace, name)[::2].tolist() for name in names})
    late = trace.time >= 60
    yield {
        "seed": seed,
        "drops": drops,
        "identified": float(trace.identified[late].mean()),
        "identified_best": float(trace.identified_best[late].mean()),
        "recall": float(trace.recall[4:].mean()),
        "active": float(trace.active[late].mean()),
        "least_active": float(trace.active[trace.time >= 12].min()),
        "correct": float(trace.correct[late].mean()),
        "false_negative": float(trace.false_negative[late].mean()),
        "false_negative_peak": float(trace.false_negative[late].max()),
        "false_positive": float(trace.false_positive[late].mean()),
        "refreshes": trace.refreshes,
    }


def _write_series(path: Path, columns: Mapping[str, Sequence[float]]) -> None:
    """Write columns; NaN is an empty cell."""
    rows = zip(*columns.values(), strict=True)
    cells = (["" if np.isnan(v) else f"{v:.5g}" for v in row] for row in rows)
    save_csv(path, list(columns), cells)


def _policies(workload: RequestWorkload, seed: int, forwarding: WriteForwarding) -> Iterator[Row]:
    """Yield all policies on one workload; `forwarding` says for what writes wait with caches.

    "ARC, equal" has as many places as the copies that votes have held at each site.
    """
    world = world_of(six_sites(), KEYS, 0.0, seed)
    share = workload.write_share
    votes = simulate(world, workload, VoteSettings(k=K), seed)
    held = float(votes.active[votes.time >= 60].mean())

    def row(policy: str, found: SimulationTrace | CacheTrace) -> Row:
        late = found.time >= 60  # every policy has warmed up
        return {
            "policy": policy,
            "write_share": share,
            "read_ms": float(np.nanmean(found.read_ms[late])),
            "write_ms": float(np.nanmean(found.write_ms[late])),
            "record": asdict(summarise(np.repeat(*found.reads))),
            "series": (found.time, found.read_ms),
        }

    yield {**row("votes", votes), "copies": held}

    def cached(label: str, name: str, room: int, rng: np.random.Generator) -> Row:
        found = simulate_caches(
            world, workload, cache_maker(name, rng), room, seed, forwarding=forwarding
        )
        return {**row(label, found), "copies": room, "hits": found.hits}

    yield cached("ARC, equal", "ARC", 16 * round(held / 16), spawn_streams(seed, CAUSES)["policy"])
    none = simulate_caches(world, workload, None, K, seed, forwarding=WriteForwarding.ALL)
    yield row("none", none)
    rng = spawn_streams(seed, CAUSES)["policy"]
    for name in NAMES:
        yield cached(name, name, K, rng)
    streams = accesses(world, workload, seed)
    best = sum(most_hits(each, K // 16) for each in streams)
    reads = sum(int((each >= 0).sum()) for each in streams)
    own = float(np.diag(world.geography.rtt).mean())
    yield {"policy": "Belady", "write_share": share, "hits": best / reads, "local_ms": own}


def _grace(seed: int) -> Iterator[Row]:
    """Yield active copies for g = 1 to 5, and what both formulas make of the turnover at g = 1."""
    world = world_of(six_sites(), KEYS, 0.0, seed)
    workload = RequestWorkload(seconds=200, rate=1000)
    turnover = 0.0
    for grace in (1, 2, 3, 4, 5):
        trace = simulate(world, workload, VoteSettings(k=K, grace=grace), seed)
        late = trace.time >= 100
        lists = len(trace.recall)
        if grace == 1:
            # Every copy created replaces one, once the first list is there.
            turnover = (trace.created / 6 - K) / (lists - 1) / K
        yield {
            "grace": grace,
            "active": float(trace.active[late].mean()),
            "created": trace.created,
            "exact": replicas_exact(K, turnover, grace),
            "conservative": replicas_conservative(K, turnover, grace),
            "read_ms": float(trace.read_ms[late].mean()),
        }


VARIANTS: dict[str, ProtocolSettings] = {
    "all assumptions": ProtocolSettings(),
    "and lost messages, 20 %": ProtocolSettings(loss=0.2),
    "and lost rounds, 50 %": ProtocolSettings(lost_rounds=0.5),
    "and clocks off by 5 rounds": ProtocolSettings(skew_ms=500.0),
    "and restarts of static nodes": ProtocolSettings(restarts=0.5),
    "messages overtake each other": ProtocolSettings(in_order=False),
    "writes before the copy are dropped": ProtocolSettings(keep_early=False),
    "deletions do not name their copy": ProtocolSettings(incarnations=False),
    "restarts, registrations not persisted": ProtocolSettings(restarts=0.5, persist=False),
}
"""Name of each row -> its settings."""

RUNS = 200


def _protocol() -> Iterator[Row]:
    """Yield the sums over 200 seeds of each variant."""
    for name, settings in VARIANTS.items():
        runs = [simulate_protocol(settings, seed) for seed in range(RUNS)]
        found = [run.violations() for run in runs]
        yield {
            "variant": name,
            "runs": RUNS,
            "reads": sum(each.reads for each in found),
            "dynamic_reads": sum(run.dynamic_reads for run in runs),
            "created": sum(run.created for run in runs),
            "stale": sum(each.stale for each in found),
            "runs_with_stale": sum(each.stale > 0 for each in found),
            "behind": sum(run.behind for run in runs),
        }


def _latency(path: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Rows of runs of all policies; the series of the first seed at 5 % writes goes to `path`.

    Figures 6 and 7: policies at 95/5 and 50/50, the same requests for all. Figure 6 as published:
    5 % writes, to other keys than are read, which evict nothing.
    """
    series: dict[str, Sequence[float]] = {}
    base = RequestWorkload(seconds=300.0, rate=400.0, write_share=0.05)
    half, other = (replace(base, **one) for one in ({"write_share": 0.5}, {"write_keys": "other"}))
    asked = [(base, WriteForwarding.SITES), (half, WriteForwarding.SITES)]
    if path == OTHER_KEYS:
        asked = [(other, WriteForwarding.ALL)]
    for seed, (load, forwarding) in itertools.product(range(1, min(options.seeds, 2) + 1), asked):
        for row in _policies(load, seed, forwarding):
            found = row.pop("series", None)
            if found is not None and row["write_share"] == 0.05 and seed == 1:
                # Means over 2 s: at 400 requests per second and generator the rest is noise.
                series.setdefault("time", found[0][::4].tolist())
                series[row["policy"]] = np.nanmean(found[1].reshape(-1, 4), axis=1).tolist()
            yield {"seed": seed, **row}
    _write_series(path, series)


# --- the page ------------------------------------------------------------------------------------


def tables() -> dict[str, str]:
    """Return the tables by their marks on the page."""
    parts = read_json(STUDY.path)["parts"]
    rows: dict[str, Rows] = {name: part["rows"] for name, part in parts.items()}
    scale = ({**r, "above": 100 * (r["greedy"] / r["optimum"] - 1)} for r in rows["scale"])
    grace = ({**r, "between": 0.2 * r["exact"] + 0.8 * r["conservative"]} for r in rows["grace"])
    return {
        "table": _placements(rows["table"]),
        "scale": row_table(
            "objects|k|processor, s|gap|status|optimum, ms|greedy, % above|greedy, s",
            "{objects:,}|{k:,}|{cpu_s:.1f}|{gap:.0e}|{status}|{optimum:.4f}|{above:.3f}|"
            "{greedy_cpu_s:.1f}",
            scale,
        ),
        "recall": row_table(
            "votes|counters per node|recall|strictly above|top tenth",
            "{votes:,}|{counters:,}|{recall:.3f}|{strict:.3f}|{top_tenth:.3f}",
            rows["recall"],
        ),
        "turnover": row_table(
            "votes for the site in a round|expected votes of the last|λ",
            "{votes:.0e}|{expected_last:.3g}|{turnover:.3f}",
            rows["turnover"],
        ),
        "mechanism": _mechanism_table(rows["mechanism"]),
        "grace": row_table(
            "g|active|k(1 + λ(g − 1))|k(1 + λ(g − 0.2))|k(1 + λg)|created in 200 s|mean read, ms",
            "{grace}|{active:.0f}|{exact:.0f}|{between:.0f}|{conservative:.0f}|{created:,}|"
            "{read_ms:.2f}",
            grace,
        ),
        "latency": _policies_table(rows["latency"]),
        "other_keys": _policies_table(rows["other_keys"]),
        "protocol": row_table(
            "variant|reads by copies|copies created|stale reads|runs with one|behind",
            "{variant}|{dynamic_reads:,}|{created:,}|{stale:,}|{runs_with_stale} of {runs}|"
            "{behind}",
            rows["protocol"],
        ),
        "machine": f"Machine: {machine.sentence(next(iter(parts.values()))['machine'])}.",
    }


def _worst(row: Mapping[str, Any]) -> float:
    """Cost in the worse round of a cycle of two; the mean where votes settle."""
    average, last = float(row["votes"]), float(row["votes_last"])
    return max(last, 2 * average - last) if row["period"] == 2 else average


def _placements(rows: Rows) -> str:
    solved = [r for r in rows if r["relaxation"] is not None]
    tight = sum(abs(r["relaxation"] / r["optimum"] - 1) < 1e-9 for r in solved)
    above = [
        {**r, **{name: 100 * (r[name] / r["optimum"] - 1)
                 for name in ("votes", "saved", "local", "greedy")},
         "worse round": 100 * (_worst(r) / r["optimum"] - 1),
         "g = 3": 100 * (r["votes_g3"] / r["optimum_at_g3"] - 1)}
        for r in rows
    ]  # fmt: skip
    gaps = row_table(
        "sites|objects, k|corr.|optimum, ms|votes|worse round|saved|local|greedy|g = 3",
        "{geography}|{objects}, {k}|{correlation:g}|{optimum:.2f}|{votes:.1f}|{worse round:.1f}|"
        "{saved:.1f}|{local:.1f}|{greedy:.2f}|{g = 3:.1f}",
        averaged(above, "geography", "objects", "k", "correlation"),
    )
    return f"""{gaps}

The linear relaxation was the optimum on {tight} of {len(solved)} instances."""


def _mechanism_table(rows: Rows) -> str:
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
    return markdown_table(("", "ours", "published"), lines)


def _policies_table(rows: Rows) -> str:
    """Return a line per share of writes and policy."""
    shown = [r for r in rows if r["policy"] not in ("MRU", "RR")]
    lines = averaged(shown, "write_share", "policy")
    order = list(dict.fromkeys(r["policy"] for r in lines))
    lines.sort(key=lambda r: (r["write_share"], order.index(r["policy"])))
    forms = {"copies": "{:.0f}", "read_ms": "{:.1f}", "write_ms": "{:.1f}", "hits": "{:.1f}"}
    cells = [
        {**{name: form.format(100 * r[name] if name == "hits" else r[name]) if name in r else ""
            for name, form in forms.items()},
         "policy": r["policy"], "reads": 100 * (1 - r["write_share"]),
         "writes": 100 * r["write_share"]}
        for r in lines
    ]  # fmt: skip
    return row_table(
        "reads/writes|policy|copies per site|read, ms|write, ms|hits, %",
        "{reads:.0f}/{writes:.0f}|{policy}|{copies}|{read_ms}|{write_ms}|{hits}",
        cells,
    )


# --- figures ------------------------------------------------------------------------------------


def draw_figures(folder: Path) -> None:
    """Draw Figures 3 to 7 into a folder."""
    data = _columns(MECHANISM)
    percent = {name: 100 * data[name] for name in data}
    hot = {"all": percent["identified"], "hottest tenth": percent["identified_best"]}
    copies = {name: data[name] for name in ("active", "correct")} | {
        "k": np.full(len(data["time"]), float(K))
    }
    wrong = {"false negatives": percent["false_negative"],
             "false positives": percent["false_positive"]}  # fmt: skip
    for number, series, label, note, most in (
        (3, hot, "hot (object, site) pairs identified (%)",
         "published: above 95 %, drops of 8 %, mended in 12 s", None),
        (4, copies, "dynamic copies per site",
         "published: active always above k, correct a little above 95 % of k", None),
        (5, wrong, "share of reads (%)",
         "published: spikes after restarts, clipped near the threshold of 5 %", 12),
    ):  # fmt: skip
        panel = _over_time(data["time"], series, label, note, most)
        save_panels(folder / f"online-dynamic-fig{number}.png", [panel], columns=1)
    names = ("none", "MRU", "RR", "LRU", "ARC", "votes")
    panels = []
    for path, note in (
        (OTHER_KEYS, "writes to other keys (as published)"),
        (LATENCY, "writes to keys that are read, which evict"),
    ):
        data = _columns(path)
        series = {name: data[name] for name in names}
        panels.append(_over_time(data["time"], series, "mean read latency (ms)", note))
    save_panels(folder / "online-dynamic-fig6.png", panels, height=4.2)
    rows = read_json(STUDY.path)["parts"]["latency"]["rows"]

    def bars(column: str, label: str) -> Panel:
        lines: dict[str, Any] = {}
        for share in (0.05, 0.5):
            found = [mean(pick(rows, policy=name, write_share=share), column) for name in names]
            lines[f"{100 * share:.0f} % writes"] = (names, found, {"ls": "none", "marker": "o"})
        return Panel(lines, {"ylabel": label, "ylim": (0, None)})

    both = [bars("read_ms", "read latency (ms)"), bars("write_ms", "write latency (ms)")]
    save_panels(folder / "online-dynamic-fig7.png", both)


def _columns(path: Path) -> dict[str, Any]:
    rows = read_rows(path)
    return {
        name: np.array([float(row[name]) if row[name] else np.nan for row in rows])
        for name in rows[0]
    }


def _over_time(
    time: Any, series: Mapping[str, Any], label: str, note: str, top: float | None = None
) -> Panel:
    """Lines over time; a generator restarts every 30 s."""
    lines: dict[str, Any] = {name: (time, values, {}) for name, values in series.items()}
    axes = {"xlabel": "time (s)", "ylabel": label, "title": note, "ylim": (0, top)}
    restarts = {f"{'_' if at > 30 else ''}restart {at // 30}".removesuffix(" 1"): float(at)
                for at in range(30, int(time.max()) + 1, 30)}  # fmt: skip
    return Panel(lines, axes, restarts)


STUDY = Study(
    "online_dynamic",
    {
        "table": _table,
        "scale": lambda options: _scale(),
        "recall": lambda options: _recall(1),
        "turnover": lambda options: _turnover(1),
        "mechanism": lambda options: _mechanism(),
        "grace": lambda options: _grace(1),
        "latency": partial(_latency, LATENCY),
        "other_keys": partial(_latency, OTHER_KEYS),
        "protocol": lambda options: _protocol(),
    },
    {"seeds": 5},
    packages=("numpy", "highspy", "rbloom"),
    apart=True,
    series=[path.name for path in (MECHANISM, LATENCY, OTHER_KEYS)],
    description=__doc__,
    page="docs/benchmarks/online_dynamic.md",
    report=tables,
    draw=draw_figures,
)

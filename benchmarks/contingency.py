"""The experiments of Shankaranarayanan et al., DSN 2014, on measured latencies of today.

    python -m benchmarks run contingency              all of them, pictures and text
    python -m benchmarks run contingency --only E3 E7      some
    python -m benchmarks run contingency --write-docs the kept results into docs/contingency.md

Latencies are read from the folder that ``--latency`` names: 27 AWS regions of 2025-05 (E3 to E7),
eight EC2 regions of 2013-06 (E1, E2), the spread of delays between 21 AWS regions in 2024-04
(E2), and weekly snapshots of IBM regions 2023 to 2026 (E6). The paper's traces are not public;
keys are drawn with a seed:

- ``timeline``: one writer, readers spread by Dirichlet(0.3) shares, the writer's site favoured;
- ``article``: reads and writes spread by the same Dirichlet(0.5) shares;
- ``check-in``: as timeline, but the user may be elsewhere in the next period (one time in three).

``price`` is about plans with a leader: what N-1 costs in normal times on the bundled data sets.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.harness.machine import ROOT, hardware
from benchmarks.harness.pictures import COLOURS, axes_of, cdf
from benchmarks.harness.results import Row, lines_table, measured_file, read_json, read_rows
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import read_matrix
from formulations.quorumstore.enumeration import Enumeration, tie_envelope
from placement.quorumstore import (
    Goal,
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    Redirect,
    StoreRules,
    Target,
    evaluate,
)
from placement.quorumstore.problem import CountArray
from placement.support.checks import BoolArray, FloatArray

# --- data: measured latencies, and seeded keys --------------------------------------------------

LEFT_OUT = ("ap-northeast-3", "ap-southeast-5", "eu-central-2", "eu-south-2", "me-south-1")
APPLICATIONS = ("timeline", "article", "check-in")


def _kept(name: str, figure: Any, header: str, body: Sequence[Sequence[object]]) -> Rows:
    """Save the picture of an experiment; return its rows, under heads with bars between."""
    path = ROOT / "docs" / "figures" / f"contingency-{name.lower()}.png"
    figure.savefig(path, dpi=110, metadata={"Software": None})
    return [dict(zip(header.split("|"), map(str, cells), strict=True)) for cells in body]


def _finish(axes: Any, **named: Any) -> None:
    """Name the axes of a panel of curves."""
    axes.set(**named)
    axes.legend(loc="lower right", fontsize=8)


def ms(values: Sequence[float] | FloatArray, quantile: float = 0.5) -> str:
    """Return a quantile in ms."""
    return f"{np.quantile(np.asarray(values, dtype=np.float64), quantile):.1f}"


def share_of(condition: BoolArray) -> str:
    """Return how many per cent hold."""
    return f"{100 * float(np.mean(condition)):.0f} %"


Rows: TypeAlias = list[Row]
Spreads: TypeAlias = list[tuple[FloatArray, FloatArray]]
"""Probabilities and factors around the median, of each measured pair of sites."""


def matrix(here: Path | None, name: str) -> tuple[tuple[str, ...], FloatArray]:
    """Read a table of RTTs in a folder of measured latencies; at least 0.5 ms within a site."""
    sites, rtt = read_matrix(measured_file(here, name))
    np.fill_diagonal(rtt, np.maximum(np.diagonal(rtt), 0.5))
    return sites, rtt


def regions27(here: Path | None) -> tuple[tuple[str, ...], FloatArray]:
    """27 of the 32 AWS regions: of two near neighbours one stays."""
    sites, rtt = matrix(here, "aws_cloudping_2025-05_p50.csv")
    kept = [i for i, site in enumerate(sites) if site not in LEFT_OUT]
    return tuple(sites[i] for i in kept), rtt[np.ix_(kept, kept)]


def store(sites: tuple[str, ...], rtt: FloatArray, rules: StoreRules) -> QuorumProblem:
    """Return a store with a key that stands for any."""
    ones = np.ones(len(sites), dtype=np.int64)
    return QuorumProblem(rtt, ones, ones, sites=sites, rules=rules)


def shares_of(rng: np.random.Generator, application: str, sites: int) -> tuple[FloatArray, int]:
    """Shares of the reads of a key, and the site of its owner."""
    home = int(rng.integers(sites))
    share = rng.dirichlet(np.full(sites, 0.5 if application == "article" else 0.3))
    if application != "article":
        share = 0.7 * share
        share[home] += 0.3
    return share, home


def requests(
    rng: np.random.Generator, application: str, share: FloatArray, home: int
) -> tuple[CountArray, CountArray]:
    """Draw a period's reads and writes of a key."""
    reads = rng.poisson(1000 * share)
    reads[home] += 1
    if application == "article":
        return reads, rng.poisson(60 * share) + (np.arange(len(share)) == home)
    writes = np.zeros(len(share), dtype=np.int64)
    writes[home] = 20
    return reads, writes


def keys_of(
    template: QuorumProblem, application: str, scale: argparse.Namespace
) -> list[tuple[CountArray, CountArray]]:
    """Draw the keys of an application, the same for every experiment."""
    rng = np.random.default_rng([scale.seed, APPLICATIONS.index(application)])
    count = len(template.sites)
    return [
        requests(rng, application, *shares_of(rng, application, count)) for _ in range(scale.keys)
    ]


def solve_all(
    template: QuorumProblem, keys: Sequence[tuple[CountArray, CountArray]], goal: Goal | None = None
) -> list[QuorumPlan]:
    """Prove the optimum of every key of a store."""
    if goal is not None:
        template = template.with_goal(goal)
    solver = Enumeration()
    return [solver.solve(template.with_demand(reads, writes)) for reads, writes in keys]


def _moved(old: QuorumPlan, new: QuorumPlan) -> QuorumPlan:
    """Evaluate the sets of one plan on the question of another."""
    return evaluate(new.problem, old.replicas, old.read_quorum, old.write_quorum)


def spreads(here: Path | None) -> Spreads:
    """Scatter of single delays around their median: (probabilities, factors) of each pair.

    From the percentiles 10, 25, 50, 75, 90, 99 of a year's probes between 21 AWS regions.
    """
    shares = (10, 25, 50, 75, 90, 99)
    found = []
    for row in read_rows(measured_file(here, "aws_cloudping_2024-04-19_percentiles.csv")):
        if row["src"] != row["dst"] and float(row["rtt_p50_ms"]) > 0:
            values = np.array([float(row[f"rtt_p{share}_ms"]) for share in shares])
            found.append((np.array(shares) / 100, values / values[2]))
    return found


def snapshots(scale: argparse.Namespace) -> tuple[tuple[str, ...], list[FloatArray]]:
    """Weekly IBM matrices on the sites that all of them have, evenly thinned."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for row in read_rows(measured_file(scale.latency, "ibm_interregion_weekly.csv")):
        week = found.setdefault(row["window_end"], {})
        week[row["src"], row["dst"]] = float(row["rtt_avg_ms"])
    common = sorted(set.intersection(*({a for a, _ in week} for week in found.values())))
    series = []
    for _, week in sorted(found.items()):
        try:
            rtt = np.array([[0.5 if a == b else week[a, b] for b in common] for a in common])
        except KeyError:
            continue  # a pair was not measured that week
        series.append(rtt)
    step = max(1, len(series) // scale.snapshots)
    return tuple(common), series[::step]


# --- E2 and E6: delays that scatter, and that drift ---------------------------------------------

_PER_PERIOD = 3000
"""Requests drawn for each half hour of E2."""


def _e2(scale: argparse.Namespace) -> Rows:
    """E2: the English Wikipedia on EC2 of 2013, sites lost in turn (their figure 7)."""
    names, rtt = matrix(scale.latency, "ec2_2013-06_p50.csv")
    sites = tuple(f"{name.split(' ')[0]}{zone}" for name in names for zone in "ab")
    wide = np.repeat(np.repeat(rtt, 2, axis=0), 2, axis=1)
    for i in range(len(names)):
        wide[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[0.5, 1.5], [1.5, 0.5]]
    demand = {"us-east": 100, "us-west-2": 100, "us-west-1": 100, "eu-west": 138}
    demand |= {"ap-southeast-1": 60, "ap-northeast-1": 36, "ap-southeast-2": 30, "sa-east": 36}
    counts = [demand[site[:-1]] if site.endswith("a") else 0 for site in sites]
    requested = np.array(counts, dtype=np.int64)
    pairs = spreads(scale.latency)
    plans: dict[str, QuorumPlan] = {}
    for name, contingency in (("BA", False), ("N-1C", True)):
        rules = StoreRules(contingency, replicas=3, redirect=Redirect.HOP)
        (plans[name],) = solve_all(store(sites, wide, rules), [(requested, requested)])
    # BA's optimum is far from unique; the paper's own choice is listed beside the tie rule's.
    published = ["us-west-2a", "us-west-1a", "ap-northeast-1a"]
    plans["BA, as published"] = evaluate(plans["BA"].problem, published, 2, 2)
    failed = [site for site in sites if site.endswith("a")]
    periods = [None, *(one for site in failed for one in (site, None))]
    figure, three = axes_of(3, 4.2)
    body = []
    for index, (name, plan) in enumerate(plans.items()):
        found = plan.configuration
        assert found is not None
        rng = np.random.default_rng([scale.seed, 20])
        drawn = [_reads(plan.problem, found, requested, site, rng, pairs) for site in periods]
        axes = three[index]
        axes.boxplot(
            drawn, whis=(10, 90), showfliers=False, widths=0.6, patch_artist=True,
            boxprops={"facecolor": COLOURS[index], "alpha": 0.6}, medianprops={"color": "black"},
        )  # fmt: skip
        # The model's threshold of each half hour, which its 90th percentile should meet.
        after = {effect.lost: effect.read_threshold for effect in plan.losses}
        model = [after[() if site is None else (site,)] for site in periods]
        axes.plot(range(1, len(periods) + 1), model, "_", color="black", markersize=9)
        axes.set_xticks(
            range(1, len(periods) + 1), [(site or "")[:-1] for site in periods], rotation=90
        )
        axes.set(title=name, ylabel="read latency, ms", ylim=(0, 420))
        p90 = np.array([float(np.quantile(one, 0.9)) for one in drawn])
        calm = np.concatenate([one for one, site in zip(drawn, periods, strict=True) if not site])
        lost = [(float(high), site[:-1]) for high, site in zip(p90, periods, strict=True) if site]
        error = np.abs(p90 / np.array(model) - 1).max()
        body.append([
            name, ", ".join(plan.replicas), f"{np.median(calm):.0f}",
            f"{plan.normal.read_threshold:.0f}", f"{np.quantile(calm, 0.9):.0f}",
            f"{max(after.values()):.0f}", f"{max(lost)[0]:.0f} ({max(lost)[1]})",
            f"{100 * error:.0f} %",
        ])  # fmt: skip
    header = (
        "scheme|replicas|median, drawn|p90 normal, model|p90 normal, drawn|p90 worst loss, model|"
        "p90 worst loss, drawn|largest difference"
    )
    return _kept("E2", figure, header, body)


def _reads(
    problem: QuorumProblem,
    found: QuorumConfiguration,
    requested: CountArray,
    lost: str | None,
    rng: np.random.Generator,
    pairs: Spreads,
) -> FloatArray:
    """Draw a half hour of reads: every delay is the pair's median times a factor that scatters.

    Each request draws its own factor for each replica it asks, from the measured spread of a random
    pair, and is done at the R-th answer. Requests of a lost site take the hop to the closest live
    one first.
    """
    origins = rng.choice(len(problem.sites), _PER_PERIOD, p=requested / requested.sum())
    gone = None if lost is None else problem.sites.index(lost)
    alive = [site for site in found.replicas if site != gone]
    coordinator, hop = origins.copy(), np.zeros(_PER_PERIOD)
    if gone is not None:
        moved = np.flatnonzero(origins == gone)
        nearest = problem.closest_survivor(gone, (gone,))
        coordinator[moved] = nearest
        hop[moved] = problem.rtt[gone, nearest] * _factors(rng, (len(moved),), pairs)
    delay = problem.rtt[coordinator[:, np.newaxis], alive] * _factors(
        rng, (_PER_PERIOD, len(alive)), pairs
    )
    latency: FloatArray = hop + np.sort(delay, axis=1)[:, found.read - 1]
    return latency


def _factors(rng: np.random.Generator, shape: tuple[int, ...], pairs: Spreads) -> FloatArray:
    """Factors around the median: the quantile function of a random measured pair, interpolated."""
    picked = rng.integers(len(pairs), size=shape)
    level = rng.random(shape)
    factors = np.empty(shape)
    for index in np.unique(picked):
        mine = picked == index
        factors[mine] = np.interp(level[mine], *pairs[index])
    return factors


def _e6(scale: argparse.Namespace) -> Rows:
    """E6: optimum on the median matrix against the optimum of each snapshot (their figure 10)."""
    sites, weekly = snapshots(scale)
    wide_sites, rtt = regions27(scale.latency)
    count = max(3, scale.snapshots // 6)
    rng = np.random.default_rng([scale.seed, 60])
    alone = [rtt * rng.lognormal(0.0, 0.1, rtt.shape) for _ in range(count)]
    together = []
    for _ in range(count):
        load = rng.lognormal(0.0, 0.1, len(rtt))
        together.append(rtt * np.sqrt(load[:, np.newaxis] * load))
    figure, three = axes_of(3)
    body = []
    for axes, label, names, series in (
        (three[0], f"IBM, {len(sites)} sites, {len(weekly)} weeks", sites, weekly),
        (three[1], f"AWS, 27 sites, {count} with noise per pair", wide_sites, alone),
        (three[2], f"AWS, 27 sites, {count} with noise per site", wide_sites, together),
    ):
        median = np.median(series, axis=0)
        for row, contingency in enumerate((False, True)):
            rules = StoreRules(contingency, redirect=Redirect.KEEP)
            keys = keys_of(store(names, median, rules), "timeline", scale)
            optima, kept = list[float](), list[float]()  # of every snapshot, and MED there
            chosen = solve_all(store(names, median, rules), keys)
            for snapshot in series:
                best = solve_all(store(names, snapshot, rules), keys)
                optima += [plan.value for plan in best]
                kept += [_moved(old, new).value for old, new in zip(chosen, best, strict=True)]
            base, extra = np.array(optima), np.array(kept) - np.array(optima)
            name = "N-1C" if contingency else "BA"
            for style, part, words in (
                ("-", base < 100, "SNAP < 100 ms"),
                ("--", base >= 100, "SNAP >= 100 ms"),
            ):
                if part.any():
                    cdf(axes, extra[part].tolist(), f"{name}, {words}", COLOURS[row], style)
                    cells = [label, name, words, int(part.sum()), ms(extra[part], 0.9)]
                    body.append([*cells, share_of(extra[part] <= 1e-9)])
        _finish(axes, xlabel="MED − SNAP, ms", ylabel="keys × snapshots, %", title=label)
    return _kept("E6", figure, "latencies|model|range|pairs|penalty, p90 ms|MED optimal", body)


# --- experiments -----------------------------------------------------------------------------


def _e1(scale: argparse.Namespace) -> Rows:
    """E1: BA against three random sites, over requests (their figure 6)."""
    sites, rtt = matrix(scale.latency, "ec2_2013-06_p50.csv")
    template = store(sites, rtt, StoreRules())
    keys = keys_of(template, "timeline", scale)
    rng = np.random.default_rng(scale.seed)
    plans = {"BA": solve_all(template, keys)}
    plans["random"] = [
        evaluate(one.problem, [sites[i] for i in rng.choice(len(sites), 3, replace=False)], 2, 2)
        for one in plans["BA"]
    ]
    figure, both = axes_of(2)
    body = []
    for axes, kind in zip(both, ("read", "write"), strict=True):
        for colour, (name, mine) in zip(COLOURS, plans.items(), strict=False):
            per_site = [site for plan in mine for site in plan.per_site]
            reads = kind == "read"
            values = np.array([x.read_latency if reads else x.write_latency for x in per_site])
            weights = np.array([x.reads if reads else x.writes for x in per_site], dtype=np.float64)
            order = np.argsort(values, kind="stable")
            total = np.cumsum(weights[order]) / weights.sum()
            axes.step(values[order], 100 * total, where="post", label=name, color=colour)
            at = [np.searchsorted(total, q - 1e-12) for q in (0.1, 0.5, 0.9)]
            quantiles = [f"{values[order][i]:.0f}" for i in at]
            body.append([kind, name, *quantiles])
        axes.set(xlabel=f"{kind} latency, ms", ylabel="requests, %", ylim=(0, 101))
        axes.legend(loc="lower right")
    return _kept("E1", figure, "requests|scheme|p10 ms|median ms|p90 ms", body)


def _e3(scale: argparse.Namespace) -> Rows:
    """E3: read percentile normally and with the most critical replica lost (their figure 8a)."""
    sites, rtt = regions27(scale.latency)
    figure, both = axes_of(2)
    body = []
    for axes, application in zip(both, ("timeline", "article"), strict=True):
        penalties = {}
        for index, contingency in enumerate((False, True)):
            name = "N-1C" if contingency else "BA"
            template = store(sites, rtt, StoreRules(contingency, redirect=Redirect.KEEP))
            plans = solve_all(template, keys_of(template, application, scale))
            normal = np.array([plan.normal.read_threshold for plan in plans])
            failed = np.array([plan.most_critical_replica().read_threshold for plan in plans])
            cdf(axes, normal.tolist(), f"{name}, normal", COLOURS[index])
            cdf(axes, failed.tolist(), f"{name}, failure", COLOURS[index], "--")
            loss = failed - normal
            penalties[name] = loss
            cells = [application, name, ms(normal), ms(loss), ms(loss, 0.9)]
            body.append([*cells, *(share_of(loss >= limit) for limit in (30, 50, 100))])
        # The envelope over ties: cost of BA under failure with the best and the worst tie.
        template = store(sites, rtt, StoreRules(False, redirect=Redirect.KEEP))
        some = keys_of(template, application, scale)[: max(5, scale.keys // 10)]
        found = [tie_envelope(template.with_demand(*key)) for key in some]
        ranges = [one for one in found if one is not None]
        best = [one.failure.best - one.value for one in ranges]
        worst = [one.failure.worst - one.value for one in ranges]
        ties = int(np.median([one.count for one in ranges]))
        label = f"BA, ties of {len(ranges)} keys (max(T_r, T_w); median {ties} optima)"
        body.append([application, label, "", f"{ms(best)} to {ms(worst)}", "", "", "", ""])
        _finish(axes, xlabel="read latency (p90), ms", ylabel="keys, %", title=application)
    return _kept("E3", figure, "keys|scheme|normal|loss, median|loss, p90|>= 30|>= 50|>= 100", body)


def _e4(scale: argparse.Namespace) -> Rows:
    """E4: free N, R, W against 3-2-2 for N-1C (their figure 8b)."""
    sites, rtt = regions27(scale.latency)
    free = store(sites, rtt, StoreRules(True, redirect=Redirect.KEEP))
    fixed = store(
        sites, rtt, dataclasses.replace(free.rules, replicas=3, read_quorum=2, write_quorum=2)
    )
    keys = keys_of(free, "timeline", scale) + keys_of(free, "article", scale)
    best = solve_all(free, keys)
    gains = np.array([b.value - a.value for a, b in zip(best, solve_all(fixed, keys), strict=True)])
    sizes = np.array([len(plan.replicas) for plan in best])
    figure, (axes,) = axes_of(1)
    present = sorted({3, *sizes.tolist()})
    axes.boxplot([gains[sizes == n] for n in present], whis=(10, 90), showfliers=False)
    axes.set_xticks(range(1, len(present) + 1), [f"N = {n}" for n in present])
    axes.set(xlabel="N of the free optimum", ylabel="T(3-2-2) − T(free), ms")
    body = []
    for n in present:
        part = gains[sizes == n]
        if len(part):
            body.append([n, len(part), *(ms(part, q) for q in (0.25, 0.5, 0.75, 0.9, 1.0))])
    return _kept("E4", figure, "N|keys|p25 ms|median|p75|p90|largest", body)


def _e5(scale: argparse.Namespace) -> Rows:
    """E5: configure on the last period, use in the next (their figure 9)."""
    sites, rtt = regions27(scale.latency)
    template = store(sites, rtt, StoreRules(False, redirect=Redirect.KEEP))
    figure, three = axes_of(3)
    body = []
    for axes, application in zip(three, APPLICATIONS, strict=True):
        rng = np.random.default_rng([scale.seed, 50, APPLICATIONS.index(application)])
        before, after = [], []
        for _ in range(scale.keys):
            share, home = shares_of(rng, application, len(sites))
            before.append(requests(rng, application, share, home))
            if application == "check-in" and rng.random() < 1 / 3:
                share, home = shares_of(rng, application, len(sites))
            after.append(requests(rng, application, share, home))
        optimal = solve_all(template, after)
        history = [
            _moved(old, new) for old, new in zip(solve_all(template, before), optimal, strict=True)
        ]
        for index, kind in enumerate(("read", "write")):
            one, two = (
                np.array([getattr(plan.normal, f"{kind}_threshold") for plan in plans])
                for plans in (optimal, history)
            )
            cdf(axes, one.tolist(), f"{kind}, optimal", COLOURS[index])
            cdf(axes, two.tolist(), f"{kind}, history", COLOURS[index], "--")
            extra = [ms(one), ms(two), ms(one, 0.9), ms(two, 0.9)]
            body.append([application, kind, *extra])
        _finish(axes, xlabel="p90 latency, ms", ylabel="keys, %", title=application)
    header = "keys|side|optimal, median|history, median|optimal, p90|history, p90"
    return _kept("E5", figure, header, body)


def _e7(scale: argparse.Namespace) -> Rows:
    """E7: bound writes, minimise reads (their asymmetric thresholds)."""
    sites, rtt = regions27(scale.latency)
    template = store(sites, rtt, StoreRules(False))
    keys = keys_of(template, "timeline", scale)
    figure, both = axes_of(2)
    body = []
    for axes, bounded in zip(both, ("write", "read"), strict=True):
        free = "read" if bounded == "write" else "write"
        medians: list[str] = []
        for index, limit in enumerate((np.inf, 200.0, 100.0, 50.0, 25.0)):
            target = Target.READS if bounded == "write" else Target.WRITES
            goal = Goal(target, **{f"{bounded}_bound": limit})
            plans = [p for p in solve_all(template, keys, goal) if p.configuration is not None]
            found = [getattr(plan.normal, f"{free}_threshold") for plan in plans]
            name = "none" if np.isinf(limit) else f"{limit:.0f} ms"
            infeasible = 100 * (1 - len(plans) / len(keys))
            medians.append(ms(found) if found else "–")
            p90 = ms(found, 0.9) if found else "–"
            body.append([bounded, name, f"{infeasible:.1f} %", medians[-1], p90])
            if found:
                cdf(axes, found, f"{bounded} bound {name}", COLOURS[index])
        _finish(axes, xlabel=f"{free} latency (p90), ms", ylabel="feasible keys, %")
    return _kept("E7", figure, "bounded|bound|infeasible|other side, median ms|p90 ms", body)


def _price(scale: argparse.Namespace) -> Rows:
    """Plans with a leader: normal latency given up for N-1, on the bundled data sets."""
    import placement
    from placement import Contingency

    del scale
    names, given_up, saved, body = [], [], [], []
    cases = [(name, 4) for name in ("world27", "aws", "gcp", "azure")]
    for name, replicas in [*cases, ("world27", 5)]:
        problem = placement.Problem(placement.load(name), replicas=replicas, voters=3)
        guarded = problem.replace(objective=Contingency())
        normal = placement.solve(problem)
        began = time.process_time()
        plan = placement.solve(guarded, method="exhaustive")
        seconds = time.process_time() - began
        rate = problem.demand.operations
        assert normal.configuration is not None
        before = guarded.objective.value(guarded, normal.configuration) / rate
        after = plan.objective / rate
        names.append(f"{name}, {replicas}")
        given_up.append(100 * (plan.mean_latency / normal.mean_latency - 1))
        saved.append(100 * (1 - after / before))
        times = (normal.mean_latency, before, plan.mean_latency, after)
        body.append([
            f"{name} ({len(problem.instance.sites)} sites), {replicas} replicas",
            *(f"{ms:.2f}" for ms in times), f"{given_up[-1]:.2f} %", f"{saved[-1]:.2f} %",
            f"{plan.status}, {seconds:.1f} s of CPU",
        ])  # fmt: skip
    figure, (axes,) = axes_of(1)
    place = np.arange(len(names))
    axes.bar(place - 0.2, given_up, 0.38, label="normal latency given up", color=COLOURS[1])
    axes.bar(place + 0.2, saved, 0.38, label="worst case saved", color=COLOURS[0])
    axes.set_xticks(place, names)
    axes.set(ylabel="%")
    axes.legend()
    header = (
        "data set|normal plan|its worst loss|N-1 plan|the worst of that|given up|"
        "worst case saved|proof"
    )
    return _kept("price", figure, header, body)


def _shown(row: Row) -> bool:
    """Whether the page shows a row; the file of results has all, and a picture."""
    noise = "with noise" in row.get("latencies", "")
    small = row.get("model") == "N-1C" and row.get("range") == "SNAP < 100 ms"
    return not (
        row.get("scheme", "").startswith("BA, ties")
        or "noise per pair" in row.get("latencies", "")
        or (noise and small)
    )


def _report() -> dict[str, str]:
    document = read_json(STUDY.path)
    found = {
        name: lines_table([row for row in document[name] if _shown(row)])
        for name in ("E1", "E2", "E3", "E6", "price")
    }
    about = f"{document['keys']} keys per application, seed {document['seed']}. "
    return {**found, "machine": about + hardware([document["machine"]])}


STUDY = Study(
    "contingency_experiments",
    {"E1": _e1, "E2": _e2, "E3": _e3, "E4": _e4, "E5": _e5, "E6": _e6, "E7": _e7, "price": _price},
    {"keys": 200, "snapshots": 60, "seed": 1},
    folders=("latency",),
    description=__doc__,
    page="docs/contingency.md",
    report=_report,
)

"""The experiments of Shankaranarayanan et al., DSN 2014, on measured latencies of today.

    python -m benchmarks run contingency              all of them, pictures and text
    python -m benchmarks run contingency E3 E7        some
    python -m benchmarks run contingency --quick      fewer keys and snapshots
    python -m benchmarks run contingency --write-docs the kept results into docs/contingency.md

Latencies are read from the folder that ``--latency`` names: 27 AWS regions of 2025-05 (E3 to E9),
eight EC2 regions of 2013-06 (E1, E2), the spread of delays between 21 AWS regions in 2024-04
(E2), and weekly snapshots of IBM regions 2023 to 2026 (E6). E8 and E9 compare methods and
assumptions. The paper's traces are not public; keys are drawn with a seed:

- ``timeline``: one writer, readers spread by Dirichlet(0.3) shares, the writer's site favoured;
- ``article``: reads and writes spread by the same Dirichlet(0.5) shares;
- ``check-in``: as timeline, but the user may be elsewhere in the next period (one time in three).

``price`` is about plans with a leader: what N-1 costs in normal times on the bundled data sets.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.machine import ROOT, describe, hardware
from benchmarks.harness.pictures import (
    COLOURS,
    Outcome,
    axes_of,
    cdf,
    ms,
    rows,
    share_of,
    weighted_quantile,
)
from benchmarks.harness.result_files import read_json, read_rows, save_json
from benchmarks.harness.study import Study
from formulations.quorumstore.covering_solvers import CpSatCovering, HighsCovering
from formulations.quorumstore.enumeration import Enumeration, tie_envelope
from formulations.quorumstore.enumeration import solve as enumerate_sets
from formulations.quorumstore.threshold_bisection import solve as bisect
from heuristics.quorumstore import coverage_greedy, local_search
from placement.errors import InputError
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
from placement.support.checks import FloatArray

__all__ = [
    "APPLICATIONS",
    "Spreads",
    "StudySize",
    "e2",
    "e6",
    "e8",
    "e9",
    "keys_of",
    "matrix",
    "regions27",
    "requests",
    "shares_of",
    "snapshots",
    "solve_all",
    "spreads",
    "store",
]


# --- data: measured latencies, and seeded keys --------------------------------------------------

LEFT_OUT = ("ap-northeast-3", "ap-southeast-5", "eu-central-2", "eu-south-2", "me-south-1")
APPLICATIONS = ("timeline", "article", "check-in")

Spreads: TypeAlias = list[tuple[FloatArray, FloatArray]]
"""Probabilities and factors around the median, of each measured pair of sites."""


@dataclass(frozen=True, slots=True)
class StudySize:
    """Size of a study, keys per application, snapshots and seed, and its folder of latencies."""

    keys: int
    snapshots: int
    seed: int
    latency: Path | None


def _measured(here: Path | None, name: str) -> Path:
    if here is None or not (here / name).is_file():
        raise InputError(
            "no such file among the measured latencies",
            source=str(here / name) if here else name,
            expected="--latency DIR, a folder that has it",
        )
    return here / name


def matrix(here: Path | None, name: str) -> tuple[tuple[str, ...], FloatArray]:
    """Read a table of RTTs in a folder of measured latencies; at least 0.5 ms within a site."""
    path = _measured(here, name)
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    sites = tuple(row[0] for row in rows[1:])
    rtt = np.array([[float(cell or 0) for cell in row[1:]] for row in rows[1:]])
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
    template: QuorumProblem, application: str, scale: StudySize
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


def spreads(here: Path | None) -> Spreads:
    """Scatter of single delays around their median: (probabilities, factors) of each pair.

    From the percentiles 10, 25, 50, 75, 90, 99 of a year's probes between 21 AWS regions.
    """
    shares = (10, 25, 50, 75, 90, 99)
    found = []
    for row in read_rows(_measured(here, "aws_cloudping_2024-04-19_percentiles.csv")):
        if row["src"] != row["dst"] and float(row["rtt_p50_ms"]) > 0:
            values = np.array([float(row[f"rtt_p{share}_ms"]) for share in shares])
            found.append((np.array(shares) / 100, values / values[2]))
    return found


def snapshots(scale: StudySize) -> tuple[tuple[str, ...], list[FloatArray]]:
    """Weekly IBM matrices on the sites that all of them have, evenly thinned."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for row in read_rows(_measured(scale.latency, "ibm_interregion_weekly.csv")):
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


def e2(scale: StudySize) -> Outcome:
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
        body.append(
            [
                name,
                ", ".join(plan.replicas),
                f"{np.median(calm):.0f}",
                f"{plan.normal.read_threshold:.0f}",
                f"{np.quantile(calm, 0.9):.0f}",
                f"{max(after.values()):.0f}",
                f"{max(lost)[0]:.0f} ({max(lost)[1]})",
                f"{100 * error:.0f} %",
            ]
        )
    header = ["scheme", "replicas", "median, drawn", "p90 normal, model", "drawn"]
    header += ["p90 worst loss, model", "drawn", "largest difference"]
    return Outcome(rows(header, body), figure)


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


def e6(scale: StudySize) -> Outcome:
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
            base, extra = _penalties(names, median, series, rules, keys)
            name = "N-1C" if contingency else "BA"
            for style, part, words in (
                ("-", base < 100, "SNAP < 100 ms"),
                ("--", base >= 100, "SNAP >= 100 ms"),
            ):
                if part.any():
                    cdf(axes, extra[part].tolist(), f"{name}, {words}", COLOURS[row], style)
                    cells = [label, name, words, int(part.sum()), ms(extra[part], 0.9)]
                    body.append([*cells, share_of(extra[part] <= 1e-9)])
        axes.set(xlabel="MED − SNAP, ms", ylabel="keys × snapshots, %", title=label)
        axes.legend(loc="lower right", fontsize=8)
    header = ["latencies", "model", "range", "pairs", "penalty, p90 ms", "MED optimal"]
    return Outcome(rows(header, body), figure)


def _penalties(
    names: tuple[str, ...],
    median: FloatArray,
    series: list[FloatArray],
    rules: StoreRules,
    keys: list[tuple[CountArray, CountArray]],
) -> tuple[FloatArray, FloatArray]:
    """SNAP, and MED − SNAP, of every key on every snapshot."""
    chosen = solve_all(store(names, median, rules), keys)
    base, extra = [], []
    for snapshot in series:
        for old, new in zip(chosen, solve_all(store(names, snapshot, rules), keys), strict=True):
            kept = evaluate(new.problem, old.replicas, old.read_quorum, old.write_quorum)
            base.append(new.value)
            extra.append(kept.value - new.value)
    return np.array(base), np.array(extra)


# --- E8 and E9: methods, and assumptions of the model -------------------------------------------

_LIMIT = 20.0
"""Seconds a solver has for a key."""

_METHODS: dict[str, Callable[[QuorumProblem], QuorumPlan]] = {
    "enumeration": enumerate_sets,
    "cp-sat": lambda problem: bisect(problem, CpSatCovering(), time_limit=_LIMIT),
    "milp": lambda problem: bisect(problem, HighsCovering(), time_limit=_LIMIT),
    "greedy": coverage_greedy,
    "local search": lambda problem: local_search(problem, rng=np.random.default_rng(0)),
}


def e8(scale: StudySize) -> Outcome:
    """E8: methods for N-1C by the largest N: CPU time and gap to the proven optimum."""
    sites, rtt = regions27(scale.latency)
    count = max(2, scale.keys // 100)
    seconds: dict[str, list[float]] = {name: [] for name in _METHODS}
    body: list[list[object]] = []
    sizes = range(3, 8)
    for largest in sizes:
        template = store(sites, rtt, StoreRules(True, max_replicas=largest))
        few = dataclasses.replace(scale, keys=count, snapshots=0)
        problems = [template.with_demand(*key) for key in keys_of(template, "timeline", few)]
        optima = [enumerate_sets(problem).value for problem in problems]
        for name, method in _METHODS.items():
            began = time.process_time()
            plans = [method(problem) for problem in problems]
            spent = (time.process_time() - began) / count
            gaps = np.array([p.value / best - 1 for p, best in zip(plans, optima, strict=True)])
            proven = np.array([str(plan.status) == "optimal" for plan in plans])
            seconds[name].append(spent)
            worst = "none found" if math.isinf(gaps.max()) else f"{100 * gaps.max():.1f} %"
            body.append([largest, name, f"{spent:.3f}", share_of(proven), worst])
    figure, (axes,) = axes_of(1, 3.8)
    for index, (name, taken) in enumerate(seconds.items()):
        axes.plot(list(sizes), taken, marker="o", label=name, color=COLOURS[index])
    axes.set(xlabel="largest N", ylabel="CPU seconds per key", yscale="log", xticks=list(sizes))
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    header = ["N_max", "method", "CPU s per key", "proven", "largest gap"]
    words = f"{count} timeline keys each; solvers had {_LIMIT:.0f} s per key."
    return Outcome([*rows(header, body), "", words], figure)


def e9(scale: StudySize) -> Outcome:
    """E9: what the percentile, the redirection and the tie rule do to BA and N-1C."""
    sites, rtt = regions27(scale.latency)
    shares = (0.5, 0.9, 0.95, 0.99, 1.0)
    few = dataclasses.replace(scale, keys=max(5, scale.keys // 8), snapshots=0)
    fewest = dataclasses.replace(few, keys=max(3, few.keys // 8))
    figure, three = axes_of(3)
    body: list[list[object]] = []
    for axes, redirect in zip(three, Redirect, strict=True):
        curves: dict[str, list[float]] = {}
        for share in shares:
            cells: list[object] = [redirect.value, f"{share:g}"]
            for name, contingency in (("BA", False), ("N-1C", True)):
                rules = StoreRules(
                    contingency, redirect=redirect, read_fraction=share, write_fraction=share
                )
                template = store(sites, rtt, rules)
                plans = solve_all(template, keys_of(template, "article", few))
                normal = [plan.normal.threshold for plan in plans]
                worst = [plan.worst.threshold for plan in plans]
                cells += [ms(normal), ms(worst)]
                curves.setdefault(f"{name}, normal", []).append(float(np.median(normal)))
                curves.setdefault(f"{name}, worst loss", []).append(float(np.median(worst)))
            rules = StoreRules(redirect=redirect, read_fraction=share, write_fraction=share)
            template = store(sites, rtt, rules)
            found = [
                tie_envelope(template.with_demand(*key))
                for key in keys_of(template, "article", fewest)
            ]
            ties = [one for one in found if one is not None]
            best, worst = ([one.failure.best for one in ties], [one.failure.worst for one in ties])
            cells += [int(np.median([one.count for one in ties])), f"{ms(best)} to {ms(worst)}"]
            body.append(cells)
        for index, (name, values) in enumerate(curves.items()):
            axes.plot(
                range(len(shares)),
                values,
                "--" if "worst" in name else "-",
                marker="o",
                label=name,
                color=COLOURS[index // 2],
            )
        axes.set_xticks(range(len(shares)), [f"{share:g}" for share in shares])
        axes.set(xlabel="p", ylabel="median threshold over keys, ms", title=redirect.value)
        axes.legend(fontsize=8)
    header = ["redirection", "p", "BA normal", "BA worst loss", "N-1C normal", "N-1C worst loss"]
    header += ["BA optima", "their worst loss, best to worst tie"]
    words = f"{few.keys} article keys, ties of {fewest.keys} of them; medians over keys, ms."
    return Outcome([*rows(header, body), "", words], figure)


FIGURES = ROOT / "docs" / "figures"
RESULTS = ROOT / "benchmarks" / "results" / "contingency_experiments.json"


# --- experiments -----------------------------------------------------------------------------


def e1(scale: StudySize) -> Outcome:
    """E1: BA against three random sites, over requests (their figure 6)."""
    sites, rtt = matrix(scale.latency, "ec2_2013-06_p50.csv")
    template = store(sites, rtt, StoreRules())
    keys = keys_of(template, "timeline", scale)
    rng = np.random.default_rng(scale.seed)
    found: dict[tuple[str, str], tuple[list[float], list[int]]] = {}
    for plan in solve_all(template, keys):
        pick = [sites[i] for i in rng.choice(len(sites), 3, replace=False)]
        for name, one in (("BA", plan), ("random", evaluate(plan.problem, pick, 2, 2))):
            for site in one.per_site:
                for kind, count, latency in (
                    ("read", site.reads, site.read_latency),
                    ("write", site.writes, site.write_latency),
                ):
                    both_lists = found.setdefault((name, kind), ([], []))
                    both_lists[0].append(latency)
                    both_lists[1].append(count)
    figure, both = axes_of(2)
    body = []
    for axes, kind in zip(both, ("read", "write"), strict=True):
        for name, colour in (("BA", COLOURS[0]), ("random", COLOURS[1])):
            values = np.asarray(found[name, kind][0], dtype=np.float64)
            weights = np.asarray(found[name, kind][1], dtype=np.float64)
            order = np.argsort(values, kind="stable")
            total = np.cumsum(weights[order]) / weights.sum()
            axes.step(values[order], 100 * total, where="post", label=name, color=colour)
            quantiles = [f"{weighted_quantile(values, weights, q):.0f}" for q in (0.1, 0.5, 0.9)]
            body.append([kind, name, *quantiles])
        axes.set(xlabel=f"{kind} latency, ms", ylabel="requests, %", ylim=(0, 101))
        axes.legend(loc="lower right")
    head = rows(["requests", "scheme", "p10 ms", "median ms", "p90 ms"], body)
    return Outcome(head, figure)


def e3(scale: StudySize) -> Outcome:
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
        axes.set(xlabel="read latency (p90), ms", ylabel="keys, %", title=application)
        axes.legend(loc="lower right", fontsize=8)
    header = ["keys", "scheme", "normal", "loss, median", "loss, p90", ">= 30", ">= 50", ">= 100"]
    return Outcome(rows(header, body), figure)


def e4(scale: StudySize) -> Outcome:
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
    distinct = len({plan.configuration for plan in best})
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
    table = rows(["N", "keys", "p25 ms", "median", "p75", "p90", "largest"], body)
    words = f"{distinct} distinct configurations for {len(keys)} keys; least {gains.min():.1f} ms."
    return Outcome([*table, "", words], figure)


def e5(scale: StudySize) -> Outcome:
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
            evaluate(new.problem, old.replicas, old.read_quorum, old.write_quorum)
            for old, new in zip(solve_all(template, before), optimal, strict=True)
        ]
        for index, kind in enumerate(("read", "write")):
            pick: Callable[[QuorumPlan], float] = (
                (lambda plan: plan.normal.read_threshold)
                if kind == "read"
                else (lambda plan: plan.normal.write_threshold)
            )
            one = np.array([pick(plan) for plan in optimal])
            two = np.array([pick(plan) for plan in history])
            cdf(axes, one.tolist(), f"{kind}, optimal", COLOURS[index])
            cdf(axes, two.tolist(), f"{kind}, history", COLOURS[index], "--")
            extra = [ms(one), ms(two), ms(one, 0.9), ms(two, 0.9)]
            body.append([application, kind, *extra])
        axes.set(xlabel="p90 latency, ms", ylabel="keys, %", title=application)
        axes.legend(loc="lower right", fontsize=8)
    header = ["keys", "side", "optimal, median", "history, median", "optimal, p90", "history, p90"]
    return Outcome(rows(header, body), figure)


def e7(scale: StudySize) -> Outcome:
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
            goal = Goal(
                Target.READS if bounded == "write" else Target.WRITES,
                write_bound=limit if bounded == "write" else np.inf,
                read_bound=limit if bounded == "read" else np.inf,
            )
            plans = [p for p in solve_all(template, keys, goal) if p.configuration is not None]
            found = [
                p.normal.read_threshold if free == "read" else p.normal.write_threshold
                for p in plans
            ]
            name = "none" if np.isinf(limit) else f"{limit:.0f} ms"
            infeasible = 100 * (1 - len(plans) / len(keys))
            medians.append(ms(found) if found else "–")
            p90 = ms(found, 0.9) if found else "–"
            body.append([bounded, name, f"{infeasible:.1f} %", medians[-1], p90])
            if found:
                cdf(axes, found, f"{bounded} bound {name}", COLOURS[index])
        axes.set(xlabel=f"{free} latency (p90), ms", ylabel="feasible keys, %")
        axes.legend(loc="lower right", fontsize=8)
    header = ["bounded", "bound", "infeasible", "other side, median ms", "p90 ms"]
    return Outcome(rows(header, body), figure)


def price(scale: StudySize) -> Outcome:
    """Plans with a leader: normal latency given up for N-1, on the bundled data sets."""
    import placement
    from placement.contingency.objective import Contingency

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
        body.append(
            [
                f"{name} ({len(problem.instance.sites)} sites), {replicas} replicas",
                f"{normal.mean_latency:.2f}",
                f"{before:.2f}",
                f"{plan.mean_latency:.2f}",
                f"{after:.2f}",
                f"{given_up[-1]:.2f} %",
                f"{saved[-1]:.2f} %",
                f"{plan.status}, {seconds:.1f} s of CPU",
            ]
        )
    figure, (axes,) = axes_of(1)
    place = np.arange(len(names))
    axes.bar(place - 0.2, given_up, 0.38, label="normal latency given up", color=COLOURS[1])
    axes.bar(place + 0.2, saved, 0.38, label="worst case saved", color=COLOURS[0])
    axes.set_xticks(place, names)
    axes.set(ylabel="%")
    axes.legend()
    header = ["data set", "normal plan", "its worst", "N-1 plan", "its worst"]
    header += ["given up", "worst case saved", "proof"]
    return Outcome(rows(header, body), figure)


EXPERIMENTS: dict[str, Callable[[StudySize], Outcome]] = {
    "E1": e1, "E2": e2, "E3": e3, "E4": e4, "E5": e5, "E6": e6, "E7": e7, "E8": e8, "E9": e9,
    "price": price,
}  # fmt: skip


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="E1 to E9, price (default: all)")
    add_folder(parser, "latency")
    parser.add_argument("--quick", action="store_true", help="a tenth of the keys and snapshots")
    parser.add_argument("--keys", type=int, default=200, help="per application (default 200)")
    parser.add_argument("--seed", type=int, default=1)


def _run_study(args: argparse.Namespace) -> int:
    """Run experiments, write their pictures and results, print their tables."""
    unknown = [name for name in args.names if name not in EXPERIMENTS]
    if unknown:
        raise InputError(
            "no such experiment", field="NAME", value=unknown[0], expected=", ".join(EXPERIMENTS)
        )
    scale = (
        StudySize(args.keys // 10, 6, args.seed, args.latency)
        if args.quick
        else StudySize(args.keys, 60, args.seed, args.latency)
    )
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name in args.names or list(EXPERIMENTS):
        began = time.perf_counter()
        outcome = EXPERIMENTS[name](scale)
        picture = FIGURES / f"contingency-{name.lower()}.png"
        outcome.figure.savefig(picture, dpi=110, metadata={"Software": None})
        found = {
            "machine": describe(),
            "keys": scale.keys,
            "seed": scale.seed,
            "seconds": round(time.perf_counter() - began, 1),
            "table": outcome.lines,
        }
        print(f"## {name}\n\n{_text(name, found)}\n", flush=True)
        if not args.quick:
            save_json(RESULTS, dict(sorted((read_json(RESULTS) | {name: found}).items())))
    return 0


_LEFT_OUT = {
    "E6": tuple(
        f"| AWS, 27 sites, 10 with noise per {x} | N-1C | SNAP < " for x in ("pair", "site")
    ),
    "E7": ("| write | 25 ms", "| read | 50 ms", "| read | 25 ms"),
    "E8": ("| 4 |", "| 5 |", "| 6 |"),
    "E9": ("| closest |", "| hop | 0.5 ", "| hop | 0.95 ", "| hop | 0.99 ", "| hop | 1 "),
}
"""Beginnings of rows that the page leaves out; the file of results has them."""


def _text(name: str, found: Mapping[str, Any]) -> str:
    """Return the text of an experiment on the page; the first one names size and machine."""
    lines = [line for line in found["table"] if not line.startswith(_LEFT_OUT.get(name, ()))]
    if name == "E1":
        lines += [
            "",
            f"All experiments: {found['keys']} keys per application, seed {found['seed']}. "
            + hardware([found["machine"]]),
        ]
    picture = f"![{EXPERIMENTS[name].__doc__ or name}](figures/contingency-{name.lower()}.png)"
    return "\n".join([picture, "", *lines])


def _report() -> dict[str, str]:
    return {name: _text(name, found) for name, found in read_json(RESULTS).items()}


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("contingency_experiments.json",),
    page="docs/contingency.md",
    report=_report,
)

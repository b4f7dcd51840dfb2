"""E2 and E6 of :mod:`benchmarks.contingency.study`: delays that scatter, and that drift."""

from __future__ import annotations

import numpy as np

from benchmarks.contingency.data import (
    Spreads,
    StudySize,
    keys_of,
    matrix,
    regions27,
    snapshots,
    solve_all,
    spreads,
    store,
)
from benchmarks.harness.pictures import COLOURS, Outcome, axes_of, cdf, ms, rows, share_of
from placement.quorumstore import (
    QuorumConfiguration,
    QuorumPlan,
    QuorumProblem,
    Redirect,
    StoreRules,
    evaluate,
)
from placement.quorumstore.problem import CountArray
from placement.support.checks import FloatArray

__all__ = ["e2", "e6"]

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

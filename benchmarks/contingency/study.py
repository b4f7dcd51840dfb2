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
import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.contingency.assumptions import e8, e9
from benchmarks.contingency.data import (
    APPLICATIONS,
    StudySize,
    keys_of,
    matrix,
    regions27,
    requests,
    shares_of,
    solve_all,
    store,
)
from benchmarks.contingency.delays import e2, e6
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
from benchmarks.harness.result_files import read_json, save_json
from benchmarks.harness.study import Study
from formulations.quorumstore.enumeration import tie_envelope
from placement.errors import InputError
from placement.quorumstore import Goal, QuorumPlan, Redirect, StoreRules, Target, evaluate

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

"""Figures 8 to 11 of Sharov et al., PVLDB 8(12), 2015, section 6.4, on public instances.

    python -m benchmarks run paper_tier3 [--seeds 4] [--sigma 1.2 2 3] [--only 8 9 10 11]
    python -m benchmarks run paper_tier3.replicas [--seeds 4]

The paper's databases are private, so that only shapes can be compared: how close KQ, QK and the
better of them come to the optimum, which of the two wins where, and how fast more replicas stop
helping. Ours are 27-site networks with measured and modelled RTTs
(:mod:`benchmarks.harness.tier3_worlds`); the optimum is that of method ``exact``, proven for every
problem (a problem without proof would be counted).

The clients are the sites themselves, or the 60 cities of ``world27``. ``--sigma`` says how much the
demand is concentrated: the standard deviation of the logarithm of a client's demand, one or
several. The paper keeps the failure diversity of each database; so every problem is solved twice,
without rules and with the diversity that a deployment of today has
(:func:`placement.feasibility.feasible_plans.kept_diversity`): that of ``max-diversity``, the rule
by which CockroachDB spreads replicas. Each combination of clients, sigma and diversity has its own
lines in every table.

``paper_tier3.replicas`` shows what each further replica brings on ``world27`` and ``azure``.

Written: one CSV row per problem and method, a JSON document with the machine, and one picture per
figure. Ratios are means over problems, as in the paper. The exit code is 1 when an optimum was not
proven.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

import placement
from benchmarks.harness import machine
from benchmarks.harness.machine import sentence
from benchmarks.harness.pictures import Panel, save_panels
from benchmarks.harness.results import Row, grouped, markdown_table, read_frame, read_json
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import BUNDLED, SIGMA, instance_on, number_of, worlds
from placement import Instance, Problem
from placement.errors import MissingDependencyError
from placement.feasibility.feasible_plans import kept_diversity
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.support.status import Status
from placement.workloads import mix_shares

# --- reduction of the mean latency by each further replica --------------------------------------

DATA_SETS = ("world27", "azure")
MIXES = ("social", "cache")
RATIOS = (1.0, 0.7, 0.5)
STEPS = 7
"""Numbers of replicas per line, from |V| on."""


def concentrated(base: Instance, ratio: float, rng: np.random.Generator) -> Instance:
    """Return weak reads alone; each client in a drawn order has `ratio` of the one before."""
    clients = len(base.clients)
    weight: FloatArray = ratio ** rng.permutation(clients).astype(np.float64)
    counts = np.zeros((clients, len(STANDARD_OPERATIONS)))
    counts[:, 0] = np.round(1e9 * weight / weight.sum())
    name = f"{base.name}, weak reads, ratio {ratio:g}"
    return base.replace(counts=counts, operations=STANDARD_OPERATIONS, intervals=(), name=name)


def gains(seeds: int) -> Iterator[Row]:
    """Yield a line for each data set, demand and |V|: means over `seeds` orders of clients."""
    for name in DATA_SETS:
        try:
            demands = {f"its own, mix {mix}": [placement.load(name, mix=mix)] for mix in MIXES}
        except MissingDependencyError:
            continue
        base = placement.load(name)
        for ratio in RATIOS:
            demands[f"weak reads, ratio {ratio:g}"] = [
                concentrated(base, ratio, np.random.default_rng(seed)) for seed in range(seeds)
            ]
        for (demand, instances), voters in itertools.product(demands.items(), (1, 3)):
            sizes = range(voters, voters + STEPS)
            tables = [placement.sweep(one, replicas=sizes, voters=voters) for one in instances]
            means = [table["mean_latency"].to_numpy(dtype=float) for table in tables]
            mean = np.mean(means, axis=0)
            gain = [round(x, 1) for x in (100 * (1 - mean[1:] / mean[:-1])).tolist()]
            ms = [round(x, 2) for x in mean.tolist()]
            yield {
                "data set": name, "demand": demand, "voters": voters,
                "proven": all((table["status"] == "optimal").all() for table in tables),
                "mean ms": dict(zip(map(str, sizes), ms, strict=True)),
                "gain %": dict(zip(map(str, sizes[1:]), gain, strict=True)),
            }  # fmt: skip


# --- the page -----------------------------------------------------------------------------------

Lines = Sequence[Mapping[str, Any]]


def pivot(lines: Lines, across: str, methods: Sequence[str]) -> str:
    """Return a Markdown table with a row per demand and method, and a column per value of `across`.

    Of more than five columns every second is shown.
    """
    columns = sorted({line[across] for line in lines}, key=lambda x: float(str(x).split()[0]))
    columns = columns[1::2] if len(columns) > 5 else columns
    rows: list[list[object]] = []
    for mine in grouped(lines, "clients", "sigma"):
        inside = {line[across]: line for line in mine}
        for method in methods:
            numbers = [f"{inside[x][method]:.1f}" if x in inside else "–" for x in columns]
            rows.append([mine[0]["clients"], mine[0]["sigma"], f"`{method}`", *numbers])
    return markdown_table(["clients", "sigma", "method", *map(str, columns)], rows)


def _shown(figure: int, lines: Lines) -> Lines:
    """Return the lines without rules of diversity that a figure shows."""
    return [
        line
        for line in lines
        if line["diversity"] == "free"
        and (figure != 8 or (line["voters"], line["databases"]) == (3, "read-heavy mixes"))
    ]


def summaries(figure: int) -> list[Row]:
    """Return the lines of a figure, from the rows that the project keeps."""
    frame = read_frame(STUDY.path)
    return by_demand(frame[frame["figure"] == figure], FIGURES[figure][1])


def tables() -> dict[str, str]:
    """Return the tables of the page: the least and the largest sigma."""
    frame = read_frame(STUDY.path)
    best = frame[frame["method"] == "exact"]
    ends = frame["sigma"].min(), frame["sigma"].max()
    found = {"machine": f"{sentence(read_json(STUDY.path.with_suffix('.json'))['machine'])}."}
    for figure, (across, methods, *_) in AXES.items():
        lines = [x for x in _shown(figure, summaries(figure)) if x["sigma"] in ends]
        proven = best["proven"][best["figure"] == figure]
        found[f"figure {figure}"] = (
            f"{pivot(lines, across, methods)}\n\n{len(proven)} problems, "
            f"{(~proven).sum()} without a proven optimum."
        )
    rows = [x for x in read_json(REPLICAS.path)["each replica"]
            if x["voters"] == 3 and x["demand"] != "weak reads, ratio 0.7"]  # fmt: skip
    body = []
    for row in rows:
        first, *more = row["mean ms"].values()
        pairs = zip(more, row["gain %"].values(), strict=True)
        cells = [f"{ms:.1f} ({gain:.0f})" for ms, gain in pairs]
        body.append([f"`{row['data set']}`", row["demand"], f"{first:.1f}", *cells])
    heads = ["data set", "demand", "\\|R\\| = 3", *(f"+ {more}" for more in range(1, STEPS))]
    found["each replica"] = markdown_table(heads, body)
    return found


def draw(folder: Path) -> None:
    """Draw the figures into a folder from the kept results: plans without rules of diversity."""
    for figure, (across, methods, x, y) in AXES.items():
        lines = _shown(figure, summaries(figure))
        panels = []
        for mine in grouped(lines, "clients", "sigma"):
            shown: dict[str, Any] = {
                method: ([line[across] for line in mine], [line[method] for line in mine],
                         {"marker": "."})
                for method in methods
            }  # fmt: skip
            where = f"clients: {mine[0]['clients']}, sigma {mine[0]['sigma']:g}"
            axes = {"title": where, "xlabel": x, "ylabel": y}
            if across == "share":
                shown = {name: ([str(v).split()[0] for v in xs], ys, style)
                         for name, (xs, ys, style) in shown.items()}  # fmt: skip
            panels.append(Panel(shown, axes))
        save_panels(folder / f"tier3_figure_{figure}.png", panels, columns=3)


METHODS = ("kq", "qk", "best-of", "local-search")
READ_HEAVY = ("cache", "social", "configuration")
USED = ("modelled", "aws-2025", "azure-2025", "world27")
SIGMAS = (SIGMA, 2.0, 3.0)
BUCKETS = tuple(range(5, 100, 10))
"""Midpoints of the buckets of a share, per cent."""


def kept(problem: Problem) -> Problem:
    """Return a problem with the diversity that a present deployment of as many voters has.

    The replicas of that deployment are its voters, so that the rules for voters imply those for
    replicas where no two voters share a domain; the other rules for replicas are left out.
    """
    voters = problem.rules.voters
    asked = Problem(problem.instance, replicas=voters, voters=voters)
    today = run(load_method("max-diversity"), asked, Options())
    rules = kept_diversity(problem.instance, today.voters, today.replicas)
    return problem.replace(diversity=[rule for rule in rules if rule.role == "voters"])


def solved(problem: Problem, world: tuple[str, str, int], x: float, sigma: float) -> Iterator[Row]:
    """Yield a row for each method on a problem without and with the diversity of today.

    `x` is the value on the axis of the figure. ``optimum`` is the reference of ``objective``: of
    the problem, or for figure 11 that of 13 replicas.
    """
    rules, (network, workload, seed) = problem.rules, world
    about = {"network": network, "workload": workload, "seed": seed,
             "replicas": rules.replicas_max, "voters": rules.voters, "x": x,
             "sigma": sigma}  # fmt: skip
    asked = {"free": problem} | ({"kept": kept(problem)} if problem.instance.domains else {})
    for diversity, one in asked.items():
        best = run(load_method("exact"), one, Options(time_limit=120.0))
        for name in ("exact", *METHODS):
            plan = best if name == "exact" else run(load_method(name), one, Options())
            yield {
                **about, "diversity": diversity, "method": name, "objective": plan.objective,
                "optimum": best.objective, "proven": best.status is Status.OPTIMAL,
                "seconds": round(plan.seconds, 6),
            }  # fmt: skip


def figure_8(seeds: Sequence[int], sigma: float, latency: Path | None) -> Iterator[Row]:
    """Gap by |R|: |V| = 3 with |R| 3 to 7 as in the paper, and |V| = 5 with |R| 5 to 9."""
    for world, instance in worlds(seeds, USED, sigma=sigma, latency=latency):
        for voters in (3, 5):
            for size in range(voters, voters + 5):
                problem = Problem(instance, replicas=size, voters=voters)
                yield from solved(problem, world, size, sigma)


def _by_share(
    figure: int,
    base: str,
    raised: tuple[int, ...],
    seeds: Sequence[int],
    sigma: float,
    latency: Path | None,
) -> Iterator[Row]:
    """Raise the share of some operations bucket by bucket, |V| = 5 and |R| = 7."""
    shares = mix_shares(base)
    inside = np.zeros(5, dtype=bool)
    inside[list(raised)] = True
    up = np.where(inside, shares, 0) / shares[inside].sum()
    down = np.where(inside, 0, shares) / shares[~inside].sum()
    for network in USED:
        for bucket in BUCKETS:
            for seed in seeds:
                rng = np.random.default_rng([figure, bucket, seed, number_of(network)])
                share = (bucket + rng.uniform(-5, 5)) / 100
                mix = share * up + (1 - share) * down
                name = f"{network}, {base} at {bucket} %"
                instance = instance_on(network, mix, rng, name, sigma=sigma, latency=latency)
                if instance is not None:
                    problem = Problem(instance, replicas=7, voters=5)
                    counts = instance.counts.sum(axis=(0, 1))  # some of them are raised
                    x = round(100 * float(counts[list(raised)].sum() / counts.sum()), 4)
                    yield from solved(problem, (network, base, seed), x, sigma)


def figure_11(seeds: Sequence[int], sigma: float, latency: Path | None) -> Iterator[Row]:
    """Slowdown by |R| from 4 to 13, |V| = 3, against the optimum with 13 replicas."""
    for world, instance in worlds(seeds, USED, READ_HEAVY, sigma, latency):
        rows: list[Row] = []
        for size in range(4, 14):
            problem = Problem(instance, replicas=size, voters=3)
            rows.extend(solved(problem, world, size, sigma))
        last = {row["diversity"]: row for row in rows
                if row["method"] == "exact" and row["replicas"] == 13}  # fmt: skip
        for row in rows:
            most = last[row["diversity"]]
            proven = row["proven"] and most["proven"]
            yield {**row, "optimum": most["optimum"], "proven": proven}


# --- summaries


def summary_8(frame: pd.DataFrame) -> list[Row]:
    """Mean of optimum over objective by |V|, |R| and method: all mixes, and the read-heavy ones."""
    table: list[Row] = []
    frame = frame.assign(share=100 * frame["optimum"] / frame["objective"])
    for (voters, size), part in frame.groupby(["voters", "replicas"]):
        heavy = part[part["workload"].isin(READ_HEAVY)]
        for label, chosen in (("all nine mixes", part), ("read-heavy mixes", heavy)):
            means = chosen.groupby("method")["share"].mean().round(2)
            line: Row = {"voters": voters, "replicas": size, "databases": label}
            table.append(line | {method: means.get(method) for method in METHODS})
    return table


def summary_share(frame: pd.DataFrame) -> list[Row]:
    """Mean speed-up of QK over KQ and of KQ over QK, in per cent, by bucket of the share."""
    table: list[Row] = []
    for bucket in BUCKETS:
        inside = frame[abs(frame["x"] - bucket) <= 5]
        kq, qk = (inside["objective"][inside["method"] == method].to_numpy()
                  for method in ("kq", "qk"))  # fmt: skip
        if kq.size:
            over = {"qk over kq": kq / qk, "kq over qk": qk / kq}
            line: Row = {"share": f"{bucket - 5} to {bucket + 5} %", "problems": int(kq.size)}
            gains = {name: round(float((100 * (x - 1)).mean()), 2) for name, x in over.items()}
            table.append(line | gains)
    return table


def summary_11(frame: pd.DataFrame) -> list[Row]:
    """Mean slowdown in per cent against the optimum with 13 replicas."""
    frame = frame.assign(slow=100 * (frame["objective"] / frame["optimum"] - 1))
    means = frame.groupby(["replicas", "method"])["slow"].mean().round(2)
    return [
        {"replicas": size, **{name: float(means[size, name]) for name in (*METHODS, "exact")}}
        for size in sorted(set(frame["replicas"].tolist()))
    ]


Ask: TypeAlias = Callable[[Sequence[int], float, Path | None], Iterator[Row]]
FIGURES: dict[int, tuple[Ask, Callable[[pd.DataFrame], list[Row]]]] = {
    8: (figure_8, summary_8),
    # QK against KQ by the share of transactions; the rest is the read mix of `social`
    9: (partial(_by_share, 9, "social", (3, 4)), summary_share),
    # KQ against QK by the share of weak reads; the rest is the mix of `sessions`
    10: (partial(_by_share, 10, "sessions", (0,)), summary_share),
    11: (figure_11, summary_11),
}
"""Figure -> its rows, from seeds, sigma and the folder of latencies, and their summary."""


def by_demand(frame: pd.DataFrame, summary: Callable[[pd.DataFrame], list[Row]]) -> list[Row]:
    """Summarise the problems of each kind of clients and each sigma by themselves."""
    frame = frame.assign(clients=np.where(frame["network"].isin(BUNDLED), "cities", "sites"))
    parts = dict(list(frame.groupby(["clients", "sigma", "diversity"])))
    return [
        {"clients": key[0], "sigma": key[1], "diversity": key[2], **line}
        for key in sorted(parts, key=lambda key: (key[0] != "sites", key[2] != "free", key[1]))
        for line in summary(parts[key])
    ]


AXES: dict[int, tuple[str, tuple[str, ...], str, str]] = {
    8: ("replicas", ("kq", "qk", "best-of"), "replicas |R|, |V| = 3",
        "optimum in per cent of the score"),
    9: ("share", ("qk over kq",), "share of transactions, from, per cent",
        "KQ slower than QK, per cent"),
    10: ("share", ("kq over qk",), "share of weak reads, from, per cent",
         "QK slower than KQ, per cent"),
    11: ("replicas", ("kq", "qk", "exact"), "replicas |R|, |V| = 3",
         "slower than 13 replicas, per cent"),
}  # fmt: skip
"""Figure -> the column of its x, its lines, and the names of its axes."""


def _rows(figure: int, options: argparse.Namespace) -> Iterator[Row]:
    for sigma in options.sigma:
        yield from FIGURES[figure][0](range(options.seeds), sigma, options.latency)


STUDY = Study(
    "paper_tier3",
    {str(figure): partial(_rows, figure) for figure in FIGURES},
    {"seeds": 4, "sigma": SIGMAS},
    ("figure", "network", "workload", "seed", "replicas", "voters", "x", "sigma", "diversity",
     "method", "objective", "optimum", "proven", "seconds"),
    packages=machine.SOLVERS,
    folders=("latency",),
    group="figure",
    pause=5.0,
    good=lambda row: row["proven"],
    description=__doc__,
    page="docs/benchmarks/paper_tier3.md",
    report=tables,
    draw=draw,
)  # fmt: skip

REPLICAS = Study(
    "paper_tier3_replicas",
    {"each replica": lambda options: gains(options.seeds)},
    {"seeds": 4},
    packages=machine.SOLVERS,
    description=__doc__,
)

"""Tail latency: what a percentile changes, and how long its proof takes.

    python -m benchmarks run tail [--seeds 1] [--only NAME …]

Three parts, each a table of docs/tail.md:

* leaders: the leader of least mean latency against that of the least percentile, five replicas that
  all vote, every mix, 20 times as many seeds;
* plans: the proven plan of least mean latency against that of p99;
* proofs: how long `exact` takes on the bundled regions, 27 to 48 sites, up to 175 clients.

Times are processor times, which other work on the machine hardly changes. Writes
benchmarks/results/tail.json.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import placement
from benchmarks.harness import machine
from benchmarks.harness.results import Row, markdown_table, read_json, row_table, rows_of
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import demand, modelled_network
from placement import Instance, Options, Problem
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.io import read_rtt
from placement.io.feeds.rtt_tables import read_pairs
from placement.io.rtt_distributions import distributions_of
from placement.io.rtt_table import PairTable
from placement.measures.question import percentile_question
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.support.status import Status
from placement.tail import Distributions
from placement.tail.histograms import of_family, percentile
from placement.tail.objective import mixture
from placement.tail.rtt_distributions import bins_for, reach_of_family
from placement.workloads import MIXES, mix_shares

# --- instances with distributions of RTTs -------------------------------------------------------

TABLE = "aws_cloudping_2024-04-19_percentiles.csv"
"""Measured percentiles, in the folder that ``--latency`` names."""

NETWORKS = ("aws-2024", "equal spread", "unequal spread")

EQUAL, MEDIAN, SIGMA = 0.2, 0.15, 0.8


@lru_cache(maxsize=1)
def _measured(latency: Path) -> tuple[PairTable, tuple[str, ...], FloatArray] | None:
    path = latency / TABLE
    if not path.exists():
        return None
    rtt = read_rtt(path, "percentiles")
    values, _ = rtt.between(rtt.sources, rtt.sources)
    return read_pairs(path), rtt.sources, values


def world(
    network: str, mix: str, seed: int, *, sites: int | None = None, latency: Path | None = None
) -> tuple[Instance, Distributions] | None:
    """Build an instance and its distributions; None when the measured table is absent.

    The candidate sites are drawn among the places of the clients (None: all of them). The seed
    draws modelled RTTs, spreads and demand too.
    """
    numbers = [seed, sorted(MIXES).index(mix), NETWORKS.index(network)]
    rng = np.random.default_rng(numbers)
    measured = None if latency is None else _measured(latency)
    if network == "aws-2024":
        if measured is None:
            return None
        table, names, rtt = measured
    else:
        names, rtt = modelled_network(rng)
    places = np.sort(rng.permutation(len(names))[: len(names) if sites is None else sites])
    between = rtt[np.ix_(places, places)].copy()
    np.fill_diagonal(between, 0.0)
    instance = Instance(
        sites=tuple(names[i] for i in places),
        clients=names,
        client_rtt=rtt[:, places],
        site_rtt=between,
        counts=demand(mix_shares(mix), len(names), rng),
        operations=STANDARD_OPERATIONS,
        name=f"{network}, {mix}, seed {seed}",
    )
    if network == "aws-2024":
        return instance, distributions_of(table, instance, clients=table)
    return instance, distributions_around(instance, network, rng)


def distributions_around(
    instance: Instance, network: str, rng: np.random.Generator
) -> Distributions:
    """Log-normal distributions around the RTTs of an instance, as the name of the network says."""
    known: dict[tuple[str, str], float] = {}
    for a in dict.fromkeys((*instance.clients, *instance.sites)):
        for b in instance.sites:
            drawn = MEDIAN * float(np.exp(SIGMA * rng.standard_normal()))
            known[a, b] = EQUAL if network == "equal spread" else drawn
    reaches = [
        reach_of_family(float(instance.client_rtt[i, j]), known[a, b], "lognormal")
        for i, a in enumerate(instance.clients)
        for j, b in enumerate(instance.sites)
    ]
    bins = bins_for(instance, reaches, 1.0)
    return Distributions.build(
        instance, lambda mean, a, b: of_family(mean, known[a, b], "lognormal", width=1.0, bins=bins)
    )


# --- the tables of docs/tail.md -----------------------------------------------------------------


def tables() -> dict[str, str]:
    """Return the Markdown tables of the kept results, by name."""
    found = read_json(STUDY.path)
    about = machine.hardware([found["machine"]])
    return {
        "leaders of tail.json": _leader_table(found["leaders"]),
        "plans of tail.json": _plan_table(found["plans"]),
        "proofs of tail.json": f"{_proof_table(found['proofs'])}\n\n{about}",
    }


def _share(values: pd.Series, quantile: float) -> str:
    return f"{100 * values.quantile(quantile):.1f} %" if len(values) else "–"


def _leader_table(rows: list[Row]) -> str:
    lines = []
    for (network, percent), group in pd.DataFrame(rows).groupby(["network", "percent"], sort=False):
        other = group[group["tail_leader_ms"] < group["mean_leader_ms"]]
        cuts = 1 - other["tail_leader_ms"] / other["mean_leader_ms"]
        prices = other["tail_leader_mean_ms"] / other["mean_leader_mean_ms"] - 1
        better = f"{len(other)} ({100 * len(other) / len(group):.0f} %)"
        shown = (*(_share(cuts, q) for q in (0.5, 0.9, 1.0)), _share(prices, 0.5))
        lines.append((network, f"p{percent:g}", len(group), better, *shown))
    heads = ("network", "", "databases", "another leader is better", "median cut", "9 in 10 below",
             "largest cut", "median price in the mean")  # fmt: skip
    return markdown_table(heads, lines)


def _plan_table(rows: list[Row]) -> str:
    lines = []
    for network, group in pd.DataFrame(rows).groupby("network", sort=False):
        cut = 1 - group["tail_plan_ms"] / group["mean_plan_ms"]
        price = group["tail_plan_mean_ms"] / group["mean_plan_mean_ms"] - 1
        gap = 1 - group["bound_ms"] / group["tail_plan_ms"]
        lines.append(
            (network, len(group), (cut > 0).sum(), _share(cut, 0.5), _share(cut, 1.0),
             _share(price, 0.5), (~group["same_leader"]).sum(), _share(gap, 0.5),
             (gap <= 1e-9).sum())
        )  # fmt: skip
    heads = ("network", "problems", "p99 is lower in", "median cut", "largest cut",
             "median price in the mean", "another leader", "median gap to bound",
             "proven optimal")  # fmt: skip
    return markdown_table(heads, lines)


def _proof_table(rows: list[Row]) -> str:
    found = pd.DataFrame(rows).groupby(["regions", "network"], sort=False).agg(
        questions=("cpu_s", "size"), proven=("proven", "sum"), least=("least_mean", "sum"),
        median=("cpu_s", "median"), longest=("cpu_s", "max"),
    )  # fmt: skip
    return row_table(
        "regions|spread|questions|proven|least mean proven|median|longest",
        "{regions}|{network}|{questions}|{proven}|{least}|{median:.2f} s|{longest:.2f} s",
        rows_of(found.reset_index()),
    )


PERCENTS = (50.0, 99.0)
PROOFS = ("world27", "aws", "gcp", "azure")
PROVEN = (50.0, 95.0, 99.0, 99.9)  # percents
SIZES = ((5, 3), (9, 5))  # replicas, voters
PATIENCE = 10.0  # seconds of wall time for each proof
MORE = 20  # seeds of the part about leaders, per seed of the others


# --- what a percentile changes -------------------------------------------------------------------


def _drawn(
    seeds: int, latency: Path | None, sites: int | None = None
) -> Iterator[tuple[Row, Instance, Distributions]]:
    for network, mix, seed in itertools.product(NETWORKS, sorted(MIXES), range(seeds)):
        found = world(network, mix, seed, sites=sites, latency=latency)
        if found is not None:
            yield {"network": network, "mix": mix, "seed": seed}, *found


def _leaders(options: argparse.Namespace) -> Iterator[Row]:
    """Tier 1: least mean against least percentile, five replicas that all vote."""
    everyone = tuple(range(5))
    for about, instance, given in _drawn(MORE * options.seeds, options.latency, sites=5):
        problem = Problem(instance, replicas=list(instance.sites), voters=list(instance.sites))
        means, mixtures = [], []
        for leader in everyone:
            chosen = Configuration.of(leader, everyone, everyone)
            means.append(score_of(problem, chosen) / problem.demand.operations)
            mixtures.append(mixture(problem, chosen, given))
        by_mean = int(np.argmin(means))
        for percent in PERCENTS:
            late = [
                percentile(mixed, percent / 100, horizon=given.bins) * given.width
                for mixed in mixtures
            ]
            # ties of the percentile go to the lower mean
            by_tail = min(zip(late, means, everyone, strict=True))[-1]
            yield _rounded(
                about, percent=percent, mean_leader_ms=late[by_mean], tail_leader_ms=late[by_tail],
                mean_leader_mean_ms=means[by_mean], tail_leader_mean_ms=means[by_tail],
            )  # fmt: skip


def _plans(options: argparse.Namespace) -> Iterator[Row]:
    """Tier 3: the proven least mean against the proven p99, five replicas, three vote."""
    for about, instance, given in _drawn(options.seeds, options.latency):
        goal = percentile_question(99, given)
        problem = Problem(instance, replicas=5, voters=3, objective=goal)
        mean = placement.solve(problem.replace(objective=MEAN_LATENCY))
        tail = placement.solve(problem)
        assert mean.configuration is not None
        yield _rounded(
            about, mean_plan_ms=goal.value(problem, mean.configuration),
            tail_plan_ms=tail.objective, bound_ms=tail.bound, mean_plan_mean_ms=mean.mean_latency,
            tail_plan_mean_ms=tail.mean_latency, same_leader=mean.leader == tail.leader,
        )  # fmt: skip


# --- proofs --------------------------------------------------------------------------------------


def _proofs(options: argparse.Namespace) -> Iterator[Row]:
    """Processor seconds of `exact` for four percentiles, two kinds of spreads, every mix."""
    for name, network in itertools.product(PROOFS, NETWORKS[1:]):
        given: Distributions | None = None
        for mix in MIXES:
            instance = placement.load(name, mix=mix)
            if given is None:
                rng = np.random.default_rng([PROOFS.index(name)])
                given = distributions_around(instance, network, rng)
            for (replicas, voters), percent in itertools.product(SIZES, PROVEN):
                goal = percentile_question(percent, given)
                problem = Problem(instance, replicas=replicas, voters=voters, objective=goal)
                began = time.process_time()
                plan = run(load_method("exact"), problem, Options(time_limit=PATIENCE))
                yield _rounded(
                    {"regions": name, "network": network, "mix": mix}, replicas=replicas,
                    voters=voters, percent=percent, cpu_s=time.process_time() - began,
                    proven=plan.status is Status.OPTIMAL, least_mean=not plan.notes,
                )  # fmt: skip


def _rounded(about: Row, **found: Any) -> Row:
    """Return a row, its numbers rounded to a microsecond, so that the file stays small."""
    return {name: round(value, 3) if isinstance(value, float) else value
            for name, value in {**about, **found}.items()}  # fmt: skip


STUDY = Study(
    "tail",
    {"leaders": _leaders, "plans": _plans, "proofs": _proofs},
    {"seeds": 1},
    folders=("latency",),
    description=__doc__,
    page="docs/tail.md",
    report=tables,
)

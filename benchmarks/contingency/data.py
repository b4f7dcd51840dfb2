"""Data of :mod:`benchmarks.contingency.study`: measured latencies, and seeded keys."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from benchmarks.harness.result_files import read_rows
from formulations.quorumstore.enumeration import Enumeration
from placement.errors import InputError
from placement.quorumstore import Goal, QuorumPlan, QuorumProblem, StoreRules
from placement.quorumstore.problem import CountArray
from placement.support.checks import FloatArray

__all__ = [
    "APPLICATIONS",
    "Spreads",
    "StudySize",
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

"""Effect of an uneven distribution of leaders: section 6.2 and Figure 4 of Sharov et al., 2015.

    python -m benchmarks run overtime.leader_shares [--databases 200] [--seed 1]

A tool that does not know where the leaders are takes them for evenly spread, and predicts by how
much the latency falls when all move to the recommended site. The paper predicted 39.7 % and
measured 33 % (median), and explains it: about one third of the leaders were at one site. Databases
of a generated fleet, each on five voters drawn at random, all its demand of a day together:

* shares: the predicted reduction of the mean, and the true one with a third of the leaders at the
  recommended site, or at any other voter;
* figure 4: one voter is down, its leaders spread over the other four, and all leaders move to the
  recommended site: reductions of the mean and of the median, and one database step by step.

Writes benchmarks/results/leader_shares.json and the picture; the report is in docs/over-time.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness.machine import ROOT
from benchmarks.harness.results import Row, lines_table, read_json
from benchmarks.harness.study import Study
from benchmarks.overtime.replay import NETWORKS, drawn_fleet, network
from placement import Configuration, Problem
from placement.evaluation.objective import MEAN_LATENCY
from placement.measures.question import percentile_question
from placement.overtime.migration.simulate import LeaderMigration, migrate, plot_migration
from placement.report.plots import save_figure
from placement.support.checks import FloatArray
from placement.tail import Distributions

VOTERS = 5
THIRD = 1 / 3
NEAR = (35.0, 45.0)
"""Predicted reductions that count as near the paper's, per cent."""

FIGURE = ROOT / "docs" / "figures" / "leader_migration.png"
BINS = 1200


def true_reduction(means: FloatArray, best: int, heavy: int, share: float) -> float:
    """Return the fall in % to `best` where `heavy` has a share, the others the rest, evenly."""
    weights = np.full(len(means), (1 - share) / (len(means) - 1))
    weights[heavy] = share
    return float(100 * (1 - means[best] / (weights @ means)))


def _questions(
    name: str, databases: int, seed: int, latency: Path | None
) -> list[tuple[Problem, Configuration]]:
    """Databases with the best of five random voters as leader."""
    instance, trace, _ = drawn_fleet(name, databases, seed, latency=latency)
    spread = Distributions.parametric(instance, variation=0.0, bins=BINS)
    rng = np.random.default_rng(seed)
    found = []
    for counts in trace.counts.sum(axis=1):
        chosen = tuple(sorted(rng.permutation(len(instance.sites))[:VOTERS].tolist()))
        names = [instance.sites[site] for site in chosen]
        problem = Problem(
            instance.replace(counts=counts, intervals=()),
            replicas=names,
            voters=names,
            objective=percentile_question(50, spread),
        )
        best = chosen[int(np.argmin(_means(problem, chosen)))]
        found.append((problem, Configuration.of(best, chosen, chosen)))
    return found


def _means(problem: Problem, sites: tuple[int, ...]) -> FloatArray:
    """Mean latency in ms under each of the sites as leader."""
    plain = problem.replace(objective=MEAN_LATENCY)
    each = [Configuration.of(site, sites, sites) for site in sites]
    return MEAN_LATENCY.values(plain, each) / plain.demand.operations


def _medians(problem: Problem, chosen: Configuration) -> tuple[float, float]:
    """Reductions of the median in per cent: from even leaders, and with a third at the best."""
    goal, sites = problem.objective, chosen.voters
    each = [Configuration.of(site, sites, sites) for site in sites]
    after = goal.value(problem, chosen)
    found = []
    for share in (1 / VOTERS, THIRD):
        rest = (1 - share) / (VOTERS - 1)
        weights = [share if site == chosen.leader else rest for site in sites]
        found.append(100 * (1 - after / goal.mixed(problem, each, weights)))
    return found[0], found[1]


def _each(options: argparse.Namespace) -> Iterator[tuple[str, list[tuple[Problem, Configuration]]]]:
    for name in NETWORKS:
        if network(name, options.latency) is not None:
            yield name, _questions(name, options.databases, options.seed, options.latency)


def _share_rows(options: argparse.Namespace) -> Iterator[Row]:
    for name, questions in _each(options):
        rows = []
        for problem, chosen in questions:
            means = _means(problem, chosen.voters)
            best = chosen.voters.index(chosen.leader)
            predicted, true = (true_reduction(means, best, best, x) for x in (1 / VOTERS, THIRD))
            near_it = NEAR[0] <= predicted <= NEAR[1]
            medians = _medians(problem, chosen) if near_it else (np.nan, np.nan)
            rows.append((predicted, true, *medians))
        found = np.array(rows)
        near = found[(found[:, 0] >= NEAR[0]) & (found[:, 0] <= NEAR[1])]
        row: Row = {"network": name, "databases": len(found), "near": len(near)}
        for place, key in enumerate(("predicted", "third at best", "p50", "p50, third at best")):
            row[key] = round(float(near[:, place].mean()), 1) if len(near) else None
        yield row


def _moved_rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield reductions when the leaders of four voters move to the best, for each network.

    The course of a database on Azure is drawn.
    """
    for name, questions in _each(options):
        courses: list[LeaderMigration] = []
        for problem, chosen in questions:
            names = problem.instance.sites
            down = next(site for site in reversed(chosen.voters) if site != chosen.leader)
            rest = {names[site]: 1 / (VOTERS - 1) for site in chosen.voters if site != down}
            courses.append(migrate(problem, chosen, shares=rest, groups=100, per_step=7))
        fell = np.array([
            [100 * (1 - line[-1] / line[0]) for line in (one.mean, one.of(50.0), one.of(99.0))]
            for one in courses
        ])  # fmt: skip
        if name == "azure":
            closest = int(np.abs(fell - np.array([30.0, 60.0, 30.0])).sum(axis=1).argmin())
            title = "Leaders move to the recommended site"
            shown = plot_migration(courses[closest], title=title)
            save_figure(shown, FIGURE, force=True, dpi=110)
        median, halves = np.median(fell, axis=0).tolist(), fell[:, 1]
        yield {
            "network": name,
            "databases": len(fell),
            **dict(zip(("mean", "p50", "p99"), (round(x, 1) for x in median), strict=True)),
            "p50 at least twice the mean": int(
                ((halves >= 2 * fell[:, 0]) & (fell[:, 0] > 1)).sum()
            ),
            "p50 halves": int((halves >= 50).sum()),
            "p50 rises": int((halves < 0).sum()),
        }


def _report() -> dict[str, str]:
    """Return the tables of docs/over-time.md from the results that the project keeps."""
    document = read_json(STUDY.path)
    shown = ("network", "near", "predicted", "third at best", "p50", "p50, third at best")
    return {
        "leader shares": lines_table(document["shares"], shown),
        "moved leaders": lines_table(document["figure 4"]),
    }


STUDY = Study(
    "leader_shares",
    {"shares": _share_rows, "figure 4": _moved_rows},
    {"databases": 200, "seed": 1},
    folders=("latency",),
    description=__doc__,
    page="docs/over-time.md",
    report=_report,
)

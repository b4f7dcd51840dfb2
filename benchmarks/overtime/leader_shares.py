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
from pathlib import Path

import numpy as np

from benchmarks.harness import machine
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import RESULTS, Row, add_results, read_json, save_json
from benchmarks.harness.study import Study
from benchmarks.overtime.replay_experiments import NETWORKS, drawn_fleet, network
from placement import Configuration, Problem
from placement.evaluation.objective import MEAN_LATENCY
from placement.overtime.migration import LeaderMigration, migrate
from placement.overtime.migration.simulate import plot_migration
from placement.report.plots import save_figure
from placement.support.checks import FloatArray
from placement.tail import Distributions, Percentile

__all__ = ["STUDY", "true_reduction"]

VOTERS = 5
THIRD = 1 / 3
PREDICTED, MEASURED = 39.7, 33.0
"""Reductions of the paper's second database, per cent: of the mean, and of the median."""

NEAR = (35.0, 45.0)
"""Predicted reductions that count as near the paper's, per cent."""

FIGURE = ROOT / "docs" / "figures" / "leader_migration.png"
BINS = 1200


def true_reduction(means: FloatArray, best: int, heavy: int, share: float) -> float:
    """Reduction in per cent when one leader site has a share and the others the rest, evenly.

    Parameters
    ----------
    means
        Mean latency under each leader.
    best, heavy
        The recommended leader, and the one with the share.
    share
        In [0, 1].
    """
    weights = np.full(len(means), (1 - share) / (len(means) - 1))
    weights[heavy] = share
    return float(100 * (1 - means[best] / (weights @ means)))


def _questions(
    name: str, databases: int, seed: int, latency: Path | None
) -> list[tuple[Problem, Configuration]]:
    """Databases with the best of five random voters as leader."""
    instance, trace, _ = drawn_fleet(name, databases, seed, latency=latency)
    spread = Distributions.constant(instance, bins=BINS)
    rng = np.random.default_rng(seed)
    found = []
    for counts in trace.counts.sum(axis=1):
        chosen = tuple(sorted(rng.permutation(len(instance.sites))[:VOTERS].tolist()))
        names = [instance.sites[site] for site in chosen]
        problem = Problem(
            instance.replace(counts=counts, intervals=()),
            replicas=names,
            voters=names,
            objective=Percentile(50, spread),
        )
        best = chosen[int(np.argmin(_means(problem, chosen)))]
        found.append((problem, Configuration.of(best, chosen, chosen)))
    return found


def _means(problem: Problem, sites: tuple[int, ...]) -> FloatArray:
    """Mean latency in ms under each of the sites as leader."""
    plain = problem.replace(objective=MEAN_LATENCY)
    each = [Configuration.of(site, sites, sites) for site in sites]
    return MEAN_LATENCY.values(plain, each) / plain.demand.operations


def _shares(questions: list[tuple[Problem, Configuration]]) -> Row:
    rows = []
    for problem, chosen in questions:
        means = _means(problem, chosen.voters)
        best = chosen.voters.index(chosen.leader)
        predicted = true_reduction(means, best, best, 1 / VOTERS)
        true = [true_reduction(means, best, heavy, THIRD) for heavy in range(VOTERS)]
        others = [value for heavy, value in enumerate(true) if heavy != best]
        medians = (np.nan, np.nan)
        if NEAR[0] <= predicted <= NEAR[1]:
            medians = _medians(problem, chosen)
        rows.append((predicted, true[best], min(others), max(others), *medians))
    table = np.array(rows)
    near = table[(table[:, 0] >= NEAR[0]) & (table[:, 0] <= NEAR[1])]
    explained = PREDICTED - MEASURED
    row: Row = {"databases": len(table), "near": len(near)}
    columns = ("predicted", "third at best", "least else", "most else", "p50", "p50, third at best")
    for place, key in enumerate(columns):
        row[key] = round(float(near[:, place].mean()), 1) if len(near) else None
    falls = near[:, 0] - near[:, 1:3].min(axis=1)
    row["largest fall"] = round(float(falls.max(initial=0.0)), 1)
    row["explained"] = int((falls >= explained).sum())
    return row


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


def _figure_4(questions: list[tuple[Problem, Configuration]]) -> tuple[Row, LeaderMigration]:
    """Reductions when the leaders of four voters move to the best, and the course of one."""
    found: list[tuple[float, float, float, LeaderMigration]] = []
    for problem, chosen in questions:
        names = problem.instance.sites
        down = next(site for site in reversed(chosen.voters) if site != chosen.leader)
        rest = {names[site]: 1 / (VOTERS - 1) for site in chosen.voters if site != down}
        course = migrate(problem, chosen, shares=rest, groups=100, per_step=7)
        mean, median, late = (
            float(100 * (1 - values[-1] / values[0]))
            for values in (course.mean, course.of(50.0), course.of(99.0))
        )
        found.append((mean, median, late, course))
    table = np.array([row[:3] for row in found])
    row: Row = {"databases": len(table)}
    for place, key in enumerate(("mean", "p50", "p99")):
        row[key] = round(float(np.median(table[:, place])), 1)
    row["p50 at least twice the mean"] = int(
        ((table[:, 1] >= 2 * table[:, 0]) & (table[:, 0] > 1)).sum()
    )
    row["p50 halves"] = int((table[:, 1] >= 50).sum())
    row["p50 rises"] = int((table[:, 1] < 0).sum())
    closest = int(np.abs(table - np.array([30.0, 60.0, 30.0])).sum(axis=1).argmin())
    return row, found[closest][3]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser, "latency")
    parser.add_argument("--databases", type=int, default=200, help="per network (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the fleets (default 1)")
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark; return the exit code 0."""
    shares: list[Row] = []
    moves: list[Row] = []
    course: LeaderMigration | None = None
    for name in NETWORKS:
        if network(name, asked.latency) is None:
            continue
        questions = _questions(name, asked.databases, asked.seed, asked.latency)
        shares.append({"network": name, **_shares(questions)})
        row, one = _figure_4(questions)
        moves.append({"network": name, **row})
        course = one if name == "azure" or course is None else course
    document = {
        "machine": machine.describe(),
        "databases": asked.databases,
        "seed": asked.seed,
        "shares": shares,
        "figure 4": moves,
        "bound": round(_bound(PREDICTED, THIRD), 2),
    }
    save_json(asked.results / "leader_shares.json", document)
    if course is not None:
        title = "Leaders move to the recommended site"
        save_figure(plot_migration(course, title=title), FIGURE, force=True)
    print(f"least reduction that a third at one site can explain: {document['bound']} %")
    return 0


def _report() -> dict[str, str]:
    """Return the tables of docs/over-time.md from the results that the project keeps."""
    document = read_json(RESULTS / "leader_shares.json")
    return {
        "leader shares": _table(document["shares"]),
        "moved leaders": _table(document["figure 4"]),
    }


def _bound(predicted: float, share: float) -> float:
    """Least true reduction in per cent for a predicted one, with a share at one site.

    The mean of the uniform distribution is 1. Under a heavy site of mean h the true one is
    x·h + (1 − x)·(n − h)/(n − 1), which is least for the least h, the recommended site.
    """
    least = 1 - predicted / 100
    true = share * least + (1 - share) * (VOTERS - least) / (VOTERS - 1)
    return 100 * (1 - least / true)


def _table(rows: list[Row]) -> str:
    return markdown_table(list(rows[0]), [row.values() for row in rows])


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("leader_shares.json",),
    page="docs/over-time.md",
    report=_report,
)

"""Simulation of a migration of leaders: Figure 4 of Sharov et al., PVLDB 8(12), 2015.

A database consists of groups (partitions) with a leader each. Its replicas and voters stand; the
leaders move to a new site, a few groups in each step, in an order drawn at random. Every group has
the same demand, so that at any time the latency of all operations is the mixture of that under each
leader, weighted with its share of the groups. Percentiles of a mixture are not the mixture of
percentiles: while two leaders share the groups, the median may fall in a few jumps.

Not modelled: operations that wait while a group elects its leader, and load.

Picture of a migration of leaders, after Figure 4 of Sharov et al. (extra ``plot``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, require
from placement.evaluation.objective import score_of
from placement.measures.measure import Measure, MeasureKind
from placement.measures.values import percentile_of
from placement.model.configuration import Configuration
from placement.problem import Problem
from placement.report.charts.svg_charts import Series, lines
from placement.report.plots import Picture, picture
from placement.support.checks import FloatArray, IntArray, instance_of, whole
from placement.tail.histograms import percentile
from placement.tail.objective import Percentile, weighted_sum

if TYPE_CHECKING:
    import pandas as pd

PERCENTS = (50.0, 90.0, 99.0)
"""Percentiles that the paper observes."""


@dataclass(frozen=True, eq=False)
class LeaderMigration:
    """Course of a migration; step 0 is before the first group moves."""

    sites: tuple[str, ...]  #: names of the sites that lead a group at any time
    target: str  #: name of the site that leads all groups at the end
    groups: IntArray  #: groups that each site leads, shape (steps + 1, sites)
    percents: tuple[float, ...]  #: percentiles, ascending
    #: latency in ms, shape (steps + 1, percents); infinite beyond the horizon
    percentiles: FloatArray
    mean: FloatArray  #: mean latency in ms by Eq. 1, shape (steps + 1,)

    @property
    def moved(self) -> FloatArray:
        """Share of the groups that the target leads, shape (steps + 1,)."""
        led = self.groups[:, self.sites.index(self.target)]
        return np.asarray(led / self.groups.sum(axis=1))

    def of(self, percent: float) -> FloatArray:
        """Latency in ms at a percentile that was simulated, by step, shape (steps + 1,)."""
        expected = "one of " + ", ".join(f"{p:g}" for p in self.percents)
        require(percent in self.percents, "percent", "percentile not simulated", percent, expected)
        return np.asarray(self.percentiles[:, self.percents.index(percent)])

    def to_frame(self) -> pd.DataFrame:
        """Return a row per step: ``step``, ``moved`` (share), ``mean`` and ``p50`` … in ms."""
        import pandas as pd

        columns = {"step": np.arange(len(self.mean)), "moved": self.moved, "mean": self.mean}
        columns |= {f"p{percent:g}": self.of(percent) for percent in self.percents}
        return pd.DataFrame(columns)


def migrate(
    problem: Problem,
    configuration: Configuration,
    *,
    shares: Mapping[str, float] | None = None,
    groups: int = 100,
    per_step: int = 10,
    percents: Sequence[float] = PERCENTS,
    seed: int = 0,
) -> LeaderMigration:
    """Simulate a migration of all leaders to the leader of a configuration.

    Parameters
    ----------
    problem
        Demand, RTTs, and their distributions, as a question about a percentile brings them.
    configuration
        Replicas and voters, which stand, and the leader at the end (site indices).
    shares
        Share of the groups that each voter leads at the beginning; None: equal shares. They are
        rounded to whole groups, the largest remainders up.
    groups
        How many groups the database has.
    per_step
        Groups that move in a step.
    percents
        Percentiles to follow, in (0, 100].
    seed
        Of the order in which the groups move.

    Raises
    ------
    InputError
        For a question without distributions, shares of a site that does not vote or that do not
        sum to 1, a percentile out of range, or numbers of groups that are no whole numbers >= 1.

    Notes
    -----
    One distribution of latency per leader, then one weighted sum per step.
    """
    instance_of(problem, Problem, "problem", "a placement.Problem")
    goal = percentile_of(problem, Measure(MeasureKind.PERCENTILE, 1.0))
    wanted = tuple(sorted({float(Percentile(p, goal.distributions).percent) for p in percents}))
    require(wanted, "percents", "no percentile given", expected="at least one percentile")
    whole(groups, "groups", minimum=1)
    whole(per_step, "per_step", minimum=1)
    instance, voters = problem.instance, sorted(configuration.voters)
    if shares is None:
        able = [site for site in voters if problem.rules.may_lead[site]]
        given = dict.fromkeys(able, 1 / len(able))
    else:
        sites = instance.site_indices(tuple(shares), "shares").tolist()
        given = dict(zip(sites, map(float, shares.values()), strict=True))
        for site, held in given.items():
            if site not in voters or not held >= 0:
                field, expected = f"shares[{instance.sites[site]!r}]", "a share >= 0 of a voter"
                raise InputError("no such leader", field=field, value=held, expected=expected)
        total = sum(given.values())
        if abs(total - 1) > 1e-6:
            raise InputError("the shares do not sum to 1", field="shares", value=total)
    exact = {site: held * groups for site, held in given.items()}
    led_by = {site: int(value + 1e-9) for site, value in exact.items()}
    rest = groups - sum(led_by.values())
    for site in sorted(exact, key=lambda site: (led_by[site] - exact[site], site))[:rest]:
        led_by[site] += 1
    # leaders at the beginning or the end, and the groups of each leader at the beginning
    leaders = sorted({site for site, count in led_by.items() if count} | {configuration.leader})
    counts = [led_by.get(site, 0) for site in leaders]
    place, now = leaders.index(configuration.leader), np.array(counts, dtype=np.intp)
    elsewhere = np.arange(len(leaders)) != place
    waiting = np.repeat(np.arange(len(leaders)), np.where(elsewhere, now, 0))
    order, steps = np.random.default_rng(seed).permutation(waiting), [now.copy()]
    for first in range(0, len(order), per_step):
        moving = order[first : first + per_step]
        np.subtract.at(now, moving, 1)
        now[place] += len(moving)
        steps.append(now.copy())
    led = np.array(steps)
    each = [
        Configuration(leader, configuration.voters, configuration.replicas) for leader in leaders
    ]
    latency = [goal.latency(problem, one) for one in each]
    means = np.array([score_of(problem, one) for one in each]) / problem.demand.operations
    share = led / groups
    horizon, width = goal.distributions.bins, goal.distributions.width
    rows = []
    for row in share.tolist():
        mixed = weighted_sum(list(zip(row, latency, strict=True)))
        rows.append([width * percentile(mixed, p / 100, horizon=horizon) for p in wanted])
    names = instance.sites
    return LeaderMigration(
        tuple(names[leader] for leader in leaders),
        names[configuration.leader],
        led,
        wanted,
        np.array(rows),
        share @ means,
    )


def plot_migration(result: LeaderMigration, *, title: str = "") -> Picture:
    """Draw the latency in per cent of that before the migration, and the share that has moved."""
    courses = {f"p{percent:g}": result.of(percent) for percent in result.percents}
    shown = {name: 100 * latency / latency[0] for name, latency in courses.items()}
    shown[f"leaders at {result.target}"] = 100 * result.moved
    chart = lines(
        [Series(name, tuple(enumerate(line.tolist()))) for name, line in shown.items()],
        caption=title,
        name="course",
        x_label="step",
        y_label="latency, % of that before; leaders, % of all groups",
        steps=True,
    )
    return picture([chart])

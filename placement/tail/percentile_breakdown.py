"""The numbers behind a plan for a percentile: other percentiles, and other leaders."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.evaluation.objective import score_of
from placement.evaluation.value_tables import ValueColumn, ValueTable
from placement.model.configuration import Configuration
from placement.tail.distribution_arithmetic import percentile
from placement.tail.objective import Percentile

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = [
    "PERCENTS",
    "PercentileValue",
    "TailAlternative",
    "by_leader",
    "percentile_curve",
    "percentile_of",
    "value_tables",
]

PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9)
"""Shown beside the percentile that is minimised."""


@dataclass(frozen=True, slots=True)
class PercentileValue:
    """A percentile: percent, and latency in ms (infinite beyond the horizon)."""

    percent: float
    ms: float


@dataclass(frozen=True, slots=True)
class TailAlternative:
    """A voter as leader, with all other roles unchanged: its percentile and mean latency in ms."""

    leader: str
    percentile: float
    mean_latency: float


def percentile_of(problem: Problem) -> Percentile | None:
    """Return the objective of a problem if it is a percentile."""
    objective = problem.objective
    return objective if isinstance(objective, Percentile) else None


def percentile_curve(
    problem: Problem, configuration: Configuration, percents: Sequence[float] = PERCENTS
) -> tuple[tuple[float, float], ...]:
    """(percent, latency in ms) for several percentiles and the one that is minimised, rising.

    Infinite beyond the horizon of the distributions. One evaluation of the mixture for all.
    """
    goal = percentile_of(problem)
    assert goal is not None
    latency = goal.latency(problem, configuration)
    horizon, width = goal.distributions.bins, goal.distributions.width
    wanted = sorted({*map(float, percents), float(goal.percent)})
    return tuple((p, width * percentile(latency, p / 100, horizon=horizon)) for p in wanted)


def by_leader(problem: Problem, configuration: Configuration) -> tuple[TailAlternative, ...]:
    """Every voter that may lead, as leader, best percentile first; ties by mean latency."""
    goal = percentile_of(problem)
    assert goal is not None
    if problem.demand.leaderless:
        return ()
    candidates = {s for s in configuration.voters if problem.rules.may_lead[s]}
    rows = []
    for site in sorted(candidates | {configuration.leader}):
        other = dataclasses.replace(configuration, leader=site)
        rows.append(
            TailAlternative(
                problem.instance.sites[site],
                goal.value(problem, other),
                score_of(problem, other) / problem.demand.operations,
            )
        )
    return tuple(sorted(rows, key=lambda row: (row.percentile, row.mean_latency)))


def value_tables(problem: Problem, configuration: Configuration) -> tuple[ValueTable, ...]:
    """Return the tables of :func:`percentile_curve` and :func:`by_leader`."""
    goal = percentile_of(problem)
    assert goal is not None
    word, beyond, decimals = f"p{goal.percent:g}", "beyond the horizon", goal.decimals
    leaders = by_leader(problem, configuration)
    chosen = problem.instance.sites[configuration.leader]
    percentiles = (
        ValueTable(
            "Latency of all operations",
            (ValueColumn("percentile"), ValueColumn("ms", decimals, beyond)),
            tuple(
                (f"p{percent:g}", value)
                for percent, value in percentile_curve(problem, configuration)
            ),
        ),
    )
    if not leaders:  # no operation needs one
        return percentiles
    return (
        *percentiles,
        ValueTable(
            f"Leaders by {word}, replicas and voters unchanged",
            (
                ValueColumn("leader"),
                ValueColumn(f"{word} ms", decimals, beyond),
                ValueColumn("mean ms", 3),
            ),
            tuple((row.leader, row.percentile, row.mean_latency) for row in leaders),
            chosen=next(i for i, row in enumerate(leaders) if row.leader == chosen),
        ),
    )

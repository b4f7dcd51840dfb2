"""A percentile after losses: of a plan, by loss, and of several plans at once.

After the loss of F the survivors serve with the quorum size of before, as for the mean
(:func:`placement.evaluation.losses.survivors`), and the percentile is that of the latency of all
operations then. If the leader is lost, the surviving voter of the least percentile leads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.evaluation.losses import score_after, survivors, unnoticed
from placement.evaluation.value_tables import ValueColumn, ValueTable
from placement.model.configuration import Configuration

if TYPE_CHECKING:
    from placement.contingency.objective import Contingency
    from placement.problem import Problem
    from placement.support.checks import FloatArray
    from placement.tail.objective import Percentile

__all__ = [
    "PercentileAfterLoss",
    "best_after",
    "mixed_percentiles",
    "percentile_rows",
    "percentile_tables",
    "percentiles_after",
]


@dataclass(frozen=True, slots=True)
class PercentileAfterLoss:
    """Percentile of a plan after one loss.

    Attributes
    ----------
    lost
        Name of the loss.
    survives
        Whether enough voters remain to commit.
    leader
        Leader after the loss: the old one if it stays, else the voter of the least percentile; None
        where the service is lost.
    percentile, mean_latency
        ms, with that leader; infinite when the service is lost, the percentile also beyond the
        horizon of the distributions.
    """

    lost: str
    survives: bool
    leader: str | None
    percentile: float
    mean_latency: float


def _left_after(
    problem: Problem, configuration: Configuration, lost: frozenset[int], *, leader_may_move: bool
) -> tuple[tuple[Configuration, int], ...]:
    """Return the roles and the quorum under every leader that may serve after a loss."""
    left = survivors(problem, configuration, lost, leader_may_move=leader_may_move)
    if left is None:
        return ()
    return tuple(
        (Configuration.of(ell, left.voters, left.replicas), left.quorum) for ell in left.leaders
    )


def best_after(
    problem: Problem, goal: Contingency, configuration: Configuration, lost: Iterable[int]
) -> float:
    """Return the least score (or percentile, ms) of a leader that may serve after a loss.

    It is infinite where the service is lost.
    """
    moves, percentile = goal.leader_may_move, goal.percentile
    if percentile is None:
        scores = score_after(
            problem, configuration, lost, leader_may_move=moves, clients_move=goal.clients_move
        )
    else:
        scores = percentiles_after(problem, percentile, configuration, lost, leader_may_move=moves)
    return min(scores.values(), default=math.inf)


def percentiles_after(
    problem: Problem,
    percentile: Percentile,
    configuration: Configuration,
    lost: Iterable[int],
    *,
    leader_may_move: bool = False,
) -> dict[int, float]:
    """Percentile in ms of every leader that may serve after a loss; empty: the service is lost.

    Parameters
    ----------
    problem, configuration
        The plan.
    percentile
        Which, and the distributions of RTTs.
    lost
        Site indices F.
    leader_may_move
        Whether a leader that survives may hand over to a better one.
    """
    left = _left_after(problem, configuration, frozenset(lost), leader_may_move=leader_may_move)
    return {one.leader: percentile.value(problem, one, quorum) for one, quorum in left}


def percentile_rows(
    problem: Problem, goal: Contingency, configuration: Configuration
) -> tuple[PercentileAfterLoss, ...]:
    """Return a row for each loss that hits a replica, in the order of the losses.

    Ties between leaders go to the least mean latency, then to the first site.
    """
    percentile = goal.percentile
    assert percentile is not None
    names, rate = problem.instance.sites, problem.demand.operations
    rows = []
    for loss in goal.losses(problem):
        if unnoticed(problem, configuration, loss.sites):
            continue
        moves = goal.leader_may_move
        after = percentiles_after(
            problem, percentile, configuration, loss.sites, leader_may_move=moves
        )
        if not after:
            rows.append(PercentileAfterLoss(loss.name, False, None, math.inf, math.inf))
            continue
        means = score_after(problem, configuration, loss.sites, leader_may_move=moves)
        value, mean, leader = min((after[ell], means[ell] / rate, ell) for ell in after)
        rows.append(PercentileAfterLoss(loss.name, True, names[leader], value, mean))
    return tuple(rows)


def percentile_tables(
    problem: Problem, goal: Contingency, configuration: Configuration
) -> tuple[ValueTable, ...]:
    """Return the percentile after every loss, the worst first, and the tables of the percentile."""
    percentile = goal.percentile
    assert percentile is not None
    word, decimals = f"p{percentile.percent:g}", goal.decimals
    rows = sorted(percentile_rows(problem, goal, configuration), key=lambda row: -row.percentile)
    normal = problem.replace(objective=percentile)
    return (
        ValueTable(
            f"The {word} when {goal.lost_words} lost",
            (
                ValueColumn("lost"),
                ValueColumn("new leader"),
                ValueColumn(f"{word} ms", decimals, "beyond the horizon"),
                ValueColumn("mean ms", 3),
            ),
            tuple(
                (
                    row.lost,
                    row.leader or "no quorum: the service stops",
                    row.percentile,
                    row.mean_latency,
                )
                for row in rows
            ),
        ),
        *percentile.tables(normal, configuration),
    )


def mixed_percentiles(
    problem: Problem,
    goal: Contingency,
    configurations: Sequence[Configuration],
    shares: Sequence[float],
) -> tuple[float, list[float]]:
    """Percentile of a database of several configurations: normally, and after every loss.

    A loss hits all of them at once; each then has the leader that is best for it.
    """
    percentile = goal.percentile
    assert percentile is not None
    held = [(one, share) for one, share in zip(configurations, shares, strict=True) if share]
    normal = percentile.mixed(problem, [one for one, _ in held], [share for _, share in held])
    return normal, [
        _mixed_after(problem, goal, percentile, held, loss.sites) for loss in goal.losses(problem)
    ]


def _mixed_after(
    problem: Problem,
    goal: Contingency,
    percentile: Percentile,
    held: Sequence[tuple[Configuration, float]],
    lost: frozenset[int],
) -> float:
    parts: list[tuple[float, FloatArray]] = []
    for one, share in held:
        if unnoticed(problem, one, lost):
            parts.append((share, percentile.latency(problem, one)))
            continue
        left = _left_after(problem, one, lost, leader_may_move=goal.leader_may_move)
        if not left:
            return math.inf
        best, quorum = min(left, key=lambda each: percentile.value(problem, *each))
        parts.append((share, percentile.latency(problem, best, quorum)))
    return percentile.of_mixture(parts)

"""Leaders ranked interval by interval: Figure 2 of Sharov et al., PVLDB 8(12), 2015."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.errors import InputError, UnsupportedError
from placement.evaluation.score import closest_first, cutoff, overhead
from placement.overtime.decayed_counts import Decay
from placement.overtime.replay.deployments import Deployments
from placement.overtime.replay.quorum_waits import QuorumWaits
from placement.overtime.replay.tier12 import agg_scores, fixed_roles
from placement.overtime.replay.trace import Trace
from placement.problem import Problem

__all__ = ["LeaderRanking", "leader_rankings", "ranking_text"]


@dataclass(frozen=True, slots=True)
class LeaderRanking:
    """Scores and order of the leaders of one database after one interval.

    Attributes
    ----------
    interval
        Its label.
    leaders
        Every candidate, best first; ties in site order. Empty while nothing was issued.
    overheads
        Percent by which the agg_score of each is above the best.
    """

    interval: str
    leaders: tuple[str, ...]
    overheads: tuple[float, ...]


def leader_rankings(
    problem: Problem, trace: Trace, deployments: Deployments, database: str, *, tier: int = 1
) -> tuple[LeaderRanking, ...]:
    """Rank the leaders of one database by agg_score (Eq. 2) after every interval.

    Parameters
    ----------
    problem, trace, deployments
        As for :func:`placement.overtime.replay.replay`.
    database
        Its name.
    tier
        1: the voters stand; 2: each leader with its best voters.

    Returns
    -------
    tuple of LeaderRanking
        One per interval. The strategy ``optimized`` uses the best after interval i in
        interval i + 1.
    """
    if not problem.objective.minimises_mean:
        raise UnsupportedError("the ranking is by mean latency, not by another objective")
    if tier not in (1, 2):
        raise InputError("no such tier", field="tier", value=tier, expected="1 or 2")
    alone = trace.of([database])
    alone.check_fits(problem.instance)
    row = trace.databases.index(database)
    held = deployments.part(row, row + 1)
    decay = Decay(problem.decay)
    terms, quorums = (
        fixed_roles(problem, alone, held),
        QuorumWaits(problem, held, tier, alone.databases),
    )
    scores = agg_scores(terms, quorums, decay)[0]
    issued = np.asarray(alone.counts[0].any(axis=(1, 2)))
    if np.isfinite(decay.factor):
        issued = np.asarray(np.logical_or.accumulate(issued))
    names = problem.instance.sites
    result = []
    for label, known, values in zip(trace.intervals, issued, scores, strict=True):
        candidates = np.nonzero(np.isfinite(values))[0] if known else np.zeros(0, dtype=np.intp)
        best = values[candidates].min(initial=np.inf)
        tied = np.where(values[candidates] <= cutoff(best), best, values[candidates])
        order = closest_first(tied)
        result.append(
            LeaderRanking(
                label,
                tuple(names[site] for site in candidates[order].tolist()),
                tuple(overhead(value, best) for value in tied[order].tolist()),
            )
        )
    return tuple(result)


def ranking_text(ranking: Sequence[LeaderRanking], *, top: int = 3) -> str:
    """Return a line per interval: the best leader, and what the next ones cost more.

    Parameters
    ----------
    ranking
        From :func:`leader_rankings`.
    top
        Leaders shown in each line.

    Examples
    --------
    >>> print(ranking_text([LeaderRanking("00:30", ("fra", "iad", "nrt"), (0.0, 3.194, 9.1))]))
    00:30: opt fra, 2nd best iad = 3.19 %, 3rd best nrt = 9.10 %
    """
    lines = []
    for each in ranking:
        if not each.leaders:
            lines.append(f"{each.interval}: nothing issued so far")
            continue
        words = [f"opt {each.leaders[0]}"]
        rest = list(zip(each.leaders, each.overheads, strict=True))[1 : max(top, 1)]
        words += [
            f"{_ordinal(place)} best {leader} = {over:.2f} %"
            for place, (leader, over) in enumerate(rest, 2)
        ]
        lines.append(f"{each.interval}: " + ", ".join(words))
    return "\n".join(lines)


def _ordinal(number: int) -> str:
    """2nd, 3rd, 4th, … 11th, 12th, 13th, … 21st."""
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number // 10 % 10 == 1 else ends.get(number % 10, 'th')}"

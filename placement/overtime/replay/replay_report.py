"""The result of a replay in words and tables, and as a JSON document.

The ranking of leaders by interval is Figure 2 of Sharov et al., PVLDB 8(12), 2015.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.cli.output import cell, records
from placement.errors import UnsupportedError
from placement.evaluation.score import closest_first, cutoff, overhead
from placement.overtime.decayed_counts import Decay, decayed_counts
from placement.overtime.replay.deployments import Deployments, Trace
from placement.overtime.replay.leader_table import LeaderTable, rules_by_votes
from placement.overtime.replay.results import gains, summary
from placement.problem import Problem, describe
from placement.text.text_tables import escape, page_width, table, wrap

if TYPE_CHECKING:
    import pandas as pd

    from placement.evaluation.moves import Moves
    from placement.overtime.replay.results import Replay


@dataclass(frozen=True, slots=True)
class LeaderRanking:
    """Scores and order of the leaders of one database after one interval."""

    interval: str  #: its label
    #: every candidate, best first; ties in site order. Empty while nothing was issued
    leaders: tuple[str, ...]
    overheads: tuple[float, ...]  #: percent by which the agg_score of each is above the best


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
    trace.of([database])  # refuses one that is not there
    trace.check_fits(problem.instance)
    row, decay = trace.databases.index(database), Decay(problem.decay)
    rules = rules_by_votes(problem, deployments)
    table = LeaderTable.of(problem, trace, deployments, row, rules, tier=tier)
    scores = decayed_counts(table.scores, decay)
    issued = np.asarray(trace.counts[row].any(axis=(1, 2)))
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
        for place, (leader, over) in enumerate(rest, 2):  # 2nd, 3rd, … 11th, 12th, … 21st
            ends = {1: "st", 2: "nd", 3: "rd"} if place // 10 % 10 != 1 else {}
            words.append(f"{place}{ends.get(place % 10, 'th')} best {leader} = {over:.2f} %")
        lines.append(f"{each.interval}: " + ", ".join(words))
    return "\n".join(lines)


# The result of a replay in words and tables, and as a JSON document

_MOST_LINES = 48
"""Lines of a ranking that are shown: those of one day of half hours."""


def replay_document(
    problem: Problem,
    trace: Trace,
    held: Deployments,
    result: Replay,
    database: str,
    moves: Moves | None,
) -> dict[str, object]:
    """Return the result of a replay as plain JSON values; the leaders of one database are ranked.

    `moves` are the prices and limits of moves, if any.
    """
    _, ranking = _ranking(problem, trace, held, result, database)
    return {
        "problem": describe(problem),
        "instance": problem.instance.name,
        "complete": result.complete,
        "databases": len(result.databases),
        "intervals": [result.intervals[0], result.intervals[-1]],
        "decay": problem.decay if problem.decay < float("inf") else None,
        "objective": result.objective or None,
        "method": result.method or None,
        "proven_share": result.proven if result.method else None,
        "strategies": records(summary(result)),
        "gains": records(gains(result)),
        "ranking": {
            "database": database,
            "intervals": [
                {
                    "interval": each.interval,
                    "leaders": list(each.leaders),
                    "overheads": [x if x < math.inf else None for x in each.overheads],
                }
                for each in ranking
            ],
        },
        "moves": None if moves is None else moves.given,
    }


def replay_text(
    problem: Problem,
    trace: Trace,
    held: Deployments,
    result: Replay,
    database: str,
    moves: Moves | None,
    *,
    top: int,
) -> str:
    """Return the result as text, as :func:`replay_document`; `top`: leaders of each interval."""
    tier, ranking = _ranking(problem, trace, held, result, database)
    strategies, worth, count = summary(result), gains(result), len(result.databases)
    sections = [
        wrap(
            f"{escape(describe(problem))}; on {escape(problem.instance.name)}. "
            f"{count:,} database{'' if count == 1 else 's'}, {len(result.intervals):,} "
            f"intervals replayed, {escape(result.intervals[0])} to "
            f"{escape(result.intervals[-1])}."
        )
    ]
    if moves is not None:
        given = ", ".join(f"{name} {value}" for name, value in moves.given.items())
        sections.append(wrap(f"'optimized' weighs moves from interval to interval: {given}."))
    if not result.complete:
        sections.append(
            f"Stopped: the first {count:,} of {len(trace):,} databases are done, and shown."
        )
    if tier is not None:
        sections.append(_ranked_text(ranking, database, tier, top))
    title = "Strategies, per cent above the oracle of the same tier\n"
    sections.append(title + _table(strategies))
    if len(worth):
        sections.append("What choosing a leader is worth, per cent\n" + _gains(worth))
    if result.method:
        planned = f"{'All tiers were' if result.objective else 'Tier 3 was'} planned by "
        proven = f"{100 * result.proven:.1f} % of the oracle's plans are proven optimal."
        sections.append(wrap(f"{planned}{escape(result.method)}; {proven}"))
    return "\n\n".join(sections)


def _ranking(
    problem: Problem, trace: Trace, held: Deployments, result: Replay, database: str
) -> tuple[int | None, tuple[LeaderRanking, ...]]:
    """Return the tier in which leaders are ranked, if any, and a row per interval."""
    tier = next((tier for tier in result.tiers if tier < 3 and not result.objective), None)
    if tier is None:
        return None, ()
    return tier, leader_rankings(problem, trace, held, database, tier=tier)


def _ranked_text(ranking: Sequence[LeaderRanking], database: str, tier: int, top: int) -> str:
    """Return the leaders of each interval; of many intervals those where the best changes."""
    lines = ranking_text(ranking, top=top).split("\n")
    title = f"Leaders of {escape(database)} after each interval (tier {tier})"
    if len(lines) > _MOST_LINES:
        first = [each.leaders[:1] for each in ranking]
        lines = [line for i, line in enumerate(lines) if i == 0 or first[i] != first[i - 1]]
        title += ", where the best one changes"
        if len(lines) > _MOST_LINES:
            lines = [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} more changes"]
    room = page_width() - 2
    return "\n".join([title, *("  " + wrap(escape(line), room, indent="    ") for line in lines)])


def _table(strategies: pd.DataFrame) -> str:
    """Return the table of the strategies, with its abbreviations."""
    latency = "value" if "value" in strategies else "mean_latency"
    shown = "value ms" if latency == "value" else "mean ms"
    numbers = [latency, "overhead_mean", "overhead_median", "overhead_p95", "moves"]
    head = ["tier", "strategy", "databases", shown, "mean %", "median %", "p95 %", "moves"]
    words = "moves: mean number of leader changes; a dash: undefined, or no leader to name"
    if (strategies["tier"] == 3).any():
        numbers.append("copies")
        head.append("copies")
        words += "; copies: mean number of replicas copied to a new site"
    rows = [
        [str(row["tier"]), str(row["strategy"]), str(row["databases"])]
        + [cell(row[name], 3 if name == latency else 2) for name in numbers]
        for row in strategies.to_dict("records")
    ]
    return table(head, rows, right=range(2, len(head))) + "\n\n" + wrap(words)


def _gains(moving: pd.DataFrame) -> str:
    """Return the least, median, mean and largest gain of each tier and kind."""
    meaning = {
        "static": "best constant leader, against the worst",
        "static_average": "best constant leader, against leaders spread evenly",
        "static_given": "best constant leader, against leaders as given",
        "dynamic": "moving, the future known, against the best constant",
        "realised": "moving as optimized does, against the best constant",
    }
    rows = []
    for tier, part in moving.groupby("tier"):
        for name, words in meaning.items():
            seen = part[name].dropna()
            if len(seen):
                found = (seen.min(), seen.median(), seen.mean(), seen.max())
                rows.append([str(tier), words, *(cell(float(one)) for one in found)])
    return table(["tier", "gain", "least", "median", "mean", "most"], rows, right=[2, 3, 4, 5])

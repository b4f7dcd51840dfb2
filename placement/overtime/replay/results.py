"""Results of a replay per database, interval, tier and strategy.

Summaries of a replay: strategies beside the oracle, and the gain of moving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, refused
from placement.overtime.replay.deployments import NOBODY
from placement.support.checks import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class StrategyCosts:
    """Costs of one strategy in one tier; arrays of shape (databases, intervals replayed)."""

    tier: int  #: 1, 2 or 3
    strategy: str  #: its name
    leader: IntArray  #: site index; `NOBODY` where leaders are spread, or the strategy is undefined
    #: `voters`, `replicas`: numbers of sets, see `Replay.sets`; −1 where the strategy is undefined
    voters: IntArray
    replicas: IntArray
    #: Eq. 1 with the demand and the RTTs of the interval itself, ms times operations; NaN where the
    #: strategy is undefined. With another objective: its value in ms times the operations
    score: FloatArray


@dataclass(frozen=True, eq=False)
class Replay:
    """Result of a replay."""

    databases: tuple[str, ...]  #: names
    intervals: tuple[str, ...]  #: labels of the intervals replayed: from the second on
    sites: tuple[str, ...]  #: names
    operations: FloatArray  #: number of operations issued, shape (databases, intervals)
    outcomes: tuple[StrategyCosts, ...]  #: by tier, then strategy; every tier has its ``oracle``
    #: the sets that `StrategyCosts.voters` and `StrategyCosts.replicas` number
    sets: tuple[tuple[int, ...], ...]
    decay: float  #: τ of Eq. 2 that was used
    method: str = ""  #: who planned; "" where nothing was planned
    #: share of the oracle's planned intervals whose plan is proven optimal; NaN without plans
    proven: float = float("nan")
    objective: str = ""  #: what is paid, in words; empty for the mean latency
    #: false when the replay was stopped: `databases` has the finished ones
    complete: bool = True

    @property
    def latency_column(self) -> str:
        """Column of tables with the latency in ms: ``mean_latency``, or the ``value`` paid."""
        return "value" if self.objective else "mean_latency"

    @property
    def tiers(self) -> tuple[int, ...]:
        """Tiers replayed, ascending."""
        return tuple(sorted({outcome.tier for outcome in self.outcomes}))

    def outcome(self, tier: int, strategy: str) -> StrategyCosts:
        """Return the outcome of a strategy in a tier; InputError where they were not replayed."""
        for each in self.outcomes:
            if (each.tier, each.strategy) == (tier, strategy):
                return each
        known = ", ".join(f"{each.strategy} ({each.tier})" for each in self.outcomes)
        asked = f"{strategy}, tier {tier}"
        raise refused("", "strategy", "not replayed", asked, f"one of {known}")

    def overhead(self, tier: int, strategy: str, *, of: str = "oracle") -> FloatArray:
        """Percent by which a strategy's score is above another's, shape (databases, intervals).

        0 where both are 0, infinite where only the other is, NaN where either is undefined.
        """
        mine = self.outcome(tier, strategy).score
        return percent_above(mine, self.outcome(tier, of).score)

    def total(self, tier: int, strategy: str) -> FloatArray:
        """Score of each database over all intervals; NaN where undefined. Shape (databases,)."""
        return np.asarray(self.outcome(tier, strategy).score.sum(axis=1))

    def moves(self, tier: int, strategy: str) -> FloatArray:
        """Return how often the leader of each database changed; NaN without a single leader."""
        leader = self.outcome(tier, strategy).leader
        count = (leader[:, 1:] != leader[:, :-1]).sum(axis=1).astype(np.float64)
        return np.where((leader == NOBODY).all(axis=1), np.nan, count)

    def copies(self, tier: int, strategy: str) -> FloatArray:
        """Return the number of replicas of each database copied to a new site; NaN if undefined."""
        codes = self.outcome(tier, strategy).replicas
        count = np.where((codes < 0).all(axis=1), np.nan, 0.0)
        for database, column in np.argwhere(codes[:, 1:] != codes[:, :-1]).tolist():
            before, after = (set(self.sets[codes[database, column + step]]) for step in (0, 1))
            count[database] += len(after - before)
        return count

    def to_frame(self) -> pd.DataFrame:
        """Return the tidy table, a row per tier, strategy, database and interval.

        Columns: database, interval, tier, strategy, leader, voters, replicas (sites joined by a
        semicolon and a space), operations, score (ms times operations), mean_latency (ms; NaN
        without demand; ``value`` instead with another objective), overhead (percent
        above the tier's oracle).
        """
        import pandas as pd

        def named(codes: IntArray, names: Sequence[str]) -> pd.Series[str]:
            kind = pd.CategoricalDtype(pd.Index(list(names), dtype=object))
            return pd.Series(pd.Categorical.from_codes(codes.reshape(-1), dtype=kind))

        shape = self.operations.shape
        label = ["; ".join(self.sites[site] for site in sites) for sites in self.sets]
        which, when = (axis.reshape(-1) for axis in np.indices(shape))
        frames = []
        strategies = list(dict.fromkeys(outcome.strategy for outcome in self.outcomes))
        for each in self.outcomes:
            issued = self.operations.reshape(-1)
            score = each.score.reshape(-1)
            latency = np.divide(score, issued, out=np.full_like(score, np.nan), where=issued > 0)

            frames.append(
                pd.DataFrame(
                    {
                        "database": named(which, self.databases),
                        "interval": named(when, self.intervals),
                        "tier": np.full(score.size, each.tier, dtype=np.int8),
                        "strategy": named(
                            np.full(score.size, strategies.index(each.strategy)), strategies
                        ),
                        "leader": named(each.leader, self.sites),
                        "voters": named(each.voters, label),
                        "replicas": named(each.replicas, label),
                        "operations": issued,
                        "score": score,
                        self.latency_column: latency,
                        "overhead": self.overhead(each.tier, each.strategy).reshape(-1),
                    }
                )
            )
        return pd.concat(frames, ignore_index=True)


def percent_above(value: FloatArray, best: FloatArray) -> FloatArray:
    """100·(value/best − 1), with 0 for 0/0 and infinity for anything else over 0."""
    result = np.full(np.broadcast(value, best).shape, np.nan)
    np.divide(value, best, out=result, where=best > 0)
    result = 100.0 * (result - 1.0)
    result[(best == 0) & (value == 0)] = 0.0
    result[(best == 0) & (value > 0)] = np.inf
    return result


def summary(result: Replay) -> pd.DataFrame:
    """Compare the strategies over all databases, each database counting once.

    Returns
    -------
    DataFrame
        A row per tier and strategy: ``databases``, in how many it is defined and anything was
        issued; ``mean_latency`` in ms, the mean of their mean latencies (``value`` with another
        objective: of its values, each interval by its operations); ``overhead_mean``,
        ``overhead_median``, ``overhead_p95``, ``overhead_max``: percent by which a database's total
        score is above that of its oracle; ``moves``, mean number of leader changes (NaN where
        no leader can be named), and ``copies``, mean number of replicas copied to a new site,
        neither of which costs anything here. Strategies that are defined in other databases are
        compared with the oracle there, not with each other.

    Notes
    -----
    A database's overhead is that of its total score, so that its busy intervals count more; the
    overheads per interval are in :meth:`Replay.to_frame`.
    """
    import pandas as pd

    issued = result.operations.sum(axis=1)
    rows = []
    for each in result.outcomes:
        total = result.total(each.tier, each.strategy)
        seen = ~np.isnan(total) & (issued > 0)
        over = percent_above(total, result.total(each.tier, "oracle"))[seen]
        moves = result.moves(each.tier, each.strategy)[seen]
        rows.append(
            {
                "tier": each.tier,
                "strategy": each.strategy,
                "databases": int(seen.sum()),
                result.latency_column: _mean(total[seen] / issued[seen]),
                "overhead_mean": _mean(over),
                "overhead_median": float(np.median(over)) if over.size else np.nan,
                "overhead_p95": float(np.percentile(over, 95)) if over.size else np.nan,
                "overhead_max": float(over.max(initial=-np.inf)) if over.size else np.nan,
                "moves": _mean(moves[~np.isnan(moves)]),
                "copies": _mean(result.copies(each.tier, each.strategy)[seen]),
            }
        )
    return pd.DataFrame(rows)


def gains(result: Replay) -> pd.DataFrame:
    """Tell the gain of choosing well once from the gain of choosing again and again.

    Returns
    -------
    DataFrame
        A row per tier and database that issued anything. In percent of the larger of the two
        scores compared: ``static``, best constant leader against the worst (NaN in tier 3);
        ``static_average``, against leaders spread evenly; ``static_given``, against the given
        distribution of leaders; ``dynamic``, the oracle against the best
        constant configuration in hindsight: the largest gain of moving; ``realised``, the
        optimized strategy against it: the gain of moving when the future is unknown, negative when
        it loses. NaN where one of the two was not replayed.
    """
    import pandas as pd

    issued = result.operations.sum(axis=1) > 0
    frames: list[pd.DataFrame] = []
    for tier in result.tiers:
        columns: dict[str, object] = {"tier": tier, "database": list(result.databases)}
        for name, better, worse in (
            ("static", "static", "worst"),
            ("static_average", "static", "average"),
            ("static_given", "static", "given"),
            ("dynamic", "oracle", "static"),
            ("realised", "optimized", "static"),
        ):
            columns[name] = _gain(*(_total(result, tier, each) for each in (better, worse)))
        frames.append(pd.DataFrame(columns)[issued])
    return pd.concat(frames, ignore_index=True)


def _total(result: Replay, tier: int, strategy: str) -> FloatArray:
    try:
        return result.total(tier, strategy)
    except InputError:
        return np.full(len(result.databases), np.nan)


def _gain(better: FloatArray, worse: FloatArray) -> FloatArray:
    """100·(1 − better/worse); 0 for 0/0."""
    ratio = np.divide(better, worse, out=np.ones(len(better)), where=worse != 0)
    return 100.0 * (1.0 - ratio)


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if values.size else float("nan")

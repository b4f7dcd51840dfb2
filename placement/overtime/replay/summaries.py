"""Summaries of a replay: strategies beside the oracle, and the gain of moving."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.overtime.replay.results import Replay, percent_above

if TYPE_CHECKING:
    import pandas as pd

    from placement.support.checks import FloatArray

__all__ = ["gains", "summary"]


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
        total = {
            name: _total(result, tier, name)
            for name in ("static", "worst", "average", "given", "oracle", "optimized")
        }
        frame = pd.DataFrame(
            {
                "tier": tier,
                "database": list(result.databases),
                "static": _gain(total["static"], total["worst"]),
                "static_average": _gain(total["static"], total["average"]),
                "static_given": _gain(total["static"], total["given"]),
                "dynamic": _gain(total["oracle"], total["static"]),
                "realised": _gain(total["optimized"], total["static"]),
            }
        )
        frames.append(frame[issued])
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

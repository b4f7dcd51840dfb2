"""Replay of demand over time: the cost of a strategy, interval by interval.

    trace       = replay.Trace.of_instance(instance)
    deployments = replay.Deployments.solved(problem, trace)
    result      = replay.replay(problem, trace, deployments, tiers=(1, 2, 3))
    replay.summary(result), replay.gains(result), result.to_frame()

See :mod:`placement.overtime.replay.run_replay` for the strategies.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.overtime.decayed_counts import Decay as Decay
    from placement.overtime.decayed_counts import DecayedCounts as DecayedCounts
    from placement.overtime.decayed_counts import decayed_counts as decayed_counts
    from placement.overtime.replay.deployments import NOBODY as NOBODY
    from placement.overtime.replay.deployments import Deployments as Deployments
    from placement.overtime.replay.deployments import Trace as Trace
    from placement.overtime.replay.leader_table import interval_scores as interval_scores
    from placement.overtime.replay.replay_report import LeaderRanking as LeaderRanking
    from placement.overtime.replay.replay_report import leader_rankings as leader_rankings
    from placement.overtime.replay.replay_report import ranking_text as ranking_text
    from placement.overtime.replay.results import Replay as Replay
    from placement.overtime.replay.results import StrategyCosts as StrategyCosts
    from placement.overtime.replay.results import gains as gains
    from placement.overtime.replay.results import summary as summary
    from placement.overtime.replay.run_replay import STRATEGIES as STRATEGIES
    from placement.overtime.replay.run_replay import ReplayProgress as ReplayProgress
    from placement.overtime.replay.run_replay import replay as replay

_HOME = {
    "placement.overtime.decayed_counts": ("Decay", "DecayedCounts", "decayed_counts"),
    "placement.overtime.replay.deployments": ("Deployments", "NOBODY", "Trace"),
    "placement.overtime.replay.replay_report": (
        "LeaderRanking",
        "leader_rankings",
        "ranking_text",
    ),
    "placement.overtime.replay.results": ("Replay", "StrategyCosts", "gains", "summary"),
    "placement.overtime.replay.run_replay": ("ReplayProgress", "STRATEGIES", "replay"),
    "placement.overtime.replay.leader_table": ("interval_scores",),
}

__all__ = [*chain.from_iterable(_HOME.values())]

__getattr__, __dir__ = lazy_names(__name__, _HOME)

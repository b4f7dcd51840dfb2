"""Replaying demand over time: what a strategy would have paid, interval by interval.

    trace       = replay.Trace.of_instance(instance)
    deployments = replay.Deployments.solved(problem, trace)
    result      = replay.replay(problem, trace, deployments, tiers=(1, 2, 3))
    replay.summary(result), replay.gains(result), result.to_frame()

See :mod:`placement.replay.run` for the strategies.
"""

from placement.replay.decay import Decay, DecayedCounts, decayed
from placement.replay.deployments import NOBODY, Deployments
from placement.replay.fixed import interval_scores
from placement.replay.ranking import Recommendation, ranking_text, recommendations
from placement.replay.results import Outcome, Replay
from placement.replay.run import STRATEGIES, ReplayProgress, replay
from placement.replay.summaries import gains, summary
from placement.replay.trace import Trace

__all__ = [
    "NOBODY",
    "STRATEGIES",
    "Decay",
    "DecayedCounts",
    "Deployments",
    "Outcome",
    "Recommendation",
    "Replay",
    "ReplayProgress",
    "Trace",
    "decayed",
    "gains",
    "interval_scores",
    "ranking_text",
    "recommendations",
    "replay",
    "summary",
]

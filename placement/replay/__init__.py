"""Replaying demand over time: what a strategy would have paid, interval by interval.

    trace       = replay.Trace.of_instance(instance)
    deployments = replay.Deployments.solved(problem, trace)
    result      = replay.replay(problem, trace, deployments, tiers=(1, 2, 3))
    replay.summary(result), replay.gains(result), result.to_frame()

See :mod:`placement.replay.run` for the strategies.
"""

from placement.replay.decay import Decay, DecayedCounts, decayed
from placement.replay.deployments import NOBODY, Deployments
from placement.replay.results import Outcome, Replay
from placement.replay.run import STRATEGIES, ReplayProgress, replay
from placement.replay.trace import Trace

__all__ = [
    "NOBODY",
    "STRATEGIES",
    "Decay",
    "DecayedCounts",
    "Deployments",
    "Outcome",
    "Replay",
    "ReplayProgress",
    "Trace",
    "decayed",
    "replay",
]

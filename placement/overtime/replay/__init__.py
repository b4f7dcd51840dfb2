"""Replay of demand over time: the cost of a strategy, interval by interval.

    trace       = replay.Trace.of_instance(instance)
    deployments = replay.Deployments.solved(problem, trace)
    result      = replay.replay(problem, trace, deployments, tiers=(1, 2, 3))
    replay.summary(result), replay.gains(result), result.to_frame()

See :mod:`placement.overtime.replay.run_replay` for the strategies.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

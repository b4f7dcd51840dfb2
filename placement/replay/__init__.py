"""Replaying demand over time: what a strategy would have paid, interval by interval."""

from placement.replay.decay import Decay, DecayedCounts, decayed

__all__ = ["Decay", "DecayedCounts", "decayed"]

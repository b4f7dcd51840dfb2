"""Tail latency: distributions per pair, quorum order statistics, percentiles as an objective."""

from placement.tail.distributions import Distributions
from placement.tail.objective import Percentile

__all__ = ["Distributions", "Percentile"]

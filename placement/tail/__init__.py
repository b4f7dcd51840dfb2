"""Tail latency: distributions per pair, quorum order statistics, percentiles as an objective."""

from placement.support.lazy import lazy_names
from placement.tail.objective import Percentile
from placement.tail.rtt_distributions import Distributions

__all__ = ["Distributions", "Percentile"]

__getattr__, __dir__ = lazy_names(__name__)

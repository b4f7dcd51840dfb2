"""Decisions over time: replay of strategies, moves between configurations, watch."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

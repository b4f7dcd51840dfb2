"""Staged migration of leaders: how the latency changes while groups of leaders move in steps."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

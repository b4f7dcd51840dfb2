"""Feasible configurations, and the reasons why there is none."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

"""Measures: one language for what is minimised and what is kept."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

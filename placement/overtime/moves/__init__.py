"""Stability: costs of moves, decisions to move, and safe steps that keep a quorum."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)

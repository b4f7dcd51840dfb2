"""Exact methods for leaderless quorum stores.

One entry per question:

- :func:`place`: the proven best configuration of a key, or why there is none;
- :func:`tie_envelope`: all best configurations, and the ranges over them;
- :func:`solve_keys`: a table of keys in, a table of configurations out.

The model is :mod:`placement.quorumstore`.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from formulations.quorumstore.enumeration import TieEnvelope as TieEnvelope
    from formulations.quorumstore.enumeration import TieRange as TieRange
    from formulations.quorumstore.enumeration import tie_envelope as tie_envelope
    from formulations.quorumstore.keys import KeysSummary as KeysSummary
    from formulations.quorumstore.keys import solve_keys as solve_keys
    from formulations.quorumstore.one_key import QuorumMethod as QuorumMethod
    from formulations.quorumstore.one_key import place as place

_HOME = {
    "formulations.quorumstore.enumeration": ("TieEnvelope", "TieRange", "tie_envelope"),
    "formulations.quorumstore.keys": ("KeysSummary", "solve_keys"),
    "formulations.quorumstore.one_key": ("QuorumMethod", "place"),
}

__all__ = [*chain.from_iterable(_HOME.values())]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
